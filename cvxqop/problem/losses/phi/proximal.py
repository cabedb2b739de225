"""Moreau's envelope of any convex φ that is known, its minimiser found by Newton's method.

The statements of `envelope` hold for every convex φ: e_h φ is C¹, κ ≤ 1/h, its slopes are slopes
of φ, 0 ≤ φ − e_h φ ≤ h g²/2 for a slope g of φ at t; where φ'' exists at the minimiser s, the
curvature is φ''(s)/(1 + hφ''(s)).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

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

    def __mul__(self, weight: float | Fraction) -> NumericalEnvelope:
        """w e_h φ, w > 0, is the envelope of w φ with h/w."""
        w = Fraction(weight)
        return NumericalEnvelope(self.function * w, self.h / w)

    def substitute(self, a: Fraction, b: Fraction) -> NumericalEnvelope:
        """e_h φ(a t + b) is the envelope of φ(a t + b) with h/a²."""
        return NumericalEnvelope(self.function.substitute(a, b), self.h / a**2)

    @np.errstate(all="ignore")
    def minimiser(self, t: Array) -> Array:
        """s, between t and t − hφ'(t)."""
        t, h = np.asarray(t, dtype=np.float64), float(self.h)
        slope = self.function.evaluate(t)[1]
        side = np.where(slope > 0.0, -1.0, 1.0)
        # s = t + side · r; excess = h |φ'| − r falls through 0 as r grows.
        low, high = np.zeros_like(t), np.minimum(h * np.abs(slope), 1.0 + np.abs(t))
        for _ in range(_ROUNDS):
            excess = -side * h * self.function.evaluate(t + side * high)[1] - high
            if not np.any(excess > 0.0):
                break
            high = np.where(excess > 0.0, np.minimum(2.0 * high, h * np.abs(slope)), high)
        r = high
        for number in range(_ROUNDS):
            _, first, second = self.function.evaluate(t + side * r)
            excess = -side * h * first - r
            low, high = np.where(excess > 0.0, r, low), np.where(excess > 0.0, high, r)
            step = r + excess / (1.0 + h * second)
            middle = 0.5 * (low + high)
            inside = np.isfinite(step) & (step > low) & (step < high)
            # Every third step halves, lest Newton's method creep towards a kink.
            trial = np.where(inside & (number % 3 < 2), step, middle)
            if np.all(high - low <= 2.0 * _EPS * (np.abs(t) + high)):
                break
            r = trial
        return self._on_kinks(t, t + side * 0.5 * (low + high))

    def _on_kinks(self, t: Array, s: Array) -> Array:
        """s exactly at a breakpoint where t lies in b + hφ'(b)."""
        h = float(self.h)
        for b in self.function.breaks:
            left = float(b) + h * float(self.function.slope_at(b, -1).high)
            right = float(b) + h * float(self.function.slope_at(b, 1).low)
            s = np.where((t >= left) & (t <= right), float(b), s)
        return s

    @np.errstate(all="ignore")
    def evaluate(self, t: Array) -> tuple[Array, Array, Array]:
        """e_h φ, its slope and curvature."""
        t, h = np.asarray(t, dtype=np.float64), float(self.h)
        s = self.minimiser(t)
        value, _, bend = self.function.evaluate(s)
        slope = (t - s) / h
        kinked = np.isin(s, [float(b) for b, _ in self.function.kinks()]) | np.isinf(bend)
        curvature = np.where(kinked, 1.0 / h, bend / (1.0 + h * bend))
        return value + 0.5 * h * np.square(slope), slope, curvature

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
