"""Tail of the largest eigenvalue of a symmetric Gaussian matrix, from its one-point density.

N has density proportional to exp(−‖N‖_F²/2), shape (d, d). The expected number of eigenvalues in
an interval bounds the probability that the largest one lies there, and beyond the edge √(2d) it is
nearly equal to it. With the oscillator functions φ_j (φ_0 = π^{-1/4} e^{−x²/2}) and
w_n = ∫ φ_n, Mehta's density is, for x beyond the zeros of φ_d,

    ρ_d(x) ≤ Σ_{j<d} φ_j(x)² + φ_{d−1}(x) q_d,
    q_d = ½ √(d/2) w_d for even d,  1/w_{d−1} for odd d.

What is left out, √(d/2) φ_{d−1}(x) ∫_x^∞ φ_d, is of the size of the first sum, the square of the
second term. What Theorem 8 needs of N (theory §4).
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln

from cvxqop.privacy.accounting.quadrature import panel_integrals, settled

__all__ = ["edge", "eigenvalue_tail", "log_density", "simple_tail"]

Array = npt.NDArray[np.float64]

LARGEST = 2000
"""Largest d for which the density is used; beyond, the exponential bound."""

SLACK = 1.0 + 1e-9
"""Rounding of ρ_d in d steps: measured below 1e-11 at d = 2,000."""


def edge(dimension: int) -> float:
    """√(2d + 1), beyond the zeros of φ_d: the formulas above hold from here on.

    Examples
    --------
    >>> edge(4)
    3.0
    """
    return math.sqrt(2.0 * dimension + 1.0)


def log_density(x: Array, dimension: int) -> Array:
    """Log of the upper bound on ρ_d at points x ≥ √(2d + 1).

    The ratios r_j = φ_{j+1}/φ_j = √(2/(j+1)) x − √(j/(j+1))/r_{j−1} are positive there and the
    recurrence is stable; nothing overflows.

    Examples
    --------
    >>> value = np.exp(log_density(np.array([3.0]), 1))    # d = 1: the normal density, and φ_0²
    >>> exact = np.exp(-4.5) / np.sqrt(2 * np.pi)
    >>> bool(exact <= value[0] <= 1.02 * exact)
    True
    """
    x = np.asarray(x, dtype=np.float64)
    log_phi = -0.25 * np.log(np.pi) - 0.5 * x**2
    squares = np.ones_like(x)  # Σ_{i≤j} φ_i²/φ_j²
    ratio = np.sqrt(2.0) * x
    for j in range(1, dimension):
        log_phi = log_phi + np.log(ratio)
        squares = squares / ratio**2 + 1.0
        ratio = np.sqrt(2.0 / (j + 1.0)) * x - np.sqrt(j / (j + 1.0)) / ratio
    last = _log_weight(dimension)
    return np.asarray(log_phi + np.logaddexp(log_phi + np.log(squares), last))


def _log_weight(d: int) -> float:
    """log q_d, from w_n = √2 π^{1/4} √(n!)/(2^{n/2} (n/2)!) for even n."""
    n = d if d % 2 == 0 else d - 1
    log_w = 0.5 * math.log(2.0) + 0.25 * math.log(math.pi) + 0.5 * float(gammaln(n + 1.0))
    log_w -= 0.5 * n * math.log(2.0) + float(gammaln(0.5 * n + 1.0))
    return math.log(0.5) + 0.5 * math.log(0.5 * d) + log_w if d % 2 == 0 else -log_w


def simple_tail(t: float, dimension: int) -> float:
    """exp(−(t − √(2d))²/2) ≥ P(λ_max(N) > t) for t ≥ √(2d), and 1 below.

    Examples
    --------
    >>> simple_tail(0.0, 3)
    1.0
    """
    gap = t - math.sqrt(2.0 * dimension)
    return math.exp(-0.5 * gap**2) if gap > 0.0 else 1.0


@lru_cache(maxsize=4096)
def eigenvalue_tail(t: float, dimension: int, upper: float = math.inf) -> float:
    """Upper bound on P(t < λ_max(N) ≤ upper).

    Parameters
    ----------
    t : float
        Any real; the bound is 1 below √(2d + 1).
    dimension : int
        d.
    upper : float
        Upper end; ∞ gives the tail P(λ_max(N) > t).

    Returns
    -------
    float
        ∫ ρ_d over the interval, for d ≤ 2,000, with its quadrature error added (relative 1e-9 all
        told); else, or where it is smaller, the exponential bound on the whole tail.

    Examples
    --------
    >>> 0.0013498 < eigenvalue_tail(3.0, 1) < 0.00139   # P(g > 3) = 0.00134990
    True
    """
    whole = simple_tail(t, dimension)
    if dimension > LARGEST or t < edge(dimension) or not t < upper:
        return whole if t < upper else 0.0
    top = min(upper, t + 12.0)  # ρ_d falls faster than exp(−(x − t)²/2): what lies beyond is e⁻⁷²
    rate = max(math.sqrt(t * t - 2.0 * dimension), (2.0 * dimension) ** (1.0 / 6.0))
    steps = np.concatenate([[0.0], np.geomspace(1.0, 64.0 * max(1.0, rate), 10) / rate])
    edges = np.unique(np.append(np.minimum(t + steps, top), top))[None, :]
    shift = float(log_density(np.array([t]), dimension)[0])

    def integrand(x: Array) -> Array:
        return np.exp(log_density(x, dimension) - shift)

    width = (top - t) if upper < math.inf else 1.0 / rate
    value = settled(lambda n: panel_integrals(integrand, edges, n) / width)
    return min(whole, math.exp(shift) * value * width * SLACK, 1.0)
