"""The Gaussian ensemble with a floor: tail of its spectrum, densities for log cosh, calibration."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr

from cvxqop.errors import CalibrationError
from cvxqop.privacy.accounting.oscillator import edge, eigenvalue_tail, log_density, simple_tail
from cvxqop.privacy.accounting.profile import gaussian_profile
from cvxqop.privacy.gaussian.options import Gaussian
from cvxqop.privacy.gaussian.symmetric import symmetric_noise
from cvxqop.privacy.gaussian.truncated import CalibratedTruncatedGaussian, shift_profile
from cvxqop.privacy.mechanism import Sensitivity
from cvxqop.privacy.noise import SeededNoise

SQUARE_POINTS, SQUARE_WEIGHTS = np.polynomial.legendre.leggauss(400)


def sensitivity(**changes):
    base = {
        "dimension": 5,
        "smoothness": 1.0,
        "anchor_gradient": 1.0,
        "quadratic": False,
        "adjacency": "add_remove",
    }
    return Sensitivity(**{**base, **changes})


def mehta(x, d):
    """ρ_d(x) by the whole formula, in 40 digits."""
    with mpmath.workdps(40):
        x = mpmath.mpf(x)

        def phi(j, t):
            log_norm = (mpmath.loggamma(j + 1) + j * mpmath.log(2) + mpmath.log(mpmath.pi) / 2) / 2
            return mpmath.hermite(j, t) * mpmath.exp(-t * t / 2 - log_norm)

        total = sum(phi(j, x) ** 2 for j in range(d))
        right = mpmath.quad(lambda t: phi(d, t), [x, x + 2, x + 8, x + 30])
        parts = [-12 - math.sqrt(2 * d), 0, 12 + math.sqrt(2 * d)]
        whole = mpmath.quad(lambda t: phi(d, t), parts) if d % 2 == 0 else 0
        total += mpmath.sqrt(mpmath.mpf(d) / 2) * phi(d - 1, x) * (whole / 2 - right)
        if d % 2 == 1:
            total += phi(d - 1, x) / mpmath.quad(lambda t: phi(d - 1, t), parts)
        return total


@pytest.mark.parametrize("d", [1, 2, 3, 6, 11])
def test_density_is_mehtas_from_above(d):
    for distance, width in ((0.3, 0.25), (1.5, 0.02), (4.0, 1e-4)):
        x = edge(d) + distance
        exact = float(mehta(x, d))
        bound = float(np.exp(log_density(np.array([x]), d))[0])
        assert exact <= bound <= exact * (1.0 + width)


def test_density_of_a_large_matrix():
    """d = 300 against 60-digit recurrences of the same formula."""
    d, x = 300, 26.0
    with mpmath.workdps(60):
        t = mpmath.mpf(x)
        before, phi = mpmath.mpf(0), mpmath.pi ** mpmath.mpf(-0.25) * mpmath.exp(-t * t / 2)
        total = mpmath.mpf(0)
        for j in range(d):
            total += phi**2
            last = phi
            before, phi = (
                phi,
                mpmath.sqrt(mpmath.mpf(2) / (j + 1)) * t * phi
                - mpmath.sqrt(mpmath.mpf(j) / (j + 1)) * before,
            )
        weight = mpmath.sqrt(2) * mpmath.pi ** mpmath.mpf("0.25") * mpmath.sqrt(mpmath.factorial(d))
        weight /= mpmath.mpf(2) ** (d // 2) * mpmath.factorial(d // 2)
        total += last * mpmath.sqrt(mpmath.mpf(d) / 2) * weight / 2
        exact = float(mpmath.log(total))
    assert float(log_density(np.array([x]), d)[0]) == pytest.approx(exact, abs=1e-10)


@pytest.mark.parametrize("t", [2.5, 4.0, 9.0, 30.0])
def test_tail_in_one_and_two_dimensions(t):
    """d = 1: the normal tail. d = 2: λ_max = (x+y)/2 + |…|, by quadrature over the radius."""
    assert ndtr(-t) <= eigenvalue_tail(t, 1) <= ndtr(-t) * (1 + 2 * math.exp(-t * t / 2) + 1e-8)
    # λ_max = u + R with u ~ N(0, ½) and R² = v² + N_12², both N(0, ½): R Rayleigh of scale √½.
    R = 0.5 * (t + 25.0) * (SQUARE_POINTS + 1.0)
    density = 2.0 * R * np.exp(-(R**2))
    exact = float(SQUARE_WEIGHTS @ (density * ndtr(-(t - R) * math.sqrt(2.0)))) * 0.5 * (t + 25.0)
    bound = eigenvalue_tail(t, 2)
    assert exact * (1 - 1e-9) <= bound <= exact * 1.02 or t < edge(2) + 0.5
    assert bound >= exact * (1 - 1e-9)


@pytest.mark.parametrize("d", [3, 20])
def test_tail_by_sampling(d):
    """20,000 seeded spectra; six standard errors (false alarm 2e-9), and tight where small."""
    noise = SeededNoise(np.random.default_rng(4))
    largest = np.array([np.linalg.eigvalsh(symmetric_noise(noise, d))[-1] for _ in range(20_000)])
    for t in edge(d) + np.array([0.0, 0.4, 0.8]):
        bound = eigenvalue_tail(float(t), d)
        measured = (largest > t).mean()
        error = 6.0 * math.sqrt(bound / 20_000)
        assert measured <= bound + error
        assert bound <= 1.25 * measured + error
        part = eigenvalue_tail(float(t), d, float(t) + 0.3)
        assert ((largest > t) & (largest <= t + 0.3)).mean() <= part + error


def test_tail_is_below_the_simple_bound_and_monotone():
    for d in (1, 10, 500, 2000):
        t = edge(d) + np.linspace(0.0, 12.0, 25)
        values = [eigenvalue_tail(float(x), d) for x in t]
        assert all(v <= simple_tail(float(x), d) for v, x in zip(values, t, strict=True))
        assert np.all(np.diff(values) < 0.0)
        inside = eigenvalue_tail(float(t[3]), d, float(t[4]))
        assert inside == pytest.approx(values[3] - values[4], rel=1e-6)
    assert eigenvalue_tail(80.0, 3000) == pytest.approx(simple_tail(80.0, 3000))


def shift_exact(epsilon, mu_e, mu_a):
    """E[δ_G(ε − max(0, Z); μ_a)] in 25 digits."""
    with mpmath.workdps(25):
        e, m, a = mpmath.mpf(epsilon), mpmath.mpf(mu_e), mpmath.mpf(mu_a)

        def integrand(g):
            x = e - max(0, m * g + m * m / 2)
            delta = mpmath.ncdf(a / 2 - x / a) - mpmath.exp(x) * mpmath.ncdf(-a / 2 - x / a)
            return mpmath.npdf(g) * delta

        centre = e / m - m / 2
        points = {-30, -m / 2, 0, 8, 30} | {centre + s * a / m for s in (-12, -3, 0, 3, 12)}
        return float(mpmath.quad(integrand, sorted(p for p in points if -30 <= p <= 30)))


@pytest.mark.parametrize(("mu_e", "mu_a"), [(0.3, 0.2), (1.0, 0.05), (0.05, 0.5), (2.0, 1.0)])
@pytest.mark.parametrize("epsilon", [-0.5, 0.1, 1.0, 3.0])
def test_shift_profile(mu_e, mu_a, epsilon):
    exact = shift_exact(epsilon, mu_e, mu_a)
    value = float(shift_profile(epsilon, mu_e, mu_a, "add_remove"))
    assert exact * (1 - 1e-10) <= value <= exact * (1 + 1e-8) + 1e-14


def test_shift_profile_without_guard():
    for epsilon in (0.0, 0.5, 2.0):
        value = float(shift_profile(epsilon, 0.7, 0.0, "add_remove"))
        assert value == pytest.approx(float(gaussian_profile(epsilon, 0.7)))
    small = float(shift_profile(-0.4, 0.7, 1e-9, "add_remove"))
    assert float(shift_profile(-0.4, 0.7, 0.0, "add_remove")) == pytest.approx(small, rel=1e-7)


def output_density(u, rows, offsets, tilt, mechanism):
    """d = 1: p(u) = ∫ p_S(s) p_a(−J'(u) − s u) (J''(u) + s) ds, s ~ N(μ, s²) above c0."""
    a, c = np.asarray(rows, dtype=float), np.asarray(offsets, dtype=float)
    t = np.tanh(np.outer(u, a) + c)
    gradient, hessian = t @ a + tilt, (1.0 - t**2) @ a**2
    low = mechanism.floor
    top = max(mechanism.ridge + 12.0 * mechanism.scale, low + mechanism.scale)
    s = low + 0.5 * (top - low) * (SQUARE_POINTS + 1.0)
    p_s = np.exp(-0.5 * ((s - mechanism.ridge) / mechanism.scale) ** 2)
    p_s *= 0.5 * (top - low) * SQUARE_WEIGHTS
    p_s /= p_s.sum()
    noise = -gradient[:, None] - np.outer(u, s)
    p_a = np.exp(-0.5 * (noise / mechanism.guard_scale) ** 2)
    p_a /= mechanism.guard_scale * math.sqrt(2.0 * math.pi)
    return (p_a * (hessian[:, None] + s)) @ p_s


PAIRS = [
    ("add_remove", ([0.0], [0.0]), ([1.0], [0.3])),
    ("add_remove", ([0.6], [1.0]), ([0.6, -1.0], [1.0, 2.0])),
    ("add_remove", ([0.0], [0.0]), ([1.0], [0.0])),
    ("replace_one", ([1.0, 0.5], [3.0, 0.0]), ([-1.0, 0.5], [3.0, 0.0])),
    ("replace_one", ([1.0], [-0.5]), ([0.7], [2.0])),
    ("replace_one", ([1.0], [0.0]), ([0.0], [0.0])),
]


@pytest.mark.parametrize(("adjacency", "first", "second"), PAIRS)
@pytest.mark.parametrize("tilt", [0.0, 2.5])
@pytest.mark.parametrize(("scale", "ridge", "guard"), [(0.5, 3.5, 3.0), (1.0, 4.0, 2.0)])
def test_density_never_exceeds_the_profile(adjacency, first, second, tilt, scale, ridge, guard):
    """log cosh: κ = 1, slope ≤ 1 at the anchor 0; L = G0 = 1. The floor is active in the second."""
    mechanism = CalibratedTruncatedGaussian(
        sensitivity(dimension=1, adjacency=adjacency),
        scale=scale, ridge=ridge, floor=1.2, guard_scale=guard,
    )  # fmt: skip
    u = np.linspace(-16.0, 16.0, 6001)
    area = u[1] - u[0]
    p, q = (output_density(u, *data, tilt, mechanism) for data in (first, second))
    assert area * p.sum() == pytest.approx(1.0, abs=1e-4)
    assert area * q.sum() == pytest.approx(1.0, abs=1e-4)
    for epsilon in (0.1, 0.5, 1.0, 2.0):
        measured = max(
            area * np.maximum(x - np.exp(epsilon) * y, 0.0).sum() for x, y in ((p, q), (q, p))
        )
        assert measured <= float(mechanism.profile(epsilon)) + 1e-6


def test_a_smaller_guard_is_caught_by_the_density():
    """The same comparison refutes the claim when the guard is a quarter of what it should be."""
    s = sensitivity(dimension=1)
    claimed = CalibratedTruncatedGaussian(s, scale=4.0, ridge=30.0, floor=10.0, guard_scale=4.0)
    broken = CalibratedTruncatedGaussian(s, scale=4.0, ridge=30.0, floor=10.0, guard_scale=1.0)
    u = np.linspace(-16.0, 16.0, 6001)
    p, q = (output_density(u, [a], [5.0], 0.0, broken) for a in (0.0, 1.0))
    measured = (u[1] - u[0]) * np.maximum(p - np.exp(0.5) * q, 0.0).sum()
    assert measured > 1.2 * float(claimed.profile(0.5))


@given(
    st.floats(-3.0, 5.0).map(lambda t: 10.0**t),
    st.floats(-40.0, -1.0).map(lambda t: 10.0**t),
    st.integers(1, 60),
    st.sampled_from(["replace_one", "add_remove"]),
    st.sampled_from([0.0, 0.5]),
    st.sampled_from([None, 1e-5]),
)
@settings(max_examples=20, deadline=None)
def test_own_profile_is_at_most_delta(epsilon, delta, d, adjacency, gradient, accuracy):
    s = sensitivity(dimension=d, adjacency=adjacency, anchor_gradient=gradient, smoothness=0.25)
    mechanism = Gaussian().calibrate(epsilon, delta, s, accuracy=accuracy)
    assert delta * 0.5 <= mechanism.profile(epsilon) <= delta
    assert mechanism.rejection <= 0.75
    assert mechanism.excess_risk_bound(1.0) >= 0.5 * mechanism.ridge
    assert (mechanism.guard_scale > 0.0) == (gradient > 0.0)


@pytest.mark.parametrize("d", [2000, 2001])
def test_large_dimension(d):
    """Both sides of the change from the density to the simple bound."""
    s = sensitivity(dimension=d, smoothness=0.25, anchor_gradient=0.5)
    mechanism = Gaussian().calibrate(1.0, 1e-6, s, accuracy=1e-6)
    assert 0.99e-6 <= mechanism.profile(1.0) <= 1e-6
    assert mechanism.ridge > mechanism.scale * math.sqrt(2.0 * d)


def test_units():
    one = Gaussian().calibrate(1.0, 1e-6, sensitivity())
    many = Gaussian().calibrate(1.0, 1e-6, sensitivity(smoothness=1e4, anchor_gradient=1e4))
    for name in ("scale", "ridge", "floor", "guard_scale"):
        assert getattr(many, name) == pytest.approx(1e4 * getattr(one, name), rel=1e-6)


def test_draw_respects_the_floor():
    """A floor that rejects about a third of the draws; E S is a multiple of I, above μ."""
    mechanism = CalibratedTruncatedGaussian(
        sensitivity(dimension=3), scale=1.0, ridge=3.2, floor=1.5, guard_scale=2.0
    )
    noise = SeededNoise(np.random.default_rng(0))
    draws = [mechanism.draw(noise) for _ in range(3000)]
    S = np.array([draw.curvature for draw in draws])
    assert np.linalg.eigvalsh(S).min() >= 1.5
    assert np.allclose(draws[0].factor @ draws[0].factor.T, S[0])
    mean = S.mean(axis=0)
    assert np.abs(mean - np.trace(mean) / 3 * np.eye(3)).max() < 6.0 / math.sqrt(3000)
    assert np.trace(mean) / 3 > 3.2
    inverse = np.trace(np.linalg.inv(S), axis1=1, axis2=2).mean()
    bound = mechanism.excess_risk_bound(1.0)
    assert 0.5 * np.trace(mean) / 3 + 0.5 * 4.0 * inverse <= bound
    guards = np.array([draw.guard for draw in draws])
    assert guards.std() == pytest.approx(2.0, rel=0.05)
    assert mechanism.describe()["floor"] == 1.5
    assert all(len(pair) == 2 for pair in mechanism.summary())


def test_refusals():
    with pytest.raises(CalibrationError, match="GLM"):
        Gaussian().calibrate(1.0, 1e-6, sensitivity(hessian_rank=2))
    with pytest.raises(CalibrationError, match="delta"):
        Gaussian().calibrate(1.0, 0.7, sensitivity())
