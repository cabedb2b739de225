"""Intervals and ranges of atoms hold what mpmath finds inside."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest

from cvxqop.problem.losses.phi import atoms
from cvxqop.problem.losses.phi.atoms import LogSumExp
from cvxqop.problem.losses.phi.interval import Interval
from cvxqop.problem.losses.phi.polynomial import root, signs, substitute

INF = float("inf")


def test_sums_and_products_hold_the_exact_ones():
    rng = np.random.default_rng(0)
    a, b = (
        np.sort(rng.normal(size=(2, 2000)) * 10.0 ** rng.integers(-3, 3, 2000), axis=0)
        for _ in "ab"
    )
    x, y = Interval.of(*a), Interval.of(*b)
    for result, operation in ((x + y, "+"), (x - y, "-"), (x * y, "*"), (x.square(), "²")):
        for i in range(0, 2000, 7):
            ends = [(Fraction(u), Fraction(v)) for u in a[:, i] for v in b[:, i]]
            exact = {
                "+": [u + v for u, v in ends],
                "-": [u - v for u, v in ends],
                "*": [u * v for u, v in ends],
                "²": [u * u for u, _ in ends] + ([Fraction(0)] if a[0, i] < 0 < a[1, i] else []),
            }[operation]
            low, high = Fraction(float(result.low[i])), Fraction(float(result.high[i]))
            assert low <= min(exact)
            assert high >= max(exact)
            assert high - low <= (max(exact) - min(exact)) * (1 + Fraction(1, 10**9)) + Fraction(
                1, 10**10
            )


def test_infinite_ends():
    whole, zero, one = Interval.of(-INF, INF), Interval.of(0.0), Interval.of(1.0, INF)
    assert (float((whole * zero).low), float((whole * zero).high)) == (0.0, 0.0)
    assert float((one * one).low) <= 1.0 < float((one * one).high) == INF
    assert float((one - one).low) == -INF


def test_underflow():
    """What is too small for a double is not taken for 0."""
    tiny, far = (
        Interval.of(1e-200),
        Interval.of(np.array([-800.0, -745.2]), np.array([-790.0, -745.0])),
    )
    assert (float((tiny * tiny).low), float((-tiny * tiny).high)) == (0.0, 0.0)
    assert float((tiny * tiny).high) > 0.0 > float((-tiny * tiny).low)
    with np.errstate(all="ignore"):
        for atom in (atoms.EXP, atoms.SOFTPLUS):
            for found in atom.ranges(far):
                assert np.all(found.low == 0.0)
                assert np.all(found.high > 0.0)
        zero = atoms.Power(2.5).ranges(Interval.of(0.0))
        assert [float(one.high) for one in zero] == [0.0, 0.0, 0.0]
        assert float(atoms.Power(2.5).ranges(Interval.of(1e-200))[0].high) > 0.0


def test_fractions():
    for x in (Fraction(1, 3), Fraction(-7, 5), Fraction(3, 4), Fraction(0), Fraction(1, 10**400)):
        found = Interval.of_fraction(x)
        assert Fraction(float(found.low)) <= x <= Fraction(float(found.high))
        assert float(found.high) <= np.nextafter(float(found.low), INF)


def log_of_three(u):
    """log(exp(.3 − u) + exp(u/2) + exp(2u − 1))."""
    terms = (-u + mpmath.mpf(0.3), u / 2, 2 * u - 1)
    return mpmath.log(sum(mpmath.exp(term) for term in terms))


ATOMS = {
    "exp": (atoms.EXP, mpmath.exp, (-20.0, 20.0)),
    "log": (atoms.LOG, mpmath.log, (1e-3, 20.0)),
    "logistic": (atoms.SOFTPLUS, lambda u: mpmath.log1p(mpmath.exp(u)), (-20.0, 20.0)),
    "u log u": (atoms.XLOGX, lambda u: u * mpmath.log(u), (1e-3, 5.0)),
    "u^2.5": (atoms.Power(2.5), lambda u: u ** mpmath.mpf("2.5"), (1e-3, 5.0)),
    "u^-1": (atoms.Power(-1.0), lambda u: 1 / u, (1e-3, 5.0)),
    "u^6": (atoms.Power(6.0), lambda u: u**6, (-3.0, 3.0)),
    "√u": (atoms.Power(0.5), mpmath.sqrt, (1e-3, 5.0)),
    "pseudo-Huber": (
        atoms.Hypot(0.3), lambda u: mpmath.sqrt(u * u + mpmath.mpf(0.3) ** 2), (-9.0, 9.0),
    ),
    "log_sum_exp": (
        LogSumExp((-1.0, 0.5, 2.0), (0.3, 0.0, -1.0)), log_of_three, (-9.0, 9.0),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ATOMS)
def test_ranges_of_atoms(name):
    atom, function, (low, high) = ATOMS[name]
    rng = np.random.default_rng(1)
    ends = np.sort(rng.uniform(low, high, (2, 40)), axis=0)
    ends[:, 20:] = ends[0, 20:] + np.array([[0.0], [1e-3]])
    with np.errstate(all="ignore"):
        ranges = atom.ranges(Interval.of(*ends))
    for i in range(40):
        inside = [*np.linspace(*ends[:, i], 7), float(np.clip(0.0, *ends[:, i]))]
        for k, found in enumerate(ranges):
            with mpmath.workdps(40):
                exact = [mpmath.diff(function, mpmath.mpf(float(u)), k) for u in inside]
            assert float(found.low[i]) <= min(exact) + abs(min(exact)) * mpmath.mpf(10) ** -18
            assert float(found.high[i]) >= max(exact) - abs(max(exact)) * mpmath.mpf(10) ** -18
            values = atom.order(np.array(inside), k)
            np.testing.assert_allclose(values, np.array(exact, float), rtol=1e-10, atol=1e-12)
            if i >= 20:  # short intervals have short ranges
                size = 1.0 + max(abs(float(found.low[i])), abs(float(found.high[i])))
                assert float(found.high[i] - found.low[i]) <= 0.05 * size**1.5


@pytest.mark.parametrize("name", ATOMS)
def test_limits(name):
    """Unbounded intervals hold what is far out, and monotone functions have their limits there."""
    atom, function, (low, high) = ATOMS[name]
    with np.errstate(all="ignore"):
        far = atom.ranges(Interval.of(max(high, 5.0), INF))
        whole = atom.ranges(Interval.of(-INF if low < 0 else 0.0, INF))
    for k, (outside, all_) in enumerate(zip(far, whole, strict=True)):
        for u in (7.0, 40.0, 1e3):
            with mpmath.workdps(40):
                exact = mpmath.diff(function, mpmath.mpf(u), k)
            for found in (all_, outside)[: 1 + (u > max(high, 5.0))]:
                assert float(found.low) <= exact <= float(found.high)


def test_roots_and_signs():
    assert abs(root(Fraction(2)) ** 2 - 2) < Fraction(1, 10**38)
    p = (Fraction(-2), Fraction(0), Fraction(1))
    (_, first, a), (_, second, b), (_, _, c) = signs(p, -INF, INF)
    assert (a, b, c) == (1, -1, 1)
    assert float(second) == -float(first) == 2**0.5
    assert signs((Fraction(1), Fraction(-2), Fraction(1)), -INF, INF) == [(-INF, INF, 1)]
    assert signs((), Fraction(0), INF) == [(Fraction(0), INF, 0)]
    assert substitute(p, Fraction(2), Fraction(1)) == (-1, 4, 4)
