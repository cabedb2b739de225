"""The Gaussian ensemble for quadratic losses: accounting, shares, stages, draws."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from cvxqop.errors import CalibrationError, OptionError
from cvxqop.privacy.accounting.profile import gaussian_profile
from cvxqop.privacy.gaussian.calibrated import CalibratedGaussian
from cvxqop.privacy.gaussian.options import Gaussian
from cvxqop.privacy.grid import ENLARGED
from cvxqop.privacy.mechanism import Sensitivity
from cvxqop.privacy.noise import SeededNoise
from cvxqop.privacy.shares import gaussian_shares, quadratic_risk


def sensitivity(**changes):
    base = {
        "dimension": 10,
        "smoothness": 1.0,
        "anchor_gradient": 1.0,
        "quadratic": True,
        "adjacency": "add_remove",
        "offset": 1.0,
    }
    return Sensitivity(**{**base, **changes})


@given(
    st.floats(-3.0, 6.0).map(lambda t: 10.0**t),
    st.floats(-40.0, -0.31).map(lambda t: 10.0**t),
    st.integers(1, 3000),
    st.sampled_from(["replace_one", "add_remove"]),
    st.sampled_from([0.0, 0.1, 7.0]),
    st.integers(1, 4),
    st.sampled_from([None, 1e-4]),
)
@settings(max_examples=60, deadline=None)
def test_own_profile_is_delta_from_below(epsilon, delta, d, adjacency, gradient, stages, accuracy):
    s = sensitivity(dimension=d, adjacency=adjacency, anchor_gradient=gradient, offset=2.0)
    mechanism = Gaussian(stages=stages).calibrate(epsilon, delta, s, accuracy=accuracy)
    assert mechanism.profile(epsilon) <= delta
    assert mechanism.profile(epsilon) >= delta * (1.0 - 1e-6)
    assert mechanism.stages == (stages if gradient > 0.0 else 1)


# dp_accounting 0.6.0, dp_event.ComposedDpEvent of Gaussian events with noise multipliers s/Δ_E and
# s_j/Δ_j, pld.PLDAccountant(value_discretization_interval=1e-4).get_delta(1.0).
DP_ACCOUNTING = [
    # s, (s_1, ...), B', adjacency, delta
    (6.0, (5.0,), (), "add_remove", 6.0846160939685e-06),
    (4.0, (6.0, 2.0), (0.25,), "add_remove", 0.0001563189196933734),
    (9.0, (11.0,), (), "replace_one", 1.359615840151372e-06),
    (8.0, (12.0, 9.0, 4.0), (0.5, 0.25), "replace_one", 4.333277885889468e-05),
]


@pytest.mark.parametrize(("scale", "guards", "bounds", "adjacency", "delta"), DP_ACCOUNTING)
def test_against_dp_accounting(scale, guards, bounds, adjacency, delta):
    """F = G0 = B = 1; their discretisation errs upwards by about 1e-4 relative."""
    mechanism = CalibratedGaussian(sensitivity(adjacency=adjacency), scale, guards, bounds)
    assert float(mechanism.profile(1.0)) == pytest.approx(delta, rel=2e-3)


def test_privacy_loss_of_the_draw_itself():
    """The hockey-stick divergence of (S, a) and (S + E, a + b), estimated from `draw`.

    E is a rank-one Hessian less another, b its gradient: δ_G(ε; μ) with the μ of this very pair,
    by 40,000 seeded draws (six standard errors, false alarm 2e-9), never exceeds the claim. It
    shows that diagonal and off-diagonal entries have the variances that the Frobenius norm needs.
    """
    s = sensitivity(dimension=2, adjacency="replace_one")
    mechanism = Gaussian().calibrate(1.0, 1e-2, s)
    scale, guard = mechanism.scale, mechanism.guard_scale
    for x, y in itertools.product(([1.0, 0.0], [0.6, 0.8]), ([0.0, 1.0], [0.8, -0.6])):
        E = np.outer(x, x) - np.outer(y, y)
        b = np.array(x) + np.array(y)
        noise = SeededNoise(np.random.default_rng(11))
        draws = [mechanism.draw(noise) for _ in range(40_000)]
        S, a = np.array([r.curvature for r in draws]), np.array([r.guard for r in draws])
        Z = (((S + E) ** 2).sum(axis=(1, 2)) - (S**2).sum(axis=(1, 2))) / (2 * scale**2)
        Z += (((a + b) ** 2).sum(axis=1) - (a**2).sum(axis=1)) / (2 * guard**2)
        sample = np.maximum(0.0, -np.expm1(1.0 - Z))
        own = math.hypot(np.linalg.norm(E) / scale, np.linalg.norm(b) / guard)
        error = 6.0 * sample.std() / math.sqrt(len(sample))
        assert abs(sample.mean() - float(gaussian_profile(1.0, own))) <= error
        assert own <= mechanism.gdp_mu


def test_density_of_the_released_pair_in_one_dimension():
    """d = 1: (H̃, g̃) is a pair of normals; ∫(p − e^ε q)₊ by a grid equals the claim."""
    s = sensitivity(dimension=1, anchor_gradient=0.5)
    mechanism = Gaussian().calibrate(0.7, 1e-3, s)
    h, g = np.meshgrid(np.linspace(-9, 9, 1201), np.linspace(-9, 9, 1201), indexing="ij")
    area = (18.0 / 1200) ** 2
    for direction in (1.0, -1.0):
        shift = direction / mechanism.scale, direction * 0.5 / mechanism.guard_scale
        p = np.exp(-0.5 * (h**2 + g**2)) / (2 * np.pi)
        q = np.exp(-0.5 * ((h - shift[0]) ** 2 + (g - shift[1]) ** 2)) / (2 * np.pi)
        for epsilon in (0.1, 0.7, 1.2):
            measured = area * np.maximum(p - np.exp(epsilon) * q, 0.0).sum()
            assert measured == pytest.approx(float(mechanism.profile(epsilon)), rel=1e-3)


@pytest.mark.parametrize(("shift", "d", "radius"), [(1.0, 10, 1.0), (0.2, 100, 3.0), (5.0, 1, 0.5)])
def test_shares_minimise_the_surrogate(shift, d, radius):
    """Against a numerical minimiser on the constraint; half of the error of S counts."""

    def risk(share):
        s, guard = 1.0 / math.sqrt(share), shift / math.sqrt(1.0 - share)
        return quadratic_risk(s, guard, d, math.sqrt(0.5) * radius)

    found = minimize_scalar(risk, bounds=(1e-6, 1 - 1e-6), method="bounded")
    curvature, gradient = gaussian_shares(1.0, [shift], d, radius)
    assert curvature + gradient <= 1.0
    assert risk(curvature) <= found.fun * (1.0 + 1e-9)


def test_stages_by_hand():
    """F = 3, G0 = 6, B = 2, d = 10, D0 = 1: S gets 3√A/(3√A + 6√(kd)), A = 11/4, gradients √Δ_j."""
    s = sensitivity(anchor_gradient=6.0, offset=2.0, smoothness=3.0)
    mechanism = Gaussian(stages=3).calibrate(1.0, 1e-6, s)
    mu = mechanism.gdp_mu / ENLARGED  # of what is rounded to the grid
    assert mechanism.residual_bounds == (0.5, 0.4)
    root = math.sqrt(11.0 / 4.0)
    share = 3.0 * root / (3.0 * root + 6.0 * math.sqrt(30.0))
    assert (3.0 / mechanism.scale / mu) ** 2 == pytest.approx(share)
    shifts = np.array([6.0, 1.5, 1.2])
    spent = (shifts / np.array(mechanism.guard_scales) / mu) ** 2
    np.testing.assert_allclose(spent, (1.0 - share) * np.sqrt(shifts) / np.sqrt(shifts).sum())
    fixed = Gaussian(stages=3, residual_bound=0.7).calibrate(1.0, 1e-6, s)
    assert fixed.residual_bounds == (0.7, 0.7)


def test_levels_of_the_repair():
    """s√(2d) with the usual shares; the gradients' noise where S has most of the privacy."""
    s = sensitivity(anchor_gradient=6.0, offset=2.0, smoothness=3.0)
    usual = Gaussian(stages=2).calibrate(1.0, 1e-6, s)
    edge = usual.scale * math.sqrt(20.0)
    assert usual.noise_edge == pytest.approx(edge)
    assert (usual.level(0), usual.level(1)) == pytest.approx((edge, 0.5 * edge))
    uneven = Gaussian(stages=2, shares=(0.9, 0.05, 0.05)).calibrate(1.0, 1e-6, s)
    steps = np.array(uneven.guard_scales) / np.array([6.0 / 3.0, 0.25 * 6.0 / 3.0])
    expected = 1.3 * math.sqrt(10.0) * steps * [1.0, 0.5]
    np.testing.assert_allclose([uneven.level(0), uneven.level(1)], expected)
    assert uneven.level(0) > uneven.noise_edge
    free = Gaussian().calibrate(1.0, 1e-6, sensitivity(anchor_gradient=0.0))
    assert free.level() == free.noise_edge


