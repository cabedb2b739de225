"""The Gaussian profile against 60-digit arithmetic."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cvxqop.errors import CalibrationError
from cvxqop.privacy.accounting.profile import check_privacy, gaussian_mu, gaussian_profile


def exact(epsilon, mu):
    with mpmath.workdps(60):
        e, m = mpmath.mpf(epsilon), mpmath.mpf(mu)
        return mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m)


def test_reference_values(reference):
    for case in reference["gaussian_profile"]:
        value, true = float(gaussian_profile(case["eps"], case["mu"])), float(case["delta"])
        assert true * (1 - 1e-10) <= value <= true * (1 + 1e-8)


@given(
    st.floats(-4.0, 6.0).map(lambda t: 10.0**t),
    st.floats(-1.0, 26.0),
    st.booleans(),
)
def test_never_below_the_exact_value(epsilon, distance, negative):
    """Over ε and the distance ε/μ − μ/2 into the tail; rounded up, and tight."""
    mu = -distance + math.sqrt(distance**2 + 2.0 * epsilon)
    signed = -epsilon if negative else epsilon
    true = exact(signed, mu)
    value = float(gaussian_profile(signed, mu))
    assert value >= true * (1 - mpmath.mpf(10) ** -14)
    if epsilon < 100.0:
        assert value <= true * (1 + 1e-7) + 1e-300


def test_limits():
    assert gaussian_profile(-np.inf, 0.3) == 1.0
    assert gaussian_profile(0.5, 0.0) == 0.0
    assert gaussian_profile(-0.5, 0.0) == pytest.approx(1.0 - math.exp(-0.5), rel=1e-14)
    assert gaussian_profile([0.1, 1.0], [[0.5], [1.0]]).shape == (2, 2)


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(1, 1e-6), (1e-3, 1e-300), (1e6, 1e-300), (1e6, 0.49), (1e-3, 0.49)]
)
def test_mu_spends_delta_and_no_more(epsilon, delta):
    mu = gaussian_mu(epsilon, delta)
    assert exact(epsilon, mu) <= delta
    assert exact(epsilon, mu * (1 + 1e-6)) > delta


@pytest.mark.parametrize(
    ("epsilon", "delta", "word"),
    [
        (0.0, 1e-6, "epsilon"),
        (-1.0, 1e-6, "epsilon"),
        (math.inf, 1e-6, "epsilon"),
        (2e6, 1e-6, "epsilon"),
        (1.0, 0.0, "delta"),
        (1.0, 0.5, "delta"),
        (1.0, math.nan, "delta"),
        (1.0, 1e-301, "delta"),
    ],
)
def test_out_of_range_is_refused_by_name(epsilon, delta, word):
    with pytest.raises(CalibrationError, match=word):
        check_privacy(epsilon, delta)
