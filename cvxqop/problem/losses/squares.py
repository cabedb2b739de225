"""Squared losses with several outputs a record, ½κ‖t + c‖², t = Θ'a (k,)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cvxqop._blocks import back, dense, outputs, weighted_gram

__all__ = ["Squares"]

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Squares:
    """½κ‖t + c‖² as sums over blocks. The Hessian of a record is κ aa' in each of its k outputs.

    Examples
    --------
    >>> values, slopes = Squares(2, 2.0).evaluate(np.zeros((1, 2)), np.array([[3.0, 4.0]]))
    >>> values.tolist(), slopes.tolist()
    ([25.0], [[6.0, 8.0]])
    """

    count: int
    curvature: float
    quadratic = True
    roundings = 0.0

    @property
    def shifts(self) -> int:
        """k: every column of C."""
        return self.count

    @property
    def rank(self) -> int:
        """k."""
        return self.count

    def evaluate(self, T: Array, C: Array) -> tuple[Array, Array]:
        """Values and slopes."""
        t = T + C
        return 0.5 * self.curvature * np.einsum("ij,ij->i", t, t), self.curvature * t

    def hessian(self, A: Any, T: Array, C: Array, reach: Array | None = None) -> Any:
        """κ Σ aa' (p, p), that of one output."""
        return weighted_gram(A, None) * self.curvature

    def root(self, A: Any, T: Array, C: Array) -> Array:
        """k rows a record."""
        return np.asarray(np.sqrt(self.curvature) * np.kron(np.eye(self.count), dense(A)))

    def quadratic_form(self, A: Any, C: Array, anchor: Array) -> tuple[Any, Array]:
        """κ Σ aa', and κ Σ a (Θ0'a + c)'."""
        slopes = self.curvature * (outputs(A, anchor) + C)
        return weighted_gram(A, None) * self.curvature, back(A, slopes)
