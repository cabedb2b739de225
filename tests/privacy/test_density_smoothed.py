"""Smoothed and continued losses: the claimed profile against integrated output densities, d = 1."""

import cvxpy as cp
import numpy as np
import pytest
from densities import density_1d, grid_1d, hockey_stick

from cvxqop.privacy.wishart import ensemble as wishart
from cvxqop.problem.losses.phi.recognise import recognise

T = cp.Variable(name="t")
B, M = 0.5, 8.0
LOSSES = {
    "hinge": recognise(cp.pos(0.25 - T), T).smoothed(0.5, centred=True).loss,
    "pinball": recognise(cp.maximum(0.75 * T, -0.25 * T), T).smoothed(0.25, centred=True).loss,
    "absolute value": recognise(cp.abs(T), T).smoothed(1.0, centred=True).loss,
    "Poisson, continued": recognise(cp.exp(T) - 0.5 * T, T).bounded(-1.0, 0.75),
}
PAIRS = {
    "add": ([0.6], [0.2], [0.6, 1.0], [0.2, 0.5]),
    "add alone": ([0.0], [0.0], [1.0], [-0.25]),
    "replace opposite": ([0.5, 1.0], [0.1, 0.5], [0.5, 1.0], [0.1, -0.5]),
    "replace sign": ([0.5, 1.0], [0.1, 0.25], [0.5, -1.0], [0.1, 0.25]),
    "replace by zero": ([0.5, 1.0], [0.1, -0.5], [0.5, 0.0], [0.1, 0.0]),
}


def outputs(loss, rows, offsets, sigma2, guard):
    """Density of the minimiser of Σ φ(a u + c) + ½ S u² + g u."""
    u, weight = grid_1d()
    t = u[:, None] * np.array(rows) + np.array(offsets)
    gradient = loss.derivative(t) @ np.array(rows)
    hessian = loss.second_derivative(t) @ np.square(rows)
    return density_1d(u, gradient, hessian, m=M, sigma2=sigma2, guard=guard), weight


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("name", LOSSES)
def test_never_exceeds_the_profile(name, pair):
    """Rows of norm 1, |c| ≤ B: L = κ and G0 = sup |φ'| over |t| ≤ B, as the loss says."""
    loss = LOSSES[name]
    rows, offsets, rows2, offsets2 = PAIRS[pair]
    sigma2 = 0.8 * loss.curvature
    guard = 1.5 * loss.slope_bound(B)
    p, weight = outputs(loss, rows, offsets, sigma2, guard)
    q, _ = outputs(loss, rows2, offsets2, sigma2, guard)
    assert weight @ p == pytest.approx(1.0, abs=2e-3)
    assert weight @ q == pytest.approx(1.0, abs=2e-3)
    for epsilon in (0.25, 0.5, 1.0, 2.0):
        claimed = wishart.profile(
            epsilon,
            loss.curvature / sigma2,
            M,
            adjacency="replace_one" if pair.startswith("replace") else "add_remove",
            quadratic=False,
            mu=loss.slope_bound(B) / guard,
        )
        bound = float(claimed) * (1.0 + 1e-3) + 1e-7
        assert hockey_stick(p, q, weight, epsilon) <= bound
        assert hockey_stick(q, p, weight, epsilon) <= bound
