"""Losses that are read from the expression of one number, with known constants."""

from __future__ import annotations

import math

import cvxpy as cp
import mpmath
import numpy as np
import pytest

from cvxqop.problem.losses import scalar
from cvxqop.problem.losses.phi.loss import PhiLoss
from cvxqop.problem.losses.phi.recognise import (
    NeedsRange,
    NeedsSmoothing,
    NotRecognised,
    Smooth,
    recognise,
)
from cvxqop.problem.losses.phi.smooth import Unread

POINTS = np.linspace(-6.0, 6.0, 2001) + 1e-5


def stacked_norm(t, c=1.0):
    if t.ndim == 0:
        return cp.norm(cp.hstack([t, c]), 2)
    return cp.norm(cp.vstack([t, c * np.ones(t.shape)]), 2, axis=0)


def log_sum_exp(t):
    if t.ndim == 0:
        return cp.log_sum_exp(cp.hstack([t, 0.0, 2 * t]))
    return cp.log_sum_exp(cp.vstack([t, np.zeros(t.shape), 2 * t]), axis=0)


# expression, κ, sup |φ'|
SMOOTH = {
    "square": (cp.square, 2.0, math.inf),
    "shifted square": (lambda t: (3 * t - 1) ** 2 / 2, 9.0, math.inf),
    "quadratic": (lambda t: cp.square(t) - 4 * t + 1, 2.0, math.inf),
    "logistic": (cp.logistic, 0.25, 1.0),
    "huber": (lambda t: cp.huber(t, 1.5), 2.0, 3.0),
    "squared hinge": (lambda t: cp.square(cp.pos(t)), 2.0, math.inf),
    "squared hinge of a margin": (lambda t: cp.square(cp.pos(1 - t)), 2.0, math.inf),
    "huber of the positive part": (lambda t: cp.huber(cp.pos(1 - t), 0.5), 2.0, 1.0),
    "squared ε-insensitive": (lambda t: cp.square(cp.pos(cp.abs(t) - 0.05)), 2.0, math.inf),
    "expectile": (lambda t: 0.8 * cp.square(cp.pos(t)) + 0.2 * cp.square(cp.neg(t)), 1.6, math.inf),
    "pseudo-Huber": (stacked_norm, 1.0, 1.0),
    "narrow pseudo-Huber": (lambda t: 0.5 * stacked_norm(2 * t, 0.1), 20.0, 1.0),
    "log-cosh": (lambda t: cp.logistic(2 * t) - t - np.log(2), 1.0, 1.0),
    "entries under each other": (log_sum_exp, 2 / 3, 2.0),
    "probit": (lambda t: -cp.log_normcdf(t), 1.0, math.inf),
    "log_sum_exp of two": (
        lambda t: (
            cp.log_sum_exp(cp.vstack([3 * t, 0 * t]), axis=0) if t.ndim else cp.logistic(3 * t)
        ),
        2.25,
        3.0,
    ),
}
# expression, range, κ, sup |φ'| on the range
BOUNDED = {
    "Poisson": (cp.exp, (-2.0, 2.0), math.exp(2), math.exp(2)),
    "Poisson on one side": (cp.exp, (-math.inf, 1.0), math.e, math.e),
    "quartic": (lambda t: cp.power(t, 4), (-2.0, 2.0), 48.0, 32.0),
    "power 3 of |t|": (lambda t: cp.power(cp.abs(t), 3), (-2.0, 1.0), 12.0, 12.0),
    "power 2.5 of t₊": (lambda t: cp.power(cp.pos(t), 2.5), (-1.0, 4.0), 7.5, 20.0),
    "power 6": (lambda t: cp.power(t, 6), (-1.0, 1.0), 30.0, 6.0),
    "reciprocal": (cp.inv_pos, (0.5, 3.0), 16.0, 4.0),
    "gamma": (lambda t: 2 * cp.exp(-t) + t, (-1.0, 1.0), 2 * math.e, 2 * math.e - 1),
    "log": (lambda t: -cp.log(1 + t), (-0.5, 1.0), 4.0, 2.0),
    "log1p": (lambda t: -cp.log1p(t), (-0.5, 1.0), 4.0, 2.0),
    "Poisson, identity link": (lambda t: cp.kl_div(3.0, t), (0.5, 2.0), 12.0, 5.0),
    "zero count": (lambda t: cp.kl_div(0.0, t) + cp.square(t), (0.0, 2.0), 2.0, 5.0),
    "entropy": (lambda t: -cp.entr(t) - cp.entr(1 - t), (0.1, 0.9), 1 / 0.09, math.log(9)),
    "relative entropy": (lambda t: cp.rel_entr(t, 2.0), (0.5, 4.0), 2.0, 1 + math.log(2)),
    "cloglog": (lambda t: cp.exp(2 * t), (-1.0, 0.5), 4 * math.e, 2 * math.e),
    "of a square": (lambda t: cp.exp(cp.square(t)), (-1.0, 1.0), 6 * math.e, 2 * math.e),
}
# expression, slope
KINKED = {
    "hinge": (lambda t: cp.pos(1 - t), 1.0),
    "absolute value": (cp.abs, 1.0),
    "pinball": (lambda t: cp.maximum(0.75 * t, (0.75 - 1) * t), 0.75),
    "pinball by |t|": (lambda t: 0.5 * cp.abs(t) + 0.25 * t, 0.75),
    "pinball by parts": (lambda t: 0.75 * cp.pos(t) + 0.25 * cp.neg(t), 0.75),
    "scalene": (lambda t: cp.scalene(t, 0.75, 0.25), 0.75),
    "ε-insensitive": (lambda t: cp.pos(cp.abs(t) - 0.1), 1.0),
    "CVaR": (lambda t: cp.pos(-t) / 0.1, 10.0),
    "p-norm": (lambda t: cp.power(cp.abs(t), 1.5), math.inf),
    "power of t₊": (lambda t: cp.power(cp.pos(t), 1.25), math.inf),
    "elastic": (lambda t: cp.abs(t) + cp.square(t), math.inf),
    "logistic of |t|": (lambda t: cp.logistic(cp.abs(t)), 1.0),
    "against the margin": (lambda t: cp.maximum(0, 1 - t, -3 * t), 3.0),
}


