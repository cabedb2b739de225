"""Smooth functions of one number, with their first two derivatives and the ranges of all three.

Each range is attained at the ends of the interval, at zero, or bounded as its docstring says: an
atom of an affine argument is enclosed without slack but that of rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from scipy.special import expit, xlogy

from cvxqop.problem.losses.phi.interval import Interval, monotone, settled, slack

__all__ = ["EXP", "LOG", "SOFTPLUS", "XLOGX", "Atom", "Hypot", "Power"]

Array = npt.NDArray[np.float64]
Function = Callable[[Array], Array]


class Atom(Protocol):
    """g, g' and g'' of arrays, and their ranges over intervals within the domain."""

    def order(self, u: Array, k: int) -> Array:
        """g, g' or g'': k = 0, 1, 2."""

    def ranges(self, u: Interval) -> tuple[Interval, Interval, Interval]:
        """Ranges of g, g', g''."""


def _rising(g: Function) -> Callable[[Interval], Interval]:
    return lambda u: monotone(g, u)


def _falling(g: Function) -> Callable[[Interval], Interval]:
    return lambda u: monotone(g, u, rising=False)


def _bump(g: Function) -> Callable[[Interval], Interval]:
    """Range of an even g ≥ 0 that falls with |u|."""

    def found(u: Interval) -> Interval:
        near = u.nearest_to_zero()
        first, last, high = (settled(g(end), end) for end in (u.low, u.high, near))
        return slack(np.minimum(first, last), high)

    return found


@dataclass(frozen=True)
class _Named:
    """An atom without parameters; equal to no other."""

    name: str
    functions: tuple[Function, Function, Function]
    enclosures: tuple[Any, Any, Any]
    domain: float = -math.inf

    def order(self, u: Array, k: int) -> Array:
        return self.functions[k](np.maximum(u, self.domain))

    def ranges(self, u: Interval) -> tuple[Interval, Interval, Interval]:
        u = u.clip(self.domain, math.inf)
        g, slope, bend = self.enclosures
        return g(u), slope(u), bend(u)


def _softplus(u: Array) -> Array:
    return np.asarray(np.logaddexp(0.0, u))


def _expit(u: Array) -> Array:
    return np.asarray(expit(u))


def _bell(u: Array) -> Array:
    return np.asarray(expit(u) * expit(-u))


def _xlogx(u: Array) -> Array:
    return np.asarray(xlogy(u, u))


def _xlogx_range(u: Interval) -> Interval:
    """It falls to −1/e at 1/e, then rises."""
    bottom = np.clip(np.full_like(u.low, math.exp(-1.0)), u.low, u.high)
    found = slack(_xlogx(bottom), np.maximum(_xlogx(u.low), _xlogx(u.high)))
    # 1/e is rounded: the value there is off by the square of that.
    return Interval(found.low - 1e-15, found.high)


EXP = _Named("exp", (np.exp, np.exp, np.exp), (_rising(np.exp),) * 3)
LOG = _Named(
    "log",
    (np.log, np.reciprocal, lambda u: -1.0 / np.square(u)),
    (_rising(np.log), _falling(np.reciprocal), _rising(lambda u: -1.0 / np.square(u))),
    domain=0.0,
)
SOFTPLUS = _Named(
    "logistic",
    (_softplus, _expit, _bell),
    (_rising(_softplus), lambda u: _rising(_expit)(u).clip(0.0, 1.0),
     lambda u: _bump(_bell)(u).clip(0.0, 0.25)),
)  # fmt: skip
XLOGX = _Named(
    "u log u",
    (_xlogx, lambda u: np.log(u) + 1.0, np.reciprocal),
    (_xlogx_range, lambda u: monotone(np.log, u) + Interval.of(1.0), _falling(np.reciprocal)),
    domain=0.0,
)


@dataclass(frozen=True)
class Power:
    """u^p: of u ≥ 0, or of any u for an even p."""

    p: float

    @property
    def even(self) -> bool:
        """Whether p = 2, 4, 6, …"""
        return self.p > 0 and self.p % 2 == 0

    def order(self, u: Array, k: int) -> Array:
        p, u = self.p, u if self.even else np.maximum(u, 0.0)
        found: Array = (1.0, p, p * (p - 1.0))[k] * u ** (p - k)
        return found

    def ranges(self, u: Interval) -> tuple[Interval, Interval, Interval]:
        p = self.p
        if not self.even:
            u = u.clip(0.0, math.inf)
        coefficients = (1.0, p, p * (p - 1.0))
        return (
            self._range(u, p, coefficients[0]),
            self._range(u, p - 1.0, coefficients[1]),
            self._range(u, p - 2.0, coefficients[2]),
        )

    def _range(self, u: Interval, q: float, coefficient: float) -> Interval:
        """coefficient · u^q: of u ≥ 0 it is monotone; q is a whole number where u may be < 0."""
        if coefficient == 0.0 or q == 0.0:
            return Interval.of(np.full_like(u.low, coefficient))
        rising = (q > 0.0) == (coefficient > 0.0)
        if not self.even or q % 2 == 1:
            return monotone(lambda x: coefficient * x**q, u, rising)
        size = Interval(np.abs(u.nearest_to_zero()), np.maximum(np.abs(u.low), np.abs(u.high)))
        return monotone(lambda x: coefficient * x**q, size, rising)


