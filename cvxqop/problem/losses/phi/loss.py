"""A function of one number as a scalar loss with proven constants."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from cvxqop.problem.losses.phi import bounds, compose, polynomial, smooth
from cvxqop.problem.losses.phi.piecewise import Piecewise
from cvxqop.problem.losses.phi.polynomial import as_end
from cvxqop.problem.losses.phi.proximal import NumericalEnvelope
from cvxqop.problem.losses.phi.smooth import Smooth, Unread
from cvxqop.problem.losses.scalar import ScalarLoss, huber, logistic, squared, squared_hinge

__all__ = ["PhiLoss", "Source", "bounded", "known", "loss_of"]

Array = npt.NDArray[np.float64]


Source = Piecewise | NumericalEnvelope
"""What a loss is computed from."""


@dataclass(frozen=True)
class PhiLoss(ScalarLoss):
    """A scalar loss with bounds that hold for the exact φ: rounded outwards, never below it.

    φ'' need not be unimodal. Where a lower bound on it over an interval is needed, ask
    `least_curvature`, and not the ends.

    Parameters
    ----------
    source : Piecewise or NumericalEnvelope
        φ.
    written : (float, float)
        Where it is the loss as it was written, and not what continues it.
    """

    source: Source = field(kw_only=True)
    written: tuple[float, float] = field(default=(-math.inf, math.inf), kw_only=True)

    def slope_bound(self, bound: float) -> float:
        """sup of |φ'(t)| over |t| ≤ bound."""
        return self.slope_on(-bound, bound)

    def slope_as_written(self, bound: float) -> float:
        """The same where the loss has not been continued beyond a range."""
        low, high = self.written
        return self.slope_on(min(max(-bound, low), high), max(min(bound, high), low))

    def slope_on(self, low: float, high: float) -> float:
        """sup of |φ'(t)| over low ≤ t ≤ high."""
        return min(self.slope, _slope_bound(self.source, low, high))

    def least_curvature(self, low: Array, high: Array) -> Array:
        """A lower bound on φ'' over each interval [low, high]."""
        if isinstance(self.source, Piecewise):
            return bounds.least_curvature(self.source, low, high)
        return self.source.least_curvature(low, high)

    def scaled(self, factor: float) -> ScalarLoss:
        """The loss t ↦ φ(factor · t)."""
        if factor == 1.0 or (factor == -1.0 and self.even):
            return self
        name = f"{self.name}, argument times {factor:g}"
        return loss_of(self.source.substitute(Fraction(factor), Fraction(0)), name)

    def times(self, weight: float) -> ScalarLoss:
        """The loss weight · φ(t), weight > 0."""
        return self if weight == 1.0 else loss_of(self.source * weight, self.name)

    def weighted(self, weight: float) -> ScalarLoss:
        """The loss w·φ, w > 0."""
        if weight == 1.0:
            return self
        return loss_of(self.source * weight, f"{weight:g} times {self.name}")


def _slope_bound(source: Source, low: float, high: float) -> float:
    if isinstance(source, Piecewise):
        return bounds.slope_bound(source, low, high)
    return source.slope_bound(low, high)


def loss_of(source: Source, name: str) -> PhiLoss:
    """A loss from φ, which is convex, C¹ and defined on the whole line; κ may be infinite."""
    quadratic, inverse = False, None
    if isinstance(source, Piecewise):
        curvature = bounds.curvature_bound(source)
        # Quadratic is κt²/2: readers of quadratic losses take the slope at zero for none.
        first = source.parts[0].poly[:2]
        quadratic = len(source.parts) == 1 and source.degree == 2 and not any(first)
        inverse = _inverse(source) if 0 <= source.degree <= 2 else None
    else:
        curvature = source.curvature_bound()
    return PhiLoss(
        name,
        value=lambda t: source.order(t, 0),
        derivative=lambda t: source.order(t, 1),
        second_derivative=lambda t: source.order(t, 2),
        curvature=curvature,
        slope=_slope_bound(source, -math.inf, math.inf),
        quadratic=quadratic,
        even=source.substitute(Fraction(-1), Fraction(0)) == source,
        inverse=inverse,
        source=source,
    )


