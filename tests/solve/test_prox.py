"""Every proximal operator and projection that is read from CVXPY, against conic solves."""

import os

import cvxpy as cp
import numpy as np
import pytest
from instances import wishart

from cvxqop.errors import ProblemError
from cvxqop.solve.engines.conic import solve_conic
from cvxqop.solve.engines.stotos import solve_stotos
from cvxqop.solve.rest.prox import NotSplittable, split
from cvxqop.solve.smooth.quadratic import Quadratic

pytestmark = pytest.mark.blas

D = 6
X = cp.Variable(D, name="theta")
RNG = np.random.default_rng(5)
W = RNG.uniform(0.1, 1, D)
A2 = RNG.standard_normal((2, D))
G5 = RNG.standard_normal((5, D))

REGULARISERS = {
    "none": None,
    "norm1": cp.norm1(X),
    "scaled norm1": 2 * cp.norm(X, 1) / 3,
    "weighted norm1": cp.norm1(cp.multiply(W, X)),
    "weights @ abs": W @ cp.abs(X),
    "sum of weighted abs": cp.sum(cp.multiply(W, cp.abs(X))),
    "shifted norm1": 0.5 * cp.norm1(2 * X - 1),
    "norm1 of a part": cp.norm1(X[1:4]),
    "elastic net": cp.norm1(X) + 0.3 * cp.sum_squares(X),
    "ridge and linear": cp.sum_squares(X - 1) / 2 + 3 * X[0],
    "quad_form": cp.quad_form(X - 1, np.diag(W + 1)),
    "quad_form, wrapped": cp.quad_form(X, cp.psd_wrap(np.diag(W))),
    "sum of squares": cp.sum(cp.square(X)),
    "squared norm": cp.norm(X) ** 2,
    "norm2": cp.norm2(X),
    "scaled, shifted norm2": 2 * cp.norm(3 * X - 1),
    "groups": cp.norm(X[:2]) + 2 * cp.norm(X[2:]),
    "sparse groups": cp.norm(X[:2]) + 2 * cp.norm(X[2:]) + 0.3 * cp.norm1(X),
    "norm_inf": cp.norm_inf(X),
    "max abs": cp.max(cp.abs(X - 1)),
    "total variation": cp.tv(X),
    "norm1 of diff": 0.3 * cp.norm1(2 * cp.diff(X)),
    "different blocks": cp.norm1(X[:3]) + cp.norm2(X[3:]),
    "scalar terms": cp.abs(X[0]) + cp.square(X[1]),
}

CONSTRAINTS = {
    "none": [],
    "norm_inf": [cp.norm_inf(X) <= 0.3],
    "box": [X <= 0.2, X >= -W],
    "abs": [cp.abs(X) <= W],
    "nonneg": [X >= 0],
    "ball": [cp.norm(X) <= 0.5],
    "shifted ball": [cp.norm(2 * X - 1) <= 0.7],
    "sum_squares": [cp.sum_squares(X) <= 0.3],
    "norm1 ball": [cp.norm1(X) <= 0.7],
    "simplex": [X >= 0, cp.sum(X) == 1],
    "hyperplane": [W @ X == 0.5],
    "halfspace": [W @ X <= -0.2],
    "affine": [np.array([0.1, -0.2]) == A2 @ X],
    "polyhedron": [G5 @ X <= 0.1],
    "polyhedron and bound": [G5 @ X <= 0.1, X >= -0.1],
    "second-order cone": [cp.norm(X[1:]) <= X[0]],
    "cp.SOC": [cp.SOC(X[0], X[1:])],
    "ball and bound": [cp.norm(X) <= 0.5, X <= 0.2],
    "two blocks": [cp.norm(X[:3]) <= 0.2, cp.sum(X[3:]) == 0.3],
    "ball and halfspace": [cp.norm(X) <= 0.5, W @ X >= 0.1],
    "equalities in a box": [A2 @ X == 0, cp.norm_inf(X) <= 0.3],
}


def quadratic(seed=0):
    rng = np.random.default_rng(seed)
    return Quadratic(wishart(rng, D), 10 * rng.standard_normal(D), np.zeros(D))


# Every regulariser with every third constraint, each pair of lists rotated: all 21 × 24 pairs pass
# (run with CVXQOP_FULL=1), these are enough to notice a change.
PAIRS = [
    (r, c)
    for i, r in enumerate(REGULARISERS)
    for j, c in enumerate(CONSTRAINTS)
    if "CVXQOP_FULL" in os.environ or (i + j) % 5 == 0
]


