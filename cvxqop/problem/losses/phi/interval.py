"""Intervals of numbers, arrays of them at once, rounded outwards.

Sums and products are moved by one unit in the last place. Library functions are trusted to
`SLACK` relative, a thousand units: exp, log and the rest are not correctly rounded.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

__all__ = ["SLACK", "Interval", "monotone", "settled", "slack"]

Array = npt.NDArray[np.float64]

SLACK = 2.0**-42
"""Relative error that an elementary function of NumPy or SciPy is allowed."""

_LEAST = 5e-324
"""The smallest positive double: what a result is taken for that is 0 by underflow alone."""


def _down(x: Array) -> Array:
    return np.nextafter(np.where(np.isnan(x), -np.inf, x), -np.inf)


def _up(x: Array) -> Array:
    return np.nextafter(np.where(np.isnan(x), np.inf, x), np.inf)


@dataclass(frozen=True, eq=False)
class Interval:
    """Numbers low ≤ x ≤ high, one interval an entry; an end may be infinite.

    Examples
    --------
    >>> tenth = Interval.of_fraction(Fraction(1, 10))
    >>> float(tenth.low) < float(tenth.high) == 0.1
    True
    """

    low: Array
    high: Array

    @staticmethod
    def of(low: float | Array, high: float | Array | None = None) -> Interval:
        """From ends that are exact."""
        low = np.asarray(low, dtype=np.float64)
        return Interval(low, low if high is None else np.asarray(high, dtype=np.float64))

    @staticmethod
    def of_fraction(x: Fraction) -> Interval:
        """The smallest interval of doubles that holds x."""
        near = float(x)
        exact = Fraction(near)
        low, high = np.asarray(near), np.asarray(near)
        return Interval(low if exact <= x else _down(low), high if exact >= x else _up(high))

    @np.errstate(all="ignore")
    def __add__(self, other: Interval) -> Interval:
        return Interval(
            _sum(self.low, other.low, _down(self.low + other.low)),
            _sum(self.high, other.high, _up(self.high + other.high)),
        )

    def __neg__(self) -> Interval:
        return Interval(-self.high, -self.low)

    def __sub__(self, other: Interval) -> Interval:
        return self + (-other)

    @np.errstate(all="ignore")
    def __mul__(self, other: Interval) -> Interval:
        ends = [_product(a, b) for a in (self.low, self.high) for b in (other.low, other.high)]
        low, high = np.minimum.reduce(ends), np.maximum.reduce(ends)
        # A factor that is exactly 1 or 0 changes no sign, and costs no rounding.
        return Interval(
            np.where(low == 0.0, low, _down(low)), np.where(high == 0.0, high, _up(high))
        )

    def square(self) -> Interval:
        """x² ≥ 0."""
        a, b = np.abs(self.low), np.abs(self.high)
        inside = (self.low <= 0.0) & (self.high >= 0.0)
        low = np.where(inside, 0.0, np.minimum(a, b))
        return Interval(np.maximum(0.0, _down(low * low)), _up(np.maximum(a, b) ** 2))

    def clip(self, low: float, high: float) -> Interval:
        """What is left of it where every x is known to lie in [low, high]."""
        return Interval(np.clip(self.low, low, high), np.clip(self.high, low, high))

    def known(self) -> Interval:
        """The same, where an end could not be computed an infinite one."""
        return Interval(
            np.where(np.isnan(self.low), -np.inf, self.low),
            np.where(np.isnan(self.high), np.inf, self.high),
        )

    def hull(self, other: Interval) -> Interval:
        """The smallest interval that holds both."""
        return Interval(np.minimum(self.low, other.low), np.maximum(self.high, other.high))

    def nearest_to_zero(self) -> Array:
        """The x of smallest size."""
        return np.clip(np.zeros_like(self.low), self.low, self.high)


def _sum(a: Array, b: Array, rounded: Array) -> Array:
    """The rounded sum; the sum itself where one number is 0, so that signs are kept."""
    return np.where(a == 0.0, b, np.where(b == 0.0, a, rounded))


def _product(a: Array, b: Array) -> Array:
    """a·b; 0·∞ is 0, as an infinite end is not attained."""
    value = a * b
    value = np.where(value == 0.0, np.copysign(_LEAST, value), value)
    return np.where((a == 0.0) | (b == 0.0), 0.0, value)


def monotone(function: Callable[[Array], Array], x: Interval, rising: bool = True) -> Interval:
    """Range of a monotone function, `SLACK` of its size wider at either end."""
    first, last = (settled(function(end), end) for end in (x.low, x.high))
    low, high = (first, last) if rising else (last, first)
    return slack(low, high)


def settled(value: Array, at: Array) -> Array:
    """Function values where 0 at a finite argument other than 0 is taken for an underflow."""
    under = (value == 0.0) & (at != 0.0) & np.isfinite(at)
    return np.where(under, np.copysign(_LEAST, value), value)


def slack(low: Array, high: Array) -> Interval:
    """Ends that a library function computed, `SLACK` of their size further out; 0 stays 0."""
    low = np.where(np.isnan(low), -np.inf, low)
    high = np.where(np.isnan(high), np.inf, high)
    below = np.where(np.isinf(low), low, low - SLACK * np.abs(low))
    above = np.where(np.isinf(high), high, high + SLACK * np.abs(high))
    # A subnormal number has no room for a relative error.
    tiny = 1e-300
    below = np.where((low != 0.0) & (np.abs(low) < tiny), np.where(low > 0.0, 0.0, -tiny), below)
    above = np.where((high != 0.0) & (np.abs(high) < tiny), np.where(high < 0.0, 0.0, tiny), above)
    return Interval(below, above)
