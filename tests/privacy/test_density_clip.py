"""LOP-Clip: the claimed profile against integrated output densities of clipped losses.

With S = μI the output u determines the linear term, b = −(∇J(u) + μu), so that its density is
p_b(b) det(∇²J(u) + μI), and no integral is left. Slopes and curvatures are the library's.
"""

import numpy as np
import pytest
from densities import hockey_stick

from cvxqop.privacy.linear.options import CalibratedLinear
from cvxqop.privacy.mechanism import Sensitivity
from cvxqop.problem.losses.cut_loss import CutLoss
from cvxqop.problem.losses.scalar import ScalarLoss, squared
from cvxqop.problem.records.clipping import ClippedRows
from cvxqop.problem.records.cut_rows import CutRows
from cvxqop.problem.records.rows import ArrayRows

LOG_COSH = ScalarLoss(
    "log-cosh",
    value=lambda t: np.logaddexp(t, -t) - np.log(2.0),
    derivative=np.tanh,
    second_derivative=lambda t: 1 / np.cosh(t) ** 2,
    curvature=1.0,
    slope=1.0,
    even=True,
)
LOSSES = {"log-cosh": LOG_COSH, "squared": squared}
ZETA, WEIGHT = 0.4, 0.7
EPSILONS = (0.1, 0.5, 1.0, 2.0)
# Rows of norm ≤ 1, oblique to the grid: L = κ · weight. Offsets, which LOP-Clip needs no bound on.
A, B, SHORT = [0.96, 0.28], [0.5, 0.5], [0.2, 0.1]
PAIRS = {
    "add": ([[0.0, 0.0]], [0.0], [[0.6, 0.8]], [0.3]),
    "add a short row": ([A], [0.4], [A, [-0.3, 0.1]], [0.4, 9.0]),
    "replace opposite": ([[0.8, 0.6], B], [3.0, 0.0], [[-0.8, -0.6], B], [3.0, 0.0]),
    "replace orthogonal": ([A, B], [1.0, 0.0], [[-0.28, 0.96], B], [-1.0, 0.0]),
    "replace by a short row": ([A], [-0.5], [SHORT], [2.0]),
}


def density(points, loss, rows, offsets, tilt, ridge, scale):
    """p(u) at points (N, d)."""
    d = points.shape[1]
    A, c = np.asarray(rows)[:, :d], np.asarray(offsets)[:, None]
    clipped = ClippedRows(ArrayRows(A, c), 1.0, None, 100.0)
    A, columns = CutRows(clipped, [WEIGHT], ZETA).take(0, len(A))
    cut = CutLoss((loss,), WEIGHT * loss.curvature)
    b = -(tilt * np.array([0.6, 0.8])[:d] + ridge * points)
    H = np.repeat(ridge * np.eye(d)[None], len(points), axis=0)
    for a, numbers in zip(A, columns, strict=True):
        C = np.broadcast_to(numbers, (len(points), len(numbers)))
        slope = cut.values(points @ a, C)[1]
        assert np.abs(slope).max() * np.linalg.norm(a) <= ZETA
        b -= slope[:, None] * a
        H += cut.second_derivative(points @ a, C)[:, None, None] * np.outer(a, a)
    p = np.exp(-0.5 * (b**2).sum(axis=1) / scale**2)
    return p * np.linalg.det(H) / (2.0 * np.pi * scale**2) ** (d / 2)


def grid(dimension, reach):
    size = 40001 if dimension == 1 else 501
    t = np.linspace(-reach, reach, size)
    axes = np.meshgrid(*[t] * dimension, indexing="ij")
    points = np.stack([axis.ravel() for axis in axes], axis=1)
    return points, np.full(len(points), (t[1] - t[0]) ** dimension)


def measured(name, loss, dimension, tilt, ridge, scale):
    """Divergences of the densities of a pair, and the claim, at each ε."""
    rows, offsets, rows2, offsets2 = PAIRS[name]
    points, weight = grid(dimension, (8.0 * scale + 1.3 + 2.0 * ZETA) / ridge)
    p = density(points, loss, rows, offsets, tilt, ridge, scale)
    q = density(points, loss, rows2, offsets2, tilt, ridge, scale)
    assert weight @ p == pytest.approx(1.0, abs=1e-3)
    assert weight @ q == pytest.approx(1.0, abs=1e-3)
    return [max(hockey_stick(p, q, weight, e), hockey_stick(q, p, weight, e)) for e in EPSILONS]


def claim(name, loss, dimension, ridge, scale):
    sensitivity = Sensitivity(
        dimension=dimension,
        smoothness=WEIGHT * loss.curvature,
        anchor_gradient=1.0,
        quadratic=loss.quadratic,
        adjacency="replace_one" if name.startswith("replace") else "add_remove",
    )
    return CalibratedLinear(sensitivity, ZETA, ridge, scale, clip=ZETA)


@pytest.mark.parametrize("tilt", [0.0, 1.3])
@pytest.mark.parametrize("dimension", [1, 2])
@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
@pytest.mark.parametrize("name", PAIRS)
def test_never_exceeds_the_profile(name, loss, dimension, tilt):
    ridge, scale = 3.0 * loss.curvature, 0.5
    found = measured(name, loss, dimension, tilt, ridge, scale)
    bounds = claim(name, loss, dimension, ridge, scale).profile(EPSILONS)
    # Kinks of the slope leave an error of the grid.
    assert np.all(found <= bounds * (1.0 + 1e-3) + (1e-6 if dimension == 1 else 1e-4))


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
def test_half_the_noise_is_caught(loss):
    ridge, scale = 3.0 * loss.curvature, 0.5
    found = measured("replace opposite", loss, 1, 0.0, ridge, scale / 2.0)
    bounds = claim("replace opposite", loss, 1, ridge, scale).profile(EPSILONS)
    assert np.any(found > 1.2 * bounds)
