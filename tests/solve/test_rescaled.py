"""The rest in other units is the same rest: values and membership against CVXPY's own at points."""

import cvxpy as cp
import numpy as np
import pytest

from cvxqop.solve.engines.conic import solve_conic
from cvxqop.solve.engines.conic_checks import check_solver
from cvxqop.solve.smooth.quadratic import Quadratic
from cvxqop.solve.units import power_of_two, rescaled, size_of

X, T = cp.Variable(4, name="x"), cp.Variable(4, name="t")
M = cp.Variable((3, 3), symmetric=True, name="M")
N = cp.Variable(4, nonneg=True, name="n")
B = cp.Variable(4, bounds=[-2.0, np.arange(4.0)], name="b")
W = np.array([1.0, -2.0, 0.5, 3.0])
P = np.diag([1.0, 2.0, 3.0, 4.0])

REGULARISERS = {
    "norm1": 3 * cp.norm1(X),
    "weighted": cp.norm1(cp.multiply(W, X)) / 7,
    "shifted": cp.norm1(2 * X - 1),
    "elastic": cp.norm1(X) + 0.3 * cp.sum_squares(X) + W @ X + 5,
    "squared shift": cp.sum_squares(X - W) + cp.square(cp.norm(X, 2)),
    "groups": cp.norm(X[:2]) + 2 * cp.norm(X[1:]),
    "graph": cp.norm1(P @ X) + cp.tv(X),
    "largest": cp.max(X) + cp.sum_largest(X, 2) - cp.min(X),
    "maximum": cp.sum(cp.maximum(X, W, 0)) + cp.sum(cp.pos(X - 1)),
    "p-norm": cp.pnorm(X, 3) + cp.norm_inf(X),
    "quad_form": cp.quad_form(X - 1, P) + cp.quad_over_lin(X, 3.0),
    "huber": cp.sum(cp.huber(X, 0.7)),
    "powers": cp.sum(cp.power(X, 4)) + cp.sum(cp.power(cp.abs(X), 1.5)),
    "roots": cp.sum(cp.power(cp.pos(X) + 1, 3)) - cp.sum(cp.sqrt(X + 9)) + cp.inv_pos(X[0] + 9),
    "running": cp.norm1(cp.cumsum(X)) + cp.sum(cp.cummax(X)) + cp.dotsort(X, W),
    "entropies": cp.sum(cp.rel_entr(X + 9, T + 8)) + cp.sum(cp.kl_div(X + 7, W + 3)),
    "means": -cp.geo_mean(X + 9) + cp.quad_over_lin(X, T[0] + 5) + cp.matrix_frac(X, P),
    "spectral": cp.lambda_sum_largest(M, 2) + cp.tr_inv(M + 20 * np.eye(3)),
    "exponentials": cp.sum(cp.exp(X)) + cp.log_sum_exp(X) + cp.sum(cp.logistic(X)),
    "auxiliary": cp.sum(T) + cp.norm1(X - T),
    "matrix": cp.normNuc(M) + cp.lambda_max(M) + cp.trace(M) + cp.sum_squares(M),
    "nonneg": cp.sum(N) - cp.sum(cp.sqrt(N)) + cp.sum(cp.inv_pos(N + 1)),
    "bounds": cp.norm1(B),
    "by a parameter": cp.Parameter(nonneg=True, value=2.5) * cp.norm1(X),
    "negative factor": -2 * cp.min(X) + -0.5 * cp.sum(X),
    "broadcast": cp.sum(cp.abs(cp.reshape(X, (2, 2), order="F") - W[:2])),
}
SETS = {
    "box": [X <= W, X >= -3, cp.abs(X) <= np.arange(1.0, 5.0)],
    "affine": [cp.sum(X) == 1, W @ X <= 0.5, P @ X >= W],
    "balls": [cp.norm(X, 2) <= 1.5, cp.norm1(X) <= 2, cp.norm_inf(X - 1) <= 3],
    "squares": [cp.sum_squares(X) <= 2, cp.quad_form(X, P) <= cp.sum(X) + 4],
    "cones": [cp.norm(X[1:]) <= X[0], cp.SOC(X[0], X[1:])],
    "epigraph": [X <= T, -X <= T],
    "matrices": [M >> 0, cp.trace(M) == 1, cp.lambda_max(M) <= 0.8],
    "exponential": [cp.sum(cp.exp(X)) <= 6, cp.ExpCone(X[0], X[1], X[2])],
    "order": [cp.diff(X) >= 0],
    "variables on both sides": [2 * X - 1 <= 3 * T + 2],
    "infinite": [np.array([1.0, np.inf, 2.0, np.inf]) >= X],
}
SIZES = [2.0**-30, 1e-3, 0.7, 1.0, 5.0, 1e9]


