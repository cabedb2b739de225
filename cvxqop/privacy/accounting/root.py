"""Roots of functions of one number that cost a quadrature each: few evaluations."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

__all__ = ["approximate_roots", "increasing_root"]

Array = npt.NDArray[np.float64]


def approximate_roots(function: Callable[[Array], Array], start: Array) -> Array:
    """Roots of many increasing functions at once, to about 1e-5, by secant steps: for searches.

    Parameters
    ----------
    function : callable
        Maps one point each, shape (P,), to values of that shape; close to straight lines.
    start : ndarray, shape (P,)
        Where to begin.

    Examples
    --------
    >>> roots = approximate_roots(lambda x: np.expm1(x - np.array([1.0, 2.0])), np.zeros(2))
    >>> bool(np.abs(roots - [1.0, 2.0]).max() < 1e-5)
    True
    """
    x, value, step = start, function(start), np.full_like(start, 0.1)
    for _ in range(20):
        after = function(x + step)
        slope = np.maximum((after - value) / step, 0.1)
        x, value = x + step, after
        step = np.clip(-value / slope, -2.0, 2.0)
        if np.abs(step).max() < 1e-5:
            break
        step = np.where(np.abs(step) < 1e-7, 1e-7, step)
    return x


def increasing_root(
    function: Callable[[float], float],
    start: float,
    stride: float,
    *,
    low: float = -60.0,
    high: float = math.inf,
    tolerance: float = 1e-6,
) -> tuple[float | None, float]:
    """The root of an increasing function, and the slope there, by secant steps.

    A step that leaves the interval that is known to hold the root is replaced by half of it. The
    last step, smaller than the tolerance, is taken without a look at what it leads to.

    Parameters
    ----------
    function : callable
        Increasing; the closer to a straight line, the fewer evaluations.
    start, stride : float
        Where to begin, and the size of the first step.
    low, high : float
        The interval that is searched.
    tolerance : float
        Size of the last step.

    Returns
    -------
    (float or None, float)
        ``high`` where the function is not positive there; None where it is positive at ``low``.

    Examples
    --------
    >>> root, slope = increasing_root(lambda x: x**3 - 8.0, 1.0, 0.5)
    >>> abs(root - 2.0) < 1e-9, round(slope)
    (True, 12)
    """
    below, above, slope = -math.inf, math.inf, 1.0
    x = min(max(start, low), high)
    value = function(x)
    step = -stride if value > 0.0 else stride
    for _ in range(200):
        if value > 0.0:
            if x <= low:
                return None, slope
            above = x
        else:
            if x >= high:
                return high, slope
            below = x
        after = min(max(x + step, low), high)
        if not below < after < above:
            after = 0.5 * (below + above)
        if abs(after - x) < tolerance:
            return after, slope
        new = function(after)
        rise = (new - value) / (after - x)
        x, value = after, new
        if rise > 0.0:
            slope = rise
            step = min(max(-value / slope, -2.0), 2.0)
        else:  # flat, or rough
            step = -stride if value > 0.0 else stride
            stride *= 2.0
    return below, slope