@pytest.mark.parametrize(("regulariser", "constraint"), PAIRS)
def test_every_combination_agrees_with_clarabel(regulariser, constraint):
    r, C = REGULARISERS[regulariser], CONSTRAINTS[constraint]
    answer = solve_stotos(quadratic(), [X], r, C, accuracy=1e-6, time_limit=20.0)
    assert answer.distance <= 1e-6
    expected = solve_conic(quadratic(), [X], r, C).theta
    np.testing.assert_allclose(answer.theta, expected, atol=1e-4)
    feasible = cp.Variable(D, value=answer.theta)
    for c in C:
        arguments = {id(X): feasible}
        assert np.max(c.tree_copy(arguments).violation()) <= 1e-9


@pytest.mark.parametrize("shape", [(3, 3), (4, 2)])
@pytest.mark.parametrize("box", [False, True])
def test_nuclear_norm(shape, box):
    M = cp.Variable(shape)
    rng = np.random.default_rng(1)
    d = M.size
    f = Quadratic(wishart(rng, d), 20 * rng.standard_normal(d), np.zeros(d))
    C = [cp.norm_inf(cp.vec(M, order="F")) <= 0.5] if box else []
    answer = solve_stotos(f, [M], 3 * cp.normNuc(M - 0.1), C, accuracy=1e-6)
    expected = solve_conic(f, [M], 3 * cp.normNuc(M - 0.1), C).theta
    np.testing.assert_allclose(answer.theta, expected, atol=1e-5)


@pytest.mark.parametrize("kind", ["PSD", "symmetric", "constraint"])
def test_matrix_cones(kind):
    M = cp.Variable((3, 3), **({} if kind == "constraint" else {kind: True}))
    C = [M >> 0.1 * np.eye(3)] if kind == "constraint" else []
    rng = np.random.default_rng(2)
    f = Quadratic(wishart(rng, 9), 20 * rng.standard_normal(9), np.zeros(9))
    answer = solve_stotos(f, [M], cp.sum_squares(M), C, accuracy=1e-6)
    expected = solve_conic(f, [M], cp.sum_squares(M), C).theta
    np.testing.assert_allclose(answer.theta, expected, atol=1e-5)


def test_rows_of_a_matrix_as_groups():
    M = cp.Variable((4, 3))
    rng = np.random.default_rng(3)
    f = Quadratic(wishart(rng, 12), 20 * rng.standard_normal(12), np.zeros(12))
    for r in (cp.sum(cp.norm(M, 2, axis=1)), cp.mixed_norm(M, 2, 1)):
        answer = solve_stotos(f, [M], 9 * r, [], accuracy=1e-7)
        expected = solve_conic(f, [M], 9 * r, []).theta
        np.testing.assert_allclose(answer.theta, expected, atol=1e-5)


def test_attributes_of_variables():
    v, b = cp.Variable(3, nonneg=True), cp.Variable(2, bounds=[-0.1, 0.2])
    f = Quadratic(np.eye(5), np.array([1.0, -1.0, 0.0, 1.0, -1.0]), np.zeros(5))
    answer = solve_stotos(f, [v, b], cp.norm1(v), [])
    np.testing.assert_allclose(answer.theta, [0, 0, 0, -0.1, 0.2], atol=1e-9)


@pytest.mark.parametrize(
    ("r", "C", "name"),
    [
        (cp.norm1(A2 @ X), [], "norm1"),
        (-cp.sum(cp.log(X)), [], "log"),
        (cp.norm2(X) + cp.norm_inf(X), [], "overlaps"),
        (cp.norm1(X) + cp.norm1(X - 1), [], "second kink"),
        (cp.norm2(A2 @ X), [], "linear map"),
        (cp.norm1(X) + cp.Variable(name="bound"), [], "bound"),
        (None, [cp.norm(A2 @ X) <= 1], "linear map"),
        (None, [cp.exp(X[0]) <= 1], "exp"),
        (None, [cp.norm1(X) <= cp.Variable(name="level")], "level"),
    ],
)
def test_a_rest_that_cannot_be_split_is_refused_by_name(r, C, name):
    with pytest.raises(NotSplittable, match=name):
        split([X], r, C)


@pytest.mark.parametrize(
    "C",
    [
        [X >= 1, X <= 0],
        [cp.sum(X) == 1, X <= 0.1],
        [cp.norm(X) <= -1],
        [A2 @ X == 0, A2 @ X == 1],
        [G5 @ X <= -1, -G5 @ X <= -1],
        [cp.norm(X) <= 0.1, cp.sum(X) >= 5],
    ],
)
def test_infeasible_sets_are_found(C):
    with pytest.raises(ProblemError, match="no point satisfies"):
        split([X], None, C)


def test_reading_leaves_no_trace():
    v = cp.Variable(4, nonneg=True)
    v.value = np.ones(4)
    split([v], cp.norm1(cp.diff(v)), [np.ones((2, 4)) @ v <= 1])
    assert np.array_equal(v.value, np.ones(4))
