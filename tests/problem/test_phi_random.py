"""Random convex functions of one number: nothing that is promised of them is exceeded.

Bounds of 1,000 functions, ten times as many with ``CVXQOP_FULL=1``. φ is computed apart from the
library, in extended precision. With φ'' ≤ κ a second difference of φ is at most κ times the square
of the step, and a first one at most the slope times the step: no derivative is approximated.
"""

from __future__ import annotations

import os

import cvxpy as cp
import mpmath
import numpy as np
import pytest

from cvxqop.problem.losses.phi.loss import PhiLoss
from cvxqop.problem.losses.phi.recognise import (
    NeedsRange,
    NeedsSmoothing,
    NotRecognised,
    Smooth,
    recognise,
)

from .phi_forms import Exact, Extended, random_form

FULL = "CVXQOP_FULL" in os.environ
SEEDS, GROUPS = (10_000 if FULL else 1_000), 10
EPS = float(np.finfo(np.longdouble).eps)
extended = pytest.mark.skipif(EPS > 1e-18, reason="long doubles are doubles here")


def reading(seed):
    """A random form, its CVXPY expression, the argument and what is recognised."""
    rng = np.random.default_rng(seed)
    form = random_form(rng)
    t = cp.Variable() if rng.uniform() < 0.5 else cp.Variable(int(rng.integers(2, 5)))
    e = form.of(t)
    low, high = sorted(rng.uniform(-4, 4, 2))
    if np.isfinite(form.low):
        low = form.low + float(rng.uniform(0.05, 1.0))
        high = low + float(rng.uniform(0.5, 4.0))
    return form, e, t, recognise(e, t), low, high


def loss_of(found, low, high):
    """The loss on a range, None where it needs smoothing or is not read."""
    if isinstance(found, NeedsRange):
        found = found.within(low, high)
    return found.loss if isinstance(found, Smooth) else None


def grid(low, high, count=1201):
    return np.linspace(np.longdouble(low), np.longdouble(high), count)


def check_bounds(form, loss, low, high):
    """κ and slope against differences; returns the largest φ'' at the points, ends included."""
    t = grid(low, high)
    h = t[1] - t[0]
    value = form.value(t, Extended)
    rounding = 64 * EPS * (1 + np.abs(value).max()) * 20
    second = value[2:] - 2 * value[1:-1] + value[:-2]
    assert second.max() <= loss.curvature * h**2 + rounding, form.text
    first = np.abs(np.diff(value))
    assert first.max() <= loss.slope_bound(float(max(-low, high, -high))) * h + rounding
    assert first.max() <= loss.slope * h + rounding, form.text
    if not isinstance(loss, PhiLoss):
        return float(np.max(loss.second_derivative(np.array(t, float))))
    assert first.max() <= loss.slope_on(float(low), float(high)) * h + rounding, form.text
    # Between the grid's points the least curvature is no more than what is seen.
    least = loss.least_curvature(np.array(t[:-2], float), np.array(t[2:], float))
    assert np.all(np.asarray(least) * float(h) ** 2 * (1 - 1e-9) <= second + rounding), form.text
    return float(np.max(loss.second_derivative(np.array(t, float))))


@extended
@pytest.mark.parametrize("group", range(GROUPS))
def test_bounds_are_never_below_and_tight(group):
    ratios, unread = [], 0
    for seed in range(group, SEEDS, GROUPS):
        form, e, _, found, low, high = reading(seed)
        assert e.is_convex()
        if isinstance(found, NotRecognised):
            unread += 1
            continue
        loss = loss_of(found, low, high)
        if loss is None:
            continue
        seen = check_bounds(form, loss, low, high)
        if isinstance(found, NeedsRange) and seen > 0:
            ratios.append(loss.curvature / seen)
    assert unread <= 0.02 * SEEDS / GROUPS
    # Breakpoints that are one but for rounding have a piece between them, which counts.
    assert np.mean(np.array(ratios) < 1.003) > 0.99
    assert len(ratios) > 0.1 * SEEDS / GROUPS


