"""Conic answers against closed forms and each other, and the traces that a solve must not leave."""

import cvxpy as cp
import numpy as np
import pytest
from cvxpy.error import SolverError

from cvxqop.errors import OptionError, ProblemError
from cvxqop.solve.engines.conic import solve_conic
from cvxqop.solve.engines.conic_checks import check_feasible, check_solver
from cvxqop.solve.smooth.quadratic import Quadratic

pytestmark = pytest.mark.blas

SOLVERS = ["CLARABEL", "OSQP", "SCS"]


def soft_threshold(x, level):
    return np.sign(x) * np.maximum(np.abs(x) - level, 0.0)


def lasso(n, d, seed=0, ill=False):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    y = X @ rng.standard_normal(d) + rng.standard_normal(n)
    if ill:
        X = X * np.logspace(0, -3, d)
    H = X.T @ X + 0.1 * np.eye(d)
    return Quadratic(0.5 * (H + H.T), -X.T @ y, np.zeros(d))


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e6])
def test_soft_threshold_in_a_box(solver, scale):
    """With H = hI the answer is the clipped soft threshold, at every scale of the objective."""
    anchor = np.array([0.5, 0.0, 0.0, 1.0])
    g = np.array([2.0, -3.0, 0.2, -0.5]) * scale
    theta = cp.Variable(4)
    answer = solve_conic(
        Quadratic(2.0 * scale * np.eye(4), g, anchor),
        [theta],
        0.5 * scale * cp.norm1(theta),
        [cp.norm_inf(theta) <= 1],
        solver=solver,
    )
    expected = np.clip(soft_threshold(anchor - g / (2 * scale), 0.25), -1, 1)
    np.testing.assert_allclose(answer.theta, expected, atol=1e-12)


@pytest.mark.parametrize("ill", [False, True])
@pytest.mark.parametrize("n", [100, 10**4])
def test_solvers_agree(n, ill):
    f = lasso(n, 40, ill=ill)
    theta = cp.Variable(40)
    answers = [
        solve_conic(f, [theta], 0.1 * n * cp.norm1(theta), [cp.norm_inf(theta) <= 0.5], solver=s)
        for s in SOLVERS
    ]
    for answer in answers[1:]:
        np.testing.assert_allclose(answer.theta, answers[0].theta, atol=1e-5)


@pytest.mark.parametrize("solver", SOLVERS)
def test_no_rest_is_a_linear_system(solver):
    f = lasso(200, 10)
    answer = solve_conic(f, [cp.Variable(10)], None, [], solver=solver)
    np.testing.assert_allclose(answer.theta, np.linalg.solve(f.H, -f.g), atol=1e-6)


def test_several_variables_are_stacked_in_fortran_order():
    W, b = cp.Variable((2, 3)), cp.Variable()
    target = np.arange(7.0)
    f = Quadratic(np.eye(7), -target, np.zeros(7))
    answer = solve_conic(f, [W, b], None, [W[1, 0] == 10, b <= 5])
    expected = target.copy()
    expected[1], expected[6] = 10, 5
    np.testing.assert_allclose(answer.theta, expected, atol=1e-5)


def test_auxiliary_variables_are_returned():
    theta, bound = cp.Variable(2), cp.Variable()
    f = Quadratic(np.eye(2), np.array([-3.0, -1.0]), np.zeros(2))
    answer = solve_conic(f, [theta], bound, [cp.norm_inf(theta) <= bound])
    np.testing.assert_allclose(answer.theta, [2.0, 1.0], atol=1e-6)
    np.testing.assert_allclose(answer.auxiliary[bound], 2.0, atol=1e-6)


def test_a_solve_leaves_no_trace(capfd):
    theta, level = cp.Variable(3, nonneg=True), cp.Parameter(nonneg=True, value=0.5)
    theta.value = np.ones(3)
    constraint = cp.sum(theta) <= 2
    problem = cp.Problem(cp.Minimize(cp.norm1(theta)), [constraint])
    for solver in [*SOLVERS, "HIGHS"]:
        solve_conic(
            Quadratic(np.eye(3), -np.arange(3.0), np.zeros(3)),
            [theta],
            level * cp.norm1(theta),
            [constraint],
            solver=solver,
        )
    assert np.array_equal(theta.value, np.ones(3))
    assert level.value == 0.5
    assert constraint.dual_value is None
    assert problem.value is None
    assert problem.status is None
    assert capfd.readouterr() == ("", "")


