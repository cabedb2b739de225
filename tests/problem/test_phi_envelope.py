"""Envelopes against known formulas, and against minimisation."""

from __future__ import annotations

import math
from fractions import Fraction

import cvxpy as cp
import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from cvxqop.errors import OptionError
from cvxqop.problem.losses.phi.envelope import envelope, gap
from cvxqop.problem.losses.phi.piecewise import Piecewise
from cvxqop.problem.losses.phi.proximal import NumericalEnvelope
from cvxqop.problem.losses.phi.recognise import recognise
from cvxqop.problem.losses.scalar import huber

H = 0.3
T = np.linspace(-4, 4, 1601)


def smoothed(of, h=H, **options):
    t = cp.Variable()
    return recognise(of(t), t).smoothed(h, **options)


def check(loss, value, slope):
    np.testing.assert_allclose(loss.value(T), value, atol=1e-14)
    np.testing.assert_allclose(loss.derivative(T), slope, atol=1e-14)


def test_envelope_of_the_absolute_value_is_hubers():
    loss, other = smoothed(cp.abs).loss, huber(H)
    check(loss, other.value(T) / (2 * H), other.derivative(T) / (2 * H))
    assert (loss.slope, loss.even) == (1.0, True)
    assert 1 / Fraction(H) <= Fraction(loss.curvature) <= (1 + Fraction(1, 2**51)) / Fraction(H)


def test_smoothed_hinge():
    """0 right of 1, (1 − t)²/(2h) between 1 − h and 1, 1 − t − h/2 left of that."""
    found = smoothed(lambda t: cp.pos(1 - t))
    m = 1 - T
    value = np.where(m <= 0, 0, np.where(m < H, m**2 / (2 * H), m - H / 2))
    check(found.loss, value, -np.clip(m / H, 0, 1))
    assert found.loss.slope == 1.0
    assert found.gap == pytest.approx(H / 2, rel=1e-15)
    assert found.gap >= Fraction(H) / 2
    assert found.gap_on(1.0, 2.0) == 0.0
    assert found.gap_on(0.9, 2.0) == pytest.approx(0.1 - 0.01 / (2 * H))


def test_smoothed_pinball():
    """t²/(2h) between −h/4 and 3h/4, lines of slopes −1/4 and 3/4 beyond."""
    for of in (
        lambda t: cp.maximum(0.75 * t, (0.75 - 1) * t),
        lambda t: 0.75 * cp.pos(t) + 0.25 * cp.neg(t),
        lambda t: 0.5 * cp.abs(t) + 0.25 * t,
    ):
        found = smoothed(of)
        slope = np.clip(T / H, -0.25, 0.75)
        check(found.loss, slope * T - H * slope**2 / 2, slope)
        assert found.gap == pytest.approx(0.75**2 * H / 2)


def test_centred_envelopes_have_a_fourth_of_the_gap():
    """For slopes p and q the gap is h (q − p)²/8, in place of h max(p², q²)/2."""
    for of, plain, centred in (
        (lambda t: cp.pos(1 - t), 1 / 2, 1 / 8),
        (cp.abs, 1 / 2, 1 / 2),
        (lambda t: cp.maximum(0.75 * t, -0.25 * t), 9 / 32, 1 / 8),
    ):
        one, other = smoothed(of), smoothed(of, centred=True)
        assert one.gap == pytest.approx(plain * H)
        assert other.gap == pytest.approx(centred * H)
        assert other.loss.curvature == one.loss.curvature
        assert other.loss.slope == one.loss.slope


def test_curved_pieces():
    """Curvature c becomes c/(1 + hc)."""
    found = smoothed(lambda t: cp.abs(t) + cp.square(t))
    loss = found.loss
    shrunk = 2 / (1 + 2 * H)
    np.testing.assert_allclose(
        loss.second_derivative(np.array([-2, 0, 2])), [shrunk, 1 / H, shrunk]
    )
    assert (loss.slope, found.gap) == (math.inf, math.inf)
    assert 0 < found.gap_on(-1, 1) <= 9 * H / 2