def _inverse(f: Piecewise) -> Any:
    """A point of each slope, where φ' is piecewise linear and continuous."""
    # Slopes at the breakpoints, and at points beyond them that fix the outermost lines.
    points = [Fraction(0)] if not f.breaks else list(f.breaks)
    points = [points[0] - 1, *points, points[-1] + 1]
    slopes = [0.5 * (float(s.low) + float(s.high)) for s in (f.slope_at(p, -1) for p in points)]
    u, t = np.array(slopes), np.array([float(p) for p in points])
    bends = [
        float(polynomial.at(polynomial.derivative(polynomial.derivative(part.poly)), Fraction(0)))
        for part in (f.parts[0], f.parts[-1])
    ]

    def inverse(slope: Array) -> Any:
        slope = np.asarray(slope, dtype=np.float64)
        found = np.interp(slope, u, t)
        if bends[0] > 0.0:
            found = np.where(slope < u[0], t[0] + (slope - u[0]) / bends[0], found)
        if bends[1] > 0.0:
            found = np.where(slope > u[-1], t[-1] + (slope - u[-1]) / bends[1], found)
        return found

    return inverse


def known(f: Piecewise) -> ScalarLoss | None:
    """The loss of this library that φ is, up to factors of φ and of t; None if it is none."""
    part = f.parts[-1]
    t = Piecewise.argument()
    if not f.breaks and part.degree == 2 and not any(part.poly[:2]):
        return squared.weighted(float(part.poly[2]))
    if not f.breaks and len(part.terms) == 1 and not part.poly:
        term = part.terms[0]
        a = term.inner.poly[-1] if term.inner.degree == 1 else Fraction(0)
        if a and f == compose.logistic(t * a) * term.weight and term.weight > 0:
            return logistic.scaled(float(a)).weighted(float(term.weight))
    if f.breaks == (Fraction(0),):
        for sign, part in ((1.0, f.parts[1]), (-1.0, f.parts[0])):
            w = part.poly[2] if part.degree == 2 else Fraction(0)
            if w > 0 and f == compose.power((t * sign).maximum(0.0), 2.0) * w:
                return squared_hinge.scaled(sign).weighted(float(w))
    if len(f.breaks) == 2 and f.parts[1].degree == 2:
        m, w = f.breaks[1], f.parts[1].poly[2]
        if m > 0 and w > 0 and f == compose.huber(t, float(m)) * w:
            return huber(float(m)).weighted(float(w))
    return None


def bounded(f: Piecewise, low: float, high: float) -> Piecewise:
    """φ on [low, high], continued by the parabolas that touch it there, φ'' at the ends included.

    Raises
    ------
    Unread
        If φ, φ' or φ'' is infinite at an end.
    """
    if not (low < high and low >= f.low and high <= f.high):
        raise Unread("is not defined on the whole of its range")
    ends = [as_end(low), as_end(high)]
    segments = f.where(ends[0], ends[1]).segments()
    first, last = segments[0], segments[-1]
    if isinstance(ends[0], Fraction):
        segments.insert(0, (-math.inf, ends[0], _touching(first[2], ends[0])))
    if isinstance(ends[1], Fraction):
        segments.append((ends[1], math.inf, _touching(last[2], ends[1])))
    return Piecewise.joined(segments)


def _touching(part: Smooth, t: Fraction) -> Smooth:
    jet = [(float(one.low), float(one.high)) for one in part.at(t)]
    if not all(math.isfinite(end) and abs(end) < 1e100 for pair in jet for end in pair):
        raise Unread("is not smooth at an end of its range")
    value, slope, bend = (Fraction(0.5 * (low + high)) for low, high in jet)
    return smooth.quadratic(value, slope, max(bend, Fraction(0)), t)