def test_options_are_not_mutated_and_win():
    f, options = lasso(100, 5), {"eps_abs": 1e-2, "eps_rel": 1e-2}
    theta = cp.Variable(5)
    solve_conic(f, [theta], cp.norm1(theta), [], solver="OSQP", solver_options=options)
    assert options == {"eps_abs": 1e-2, "eps_rel": 1e-2}


def test_failure_is_a_solver_error_without_numbers():
    f, theta = lasso(100, 5), cp.Variable(5)
    with pytest.raises(SolverError, match="CLARABEL ended with status 'user_limit'") as caught:
        solve_conic(f, [theta], cp.norm1(theta), [], solver_options={"max_iter": 1})
    assert not any(c.isdigit() for c in str(caught.value))
    assert caught.value.__suppress_context__


@pytest.mark.parametrize(
    ("solver", "options", "message"),
    [
        ("NOPE", {}, "not installed"),
        ("MOSEK", {}, "not installed"),
        ("SCIPY", {}, "cannot take this problem"),
        ("CLARABEL", {"foo": 1}, "foo"),
        ("OSQP", {"foo": 1}, "foo"),
        ("SCS", {"foo": 1}, "foo"),
        ("HIGHS", {"foo": 1}, "foo"),
        ("CLARABEL", {"max_iter": "x"}, "max_iter"),
        ("SCS", {"verbose": True}, "print"),
    ],
)
def test_bad_solvers_and_options_are_refused(solver, options, message):
    theta = cp.Variable(3)
    with pytest.raises(OptionError, match=message):
        check_solver(solver, options, [theta], cp.norm1(theta - 1), [cp.norm_inf(theta) <= 5])


def test_osqp_refuses_a_cone():
    theta = cp.Variable(3)
    with pytest.raises(OptionError, match="cannot take"):
        check_solver("OSQP", {}, [theta], cp.norm2(theta), [])


def test_infeasible_constraints_are_found():
    theta = cp.Variable(3)
    with pytest.raises(ProblemError, match="no point satisfies"):
        check_feasible([theta], None, [theta >= 1, cp.sum(theta) <= 2])


def test_an_attribute_can_be_infeasible():
    theta = cp.Variable(3, nonneg=True)
    with pytest.raises(ProblemError, match="no point satisfies"):
        check_feasible([theta], None, [cp.sum(theta) == -1])


def test_an_empty_domain_of_the_regulariser():
    theta = cp.Variable(2, nonneg=True)
    with pytest.raises(ProblemError, match="no point satisfies"):
        check_feasible([theta], -cp.sum(cp.log(-theta - 1)), [])


def test_a_rest_that_is_not_convex_is_refused():
    theta = cp.Variable(3)
    with pytest.raises(ProblemError, match="DCP"):
        check_feasible([theta], -cp.norm1(theta), [])


def test_large_ill_conditioned_form_is_accepted():
    """CVXPY's own PSD test fails on such matrices; ours are positive definite by construction."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 400))
    theta = cp.Variable(400)
    f = Quadratic(X.T @ X, rng.standard_normal(400), np.zeros(400))
    answer = solve_conic(f, [theta], None, [cp.norm_inf(theta) <= 1])
    assert np.abs(answer.theta).max() <= 1 + 1e-8


@pytest.mark.parametrize("scale", [1.0, 1e4, 1e8])
def test_targets_out_of_scale_do_not_lead_the_polish_away(scale):
    """Projections of trace-one matrices by the eigenvalues; the last steps must not undo them."""
    rng = np.random.default_rng(3)
    A = rng.standard_normal((3, 3))
    A = scale * (A + A.T)
    values, V = np.linalg.eigh(A)
    # Closed form: the eigenvalues projected onto {0 ≤ λ ≤ 1, Σ λ = 1}.
    low, high = values.min() - 1, values.max()
    for _ in range(200):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if np.clip(values - middle, 0, 1).sum() > 1 else (low, middle)
    expected = (V * np.clip(values - low, 0, 1)) @ V.T
    M = cp.Variable((3, 3))
    sets = [M >> 0, M == M.T, M << np.eye(3), cp.trace(M) == 1]
    f = Quadratic(np.eye(9), -A.reshape(-1, order="F"), np.zeros(9))
    found = solve_conic(f, [M], None, sets).theta.reshape(3, 3, order="F")
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_a_level_below_zero_is_feasible_for_what_may_be_negative():
    theta = cp.Variable(3)
    f = Quadratic(np.eye(3), np.zeros(3), np.zeros(3))
    found = solve_conic(f, [theta], None, [cp.max(theta) <= -1.0]).theta
    np.testing.assert_allclose(found, -np.ones(3), atol=1e-6)
    with pytest.raises(ProblemError):
        check_feasible([theta], None, [cp.norm(theta) <= -1.0])
