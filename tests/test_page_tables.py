"""Tables of the pages against committed results, cell by cell, at the precision printed."""

import re

import pytest
from committed import (
    EPSILONS,
    PAPER,
    RESULTS,
    agrees,
    column,
    constants,
    datasets,
    regression,
    risks,
    rows,
    six,
    table,
)

REGRESSION = {
    "Gaussian, 6 stages": "gaussian, 6 stages", "2 stages": "gaussian, 2 stages",
    "1 stage": "gaussian", "Wishart": "wishart", "linear on Huber loss": "linear, Huber loss",
    "AdaSSP, exact accounting": "AdaSSP, exact accounting",
}  # fmt: skip


def test_agreement_is_to_the_last_printed_digit():
    assert agrees("0.15", 0.146)
    assert not agrees("0.15", 0.144)
    assert agrees("1,234", 1233.6)
    assert agrees("5.4382e+06", 5438200.0)
    assert not agrees("5.4382e+06", 5438300.0)


def unequal(page, head, expected):
    """Cells of a table that differ from {(row title, column title): value}."""
    titles, body = table(page, *head)
    assert body
    found = {(row[0], title): cell for row in body
             for title, cell in zip(titles[1:], row[1:], strict=True)}  # fmt: skip
    assert found.keys() == expected.keys()
    return {key: (cell, expected[key]) for key, cell in found.items()
            if not matches(cell, expected[key])}  # fmt: skip


def matches(cell, value):
    if value is None:
        return cell in ("", "not a number")
    if isinstance(value, tuple):
        parts = cell.split(" / ")
        return len(parts) == len(value) and all(map(agrees, parts, value))
    return agrees(cell, value)


def test_the_table_of_squared_losses():
    expected = {}
    for name, r in datasets().items():
        title = f"{name} ({int(r['n_train']):,}, {r['d']})"
        for head, mechanism in REGRESSION.items():
            expected[title, head] = six(name, mechanism)
        expected[title, "not private"] = regression()[name, "none", "inf"]
    head = ("data (records, features)", "Gaussian, 6 stages")
    assert not unequal("docs/mechanisms.md", head, expected)


def test_the_table_of_persons():
    titles, body = table("benchmarks/results/persons.md", "hidden")
    expected = {(row[0], title): float(cell) for row in body
                for title, cell in zip(titles[1:], row[1:], strict=True)}  # fmt: skip
    assert not unequal("docs/guarantee.md", ("hidden",), expected)


def test_the_table_of_the_floor():
    columns = {"Wishart, ridge": "wishart", "Wishart, floor": "wishart, floor",
               "Gaussian, floor": "gaussian"}  # fmt: skip
    names = dict.fromkeys(r["dataset"] for r in rows(RESULTS / "wishart_floor.csv"))
    expected = {(n, head): six(n, mechanism) for n in names for head, mechanism in columns.items()}
    assert not unequal("docs/mechanisms.md", ("data", "Wishart, ridge"), expected)


def test_the_table_of_cut_residuals():
    columns = {"1 stage": "1 stage", "2 stages": "2 stages", "6 stages": "6 stages",
               "6 stages, uncut": "6 stages, uncut", "Wishart": "wishart",
               "not private": "least squares, not private"}  # fmt: skip
    expected = {
        (f"{r['dataset']} ({int(r['n_train']):,}, {r['d']})", head): float(r["r2_median"])
        for r in rows(RESULTS / "cut_residuals.csv")
        for head, mechanism in columns.items()
        if r["epsilon"] == "2" and r["mechanism"] == mechanism
    }
    assert not unequal("docs/mechanisms.md", ("targets of ±1 (records, features)",), expected)


def test_the_table_of_intercepts():
    methods = {
        'ones as they are, `"linear"`': "linear, ones as they are",
        '`"linear"`, as `"auto"`': "linear",
        '`Linear(clip="anchor")`': "clip='anchor'",
        "`keep_loss=False`": "keep_loss=False",
    }
    heads = {"mean": "all", **{e.replace("0.1", "ε = 0.1"): e for e in EPSILONS}}
    found = column(RESULTS / "intercept.csv", "accuracy", "dataset", "method", "epsilon")
    expected = {
        (row, head): found["mean", method, epsilon]
        for row, method in methods.items()
        for head, epsilon in heads.items()
    }
    assert not unequal("docs/mechanisms.md", ("logistic loss with an intercept",), expected)


def test_the_table_of_mean_curvatures():
    columns = {
        "published code": "published_code", "its formulas, in logarithms": "published_equation",
        "paper, halves restored": "paper", "spectral bound, squared loss": "spectral",
        "exact, squared loss": "exact",
    }  # fmt: skip
    expected = {
        (d, head): constants()["m = 2d", d][name]
        for d in ("5", "12", "100", "120", "1000") for head, name in columns.items()
    }  # fmt: skip
    assert not unequal("docs/paper.md", ("d", "published code"), expected)


def test_the_table_of_figure_1():
    columns = {
        "published code": "published_code", "its formulas, in logarithms": "published_equation",
        "paper, halves restored": "paper", "cvxqop, squared loss": "cvxqop",
        "cvxqop, other losses": "cvxqop_other",
    }  # fmt: skip
    titles = {
        (panel, epsilon, delta): f"{panel}, {epsilon}, {delta_text}"
        for panel in ("exact", "inexact")
        for epsilon, delta, delta_text in (("1", "1e-05", "10⁻⁵"), ("4", "0.01", "10⁻²"))
    }
    expected = {
        (titles[key], head): float(r[name]) if r[name] else None
        for r in rows(PAPER / "figure1.csv")
        if (key := (r["panel"], r["epsilon"], r["delta"])) in titles
        for head, name in columns.items()
    }
    assert not unequal("docs/paper.md", ("panel, ε, δ",), expected)


@pytest.mark.parametrize(("n", "panel"), [("300", "honest"), ("30,000", "honest, large")])
def test_the_tables_of_figure_2(n, panel):
    curves = ("LOP, classic", "LOP, exact", "LOP-Clip, classic", "LOP-Clip, exact", "QOP",
              "QOP, floor")  # fmt: skip
    expected = {
        (curve, f"κ = {kappa}"): risks()[panel, curve, kappa]
        for curve in curves for kappa in (1, 10, 1000)
    }  # fmt: skip
    assert not unequal("docs/paper.md", (f"n = {n}",), expected)


def test_missed_targets_are_the_ones_of_the_results():
    results = table("benchmarks/results/bench_stotos.md", "what")[1]
    missed = [float(row[3]) for row in results if row[-1] == "**missed**"]
    stated = table("benchmarks/README.md", "missed", "measured")[1]
    numbers = [number for row in stated for number in re.findall(r"\d+\.\d+", row[1])]
    assert len(numbers) == len(missed)
    assert all(any(agrees(number, ratio) for ratio in missed) for number in numbers)