@dataclass(frozen=True)
class Hypot:
    """√(u² + δ²), δ > 0: pseudo-Huber."""

    delta: float

    def order(self, u: Array, k: int) -> Array:
        return (self._value, self._slope, self._bend)[k](u)

    def ranges(self, u: Interval) -> tuple[Interval, Interval, Interval]:
        size = Interval(np.abs(u.nearest_to_zero()), np.maximum(np.abs(u.low), np.abs(u.high)))
        return (
            monotone(self._value, size),
            monotone(self._slope, u).clip(-1.0, 1.0),
            _bump(self._bend)(u),
        )

    def _value(self, u: Array) -> Array:
        return np.hypot(u, self.delta)

    def _slope(self, u: Array) -> Array:
        ratio = u / np.hypot(u, self.delta)
        return np.where(np.isinf(u), np.sign(u), ratio)

    def _bend(self, u: Array) -> Array:
        size = np.hypot(u, self.delta)
        return np.square(self.delta / size) / size


@dataclass(frozen=True)
class LogSumExp:
    """log Σ_j exp(a_j u + b_j), at least two different a_j.

    With p = softmax and R = max a − min a: g' is the mean of a under p, g'' its variance ≤ R²/4,
    and |g'''| = |E(a − g')³| ≤ R³/(6√3), the largest third central moment on an interval of
    length R. Where u → ±∞, p_j of the largest (smallest) a_j rises, and g'' ≤ R² (1 − p_j).
    """

    a: tuple[float, ...]
    b: tuple[float, ...]

    def order(self, u: Array, k: int) -> Array:
        value, p = self._weights(np.asarray(u))
        if k == 0:
            return value
        a = np.array(self.a)
        mean: Array = p @ a
        return mean if k == 1 else np.sum(p * np.square(a - mean[..., None]), axis=-1)

    def _weights(self, u: Array) -> tuple[Array, Array]:
        """g and softmax, about the largest exponent; far out their limits.

        The exponent −D of a weight p ≤ exp −D is off by a few units times D + |b|, so that p is by
        a few units times 1 + |b|, wherever u is.
        """
        a, b = np.array(self.a), np.array(self.b)
        far = np.abs(u) > 1e200 / (1.0 + np.abs(a).max())
        near = np.where(far, 0.0, u)[..., None]
        t = near * a + b
        j = np.argmax(t, axis=-1)
        shifted = (a - a[j][..., None]) * near + (b - b[j][..., None])
        for sign, last in ((1.0, a.max()), (-1.0, a.min())):
            out = (far & (np.sign(u) == sign))[..., None]
            shifted = np.where(out, np.where(a == last, 0.0, -math.inf), shifted)
        e = np.exp(shifted)
        total = e.sum(axis=-1, keepdims=True)
        value = np.take_along_axis(t, j[..., None], axis=-1)[..., 0] + np.log(total[..., 0])
        slope = np.where(u > 0.0, a.max(), a.min())
        limit = b[np.where(u > 0.0, np.argmax(a), np.argmin(a))]
        beyond = np.where(slope == 0.0, limit, slope * u)
        return np.where(far, beyond, value), e / total

    def ranges(self, u: Interval) -> tuple[Interval, Interval, Interval]:
        a = np.array(self.a)
        R = float(np.ptp(a)) * (1.0 + 1e-15)
        (first, p), (last, q) = self._weights(u.low), self._weights(u.high)
        rounding = 1e-14 * len(a) * (2.0 + float(np.abs(self.b).max()))
        slope = Interval(p @ a - rounding * R, q @ a + rounding * R)
        slope = slope.clip(float(a.min()), float(a.max()))
        width = np.where(u.low == u.high, 0.0, u.high - u.low)
        middle = np.where(np.isfinite(width), 0.5 * u.low + 0.5 * u.high, 0.0)
        bend = self.order(middle, 2)
        change = R**3 / (6.0 * math.sqrt(3.0)) * 0.51 * width + rounding * R**2
        left = R**2 * (1.0 - q[..., int(np.argmin(a))] + rounding)
        right = R**2 * (1.0 - p[..., int(np.argmax(a))] + rounding)
        top = np.minimum(np.minimum(left, right), bend + change).clip(0.0, 0.25 * R**2)
        # Above its tangents at both ends, and below the larger end.
        left = first + np.minimum(0.0, slope.low * width)
        right = last - np.maximum(0.0, slope.high * width)
        low = np.fmax(np.fmax(left, right), -math.inf)
        high = np.maximum(first, last)
        loose = rounding + 1e-14 * np.where(np.isfinite(low), np.abs(low), 0.0)
        value = Interval(low - loose, high + rounding + 1e-14 * np.abs(high))
        return value, slope, Interval(np.maximum(0.0, bend - change), top)
