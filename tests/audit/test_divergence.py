"""Densities against samples of the mechanism, divergences against closed forms."""

from dataclasses import replace

import cvxpy as cp
import numpy as np
import pytest

import cvxqop
from cvxqop.audit import Call, divergence
from cvxqop.audit.density import density
from cvxqop.audit.exact import grid
from cvxqop.audit.neighbours import INTERPOLATING, LOSSES, PAIRS
from cvxqop.audit.objective import Objective
from cvxqop.audit.suite import Row
from cvxqop.privacy.accounting.profile import gaussian_profile
from cvxqop.privacy.noise import Randomness

PAIR = {pair.name: pair for pair in PAIRS}
LOSS = {loss.name: loss for loss in LOSSES}


def call(mechanism, adjacency, loss, pair, output):
    row = Row(mechanism, mechanism, adjacency, loss, PAIR[pair], output, None)
    return row.call(output), *PAIR[pair].data(adjacency)


@pytest.mark.parametrize("mechanism", ["wishart", "gaussian", "linear"])
def test_densities_in_one_dimension_are_those_of_the_solution(mechanism):
    """3,000 draws of (S, a), solved by bisection; DKW at 1e-8 each."""
    target, D, _ = call(mechanism, "add_remove", LOSS["logistic"], "opposite", "solution")
    case = target.prepare(D)[0]
    J, noise = Objective.of(case), Randomness(5).fresh()[0]
    draws = [case.mechanism.draw(noise) for _ in range(3000)]
    s = np.array([draw.curvature[0, 0] for draw in draws])
    a = np.array([draw.guard[0] for draw in draws])
    low, high = np.full(3000, -1e4), np.full(3000, 1e4)
    for _ in range(60):
        t = 0.5 * (low + high)
        above = J.at(t[:, None])[0][:, 0] + s * t + a > 0.0
        low, high = np.where(above, low, t), np.where(above, t, high)
    u, weight, _ = grid(1)
    order = np.argsort(u[:, 0])
    p = density(case.mechanism, J, u)
    cumulative = np.cumsum((weight * p)[order])
    assert cumulative[-1] == pytest.approx(1.0, abs=1e-6)
    F = np.interp(np.sort(low), u[order, 0], cumulative)
    distance = np.max(np.abs(F - np.arange(1, 3001) / 3000))
    assert distance < np.sqrt(np.log(2e8) / 6000) + 1e-3


@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
@pytest.mark.parametrize("loss", ["logistic", "huber"])
def test_linear_in_two_dimensions_integrates_to_one_and_holds(loss, adjacency):
    found = divergence(*call("linear", adjacency, LOSS[loss], "intercept", "solution"))
    assert found.holds
    assert found.attained > 0.01


@pytest.mark.parametrize("pair", ["aligned", "opposite", "orthogonal", "far beyond the bounds"])
def test_wishart_attains_its_profile(pair):
    """One record at the bounds, (H̃, g̃) released: equality (theory §3), also in d = 2."""
    found = divergence(*call("wishart", "add_remove", LOSS["squared"], pair, "loss"))
    np.testing.assert_allclose(found.measured, found.claimed, rtol=5e-3, atol=1e-8)
    assert found.holds
    assert "holds" in str(found)


def test_the_solution_without_guard_attains_it_too():
    found = divergence(*call("wishart", "add_remove", INTERPOLATING, "aligned", "solution"))
    np.testing.assert_allclose(found.measured, found.claimed, rtol=2e-3, atol=1e-7)


def test_gaussian_is_a_gaussian_mechanism():
    """E = R²(e1e1' − e2e2'), b = −RB(e1 + e2): μ² = 2R⁴/s² + 2R²B²/s_a²."""
    target, D, D2 = call("gaussian", "replace_one", LOSS["squared"], "orthogonal", "loss")
    mechanism = target.prepare(D)[0].mechanism
    mu = np.sqrt(2 * 16 / mechanism.scale**2 + 2 * 4 / mechanism.guard_scale**2)
    found = divergence(target, D, D2, epsilons=[0.5, 2.0])
    expected = [float(gaussian_profile(e, mu)) for e in (0.5, 2.0)]
    np.testing.assert_allclose(found.measured, expected, rtol=1e-6)


def test_a_public_quadratic_rest_is_read():
    def state(data):
        X, y = data
        theta = cp.Variable(2)
        centre = np.array([1.0, 2.0])
        rest = 1.5 * cp.sum_squares(theta - centre) + theta[0] * 3
        loss = 0.5 * cp.sum_squares(X @ theta - y)
        return cp.Problem(cp.Minimize(loss + rest)), [X, y], [centre]

    target = Call(state, bounds=cvxqop.Bounds(row_norm=2.0, offset=1.0), epsilon=1.0, delta=0.01)
    J = Objective.of(target.prepare((np.eye(2), np.array([0.5, -0.5])))[0])
    gradient, hessian = J.at(np.zeros((1, 2)))
    np.testing.assert_allclose(gradient[0], [-0.5 - 3 + 3, 0.5 - 6], atol=1e-12)
    np.testing.assert_allclose(hessian[0], 4.0 * np.eye(2), atol=1e-12)


@pytest.mark.parametrize(
    ("rest", "constraints", "match"),
    [
        (lambda t: 0.0, lambda t: [t >= 0], "constraint"),
        (cp.norm1, lambda t: [], "quadratic"),
    ],
)
def test_refusals(rest, constraints, match):
    def state(data):
        X, y = data
        theta = cp.Variable(1)
        loss = cp.sum_squares(X @ theta - y) + rest(theta)
        return cp.Problem(cp.Minimize(loss), constraints(theta)), [X, y]

    target = Call(state, bounds=cvxqop.Bounds(row_norm=1.0, offset=1.0), epsilon=1.0, delta=0.01)
    D = (np.ones((1, 1)), np.ones(1))
    with pytest.raises(cvxqop.OptionError, match=match):
        divergence(target, D, D)


def test_dimensions_that_have_no_density():
    with pytest.raises(cvxqop.OptionError, match="d ≤ 2"):
        divergence(*call("wishart", "add_remove", LOSS["logistic"], "n < d", "solution"))
    with pytest.raises(cvxqop.OptionError, match="no density"):
        divergence(*call("gaussian", "add_remove", LOSS["logistic"], "orthogonal", "solution"))


def test_noise_that_differs_is_named():
    target, D, D2 = call("wishart", "add_remove", LOSS["squared"], "opposite", "loss")
    target.prepare(D2)
    ((_, case, *kept),) = target._prepared
    guarantee = replace(
        case.guarantee, mechanism=replace(case.mechanism, sigma2=2 * case.mechanism.sigma2)
    )
    target._prepared = [(D2, replace(case, guarantee=guarantee), *kept)]
    with pytest.raises(cvxqop.OptionError, match="noise differs"):
        divergence(target, D, D2)
