"""Privacy profiles δ(ε), and that of the Gaussian mechanism.

The profile of a mechanism M is δ(ε) = sup over neighbours D ~ D' and events S of
P(M(D) ∈ S) − e^ε P(M(D') ∈ S). Every function here errs upwards: what it returns is the value plus
a bound on its own rounding and quadrature error.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
from scipy.special import erfcx, log_ndtr, ndtr, ndtri

from cvxqop.errors import CalibrationError
from cvxqop.privacy.accounting.quadrature import gauss_legendre
from cvxqop.privacy.accounting.root import approximate_roots

__all__ = [
    "approximate_mu",
    "check_privacy",
    "epsilon_at",
    "gaussian_mu",
    "gaussian_profile",
    "is_number",
]

Array = npt.NDArray[np.float64]
UNIT_ROUNDOFF = 2.0**-53
SMALLEST_DELTA = 1e-300
LARGEST_EPSILON = 1e6


def check_privacy(epsilon: float, delta: float) -> None:
    """Refuse (ε, δ) outside 0 < ε ≤ 10⁶, 10⁻³⁰⁰ ≤ δ < ½.

    Raises
    ------
    CalibrationError
        Naming the argument that is out of range.
    """
    if not 0.0 < epsilon <= LARGEST_EPSILON:
        raise CalibrationError(f"epsilon must lie in (0, 1e6], got {epsilon!r}.")
    if not SMALLEST_DELTA <= delta < 0.5:
        raise CalibrationError(
            f"delta must lie in [1e-300, 0.5), got {delta!r}. It should be well below one over the "
            "number of people concerned; pure privacy (delta = 0) is not offered by any mechanism "
            "of cvxqop."
        )


def is_number(value: object) -> bool:
    """Whether an option is a number, of Python or NumPy, and not True or False."""
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def gaussian_profile(epsilon: npt.ArrayLike, mu: npt.ArrayLike) -> Array:
    """Privacy profile of the Gaussian mechanism with sensitivity-to-noise ratio μ.

    δ_G(ε; μ) = Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ) for every real ε, with δ_G(ε; 0) = (1 − e^ε)₊ and
    δ_G(−∞; μ) = 1. Broadcasts over both arguments. Rounded up.

    Parameters
    ----------
    epsilon : array_like of float
        Any real numbers, −∞ included.
    mu : array_like of float
        Non-negative: the ℓ2 sensitivity divided by the standard deviation of the noise.

    Returns
    -------
    ndarray
        δ in [0, 1], of the broadcast shape.

    Notes
    -----
    With a = μ/2 − ε/μ and φ the normal density, the two terms share the factor φ(a), so that
    δ = φ(a) √(π/2) [erfcx(−a/√2) − erfcx((μ − a)/√2)]: nothing underflows before δ does, and no
    exponential of ε is formed. Theory §3; Balle and Wang 2018.

    Examples
    --------
    >>> round(float(gaussian_profile(1.0, 1.0)), 9)
    0.126936738
    """
    eps, m = np.broadcast_arrays(
        np.asarray(epsilon, dtype=np.float64), np.asarray(mu, dtype=np.float64)
    )
    shape, eps, m = eps.shape, eps.ravel(), m.ravel()
    noisy = m > 0.0
    if noisy.all():
        result = _gaussian_profile(eps, m)
    else:
        result = -np.expm1(np.minimum(eps, 0.0))
        result[noisy] = _gaussian_profile(eps[noisy], m[noisy])
    return np.asarray(np.clip(result, 0.0, 1.0).reshape(shape))


def _gaussian_profile(epsilon: Array, mu: Array) -> Array:
    """δ_G for μ > 0: left of the bulk by Φ directly, elsewhere through erfcx."""
    with np.errstate(over="ignore"):
        ratio = epsilon / mu
    low = (ratio - 0.5 * mu) / np.sqrt(2.0)
    left = low < -4.0
    right = ~left & (low <= 60.0)
    result: Array = np.zeros_like(low)
    result[right] = _right(low[right], mu[right], ratio[right])
    if left.any():
        e, m, r = epsilon[left], mu[left], ratio[left]
        with np.errstate(under="ignore"):
            if m.max() < 30.0:  # neither factor leaves the range of doubles
                other = np.exp(e) * ndtr(-0.5 * m - r)
            else:
                other = np.exp(e + log_ndtr(-0.5 * m - r))
            result[left] = ndtr(0.5 * m - r) - other + 16.0 * UNIT_ROUNDOFF
    return result


def _right(low: Array, mu: Array, ratio: Array) -> Array:
    """δ_G for −4 ≤ (ε/μ − μ/2)/√2 ≤ 60, with its rounding error added."""
    width = mu / np.sqrt(2.0)
    first = erfcx(low)
    difference = first - erfcx(low + width)
    size = 1.0 + low**2 + (ratio**2 + mu**2)
    slack = first * size
    narrow = width <= 0.02
    if narrow.any():
        difference[narrow] = _erfcx_difference(low[narrow], width[narrow])
        slack[narrow] = difference[narrow] * (size + 4.0 * low**2)[narrow]
    with np.errstate(under="ignore"):
        return np.asarray(0.5 * np.exp(-(low**2)) * (difference + 16.0 * UNIT_ROUNDOFF * slack))


def _erfcx_difference(low: Array, width: Array) -> Array:
    """erfcx(x) − erfcx(x + w) for small w, as the integral of −erfcx' = 2/√π − 2t erfcx(t)."""
    total = np.zeros_like(low)
    for node, weight in zip(*gauss_legendre(5), strict=True):
        t = low + node * width
        total += weight * (2.0 / np.sqrt(np.pi) - 2.0 * t * erfcx(t))
    return np.asarray(width * total)


