"""Wishart(curvature="floor"): E S subtracted, eigenvalues raised to the noise edge (theory §6)."""

import math

import numpy as np
import pytest

from cvxqop.errors import CalibrationError
from cvxqop.privacy.gaussian.options import Gaussian
from cvxqop.privacy.mechanism import Sensitivity
from cvxqop.privacy.noise import SeededNoise
from cvxqop.privacy.shares import centred_risk, repair_risk
from cvxqop.privacy.wishart.options import Wishart

pytestmark = pytest.mark.blas


def bounds(**changes):
    base = {
        "dimension": 10,
        "smoothness": 1.0,
        "anchor_gradient": 1.0,
        "quadratic": True,
        "adjacency": "add_remove",
    }
    return Sensitivity(**{**base, **changes})


def floor(epsilon, delta, sensitivity, **options):
    return Wishart(curvature="floor", **options).calibrate(epsilon, delta, sensitivity)


@pytest.mark.parametrize(
    ("epsilon", "delta", "dimension", "adjacency", "gradient"),
    [
        (1e-3, 1e-300, 300, "add_remove", 7.0),
        (1e-3, 1e-6, 1, "replace_one", 0.0),
        (1.0, 1e-12, 2000, "replace_one", 0.1),
        (8.0, 0.3, 10, "add_remove", 1.0),
        (1e6, 1e-300, 10, "add_remove", 0.0),
        (1e6, 1e-6, 10, "add_remove", 1.0),
    ],
)
def test_own_profile_is_at_most_delta(epsilon, delta, dimension, adjacency, gradient):
    s = bounds(dimension=dimension, adjacency=adjacency, anchor_gradient=gradient)
    mechanism = floor(epsilon, delta, s)
    assert float(mechanism.profile(epsilon)) <= delta
    assert mechanism.noise_edge >= mechanism.sigma2 * dimension
    assert math.isfinite(mechanism.excess_risk_bound(1.0))
    for curvature in (0.1, 1.0, 100.0):
        h = curvature * mechanism.noise_edge
        assert mechanism.predicted_risk(1.0, h) <= mechanism.excess_risk_bound(1.0)


@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_it_becomes_the_gaussian_ensemble(epsilon, adjacency):
    """As ν grows s = σ²√(2m), the edge and the predicted risk become those of the other."""
    s = bounds(adjacency=adjacency)
    gaussian = Gaussian().calibrate(epsilon, 1e-6, s)
    h = 2.0 * gaussian.noise_edge
    risks = []
    for m in (100.0, 1_000.0, 10_000.0, None):
        mechanism = floor(epsilon, 1e-6, s, degrees_of_freedom=m)
        risks.append(mechanism.predicted_risk(1.0, h))
    assert risks == sorted(risks, reverse=True)
    scale = mechanism.sigma2 * math.sqrt(2.0 * mechanism.degrees_of_freedom)
    assert scale == pytest.approx(gaussian.scale, rel=0.08)
    assert mechanism.noise_edge == pytest.approx(gaussian.noise_edge, rel=0.08)
    assert risks[-1] == pytest.approx(gaussian.predicted_risk(1.0, h), rel=0.06)


def test_guardless_scale_approaches_the_gaussian_one():
    """Without guard s is fixed by (ε, δ): 1/μ of the Gaussian mechanism, reached from above."""
    s = bounds(anchor_gradient=0.0)
    gaussian = Gaussian().calibrate(1.0, 1e-6, s).scale
    scales = []
    for m in (1e3, 1e4, 1e5, 1e6):
        mechanism = floor(1.0, 1e-6, s, degrees_of_freedom=m)
        scales.append(mechanism.sigma2 * math.sqrt(2.0 * m))
    assert scales == sorted(scales, reverse=True)
    assert 1.0 < scales[-1] / gaussian < 1.005


def test_repair():
    """H̃ − σ²mI with eigenvalues at the edge or above; eigenvectors kept."""
    mechanism = floor(1.0, 1e-6, bounds(dimension=4), degrees_of_freedom=9.0)
    edge = mechanism.sigma2 * (2.0 * math.sqrt(36.0) - 4.0)
    assert mechanism.noise_edge == pytest.approx(edge, rel=1e-14)
    assert mechanism.mean_curvature == 0.0
    mean = 9.0 * mechanism.sigma2
    values = np.array([mean - 5.0, mean + 0.5 * edge, mean + 2.0 * edge, mean + 3.0 * edge])
    Q = np.linalg.qr(np.random.default_rng(0).standard_normal((4, 4)))[0]
    H = (Q * values) @ Q.T
    repaired = mechanism.repair(0.5 * (H + H.T), [])
    expected = (Q * np.maximum(values - mean, edge)) @ Q.T
    np.testing.assert_allclose(repaired, expected, rtol=1e-9, atol=1e-9 * mean)
    assert np.array_equal(repaired, repaired.T)
    ridge = Wishart().calibrate(1.0, 1e-6, bounds(dimension=4))
    lost = 4 * ridge.grids[0].spacing  # what rounding to the grid can take from an eigenvalue
    assert lost <= 2.0**-20
    np.testing.assert_array_equal(ridge.repair(H, []), H + lost * np.eye(4))


@pytest.mark.parametrize("m", [13.0, 40.5, 4000.0])
def test_risk_bound_holds_in_simulation(m):
    """Mean of the gap over 400 draws, for a random quadratic: below the bound (it is crude)."""
    d = 10
    s = bounds(dimension=d)
    mechanism = floor(2.0, 1e-6, s, degrees_of_freedom=m)
    rng = np.random.default_rng(1)
    H = np.diag(mechanism.noise_edge * np.geomspace(0.01, 10.0, d))
    best = rng.standard_normal(d)
    best /= np.linalg.norm(best)
    gaps = []
    for _ in range(400):
        draw = mechanism.draw(SeededNoise(rng))
        hessian = mechanism.repair(H + draw.curvature, [])
        u = -np.linalg.solve(hessian, -H @ best + draw.guard)
        gaps.append(0.5 * (u - best) @ H @ (u - best))
    assert np.mean(gaps) < mechanism.excess_risk_bound(1.0)


def test_centred_risk_approaches_that_of_the_gaussian_ensemble():
    """From above, for m ≫ d ≫ 1."""
    ratios = []
    for d in (1, 100, 10_000):
        m, guard = 1e16, 0.7
        sigma2 = 3.0 / math.sqrt(2.0 * m)
        edge = sigma2 * (2.0 * math.sqrt(m * d) - d)
        bound = centred_risk(
            sigma2=sigma2, degrees_of_freedom=m, edge=edge, guard_scale=guard, dimension=d,
            radius=2.0,
        )  # fmt: skip
        ratios.append(bound / repair_risk(3.0, guard, d, 2.0))
    assert 1.0 < ratios[2] < 1.02 < ratios[1] < ratios[0] < 2.0


@pytest.mark.parametrize(
    ("sensitivity", "accuracy", "words"),
    [
        (bounds(quadratic=False), 1e-6, "squared losses"),
        (bounds(), 1e-6, "works on the records"),
        (bounds(hessian_rank=2), None, "one row"),
    ],
)
def test_refusals(sensitivity, accuracy, words):
    with pytest.raises(CalibrationError, match=words):
        Wishart(curvature="floor").calibrate(1.0, 1e-6, sensitivity, accuracy=accuracy)
