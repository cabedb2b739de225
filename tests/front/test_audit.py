"""An audit that could fail: empirical lower bounds on ε from many releases (d = 1).

D has no record, D' one aligned record at the bounds. The attacker knows everything but which of
the two was used, and takes the likelihood-ratio event. Clopper-Pearson at confidence 1 − 1e-7.
"""

from dataclasses import replace

import cvxpy as cp
import numpy as np
import pytest
from scipy.stats import beta, chi2, norm

import cvxqop
from cvxqop.privacy.noise import SeededNoise

EPSILON, DELTA, TRIALS = 1.0, 0.01, 200_000
EMPTY = (np.zeros((1, 1)), np.zeros(1))
RECORD = (np.ones((1, 1)), np.ones(1))


def mechanism_of(X, y, adjacency="add_remove"):
    theta = cp.Variable(1)
    problem = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(X @ theta - y)))
    bounds = cvxqop.Bounds(row_norm=1.0, offset=1.0)
    return cvxqop.plan(
        problem,
        private=[X, y],
        bounds=bounds,
        epsilon=EPSILON,
        delta=DELTA,
        adjacency=adjacency,
    ).mechanism


def releases(mechanism, X, y, seed):
    """(H̃, g̃) of many releases: the quadratic form of the data plus a draw each."""
    noise = SeededNoise(np.random.default_rng(seed))
    S = mechanism.sigma2 * noise.chisquare(np.full(TRIALS, mechanism.degrees_of_freedom))
    a = mechanism.guard_scale * noise.standard_normal(TRIALS)
    return float(np.sum(X * X)) + S, float(-X[0, 0] * y[0]) + a


def log_likelihood(mechanism, X, y, H, g):
    h = (H - float(np.sum(X * X))) / mechanism.sigma2
    a = (g + float(X[0, 0] * y[0])) / mechanism.guard_scale
    return chi2(mechanism.degrees_of_freedom).logpdf(h) + norm.logpdf(a)


def epsilon_lower_bound(mechanism, first, second):
    """log((p − δ)/q) with p from below and q from above, for the event of the larger likelihood."""
    counts = []
    for seed, data in ((1, first), (2, second)):
        H, g = releases(mechanism, *data, seed)
        with np.errstate(invalid="ignore"):
            ratio = log_likelihood(mechanism, *first, H, g) - log_likelihood(
                mechanism, *second, H, g
            )
        counts.append(int(np.sum(ratio > EPSILON)))
    low = beta.ppf(1e-7, counts[0], TRIALS - counts[0] + 1)
    high = beta.ppf(1 - 1e-7, counts[1] + 1, TRIALS - counts[1])
    return np.log(max(low - DELTA, 1e-12) / high)


@pytest.mark.parametrize("order", [(EMPTY, RECORD), (RECORD, EMPTY)])
def test_the_mechanism_passes(order):
    assert epsilon_lower_bound(mechanism_of(*EMPTY), *order) <= EPSILON


@pytest.mark.parametrize("fault", ["half the matrix", "half the guard", "half the degrees"])
def test_planted_faults_are_caught(fault):
    sound = mechanism_of(*EMPTY)
    broken = {
        "half the matrix": replace(sound, sigma2=0.5 * sound.sigma2),
        "half the guard": replace(sound, guard_scale=0.5 * sound.guard_scale),
        "half the degrees": replace(
            sound, degrees_of_freedom=0.5 * sound.degrees_of_freedom, sigma2=sound.sigma2
        ),
    }[fault]
    assert epsilon_lower_bound(broken, EMPTY, RECORD) > EPSILON


def test_the_draws_of_the_audit_are_those_of_the_mechanism():
    """draw() has the law that the audit samples: means and spreads of 20,000 draws."""
    mechanism = mechanism_of(*EMPTY)
    noise = SeededNoise(np.random.default_rng(3))
    draws = [mechanism.draw(noise) for _ in range(20_000)]
    S = np.array([draw.curvature[0, 0] for draw in draws])
    a = np.array([draw.guard[0] for draw in draws])
    m = mechanism.degrees_of_freedom
    assert S.mean() == pytest.approx(mechanism.sigma2 * m, rel=0.02)
    assert S.std() == pytest.approx(mechanism.sigma2 * np.sqrt(2 * m), rel=0.04)
    assert a.std() == pytest.approx(mechanism.guard_scale, rel=0.03)


def test_replacement_with_opposite_targets():
    opposite = (np.ones((1, 1)), -np.ones(1))
    mechanism = mechanism_of(*RECORD, adjacency="replace_one")
    assert epsilon_lower_bound(mechanism, RECORD, opposite) <= EPSILON
    broken = replace(mechanism, guard_scale=0.4 * mechanism.guard_scale)
    assert epsilon_lower_bound(broken, RECORD, opposite) > EPSILON