@lru_cache(maxsize=1024)
def gaussian_mu(epsilon: float, delta: float) -> float:
    """Largest μ whose Gaussian profile satisfies δ_G(ε; μ) ≤ δ (rounded down).

    Raises
    ------
    CalibrationError
        If (ε, δ) is out of range, see :func:`check_privacy`.

    Examples
    --------
    >>> round(gaussian_mu(1.0, 1e-6), 6)
    0.236704
    """
    check_privacy(epsilon, delta)
    target = np.log(delta)

    def excess(log_mu: float) -> float:
        value = float(gaussian_profile(epsilon, np.exp(log_mu)))
        return float(np.log(max(value, 1e-320)) - target)

    # δ_G(ε; μ) < δ when ε/μ − μ/2 > 40, and > δ when μ/2 − ε/μ > 1.
    low = np.log(-40.0 + np.sqrt(1600.0 + 2.0 * epsilon))
    high = np.log(2.0 + np.sqrt(2.0 * epsilon) + epsilon)
    root = float(brentq(excess, low, high, xtol=1e-14, rtol=1e-14))
    mu = float(np.exp(root))
    while float(gaussian_profile(epsilon, mu)) > delta:
        mu *= 1.0 - 1e-14
    return mu


def epsilon_at(
    profile: Callable[[float], float], delta: float, largest: float = LARGEST_EPSILON
) -> float:
    """The smallest ε up to ``largest`` with profile(ε) ≤ δ, rounded up; infinity if there is none.

    Parameters
    ----------
    profile : callable
        δ(ε), decreasing, itself rounded up.
    delta : float
        10⁻³⁰⁰ ≤ δ < 1: profiles below that are not told from zero.

    Raises
    ------
    CalibrationError
        If δ is out of range.

    Examples
    --------
    >>> round(epsilon_at(lambda epsilon: float(gaussian_profile(epsilon, 0.236704)), 1e-6), 4)
    1.0
    """
    if not (is_number(delta) and SMALLEST_DELTA <= delta < 1.0):
        raise CalibrationError(f"delta must lie in [1e-300, 1), got {delta!r}.")
    if profile(0.0) <= delta:
        return 0.0
    if profile(largest) > delta:
        return math.inf
    low, high = 0.0, min(1.0, largest)
    while profile(high) > delta:
        low, high = high, min(2.0 * high, largest)
    while high - low > 1e-9 * high and high > 1e-12:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if profile(middle) <= delta else (middle, high)
    return high


def approximate_mu(epsilon: Array, delta: float) -> Array:
    """μ with δ_G(ε; μ) ≈ δ for many ε at once, to a part in 10⁵: for searches.

    Examples
    --------
    >>> float(approximate_mu(np.array([1.0]), 1e-6)[0].round(4))
    0.2367
    """

    def log_excess(log_mu: Array) -> Array:
        value = gaussian_profile(epsilon, np.exp(log_mu))
        return np.asarray(np.log(np.maximum(value, 1e-320) / delta))

    quantile = -float(ndtri(delta))
    start = np.log(2.0 * epsilon / (quantile + np.sqrt(quantile**2 + 2.0 * epsilon)))
    return np.asarray(np.exp(approximate_roots(log_excess, start)))
