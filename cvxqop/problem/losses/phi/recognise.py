"""From the CVXPY expression of one number to a loss, or to what it lacks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from cvxqop.errors import OptionError
from cvxqop.problem.losses.phi.bounds import curvature_bound, slope_bound
from cvxqop.problem.losses.phi.envelope import envelope, gap
from cvxqop.problem.losses.phi.interval import Interval
from cvxqop.problem.losses.phi.loss import PhiLoss, bounded, known, loss_of
from cvxqop.problem.losses.phi.piecewise import Piecewise
from cvxqop.problem.losses.phi.proximal import NumericalEnvelope
from cvxqop.problem.losses.phi.reading import read_function
from cvxqop.problem.losses.phi.smooth import Unread
from cvxqop.problem.losses.scalar import ScalarLoss

__all__ = [
    "NeedsRange",
    "NeedsSmoothing",
    "NotRecognised",
    "Smooth",
    "Smoothed",
    "classified",
    "recognise",
]


@dataclass(frozen=True)
class Smooth:
    """φ is convex and C¹ with κ finite on the whole line."""

    loss: ScalarLoss


@dataclass(frozen=True)
class NeedsRange:
    """φ is convex, and its curvature is bounded on bounded ranges within its domain only.

    Parameters
    ----------
    function : Piecewise
        φ.
    name : str
        Name for people.
    """

    function: Piecewise
    name: str

    @property
    def domain(self) -> tuple[float, float]:
        """Where φ is finite, its ends apart."""
        return float(self.function.low), float(self.function.high)

    def within(self, low: float, high: float) -> Smooth | NeedsSmoothing:
        """φ on [low, high], continued as a parabola beyond: what it lacks there.

        Raises
        ------
        Unread
            If the range leaves the domain, or κ is infinite on it.
        """
        function = bounded(self.function, float(low), float(high)).without_rounding()
        if _rough(function):
            return NeedsSmoothing(function, self.name)
        loss = loss_of(function, self.name)
        if math.isinf(loss.curvature):
            raise Unread("has no bound on its curvature on this range")
        return Smooth(loss)

    def bounded(self, low: float, high: float | None = None) -> PhiLoss:
        """The loss that equals φ on [low, high] and goes on as a parabola beyond.

        Parameters
        ----------
        low, high : float
            The range; one number B is [−B, B]. An infinite end is allowed where κ stays finite.

        Raises
        ------
        Unread
            If κ is infinite on the range, φ has a kink there, or the range leaves the domain.
        """
        if high is None:
            low, high = -abs(low), abs(low)
        found = self.within(low, high)
        if isinstance(found, NeedsSmoothing):
            raise Unread("has a kink on this range")
        assert isinstance(found.loss, PhiLoss)
        return found.loss


@dataclass(frozen=True)
class Smoothed:
    """Moreau's envelope of φ.

    Parameters
    ----------
    loss : PhiLoss
        e_h φ: κ ≤ 1/h, slopes are those of φ.
    h : float
        Its width, in units of the argument per unit of the slope.
    gap : float
        φ − e_h φ lies between 0 and this, everywhere; infinite if the slope of φ is.
    """

    loss: PhiLoss
    h: float
    gap: float
    function: Piecewise

    def gap_on(self, low: float, high: float) -> float:
        """The largest φ − e_h φ on [low, high], or a bound on it."""
        return _gap(self.function, self.loss, self.h, low, high)


@dataclass(frozen=True)
class NeedsSmoothing:
    """φ is convex, and its slope jumps or rises infinitely fast somewhere.

    Parameters
    ----------
    function : Piecewise
        φ.
    name : str
        Name for people.
    """

    function: Piecewise
    name: str

    @property
    def slope(self) -> float:
        """sup |φ'|; may be infinite."""
        return slope_bound(self.function, -math.inf, math.inf)

    @property
    def _middle(self) -> Fraction:
        """The mean of the least and the largest slope; 0 if one is infinite."""
        ends = [self.function.slope_at(end, 1) for end in (-math.inf, math.inf)]
        m = 0.25 * sum(float(one.low) + float(one.high) for one in ends)
        return Fraction(m) if math.isfinite(m) else Fraction(0)

    def smoothed(self, h: float, centred: bool = False) -> Smoothed:
        """Moreau's envelope of width h > 0.

        With ``centred``, and φ piecewise quadratic with slopes between p and q, the envelope of
        φ(t) − m t, m = (p + q)/2, plus m t: curvature and slopes have the same bounds, and the
        gap is at most h (q − p)²/8, where φ's own is h max(p², q²)/2.

        Raises
        ------
        OptionError
            If h is not positive and finite.
        """
        if not 0.0 < h < math.inf:
            raise OptionError("smoothing: the width must be positive and finite.")
        width = Fraction(h)
        source: Piecewise | NumericalEnvelope = NumericalEnvelope(self.function, width)
        if 0 <= self.function.degree <= 2:
            t, m = Piecewise.argument(), self._middle if centred else Fraction(0)
            source = envelope(self.function - t * m, width) + t * m
        loss = loss_of(source, f"{self.name}, smoothed over {h:g}")
        largest = _gap(self.function, loss, h, -math.inf, math.inf)
        return Smoothed(loss, float(h), largest, self.function)


