"""Losses of one number a record, its margin t = a'θ: a sum of φ_j, or one as a whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from cvxqop._blocks import back, is_sparse, outputs, scale_rows, weighted_gram

__all__ = ["LossSum", "Margin"]

Array = npt.NDArray[np.float64]


class _Scalar(Protocol):
    @property
    def shifts(self) -> int: ...
    def values(self, margin: Array, C: Array) -> tuple[Array, Array]: ...
    def second_derivative(self, margin: Array, C: Array, reach: Array | None = None) -> Array: ...


class Margin:
    """What losses of one number have in common; see `cvxqop.solve.smooth.record_loss.RecordLoss`.

    A subclass has ``values``, ℓ and ℓ' at margins (b,), and ``second_derivative``.
    """

    rank = 1
    roundings = 0.0

    def evaluate(self: _Scalar, T: Array, C: Array) -> tuple[Array, Array]:
        """ℓ (b,) and ℓ' (b, 1)."""
        value, slope = self.values(T[:, 0], C)
        return value, slope[:, None]

    def hessian(self: _Scalar, A: Any, T: Array, C: Array, reach: Array | None = None) -> Any:
        """Σ ℓ'' aa'."""
        return weighted_gram(A, self.second_derivative(T[:, 0], C, reach))

    def root(self: _Scalar, A: Any, T: Array, C: Array) -> Any:
        """One row a record, sparse where A is."""
        weights = np.sqrt(self.second_derivative(T[:, 0], C))
        return scale_rows(A, weights) if is_sparse(A) else A * weights[:, None]


@dataclass(frozen=True, eq=False)
class LossSum(Margin):
    """ℓ(t) = Σ_j φ_j(t + c_j), c the row of C.

    Examples
    --------
    >>> import numpy as np
    >>> from cvxqop.problem.losses.scalar import squared
    >>> LossSum([squared]).values(np.array([1.0]), np.array([[0.5]]))[1].tolist()
    [3.0]
    """

    losses: Sequence[Any]

    @property
    def shifts(self) -> int:
        """One a loss: every column of C."""
        return len(self.losses)

    @property
    def curvature(self) -> float:
        """Σ_j κ_j."""
        return float(sum(loss.curvature for loss in self.losses))

    @property
    def quadratic(self) -> bool:
        """Whether every φ'' is constant."""
        return all(bool(loss.quadratic) for loss in self.losses)

    def values(self, margin: Array, C: Array) -> tuple[Array, Array]:
        """ℓ and ℓ'."""
        value, slope = np.zeros(len(margin)), np.zeros(len(margin))
        for j, loss in enumerate(self.losses):
            t = margin + C[:, j]
            value += loss.value(t)
            slope += loss.derivative(t)
        return value, slope

    def second_derivative(self, margin: Array, C: Array, reach: Array | None = None) -> Array:
        """Σ_j φ_j''; with ``reach``, its least value while each margin moves by at most that."""
        total = np.zeros(len(margin))
        for j, loss in enumerate(self.losses):
            t = margin + C[:, j]
            if reach is None:
                total += loss.second_derivative(t)
            else:
                total += loss.least_curvature(t - reach, t + reach)
        return total

    def quadratic_form(self, A: Any, C: Array, anchor: Array) -> tuple[Any, Array]:
        """Σ_i (Σ_j κ_j) a_i a_i', and Σ_i a_i Σ_j φ_j'(a_i'θ0 + c_ij)."""
        slopes = self.evaluate(outputs(A, anchor), C)[1]
        return weighted_gram(A, None) * self.curvature, back(A, slopes)
