"""A private problem whose loss is known by declared constants, its values and its gradients."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from cvxqop import _cvxpy
from cvxqop.errors import ProblemError
from cvxqop.problem.erm import ERM
from cvxqop.problem.losses.declared import Declared

__all__ = ["DeclaredERM"]

Array = npt.NDArray[np.float64]
Function = Callable[[Array], tuple[float, Array] | None]


@dataclass(frozen=True, eq=False)
class DeclaredERM(ERM):
    """J(θ) = Σ_i ℓ(θ; z_i) + r(θ) over C with an ℓ that is known by its declared constants.

    The rows of the base class are empty: only their number is there. Nothing is clipped.

    Attributes
    ----------
    declared : Declared
        The constants of ℓ.
    term : Expression
        Σ_i ℓ(θ; z_i), as it was written.
    """

    declared: Declared = field(kw_only=True)
    term: Any = field(kw_only=True, repr=False)

    @property
    def quadratic(self) -> bool:
        """Whether the loss was declared to be quadratic in θ, which was checked."""
        return self.declared.quadratic

    def function(self) -> Function:
        """θ ↦ (Σ_i ℓ(θ; z_i), its gradient), None where an atom has no derivative.

        Nothing is written into the user's variables.
        """
        tape = _cvxpy.Tape(self.term)

        def evaluate(theta: Array) -> tuple[float, Array] | None:
            values = {v.id: part for v, part in self.unstack(theta).items()}
            try:
                found = tape(values)
            except (ArithmeticError, ValueError, np.linalg.LinAlgError):
                return None  # what CVXPY says may hold numbers, and depends on them
            if found is None:
                return None
            value, gradient = found
            parts = [
                np.asarray(gradient.get(v.id, np.zeros(v.shape))).reshape(-1, order="F")
                for v in self.variables
            ]
            return value, np.concatenate(parts)

        return evaluate

    def quadratic_form(self, anchor: Array) -> tuple[Array, Array]:
        """Hessian and gradient at the anchor of a quadratic loss, from D + 1 gradients.

        Each difference spans G0/L at least, so that the gradients that cancel in it are no larger
        than the curvature that is left, and its rounding stays far below the noise.

        Raises
        ------
        ProblemError
            If they are not finite.
        """
        function, D = self.function(), self.dimension

        def gradient(theta: Array) -> Array:
            found = function(theta)
            return np.full(D, np.nan) if found is None else found[1]

        g = gradient(anchor)
        size = self.declared.anchor_bound / self.declared.smoothness
        step = min(max(1.0, float(np.linalg.norm(anchor)), size), 1e50)
        H = np.zeros((D, D))
        for j in range(D):
            moved = anchor.copy()
            moved[j] += step
            H[:, j] = (gradient(moved) - g) / step
        if not (np.all(np.isfinite(H)) and np.all(np.isfinite(g))):
            raise ProblemError("The declared loss is not finite: records beyond any bound.")
        return 0.5 * (H + H.T), g

    def check_finite(self) -> None:
        """Raise if an entry of a private array is NaN or infinite.

        Raises
        ------
        ProblemError
            Names neither the entry nor its position.
        """
        for leaf in self.private_leaves:
            value = _cvxpy.leaf_value(leaf)
            entries = value.data if _cvxpy.is_sparse(value) else np.asarray(value)
            if not np.all(np.isfinite(entries)):
                raise ProblemError(
                    "A private array holds NaN or infinity. Remove or repair these records; "
                    'nonfinite="zero" works for recognised losses only.'
                )
