"""Polynomials with rational coefficients, in rising order; () is zero.

Every double is a rational number, so that breakpoints, slopes and jumps of what is piecewise
polynomial are computed exactly.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

__all__ = [
    "End",
    "Polynomial",
    "as_end",
    "at",
    "between",
    "derivative",
    "plus",
    "product",
    "root",
    "signs",
    "substitute",
    "times",
]

Polynomial = tuple[Fraction, ...]
End = Fraction | float
"""A rational number, or an infinite double."""

_DIGITS = 10**40


def _stripped(coefficients: Sequence[Fraction]) -> Polynomial:
    found = list(coefficients)
    while found and found[-1] == 0:
        found.pop()
    return tuple(found)


def plus(p: Polynomial, q: Polynomial) -> Polynomial:
    """p + q."""
    size = max(len(p), len(q))
    zero = Fraction(0)
    return _stripped(
        [(p[k] if k < len(p) else zero) + (q[k] if k < len(q) else zero) for k in range(size)]
    )


def times(p: Polynomial, factor: Fraction) -> Polynomial:
    """factor · p."""
    return _stripped([factor * c for c in p])


def product(p: Polynomial, q: Polynomial) -> Polynomial:
    """p · q."""
    if not p or not q:
        return ()
    found = [Fraction(0)] * (len(p) + len(q) - 1)
    for i, a in enumerate(p):
        for j, b in enumerate(q):
            found[i + j] += a * b
    return _stripped(found)


def derivative(p: Polynomial) -> Polynomial:
    """p'."""
    return _stripped([k * c for k, c in enumerate(p)][1:])


def at(p: Polynomial, t: Fraction) -> Fraction:
    """p(t)."""
    value = Fraction(0)
    for c in reversed(p):
        value = value * t + c
    return value


def substitute(p: Polynomial, a: Fraction, b: Fraction) -> Polynomial:
    """p(a t + b)."""
    found: Polynomial = ()
    for c in reversed(p):
        found = plus(product(found, _stripped((b, a))), _stripped((c,)))
    return found


def root(x: Fraction) -> Fraction:
    """√x for x ≥ 0: exact where it is rational, else to 40 digits.

    Examples
    --------
    >>> root(Fraction(9, 4))
    Fraction(3, 2)
    """
    up, down = math.isqrt(x.numerator), math.isqrt(x.denominator)
    if up * up == x.numerator and down * down == x.denominator:
        return Fraction(up, down)
    return Fraction(math.isqrt(x.numerator * x.denominator * _DIGITS**2), x.denominator * _DIGITS)


def _zeros(p: Polynomial) -> list[Fraction]:
    """Zeros of a polynomial of degree 1 or 2 at which its sign may change, in order."""
    if len(p) == 2:
        return [-p[0] / p[1]]
    if len(p) < 2:
        return []
    c, b, a = p
    middle, rest = -b / (2 * a), b * b - 4 * a * c
    if rest <= 0:
        return []
    half = root(rest) / (2 * abs(a))
    return [middle - half, middle + half]


def signs(p: Polynomial, low: End, high: End) -> list[tuple[End, End, int]]:
    """Where p of degree ≤ 2 is positive, negative or zero on (low, high): pieces and signs.

    Examples
    --------
    >>> signs((Fraction(-1), Fraction(2)), -math.inf, math.inf)
    [(-inf, Fraction(1, 2), -1), (Fraction(1, 2), inf, 1)]
    """
    ends: list[End] = [low, *(z for z in _zeros(p) if low < z < high), high]
    found = []
    for left, right in pairwise(ends):
        value = at(p, between(left, right))
        if value == 0 and len(p) == 3:  # the double zero of a square
            value = p[2]
        found.append((left, right, (value > 0) - (value < 0)))
    return found


def as_end(x: float | Fraction) -> End:
    """A number as an end: a double that is not infinite is a rational number."""
    return float(x) if isinstance(x, float) and math.isinf(x) else Fraction(x)


def between(low: End, high: End) -> Fraction:
    """A number strictly between two ends."""
    if low == -math.inf and high == math.inf:
        return Fraction(0)
    if low == -math.inf:
        return Fraction(high) - 1
    return Fraction(low) + 1 if high == math.inf else (Fraction(low) + Fraction(high)) / 2