def arguments():
    return cp.Variable(), cp.Variable(4)


@pytest.mark.parametrize("name", SMOOTH)
def test_smooth(name):
    of, curvature, slope = SMOOTH[name]
    for t in arguments():
        found = recognise(of(t), t)
        assert isinstance(found, Smooth), found
        loss = found.loss
        tight = 1.001 if name in ("entries under each other",) else 1 + 1e-7
        assert curvature * (1 - 1e-8) <= loss.curvature <= curvature * tight
        assert loss.slope == slope or slope <= loss.slope <= slope * (1 + 1e-12)
        assert loss.slope_bound(math.inf) == loss.slope
        rows = cp.Variable(len(POINTS))
        rows.value = POINTS
        expected = np.ravel(of(rows).value)
        np.testing.assert_allclose(loss.value(POINTS), expected, rtol=1e-12, atol=1e-12)
        assert np.max(loss.second_derivative(POINTS)) <= loss.curvature


def test_known_losses_come_out_as_they_are():
    t = cp.Variable(3)
    for expression, loss in (
        (cp.square(t), scalar.squared),
        (t**2, scalar.squared),
        (cp.sum_squares(t), scalar.squared),
        (cp.logistic(t), scalar.logistic),
        (cp.sum(cp.logistic(t)), scalar.logistic),
        (cp.square(cp.pos(t)), scalar.squared_hinge),
        (cp.sum_squares(cp.pos(t)), scalar.squared_hinge),
        (cp.power(cp.maximum(0, t), 2), scalar.squared_hinge),
    ):
        assert recognise(expression, t).loss is loss
    found = recognise(cp.huber(t, 1.3), t).loss
    assert (found.curvature, found.slope, found.name) == (2.0, 2.6, scalar.huber(1.3).name)
    halves = recognise(0.5 * cp.square(cp.pos(-t)), t).loss
    assert (halves.curvature, halves.derivative(np.array([-3.0, 3.0])).tolist()) == (1.0, [-3, 0])
    assert recognise(2 * cp.logistic(-3 * t), t).loss.curvature == 4.5


