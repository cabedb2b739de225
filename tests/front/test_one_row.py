"""Which private losses are one row a record, as joint accounting asks; denied by default."""

import cvxpy as cp
import numpy as np
import pytest

import cvxqop
from cvxqop.audit.declared_losses import DECLARED_QUADRATIC
from cvxqop.audit.wide import wide_rows

RNG = np.random.default_rng(2)
X, Z = RNG.uniform(-0.5, 0.5, (2, 30, 3))
Y = RNG.uniform(-0.5, 0.5, 30)
W = RNG.uniform(0.5, 2.0, 30)
T = cp.Variable(3, name="theta")
M = cp.Variable((3, 2), name="Theta")
B = cp.Variable(name="b")
TWO = np.stack([Y, -Y], axis=1)
SQUARES = cp.sum_squares(X @ T - Y)
BOUNDS = cvxqop.Bounds(row_norm=1.0, offset=1.0)


def planned(loss, private=(X, Y), **options):
    options = {"perturbation": "gaussian", "bounds": BOUNDS, **options}
    return cvxqop.plan(
        cp.Problem(cp.Minimize(loss)), private=list(private), epsilon=1.0, delta=1e-6, **options
    ).mechanism


ONE_ROW = {
    "squared": (SQUARES, {}),
    "intercept": (cp.sum_squares(X @ T + B - Y), {}),
    "public weights": (cp.sum(cp.multiply(W, cp.square(X @ T - Y))), {"public": [W]}),
    "two losses of a row": (SQUARES + 3.0 * cp.sum_squares(X @ T), {}),
    "two outputs": (cp.sum_squares(X @ M - TWO), {"private": [X, TWO]}),
    "one row a person": (SQUARES, {"persons": np.arange(30) // 2, "rows_per_person": 1}),
}
OTHERS = {
    "added or removed": (SQUARES, {"adjacency": "add_remove"}),
    "rows of a person": (SQUARES, {"persons": np.arange(30) // 2, "rows_per_person": 2}),
    "mean of a person": (SQUARES, {"persons": np.arange(30) // 2, "rows_per_person": "mean"}),
    "two rows": (SQUARES + cp.sum_squares(Z @ T - Y), {"private": [X, Y, Z]}),
    "logistic": (
        cp.sum(cp.logistic(-cp.multiply(np.sign(Y), X @ T))),
        {"private": [X, np.sign(Y)]},
    ),
}


@pytest.mark.parametrize("loss", ONE_ROW)
def test_accounted_for_together(loss):
    """Two squared losses of a row have the curvature and the gradient of their sum."""
    term, options = ONE_ROW[loss]
    mechanism = planned(term, **options)
    s = mechanism.sensitivity
    assert s.joint
    a = (s.frobenius_bound / mechanism.scale) ** 2
    b = (s.anchor_gradient / mechanism.guard_scale) ** 2
    joint = 2 * a + 2 * b + b * b / (2 * a) if b <= 2 * a else 4 * b
    assert mechanism.gdp_mu**2 == pytest.approx(joint, rel=1e-5)


@pytest.mark.parametrize("loss", OTHERS)
def test_accounted_for_one_by_one(loss):
    term, options = OTHERS[loss]
    assert not planned(term, **options).sensitivity.joint


def test_value_at_the_anchor():
    """V = ½κB², of all terms and rows of a person; none for a loss that is not a square."""
    assert planned(SQUARES).sensitivity.anchor_value == pytest.approx(1.0)
    weighted, options = ONE_ROW["public weights"]
    assert planned(weighted, **options).sensitivity.anchor_value == pytest.approx(W.max())
    for loss, expected in (("rows of a person", 2.0), ("two rows", 2.0), ("mean of a person", 1.0)):
        term, options = OTHERS[loss]
        assert planned(term, **options).sensitivity.anchor_value == pytest.approx(expected)
    logistic, options = OTHERS["logistic"]
    assert planned(logistic, **options).sensitivity.anchor_value is None


def test_declared_losses_are_not():
    row = next(row for row in wide_rows("replace_one") if row.loss is DECLARED_QUADRATIC)
    mechanism = row.call("loss").prepare(row.pair.data("replace_one")[0])[0].mechanism
    assert mechanism.sensitivity.quadratic
    assert not mechanism.sensitivity.joint
    assert mechanism.sensitivity.anchor_value is None


def test_the_sum_of_squares_as_an_option():
    plain = planned(SQUARES)
    free = planned(SQUARES, perturbation=cvxqop.Gaussian(sum_of_squares=True))
    assert free.scale == plain.scale
    with pytest.raises(cvxqop.CvxqopError, match="sum_of_squares"):
        planned(SQUARES, perturbation=cvxqop.Gaussian(sum_of_squares=True), adjacency="add_remove")
