"""Proven bounds on slope and curvature: enclosures on boxes, divided until they are tight."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from cvxqop.problem.losses.phi.interval import Interval
from cvxqop.problem.losses.phi.piecewise import Piecewise
from cvxqop.problem.losses.phi.polynomial import End, as_end
from cvxqop.problem.losses.phi.smooth import Smooth, outer

__all__ = ["curvature_bound", "least_curvature", "slope_bound"]

Array = npt.NDArray[np.float64]

_TIGHT = 2.0**-10
_ROUNDS, _BOXES = 80, 1 << 14


def slope_bound(f: Piecewise, low: float, high: float) -> float:
    """sup |φ'| over [low, high] within the domain, φ convex: attained at an end."""
    left, right = as_end(low), as_end(high)
    ends = [f.slope_at(max(left, f.low), 1), f.slope_at(min(right, f.high), -1)]
    return max(float(max(abs(one.low), abs(one.high))) for one in ends)


def curvature_bound(f: Piecewise, low: float = -math.inf, high: float = math.inf) -> float:
    """κ ≥ φ'' where it exists on (low, high), and at most 0.2% more where `inf` is not right."""
    left, right = as_end(low), as_end(high)
    parts = [(max(a, left), min(b, right), part) for a, b, part in f.segments()]
    return max(_supremum(part, a, b) for a, b, part in parts if a < b)


def _supremum(part: Smooth, low: End, high: End) -> float:
    """sup φ'' of one part, from above. A box is divided while its bound is far above φ'' seen."""
    box = outer(low, high)
    first, last = float(box.low), float(box.high)
    if part.degree >= 0:
        return max(0.0, float(part.enclose(box)[2].high))
    grid = 2.0 ** np.arange(-10, 41)
    grid = np.concatenate([-grid[::-1], [0.0], grid])
    inside = grid[(grid > first) & (grid < last)]
    edges = np.concatenate([[first], inside, [last]])
    left, right = edges[:-1], edges[1:]
    seen, done = 0.0, 0.0
    for number in range(_ROUNDS):
        bound = part.enclose(Interval.of(left, right))[2].high
        middle = _middle(left, right)
        samples = part.order(np.concatenate([middle, left[np.isfinite(left)]]), 2)
        seen = max(seen, float(np.max(samples[~np.isnan(samples)], initial=0.0)))
        endless = np.isinf(bound) & (np.isinf(left) | np.isinf(right))
        if math.isinf(seen) or (number > 8 and np.any(endless)):
            return math.inf
        wide = (bound > seen * (1.0 + _TIGHT)) & (middle > left) & (middle < right)
        done = max(done, float(np.max(bound[~wide], initial=0.0)))
        left, middle, right = left[wide], middle[wide], right[wide]
        if not left.size:
            return done
        if left.size > _BOXES:
            break
        left, right = np.concatenate([left, middle]), np.concatenate([middle, right])
    return max(done, float(np.max(part.enclose(Interval.of(left, right))[2].high)))


def _middle(left: Array, right: Array) -> Array:
    """A point inside each box; far out, twice as far."""
    ends = np.isfinite(left), np.isfinite(right)
    middle = np.where(ends[0] & ends[1], 0.5 * left + 0.5 * right, 0.0)
    middle = np.where(ends[0] & ~ends[1], np.maximum(2.0 * left, 1.0), middle)
    return np.where(~ends[0] & ends[1], np.minimum(2.0 * right, -1.0), middle)


def least_curvature(f: Piecewise, low: Array, high: Array) -> Array:
    """A lower bound on φ'' over each [low, high], also where φ'' rises again."""
    least = np.full(np.shape(low), np.inf)
    for a, b, part in f.segments():
        box = outer(a, b)
        if 0 <= part.degree <= 2:
            bend = float(part.enclose(box)[2].low)
            touched = (low <= box.high) & (high >= box.low) & (least > bend)
            least[touched] = bend
            continue
        left, right = np.maximum(low, box.low), np.minimum(high, box.high)
        chosen = left <= right
        if np.any(chosen):
            ranges = part.enclose(Interval.of(left[chosen], right[chosen]))
            least[chosen] = np.minimum(least[chosen], ranges[2].low)
    return np.where(np.isinf(least), 0.0, np.maximum(least, 0.0))
