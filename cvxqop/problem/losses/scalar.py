"""Scalar losses φ: value, slope, curvature, and the two constants that privacy needs of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy.special import expit, logit

__all__ = ["ScalarLoss", "huber", "linear", "logistic", "squared", "squared_hinge"]

Array = npt.NDArray[np.float64]
Function = Callable[[Array], Array]


@dataclass(frozen=True)
class ScalarLoss:
    """A convex, continuously differentiable function φ of one number.

    Parameters
    ----------
    name : str
        Name for people.
    value, derivative, second_derivative : callable
        φ, φ' and φ'', each from an array to an array of the same shape. Where φ' has a kink,
        φ'' is either one-sided value.
    curvature : float
        κ = sup φ'' (finite).
    slope : float
        sup |φ'|; ``math.inf`` if unbounded.
    quadratic : bool
        Whether φ'' is constant.
    even : bool
        Whether φ(−t) = φ(t).
    inverse : callable, optional
        A point t with φ'(t) = u for an array of u, anything where there is none: where it is
        known, clipped gradients are evaluated faster.
    unimodal : bool
        Whether φ'' rises and then falls, so that over an interval it is least at an end. Where it
        is not said, nothing but φ'' ≥ 0 is taken for certain, and hard cases may not be certified.

    Examples
    --------
    >>> import numpy as np
    >>> log_cosh = ScalarLoss(
    ...     "log-cosh",
    ...     value=lambda t: np.logaddexp(t, -t) - np.log(2.0),
    ...     derivative=np.tanh,
    ...     second_derivative=lambda t: 1 / np.cosh(t) ** 2,
    ...     curvature=1.0,
    ...     slope=1.0,
    ...     even=True,
    ...     unimodal=True,
    ... )
    >>> log_cosh.scaled(2.0).curvature
    4.0
    """

    name: str
    value: Function
    derivative: Function
    second_derivative: Function
    curvature: float
    slope: float = math.inf
    quadratic: bool = False
    even: bool = False
    inverse: Function | None = None
    unimodal: bool = False

    def slope_bound(self, bound: float) -> float:
        """sup of |φ'(t)| over |t| ≤ bound: attained at an end, since φ' never decreases."""
        if math.isinf(bound):
            return self.slope
        ends = self.derivative(np.array([-bound, bound], dtype=np.float64))
        return min(self.slope, float(np.max(np.abs(ends))))

    def slope_as_written(self, bound: float) -> float:
        """The same where the loss has not been continued beyond a range."""
        return self.slope_bound(bound)

    def least_curvature(self, low: Array, high: Array) -> Array:
        """A lower bound on φ'' over each interval [low, high]."""
        if not (self.unimodal or self.quadratic):
            return np.zeros_like(low)
        return np.minimum(self.second_derivative(low), self.second_derivative(high))

    def scaled(self, factor: float) -> ScalarLoss:
        """The loss t ↦ φ(factor · t): κ times factor², slope times |factor|."""
        if factor == 1.0 or (factor == -1.0 and self.even):
            return self
        value, derivative, second = self.value, self.derivative, self.second_derivative
        inverse = self.inverse
        return replace(
            self,
            name=f"{self.name}, argument times {factor:g}",
            value=lambda t: value(factor * t),
            derivative=lambda t: factor * derivative(factor * t),
            second_derivative=lambda t: factor**2 * second(factor * t),
            curvature=self.curvature * factor**2,
            slope=self.slope * abs(factor),
            inverse=None if inverse is None else lambda u: inverse(u / factor) / factor,
        )

    def times(self, weight: float) -> ScalarLoss:
        """The loss weight · φ(t), weight > 0."""
        if weight == 1.0:
            return self
        value, derivative, second = self.value, self.derivative, self.second_derivative
        inverse = self.inverse
        return replace(
            self,
            value=lambda t: weight * value(t),
            derivative=lambda t: weight * derivative(t),
            second_derivative=lambda t: weight * second(t),
            curvature=self.curvature * weight,
            slope=self.slope * weight,
            inverse=None if inverse is None else lambda u: inverse(u / weight),
        )

    def weighted(self, weight: float) -> ScalarLoss:
        """The loss w·φ, w ≥ 0: κ and slope times w."""
        return (
            self
            if weight == 1.0
            else replace(self.times(weight), name=f"{weight:g} times {self.name}")
        )


squared = ScalarLoss(
    "squared, t²",
    value=np.square,
    derivative=lambda t: 2.0 * t,
    second_derivative=lambda t: np.full_like(t, 2.0),
    curvature=2.0,
    quadratic=True,
    even=True,
    inverse=lambda u: 0.5 * u,
)

linear = ScalarLoss(
    "linear, t",
    value=lambda t: t,
    derivative=np.ones_like,
    second_derivative=np.zeros_like,
    curvature=0.0,
    slope=1.0,
    quadratic=True,
)

logistic = ScalarLoss(
    "logistic, log(1 + exp t)",
    value=lambda t: np.logaddexp(0.0, t),
    derivative=lambda t: np.asarray(expit(t)),
    second_derivative=lambda t: np.asarray(expit(t) * expit(-t)),
    curvature=0.25,
    slope=1.0,
    inverse=lambda u: np.asarray(logit(u)),
    unimodal=True,
)

squared_hinge = ScalarLoss(
    "squared hinge, max(t, 0)²",
    value=lambda t: np.square(np.maximum(t, 0.0)),
    derivative=lambda t: 2.0 * np.maximum(t, 0.0),
    second_derivative=lambda t: np.where(t > 0.0, 2.0, 0.0),
    curvature=2.0,
    inverse=lambda u: 0.5 * u,
    unimodal=True,
)


def huber(threshold: float = 1.0) -> ScalarLoss:
    """Huber loss, t² for |t| ≤ M and 2M|t| − M² beyond: κ = 2, slope at most 2M.

    Examples
    --------
    >>> huber(1.5).slope
    3.0
    """
    m = float(threshold)
    return ScalarLoss(
        "huber, t² then 2M|t| − M²",
        value=lambda t: np.where(np.abs(t) <= m, np.square(t), 2.0 * m * np.abs(t) - m * m),
        derivative=lambda t: 2.0 * np.clip(t, -m, m),
        second_derivative=lambda t: np.where(np.abs(t) <= m, 2.0, 0.0),
        curvature=2.0,
        slope=2.0 * m,
        even=True,
        inverse=lambda u: 0.5 * u,
        unimodal=True,
    )
