"""Constraints and kinked regularisers: the coordinate p of Theorem 2, whose density is integrated.

θ = Π(p), Π the proximal map of r + ι_C, and −a = Σ∇ℓ(θ) + S(θ − θ0) + p − θ. The losses are
exp(a'θ + c): slope and curvature grow without limit, and are bounded on C alone.
"""

import math

import numpy as np
import pytest
from scipy.stats import gamma

from cvxqop.privacy.linear.options import CalibratedLinear
from cvxqop.privacy.mechanism import Sensitivity
from cvxqop.privacy.wishart import ensemble as wishart


def ball(p):
    """The projection onto the unit ball, and its derivative."""
    size = np.linalg.norm(p, axis=1)[:, None, None]
    unit = p[:, :, None] / size
    across = (np.eye(p.shape[1]) - unit * unit.transpose(0, 2, 1)) / size
    inside = size <= 1.0
    theta = np.where(inside[:, :, 0], p, unit[:, :, 0])
    return theta, np.where(inside, np.eye(p.shape[1]), across)


def box(p):
    """That onto [−1, 1]^d."""
    return np.clip(p, -1.0, 1.0), np.eye(p.shape[1]) * (np.abs(p) < 1.0)[:, None, :]


def kinked_box(p):
    """The proximal map of 0.4 ‖θ‖₁ on [−1, 1]^d."""
    shrunk = np.sign(p) * np.maximum(np.abs(p) - 0.4, 0.0)
    moves = (np.abs(p) > 0.4) & (np.abs(p) < 1.4)
    return np.clip(shrunk, -1.0, 1.0), np.eye(p.shape[1]) * moves[:, None, :]


def conditional_density(p, proximal, records, S, scale, tilt=0.0):
    """p_a(−F_S(p)) det(MP + I − P): records (a, c), the anchor 0, a public linear term."""
    theta, P = proximal(p)
    gradient, M = p - theta + theta @ S + tilt, np.broadcast_to(S, P.shape).copy()
    for row, c in records:
        slope = np.exp(theta @ row + c)
        gradient = gradient + slope[:, None] * row
        M += slope[:, None, None] * np.outer(row, row)
    d = p.shape[1]
    log_p = -0.5 * (gradient**2).sum(axis=1) / scale**2
    return np.exp(log_p) / (2 * np.pi * scale**2) ** (d / 2) * np.linalg.det(M @ P + np.eye(d) - P)


def panels(*edges):
    """Gauss-Legendre points and weights between the edges, where densities jump."""
    nodes, weights = np.polynomial.legendre.leggauss(48)
    half = 0.5 * np.diff(edges)[:, None]
    return (np.array(edges[:-1])[:, None] + half * (1 + nodes)).ravel(), (half * weights).ravel()


def square(dimension, reach):
    """Points and weights of a square, panels ending where the boxes do."""
    t, w = panels(-reach, -8.0, -1.4, -1.0, -0.4, 0.4, 1.0, 1.4, 8.0, reach)
    axes, weights = (np.meshgrid(*[x] * dimension, indexing="ij") for x in (t, w))
    points = np.stack([axis.ravel() for axis in axes], axis=1)
    return points, np.prod([weight.ravel() for weight in weights], axis=0)


def disc(reach):
    """Points and weights in polar coordinates, a panel ending at the unit circle."""
    r, w = panels(0.0, 1.0, 4.0, 12.0, reach)
    angles = np.linspace(0.0, 2.0 * np.pi, 240, endpoint=False)
    circle = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    points = (r[:, None, None] * circle).reshape(-1, 2)
    return points, np.repeat(w * r, len(angles)) * (angles[1] - angles[0])


def sensitivity(dimension, adjacency, size, anchor=1.0):
    return Sensitivity(
        dimension=dimension, smoothness=size, anchor_gradient=anchor, quadratic=False,
        adjacency=adjacency, gradient=size,
    )  # fmt: skip


def divergence(p, q, weight, epsilon):
    return max(weight @ np.maximum(x - math.exp(epsilon) * y, 0.0) for x, y in ((p, q), (q, p)))


PLANES = {
    "ball": (ball, 1.0),
    "box": (box, math.sqrt(2.0)),
    "kinked box": (kinked_box, math.sqrt(2.0)),
}
NEIGHBOURS = {
    "add_remove": ([], [([0.6, 0.8], 0.0)]),
    "replace_one": ([([0.8, -0.6], 0.0)], [([0.6, 0.8], 0.0)]),
}


@pytest.mark.parametrize("tilt", [0.0, 26.0])
@pytest.mark.parametrize("adjacency", NEIGHBOURS)
@pytest.mark.parametrize("name", PLANES)
def test_linear_needs_its_constants_on_the_constraint_set(name, adjacency, tilt):
    """G = L = e^radius. Where a public term pulls θ to the boundary, G = 1 of the anchor fails."""
    proximal, radius = PLANES[name]
    points, weight = disc(40.0) if name == "ball" else square(2, 40.0)
    ridge, scale, pull = 20.0, 3.0, -tilt * np.array([0.6, 0.8])
    common = ([0.3, -0.2], 0.1)
    p, q = (
        conditional_density(
            points,
            proximal,
            [(np.array(row), c) for row, c in (common, *rows)],
            ridge * np.eye(2),
            scale,
            pull,
        )
        for rows in NEIGHBOURS[adjacency]
    )
    assert weight @ p == pytest.approx(1.0, abs=1e-8)
    assert weight @ q == pytest.approx(1.0, abs=1e-8)
    size = math.exp(radius)
    bounds = sensitivity(2, adjacency, size)
    claim, wrong = (CalibratedLinear(bounds, G, ridge, scale) for G in (size, 1.0))
    broken = False
    for epsilon in (0.1, 0.5, 1.0, 2.0):
        measured = divergence(p, q, weight, epsilon)
        assert measured <= float(claim.profile(epsilon)) * (1 + 1e-4) + 1e-8
        broken |= measured > 1.1 * float(wrong.profile(epsilon))
    assert broken or tilt == 0.0


@pytest.mark.parametrize("proximal", [box, kinked_box])
@pytest.mark.parametrize("guard", [2.0, 6.0])
def test_wishart_needs_its_constants_on_the_segments_only(proximal, guard):
    """d = 1 with a record added: L = e on [−1, 1] and G0 = 1 at the anchor."""
    sigma2, m = 1.5, 9.0
    nodes, weights = np.polynomial.legendre.leggauss(120)
    level = 0.5 * (nodes + 1.0)
    curvature = sigma2 * gamma.ppf(level, 0.5 * m, scale=2.0)
    points, weight = square(1, 12.0 * guard)
    densities = [
        sum(
            0.5 * w * conditional_density(points, proximal, rows, np.array([[s]]), guard)
            for w, s in zip(weights, curvature, strict=True)
        )
        for rows in ([(np.array([0.5]), 0.2)], [(np.array([0.5]), 0.2), (np.array([1.0]), 0.0)])
    ]
    for p in densities:
        assert weight @ p == pytest.approx(1.0, abs=1e-6)
    for epsilon in (0.05, 0.2, 0.5, 1.0):
        claim = float(
            wishart.profile(
                epsilon, math.e / sigma2, m, mu=1.0 / guard, quadratic=False, adjacency="add_remove"
            )
        )
        assert divergence(*densities, weight, epsilon) <= claim * (1 + 1e-3) + 1e-6
