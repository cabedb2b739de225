"""Atoms of piecewise functions: powers, norms, logarithms of sums of exponentials, entropies."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np

from cvxqop.problem.losses.phi import polynomial
from cvxqop.problem.losses.phi.atoms import (
    EXP,
    LOG,
    SOFTPLUS,
    XLOGX,
    Atom,
    Hypot,
    LogSumExp,
    Power,
)
from cvxqop.problem.losses.phi.piecewise import Piecewise, Segment, exact
from cvxqop.problem.losses.phi.polynomial import End
from cvxqop.problem.losses.phi.smooth import Smooth, Term, Unread, constant, identity

__all__ = ["entropy", "exp", "huber", "log", "log_sum_exp", "logistic", "norm", "power"]

_EXPANDED = 4
"""Powers of polynomials are multiplied out up to this degree."""


@np.errstate(all="ignore")
def _applied(atom: Atom, inner: Smooth) -> Smooth:
    if inner.degree == 0:
        u = np.array(float(inner.poly[0]) if inner.poly else 0.0)
        return constant(exact(float(atom.order(u, 0))))
    return Smooth((), (Term(Fraction(1), atom, inner),))


def exp(f: Piecewise) -> Piecewise:
    """exp φ."""
    return f.map(lambda part: _applied(EXP, part))


def logistic(f: Piecewise) -> Piecewise:
    """log(1 + exp φ)."""
    return f.map(lambda part: _applied(SOFTPLUS, part))


def log(f: Piecewise) -> Piecewise:
    """log φ, where φ > 0."""
    return _on_positive(f, lambda part: _applied(LOG, part), closed=False)


def entropy(f: Piecewise) -> Piecewise:
    """φ log φ, where φ ≥ 0."""
    return _on_positive(f, lambda part: _applied(XLOGX, part), closed=True)


def _on_positive(f: Piecewise, function: Callable[[Smooth], Smooth], closed: bool) -> Piecewise:
    """A function of each part where that is positive; 0 counts where ``closed``."""

    def split(left: End, right: End, part: Smooth) -> list[Segment]:
        kept = [one for one in part.signs(left, right) if one[2] > 0 or (closed and one[2] == 0)]
        return [(a, b, function(part)) for a, b, _ in kept]

    return f.each(split)


def power(f: Piecewise, p: float) -> Piecewise:
    """φ^p as CVXPY means it: of φ ≥ 0 (> 0 for p < 0), and of any φ for p = 1 and even p."""
    if p == 1.0:
        return f
    if p == 0.0:
        return Piecewise.number(1.0)
    atom = Power(p)

    def raised(part: Smooth) -> Smooth:
        if p == int(p) and p > 0 and 0 <= part.degree * p <= _EXPANDED:
            found = part.poly
            for _ in range(int(p) - 1):
                found = polynomial.product(found, part.poly)
            return Smooth(found)
        return _applied(atom, part)

    if atom.even:
        return f.map(raised)
    if p == 0.5 and f.degree == 2:
        return _root(f)
    return _on_positive(f, raised, closed=p > 0.0)


def _root(f: Piecewise) -> Piecewise:
    """√ of parabolas that are nowhere negative: w √((t − m)² + δ²), or w |t − m|."""

    def split(left: End, right: End, part: Smooth) -> list[Segment]:
        if part.degree < 2:
            if any(sign < 0 for _, _, sign in part.signs(left, right)):
                raise Unread("takes a root of what may be negative")
            return [(left, right, _applied(Power(0.5), part))]
        c, b, a = part.poly
        m, rest = -b / (2 * a), c - b * b / (4 * a)
        if a < 0 or rest < 0:
            raise Unread("takes a root of what may be negative")
        inner, w = Smooth((-m, Fraction(1))), polynomial.root(a)
        if rest > 0:
            delta = float(polynomial.root(rest / a))
            if not 1e-100 < delta < 1e100:
                raise Unread("has a constant that is too large or too small")
            return [(left, right, _applied(Hypot(delta), inner).times(w))]
        signs = polynomial.signs(inner.poly, left, right)
        return [(u, v, inner.times(w * sign)) for u, v, sign in signs]

    return f.each(split)


def norm(parts: Sequence[Piecewise], p: float) -> Piecewise:
    """‖(φ_1, φ_2, …)‖_p."""
    sizes = [part.absolute() for part in parts]
    if not sizes:
        raise Unread("takes a norm of nothing")
    if len(sizes) == 1:
        return sizes[0]
    if p == 1.0 or math.isinf(p):
        total = sizes[0]
        for size in sizes[1:]:
            total = total + size if p == 1.0 else total.maximum(size)
        return total
    if p != 2.0:
        raise Unread("takes a norm of several numbers that is not the 1-, 2- or ∞-norm")
    squares = Piecewise.number(0.0)
    for part in parts:
        squares = squares + power(part, 2.0)
    if not 0 <= squares.degree <= 2:
        raise Unread("takes a norm of a curved function of the argument")
    return _root(squares)


def huber(f: Piecewise, threshold: float) -> Piecewise:
    """φ² where |φ| ≤ M, 2M|φ| − M² beyond."""
    size = f.absolute()
    m = exact(threshold)
    return power(size.minimum(Piecewise.number(m)), 2.0) + (size + -m).maximum(0.0) * (2 * m)


def log_sum_exp(parts: Sequence[Piecewise]) -> Piecewise:
    """log Σ_j exp φ_j."""
    segments: list[tuple[End, End, tuple[Smooth, ...]]] = [(-math.inf, math.inf, ())]
    for part in parts:
        segments = [
            (max(a, c), min(b, d), (*found, piece))
            for a, b, found in segments
            for c, d, piece in part.segments()
            if max(a, c) < min(b, d)
        ]
    return Piecewise.joined([(a, b, _log_sum_exp(found)) for a, b, found in segments])


def _log_sum_exp(parts: Sequence[Smooth]) -> Smooth:
    """Lines of one slope become one; two functions are a line and a logistic of the difference."""
    lines: dict[Fraction, list[float]] = {}
    curved = [part for part in parts if part.degree not in (0, 1)]
    for part in parts:
        if part.degree in (0, 1):
            c, a = (*part.poly, Fraction(0), Fraction(0))[:2]
            lines.setdefault(a, []).append(float(c))
    merged = {a: exact(float(np.logaddexp.reduce(c))) for a, c in sorted(lines.items())}
    found = [Smooth((c, a)) if a else constant(c) for a, c in merged.items()]
    if len(curved) + len(found) == 1:
        return (curved + found)[0]
    if len(found) == 2 and not curved:
        return found[0] + _applied(SOFTPLUS, found[1] + found[0].times(Fraction(-1)))
    if len(curved) == len(found) == 1:
        return found[0] + _applied(SOFTPLUS, curved[0] + found[0].times(Fraction(-1)))
    if curved:
        raise Unread("takes log_sum_exp of several curved functions")
    slopes, offsets = [float(a) for a in merged], [float(c) for c in merged.values()]
    return _applied(LogSumExp(tuple(slopes), tuple(offsets)), identity())
