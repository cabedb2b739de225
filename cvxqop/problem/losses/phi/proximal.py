"""Moreau's envelope of any convex φ that is known, its minimiser found by Newton's method.

The statements of `envelope` hold for every convex φ: e_h φ is C¹, κ ≤ 1/h, its slopes are slopes
of φ, 0 ≤ φ − e_h φ ≤ h g²/2 for a slope g of φ at t; where φ'' exists at the minimiser s, the
curvature is φ''(s)/(1 + hφ''(s)).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
import numpy.typing as npt

from cvxqop.problem.losses.phi.bounds import least_curvature, slope_bound
from cvxqop.problem.losses.phi.interval import Interval
from cvxqop.problem.losses.phi.piecewise import Piecewise

__all__ = ["NumericalEnvelope"]

Array = npt.NDArray[np.float64]

_ROUNDS = 200
_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class NumericalEnvelope:
    """e_h φ for a convex φ on the whole line.

    Parameters
    ----------
    function : Piecewise
        φ.
    h : Fraction
        The width.
    """

    function: Piecewise
    h: Fraction

    def __mul__(self, weight: float | Fraction) -> NumericalEnvelope | Piecewise:
        """w e_h φ is the envelope of w φ with h/w; of w = 0 it is 0."""
        w = Fraction(weight)
        if w == 0:
            return Piecewise.number(0.0)
        return NumericalEnvelope(self.function * w, self.h / w)

    def substitute(self, a: Fraction, b: Fraction) -> NumericalEnvelope:
        """e_h φ(a t + b) is the envelope of φ(a t + b) with h/a²."""
        return NumericalEnvelope(self.function.substitute(a, b), self.h / a**2)

    @np.errstate(all="ignore")
    def minimiser(self, t: Array) -> Array:
        """s, between t and t − hφ'(t), by Newton's method between bounds that close."""
        t = np.asarray(t, dtype=np.float64)
        s, open_ = t.copy().ravel(), np.full(t.size, True)
        for left, b, right in self._rests:
            resting = (s >= left) & (s <= right) & open_
            s[resting], open_ = b, open_ & ~resting
        flat, active = t.ravel(), np.flatnonzero(open_)
        slope = self.function.order(flat[active], 1)
        side, most = np.where(slope > 0.0, -1.0, 1.0), float(self.h) * np.abs(slope)
        # s = t + side · r; the excess h |φ'(s)| − r falls by 1 at least as r grows by 1.
        low = np.zeros(active.size)
        r = np.minimum(most, 1.0 + np.abs(flat[active]))
        high = np.full(active.size, np.inf)
        for number in range(_ROUNDS):
            if not active.size:
                break
            x = flat[active]
            pull = -side * float(self.h) * self.function.order(x + side * r, 1)
            excess = pull - r
            s[active] = x + side * r
            up = excess > 0.0
            low, high = np.where(up, r, low), np.where(up, high, r)
            size = _EPS * (np.abs(x) + r + np.abs(pull))
            going = (np.abs(excess) > 2.0 * size) & (high - low > size)
            active, side, r = active[going], side[going], r[going]
            low, high, most = low[going], high[going], most[going]
            excess, x = excess[going], x[going]
            bend = self.function.order(x + side * r, 2)
            step = r + excess / (1.0 + float(self.h) * bend)
            half = np.where(np.isfinite(high), 0.5 * (low + high), np.minimum(2.0 * r + 1.0, most))
            # Every third step halves, lest Newton's method creep.
            newton = (step > low) & (step < high) & (number % 3 < 2)
            r = np.where(newton, step, half)
        return s.reshape(t.shape)

    @cached_property
    def _rests(self) -> list[tuple[float, float, float]]:
        """b + hφ'(b) for each kink b, and b: there s rests."""
        h, found = float(self.h), []
        for b, _ in self.function.kinks():
            slopes = self.function.slope_at(b, -1), self.function.slope_at(b, 1)
            left = float(b) + h * float(slopes[0].high)
            found.append((left, float(b), float(b) + h * float(slopes[1].low)))
        return found

    @np.errstate(all="ignore")
    def order(self, t: Array, k: int) -> Array:
        """e_h φ, its slope or curvature: k = 0, 1, 2."""
        t, h = np.asarray(t, dtype=np.float64), float(self.h)
        s = self.minimiser(t)
        slope: Array = (t - s) / h
        if k == 0:
            return self.function.order(s, 0) + 0.5 * h * np.square(slope)
        if k == 1:
            return slope
        bend = self.function.order(s, 2)
        kinked = np.isin(s, [b for _, b, _ in self._rests]) | np.isinf(bend)
        return np.where(kinked, 1.0 / h, bend / (1.0 + h * bend))

    def curvature_bound(self) -> float:
        """1/h, rounded up."""
        return float(Interval.of_fraction(1 / self.h).high)

    def slope_bound(self, low: float, high: float) -> float:
        """sup of slopes: between those of φ and 0, as s lies between t and the minimum of φ."""
        return slope_bound(self.function, low, high)

    def least_curvature(self, low: Array, high: Array) -> Array:
        """A lower bound on the curvature over each [low, high]: s rises with t."""
        ends = self.minimiser(np.concatenate([np.ravel(low), np.ravel(high)]))
        loose = 1e-12 * (1.0 + np.abs(ends))
        left, right = np.split(ends - loose, 2)[0], np.split(ends + loose, 2)[1]
        least = least_curvature(self.function, left, right).reshape(np.shape(low))
        found: Array = least / (1.0 + float(self.h) * least) * (1.0 - 1e-12)
        return found
