"""Privacy profile of a linear shift of unknown sign or direction (Theorem 9), and its inverse.

The shift v of a Gaussian vector whose size is known and whose direction may depend on the output
within a subspace of dimension f costs Z = v X + v²/2, X ~ χ with f degrees of freedom.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from scipy.special import chdtri, erfcx, log_ndtr

from cvxqop.privacy.accounting.normal import half_normal_mean
from cvxqop.privacy.accounting.profile import gaussian_profile
from cvxqop.privacy.accounting.quadrature import chi_mean, converged
from cvxqop.privacy.accounting.root import approximate_roots, increasing_root

__all__ = ["approximate_shift", "largest_shift", "linear_profile"]

Array = npt.NDArray[np.float64]

UP = 1.0 + 64.0 * 2.0**-53
"""Rounding of the closed forms, relative."""


def linear_profile(
    epsilon: npt.ArrayLike, v: npt.ArrayLike, freedom: int, *, mu_release: float = 0.0
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
    v : array_like of float
        Largest shift over s_a; positive. One number, or one for each ε̃.
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
    v = np.broadcast_to(np.asarray(v, dtype=np.float64), eps.shape)
    if mu_release == 0.0 and freedom <= 2:
        delta = (_folded if freedom == 1 else _rayleigh)(eps, v)
    else:
        delta = _by_quadrature(eps, v, freedom, mu_release)
    return np.asarray(np.clip(delta, 0.0, 1.0).reshape(np.shape(epsilon)))


def _folded(eps: Array, v: Array) -> Array:
    with np.errstate(over="ignore"):
        whole = 1.0 - 2.0 * np.exp(np.minimum(eps, 0.5 * v * v) + log_ndtr(-v))
    return np.where(eps >= 0.5 * v * v, 2.0 * gaussian_profile(eps, v), whole + 2.0**-50)


def _rayleigh(eps: Array, v: Array) -> Array:
    x0 = eps / v - 0.5 * v
    tail = v * math.sqrt(0.5 * math.pi) * erfcx((np.maximum(x0, 0.0) + v) / math.sqrt(2.0))
    # The exponent x0²/2 is known to a few units of its last place only.
    slack = 1.0 + 8.0 * 2.0**-53 * (x0**2 + (eps / v) ** 2)
    with np.errstate(under="ignore"):
        right = np.exp(-0.5 * x0**2) * tail * slack
    low = np.minimum(eps - 0.5 * v * v, 0.0)
    left = -np.expm1(low) + np.exp(low) * tail + 2.0**-50
    return np.asarray(np.where(x0 >= 0.0, right * UP, left))


def _by_quadrature(eps: Array, v: Array, freedom: int, mu_release: float) -> Array:
    v = v[:, None]

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


def approximate_shift(epsilon: Array, delta: float, freedom: int) -> Array:
    """v with E[(1 − e^{ε − vX − v²/2})₊] ≈ δ for many ε at once, to a part in 10⁵: for searches.

    The search starts from the v with P(vX + v²/2 > ε) = δ, which is smaller.
    """
    quantile = math.sqrt(chdtri(freedom, delta))
    log_v = np.log(2.0 * epsilon / (quantile + np.sqrt(quantile**2 + 2.0 * epsilon)))

    def log_excess(log_v: Array) -> Array:
        value = linear_profile(epsilon, np.exp(log_v), freedom)
        return np.asarray(np.log(np.maximum(value, 1e-320) / delta))

    return np.asarray(np.exp(approximate_roots(log_excess, log_v)))


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

    start = math.log(float(approximate_shift(np.array([epsilon]), delta, freedom)[0]))
    root, _ = increasing_root(excess, start, 1e-3, low=-200.0, tolerance=1e-8)
    if root is None:
        return 0.0
    step = 1e-10
    while excess(root) > 0.0:
        root, step = root - step, 2.0 * step
    return math.exp(root)
