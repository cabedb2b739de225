"""Losses against CVXPY's own atoms and against finite differences."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

from cvxqop.problem.losses.scalar import ScalarLoss, huber, logistic, squared, squared_hinge

LOG_COSH = ScalarLoss(
    "log-cosh",
    value=lambda t: np.logaddexp(t, -t) - np.log(2.0),
    derivative=np.tanh,
    second_derivative=lambda t: 1 / np.cosh(t) ** 2,
    curvature=1.0,
    slope=1.0,
    even=True,
)
ATOMS = {
    "squared": (squared, cp.square),
    "logistic": (logistic, cp.logistic),
    "huber": (huber(1.3), lambda t: cp.huber(t, 1.3)),
    "squared hinge": (squared_hinge, lambda t: cp.square(cp.pos(t))),
}
ALL = {**{name: loss for name, (loss, _) in ATOMS.items()}, "log-cosh": LOG_COSH}
GRID = np.linspace(-30, 30, 4001) + 1e-4


@pytest.mark.parametrize("name", ATOMS)
def test_value_is_that_of_the_atom(name):
    loss, atom = ATOMS[name]
    np.testing.assert_allclose(loss.value(GRID), atom(cp.Constant(GRID)).value, rtol=1e-12)


@pytest.mark.parametrize("weight", [1.0, 0.3])
@pytest.mark.parametrize("factor", [1.0, -1.0, 0.5, -3.0])
@pytest.mark.parametrize("name", ALL)
def test_derivatives_and_constants(name, factor, weight):
    loss = ALL[name].scaled(factor).weighted(weight)
    expected = weight * ALL[name].value(factor * GRID)
    np.testing.assert_allclose(loss.value(GRID), expected, rtol=1e-12)
    t, h = GRID, 1e-5
    slope = (loss.value(t + h) - loss.value(t - h)) / (2 * h)
    np.testing.assert_allclose(loss.derivative(t), slope, atol=2e-5 * loss.curvature)
    second = loss.second_derivative(t)
    smooth = np.abs(loss.second_derivative(t + h) - loss.second_derivative(t - h)) < 1e-3
    curve = (loss.derivative(t + h) - loss.derivative(t - h)) / (2 * h)
    np.testing.assert_allclose(second[smooth], curve[smooth], atol=1e-4 * loss.curvature)
    assert second.min() >= 0
    assert second.max() <= loss.curvature
    assert second.max() >= 0.99 * loss.curvature
    largest = np.abs(loss.derivative(t)).max()
    assert largest <= loss.slope
    if np.isfinite(loss.slope):
        assert largest >= 0.99 * loss.slope
    if loss.even:
        np.testing.assert_allclose(loss.value(t), loss.value(-t), rtol=1e-12)
    assert loss.quadratic == bool(np.ptp(second) == 0)


@pytest.mark.parametrize("name", ALL)
def test_slope_bound(name):
    loss = ALL[name]
    for bound in (0.0, 0.7, 2.0, 50.0):
        t = np.linspace(-bound, bound, 1001)
        assert loss.slope_bound(bound) == pytest.approx(np.abs(loss.derivative(t)).max())
    assert loss.slope_bound(np.inf) == loss.slope


def test_extreme_arguments_do_not_warn():
    for loss in ATOMS.values():
        loss[0].derivative(np.array([-1e4, 1e4]))
        loss[0].second_derivative(np.array([-1e4, 1e4]))
        loss[0].value(np.array([-1e4, 1e4]))


@pytest.mark.parametrize("factor", [1.0, -3.0])
@pytest.mark.parametrize("name", ATOMS)
def test_inverse_of_the_slope(name, factor):
    loss = ATOMS[name][0].scaled(factor).weighted(0.3).times(2.0)
    t = np.linspace(0.01, 1.2, 50) * (1.0 if factor > 0 else -1.0)
    u = loss.derivative(t)
    np.testing.assert_allclose(loss.derivative(loss.inverse(u)), u, rtol=1e-12)
