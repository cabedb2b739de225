"""What the committed results files say, and how a number on a page is compared with it."""

import csv
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
RESULTS, PAPER = ROOT / "benchmarks" / "results", ROOT / "docs" / "paper"
EPSILONS = ("0.1", "0.5", "1", "2", "4", "8")


@cache
def rows(path):
    """A results file as dicts; numbers stay text."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return tuple(csv.DictReader(line for line in lines if not line.startswith("#")))


def column(path, value, *keys):
    """One column as {cells of the key columns: float}, empty cells left out."""
    return {tuple(r[key] for key in keys): float(r[value]) for r in rows(path) if r[value]}


def text_of(page):
    return (ROOT / page).read_text(encoding="utf-8")


def table(page, *head):
    """Rows, as lists of cells, of the first table whose header starts with these cells."""
    lines = text_of(page).splitlines()
    for start, line in enumerate(lines):
        if cells(line)[: len(head)] == list(head):
            body = lines[start + 2 :]
            stop = next(i for i, one in enumerate([*body, ""]) if not one.startswith("|"))
            return cells(line), [cells(one) for one in body[:stop]]
    raise AssertionError(f"{page} has no table that starts with {head}")


def cells(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")] if "|" in line else []


def half_a_digit(printed):
    """Half a unit in the last place of a number as printed."""
    mantissa, _, exponent = printed.partition("e")
    places = len(mantissa.partition(".")[2])
    return 0.5 * 10.0 ** (int(exponent or 0) - places)


def agrees(printed, value):
    """Whether the printed number is the value, rounded."""
    plain = printed.replace(",", "").replace("−", "-")
    return abs(float(plain) - value) <= half_a_digit(plain) * (1 + 1e-6) + 1e-12 * abs(value)


@cache
def regression():
    files = (RESULTS / "peers_regression.csv", RESULTS / "wishart_floor.csv")
    keys = ("dataset", "mechanism", "epsilon")
    return {key: value for file in files for key, value in column(file, "r2_median", *keys).items()}


def six(name, mechanism):
    return tuple(regression()[name, mechanism, epsilon] for epsilon in EPSILONS)


def datasets():
    return {r["dataset"]: r for r in rows(RESULTS / "peers_regression.csv")}


@cache
def constants():
    return {
        (r["panel"], r["d"]): {k: float(v) if v else None for k, v in r.items() if k != "panel"}
        for r in rows(PAPER / "constants.csv")
    }


@cache
def facts():
    return {r["fact"]: float(r["value"]) for r in rows(PAPER / "figure2_facts.csv")}


@cache
def risks():
    return {(r["panel"], r["curve"], float(r["kappa"])): float(r["risk"])
            for r in rows(PAPER / "figure2.csv")}  # fmt: skip
