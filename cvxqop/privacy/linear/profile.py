"""Privacy profile of a linear shift of unknown sign or direction (Theorem 9), and its inverse.

The shift v of a Gaussian vector whose size is known and whose direction may depend on the output
within a subspace of dimension f costs Z = v X + v²/2, X ~ χ with f degrees of freedom.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
from scipy.special import erfcx, log_ndtr

from cvxqop.privacy.accounting.normal import half_normal_mean
from cvxqop.privacy.accounting.profile import gaussian_mu, gaussian_profile
from cvxqop.privacy.accounting.quadrature import chi_mean, converged

__all__ = ["largest_shift", "linear_profile"]

Array = npt.NDArray[np.float64]

UP = 1.0 + 64.0 * 2.0**-53
"""Rounding of the closed forms, relative."""


def linear_profile(
    epsilon: npt.ArrayLike, v: float, freedom: int, *, mu_release: float = 0.0
) -> Array:
    """E[δ_G(ε − vX − v²/2; μ_rel)] for X ~ χ with the given degrees of freedom.

    Without release, for 1 and 2 degrees of freedom, in closed form: with x0 = ε/v − v/2

        1:  2 δ_G(ε; v) if x0 ≥ 0, else 1 − 2 e^ε Φ(−v)
        2:  v √(π/2) e^{−x0²/2} erfcx((x0 + v)/√2) if x0 ≥ 0,
            else 1 − e^{ε − v²/2} (1 − v √(π/2) erfcx(v/√2))

    Parameters
    ----------
    epsilon : array_like of float
        ε̃, any real numbers: what the determinants leave.
    v : float
        Largest shift over s_a; positive.
    freedom : int
        Degrees of freedom of X.
    mu_release : float
        μ of a Gaussian release composed with it.

    Returns
    -------
    ndarray
        Rounded up, shaped as ``epsilon``.

    Examples
    --------
    >>> round(float(linear_profile(1.0, 1.0, 1)), 9)    # 2 δ_G(1; 1)
    0.253873475
    """
    eps = np.atleast_1d(np.asarray(epsilon, dtype=np.float64)).ravel()
    if mu_release == 0.0 and freedom <= 2:
        delta = (_folded if freedom == 1 else _rayleigh)(eps, v)
    else:
        delta = _by_quadrature(eps, v, freedom, mu_release)
    return np.asarray(np.clip(delta, 0.0, 1.0).reshape(np.shape(epsilon)))


def _folded(eps: Array, v: float) -> Array:
    with np.errstate(over="ignore"):
        whole = 1.0 - 2.0 * np.exp(np.minimum(eps, 0.5 * v * v) + log_ndtr(-v))
    return np.where(eps >= 0.5 * v * v, 2.0 * gaussian_profile(eps, v), whole + 2.0**-50)


def _rayleigh(eps: Array, v: float) -> Array:
    x0 = eps / v - 0.5 * v
    tail = v * math.sqrt(0.5 * math.pi) * erfcx((np.maximum(x0, 0.0) + v) / math.sqrt(2.0))
    # The exponent x0²/2 is known to a few units of its last place only.
    slack = 1.0 + 8.0 * 2.0**-53 * (x0**2 + (eps / v) ** 2)
    with np.errstate(under="ignore"):
        right = np.exp(-0.5 * x0**2) * tail * slack
    low = np.minimum(eps - 0.5 * v * v, 0.0)
    left = -np.expm1(low) + np.exp(low) * tail + 2.0**-50
    return np.asarray(np.where(x0 >= 0.0, right * UP, left))


def _by_quadrature(eps: Array, v: float, freedom: int, mu_release: float) -> Array:
    def weight(x: Array) -> Array:
        return gaussian_profile(eps[:, None] - v * x - 0.5 * v * v, mu_release)

    spread = mu_release * np.array([-20.0, -10.0, -5.0, -2.0, 0.0, 2.0, 5.0, 10.0, 20.0])
    spread = spread if mu_release > 0.0 else np.zeros(1)
    kinks = (eps[:, None] + spread) / v - 0.5 * v
    low = np.zeros_like(eps)
    if freedom == 1:
        rule = lambda n: 2.0 * half_normal_mean(weight, low, kinks, n)  # noqa: E731
    else:
        nu = np.full_like(eps, float(freedom))
        inside = np.where(kinks > 0.0, kinks, np.inf)
        rule = lambda n: chi_mean(weight, nu, inside, n)  # noqa: E731
    return converged(rule)


@lru_cache(maxsize=4096)
def largest_shift(epsilon: float, delta: float, freedom: int, *, mu_release: float = 0.0) -> float:
    """Largest v with E[δ_G(ε − vX − v²/2; μ_rel)] ≤ δ, rounded down; 0 if there is none.

    Parameters
    ----------
    epsilon, delta : float
        ε̃ > 0, what the determinants leave, and δ.
    freedom, mu_release
        As in :func:`linear_profile`.

    Examples
    --------
    >>> v = largest_shift(1.0, 0.25387347, 1)
    >>> 0.9999 < v <= 1.0
    True
    """

    def excess(log_v: float) -> float:
        value = float(linear_profile(epsilon, math.exp(log_v), freedom, mu_release=mu_release))
        return math.log(max(value, 1e-320) / delta)

    high = math.log(gaussian_mu(epsilon, delta)) + 0.1
    low = high - 0.5
    while excess(low) > 0.0:
        low, high = low - 2.0 * (high - low), low
        if low < -200.0:
            return 0.0
    root = float(brentq(excess, low, high, xtol=1e-9, rtol=1e-12)) if excess(high) > 0.0 else high
    step = 1e-10
    while excess(root) > 0.0:
        root, step = root - step, 2.0 * step
    return math.exp(root)
