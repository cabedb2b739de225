"""From the units of the data, within public bounds, to numbers of size 1."""

from __future__ import annotations

import numbers
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cvxqop.errors import OptionError
from cvxqop.problem.bounds import Bounds

__all__ = ["Units", "features_within", "target_within"]


@dataclass(frozen=True, eq=False)
class Units:
    """v ↦ (v − middle)/half, after v was cut to [low, high]. All of them are public.

    Attributes
    ----------
    low, high : float or array
    middle, half : float or array
    """

    low: Any
    high: Any
    middle: Any
    half: Any

    @classmethod
    def of(cls, low: Any, high: Any, centred: bool) -> Units:
        """Units in which [low, high] lies in [−1, 1], with 0 in the middle if ``centred``."""
        if centred:
            return cls(low, high, 0.5 * (low + high), 0.5 * (high - low))
        return cls(low, high, 0.0 * low, np.maximum(np.abs(low), np.abs(high)))

    def __call__(self, values: Any) -> Any:
        """Values in these units, NaN for those that are not finite."""
        known = np.where(np.isfinite(values), values, np.nan)
        return (np.clip(known, self.low, self.high) - self.middle) / self.half


def features_within(bounds: Any, d: int, centred: bool) -> tuple[Units, Bounds]:
    """Units of X, and the bounds of its rows in them.

    Parameters
    ----------
    bounds : float, Bounds or pair (low, high)
        A bound on the norm of a row, or ranges of the columns, each mapped to [−1, 1].
    d : int
        Number of columns.
    centred : bool
        Whether the middle of a range becomes 0, which takes an intercept.

    Raises
    ------
    OptionError
        The bounds are none of these, or of another number of columns.
    """
    if isinstance(bounds, Bounds) and bounds.limits:
        bounds = tuple(zip(*bounds.limits, strict=True))
    if isinstance(bounds, tuple | list):
        low, high = _pair("bounds_X", bounds, d)
        return Units.of(low, high, centred), Bounds(row_norm=float(np.sqrt(d)))
    known = bounds if isinstance(bounds, Bounds) else Bounds(row_norm=bounds)
    units = Units(-np.inf, np.inf, 0.0, known.row_norm)
    return units, replace(known, row_norm=1.0, offset=None)


def target_within(bounds: Any, centred: bool) -> Units:
    """Units of y, of which ``bounds`` is the range (low, high), or a bound on its size.

    Raises
    ------
    OptionError
        They are neither.
    """
    pair = (-bounds, bounds) if isinstance(bounds, numbers.Real) else bounds
    low, high = _pair("bounds_y", pair, 1)
    return Units.of(float(low[0]), float(high[0]), centred)


def _pair(name: str, pair: Any, d: int) -> tuple[Any, Any]:
    try:
        low, high = (np.broadcast_to(np.asarray(end, dtype=np.float64), d) for end in pair)
        fine = bool(np.all(low < high) and np.all(np.isfinite([low, high])))
    except (TypeError, ValueError):
        fine = False
    if not fine:
        raise OptionError(
            f"{name} must be a pair (low, high) of public numbers with low < high"
            + ("." if d == 1 else f", or of arrays with one for each of the {d} columns.")
        )
    return low, high