@pytest.mark.parametrize("group", range(GROUPS))
def test_values_are_those_of_cvxpy_and_derivatives_those_of_mpmath(group):
    for seed in range(group, SEEDS // 10, GROUPS):
        form, e, t, found, low, high = reading(seed)
        if isinstance(found, NotRecognised):
            continue
        loss = loss_of(found, low, high)
        points = np.random.default_rng(seed).uniform(low, high, max(t.size, 3))
        if loss is None:
            value, slope, bend = (found.function.order(points, k) for k in range(3))
        else:
            value, slope = loss.value(points), loss.derivative(points)
            bend = loss.second_derivative(points)
        t.value = points[0] if t.ndim == 0 else points[: t.size]
        expected = np.ravel(e.value)
        mine = value[: max(t.size, 1)]
        mine = mine if expected.size == mine.size else np.array([mine.sum()])
        np.testing.assert_allclose(mine, expected, rtol=1e-9, atol=1e-9, err_msg=form.text)
        with mpmath.workdps(40):
            x, step = mpmath.mpf(float(points[0])), mpmath.mpf("1e-9")
            down, here, up = (form.value(x + k * step, Exact) for k in (-1, 0, 1))
            first, second = float((up - down) / (2 * step)), float((up - 2 * here + down) / step**2)
        size = 1 + abs(first) + abs(second)
        assert slope[0] == pytest.approx(first, abs=1e-7 * size), form.text
        assert bend[0] == pytest.approx(second, abs=1e-6 * size), form.text


@extended
@pytest.mark.parametrize("group", range(GROUPS))
def test_envelopes(group):
    """e_h φ ≤ φ ≤ e_h φ + gap, κ ≤ 1/h and slopes, and the minimum over a fine grid."""
    count = 0
    for seed in range(group, SEEDS // 5, GROUPS):
        form, _, _, found, low, high = reading(seed)
        if isinstance(found, NeedsRange):
            found = found.within(low, high)
        if not isinstance(found, NeedsSmoothing):
            continue
        count, rng = count + 1, np.random.default_rng(seed)
        h = float(rng.uniform(0.02, 0.5))
        smoothed = found.smoothed(h)
        loss = smoothed.loss
        x = np.array(grid(low, high, 201), float)
        value, slope, bend = (f(x) for f in (loss.value, loss.derivative, loss.second_derivative))
        exact = np.array(form.value(np.longdouble(x), Extended), float)
        size = 1e-12 * (1 + np.abs(exact).max())
        gap = exact - value
        assert gap.min() >= -size, form.text
        assert gap.max() <= smoothed.gap_on(low, high) + size, form.text
        assert loss.curvature <= (1 / h) * (1 + 1e-15)
        assert bend.max() <= loss.curvature * (1 + 1e-12), form.text
        assert bend.min() >= 0
        assert np.abs(slope).max() <= loss.slope_on(low, high) * (1 + 1e-9) + 1e-9, form.text
        assert np.all(
            np.diff(slope) <= np.diff(x) * loss.curvature + 1e-9 * (1 + np.abs(slope).max())
        )
        least = loss.least_curvature(x[:-1], x[1:])
        assert np.all(least * np.diff(x) <= np.diff(slope) + 1e-9 * (1 + np.abs(slope).max())), (
            form.text
        )
        if np.isfinite(form.low):
            continue
        # The least value on a grid of s is above the envelope, and near it.
        some = x[::40, None]
        s = some + np.linspace(-1, 1, 4001) * (h * np.abs(slope[::40, None]) + 0.01)
        least = (form.value(np.longdouble(s), Extended) + (s - some) ** 2 / (2 * h)).min(axis=1)
        assert np.all(least >= value[::40] - size), form.text
        np.testing.assert_allclose(np.array(least, float), value[::40], atol=1e-3 * size * 1e12)
    assert count >= 2