def owners(found, given):
    return dict(zip(given, found.variables, strict=True)) | found.auxiliary


def variables(*nodes):
    return list({v.id: v for node in nodes for v in node.variables()}.values())


def placed(found, given, rng):
    """The same random point in both units, within the declared attributes."""
    for variable, own in owners(found, given).items():
        point = variable.project(rng.uniform(-2, 2, variable.shape))
        variable.value = point
        own.value = own.project(point / found.unit)
        np.testing.assert_array_equal(own.value * found.unit, point)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", REGULARISERS)
def test_regularisers_have_their_values(name, size):
    r, rng = REGULARISERS[name], np.random.default_rng(3)
    given = [v for v in variables(r) if v is not T]
    found = rescaled(size, given, r, [])
    assert found.regulariser.is_convex()
    for _ in range(5):
        placed(found, given, rng)
        assert found.factor * found.regulariser.value == pytest.approx(r.value, rel=1e-12)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", SETS)
def test_sets_have_their_points(name, size):
    C, rng = SETS[name], np.random.default_rng(4)
    given = [v for v in variables(*C) if v is not T]
    found = rescaled(size, given, None, C)
    assert len(found.constraints) == len(C)
    members = 0
    for k in range(40):
        placed(found, given, rng)
        for variable, own in owners(found, given).items():
            shrink = 0.5 ** (k % 5)  # points near the origin are often members
            variable.value, own.value = variable.value * shrink, own.value * shrink
        for before, after in zip(C, found.constraints, strict=True):
            assert after.is_dcp()
            if type(before).__name__ in ("Equality", "ExpCone"):
                continue
            members += before.value(tolerance=0.0)
            if before.value(tolerance=0.0):
                assert after.value(tolerance=1e-12 / min(1.0, found.unit**2))
            elif not before.value(tolerance=1e-6):
                assert not after.value(tolerance=0.0)
    assert members > 0


@pytest.mark.parametrize("size", SIZES)
def test_equalities(size):
    (after,) = rescaled(size, [X], None, [W @ X == 2.0**0]).constraints
    (own,) = after.variables()
    own.value = np.array([1.0, 0, 0, 0]) / power_of_two(size / 8.0)
    assert after.violation() == 0.0


def test_attributes_are_kept():
    found = rescaled(1e6, [N, M, B], None, [])
    n, m, b = found.variables
    assert n.is_nonneg()
    assert m.attributes["symmetric"]
    assert np.array_equal(found.unit * b.attributes["bounds"][1], np.arange(4.0))
    assert X.value is None or N.attributes["nonneg"]


def test_sizes():
    f = Quadratic(np.diag([2.0, 4.0]), np.array([2.0**40, 4.0]), np.zeros(2))
    assert size_of(f) == 2.0**39
    assert size_of(Quadratic(np.eye(2), np.zeros(2), np.zeros(2))) == 1.0
    assert size_of(Quadratic(np.eye(2), np.zeros(2), np.array([0.0, -3.0]))) == 3.0
    assert [power_of_two(x) for x in (1.0, 1.4, 1.5, 2.0**-50, 1e9)] == [1, 1, 2, 2.0**-50, 2.0**30]


