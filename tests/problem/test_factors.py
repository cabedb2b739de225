"""Bounds are in the units of the listed arrays, whatever public factors stand around them."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

import cvxqop
from cvxqop.problem.bounds import Bounds
from cvxqop.problem.reading.analysis import read

rng = np.random.default_rng(0)
N, D = 40, 3
X = rng.uniform(-0.5, 0.5, (N, D))
y = rng.uniform(-1, 1, N)
Z = rng.uniform(-0.5, 0.5, (N, 2))
Y = rng.uniform(-1, 1, (N, 2))
M = np.array([[2.0, 1.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 3.0]])
Q = rng.uniform(0.1, 4.0, N)
CX, CY, CYY = cp.Constant(X), cp.Constant(y), cp.Constant(Y)
w, v, b, W = cp.Variable(D), cp.Variable(2), cp.Variable(), cp.Variable((D, 2))
R, B = 0.7, 0.9
BOUNDS = Bounds(row_norm=R, offset=B)

# name: (argument, private, public, bound on ‖a‖, bound on |c|), by hand
FORMS = {
    "plain": (X @ w - y, [X, y], [], R, B),
    "times five": (5 * (X @ w - y), [X, y], [], 5 * R, 5 * B),
    "over a tenth": ((y - X @ w) / 0.1, [X, y], [], 10 * R, 10 * B),
    "features alone": (5 * (X @ w) - y, [X, y], [], 5 * R, B),
    "target alone": (X @ w - 3 * CY, [X, CY], [], R, B),
    "negative": (-(X @ w - y) * 3, [X, y], [], 3 * R, 3 * B),
    "divided by an array": ((X @ w - y) / Q, [X, y], [Q], R / Q.min(), B / Q.min()),
    "intercept": (4 * (X @ w) + b - y, [X, y], [], np.hypot(4 * R, 1.0), B),
    "map": (X @ (M @ w) - y, [X, y], [], R * np.linalg.norm(M, 2), B),
    "map and a factor": (4 * (X @ (M @ w) - y), [X, y], [], 4 * R * np.linalg.norm(M, 2), 4 * B),
    "two arrays": (3 * (X @ w) + 2 * (Z @ v) - y, [X, Z, y], [], 3 * R, B),
    "sum of columns": (CX @ w - CX @ np.ones(D), [CX], [], R, B),
    "public weights inside": (cp.multiply(Q, X @ w - y), [X, y], [Q], Q.max() * R, Q.max() * B),
    "label": (-5 * cp.multiply(y, X @ w), [X, y], [], 5 * R, 0.0),
}


@pytest.mark.parametrize("name", FORMS)
def test_the_row_and_the_offset_that_result(name):
    argument, private, public, row, offset = FORMS[name]
    erm = read(cp.Problem(cp.Minimize(cp.sum_squares(argument))), private, public=public)
    found = erm.loss.constants(BOUNDS)
    assert found.row_norm == pytest.approx(row, rel=1e-9)
    assert found.smoothness == pytest.approx(2 * row**2, rel=1e-9)
    assert found.anchor_gradient == pytest.approx(2 * row * offset, rel=1e-9)


def test_records_within_the_bounds_are_not_clipped():
    """Whatever stands around them: only records beyond the bounds are brought within."""
    bounds = Bounds(row_norm=float(np.linalg.norm(X, axis=1).max()), offset=float(abs(y).max()))
    for argument in (5 * (X @ w - y), (y - X @ w) / 0.1, 5 * (X @ w) - y):
        erm = read(cp.Problem(cp.Minimize(cp.sum_squares(argument))), [X, y])
        for (A, C), (A2, C2) in zip(
            erm.loss.terms[0].rows.blocks(), erm.loss.terms[0].clipped(bounds).blocks(), strict=True
        ):
            np.testing.assert_allclose(A2, A, rtol=1e-12)
            np.testing.assert_allclose(C2, C, rtol=1e-12)


def test_a_target_of_zeros_that_cvxpy_drops_decides_nothing():
    found = []
    for target in (y, np.zeros(N)):
        erm = read(cp.Problem(cp.Minimize(cp.sum_squares((X @ w + target) / 0.1))), [X, target])
        found.append((erm.loss.terms[0].row_parts, erm.loss.constants(BOUNDS)))
    assert found[0] == found[1]


def test_several_outputs():
    erm = read(cp.Problem(cp.Minimize(cp.sum_squares(3 * (X @ W) - 2 * CYY))), [X, CYY])
    found = erm.loss.constants(BOUNDS)
    assert found.row_norm == pytest.approx(3 * R)
    assert found.anchor_gradient == pytest.approx(2 * 3 * R * B)


def test_a_factor_does_not_change_the_answer():
    """The logistic loss of 5 t on rows within the bounds is that of rows five times as long."""
    sign, theta = np.where(y > 0, 1.0, -1.0), cp.Variable(D)
    values = []
    for scale, features in ((5.0, X), (1.0, 5.0 * X)):
        loss = cp.sum(cp.logistic(-scale * cp.multiply(sign, features @ theta)))
        problem = cp.Problem(cp.Minimize(loss + cp.sum_squares(theta)))
        bounds = cvxqop.Bounds(row_norm=1.0 if scale == 5.0 else 5.0)
        cvxqop.privatize(
            problem, private=[sign, features], bounds=bounds, epsilon=2.0, delta=1e-6, seed=4,
            perturbation="gaussian",
        )  # fmt: skip
        values.append(theta.value)
    np.testing.assert_allclose(values[0], values[1], rtol=1e-6, atol=1e-9)
