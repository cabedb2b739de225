"""The pages on benchmarks hold the numbers of the results files, and no others between markers."""

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def table():
    path = ROOT / "benchmarks" / "peers" / "table.py"
    spec = importlib.util.spec_from_file_location("peers_table", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_results_page_is_what_the_files_say(table):
    written = (table.RESULTS / "peers.md").read_text(encoding="utf-8")
    assert written == table.results_page()


def test_docs_page_is_what_the_files_say(table):
    page = table.PAGE.read_text(encoding="utf-8")
    assert set(re.findall(r"<!-- (\w+ .*?) -->", page)) == set(table.BLOCKS)
    assert page == table.filled(page)


def test_another_number_would_be_seen(table):
    page = table.PAGE.read_text(encoding="utf-8")
    changed = re.sub(r"(\d\.\d\d)\d ±", r"\g<1>x ±", page, count=1)
    assert changed != page
    assert table.filled(changed) == page


def scores(table, kind):
    """Median and standard error by data set, method and ε."""
    return {
        (r["dataset"], r["method"], r["epsilon"]): (float(r["score_median"]), float(r["score_se"]))
        for r in table.read(kind)[1]
    }


def behind(found, one, other):
    """Cells where a method is below another by more than two standard errors, and than 0.005."""
    return [
        (name, epsilon)
        for name, method, epsilon in found
        if method == one
        and found[name, other, epsilon][0] - found[name, one, epsilon][0]
        > max(0.005, 2 * found[name, other, epsilon][1], 2 * found[name, one, epsilon][1])
    ]


def mean(found, method, epsilon):
    values = [v for (_, m, e), (v, _) in found.items() if (m, e) == (method, epsilon)]
    return sum(values) / len(values)


def test_what_the_page_says_of_regression(table):
    found = scores(table, "regression")
    one, two, six = (
        f"cvxqop, Gaussian, {stages}" for stages in ("1 stage", "2 stages", "6 stages")
    )
    adassp, sgd, lop = (
        "AdaSSP, exact accounting",
        "DP-SGD, jax-privacy",
        "LOP after RKW23, Huber loss",
    )
    assert not behind(found, two, adassp)
    assert not behind(found, two, sgd)
    assert not behind(found, two, lop)
    assert not behind(found, six, two)
    clipped = "cvxqop, Linear, clipped at a quarter"
    assert len(behind(found, six, clipped)) == len(behind(found, clipped, six)) == 2
    for other in (two, adassp, sgd, lop):
        assert not behind(found, clipped, other)
    assert not behind(found, one, adassp)
    level = [mean(found, one, epsilon) - mean(found, sgd, epsilon) for epsilon in table.EPSILONS]
    assert max(map(abs, level)) < 0.015
    gaps = [mean(found, two, epsilon) - mean(found, sgd, epsilon) for epsilon in table.EPSILONS]
    assert 0.055 < gaps[0] < 0.065
    assert 0 < min(gaps) <= max(gaps[1:]) < 0.035
    assert {name for name, _ in behind(found, lop, one)} >= {"diabetes", "ames"}
    assert not {name for name, _ in behind(found, one, lop)} & {"diabetes", "ames"}
    assert {
        name for name, epsilon in behind(found, adassp, "cvxqop, Wishart") if epsilon == "1"
    } == {
        "diabetes",
        "ames",
        "bikeshare",
    }
    assert behind(found, "cvxqop, Wishart", adassp) == [("cps1988", e) for e in ("2", "4", "8")]
    for name in ("cps1988", "diamonds"):
        for epsilon in ("4", "8"):
            fit, other = found[name, sgd, epsilon][0], found[name, adassp, epsilon][0]
            assert fit < other < found[name, "not private: least squares", "inf"][0]
    assert {name for name, _ in behind(found, sgd, adassp)} <= {"cps1988", "diamonds"}


def test_what_the_page_says_of_classification(table):
    found = scores(table, "classification")
    clipped, linear, lop, sgd = (
        f"{name}, intercept"
        for name in (
            "cvxqop, Linear, clipped",
            "cvxqop, Linear",
            "LOP after RKW23",
            "DP-SGD, jax-privacy",
        )
    )
    for epsilon in table.EPSILONS:
        best, second, third, fourth = (
            mean(found, method, epsilon) for method in (clipped, sgd, linear, lop)
        )
        assert 0.0015 < best - second < 0.0055
        assert second > third
        if float(epsilon) <= 1:
            assert 0.0195 < best - third < 0.0305
        else:
            assert best - third < 0.0195
        if float(epsilon) <= 2:
            assert third > fourth
        else:
            assert abs(third - fourth) < 0.001