FORMS = {
    "hinge": lambda t: cp.pos(1 - t),
    "tube": lambda t: cp.pos(cp.abs(t - 0.3) - 0.5),
    "three lines": lambda t: cp.maximum(-2 * t, 0.1 * t, t - 1),
    "elastic": lambda t: cp.abs(t) + cp.square(t),
    "sum": lambda t: cp.pos(1 - t) + 0.3 * cp.huber(t, 0.5) + cp.abs(t - 0.2) / 7,
    "power": lambda t: cp.power(cp.abs(t), 1.5),
    "logistic of |t|": lambda t: cp.logistic(cp.abs(t)),
    "exponential": lambda t: cp.exp(t) + cp.pos(1 - 2 * t),
    "pseudo-Huber": lambda t: cp.norm(cp.hstack([t, 0.2]), 2) + 2 * cp.pos(t),
}


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("h", [0.01, 0.3, 2.0])
def test_against_minimisation(name, h):
    t = cp.Variable()
    found = recognise(FORMS[name](t), t)
    result = found.smoothed(h)
    phi = lambda s: float(found.function.order(np.array([s]), 0)[0])  # noqa: E731
    for x in (-2.2, -0.31, 0.0, 0.04, 0.5, 1.7):
        sides = (found.function.slope_at(Fraction(x), side) for side in (-1, 1))
        g = max(abs(float(one.low)) for one in sides)
        bounds = (x - h * g - 1e-3, x + h * g + 1e-3)
        best = minimize_scalar(
            lambda s, x=x: phi(s) + (s - x) ** 2 / (2 * h),
            bounds=bounds, method="bounded", options={"xatol": 1e-10},
        )  # fmt: skip
        at = np.array([x])
        # The minimum that is found is above the true one, near it, and so is its place.
        assert -1e-12 <= best.fun - result.loss.value(at)[0] <= 1e-7
        slope = (x - best.x) / h
        assert result.loss.derivative(at)[0] == pytest.approx(slope, abs=1e-5 * (1 + 1 / h))
        assert 0 <= phi(x) - result.loss.value(at)[0] + 1e-15 <= h * g**2 / 2 + 1e-12
    slope = result.loss.derivative(T)
    mean = np.diff(result.loss.value(T)) / np.diff(T)
    assert np.all((slope[:-1] <= mean + 1e-10) & (mean <= slope[1:] + 1e-10))
    bend = result.loss.second_derivative(T)
    assert 0 <= bend.min() <= bend.max() <= result.loss.curvature


@pytest.mark.parametrize("name", ["hinge", "tube", "three lines", "elastic", "sum"])
def test_numerical_and_exact_envelope_agree(name):
    t = cp.Variable()
    f = recognise(FORMS[name](t), t).function
    h = Fraction(H)
    one, other = envelope(f, h), NumericalEnvelope(f, h)
    for k in range(3):
        points = T + 1e-4
        np.testing.assert_allclose(one.order(points, k), other.order(points, k), atol=1e-12)
    low = np.linspace(-3, 2, 101)
    least = other.least_curvature(low, low + 0.2)
    assert np.all(least <= one.order(low + 0.1, 2) + 1e-12)


def test_inverse_of_the_slope():
    for of in (lambda t: cp.abs(t) + cp.square(t), lambda t: cp.pos(1 - t)):
        loss = smoothed(of).loss
        u = loss.derivative(T)
        np.testing.assert_allclose(loss.derivative(loss.inverse(u)), u, atol=1e-13)


def test_gap_is_the_largest_difference():
    t = Piecewise.argument()
    f = (t - 1).maximum(0) + (t * -2).maximum(t * Fraction(1, 3))
    smooth = envelope(f, Fraction(1, 4))
    difference = (f.order(T, 0) - smooth.order(T, 0)).max()
    assert difference <= gap(f, smooth) <= difference * (1 + 1e-12)
    assert gap(f, smooth) == 0.5  # h g²/2 with the largest slope 2
    assert (f - smooth).order(T, 0).min() >= -1e-15


@pytest.mark.parametrize("of", [cp.abs, lambda t: cp.maximum(0.75 * t, -0.25 * t)])
def test_what_the_gap_lacks_on_average(of):
    """Of one kink: γ h κ̄/3, κ̄ the mean of φ_h'' (theory §1)."""
    t = cp.Variable()
    needs = recognise(of(t), t)
    found = needs.smoothed(H, centred=True)
    fine = np.linspace(-4, 4, 800_001)
    lacks = found.gap - (needs.function.order(fine, 0) - found.loss.value(fine))
    low, high = found.loss.derivative(np.array([-4.0, 4.0]))
    assert lacks.mean() == pytest.approx(H * (high - low) / 8 * found.gap / 3, rel=1e-4)


def test_envelope_of_an_envelope():
    """e_h e_k = e_{h + k}, exactly."""
    t = cp.Variable()
    f = recognise(cp.pos(cp.abs(t - 0.3) - 0.5) + cp.maximum(0.1 * t, -t), t).function
    h, k = Fraction(1, 7), Fraction(2, 5)
    assert envelope(envelope(f, h), k) == envelope(f, h + k)


@pytest.mark.parametrize("h", [0.0, -1.0, math.inf, math.nan])
def test_widths_are_positive(h):
    with pytest.raises(OptionError, match="smoothing"):
        smoothed(cp.abs, h)