@pytest.mark.parametrize("solver", ["CLARABEL", "SCS", "OSQP"])
@pytest.mark.parametrize("unit", [2.0**-35, 1e-9, 1.0, 1e9, 2.0**40])
def test_a_small_problem_with_a_closed_form(solver, unit):
    """½‖θ − c‖² + λ‖θ‖₁ over a box: soft threshold, then clip."""
    c = np.array([3.0, -0.5, 0.2, -4.0])
    f = Quadratic(np.eye(4), -c * unit, np.zeros(4))
    x = X
    rest = (0.75 * unit * cp.norm1(x), [x <= unit, x >= -2 * unit])
    check_solver(solver, {}, [x], *rest, size=unit, curvature=1.0)
    answer = solve_conic(f, [x], *rest, solver=solver)
    np.testing.assert_allclose(answer.theta / unit, [1.0, 0.0, 0.0, -2.0], atol=1e-9)


EQUIVARIANT = {
    "running maximum": (lambda x, u: u * cp.sum(cp.cummax(x)), lambda x, u: []),
    "cumulative sum": (lambda x, u: u * cp.norm1(cp.cumsum(x)), lambda x, u: [cp.cumsum(x) <= u]),
    "relative entropy": (lambda x, u: u * cp.sum(cp.rel_entr(x, u * P @ np.ones(4))), None),
    "power": (lambda x, u: cp.sum(cp.power(x, 4)) / u**2, None),
    "root": (lambda x, u: -(u**1.5) * cp.sum(cp.sqrt(x)), None),
    "inverse": (lambda x, u: u**3 * cp.sum(cp.inv_pos(x)), None),
    "huber": (lambda x, u: cp.sum(cp.huber(x, u / 2)), None),
    "huber of a number": (lambda x, u: u**2 * cp.sum(cp.huber(x / u - W, 0.5)), None),
    "numbers": (lambda x, u: u**2 * cp.sum_squares((P / u) @ x - 1), lambda x, u: [P / u @ x <= 2]),
    "divergence": (lambda x, u: u**2 * cp.sum(cp.kl_div(x / u, P @ np.ones(4))), None),
    "geometric mean": (lambda x, u: -u * cp.geo_mean(x), lambda x, u: [x <= 2 * u]),
    "power cone": (lambda x, u: 0 * x[0], lambda x, u: [cp.PowCone3D(x[0], x[1], x[2], 0.3)]),
}


@pytest.mark.parametrize("name", EQUIVARIANT)
@pytest.mark.parametrize("unit", [1e-9, 1e-4, 1e4, 1e9])
def test_other_units_give_the_answer_in_other_units(name, unit):
    """Against CVXPY's own solution in units where θ is of order one."""
    r, C = EQUIVARIANT[name]
    x, c = cp.Variable(4), np.array([3.0, 0.5, 1.2, -1.0])

    def rest(u):
        return r(x, u), [] if C is None else C(x, u)

    term, constraints = rest(1.0)
    whole = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(x) - c @ x + term), constraints)
    whole.solve(solver="CLARABEL", tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    answer = solve_conic(Quadratic(np.eye(4), -c * unit, np.zeros(4)), [x], *rest(unit))
    np.testing.assert_allclose(answer.theta / unit, x.value, atol=1e-5)


@pytest.mark.parametrize("unit", [1e-9, 1e9])
def test_auxiliary_variables_come_back_in_their_own_units(unit):
    f = Quadratic(np.eye(4), -np.array([3.0, -1.0, 0.25, 2.0]) * unit, np.zeros(4))
    answer = solve_conic(f, [X], 0.5 * unit * cp.sum(T), [X <= T, -X <= T])
    expected = np.array([2.5, -0.5, 0.0, 1.5])
    np.testing.assert_allclose(answer.theta / unit, expected, atol=1e-5)
    np.testing.assert_allclose(answer.auxiliary[T] / unit, np.abs(expected), atol=1e-5)
    assert X.value is None or T.value is not answer.auxiliary[T]