@given(
    st.integers(1, 8), st.integers(1, 6), st.sampled_from(["floor", "ridge"]), st.integers(0, 99)
)
@settings(max_examples=40, deadline=None)
@pytest.mark.blas
def test_repair_is_positive_definite_and_vanishes_with_the_noise(d, stages, curvature, seed):
    """ε = 10⁻³ gives finite answers near the anchor, ε = 10⁶ gives H itself."""
    rng = np.random.default_rng(seed)
    root = rng.standard_normal((2 * d, d))
    gram, s = root.T @ root, sensitivity(dimension=d)
    H = 0.5 * (gram + gram.T) + np.eye(d)
    for epsilon in (1e-3, 1.0, 1e6):
        mechanism = Gaussian(curvature, stages).calibrate(epsilon, 1e-6, s)
        draw = mechanism.draw(SeededNoise(rng))
        for stage in range(stages):
            gradients = [H @ np.ones(d) + guard for guard in draw.guards[: stage + 1]]
            found = mechanism.repair(H + draw.curvature, gradients)
            assert np.array_equal(found, found.T)
            level = mechanism.level(stage)
            assert np.linalg.eigvalsh(found)[0] >= level * (1.0 - 1e-9)
            assert np.isfinite(np.linalg.solve(found, gradients[-1])).all()
            if epsilon == 1e6:
                np.testing.assert_allclose(found, H, atol=0.1)


