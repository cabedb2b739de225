"""Roots of functions of one number that cost a quadrature each: few evaluations."""

from __future__ import annotations

import math
from collections.abc import Callable

__all__ = ["increasing_root"]


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
