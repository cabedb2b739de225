"""What a plan says of predictions: a formula of public numbers, monotone, and its warnings."""

import dataclasses

import cvxpy as cp
import numpy as np
import pytest

import cvxqop

THETA = cp.Variable(3)
RNG = np.random.default_rng(0)


def plan(n=500, epsilon=1.0, bounds=None, loss=None, **options):
    X, y = RNG.uniform(-0.5, 0.5, (n, 3)), RNG.uniform(-1.0, 1.0, n)
    loss = 0.5 * cp.sum_squares(X @ THETA - y) if loss is None else loss(X, y)
    bounds = bounds or cvxqop.Bounds(row_norm=1.0, offset=1.0)
    options = {"perturbation": cvxqop.Gaussian(), "delta": 1e-6, **options}
    return cvxqop.plan(
        cp.Problem(cp.Minimize(loss)), private=[X, y], bounds=bounds, epsilon=epsilon, **options
    )


def test_formula_of_the_gaussian_ensemble():
    """κ = 1, R = 1, d = 3: curvatures n/9 · 3 · (6/11, 3/11, 2/11)/3, w_j of one stage, by hand."""
    made = plan(n=100_000, adjacency="replace_one")
    mechanism, D0, total = made.mechanism, 1.5, 0.0
    for part in (6 / 11, 3 / 11, 2 / 11):
        h = 100_000 / 9 * part
        k = max(h, mechanism.level())
        noise = 2.0 * (mechanism.scale * D0) ** 2 + 3.0 * mechanism.guard_scale**2
        total += 0.5 * h * (((k - h) * D0) ** 2 + noise) / k**2
    assert made.predicted_error() == pytest.approx(np.sqrt(2.0 * total / (3 * 100_000)), rel=1e-12)


@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
def test_falls_with_n_and_with_epsilon(adjacency):
    at = [plan(epsilon=e, adjacency=adjacency) for e in (0.1, 0.5, 1.0, 4.0, 100.0, 1e4)]
    errors = [[one.predicted_error(n) for n in (10, 100, 10_000, 10**6)] for one in at]
    assert np.all(np.diff(errors, axis=0) < 0.0)
    assert np.all(np.diff(errors, axis=1) < 0.0)


def test_units_are_those_of_the_target():
    """A loss in tens, with rows as they were: errors in the units of the target are the same."""

    def tens(X, y):
        return 0.5 * cp.sum_squares((X @ THETA - y) / 10.0)

    one, other = plan(), plan(loss=tens)
    assert other.predicted_error(1_000) == pytest.approx(one.predicted_error(1_000), rel=1e-9)
    rescaled = plan(bounds=cvxqop.Bounds(row_norm=1.0, offset=5_000.0))
    assert rescaled.predicted_error(1_000) == pytest.approx(5e3 * one.predicted_error(1_000))


def test_printed_for_n_or_for_sizes():
    public = plan(adjacency="replace_one")
    words = " ".join(str(public).split())
    assert f"off by about ± {public.predicted_error():.2g} (units of the target)" in words
    private = plan(adjacency="add_remove")
    words = " ".join(str(private).split())
    assert f"± {private.predicted_error(10_000):.2g} for 10,000 records" in words
    assert "500" not in words
    with pytest.raises(cvxqop.OptionError, match=r"plan\.predicted_error\(10_000\)"):
        private.predicted_error()


def test_none_where_a_record_has_no_single_prediction():
    made = dataclasses.replace(plan(), prediction=None)
    assert "typical for bounds" not in str(made)
    with pytest.raises(cvxqop.OptionError, match="no single prediction"):
        made.predicted_error(100)


def test_warns_where_the_answer_is_noise():
    assert any("expected to be noise" in text for text in plan(n=300, epsilon=0.5).warnings)
    assert not plan(n=100_000).warnings


def test_warns_of_columns_by_their_limits():
    """A calendar year, and a column in other units; not of columns in [−1, 1]."""
    year = cvxqop.Bounds.from_box([1990, -1, -1], [2010, 1, 1], offset=1.0)
    assert any("(column − 2000)/10" in text for text in plan(bounds=year).warnings)
    income = cvxqop.Bounds.from_box([-1, -50_000, -1], [1, 50_000, 1], offset=1.0)
    assert any("column 1, 50000, dwarfs" in text for text in plan(bounds=income).warnings)
    box = cvxqop.Bounds.from_box([-1, 0, -1], [1, 2, 1], offset=1.0)
    assert not any("column" in text for text in plan(bounds=box).warnings)
