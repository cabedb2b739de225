"""A smooth convex function that is known by its values and gradients only, and its perturbation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from cvxqop.solve.smooth.quadratic import EPS, Evaluation

__all__ = ["Function", "PerturbedFunction"]

Array = npt.NDArray[np.float64]
Function = Callable[[Array], tuple[float, Array] | None]


@dataclass(frozen=True, eq=False)
class PerturbedFunction:
    """f(θ) = ℓ(θ) + ½ (θ − θ0)'S(θ − θ0) + a'(θ − θ0), with ℓ convex and differentiable.

    Parameters
    ----------
    function : callable
        θ ↦ (ℓ(θ), ∇ℓ(θ)), None outside its domain.
    S : (D, D) array
        Symmetric positive definite.
    a : (D,) array
        Linear term.
    anchor : (D,) array
        θ0.
    summands : int
        n: ℓ is a sum of that many functions.
    smoothness, slope : float
        L ≥ ‖∇²‖ and G0 ≥ ‖∇‖ at the anchor of every summand. The rounding of ∇ℓ is allowed for by
        them: a sum of n vectors of size G0 + L(‖θ − θ0‖ + ‖θ‖), each with a few units of error.
    curvature : float
        A guess of the mean curvature of ℓ, where a search for it starts.

    Examples
    --------
    >>> import numpy as np
    >>> half = lambda theta: (0.5 * float(theta @ theta), theta)
    >>> f = PerturbedFunction(half, np.eye(2), np.zeros(2), np.zeros(2), 1, 1.0, 0.0, 1.0)
    >>> f.evaluate(np.array([3.0, 4.0])).gradient.tolist()
    [6.0, 8.0]
    """

    function: Function
    S: Array
    a: Array
    anchor: Array
    summands: int
    smoothness: float
    slope: float
    curvature: float

    @property
    def dimension(self) -> int:
        """D, the length of θ."""
        return int(self.a.shape[0])

    @cached_property
    def _size(self) -> float:
        return float(np.linalg.norm(self.S))

    def evaluate(self, theta: Array) -> Evaluation:
        """Value and gradient; infinite and NaN outside the domain of ℓ."""
        found = self.function(theta)
        if found is None or not (np.isfinite(found[0]) and np.all(np.isfinite(found[1]))):
            return Evaluation(np.inf, np.full(self.dimension, np.nan), np.inf)
        step = theta - self.anchor
        product = self.S @ step
        length, moved = float(np.linalg.norm(theta)), float(np.linalg.norm(step))
        n, D = self.summands, self.dimension
        error = (0.5 * n + D + 64.0) * n * (self.slope + self.smoothness * (moved + length))
        error += (D + 4) * (float(np.linalg.norm(self.a)) + self._size * moved)
        value = found[0] + float(step @ (self.a + 0.5 * product))
        return Evaluation(value, found[1] + self.a + product, EPS * error)

    def lower_curvature(self) -> Array:
        """S."""
        return self.S

    def upper_curvature(self) -> float:
        """L ≥ λ_max(∇²f) everywhere."""
        return 1.01 * (self.summands * self.smoothness + self._size)

    def plus(self, Q: Array | None, q: Array) -> PerturbedFunction:
        """f(θ) + ½ θ'Qθ + q'θ, up to a constant."""
        if Q is None:
            return replace(self, a=self.a + q)
        return replace(self, S=self.S + Q, a=self.a + q + Q @ self.anchor)
