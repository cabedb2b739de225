"""Two dimensions, records of two rows with curvature that varies: the spectral bound holds.

ℓ(θ) = Σ_j φ(a_j'θ + c_j) with φ'(t) = 2 tanh(t/2), φ'' ≤ 1, over two orthonormal rows a_j:
L = 1, T = 2 and a Hessian of rank two whose eigenvectors turn with θ when the rows are mixed in.
"""

import math

import numpy as np
import pytest
from densities import density_2d, grid_2d, hockey_stick

from cvxqop.privacy.accounting.profile import gaussian_profile
from cvxqop.privacy.wishart import spectral

CASES = {
    "add": ([], [[0.8, 0.6], [-0.6, 0.8]]),
    "replace": ([[1.0, 0.0], [0.0, 1.0]], [[0.6, 0.8], [0.8, -0.6]]),
    "replace by nothing": ([[0.8, 0.6], [-0.6, 0.8]], []),
}


def derivatives(u, rows, offset):
    """∇J and ∇²J at the points u: one public quadratic record, and the rows."""
    A = np.array(rows).reshape(-1, 2)
    t = u @ A.T + offset
    common = np.array([0.6, 0.3])
    gradient = 2.0 * np.tanh(0.5 * t) @ A + (u @ common + 0.2)[:, None] * common
    curvature = np.cosh(0.5 * np.clip(t, -300.0, 300.0)) ** -2.0
    H = np.einsum("nj,ja,jb->nab", curvature, A, A) + np.outer(common, common)
    return gradient, H


@pytest.mark.parametrize("offset", [0.1, 0.6])
@pytest.mark.parametrize("name", CASES)
def test_measured_divergence_stays_below_the_claim(name, offset):
    """For an added record it is also above that of the guard alone: the curvature is seen."""
    sigma2, m, guard = 2.0, 30.0, 4.0
    replaced = name != "add"
    G0 = math.sqrt(2.0) * 2.0 * math.tanh(0.5 * offset)
    mu = (2.0 if replaced else 1.0) * G0 / guard
    u, weight = grid_2d()
    p, q = (
        density_2d(u, *derivatives(u, rows, offset), sigma2=sigma2, m=m, guard=guard)
        for rows in CASES[name]
    )
    assert weight @ p == pytest.approx(1.0, abs=2e-3)
    assert weight @ q == pytest.approx(1.0, abs=2e-3)
    beyond_guard = False
    for epsilon in (0.1, 0.2, 0.5, 1.0, 2.0):
        claim = float(
            spectral.profile(
                epsilon,
                smoothness_ratio=1.0 / sigma2,
                trace_ratio=2.0 / sigma2,
                dimension=2,
                degrees_of_freedom=m,
                adjacency="replace_one" if replaced else "add_remove",
                quadratic=False,
                mu=mu,
            )
        )
        measured = max(hockey_stick(p, q, weight, epsilon), hockey_stick(q, p, weight, epsilon))
        assert measured <= claim * (1.0 + 1e-3) + 1e-7
        beyond_guard |= measured > 1e-6 + 1.1 * float(gaussian_profile(epsilon, mu))
    assert claim < 1.0
    assert beyond_guard or replaced
