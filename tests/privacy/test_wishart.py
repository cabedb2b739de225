"""The Wishart accountant against reference values, closed forms and 30-digit quadrature."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2, kstest

from cvxqop.errors import CalibrationError
from cvxqop.privacy.accounting.profile import gaussian_profile
from cvxqop.privacy.noise import SeededNoise
from cvxqop.privacy.wishart import ensemble as wishart


@pytest.mark.parametrize("direction", ["add", "remove"])
def test_reference_one_sided(reference, direction):
    for case in reference[f"wishart_{direction}"]:
        value = float(
            wishart.profile(
                case["eps"],
                case["c"],
                case["nu"],
                adjacency="add_remove",
                direction=direction,
                quadratic=case["j"] == 0,
                mu=case["mu"],
            )
        )
        true = float(case["delta"])
        assert true * (1 - 1e-10) <= value <= true * (1 + 1e-8)


def test_reference_replace(reference):
    for case in reference["wishart_replace_quadratic"]:
        value = float(wishart.profile(case["eps"], case["c"], case["nu"], mu=case["mu"]))
        true = float(case["delta"])
        assert true - 1e-12 <= value <= true * (1 + 1e-6)  # 12 decimals are given


def test_reference_calibration(reference):
    for case in reference["wishart_calibration_add_remove"]:
        value = wishart.calibrate(case["eps"], case["delta"], case["nu"], adjacency="add_remove")
        true = float(case["sigma2_over_L"])
        assert true * (1 - 1e-10) <= value <= true * (1 + 1e-8)


def closed_form(epsilon, c, nu, direction):
    """Theory §3, j = 0, in 50 digits."""
    with mpmath.workdps(50):
        e, c, k = mpmath.mpf(epsilon), mpmath.mpf(c), mpmath.mpf(nu) / 2 - 1

        def cdf(h):
            return mpmath.gammainc(k + 1, 0, max(h, 0) / 2, regularized=True)

        if direction == "add":
            h = c / (1 - mpmath.exp(-(e + c / 2) / k))
            return cdf(h) - mpmath.exp(e) * cdf(h - c)
        if c <= 2 * e:
            return mpmath.mpf(0)
        h = c / mpmath.expm1((c / 2 - e) / k)
        return (1 - cdf(h)) - mpmath.exp(e) * (1 - cdf(h + c))


@given(
    st.floats(-2.0, 1.0).map(lambda t: 10.0**t),
    st.floats(2.3, 300.0),
    st.floats(0.05, 0.8),
    st.sampled_from(["add", "remove"]),
)
@settings(max_examples=60, deadline=None)
def test_closed_form(epsilon, nu, fraction, direction):
    c = fraction * nu
    true = float(closed_form(epsilon, c, nu, direction))
    value = float(wishart.profile(epsilon, c, nu, adjacency="add_remove", direction=direction))
    assert true * (1 - 1e-10) - 1e-45 <= value <= true * (1 + 1e-8) + 1e-45


def exact_guarded(epsilon, c, nu, mu, direction, quadratic):
    """E[δ_G(ε − Z(h); μ)] in 30 digits, with panels where the integrand is steep."""
    with mpmath.workdps(30):
        e, c, mu = mpmath.mpf(epsilon), mpmath.mpf(c), mpmath.mpf(mu)
        k = mpmath.mpf(nu) / 2 - 1
        exponent = k if quadratic else k + 1

        def weight(x):
            return mpmath.ncdf(mu / 2 - x / mu) - mpmath.exp(x) * mpmath.ncdf(-mu / 2 - x / mu)

        def integrand(h):
            if direction == "add":
                if h <= c:
                    return mpmath.mpf(0)
                z = -exponent * mpmath.log(1 - c / h) - c / 2
            else:
                z = c / 2 - k * mpmath.log(1 + c / h)
                z = z if quadratic else max(z, mpmath.log(1 + c / h))
            z = z if quadratic else max(z, 0)
            log_density = (
                k * mpmath.log(h) - h / 2 - (k + 1) * mpmath.log(2) - mpmath.loggamma(k + 1)
            )
            return mpmath.exp(log_density) * weight(e - z)

        levels = [mpmath.mpf(nu) * f for f in (0.25, 0.5, 0.8, 1, 1.25, 1.6, 2.5, 5)]
        kinks = []
        if direction == "add":
            kinks = [c / (1 - mpmath.exp(-(z + c / 2) / exponent)) for z in (e, 0)]
        else:
            kinks = [c / mpmath.expm1((c / 2 - z) / k) for z in (e, 0) if z < c / 2]
            kinks += [c / mpmath.expm1(c / (2 * (k + 1))), c / mpmath.expm1(e)]
        points = {mpmath.mpf(0) if direction == "remove" else c, *levels, mpmath.mpf(nu) + 400}
        for kink in kinks:
            points |= {
                kink,
                *(kink * (1 + s * mpmath.mpf(10) ** -i) for i in range(1, 8) for s in (-1, 1)),
            }
        points |= {c * (1 + mpmath.mpf(10) ** i) for i in range(-8, 4)}
        low = 0 if direction == "remove" else c
        points = sorted(p for p in points if low <= p <= nu + 400)
        below = 0
        if direction == "add":
            below = mpmath.gammainc(k + 1, 0, c / 2, regularized=True)
        return below + mpmath.quad(integrand, points)


@pytest.mark.parametrize(
    ("epsilon", "c", "nu", "mu", "direction", "quadratic"),
    [
        # Layers so thin that two rules could agree and both be wrong.
        (21.82, 1.09e-3, 24.4, 1.297, "add", False),
        (77.77, 4.77e-3, 20.73, 4.733, "add", False),
        (189.0, 0.5509, 19.2, 13.07, "add", False),
        (0.3, 0.6, 100.0, 3.2e-6, "add", True),
        (0.3, 0.9, 100.0, 1e-6, "remove", True),
        (0.3, 3.0, 40.0, 1e-8, "remove", False),
        (1.0, 2.0, 2.05, 0.3, "add", False),
        (5e-3, 0.05, 60.0, 2e-3, "add", True),
    ],
)
def test_thin_layers(epsilon, c, nu, mu, direction, quadratic):
    true = float(exact_guarded(epsilon, c, nu, mu, direction, quadratic))
    value = float(
        wishart.profile(
            epsilon, c, nu, adjacency="add_remove", direction=direction, quadratic=quadratic, mu=mu
        )
    )
    # Tiny tails carry the relative error of the reference quadrature.
    assert true * (1 - 2e-8) <= value <= true * (1 + 1e-7)


@pytest.mark.parametrize("mu", [0.02, 0.4])
@pytest.mark.parametrize(("epsilon", "c", "nu"), [(0.7, 1.5, 12.0), (0.3, 0.4, 3.0)])
def test_guarded_replacement_by_sampling(epsilon, c, nu, mu):
    """E[δ_G(ε − Z⁺ − Z⁺; μ)] by 4·10⁶ seeded draws; six standard errors (false alarm 2e-9)."""
    rng = np.random.default_rng(5)
    size = 4_000_000
    B, h, k = rng.chisquare(nu + 1, size), rng.chisquare(nu, size), nu / 2 - 1
    removed = np.maximum(0.0, c / 2 - k * np.log1p(c / B))
    with np.errstate(divide="ignore", invalid="ignore"):
        added = np.where(h > c, np.maximum(0.0, -k * np.log1p(-c / h) - c / 2), np.inf)
    sample = gaussian_profile(epsilon - removed - added, mu)
    value = float(wishart.profile(epsilon, c, nu, mu=mu))
    assert abs(value - sample.mean()) <= 6.0 * sample.std() / math.sqrt(size)


def test_two_hops_is_an_upper_bound_of_its_definition():
    """For other losses: δ_rem(ε₁) + e^ε₁ δ_add(ε − ε₁) is near its minimum over a fine grid."""
    epsilon, c, nu, mu = 1.0, 1.0, 40.0, 0.1
    value = float(wishart.profile(epsilon, c, nu, quadratic=False, mu=mu))
    grid = np.linspace(0.0, epsilon, 401)
    one = {"adjacency": "add_remove", "quadratic": False, "mu": mu}
    removed = wishart.profile(grid, c, nu, direction="remove", **one)
    added = wishart.profile(epsilon - grid, c, nu, direction="add", **one)
    best = float(np.min(removed + np.exp(grid) * added))
    assert best * (1 - 1e-6) <= value * (1 + 1e-3)
    assert value <= best * (1 + 1e-3)


def test_a_small_share_of_the_budget_at_large_epsilon_is_not_lost_to_underflow():
    """e^ε₁ must not be cut off against a tail that underflows: the bound may only be too large."""
    value = float(wishart.profile(1e4, 60000.0, 1e5, quadratic=False))
    assert value > 0.5


@given(
    st.floats(-3.0, 4.0).map(lambda t: 10.0**t),
    st.floats(-40.0, -0.4).map(lambda t: 10.0**t),
    st.integers(1, 3000),
    st.sampled_from(["replace_one", "add_remove"]),
    st.booleans(),
)
@settings(max_examples=40, deadline=None)
def test_calibration_meets_its_target(epsilon, delta, dimension, adjacency, quadratic):
    nu = 2.0 * dimension + 40.0
    kinds = {"adjacency": adjacency, "quadratic": quadratic}
    ratio = wishart.calibrate(epsilon, delta, nu, **kinds)
    assert wishart.profile(epsilon, 1.0 / ratio, nu, **kinds) <= delta
    assert wishart.profile(epsilon, 1.0 / (ratio * (1 - 1e-3)), nu, **kinds) > delta * (1 - 1e-6)


@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
@pytest.mark.parametrize(
    ("epsilon", "delta", "nu"),
    [(1e-3, 1e-300, 1e5), (1e6, 1e-300, 1e5), (1e6, 0.49, 2.5), (1e-3, 0.49, 1e5), (50, 1e-18, 9)],
)
def test_extremes(epsilon, delta, nu, adjacency):
    ratio = wishart.calibrate(epsilon, delta, nu, adjacency=adjacency)
    assert math.isfinite(ratio)
    assert wishart.profile(epsilon, 1.0 / ratio, nu, adjacency=adjacency) <= delta
    # h > c must hold with probability 1 − δ.
    assert chi2.cdf(1.0 / ratio, nu) <= delta * (1 + 1e-6)


def test_too_few_degrees_of_freedom_are_refused_with_the_reason():
    with pytest.raises(CalibrationError, match="Take more degrees of freedom"):
        wishart.calibrate(0.1, 1e-30, 2.1)
    with pytest.raises(CalibrationError, match="nu"):
        wishart.calibrate(1.0, 1e-6, 2.0)


def test_a_guard_that_spends_everything_is_refused():
    with pytest.raises(CalibrationError, match="share"):
        wishart.calibrate(1.0, 1e-6, 50, mu=0.3)


def test_profile_arguments():
    with pytest.raises(ValueError, match="nu"):
        wishart.profile(1.0, 1.0, 2.0)
    with pytest.raises(ValueError, match="direction"):
        wishart.profile(1.0, 1.0, 8.0, direction="add")
    assert wishart.profile([0.5, 1.0], 1.0, 8.0).shape == (2,)


def test_bartlett_factor():
    """Moments and the law of 1/(x'W⁻¹x) ~ χ²_ν; seeded, p-value bound 1e-7."""
    d, m, trials = 4, 9.5, 4000
    noise = SeededNoise(np.random.default_rng(3))
    x = np.array([0.5, -0.5, 0.1, np.sqrt(1 - 0.51)])
    total, h = np.zeros((d, d)), []
    for _ in range(trials):
        factor = wishart.sample_factor(noise, d, m)
        assert np.all(np.triu(factor, 1) == 0.0)
        total += factor @ factor.T
        h.append(1.0 / np.sum(np.linalg.solve(factor, x) ** 2))
    error = total / trials - m * np.eye(d)
    assert np.abs(error).max() < 6.0 * np.sqrt(2.0 * m / trials)
    assert kstest(h, chi2(m - d + 1).cdf).pvalue > 1e-7
