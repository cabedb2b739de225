"""The claimed profile against output densities that can be integrated (theory §2)."""

import numpy as np
import pytest
from densities import density_1d, density_2d, grid_1d, grid_2d, hockey_stick

from cvxqop.privacy.wishart import ensemble as wishart

EPSILONS = (0.25, 0.5, 1.0, 2.0)


def quadratic(rows, offsets, linear, ridge):
    """Hessian and gradient at 0 of ½ Σ (a'u + c)² + linear'u + ½ ridge |u|²."""
    A, c = np.atleast_2d(rows), np.asarray(offsets, dtype=float)
    return A.T @ A + ridge * np.eye(A.shape[1]), A.T @ c + np.asarray(linear, dtype=float)


def density(u, case, **noise):
    """Density of the output for a quadratic objective (H, g)."""
    H, g = case
    if u.ndim == 1:
        return density_1d(u, H[0, 0] * u + g[0], np.full_like(u, H[0, 0]), **noise)
    return density_2d(u, u @ H + g, np.broadcast_to(H, (len(u), 2, 2)), **noise)


def profiles(first, second, *, dimension, sigma2, m, guard):
    """Measured hockey-stick divergences of a pair, both ways, at every ε."""
    u, weight = grid_1d() if dimension == 1 else grid_2d()
    densities = [density(u, case, sigma2=sigma2, m=m, guard=guard) for case in (first, second)]
    for p in densities:
        assert weight @ p == pytest.approx(1.0, abs=2e-3)  # it is a density
    p, q = densities
    return [(hockey_stick(p, q, weight, e), hockey_stick(q, p, weight, e)) for e in EPSILONS]


@pytest.mark.parametrize(
    ("dimension", "m", "sigma2"), [(1, 5.0, 1.2), (1, 12.5, 0.4), (2, 8.0, 0.7)]
)
def test_aligned_pair_attains_the_profile(dimension, m, sigma2):
    """One record along the linear term, nothing else: equality, both directions."""
    axis = np.eye(dimension)[0]
    empty = quadratic(np.zeros((1, dimension)), [0.0], -axis, 0.0)
    one = quadratic(axis, [0.0], -axis, 0.0)
    nu = m - dimension + 1
    measured = profiles(empty, one, dimension=dimension, sigma2=sigma2, m=m, guard=0.0)
    for epsilon, (added, removed) in zip(EPSILONS, measured, strict=True):
        for value, direction in ((added, "add"), (removed, "remove")):
            claim = float(
                wishart.profile(
                    epsilon, 1.0 / sigma2, nu, adjacency="add_remove", direction=direction
                )
            )
            assert value <= claim * (1.0 + 1e-3) + 1e-7
            assert value == pytest.approx(claim, rel=0.01, abs=1e-6)


PAIRS_1D = {
    "add": ([[0.6]], [0.2], [[0.6], [1.0]], [0.2, 0.5]),
    "add to nothing": ([[0.0]], [0.0], [[1.0]], [-0.5]),
    "replace": ([[0.6], [1.0]], [0.2, 0.5], [[0.6], [-1.0]], [0.2, 0.5]),
    "replace by zero": ([[0.9], [1.0]], [0.1, 0.5], [[0.9], [0.0]], [0.1, 0.0]),
}
PAIRS_2D = {
    "add": ([[0.6, 0.3]], [0.2], [[0.6, 0.3], [0.8, 0.6]], [0.2, 0.5]),
    "replace orthogonal": ([[0.6, 0.3], [1, 0]], [0.2, 0.5], [[0.6, 0.3], [0, 1]], [0.2, -0.5]),
    "replace aligned": ([[0.5, 0.1], [1, 0]], [0.0, 0.5], [[0.5, 0.1], [1, 0]], [0.0, -0.5]),
    "replace by zero": ([[0.5, 0.1], [0.6, 0.8]], [0.1, 0.5], [[0.5, 0.1], [0, 0]], [0.1, 0.0]),
}


@pytest.mark.parametrize("ridge", [0.0, 0.7])
@pytest.mark.parametrize("linear", [0.0, 0.8])
@pytest.mark.parametrize("name", [*(("1d", k) for k in PAIRS_1D), *(("2d", k) for k in PAIRS_2D)])
def test_guarded_mechanism_never_exceeds_the_profile(name, linear, ridge):
    """Rows of norm ≤ 1, offsets ≤ ½: L = 1, G0 = ½. Add, remove and replace, guard on."""
    dimension = 1 if name[0] == "1d" else 2
    rows, offsets, rows2, offsets2 = (PAIRS_1D if dimension == 1 else PAIRS_2D)[name[1]]
    tilt = linear * np.array([0.6, 0.8])[:dimension]
    first, second = quadratic(rows, offsets, tilt, ridge), quadratic(rows2, offsets2, tilt, ridge)
    replaced = name[1].startswith("replace")
    sigma2, m, guard = 0.8, 7.0 + dimension, 1.5
    measured = profiles(first, second, dimension=dimension, sigma2=sigma2, m=m, guard=guard)
    for epsilon, values in zip(EPSILONS, measured, strict=True):
        claim = float(
            wishart.profile(
                epsilon,
                1.0 / sigma2,
                m - dimension + 1,
                adjacency="replace_one" if replaced else "add_remove",
                mu=(2.0 if replaced else 1.0) * 0.5 / guard,
            )
        )
        assert max(values) <= claim * (1.0 + 1e-3) + 1e-7


@pytest.mark.parametrize("dimension", [1, 2])
def test_replacement_without_guard(dimension):
    """Interpolating records (c = 0) need no guard; a linear regulariser moves the solution."""
    axis = np.eye(dimension)
    other = -0.2 * axis[0] if dimension == 1 else axis[1]
    first = quadratic(axis[0], [0.0], -axis[0], 0.3)
    second = quadratic(other, [0.0], -axis[0], 0.3)
    measured = profiles(first, second, dimension=dimension, sigma2=0.9, m=8.0, guard=0.0)
    for epsilon, values in zip(EPSILONS, measured, strict=True):
        claim = float(wishart.profile(epsilon, 1.0 / 0.9, 8.0 - dimension + 1))
        assert max(values) <= claim * (1.0 + 1e-3) + 1e-7


def test_without_the_guard_a_record_with_a_gradient_is_caught():
    """The same test fails for a mechanism that leaves the guard out: it can tell."""
    empty = quadratic([[0.0]], [0.0], [0.0], 0.7)
    one = quadratic([[1.0]], [-0.5], [0.0], 0.7)
    u, weight = grid_1d()
    q = density(u, one, sigma2=0.8, m=8.0, guard=0.0)
    assert weight @ q == pytest.approx(1.0, abs=1e-3)
    # The empty data set always releases 0; with the record the answer is never 0.
    assert empty[1][0] == 0.0
    tilted = quadratic([[0.0]], [0.0], [1e-3], 0.7)
    half = density(u, tilted, sigma2=0.8, m=8.0, guard=0.0)
    claim = float(wishart.profile(1.0, 1.0 / 0.8, 8.0, adjacency="add_remove"))
    assert hockey_stick(q, half, weight, 1.0) > 2.0 * claim
