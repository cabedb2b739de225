"""The joint accounting of an exchange of two records against brute force over such pairs."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import minimize

from cvxqop.privacy.gaussian.joint import free_value, joint_mu

RNG = np.random.default_rng(7)
CASES = [
    tuple(RNG.exponential(size=4) * np.array([1.0, 0.6, 0.6, 0.8]) * (RNG.random(4) < 0.8))
    for _ in range(60)
]
CASES += [(1.0, 0.0, 0.0, 1.0), (1.0, 0.2, 0.1, 0.0), (1.0, 0.02, 0.0, 0.3), (0.1, 1.0, 1.0, 1.0)]


def moved(a, b_0, b_r, b_n, p, q, k, r, s):
    """‖shift/noise‖² of records with rows of length p, q, |cosine| k, residuals r, −s everywhere;
    a gradient that is cut in norm keeps its length."""
    hessian = p**4 + q**4 - 2 * (p * q * k) ** 2
    gradient = (r * p) ** 2 + (s * q) ** 2 + 2 * r * s * p * q * k
    return a * hessian + (b_0 + b_r) * gradient + b_n * (r * r + s * s + 2 * r * s * k)


def brute(case, public=0.0, points=41):
    """The largest of them: a grid, then a descent from its best few points."""
    low = np.array([public, public, 0.0, 0.0, 0.0])
    axes = [np.linspace(start, 1.0, points) for start in low[:3]] + [np.array([0.0, 0.5, 1.0])] * 2
    grid = np.stack(np.meshgrid(*axes, indexing="ij")).reshape(5, -1)
    values = moved(*case, *grid)
    best = values.max()
    for start in grid[:, np.argsort(values)[-300::60]].T:
        found = minimize(
            lambda z: -moved(*case, *z),
            start,
            bounds=list(zip(low, np.ones(5), strict=True)),
            method="L-BFGS-B",
        )
        best = max(best, -found.fun)
    return best


@pytest.mark.parametrize("public", [0.0, 0.3, 0.7])
def test_largest_shift_of_any_pair_of_records(public):
    for case in CASES[:: 1 if public == 0.0 else 3]:
        squared = joint_mu(*case, public=public) ** 2
        found = brute(case, public, 25)
        assert found <= squared * (1 + 1e-12), case
        assert found >= squared * (1 - 1e-5), case


def test_histograms_add():
    case = CASES[0]
    assert joint_mu(*case, 0.3) ** 2 == pytest.approx(joint_mu(*case) ** 2 + 0.6)


@pytest.mark.parametrize("case", CASES[:20])
def test_never_rounded_down(case):
    a, b_0, b_r, b_n = map(Fraction, case)
    squared = Fraction(joint_mu(*case)) ** 2
    b = b_0 + b_r + b_n
    assert squared >= (2 * a + 2 * b + b * b / (2 * a) if 0 < b <= 2 * a else max(4 * b, 2 * a))
    assert squared >= moved(*map(Fraction, case), Fraction(1, 4), 1, 1, 1, 1)


def test_never_above_the_sum_and_never_below_its_parts():
    for a, b_0, b_r, b_n in CASES:
        squared = joint_mu(a, b_0, b_r, b_n) ** 2
        assert squared <= (2 * a + 4 * (b_0 + b_r + b_n)) * (1 + 1e-12)
        assert squared >= max(2 * a, 4 * (b_0 + b_r + b_n)) * (1 - 1e-12)


def test_short_row_of_a_gradient_cut_in_norm_counts():
    """a = b_n = 1: equally long rows give 4.5, a row of no length beside a full one 5."""
    assert joint_mu(1.0, 0.0, 0.0, 1.0) ** 2 == pytest.approx(5.0)


def test_public_part_longer_than_the_border_of_parallel_rows():
    """Where p ≥ τ/R lies beyond the border, the best angle is no longer 0."""
    case = (1.0, 0.0, 0.0, 0.1)
    border = math.sqrt(0.05)
    for public in border * np.array([0.9, 1.0, 1.1, 1.5]):
        assert joint_mu(*case, public=public) ** 2 == pytest.approx(brute(case, public, 25), 1e-6)


def moved_with_value(case, c, p, q, k, r, s, r0, s0):
    """The same with the value at the anchor: residuals r0, −s0 there and r, −s later."""
    a, b_0, b_r, b_n = case
    first = b_0 * ((r0 * p) ** 2 + (s0 * q) ** 2 + 2 * r0 * s0 * p * q * k)
    return moved(a, 0.0, b_r, b_n, p, q, k, r, s) + first + c * (r0**2 - s0**2) ** 2


@pytest.mark.parametrize("case", CASES[:40])
def test_value_at_the_anchor(case):
    """Never exceeded, and within 2·10⁻⁵."""
    rng = np.random.default_rng(3)
    q, k, t = np.meshgrid(*[np.linspace(0.0, 1.0, 26)] * 3, indexing="ij")
    for c in rng.exponential(size=3) * 2.0 * sum(case):
        squared = joint_mu(*case, value=c) ** 2
        best = 0.0
        values = moved_with_value(case, c, 1, q, k, 1, 1, 1, t)
        near = np.argsort(values, axis=None)[:-80:-20]
        starts = [(1, q.flat[i], k.flat[i], 1, 1, 1, t.flat[i]) for i in near]
        for start in [*starts, *rng.random((3, 7))]:
            found = minimize(
                lambda z, c=c: -moved_with_value(case, c, *z),
                start,
                bounds=[(0.0, 1.0)] * 7,
                method="L-BFGS-B",
            )
            best = max(best, -found.fun)
        assert best <= squared * (1 + 1e-12)
        assert best >= squared * (1 - 2e-5)


@pytest.mark.parametrize("case", [case for case in CASES[:40] if case[0] * case[1] > 0.0])
def test_free_value(case):
    free = free_value(*case)
    assert joint_mu(*case, value=free) == joint_mu(*case)
    if not any(case[2:]):
        a, b = case[:2]
        exact = b + b * b / (2 * a) if b <= 2 * a else 3 * b - 2 * a
        assert exact * (1 - 1e-5) <= free <= exact
    if case[3] == 0.0:
        assert joint_mu(*case, value=1.01 * free) > joint_mu(*case)