def test_given_shares_and_frobenius_norm():
    s = sensitivity(hessian_rank=4, frobenius=1.5, adjacency="replace_one")
    mechanism = Gaussian(shares=(0.3, 0.7)).calibrate(2.0, 1e-5, s)
    mu = mechanism.gdp_mu / ENLARGED  # of what is rounded to the grid
    assert (math.sqrt(2.0) * 1.5 / mechanism.scale / mu) ** 2 == pytest.approx(0.3)
    assert (2.0 / mechanism.guard_scale / mu) ** 2 == pytest.approx(0.7)
    by_rank = Gaussian(shares=(0.3, 0.7)).calibrate(2.0, 1e-5, sensitivity(hessian_rank=4))
    share = (math.sqrt(4.0) / by_rank.scale / by_rank.gdp_mu * ENLARGED) ** 2
    assert share == pytest.approx(0.3)


def test_excess_risk_bound_holds():
    """Mean gap of ridge regression by 4,000 seeded draws, floor and ridge, below the bound."""
    rng = np.random.default_rng(2)
    d = 4
    s = sensitivity(dimension=d)
    for n, curvature in itertools.product((3, 300), ("floor", "ridge")):
        X = rng.standard_normal((n, d))
        H = X.T @ X / d + 0.1 * np.eye(d)
        target = rng.standard_normal(d)
        target /= np.linalg.norm(target)
        mechanism = Gaussian(curvature=curvature).calibrate(1.0, 1e-4, s)
        noise, gaps = SeededNoise(rng), []
        for _ in range(1000):
            draw = mechanism.draw(noise)
            repaired = mechanism.repair(H + draw.curvature, [draw.guard - H @ target])
            assert np.linalg.eigvalsh(repaired)[0] >= mechanism.noise_edge * (1 - 1e-9)
            error = np.linalg.solve(repaired, H @ target - draw.guard) - target
            gaps.append(0.5 * error @ H @ error)
        assert np.mean(gaps) <= mechanism.excess_risk_bound(1.0)
        h = mechanism.noise_edge
        assert mechanism.predicted_risk(1.0, h) < mechanism.excess_risk_bound(1.0)


def test_draw_is_symmetric_with_the_right_moments():
    s = sensitivity(dimension=3)
    mechanism = Gaussian(stages=2).calibrate(1.0, 1e-6, s)
    noise = SeededNoise(np.random.default_rng(1))
    draws = [mechanism.draw(noise) for _ in range(4000)]
    S = np.array([draw.curvature for draw in draws])
    assert np.array_equal(S, S.transpose(0, 2, 1))
    variance = S.var(axis=0) / mechanism.scale**2
    expected = 0.5 + 0.5 * np.eye(3)
    assert np.abs(variance / expected - 1.0).max() < 6.0 * math.sqrt(2.0 / 4000)
    for stage in range(2):
        guards = np.array([draw.guards[stage] for draw in draws])
        ratio = guards.var() / mechanism.guard_scales[stage] ** 2
        assert abs(ratio - 1.0) < 6.0 * math.sqrt(2.0 / 12000)
    assert np.array_equal(draws[0].guard, draws[0].guards[0])


def test_refusals():
    with pytest.raises(OptionError, match="curvature"):
        Gaussian(curvature="none")
    with pytest.raises(OptionError, match="stages"):
        Gaussian(stages=0)
    with pytest.raises(OptionError, match="residual_bound"):
        Gaussian(stages=2, residual_bound=0.0)
    with pytest.raises(OptionError, match=r"add up to 1, not to 0\.9"):
        Gaussian(shares=(0.5, 0.4))
    with pytest.raises(OptionError, match="3 numbers"):
        Gaussian(stages=2, shares=(0.5, 0.5))
    with pytest.raises(CalibrationError, match="residual"):
        Gaussian(stages=2).calibrate(1.0, 1e-6, sensitivity(offset=None))
    with pytest.raises(CalibrationError, match="stages"):
        Gaussian(stages=2).calibrate(1.0, 1e-6, sensitivity(quadratic=False))
    assert Gaussian(stages=2).calibrate(1.0, 1e-6, sensitivity()).excess_risk_bound(1) == math.inf


def test_descriptions_hold_public_numbers_only():
    mechanism = Gaussian(stages=2).calibrate(1.0, 1e-6, sensitivity(), accuracy=1e-6)
    described = mechanism.describe()
    assert described["mu"] == mechanism.gdp_mu
    assert described["release_scale"] == mechanism.release.scale
    assert all(len(pair) == 2 for pair in mechanism.summary())
    assert mechanism.mean_curvature == 0.0
