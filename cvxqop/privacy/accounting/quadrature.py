"""Expectations over χ² variables, many at once, with an error that is measured and added.

All integrals are taken over y = √h, h ~ χ²_ν. The density of y, (ν−1) log y − y²/2 + const, is
log-concave with curvature between 1 and 2 near its mode √(ν−1) whatever ν is, so that one window
serves every ν.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln

__all__ = ["chi_mean", "converged", "gauss_legendre", "panel_integrals"]

Array = npt.NDArray[np.float64]
Weight = Callable[[Array], Array]

TOLERANCE = 1e-11
"""Relative error that the integrals aim at; what remains is added to them."""

SCAN = 0.75
"""Spacing in y of the scan that finds where an integrand lives."""

PANEL = 2.5
"""Widest panel in y; the density of y alone varies on a scale of 0.7."""


@lru_cache(maxsize=32)
def gauss_legendre(nodes: int) -> tuple[Array, Array]:
    """Nodes and weights of the Gauss-Legendre rule on [0, 1]."""
    points, weights = np.polynomial.legendre.leggauss(nodes)
    return 0.5 * points + 0.5, 0.5 * weights


def panel_integrals(integrand: Weight, edges: Array, nodes: int) -> Array:
    """Integrate over consecutive panels by Gauss-Legendre, many integrals at once.

    Put the panel edges where the integrand has a kink.

    Parameters
    ----------
    integrand : callable
        Maps points of shape (P, N) to values of the same shape; row p belongs to integral p.
    edges : ndarray, shape (P, E)
        Ascending panel edges; panels of zero width are allowed.
    nodes : int
        Number of nodes of each panel.

    Returns
    -------
    ndarray, shape (P,)

    Examples
    --------
    >>> edges = np.array([[0.0, 1.0, 1.0, 4.0]])
    >>> value = panel_integrals(lambda y: np.abs(y - 1.0), edges, 8)
    >>> bool(abs(value[0] - 5.0) < 1e-13)
    True
    """
    points, weights = gauss_legendre(nodes)
    start, width = edges[:, :-1, None], np.diff(edges, axis=1)
    y = start + width[:, :, None] * points
    values = integrand(y.reshape(len(edges), -1)).reshape(y.shape)
    return np.asarray(np.einsum("pen,n,pe->p", values, weights, width))


def log_chi_density(y: Array, nu: Array) -> Array:
    """Log density of y = √h (P, N), h ~ χ²_ν (ν of shape (P,)), to 1e-12 for ν up to 10⁶.

    The value at the mode comes from Stirling's series for large ν: differences of log Γ would lose
    six digits there.
    """
    nu = nu[:, None]
    x = 0.5 * nu
    with np.errstate(divide="ignore"):
        remainder = (1.0 - (1.0 / 30.0 - 1.0 / (105.0 * x * x)) / (x * x)) / (12.0 * x)
        large = (x - 0.5) * np.log1p(-0.5 / x) + 0.5 - 0.5 * np.log(np.pi) - remainder
        small = (x - 0.5) * (np.log(2.0 * x - 1.0) - 1.0) - (x - 1.0) * np.log(2.0) - gammaln(x)
        r = y / np.sqrt(nu - 1.0)
        shape = np.log(r) - 0.5 * (r - 1.0) * (r + 1.0)
        return np.asarray(np.where(x > 20.0, large, small) + (nu - 1.0) * shape)


def chi_mean(
    weight: Weight, nu: Array, kinks: Array, nodes: int, scan: Weight | None = None
) -> Array:
    """E[weight(√h)] for h ~ χ²_ν, P integrals at once.

    A coarse scan of the log integrand finds where it lives; the rest, below e⁻⁵⁰ of its peak, is
    left out.

    Parameters
    ----------
    weight : callable
        Maps points y of shape (P, N) to weights in [0, 1] of the same shape.
    nu : ndarray, shape (P,)
        Degrees of freedom, above 1.
    kinks : ndarray, shape (P, K)
        Points where the weight may not be smooth (∞ where there is none): panels end there, and
        are narrower than 2.5 elsewhere.
    nodes : int
        Number of Gauss-Legendre nodes of each panel.
    scan : callable, optional
        A cheaper stand-in for ``weight`` in the scan.

    Returns
    -------
    ndarray, shape (P,)

    Examples
    --------
    >>> nu = np.array([5.0])
    >>> mean = chi_mean(lambda y: np.exp(-y * y / 2), nu, np.array([[np.inf]]), 40)
    >>> bool(abs(mean[0] - 2.0 ** -2.5) < 1e-14)    # E exp(−h/2) = 2^(−ν/2)
    True
    """
    mode = np.sqrt(nu - 1.0)[:, None]
    kinks = kinks[:, np.isfinite(kinks).any(axis=0)]
    floor = np.minimum(1e-3, 0.98 * kinks.min(axis=1, keepdims=True, initial=1.0))
    beside = np.minimum(0.02 * kinks, 0.05)
    for reach in (12.0, 24.0, 40.0):
        steps = np.arange(-reach, reach + SCAN, SCAN)
        grid = np.hstack([mode + steps, kinks - beside, kinks + beside])
        grid = np.sort(np.clip(grid, floor, mode + reach), axis=1)
        with np.errstate(divide="ignore"):
            height = log_chi_density(grid, nu) + np.log((scan or weight)(grid))
        peak = height.max(axis=1, keepdims=True)
        if peak.min() > -0.2 * reach**2:
            break
    alive = np.isfinite(height) & (height > peak - 50.0)
    rows, end = np.arange(len(nu)), grid.shape[1] - 1
    first, last = alive.argmax(axis=1), end - alive[:, ::-1].argmax(axis=1)
    low = np.where(first > 0, grid[rows, np.maximum(first - 1, 0)], 0.0)[:, None]
    high = grid[rows, np.minimum(last + 1, end)][:, None]
    even = mode + PANEL * np.arange(-np.ceil(reach / PANEL), np.ceil(reach / PANEL) + 1.0)
    edges = np.sort(np.clip(np.hstack([low, kinks, even, high]), low, high), axis=1)
    edges = edges[:, np.append(True, np.any(np.diff(edges, axis=1) > 0.0, axis=0))]

    def integrand(y: Array) -> Array:
        return weight(y) * np.exp(log_chi_density(y, nu))

    return np.where(alive.any(axis=1), panel_integrals(integrand, edges, nodes), 0.0)


def converged(rule: Callable[[int], Array], nodes: int = 12, tolerance: float = TOLERANCE) -> Array:
    """Double the nodes of a rule for a probability until it settles; round the result up.

    Returns the finer value plus the last change plus the tolerance times the value, at most 1.
    """
    value = rule(nodes)
    while True:
        nodes *= 2
        finer = rule(nodes)
        error = np.abs(finer - value)
        if nodes >= 192 or np.all(error <= tolerance * finer):
            return np.asarray(np.minimum(1.0, finer * (1.0 + tolerance) + error))
        value = finer


def settled(rule: Callable[[int], Array]) -> float:
    """A rule for a number of order one, doubled until it settles, with the last change added."""
    scale = float(rule(12)[0])
    return float(converged(lambda n: 0.5 * rule(n) / scale, nodes=12)[0]) * 2.0 * scale
