"""Smooth functions of one number: a polynomial plus weighted atoms of such functions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
import numpy.typing as npt

from cvxqop.problem.losses.phi import polynomial
from cvxqop.problem.losses.phi.atoms import Atom
from cvxqop.problem.losses.phi.interval import Interval
from cvxqop.problem.losses.phi.polynomial import End, Polynomial

__all__ = ["Jet", "Smooth", "Term", "Unread", "constant", "identity", "outer", "quadratic"]

Array = npt.NDArray[np.float64]
Jet = tuple[Interval, Interval, Interval]
"""Ranges of a function, its slope and its curvature."""

_FAR = 1e8


class Unread(Exception):
    """An expression from which no loss is read; the text completes "The loss …"."""


@dataclass(frozen=True)
class Term:
    """weight · atom(inner)."""

    weight: Fraction
    atom: Atom
    inner: Smooth

    @cached_property
    def factor(self) -> Interval:
        """The weight."""
        return Interval.of_fraction(self.weight)


class _Range:
    """Ranges of a polynomial over intervals: exact but for rounding up to degree 2."""

    def __init__(self, p: Polynomial) -> None:
        self._p, self._coefficients = p, [Interval.of_fraction(c) for c in p]
        if len(p) == 3:
            at = -p[1] / (2 * p[2])
            self._vertex = Interval.of_fraction(at)
            self._extreme = Interval.of_fraction(polynomial.at(p, at))

    def range(self, t: Interval, exact: Fraction | None) -> Interval:
        """Over intervals; at one point ``exact``, if that is given."""
        p = self._p
        if exact is not None:
            return Interval.of_fraction(polynomial.at(p, exact))
        if len(p) < 2 or len(p) > 3:
            return self._horner(t)
        found = self._horner(Interval(t.low, t.low)).hull(self._horner(Interval(t.high, t.high)))
        if len(p) == 2:
            return found
        vertex, extreme = self._vertex, self._extreme
        inside = (t.low <= vertex.high) & (t.high >= vertex.low)
        low = np.where(inside, np.minimum(found.low, extreme.low), found.low)
        high = np.where(inside, np.maximum(found.high, extreme.high), found.high)
        # What rounding adds beyond the vertex is known not to be there.
        ends = (float(extreme.low), math.inf) if p[2] > 0 else (-math.inf, float(extreme.high))
        return Interval(low, high).clip(*ends)

    def _horner(self, t: Interval) -> Interval:
        zero = np.zeros_like(t.low)
        value = Interval(zero, zero)
        for k, c in enumerate(reversed(self._coefficients)):
            value = value * t + c if k else Interval(value.low + c.low, value.high + c.high)
        return value


@dataclass(frozen=True)
class Smooth:
    """p(t) + Σ_k w_k g_k(u_k(t)): p a polynomial, g_k atoms, u_k again such functions."""

    poly: Polynomial = ()
    terms: tuple[Term, ...] = ()

    @property
    def degree(self) -> int:
        """Degree of p, 0 for a constant; −1 where there are atoms."""
        return -1 if self.terms else max(len(self.poly) - 1, 0)

    def __add__(self, other: Smooth) -> Smooth:
        weights: dict[tuple[Atom, Smooth], Fraction] = {}
        for term in (*self.terms, *other.terms):
            key = (term.atom, term.inner)
            weights[key] = weights.get(key, Fraction(0)) + term.weight
        terms = tuple(Term(w, atom, inner) for (atom, inner), w in weights.items() if w)
        return Smooth(polynomial.plus(self.poly, other.poly), terms)

    def times(self, factor: Fraction) -> Smooth:
        """factor · φ."""
        if factor == 0:
            return Smooth()
        terms = tuple(Term(factor * term.weight, term.atom, term.inner) for term in self.terms)
        return Smooth(polynomial.times(self.poly, factor), terms)

    def substitute(self, a: Fraction, b: Fraction) -> Smooth:
        """φ(a t + b), a ≠ 0."""
        terms = [Term(one.weight, one.atom, one.inner.substitute(a, b)) for one in self.terms]
        return Smooth(polynomial.substitute(self.poly, a, b), tuple(terms))

    @np.errstate(all="ignore")
    def order(self, t: Array, k: int) -> Array:
        """φ, φ' or φ'': k = 0, 1, 2."""
        found = self._polynomial(t, k)
        for term in self.terms:
            w, atom, inner = float(term.weight), term.atom, term.inner
            u = inner.order(t, 0)
            if k == 0:
                part = atom.order(u, 0)
            elif k == 1:
                part = atom.order(u, 1) * inner.order(t, 1)
            else:
                part = atom.order(u, 2) * np.square(inner.order(t, 1))
                if inner.degree not in (0, 1):
                    part = part + atom.order(u, 1) * inner.order(t, 2)
            found = found + w * part
        return found

    @cached_property
    def _orders(self) -> tuple[_Range, _Range, _Range]:
        """p, p', p''."""
        first = polynomial.derivative(self.poly)
        return _Range(self.poly), _Range(first), _Range(polynomial.derivative(first))

    @cached_property
    def about(self) -> tuple[float, tuple[list[float], ...]]:
        """The mean of the zeros of p, the vertex of a parabola, and p, p', p'' about it.

        There the terms of p hardly cancel each other.
        """
        p = self.poly
        centre = -p[-2] / ((len(p) - 1) * p[-1]) if len(p) > 1 else Fraction(0)
        centre = Fraction(float(centre)) if abs(centre) < _FAR else Fraction(0)
        moved = polynomial.substitute(p, Fraction(1), centre)
        first = polynomial.derivative(moved)
        orders = (moved, first, polynomial.derivative(first))
        return float(centre), tuple([float(c) for c in order] for order in orders)

    def _polynomial(self, t: Array, k: int) -> Array:
        centre, orders = self.about
        coefficients = orders[k]
        if not coefficients:
            return np.zeros_like(t)
        s, value = t - centre, np.full_like(t, coefficients[-1])
        for c in reversed(coefficients[:-1]):
            value = value * s + c
        return value

    @np.errstate(all="ignore")
    def enclose(self, t: Interval, exact: Fraction | None = None) -> Jet:
        """Ranges of φ, φ', φ'' over intervals; at one point ``exact``, if that is given."""
        value, slope, bend = (order.range(t, exact) for order in self._orders)
        for term in self.terms:
            w = term.factor
            u, du, ddu = term.inner.enclose(t, exact)
            g, dg, ddg = (one.known() for one in term.atom.ranges(u))
            value = value + w * g
            slope = slope + w * (dg * du)
            bend = bend + w * (ddg * du.square())
            if term.inner.degree not in (0, 1):
                bend = bend + w * (dg * ddu)
        return value, slope, bend

    def at(self, t: Fraction) -> Jet:
        """Ranges of φ, φ', φ'' at one point: only what atoms round is left."""
        return self.enclose(Interval.of_fraction(t), t)

    def signs(self, low: End, high: End) -> list[tuple[End, End, int]]:
        """Where φ is positive, negative or zero on (low, high)."""
        if 0 <= self.degree <= 2:
            return polynomial.signs(self.poly, low, high)
        value = self.enclose(outer(low, high))[0]
        if float(value.low) >= 0.0:
            return [(low, high, 1)]
        if float(value.high) <= 0.0:
            return [(low, high, -1)]
        raise Unread("compares curved functions that may cross")

    @np.errstate(all="ignore")
    def shape(self, low: End, high: End) -> tuple[bool, bool]:
        """Whether φ is proven convex on (low, high), and whether concave: by CVXPY's rules.

        A weighted atom of an affine function is, if it is itself on the range of that; one of a
        convex function, if it rises as well; of a concave one, if it falls.
        """
        found = [_poly_shape(self.poly, low, high)]
        for term in self.terms:
            range_ = term.inner.enclose(outer(low, high))[0]
            _, slope, bend = (one.known() for one in term.atom.ranges(range_))
            sign = 1 if term.weight > 0 else -1
            ends = sorted((sign * float(bend.low), sign * float(bend.high)))
            slopes = sorted((sign * float(slope.low), sign * float(slope.high)))
            inner = (True, True) if term.inner.degree in (0, 1) else term.inner.shape(low, high)
            up, down = slopes[0] >= 0.0, slopes[1] <= 0.0
            monotone = [(inner[0] and up) or (inner[1] and down) or all(inner)]
            opposite = [(inner[1] and up) or (inner[0] and down) or all(inner)]
            found.append((ends[0] >= 0.0 and monotone[0], ends[1] <= 0.0 and opposite[0]))
        return all(one for one, _ in found), all(one for _, one in found)


def _poly_shape(p: Polynomial, low: End, high: End) -> tuple[bool, bool]:
    second = polynomial.derivative(polynomial.derivative(p))
    if len(second) > 3:
        return False, False
    found = {sign for _, _, sign in polynomial.signs(second, low, high)} if second else {0}
    return -1 not in found, 1 not in found


def outer(low: End, high: End) -> Interval:
    """The smallest interval of doubles that holds (low, high)."""
    left = low if isinstance(low, float) else float(Interval.of_fraction(low).low)
    right = high if isinstance(high, float) else float(Interval.of_fraction(high).high)
    return Interval.of(left, right)


def constant(value: Fraction) -> Smooth:
    """A number."""
    return Smooth((value,) if value else ())


def identity() -> Smooth:
    """t itself."""
    return Smooth((Fraction(0), Fraction(1)))


def quadratic(value: Fraction, slope: Fraction, bend: Fraction, t: Fraction) -> Smooth:
    """The parabola with this value, slope and second derivative at t."""
    return Smooth(
        polynomial.substitute(polynomial.plus((value, slope, bend / 2), ()), Fraction(1), -t)
    )
