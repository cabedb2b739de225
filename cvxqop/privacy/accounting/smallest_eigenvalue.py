"""Lower tail of the smallest eigenvalue of a Wishart matrix, W ~ Wishart_d(m, I), m real.

Two upper bounds on P(λ_min(W) ≤ x), which Theorems 6 and 12 rest on, in logarithms at any d; proofs
and references are in theory §3, "The smallest eigenvalue":

- Edelman 1988: D Γ(q) P(q, x/2), q = (m − d + 1)/2, P the regularised lower incomplete gamma
  function and D Γ(q) = √π Γ((m+1)/2) / (Γ(d/2) Γ(q + ½)). Exact for d = 1.
- the expected number of eigenvalues below x, ∫_0^x ρ with ρ the one-point density. It exceeds the
  probability only by what two eigenvalues below x contribute.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
from scipy.special import gammainc, gammaln

from cvxqop.privacy.accounting.quadrature import gauss_legendre, panel_integrals, settled

__all__ = [
    "edelman_log_constant",
    "log_eigenvalue_density",
    "log_lower_gamma",
    "lower_gamma_quantile",
    "smallest_eigenvalue_quantile",
    "smallest_eigenvalue_table",
    "smallest_eigenvalue_tail",
]

Array = npt.NDArray[np.float64]

LEAST, LEVELS = 1e-40, 160
LARGEST = 3000
"""Largest d for which the one-point density is used."""
SLACK = 1.0 + 1e-8
"""Rounding of the recurrence over d steps and of log Γ."""


def edelman_log_constant(dimension: int, degrees_of_freedom: float) -> float:
    """log D Γ(q) of Edelman's bound.

    Examples
    --------
    >>> abs(edelman_log_constant(1, 7.5)) < 1e-12
    True
    """
    d, m = dimension, degrees_of_freedom
    q = 0.5 * (m - d + 1.0)
    total = 0.5 * math.log(math.pi) + float(gammaln(0.5 * (m + 1.0)))
    return total - float(gammaln(0.5 * d)) - float(gammaln(q + 0.5))


def log_lower_gamma(q: float, x: float) -> float:
    """log P(q, x), P the regularised lower incomplete gamma function; nothing underflows.

    Examples
    --------
    >>> round(log_lower_gamma(2.0, 1.0), 12) == round(math.log(1.0 - 2.0 / math.e), 12)
    True
    >>> round(log_lower_gamma(500.0, 1e-3), 6)
    -6065.209096
    """
    if x >= q + 1.0:
        return math.log(float(gammainc(q, x)))
    total = term = 1.0
    n = 0
    while term > 1e-18 * total:
        n += 1
        term *= x / (q + n)
        total += term
    return q * math.log(x) - x - float(gammaln(q + 1.0)) + math.log(total)


def lower_gamma_quantile(q: float, log_target: float) -> float:
    """x with log P(q, x) = log_target, to the precision of a double.

    Examples
    --------
    >>> abs(log_lower_gamma(3.5, lower_gamma_quantile(3.5, -7.0)) + 7.0) < 1e-13
    True
    """
    # P(q, x) ≤ x^q/Γ(q + 1) puts the root to the right of this.
    low = (log_target + float(gammaln(q + 1.0))) / q - 1e-9
    high = low + 0.5
    while log_lower_gamma(q, math.exp(high)) < log_target:
        low, high = high, high + 0.5
    root = brentq(
        lambda t: log_lower_gamma(q, math.exp(t)) - log_target, low, high, xtol=1e-15, rtol=1e-15
    )
    return math.exp(float(root))


def log_eigenvalue_density(x: Array, dimension: int, degrees_of_freedom: float) -> Array:
    """Log of an upper bound on ρ(x), the density of eigenvalues of W, left of the bulk; d even.

    With a = m − d, p_j the monic orthogonal polynomials of x^a e^{−x} and h_j their squared norms,

        ρ(x) = Σ_{j<d−1} p_j(x)²/h_j x^a e^{−x}
               + p_{d−1}(x) w(x)/(2 h_{d−2}) ½ ∫ sgn(x − t) p_{d−2}(t) w(t) dt,

    w(t) = t^{(a−1)/2} e^{−t/2}. Left of the zeros of p_{d−1} the part of the integral over t < x
    lowers ρ and is left out. ∞ to the right of them.

    Notes
    -----
    Adler, Forrester, Nagao and van Moerbeke 2000, Classical skew orthogonal polynomials and random
    matrices; ∫ p_n w = (a+1)_n 2^{(a+1)/2} Γ((a+1)/2) (½)_{n/2}/(a/2 + 1)_{n/2} for even n.
    """
    a, d = degrees_of_freedom - dimension, dimension
    x = np.asarray(x, dtype=np.float64)
    log_size = np.zeros_like(x)  # log |p_j(x)| − ½ log h_j, less that of j = 0
    squares = np.ones_like(x)  # Σ_{i≤j} of their squares over the last
    ratio = a + 1.0 - x  # |p_{j+1}/p_j|
    valid = ratio > 0.0
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        for j in range(1, d - 1):
            step = ratio / math.sqrt(j * (j + a))
            log_size = log_size + np.log(step)
            squares = squares / step**2 + 1.0
            ratio = (2.0 * j + 1.0 + a - x) - j * (j + a) / ratio
            valid &= ratio > 0.0
        log_x = np.log(x)
        log_kernel = a * log_x - x - float(gammaln(a + 1.0)) + 2.0 * log_size + np.log(squares)
        # |p_{d−1}| w ∫ p_{d−2} w / (4 h_{d−2}), from |p_{d−1}| = ratio |p_{d−2}|
        n = d - 2
        log_h = float(gammaln(n + 1.0) + gammaln(n + a + 1.0))
        log_integral = float(
            gammaln(a + 1.0 + n)
            - gammaln(a + 1.0)
            + gammaln(0.5 * (a + 1.0))
            + gammaln(0.5 * (n + 1.0))
            - gammaln(0.5)
            - gammaln(0.5 * a + 1.0 + 0.5 * n)
            + gammaln(0.5 * a + 1.0)
        ) + 0.5 * (a + 1.0) * math.log(2.0)
        log_other = (
            np.log(ratio)
            + log_size
            - 0.5 * float(gammaln(a + 1.0))
            + 0.5 * (a - 1.0) * log_x
            - 0.5 * x
            + (log_integral - 0.5 * log_h - math.log(4.0))
        )
        return np.asarray(np.where(valid, np.logaddexp(log_kernel, log_other), np.inf))


def _log_count(x: float, dimension: int, degrees_of_freedom: float) -> float:
    """log ∫_0^x ρ, rounded up; ∞ where the formula does not hold."""
    d, m = dimension, degrees_of_freedom
    if d % 2 == 1:  # the Schur complement of W_{d+1}(m+1) is W_d(m), and λ_min is not above it
        d, m = d + 1, m + 1.0
    top = float(log_eigenvalue_density(np.array([x]), d, m)[0])
    if not math.isfinite(top):
        return math.inf
    near = float(log_eigenvalue_density(np.array([x * (1.0 - 1e-4)]), d, m)[0])
    rate = max((top - near) / (1e-4 * x), 1.0 / x)
    edges = x - np.append(np.minimum(np.array([0.0, 1, 2, 4, 8, 16, 32, 64]) / rate, x), x)
    edges = np.unique(edges)[None, :]

    def integrand(t: Array) -> Array:
        return np.exp(log_eigenvalue_density(t, d, m) - top)

    return top + math.log(settled(lambda k: panel_integrals(integrand, edges, k)) * SLACK)


def smallest_eigenvalue_tail(x: float, dimension: int, degrees_of_freedom: float) -> float:
    """Log of an upper bound on P(λ_min(W) ≤ x): the smaller of the two.

    Parameters
    ----------
    x : float
        Positive.
    dimension : int
        d.
    degrees_of_freedom : float
        m > d + 1, real.

    Examples
    --------
    >>> smallest_eigenvalue_tail(14.7, 100, 200) < math.log(0.01)
    True
    """
    d, m = dimension, degrees_of_freedom
    q = 0.5 * (m - d + 1.0)
    edelman = edelman_log_constant(d, m) + log_lower_gamma(q, 0.5 * x) + 1e-10
    if d == 1 or d > LARGEST:
        return min(edelman, 0.0)
    return min(edelman, _log_count(x, d, m), 0.0)


@lru_cache(maxsize=1024)
def smallest_eigenvalue_quantile(
    delta: float, dimension: int, degrees_of_freedom: float, *, edelman: bool = False
) -> float:
    """λ_δ with P(λ_min(W) < λ_δ) ≤ δ, rounded down.

    Parameters
    ----------
    delta : float
        In (0, 1).
    dimension, degrees_of_freedom
        d and m > d + 1.
    edelman : bool
        By Edelman's bound alone.

    Examples
    --------
    >>> round(smallest_eigenvalue_quantile(0.01, 100, 200, edelman=True), 2)
    10.11
    >>> round(smallest_eigenvalue_quantile(0.01, 100, 200), 1)
    14.8
    """
    d, m = dimension, degrees_of_freedom
    q, constant = 0.5 * (m - d + 1.0), edelman_log_constant(d, m)
    target = math.log(delta)

    root = 2.0 * lower_gamma_quantile(q, target - constant)
    root *= 1.0 - 4e-10
    if edelman or d == 1 or d > LARGEST:
        return root

    def by_count(log_x: float) -> float:
        value = smallest_eigenvalue_tail(math.exp(log_x), d, m) - target
        return min(value, 700.0)

    low = math.log(root)
    if by_count(low) > 0.0:
        return root
    high, step = low + 0.1, 0.1
    while by_count(high) <= 0.0:
        low, high = high, high + step
    found = float(brentq(by_count, low, high, xtol=1e-9))
    return max(root, math.exp(found - 2e-9) if by_count(found - 2e-9) <= 0.0 else root)


@lru_cache(maxsize=64)
def smallest_eigenvalue_table(dimension: int, degrees_of_freedom: float) -> tuple[Array, Array]:
    """Levels x and upper bounds on P(λ_min(W) ≤ x), for many levels at the cost of few.

    The levels start where Edelman's bound is LEAST, and end in the bulk.

    Parameters
    ----------
    dimension, degrees_of_freedom
        d and m > d + 1.

    Returns
    -------
    (ndarray, ndarray)
        Ascending levels, and the smaller of Edelman's bound and the expected number of eigenvalues.

    Examples
    --------
    >>> x, tail = smallest_eigenvalue_table(100, 200)
    >>> float(x[tail <= 0.01].max().round(1))
    14.7
    """
    d, m = dimension, degrees_of_freedom
    q, constant = 0.5 * (m - d + 1.0), edelman_log_constant(d, m)
    first = 2.0 * lower_gamma_quantile(q, math.log(LEAST) - constant)
    bulk = max((math.sqrt(m) - math.sqrt(d)) ** 2, 2.0 * first)
    x = first + (bulk - first) * np.linspace(0.0, 1.0, LEVELS)
    if bulk > 50.0 * first:
        x = np.unique(np.concatenate([np.geomspace(first, bulk, LEVELS), x]))
    edelman = np.array([constant + log_lower_gamma(q, 0.5 * t) + 1e-10 for t in x])
    tail = np.exp(np.minimum(edelman, 0.0))
    if d == 1 or d > LARGEST:
        return x, tail
    if d % 2 == 1:
        d, m = d + 1, m + 1.0
    cells: list[Array] = []
    for nodes in (8, 16):
        steps, weights = gauss_legendre(nodes)
        t = x[:-1, None] + np.diff(x)[:, None] * steps
        with np.errstate(over="ignore"):
            rho = np.exp(log_eigenvalue_density(t.ravel(), d, m)).reshape(t.shape)
        cells.append((rho @ weights) * np.diff(x))
    with np.errstate(invalid="ignore"):
        cell = cells[1] * SLACK + np.abs(cells[1] - cells[0])
    count = tail[0] + np.concatenate([[0.0], np.cumsum(np.where(np.isnan(cell), np.inf, cell))])
    return x, np.minimum(tail, count * SLACK)
