"""The examples run as a reader would run them, on fewer people."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


@pytest.fixture(scope="module")
def lasso_page(tmp_path_factory):
    """What ``private_lasso.py --quick`` prints, run in a folder of its own, and that folder."""
    folder = tmp_path_factory.mktemp("private_lasso")
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / "private_lasso.py"), "--quick"],
        cwd=folder, capture_output=True, encoding="utf-8", timeout=120, check=False,
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout, folder


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
