"""Expectations over a standard normal variable, many at once, over a half line."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from cvxqop.privacy.accounting.quadrature import panel_integrals

__all__ = ["half_normal_mean"]

Array = npt.NDArray[np.float64]

REACH = 40.0
"""The normal density beyond is below e⁻⁸⁰⁰."""


def half_normal_mean(
    weight: Callable[[Array], Array], low: Array, kinks: Array, nodes: int
) -> Array:
    """∫_low^∞ weight(g) φ(g) dg, φ the standard normal density, P integrals at once.

    A coarse scan of the log integrand finds where it lives; the rest, below e⁻⁵⁰ of its peak, is
    left out.

    Parameters
    ----------
    weight : callable
        Maps points g of shape (P, N) to weights in [0, 1] of the same shape.
    low : ndarray, shape (P,)
        Lower ends.
    kinks : ndarray, shape (P, K)
        Points where the weight bends within a short distance: panels end there.
    nodes : int
        Number of Gauss-Legendre nodes of each panel.

    Returns
    -------
    ndarray, shape (P,)

    Examples
    --------
    >>> mean = half_normal_mean(lambda g: np.ones_like(g), np.zeros(1), np.zeros((1, 0)), 20)
    >>> bool(abs(mean[0] - 0.5) < 1e-14)
    True
    """
    rows = np.arange(len(low))
    start = np.clip(low, -REACH, REACH)[:, None]
    steps = np.broadcast_to(np.arange(-REACH, REACH + 0.5, 0.5), (len(low), 161))
    near = np.hstack([kinks - 0.02, kinks + 0.02])
    grid = np.sort(np.clip(np.hstack([start, steps, kinks, near]), start, REACH), axis=1)
    with np.errstate(divide="ignore"):
        height = np.log(weight(grid)) - 0.5 * grid**2
    alive = np.isfinite(height) & (height > height.max(axis=1, keepdims=True) - 50.0)
    end = grid.shape[1] - 1
    first, last = alive.argmax(axis=1), end - alive[:, ::-1].argmax(axis=1)
    left = grid[rows, np.maximum(first - 1, 0)][:, None]
    right = grid[rows, np.minimum(last + 1, end)][:, None]
    middle = left + (right - left) * np.linspace(0.0, 1.0, 7)
    edges = np.sort(np.clip(np.hstack([middle, kinks]), left, right), axis=1)

    def integrand(g: Array) -> Array:
        return np.asarray(weight(g) * np.exp(-0.5 * g**2) / np.sqrt(2.0 * np.pi))

    total = panel_integrals(integrand, edges, nodes)
    return np.asarray(np.where(alive.any(axis=1), total, 0.0))
