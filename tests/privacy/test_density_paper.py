"""Calibration "paper": claimed profiles against output densities in one and two dimensions.

Records share the minimiser θ* (the anchor, or η away from it); a public linear term of the size of
the ridge moves the solution. log cosh has κ = 1.
"""

from dataclasses import replace

import numpy as np
import pytest
from densities import density_1d, density_2d, grid_1d, grid_2d, hockey_stick
from scipy.signal import fftconvolve

from cvxqop.privacy.mechanism import Sensitivity
from cvxqop.privacy.wishart.options import Wishart

EPSILONS = (0.0, 0.02, 0.05, 0.1, 0.25, 1.0)
DELTA = 0.05
PAIRS = {
    "add": ([[0.6, 0.3]], [[0.6, 0.3], [0.8, 0.6]]),
    "add alone": ([[0.0, 0.0]], [[0.8, 0.6]]),
    "replace orthogonal": ([[0.6, 0.3], [1.0, 0.0]], [[0.6, 0.3], [0.0, 1.0]]),
    "replace by zero": ([[0.5, 0.1], [0.6, 0.8]], [[0.5, 0.1], [0.0, 0.0]]),
}


def calibrated(dimension, name, quadratic, *, eta=0.0, accuracy=None, rank=1):
    adjacency = "replace_one" if name.startswith("replace") else "add_remove"
    bounds = Sensitivity(
        dimension, 1.0, eta, quadratic, adjacency, hessian_rank=rank, anchor_error=eta
    )
    return Wishart(calibration="paper").calibrate(1.0, DELTA, bounds, accuracy=accuracy)


def objective(u, rows, quadratic, tilt, centre=0.0):
    """Gradient and Hessian at u of Σ φ(a'(u − centre)) + tilt'u."""
    A = np.asarray(rows, dtype=float)
    t = np.outer(u - centre, A[:, 0]) if u.ndim == 1 else u @ A.T
    slope, curvature = (t, np.ones_like(t)) if quadratic else (np.tanh(t), 1 - np.tanh(t) ** 2)
    if u.ndim == 1:
        return slope @ A[:, 0] + tilt[0], curvature @ A[:, 0] ** 2
    return slope @ A + tilt, np.einsum("nr,ri,rj->nij", curvature, A, A)


def densities(mechanism, u, pair, quadratic, tilt, centre=0.0, shrink=1.0):
    noise = {
        "sigma2": mechanism.sigma2 / shrink,
        "m": mechanism.degrees_of_freedom,
        "guard": 0.0,
    }
    density = density_1d if u.ndim == 1 else density_2d
    return [density(u, *objective(u, rows, quadratic, tilt, centre), **noise) for rows in pair]


@pytest.mark.parametrize("quadratic", [True, False])
@pytest.mark.parametrize("dimension", [1, 2])
@pytest.mark.parametrize("name", PAIRS)
def test_never_exceeds_the_profile(name, dimension, quadratic):
    mechanism = calibrated(dimension, name, quadratic)
    tilt = -mechanism.mean_curvature * np.array([0.6, 0.8])
    u, weight = grid_1d() if dimension == 1 else grid_2d(low=-4.0, high=4.0)
    p, q = densities(mechanism, u, PAIRS[name], quadratic, tilt)
    assert weight @ p == pytest.approx(1.0, abs=2e-3)
    assert weight @ q == pytest.approx(1.0, abs=2e-3)
    measured = [max(hockey_stick(p, q, weight, e), hockey_stick(q, p, weight, e)) for e in EPSILONS]
    assert measured[-1] <= DELTA
    assert measured[1] > 1e-4  # something to exceed
    for epsilon, value in zip(EPSILONS, measured, strict=True):
        assert value <= float(mechanism.profile(epsilon)) * (1.0 + 1e-3) + 1e-7


def test_a_fiftieth_of_the_noise_is_caught():
    mechanism = calibrated(1, "add alone", True)
    tilt = -mechanism.mean_curvature / 50.0 * np.array([0.6, 0.8])
    u, weight = grid_1d()
    pair = ([[0.0]], [[1.0]])
    p, q = densities(mechanism, u, pair, True, tilt, shrink=50.0)
    assert max(hockey_stick(p, q, weight, 1.0), hockey_stick(q, p, weight, 1.0)) > 1.5 * DELTA


@pytest.mark.parametrize("quadratic", [True, False])
@pytest.mark.parametrize("name", ["add", "replace by zero"])
def test_an_anchor_that_is_off(name, quadratic):
    """The minimiser is η from the anchor, solves are off by Δ in opposite directions, then σ̃."""
    eta, accuracy = 0.02, 0.01
    mechanism = calibrated(1, name, quadratic, eta=eta, accuracy=accuracy)
    sigma = mechanism.release.scale
    assert mechanism.mu == pytest.approx(2.0 * mechanism.distance / sigma, rel=1e-12)
    tilt = -mechanism.mean_curvature * np.array([0.6, 0.8])
    reach = 3.0 + 9.0 * sigma
    u, du = np.linspace(-reach, reach, 60001, retstep=True)
    u = u + 0.25 * du
    centres = (eta, -eta)
    for centre in centres:
        smeared = []
        for p, sign in zip(
            densities(mechanism, u, PAIRS[name], quadratic, tilt, centre), (1, -1), strict=True
        ):
            assert p.sum() * du == pytest.approx(1.0, abs=2e-3)
            kernel = np.exp(-0.5 * ((np.arange(-30000, 30001) * du) / sigma) ** 2)
            shifted = np.roll(p, round(sign * accuracy / du))
            smeared.append(fftconvolve(shifted, kernel / kernel.sum(), mode="same"))
        weight = np.full_like(u, du)
        for epsilon in EPSILONS:
            value = max(
                hockey_stick(*smeared, weight, epsilon),
                hockey_stick(*smeared[::-1], weight, epsilon),
            )
            assert value <= float(mechanism.profile(epsilon)) * (1.0 + 1e-3) + 1e-7


def test_records_of_rank_two():
    """A record ½ u'Qu of rank two: ρ = 2, the solution alone is released."""
    mechanism = calibrated(2, "add", True, accuracy=1e-3, rank=2)
    assert not mechanism.exactly_accounted
    tilt = -mechanism.mean_curvature * np.array([0.6, 0.8])
    u, weight = grid_2d(low=-4.0, high=4.0)
    pair = [[[0.6, 0.3]], [[0.6, 0.3], [0.8, -0.6], [0.6, 0.8]]]
    exact = replace(mechanism, release=None)
    p, q = densities(mechanism, u, pair, True, tilt)
    for epsilon in EPSILONS:
        value = max(hockey_stick(p, q, weight, epsilon), hockey_stick(q, p, weight, epsilon))
        assert value <= float(exact.profile(epsilon)) * (1.0 + 1e-3) + 1e-7