@pytest.mark.parametrize("name", BOUNDED)
def test_bounded(name):
    of, (low, high), curvature, slope = BOUNDED[name]
    for t in arguments():
        found = recognise(of(t), t)
        assert isinstance(found, NeedsRange), found
        loss = found.bounded(low, high)
        assert curvature <= loss.curvature * (1 + 1e-15) <= curvature * 1.002
        assert slope <= loss.slope_on(low, high) * (1 + 1e-15) <= slope * (1 + 1e-9)
    inside = np.clip(np.linspace(max(low, -6.0), high, 501), low + 1e-9 * (low == 0.0), high)
    column = cp.Variable((501, 1))
    column.value = inside[:, None]
    np.testing.assert_allclose(
        loss.value(inside), np.ravel(of(column).value), rtol=1e-10, atol=1e-12
    )
    # C¹ at the ends, and a parabola with φ'' of the end beyond.
    for end, sign in ((low, -1.0), (high, 1.0)):
        if math.isinf(end):
            continue
        t = end + sign * np.array([1e-9, 0.5, 1.0, 1.5])
        bend = loss.second_derivative(np.array([end + sign * 1e-9]))[0]
        np.testing.assert_allclose(loss.second_derivative(t), bend)
        at = [f(np.array([end]))[0] for f in (loss.value, loss.derivative)]
        np.testing.assert_allclose(
            loss.derivative(t), at[1] + bend * (t - end), rtol=1e-10, atol=1e-10
        )
        expected = at[0] + at[1] * (t - end) + 0.5 * bend * (t - end) ** 2
        np.testing.assert_allclose(loss.value(t), expected, rtol=1e-10, atol=1e-10)


def test_ranges_that_do_not_do():
    t = cp.Variable()
    found = recognise(cp.inv_pos(t), t)
    assert found.domain == (0.0, math.inf)
    for low, high in ((-1.0, 1.0), (0.0, 1.0), (1.0, 1.0), (2.0, 1.0)):
        with pytest.raises(Unread):
            found.bounded(low, high)
    with pytest.raises(Unread):
        recognise(cp.exp(t), t).bounded(0.0, math.inf)
    with pytest.raises(Unread):
        recognise(-cp.entr(t), t).bounded(0.0, 1.0)
    kinked = recognise(-cp.log(t) + cp.abs(t - 1), t)
    with pytest.raises(Unread, match="kink"):
        kinked.bounded(0.5, 2.0)
    assert isinstance(kinked.within(1.5, 2.0), Smooth)
    smoothed = kinked.within(0.5, 2.0).smoothed(0.01)
    assert smoothed.loss.curvature == 100.0
    assert recognise(cp.exp(t), t).bounded(-1.5).curvature == pytest.approx(math.exp(1.5))


@pytest.mark.parametrize("name", KINKED)
def test_kinked(name):
    of, slope = KINKED[name]
    for t in arguments():
        found = recognise(of(t), t)
        assert isinstance(found, NeedsSmoothing), found
        assert found.slope == slope or slope <= found.slope <= slope * (1 + 1e-12)
        smoothed = found.smoothed(0.25)
        assert smoothed.loss.curvature <= 4.0
        assert smoothed.loss.slope == found.slope
        assert 0 < smoothed.gap <= slope**2 / 8 * (1 + 1e-12)


