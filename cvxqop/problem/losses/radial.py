"""Losses of the length of several outputs, φ(‖t‖), t = Θ'a + c (k,): constants and sums."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cvxqop._blocks import dense

__all__ = ["Radial", "RadialSum"]

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Radial:
    """φ(‖t‖) for a convex φ with φ'(0) = 0, φ'' ≤ κ, t of length k ≥ 2.

    With r = ‖t‖ and u = t/r the gradient is φ'(r) u, and the Hessian
    φ''(r) uu' + (φ'(r)/r)(I − uu'). φ'(r)/r is the mean of φ'' over [0, r]: no eigenvalue exceeds
    κ, so that the trace is at most kκ and the Frobenius norm √k κ. Attained at r = 0 where
    φ''(0) = κ.

    Examples
    --------
    >>> from cvxqop.problem.losses.scalar import huber
    >>> loss = Radial(3, huber(0.5))
    >>> loss.curvature, loss.trace, round(loss.frobenius, 3), loss.slope_bound(9.0)
    (2.0, 6.0, 3.464, 1.0)
    """

    count: int
    loss: Any
    quadratic: bool = False
    even: bool = True

    @property
    def name(self) -> str:
        """Name for people."""
        return f"φ(‖t‖) with φ = {self.loss.name}"

    @property
    def curvature(self) -> float:
        """κ."""
        return float(self.loss.curvature)

    @property
    def trace(self) -> float:
        """kκ."""
        return self.count * self.curvature

    @property
    def frobenius(self) -> float:
        """√k κ."""
        return math.sqrt(self.count) * self.curvature

    @property
    def hessian_rank(self) -> int:
        """k."""
        return self.count

    def slope_bound(self, bound: float) -> float:
        """sup φ'(‖t‖) over ‖t‖ ≤ bound."""
        return float(self.loss.slope_bound(bound))


@dataclass(frozen=True, eq=False)
class RadialSum:
    """w φ(‖t + c‖) as sums over blocks.

    Examples
    --------
    >>> from cvxqop.problem.losses.scalar import huber
    >>> loss = RadialSum(2, huber(1.0), 1.0)
    >>> values, slopes = loss.evaluate(np.array([[3.0, 0.0]]), np.array([[0.0, 4.0]]))
    >>> values.tolist(), slopes.round(3).tolist()
    ([9.0], [[1.2, 1.6]])
    """

    count: int
    loss: Any
    weight: float
    quadratic = False

    @property
    def shifts(self) -> int:
        """k: every column of C."""
        return self.count

    @property
    def curvature(self) -> float:
        """wκ."""
        return self.weight * float(self.loss.curvature)

    @property
    def rank(self) -> int:
        """k."""
        return self.count

    @property
    def roundings(self) -> float:
        """φ' and u are off by a few units each."""
        return (self.count + 8) * self.weight * float(self.loss.slope)

    def evaluate(self, T: Array, C: Array) -> tuple[Array, Array]:
        """Values and slopes."""
        r, u = _polar(T + C)
        slopes = self.loss.derivative(r)[:, None] * u
        return self.weight * self.loss.value(r), self.weight * slopes

    def hessian(self, A: Any, T: Array, C: Array, reach: Array | None = None) -> Array:
        """Σ w M ⊗ aa'; with ``reach``, a matrix below it while no t moves by more than that.

        Between r − δ and r + δ no eigenvalue of M is below the least φ'' there, nor below
        φ'(r − δ)/(r + δ): φ' does not decrease.
        """
        A, k, p = dense(A), self.count, A.shape[1]
        r, u = _polar(T + C)
        if reach is not None:
            low, high = np.maximum(r - reach, 0.0), r + reach
            bend = self.loss.least_curvature(low, high)
            across = np.where(low > 0.0, self.loss.derivative(low) / np.maximum(high, 1e-300), 0.0)
            least = np.where(low > 0.0, np.minimum(bend, across), bend)
            gram = self.weight * ((A * least[:, None]).T @ A)
            return np.asarray(np.kron(np.eye(k), gram))
        M = self._bends(r, u)
        H = np.empty((k * p, k * p))
        for i in range(k):
            for j in range(i + 1):
                block = (A * M[:, i, j][:, None]).T @ A
                H[i * p : (i + 1) * p, j * p : (j + 1) * p] = block
                H[j * p : (j + 1) * p, i * p : (i + 1) * p] = block.T
        return self.weight * H

    def root(self, A: Any, T: Array, C: Array) -> Array:
        """k rows a record."""
        r, u = _polar(T + C)
        A, k = dense(A), self.count
        along, across = (np.sqrt(self.weight * bend) for bend in self._eigenvalues(r))
        Q = across[:, None, None] * np.eye(k)
        Q = Q + (along - across)[:, None, None] * (u[:, :, None] * u[:, None, :])
        return np.asarray(np.einsum("bjl,bi->bjli", Q, A).reshape(len(A) * k, -1))

    def quadratic_form(self, A: Any, C: Array, anchor: Array) -> tuple[Any, Array]:
        """The loss is not quadratic."""
        raise NotImplementedError

    def _eigenvalues(self, r: Array) -> tuple[Array, Array]:
        """φ''(r), along t, and φ'(r)/r, across."""
        along = self.loss.second_derivative(r)
        safe = np.where(r > 0.0, r, 1.0)
        return along, np.where(r > 0.0, self.loss.derivative(r) / safe, along)

    def _bends(self, r: Array, u: Array) -> Array:
        along, across = self._eigenvalues(r)
        outer = u[:, :, None] * u[:, None, :]
        M = (along - across)[:, None, None] * outer
        return np.asarray(M + across[:, None, None] * np.eye(self.count))


def _polar(t: Array) -> tuple[Array, Array]:
    """Lengths and directions, 0 for no length."""
    r = np.linalg.norm(t, axis=1)
    return r, t / np.where(r > 0.0, r, 1.0)[:, None]
