"""Densities and divergences of multinomial and declared losses."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit

import cvxqop
from cvxqop.audit import divergence
from cvxqop.audit.declared_losses import DECLARED_LINE, DECLARED_PLANE, DECLARED_QUADRATIC
from cvxqop.audit.density import density
from cvxqop.audit.exact import grid
from cvxqop.audit.neighbours import MULTINOMIAL, PAIRS
from cvxqop.audit.row import Row
from cvxqop.audit.softmax import SoftmaxObjective, contrasts
from cvxqop.audit.wide import pushed
from cvxqop.privacy.accounting.profile import gaussian_profile
from cvxqop.privacy.noise import Randomness

PAIR = {pair.name: pair for pair in PAIRS}
TWO, THREE = MULTINOMIAL


def call(mechanism, adjacency, loss, pair="opposite", output="solution", **options):
    row = Row(mechanism, mechanism, adjacency, loss, PAIR[pair], output, None, options)
    return row.call(output), *PAIR[pair].data(adjacency)


def whole(J):
    """The same objective as a function of all three coefficients."""
    return replace(
        J,
        directions=np.eye(3).reshape(3, 1, 3),
        linear=np.zeros(3),
        curvature=np.zeros((3, 3)),
    )


def test_gradients_and_hessians_of_a_multinomial_loss():
    """Against differences of the loss as it is written."""
    target, _, D = call("wishart", "add_remove", THREE)
    J = whole(SoftmaxObjective.of(target.prepare(D)[0]))
    X, y = D
    labels = THREE.targets_of(y)

    def value(theta):
        t = X * theta
        return float(np.sum(np.log(np.sum(np.exp(t), axis=1)) - np.sum(labels * t, axis=1)))

    u = np.array([0.3, -0.2, 0.5])
    gradient, hessian = J.at(u[None])
    h = 1e-4 * np.eye(3)
    slopes = [(value(u + e) - value(u - e)) / 2e-4 for e in h]
    np.testing.assert_allclose(gradient[0], slopes, atol=1e-6)
    rows = [(J.at((u + e)[None])[0][0] - J.at((u - e)[None])[0][0]) / 2e-4 for e in h]
    np.testing.assert_allclose(hessian[0], rows, atol=1e-6)


@pytest.mark.parametrize("mechanism", ["wishart", "linear"])
def test_three_classes_have_the_density_of_the_directions_that_count(mechanism):
    """2,000 draws of (S, a) in three dimensions, solved by Newton's method; DKW at 1e-8."""
    target, _, D = call(mechanism, "add_remove", THREE, radius=0.1)
    case = target.prepare(D)[0]
    J, noise = SoftmaxObjective.of(case), Randomness(5).fresh()[0]
    assert J.dimension == 2
    draws = [case.mechanism.draw(noise) for _ in range(2000)]
    S = np.stack([draw.curvature for draw in draws])
    a = np.stack([draw.guard for draw in draws])
    u, full = np.zeros_like(a), whole(J)
    for _ in range(40):
        gradient, hessian = full.at(u)
        gradient = gradient + np.einsum("nij,nj->ni", S, u) + a
        u -= np.linalg.solve(hessian + S, gradient[:, :, None])[:, :, 0]
    assert np.max(np.abs(gradient)) < 1e-8
    points, weight, _ = grid(2)
    p = weight * density(case.mechanism, J, points)
    assert p.sum() == pytest.approx(1.0, abs=1e-4)
    limit = np.sqrt(np.log(4e8) / 4000) + 0.02  # and a step of the grid
    v = u @ contrasts(3).T
    for own, of_grid in (
        (np.log(np.linalg.norm(v, axis=1)), np.log(np.linalg.norm(points, axis=1))),
        (np.arctan2(v[:, 1], v[:, 0]), np.arctan2(points[:, 1], points[:, 0])),
    ):
        order = np.argsort(of_grid, kind="stable")
        F = np.interp(np.sort(own), of_grid[order], np.cumsum(p[order]))
        assert np.max(np.abs(F - (np.arange(2000) + 0.5) / 2000)) < limit


def test_two_classes_are_the_logistic_loss():
    """The linear mechanism adds to a logistic loss of θ₁ − θ₂ an independent coordinate."""
    target, D, D2 = call("linear", "add_remove", TWO)
    found = divergence(target, D, D2)
    case, other = (target.prepare(data)[0] for data in (D, D2))
    mechanism = case.mechanism
    u, weight, _ = grid(1)

    def p(one):
        a, y = one.sums.rows[0].take(0, one.erm.n)
        s = expit(np.sqrt(2) * u * a.T)
        H = (2 * a.T**2 * s * (1 - s)).sum(axis=1) + mechanism.ridge
        g = (np.sqrt(2) * a.T * (s - y[:, 0])).sum(axis=1) + mechanism.ridge * u[:, 0]
        z = g / mechanism.guard_scale
        return np.exp(-0.5 * z * z) / np.sqrt(2 * np.pi) / mechanism.guard_scale * H

    one, two = p(case), p(other)
    assert weight @ one == pytest.approx(1.0, abs=1e-6)
    for epsilon, value in zip(found.epsilons[:3], found.measured[:3], strict=True):
        ways = [weight @ np.maximum(x - np.exp(epsilon) * z, 0.0) for x, z in
                ((one, two), (two, one))]  # fmt: skip
        assert value == pytest.approx(max(ways), rel=2e-3)


def test_quadratures_hold_where_the_curvature_is_much_sharper_than_the_guard():
    """m is above 200: beyond double precision of the nodes δ was once measured above the claim."""
    found = divergence(*call("wishart", "add_remove", TWO, radius=0.01))
    assert found.holds
    assert found.attained > 0.9


def test_declared_constants_are_attained():
    """(H̃, g̃) of a declared quadratic loss is a Gaussian mechanism with exactly these constants."""
    target, D, D2 = call("gaussian", "add_remove", DECLARED_QUADRATIC, output="loss")
    mechanism = target.prepare(D)[0].mechanism
    mu = np.hypot(np.sqrt(32) / mechanism.scale, np.sqrt(8) / mechanism.guard_scale)
    found = divergence(target, D, D2, epsilons=[1.0, 2.0])
    np.testing.assert_allclose(found.measured, gaussian_profile(np.array([1.0, 2.0]), mu))
    np.testing.assert_allclose(found.measured, found.claimed, rtol=1e-5)


@pytest.mark.parametrize("loss", [DECLARED_LINE, DECLARED_PLANE, pushed(DECLARED_PLANE)])
def test_a_stated_objective_is_compared_with_the_problem(loss):
    target, D, D2 = call("linear", "add_remove", loss)
    assert divergence(target, D, D2, objective=loss.objective).holds
    other = replace(loss, push=loss.push + 1.0)
    with pytest.raises(cvxqop.OptionError, match="not those of the problem"):
        divergence(target, D, D2, objective=other.objective)
    with pytest.raises(cvxqop.OptionError, match="objective="):
        divergence(target, D, D2)


def test_multinomial_losses_that_have_no_density():
    four = replace(THREE, outputs=4)
    with pytest.raises(cvxqop.OptionError, match="two classes"):
        divergence(*call(cvxqop.Wishart(degrees_of_freedom=9.0), "add_remove", four))
    with pytest.raises(cvxqop.OptionError, match="no density"):
        divergence(*call("gaussian", "add_remove", TWO))