def test_refusals():
    t, w, X = cp.Variable(3), cp.Variable(3), np.ones((3, 3))
    for expression in (
        cp.sqrt(t),
        cp.norm(t, 2),
        cp.log_sum_exp(t),
        cp.max(t),
        cp.sum_largest(cp.square(t), 2),
        cp.quad_form(t, np.eye(3)),
        cp.square(X @ t),
        cp.square(t[:2]),
        cp.square(cp.diff(t)),
        cp.square(t + w),
        cp.multiply(np.arange(3.0), cp.square(t)),
        cp.square(cp.sum(t)),
        cp.hstack([cp.square(t), cp.square(t)]),
        cp.square(cp.Parameter()) + t,
        2 * t + 1,
        -cp.square(t),
        cp.loggamma(t),
        cp.square(1e200 * t),
        cp.square(w),
    ):
        found = recognise(expression, t)
        assert isinstance(found, NotRecognised), expression
        assert not any(letter.isdigit() for letter in found.reason.replace("1-, 2- or", "")), found
    rows = cp.Variable((3, 2))
    assert isinstance(recognise(cp.sum_squares(rows), rows), NotRecognised)


def test_argument_may_be_any_node():
    w, X = cp.Variable(2), np.array([[1.0, 2], [3, 4], [5, 6]])
    for y in (np.array([1.0, -1, 1]), np.array([1.0, 1, 1])):
        t = cp.multiply(y, X @ w)
        assert recognise(cp.sum(cp.huber(cp.pos(1 - t), 0.5)), t).loss.curvature == 2.0
        assert recognise(cp.sum(cp.pos(1 - t)) / 3, t).slope == pytest.approx(1 / 3)
        assert recognise(np.ones(3) @ cp.exp(t), t).bounded(1.0).curvature == pytest.approx(math.e)
    column = cp.reshape(X @ w, (3, 1), order="F")
    found = recognise(cp.norm(cp.hstack([column, np.ones((3, 1))]), 2, axis=1), column)
    assert found.loss.curvature == pytest.approx(1.0)


def test_signs_of_the_argument_are_not_used():
    """A sign that CVXPY takes from the records must not decide what is accepted."""
    w, X = cp.Variable(2, nonneg=True), np.ones((3, 2))
    t = X @ w
    assert cp.square(cp.square(t) + t).is_convex()
    assert isinstance(recognise(cp.square(cp.square(t) + t), t), NotRecognised)


def test_factors_and_weights():
    t = cp.Variable()
    losses = [
        recognise(cp.huber(cp.pos(1 - t), 0.5), t).loss,
        recognise(stacked_norm(t - 1), t).loss,
        recognise(cp.exp(t), t).bounded(2.0),
        recognise(cp.abs(t - 0.5), t).smoothed(0.3).loss,
        recognise(cp.logistic(cp.abs(t)), t).smoothed(0.3).loss,
    ]
    for loss in losses:
        for factor in (-1.0, 0.5, -3.0):
            moved = loss.scaled(factor).weighted(0.7)
            assert isinstance(moved, PhiLoss)
            assert moved.curvature == pytest.approx(0.7 * factor**2 * loss.curvature, rel=2e-3)
            assert moved.slope == pytest.approx(0.7 * abs(factor) * loss.slope)
            np.testing.assert_allclose(
                moved.value(POINTS), 0.7 * loss.value(factor * POINTS), rtol=1e-9, atol=1e-9
            )
            np.testing.assert_allclose(
                moved.derivative(POINTS), 0.7 * factor * loss.derivative(factor * POINTS), atol=1e-9
            )
        assert loss.times(2.0).name == loss.name


def test_least_curvature_where_it_is_not_unimodal():
    t = cp.Variable()
    quartic = recognise(cp.power(t, 4), t).bounded(2.0)
    low, high = np.array([-1.0, 0.5, -3.0, 1.0]), np.array([1.0, 1.0, -2.5, 5.0])
    np.testing.assert_allclose(quartic.least_curvature(low, high), [0, 3, 48, 12], rtol=1e-12)
    tube = recognise(cp.square(cp.pos(cp.abs(t) - 1)), t).loss
    assert tube.least_curvature(np.array([-2.0, 1.5]), np.array([2.0, 3.0])).tolist() == [0, 2]


