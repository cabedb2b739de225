"""Functions of one number that are smooth between breakpoints, which are rational numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from cvxqop.problem.losses.phi import polynomial
from cvxqop.problem.losses.phi.interval import Interval
from cvxqop.problem.losses.phi.polynomial import End
from cvxqop.problem.losses.phi.smooth import Smooth, Unread, constant, identity

__all__ = ["Piecewise", "Segment"]

Array = npt.NDArray[np.float64]
Segment = tuple[End, End, Smooth]

_SMALL = 1e-12
_MOST = 256


@dataclass(frozen=True)
class Piecewise:
    """``parts[k]`` from ``breaks[k − 1]`` to ``breaks[k]``; continuous on its domain (low, high).

    Examples
    --------
    >>> t = Piecewise.argument()
    >>> hinge = (1 - t).maximum(0)
    >>> hinge.breaks, hinge.jumps()
    ((Fraction(1, 1),), [Fraction(1, 1)])
    """

    breaks: tuple[Fraction, ...]
    parts: tuple[Smooth, ...]
    low: End = -math.inf
    high: End = math.inf

    @staticmethod
    def argument() -> Piecewise:
        """t itself."""
        return Piecewise((), (identity(),))

    @staticmethod
    def number(value: float | Fraction) -> Piecewise:
        """A constant."""
        return Piecewise((), (constant(exact(value)),))

    @staticmethod
    def joined(segments: list[Segment]) -> Piecewise:
        """From adjacent segments; equal neighbours become one."""
        segments = [one for one in segments if one[0] < one[1]]
        if not segments:
            raise Unread("is defined nowhere")
        breaks: list[Fraction] = []
        parts = [segments[0][2]]
        for (_, end, before), (start, _, after) in pairwise(segments):
            if end != start:
                raise Unread("is defined on more than one interval")
            if len(parts) > _MOST:
                raise Unread("has too many pieces")
            if after != before:
                breaks.append(Fraction(start))
                parts.append(after)
        return Piecewise(tuple(breaks), tuple(parts), segments[0][0], segments[-1][1])

    def segments(self) -> list[Segment]:
        """(left, right, part) in order."""
        ends: list[End] = [self.low, *self.breaks, self.high]
        return list(zip(ends[:-1], ends[1:], self.parts, strict=True))

    @property
    def degree(self) -> int:
        """Largest degree of a part; −1 where one is no polynomial."""
        degrees = [part.degree for part in self.parts]
        return -1 if -1 in degrees else max(degrees)

    @property
    def everywhere(self) -> bool:
        """Whether the domain is the whole line."""
        return self.low == -math.inf and self.high == math.inf

    def each(self, split: Callable[[End, End, Smooth], list[Segment]]) -> Piecewise:
        """What a function of one segment makes of each."""
        return Piecewise.joined([piece for one in self.segments() for piece in split(*one)])

    def map(self, function: Callable[[Smooth], Smooth]) -> Piecewise:
        """What a function makes of each part."""
        return self.each(lambda left, right, part: [(left, right, function(part))])

    def _common(self, other: Piecewise) -> Iterator[tuple[End, End, Smooth, Smooth]]:
        mine, theirs = self.segments(), other.segments()
        for a, b, part in mine:
            for c, d, piece in theirs:
                left, right = max(a, c), min(b, d)
                if left < right:
                    yield left, right, part, piece

    def __add__(self, other: Piecewise | float | Fraction) -> Piecewise:
        common = self._common(_piecewise(other))
        return Piecewise.joined([(a, b, f + g) for a, b, f, g in common])

    __radd__ = __add__

    def __neg__(self) -> Piecewise:
        return self * -1.0

    def __sub__(self, other: Piecewise | float | Fraction) -> Piecewise:
        return self + _piecewise(other) * -1.0

    def __rsub__(self, other: float | Fraction) -> Piecewise:
        return -self + other

    def __mul__(self, factor: float | Fraction | Piecewise) -> Piecewise:
        if isinstance(factor, Piecewise):
            raise Unread("multiplies the argument by a function of itself")
        w = exact(factor)
        return self.map(lambda part: part.times(w))

    __rmul__ = __mul__

    def substitute(self, a: Fraction, b: Fraction) -> Piecewise:
        """φ(a t + b), a ≠ 0."""

        def back(end: End) -> End:
            return math.copysign(1.0, a) * end if isinstance(end, float) else (end - b) / a

        moved = [(back(u), back(v), part.substitute(a, b)) for u, v, part in self.segments()]
        if a < 0:
            moved = [(v, u, part) for u, v, part in reversed(moved)]
        return Piecewise.joined(moved)

    def maximum(self, other: Piecewise | float | Fraction) -> Piecewise:
        """The larger of both, entry by entry."""
        found: list[Segment] = []
        for a, b, f, g in self._common(_piecewise(other)):
            signs = (f + g.times(Fraction(-1))).signs(a, b)
            found += [(left, right, f if sign >= 0 else g) for left, right, sign in signs]
        return Piecewise.joined(found)

    def minimum(self, other: Piecewise | float | Fraction) -> Piecewise:
        """The smaller of both."""
        return -(-self).maximum(-_piecewise(other))

    def absolute(self) -> Piecewise:
        """|φ|."""
        return self.maximum(-self)

    def where(self, left: End, right: End) -> Piecewise:
        """φ with its domain cut to (left, right)."""
        cut = [(max(a, left), min(b, right), part) for a, b, part in self.segments()]
        return Piecewise.joined([one for one in cut if one[0] < one[1]])

    def jumps(self) -> list[Fraction]:
        """φ'(b+) − φ'(b−) at each breakpoint: exact between polynomials, else to rounding."""
        return [jump for jump, _ in self._jumps]

    def kinks(self) -> list[tuple[Fraction, Fraction]]:
        """Breakpoints where the slope jumps by more than rounding, and the jumps."""
        return [(b, jump) for b, (jump, real) in zip(self.breaks, self._jumps, strict=True) if real]

    @cached_property
    def _jumps(self) -> list[tuple[Fraction, bool]]:
        """The jump at each breakpoint, and whether it is more than rounding."""
        found = []
        for b, before, after in zip(self.breaks, self.parts[:-1], self.parts[1:], strict=True):
            change = after + before.times(Fraction(-1))
            if change.degree >= 0:
                jump = polynomial.at(polynomial.derivative(change.poly), b)
            else:
                range_ = change.at(b)[1]
                if not (math.isfinite(range_.low) and math.isfinite(range_.high)):
                    raise Unread("has an infinite slope where its pieces meet")
                jump = Fraction(0.5 * float(range_.low) + 0.5 * float(range_.high))
            real = False
            if jump:
                slopes = [part.at(b)[1] for part in (before, after)]
                size = max(float(max(abs(one.low), abs(one.high))) for one in slopes)
                real = abs(jump) > _SMALL * size
            found.append((jump, real))
        return found

    def without_rounding(self) -> Piecewise:
        """φ without those jumps of its slope that are rounding of the constants, as .3 − 3 · .1.

        A jump J at b is taken away with the function J (t − b)₊, so that φ' is continuous there.
        """
        found = self
        for b, (jump, real) in zip(self.breaks, self._jumps, strict=True):
            if jump and not real:
                found = found + (Piecewise.argument() - b).maximum(0.0) * -jump
        return found

    def convex(self) -> bool:
        """Whether φ is proven convex: each part, and no slope that falls at a breakpoint."""
        bent = all(part.shape(a, b)[0] for a, b, part in self.segments())
        return bent and all(jump > 0 for _, jump in self.kinks())

    def slope_at(self, t: End, side: int) -> Interval:
        """Range of φ' at one point of the closed domain, from the left (−1) or the right (1)."""
        if isinstance(t, float):
            part = self.parts[0 if t < 0 else -1]
            return part.enclose(Interval.of(t))[1]
        for a, b, part in self.segments():
            if (a < t <= b) if side < 0 else (a <= t < b):
                return part.at(t)[1]
        part = self.parts[0] if t <= self.low else self.parts[-1]
        return part.at(t)[1]

    def order(self, t: Array, k: int) -> Array:
        """φ, φ' or φ'' (k = 0, 1, 2); beyond the domain what the outermost part gives."""
        t = np.asarray(t, dtype=np.float64)
        if len(self.parts) == 1:
            return self.parts[0].order(t, k)
        index = np.searchsorted(self._knots, t)
        if self._table is not None:
            centre, (c0, c1, c2) = self._table
            found: Array = np.take(2.0 * c2, index)
            if k == 2:
                return found
            s = t - np.take(centre, index)
            found = (found if k == 1 else 0.5 * found) * s + np.take(c1, index)
            return found if k == 1 else found * s + np.take(c0, index)
        found = np.empty_like(t)
        for number, part in enumerate(self.parts):
            chosen = index == number
            if np.any(chosen):
                found[chosen] = part.order(t[chosen], k)
        return found

    @cached_property
    def _knots(self) -> Array:
        return np.array([float(b) for b in self.breaks])

    @cached_property
    def _table(self) -> tuple[Array, Array] | None:
        """Centres and coefficients of parts that are all of degree ≤ 2."""
        if not 0 <= self.degree <= 2:
            return None
        pairs = [part.about for part in self.parts]
        padded = [[*orders[0], 0.0, 0.0, 0.0][:3] for _, orders in pairs]
        return np.array([centre for centre, _ in pairs]), np.array(padded).T.copy()


def exact(value: float | Fraction) -> Fraction:
    """A double as the rational number that it is."""
    if isinstance(value, Fraction):
        return value
    number = float(value)
    if not math.isfinite(number) or abs(number) > 1e100:
        raise Unread("has a constant that is not finite, or too large")
    return Fraction(number)


def _piecewise(value: Piecewise | float | Fraction) -> Piecewise:
    return value if isinstance(value, Piecewise) else Piecewise.number(value)
