"""The loss of one record as a function of its margin a'θ; by default a sum of scalar losses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

__all__ = ["LossSum", "RecordLoss"]

Array = npt.NDArray[np.float64]


class RecordLoss(Protocol):
    """A convex ℓ(t) for each record; row i of C holds the numbers that it depends on."""

    @property
    def offsets(self) -> int:
        """J, the number of leading columns of C that are added to the margin."""

    @property
    def curvature(self) -> float:
        """κ ≥ ℓ'' over all records."""

    @property
    def quadratic(self) -> bool:
        """Whether every ℓ'' is constant."""

    def evaluate(self, margin: Array, C: Array) -> tuple[Array, Array]:
        """ℓ, up to a constant of the record, and ℓ'; one number a record each."""

    def slope(self, margin: Array, C: Array) -> Array:
        """ℓ'."""

    def second_derivative(self, margin: Array, C: Array, reach: Array | None = None) -> Array:
        """ℓ''; with ``reach``, a lower bound on it while each margin moves by at most that."""


@dataclass(frozen=True, eq=False)
class LossSum:
    """ℓ(t) = Σ_j φ_j(t + c_j), c the row of C.

    Examples
    --------
    >>> import numpy as np
    >>> from cvxqop.problem.losses.scalar import squared
    >>> LossSum([squared]).slope(np.array([1.0]), np.array([[0.5]])).tolist()
    [3.0]
    """

    losses: Sequence[Any]

    @property
    def offsets(self) -> int:
        """One a loss: every column of C."""
        return len(self.losses)

    @property
    def curvature(self) -> float:
        """Σ_j κ_j."""
        return float(sum(loss.curvature for loss in self.losses))

    @property
    def quadratic(self) -> bool:
        """Whether every φ'' is constant."""
        return all(bool(getattr(loss, "quadratic", False)) for loss in self.losses)

    def evaluate(self, margin: Array, C: Array) -> tuple[Array, Array]:
        """Values and slopes."""
        value, slope = np.zeros(len(margin)), np.zeros(len(margin))
        for j, loss in enumerate(self.losses):
            t = margin + C[:, j]
            value += loss.value(t)
            slope += loss.derivative(t)
        return value, slope

    def slope(self, margin: Array, C: Array) -> Array:
        """Σ_j φ_j'."""
        slope = np.zeros(len(margin))
        for j, loss in enumerate(self.losses):
            slope += loss.derivative(margin + C[:, j])
        return slope

    def second_derivative(self, margin: Array, C: Array, reach: Array | None = None) -> Array:
        """Σ_j φ_j''; with ``reach``, its least value while each margin moves by at most that."""
        total = np.zeros(len(margin))
        for j, loss in enumerate(self.losses):
            t = margin + C[:, j]
            if reach is None or getattr(loss, "quadratic", False):
                total += loss.second_derivative(t)
            else:
                # φ'' is unimodal, so its minimum over an interval is at an end.
                low, high = loss.second_derivative(t - reach), loss.second_derivative(t + reach)
                total += np.minimum(low, high)
        return total
