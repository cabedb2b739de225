"""Outputs on an interval: against projected normal variables, and against releases."""

from dataclasses import replace

import cvxpy as cp
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import ndtr
from scipy.stats import binom, norm

import cvxqop
from cvxqop.audit import Call, divergence
from cvxqop.audit.neighbours import PAIRS
from cvxqop.audit.public_data import BOUNDED, CONSTRAINED, REACH
from cvxqop.audit.row import Row

OPPOSITE = next(pair for pair in PAIRS if pair.name == "opposite")


def call(loss, adjacency="add_remove", **options):
    row = Row("linear", "linear", adjacency, loss, OPPOSITE, "solution", None, options)
    return row.call("solution", 3), *OPPOSITE.data(adjacency)


def projected(data, push, mechanism):
    """Mean and spread of (X'y + push − a)/(X'X + μ), which is projected onto [−1, 1]."""
    X, y = data
    curvature = float(np.sum(X**2)) + mechanism.ridge
    return (float(X[:, 0] @ y) + push) / curvature, mechanism.guard_scale / curvature


def hockey_stick(one, other, epsilon):
    (m, s), (m2, s2) = one, other
    k = np.exp(epsilon)
    inside = quad(
        lambda t: max(norm.pdf(t, m, s) - k * norm.pdf(t, m2, s2), 0.0), -REACH, REACH, limit=200
    )[0]
    lower = ndtr((-REACH - m) / s) - k * ndtr((-REACH - m2) / s2)
    upper = ndtr((m - REACH) / s) - k * ndtr((m2 - REACH) / s2)
    return inside + max(lower, 0.0) + max(upper, 0.0)


@pytest.mark.parametrize("push", [0.0, 12.0, 20.0])
@pytest.mark.parametrize("loss", [CONSTRAINED, *BOUNDED], ids=["norm", "arrays", "parameters"])
def test_a_squared_loss_is_a_projected_normal_variable(loss, push):
    target, D, D2 = call(replace(loss, push=push))
    found = divergence(target, D, D2, epsilons=[0.1, 0.5, 1.0])
    laws = [projected(data, push, target.prepare(data)[0].mechanism) for data in (D, D2)]
    for epsilon, value in zip((0.1, 0.5, 1.0), found.measured, strict=True):
        expected = max(hockey_stick(*pair, epsilon) for pair in (laws, laws[::-1]))
        assert value == pytest.approx(expected, rel=1e-5, abs=1e-9)
    assert found.holds


def test_intervals_that_differ_are_told_apart():
    """The bound of one data set lies inside the other's: its atom is released there alone."""

    def state(data):
        X, y = np.array([[2.0], [1.0]]), np.array([1.0, 0.5])
        ends = [np.array([-1.0]), np.array([data])]
        theta = cp.Variable(1, bounds=ends)
        return cp.Problem(cp.Minimize(0.5 * cp.sum_squares(X @ theta - y))), [X, y], ends

    target = Call(
        state,
        bounds=cvxqop.Bounds(row_norm=2.0, offset=1.0),
        epsilon=2.0,
        delta=0.01,
        perturbation="linear",
    )
    found = divergence(target, 0.25, 1.0, epsilons=[6.0])
    seen = []
    for end in (0.25, 1.0):
        mechanism = target.prepare(end)[0].mechanism
        slope = 2.5 - 0.25 * (5.0 + mechanism.ridge)
        seen.append(float(ndtr(slope / mechanism.guard_scale)))
    # From ¼ on one data set has an atom alone, the other all of its mass there.
    assert found.measured[0] == pytest.approx(max(seen), rel=1e-6)
    assert not found.holds


def test_releases_lie_at_an_end_as_often_as_stated():
    """300 releases with σ_rel of 1e-5; false alarm 1e-8."""
    target, _, D = call(CONSTRAINED)
    mean, spread = projected(D, CONSTRAINED.push, target.prepare(D)[0].mechanism)
    release = target.sampler(D)
    values = np.array([next(iter(release().values.values()))[0] for _ in range(300)])
    assert np.max(np.abs(values)) <= REACH + 1e-12
    chance = float(ndtr((mean - REACH) / spread))
    count = int(np.sum(values > REACH - 1e-3))
    assert 0.2 < chance < 0.8
    assert min(binom.cdf(count, 300, chance), binom.sf(count - 1, 300, chance)) > 5e-9


def test_what_has_no_law_here_is_refused():
    with pytest.raises(cvxqop.OptionError, match="constraint"):
        divergence(*call(replace(CONSTRAINED, push=0.0), perturbation="wishart"))
    plane = next(pair for pair in PAIRS if pair.name == "orthogonal")
    row = Row("linear", "linear", "add_remove", CONSTRAINED, plane, "solution", None)
    with pytest.raises(cvxqop.OptionError, match="one variable"):
        divergence(row.call("solution"), *plane.data("add_remove"))

    def state(bound):
        X, y, theta = np.ones((1, 1)), np.array([0.5]), cp.Variable(1)
        C = [cp.norm(theta, 2) <= 1.0] if bound else []
        return cp.Problem(cp.Minimize(cp.sum(cp.huber(X @ theta - y))), C), [X, y]

    target = Call(
        state,
        bounds=cvxqop.Bounds(row_norm=1.0, offset=1.0),
        epsilon=1.0,
        delta=0.01,
        perturbation="linear",
    )
    with pytest.raises(cvxqop.OptionError, match="the other none"):
        divergence(target, True, False)
