"""Quasi-Newton steps from values and gradients: certificates against tight solves."""

import cvxpy as cp
import numpy as np
import pytest

from cvxqop.errors import AccuracyError
from cvxqop.solve.engines.monitor import PrecisionError
from cvxqop.solve.engines.stotos import solve_stotos
from cvxqop.solve.smooth.function import PerturbedFunction

pytestmark = pytest.mark.blas

D = 6


def log_sum(seed, n=60):
    """Σ_i log(e^{a'θ} + e^{b'θ + 1} + 1), and θ ↦ its value and gradient."""
    rng = np.random.default_rng(seed)
    A, B = rng.standard_normal((2, n, D))

    def function(theta):
        t = np.stack([A @ theta, B @ theta + 1.0, np.zeros(n)])
        top = t.max(axis=0)
        p = np.exp(t - top)
        total = p.sum(axis=0)
        return float(np.sum(np.log(total) + top)), A.T @ (p[0] / total) + B.T @ (p[1] / total)

    def expression(theta):
        return cp.sum(cp.log_sum_exp(cp.vstack([A @ theta, B @ theta + 1.0, np.zeros(n)]), axis=0))

    return function, expression


def perturbed(function, seed, ridge=1.0):
    rng = np.random.default_rng(seed)
    root = rng.standard_normal((D, 3 * D))
    S = ridge * root @ root.T / (3 * D)
    return PerturbedFunction(function, S, rng.standard_normal(D), np.zeros(D), 60, 10.0, 10.0, 20.0)


RESTS = {
    "free": lambda t: (None, []),
    "lasso in a box": lambda t: (3 * cp.norm1(t), [cp.abs(t) <= 0.2]),
    "ball": lambda t: (None, [cp.norm(t, 2) <= 0.1]),
    "group and ridge": lambda t: (cp.norm(t[:3], 2) + cp.sum_squares(t), [t >= -0.1]),
    "simplex": lambda t: (cp.norm1(t - 1), [cp.sum(t) == 1, t >= 0]),
}


@pytest.mark.parametrize("name", RESTS)
@pytest.mark.parametrize("ridge", [0.01, 100.0])
def test_certificates(name, ridge):
    function, expression = log_sum(1)
    f = perturbed(function, 2, ridge)
    theta = cp.Variable(D)
    regulariser, constraints = RESTS[name](theta)
    answer = solve_stotos(f, [theta], regulariser, constraints, accuracy=1e-5)
    assert answer.distance <= 1e-5
    objective = expression(theta) + 0.5 * cp.quad_form(theta, cp.psd_wrap(f.S)) + f.a @ theta
    objective = objective if regulariser is None else objective + regulariser
    cp.Problem(cp.Minimize(objective), constraints).solve(
        solver="CLARABEL", tol_gap_abs=1e-8, tol_gap_rel=1e-8, tol_feas=1e-8
    )
    assert np.linalg.norm(answer.theta - theta.value) <= 2e-5 / min(1.0, 10 * ridge)
    theta.value = answer.theta + 0.0
    assert all(constraint.violation().max() <= 1e-12 for constraint in constraints)


@pytest.mark.parametrize("name", RESTS)
def test_a_loose_certificate_holds(name):
    """The bound of a rough answer is not below its distance to a certified one."""
    function, _ = log_sum(3)
    f = perturbed(function, 4)
    theta = cp.Variable(D)
    rest = RESTS[name](theta)
    tight = solve_stotos(f, [theta], *rest, accuracy=1e-7)
    for accuracy in (1e-1, 1e-3, 1e-5):
        rough = solve_stotos(f, [theta], *rest, accuracy=accuracy)
        assert rough.distance <= accuracy
        assert np.linalg.norm(rough.theta - tight.theta) <= rough.distance + 1e-7


def test_start_and_limits():
    function, _ = log_sum(5)
    f, theta = perturbed(function, 6), cp.Variable(D)
    one = solve_stotos(f, [theta], None, [], accuracy=1e-8)
    other = solve_stotos(f, [theta], None, [], accuracy=1e-8, start=np.full(D, 3.0))
    np.testing.assert_allclose(one.theta, other.theta, atol=2e-8)
    with pytest.raises(AccuracyError, match="max_iter"):
        solve_stotos(f, [theta], None, [], accuracy=1e-8, max_iter=2)
    with pytest.raises(PrecisionError, match="working precision"):
        solve_stotos(f, [theta], None, [], accuracy=1e-17)


def test_outside_the_domain():
    """−log has no value beyond 0: steps are shortened, and a start there is refused."""

    def function(theta):
        if theta[0] >= 1.0:
            return None
        return -float(np.log(1.0 - theta[0])), np.eye(D)[0] / (1.0 - theta[0])

    f, theta = perturbed(function, 7), cp.Variable(D)
    f = PerturbedFunction(function, f.S, -50.0 * np.eye(D)[0], f.anchor, 1, 1e4, 1.0, 1e-3)
    answer = solve_stotos(f, [theta], None, [], accuracy=1e-7)
    point = answer.theta
    gradient = f.evaluate(point).gradient
    assert point[0] < 1.0
    assert np.linalg.norm(gradient) <= 1e-4
    with pytest.raises(AccuracyError, match="without a gradient"):
        solve_stotos(f, [theta], None, [], start=np.ones(D))
