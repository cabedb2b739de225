"""The same problem in other units has the same answer: to 1e-6 in its units, to the bit where the
units differ by powers of two and the seed is the same."""

import cvxpy as cp
import numpy as np
import pytest

import cvxqop

RNG = np.random.default_rng(0)
N, D = 1500, 4
X = RNG.uniform(-0.5, 0.5, (N, D))
Y = np.clip(X @ [1.0, -0.5, 0.0, 0.3] + 0.1 * RNG.standard_normal(N), -1, 1)
SIGNS = np.where(Y > 0, 1.0, -1.0)
COUNTS = np.minimum(RNG.poisson(np.exp(X[:, 0])), 3).astype(float)

RESTS = {
    "none": lambda v, t, u: (0, []),
    "norm1": lambda v, t, u: (5 * (u / t) * cp.norm1(v), []),
    "ridge in a box": lambda v, t, u: (
        5 * (u / t**2) * cp.sum_squares(v), [v >= -0.6 * t, v <= 0.6 * t],
    ),
    "ball": lambda v, t, u: (0, [cp.norm(v, 2) <= 0.7 * t]),
    "polyhedron": lambda v, t, u: (0, [v[0] + v[1] <= 0.1 * t, v[0] - v[2] <= 0.2 * t]),
    "simplex": lambda v, t, u: (0, [v >= 0, cp.sum(v) == 0.5 * t]),
}  # fmt: skip


def stated(loss, v, sx, sy):
    """Loss, private data, bounds; units of θ and of the loss."""
    rows, target = X * sx, Y * sy
    if loss == "logistic":
        term = cp.sum(cp.logistic(-cp.multiply(SIGNS, rows @ v)))
        return term, [rows, SIGNS], {"bounds": cvxqop.Bounds(row_norm=sx)}, 1 / sx, 1.0
    bounds = {"bounds": cvxqop.Bounds(row_norm=sx, offset=sy)}
    if loss == "squared":
        term = cp.sum_squares(rows @ v - target)
    else:
        term = cp.sum(cp.huber(rows @ v - target, 0.25 * sy))
    return term, [rows, target], bounds, sy / sx, sy * sy


def released(loss, rest, sx, sy, **options):
    v = cp.Variable(D)
    term, private, bounds, t, u = stated(loss, v, sx, sy)
    regulariser, constraints = RESTS[rest](v, t, u)
    options = {"epsilon": 1.0, "delta": 1e-6, "seed": 3, **bounds, **options}
    problem = cp.Problem(cp.Minimize(term + regulariser), constraints)
    solution = cvxqop.privatize(problem, private=private, **options)
    return solution, v.value / t


ROUTES = [("squared", None), ("squared", "STOTOS"), ("logistic", None), ("huber", None)]
BINARY = [(1.0, 2.0**30), (2.0**-20, 1.0), (2.0**20, 1.0), (2.0**15, 2.0**-30)]
DECIMAL = [(1.0, 1e9), (1.0, 1e-9), (1e6, 1.0), (1e-6, 1.0), (1e-3, 1e4), (1e-9, 1e-9)]


@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
@pytest.mark.parametrize("rest", RESTS)
@pytest.mark.parametrize(("loss", "solver"), ROUTES)
def test_powers_of_two_change_no_bit(loss, solver, rest, adjacency):
    """The noise is that of the same seed, and scales like the answer."""
    options = {"adjacency": adjacency, "solver": solver}
    _, expected = released(loss, rest, 1.0, 1.0, **options)
    for sx, sy in BINARY:
        _, found = released(loss, rest, sx, sy, **options)
        assert np.array_equal(found, expected), (sx, sy)


@pytest.mark.parametrize("perturbation", ["wishart", "gaussian", "linear"])
@pytest.mark.parametrize("loss", ["squared", "logistic", "huber"])
def test_every_mechanism_scales(loss, perturbation):
    options = {"perturbation": perturbation}
    _, expected = released(loss, "ridge in a box", 1.0, 1.0, **options)
    for sx, sy in BINARY:
        assert np.array_equal(released(loss, "ridge in a box", sx, sy, **options)[1], expected)


@pytest.mark.parametrize("rest", RESTS)
@pytest.mark.parametrize(("loss", "solver"), ROUTES)
def test_powers_of_ten_agree_to_a_millionth(loss, solver, rest):
    _, expected = released(loss, rest, 1.0, 1.0, solver=solver)
    for sx, sy in DECIMAL:
        _, found = released(loss, rest, sx, sy, solver=solver)
        assert np.abs(found - expected).max() <= 1e-6 * max(1.0, np.abs(expected).max()), (sx, sy)


@pytest.mark.parametrize("solver", ["OSQP", "SCS"])
def test_other_conic_solvers(solver):
    _, expected = released("squared", "norm1", 1.0, 1.0, solver=solver)
    for sx, sy in [*BINARY, *DECIMAL]:
        _, found = released("squared", "norm1", sx, sy, solver=solver)
        np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize("solver", [None, "CLARABEL"])
def test_declared_losses(solver):
    """Poisson regression: rows times s, θ over s."""
    answers = []
    for s in (1.0, 2.0**20, 1e-6):
        v = cp.Variable(D)
        constants = cvxqop.Declared(smoothness=np.e * s * s, hessian_rank=1, anchor_gradient=2 * s)
        rows = cp.Constant(s * X)
        loss = cp.sum(cp.exp(rows @ v)) - COUNTS @ (rows @ v)
        solution = cvxqop.privatize(
            cp.Problem(cp.Minimize(loss), [cp.norm(v, 2) <= 1 / s]), private=[rows, COUNTS],
            declared=constants, epsilon=50.0, delta=1e-6, seed=1, solver=solver,
        )  # fmt: skip
        assert solution.certificate == pytest.approx(1e-6 * 2 / np.e / s)
        answers.append(v.value * s)
    for other in answers[1:]:
        np.testing.assert_allclose(other, answers[0], atol=2e-4)  # other solves, same noise


def test_the_certificate_is_accuracy_times_the_radius():
    for sy, radius in ((1.0, None), (1e9, None), (1.0, 1e-3), (1.0, 50.0)):
        solution, _ = released("huber", "none", 1.0, sy, accuracy=1e-4, radius=radius)
        assert solution.certificate == pytest.approx(1e-4 * (radius or sy), rel=1e-12)
        assert f"certified within {solution.certificate:g}" in str(solution)


def test_an_accuracy_that_is_of_no_matter_refuses_nothing():
    """Squared losses need none, in whatever units: only its own range is checked."""
    for radius in (1e-9, 1e9):
        released("squared", "none", 1.0, 1.0, radius=radius)