@dataclass(frozen=True)
class NotRecognised:
    """No loss is read; ``reason`` completes "The loss …"."""

    reason: str


def recognise(
    expression: Any,
    argument: Any,
    name: str = "loss φ of one number",
    also: Sequence[tuple[Any, float, float]] = (),
) -> Smooth | NeedsRange | NeedsSmoothing | NotRecognised:
    """What loss an expression is of one of its nodes.

    Parameters
    ----------
    expression : cvxpy Expression
        φ(t) for each entry t of the argument alike, or summed over the entries.
    argument : cvxpy Expression
        t, a node of the expression: a number, or an array with one number a record.
    name : str
        Name of the loss for people.
    also : sequence of (node, a, b)
        Other nodes of the expression that are a t + b.

    Examples
    --------
    >>> import cvxpy as cp
    >>> t = cp.Variable(3)
    >>> recognise(cp.huber(cp.pos(1 - t), 0.5), t).loss.slope
    1.0
    >>> recognise(cp.exp(t), t).bounded(1.0).curvature
    2.718...
    >>> recognise(cp.pos(1 - t), t).smoothed(0.25).loss.curvature
    4.0
    >>> recognise(cp.sqrt(t), t).reason
    'is not convex by the rules of CVXPY'
    """
    try:
        return classified(read_function(expression, argument, also), name)
    except OverflowError:
        return NotRecognised("has a constant that is too large")
    except Unread as reason:
        return NotRecognised(str(reason))


def classified(
    function: Piecewise, name: str
) -> Smooth | NeedsRange | NeedsSmoothing | NotRecognised:
    """What loss a function of one number is.

    Raises
    ------
    Unread, OverflowError
        If its constants cannot be proven.
    """
    if not function.convex():
        return NotRecognised("is not convex by the rules of CVXPY")
    function = function.without_rounding()
    if not function.breaks and function.parts[0].degree in (0, 1):
        return NotRecognised("is linear in its argument")
    if not function.everywhere:
        return NeedsRange(function, name)
    if _rough(function):
        return NeedsSmoothing(function, name)
    loss = known(function)
    if loss is not None:
        return Smooth(loss)
    if math.isinf(curvature_bound(function)):
        return NeedsRange(function, name)
    return Smooth(loss_of(function, name))


def _rough(f: Piecewise) -> bool:
    """Whether φ' jumps at a breakpoint, or φ'' is infinite beside one."""
    return bool(f.kinks()) or any(
        math.isinf(float(part.at(b)[2].high))
        for b, *parts in zip(f.breaks, f.parts[:-1], f.parts[1:], strict=True)
        for part in parts
        if part.degree < 0
    )


def _gap(f: Piecewise, loss: PhiLoss, h: float, low: float, high: float) -> float:
    """The exact gap of piecewise quadratics, else h g²/2 with the largest slope g."""
    if isinstance(loss.source, Piecewise):
        return gap(f, loss.source, low, high)
    g = Interval.of(slope_bound(f, low, high))
    return float((Interval.of(0.5 * h) * g * g).high)