def test_extreme_arguments():
    t = cp.Variable()
    x = np.array([-1e200, -1e20, -1e4, 0.0, 1e4, 1e20, 1e200])
    for name in (
        "pseudo-Huber",
        "log-cosh",
        "huber of the positive part",
        "entries under each other",
    ):
        loss = recognise(SMOOTH[name][0](t), t).loss
        assert np.all(np.isfinite(loss.value(x)))
        slope = loss.derivative(x)
        assert np.all(np.diff(slope) >= 0)
        assert np.abs(slope).max() <= loss.slope
        assert np.all(
            (loss.second_derivative(x) >= 0) & (loss.second_derivative(x) <= loss.curvature)
        )
    poisson = recognise(cp.exp(t), t).bounded(3.0)
    assert np.all(np.isfinite(poisson.derivative(x)))
    assert poisson.derivative(x[:1])[0] == pytest.approx(math.exp(-3) * -1e200)


def test_jumps_that_are_rounding_are_no_kinks():
    t = cp.Variable()
    spelled = cp.square(cp.minimum(cp.abs(t), 0.7)) + (3 * 0.7 - 0.7) * cp.pos(cp.abs(t) - 0.7)
    found = recognise(spelled, t)
    assert 3 * 0.7 - 0.7 != 2 * 0.7
    assert isinstance(found, Smooth)
    assert found.loss.curvature == 2.0
    assert found.loss.slope == pytest.approx(1.4)
    assert recognise(spelled + 1e-9 * cp.abs(t - 0.7), t).slope == pytest.approx(1.4)


def test_third_moment_behind_the_curvature_of_log_sum_exp():
    """|κ3| ≤ R³/(6√3) for a distribution on an interval of length R: at two points, p ≈ .21."""
    p = np.linspace(0, 1, 100_001)
    assert np.max(p * (1 - p) * np.abs(1 - 2 * p)) == pytest.approx(
        1 / (6 * math.sqrt(3)), rel=1e-6
    )


@pytest.mark.parametrize("name", ["entries under each other", "log-cosh"])
def test_curvature_against_mpmath(name):
    """sup φ'' by mpmath on a dense grid is below κ, and κ is 0.2% above it at most."""
    t = cp.Variable()
    loss = recognise(SMOOTH[name][0](t), t).loss
    functions = {
        "entries under each other": lambda x: mpmath.log(1 + mpmath.exp(x) + mpmath.exp(2 * x)),
        "log-cosh": lambda x: mpmath.log(2 * mpmath.cosh(x)),
    }
    with mpmath.workdps(30):
        bends = [mpmath.diff(functions[name], mpmath.mpf(x) / 50, 2) for x in range(-250, 251)]
        assert max(bends) <= loss.curvature <= max(bends) * mpmath.mpf("1.002")


def test_sums_over_records_are_scaled_and_added():
    t = cp.Variable(3)
    loss = recognise(cp.sum(cp.square(t)) / 3 + 0.5 * cp.sum(cp.logistic(2 * t)), t).loss
    assert loss.curvature == pytest.approx(2 / 3 + 0.5)
    assert isinstance(recognise(cp.square(cp.sum_squares(t)), t), NotRecognised)
    assert isinstance(recognise(cp.sum_squares(t) + 1, t), NotRecognised)


def test_the_argument_written_twice():
    """CVXPY merges sums, so that y − X @ w − 1 does not hold the node y − X @ w."""
    w, X, y = cp.Variable(2), np.ones((3, 2)), np.ones(3)
    t, again, less = X @ w - y, X @ w - y, y - X @ w - 1
    pinball = cp.sum(cp.maximum(0.75 * t, -0.25 * again) + cp.pos(less))
    assert isinstance(recognise(pinball, t), NotRecognised)
    found = recognise(pinball, t, also=[(again, 1.0, 0.0), (less, -1.0, -1.0)])
    assert [float(b) for b in found.function.breaks] == [-1.0, 0.0]
    assert [float(jump) for jump in found.function.jumps()] == [1.0, 1.0]


def test_many_terms():
    """No two of their parabolas overlap but neighbours: κ is that of two."""
    t = cp.Variable()
    loss = recognise(sum(cp.huber(t - k, 0.75) for k in range(70)), t).loss
    assert (loss.curvature, loss.slope) == (4.0, 105.0)
