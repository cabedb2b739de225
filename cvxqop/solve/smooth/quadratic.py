"""The smooth part of the perturbed problem, and its simplest form, a quadratic."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

__all__ = ["EPS", "Evaluation", "Quadratic", "Smooth"]

Array = npt.NDArray[np.float64]

EPS = float(np.finfo(np.float64).eps)


class Evaluation(NamedTuple):
    """f and ∇f at a point; ``error`` bounds the rounding of the gradient in the 2-norm."""

    value: float
    gradient: Array
    error: float


class Smooth(Protocol):
    """A smooth convex f."""

    @property
    def dimension(self) -> int:
        """D."""

    def evaluate(self, theta: Array) -> Evaluation:
        """Value and gradient in one pass."""

    def hessian(self, theta: Array, radius: float = 0.0) -> Array:
        """A matrix below ∇²f everywhere within ``radius`` of θ; ∇²f(θ) for radius 0."""

    def lower_curvature(self) -> Array:
        """A matrix below ∇²f everywhere."""

    def upper_curvature(self) -> float:
        """L ≥ λ_max(∇²f) everywhere."""

    def plus(self, Q: Array | None, q: Array) -> Smooth:
        """f(θ) + ½ θ'Qθ + q'θ, up to a constant."""


@dataclass(frozen=True, eq=False)
class Quadratic:
    """The quadratic f(θ) = g'(θ − θ0) + ½ (θ − θ0)'H(θ − θ0).

    Parameters
    ----------
    H : (D, D) array
        Symmetric and positive definite.
    g : (D,) array
        Gradient at the anchor.
    anchor : (D,) array
        θ0.

    Examples
    --------
    >>> import numpy as np
    >>> f = Quadratic(2.0 * np.eye(2), np.array([1.0, 0.0]), np.zeros(2))
    >>> float(f.value(np.array([1.0, 1.0])))
    3.0
    >>> f.gradient(np.array([1.0, 1.0])).tolist()
    [3.0, 2.0]
    """

    H: Array
    g: Array
    anchor: Array

    @property
    def dimension(self) -> int:
        """D, the length of θ."""
        return int(self.g.shape[0])

    def value(self, theta: Array) -> float:
        """f(θ)."""
        step = theta - self.anchor
        return float(step @ (self.g + 0.5 * (self.H @ step)))

    def gradient(self, theta: Array) -> Array:
        """∇f(θ), of shape (D,)."""
        return np.asarray(self.g + self.H @ (theta - self.anchor))

    @cached_property
    def _size(self) -> float:
        return float(np.linalg.norm(self.H))

    def evaluate(self, theta: Array) -> Evaluation:
        """Value and gradient; the error is that of a product of length D."""
        step = theta - self.anchor
        product = self.H @ step
        size = float(np.linalg.norm(self.g)) + self._size * float(np.linalg.norm(step))
        error = EPS * (self.dimension + 4) * size
        return Evaluation(float(step @ (self.g + 0.5 * product)), self.g + product, error)

    def hessian(self, theta: Array, radius: float = 0.0) -> Array:
        """H."""
        return self.H

    def lower_curvature(self) -> Array:
        """H."""
        return self.H

    def upper_curvature(self) -> float:
        """L ≥ λ_max(H)."""
        return 1.01 * self._size

    def plus(self, Q: Array | None, q: Array) -> Quadratic:
        """f(θ) + ½ θ'Qθ + q'θ, up to a constant."""
        if Q is None:
            return Quadratic(self.H, self.g + q, self.anchor)
        return Quadratic(self.H + Q, self.g + q + Q @ self.anchor, self.anchor)
