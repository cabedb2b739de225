"""Moreau's envelope e_h φ(t) = min_s φ(s) + (s − t)²/(2h) of a convex piecewise quadratic φ.

The minimiser s of t solves t ∈ s + hφ'(s), where φ'(b) is the interval of slopes at a kink b. So
t runs once through the line as s does, and s stays at b while t runs through b + hφ'(b). There
e_h φ = φ(b) + (t − b)²/(2h), with curvature 1/h. Where φ'' = c, e_h φ' (t) = φ'(s) and
ds/dt = 1/(1 + hc), which gives the curvature c/(1 + hc) < 1/h. Hence

    e_h φ is C¹ and convex, κ ≤ 1/h, and its slopes are slopes of φ;
    0 ≤ φ(t) − e_h φ(t) ≤ h g²/2 for every slope g of φ at t:
        φ(s) + (s − t)²/(2h) ≥ φ(t) + g (s − t) + (s − t)²/(2h) ≥ φ(t) − h g²/2.

Everything here is computed with rational numbers.
"""

from __future__ import annotations

import math
from fractions import Fraction

from cvxqop.problem.losses.phi import polynomial
from cvxqop.problem.losses.phi.interval import Interval
from cvxqop.problem.losses.phi.piecewise import Piecewise, Segment
from cvxqop.problem.losses.phi.polynomial import End, as_end, between
from cvxqop.problem.losses.phi.smooth import quadratic

__all__ = ["envelope", "gap"]


def envelope(f: Piecewise, h: Fraction) -> Piecewise:
    """e_h φ of a convex φ, piecewise of degree ≤ 2 on the whole line.

    Examples
    --------
    Huber's function is the envelope of |t|:

    >>> from cvxqop.problem.losses.phi.compose import huber
    >>> t = Piecewise.argument()
    >>> envelope(t.absolute(), Fraction(1, 2)) == huber(t, 0.5)
    True
    """
    found: list[Segment] = []
    start: End = -math.inf
    for a, b, part in f.segments():
        slope = polynomial.derivative(part.poly)
        bend = polynomial.at(polynomial.derivative(slope), Fraction(0))
        if isinstance(a, Fraction):
            after = a + h * polynomial.at(slope, a)
            found.append(
                (start, after, quadratic(polynomial.at(part.poly, a), Fraction(0), 1 / h, a))
            )
            start = after
        end = b + h * polynomial.at(slope, b) if isinstance(b, Fraction) else math.inf
        s = between(a, b)
        value, g = polynomial.at(part.poly, s), polynomial.at(slope, s)
        piece = quadratic(value + h * g * g / 2, g, bend / (1 + h * bend), s + h * g)
        found.append((start, end, piece))
        start = end
    return Piecewise.joined(found)


def gap(f: Piecewise, smooth: Piecewise, low: float = -math.inf, high: float = math.inf) -> float:
    """sup φ − e_h φ over [low, high], rounded up; infinite where φ'' > 0 far out."""
    largest = Fraction(0)
    for a, b, part in (f - smooth).where(as_end(low), as_end(high)).segments():
        p = part.poly
        ends = [e for e in (a, b) if isinstance(e, Fraction)]
        for end, direction in ((a, -1), (b, 1)):
            if isinstance(end, float) and len(p) > 1 and p[-1] * direction ** (len(p) - 1) > 0:
                return math.inf
        if isinstance(a, float) or isinstance(b, float):
            ends.append(between(a, b))
        if len(p) == 3 and a < -p[1] / (2 * p[2]) < b:
            ends.append(-p[1] / (2 * p[2]))
        largest = max(largest, *(polynomial.at(p, t) for t in ends))
    return float(Interval.of_fraction(largest).high)
