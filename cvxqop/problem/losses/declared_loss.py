"""A private loss that is known by declared constants, its values and its gradients."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import cvxpy as cp
import numpy as np
import numpy.typing as npt

from cvxqop import _cvxpy
from cvxqop.errors import ProblemError
from cvxqop.problem.bounds import Bounds
from cvxqop.problem.losses.declared import Declared
from cvxqop.problem.parts import Constants

__all__ = ["DeclaredLoss"]

Array = npt.NDArray[np.float64]
Function = Callable[[Array], tuple[float, Array] | None]


@dataclass(frozen=True, eq=False)
class DeclaredLoss:
    """Σ_i ℓ(θ; z_i) with declared constants; see `cvxqop.problem.losses.contract.PrivateTerms`.

    Attributes
    ----------
    n : int
        Number of records.
    declared : Declared
        The constants of ℓ. They are believed: nothing is clipped.
    expression : Expression
        Σ_i ℓ(θ; z_i), as it was written.
    variables : sequence of Variable
        θ, stacked in this order.
    leaves : tuple
        The constants and parameters that hold records.
    """

    n: int
    declared: Declared
    expression: Any = field(repr=False)
    variables: Sequence[cp.Variable]
    leaves: tuple[Any, ...] = field(repr=False)

    clipped = False
    vanishing = True
    cuts_slopes = cuts_arguments = one_residual = False
    records_are_drawn = False
    has_offset = linear = False
    flat = squares = None
    prediction_curvature = None

    @property
    def dimension(self) -> int:
        """D."""
        return sum(variable.size for variable in self.variables)

    @property
    def quadratic(self) -> bool:
        """Whether the loss was declared to be quadratic in θ, which was checked."""
        return self.declared.quadratic

    def row_norm(self, bounds: Bounds) -> float:
        """Infinite: nothing is known of rows."""
        return math.inf

    def features_alone(self, bounds: Bounds) -> float | None:
        """None: there are no bounds."""
        return None

    def offset(self, bounds: Bounds) -> float | None:
        """None: no argument is bounded."""
        return None

    def smoothness(self, bounds: Bounds) -> float:
        """L as declared."""
        return self.declared.smoothness

    def constants(self, bounds: Bounds, anchor: Array, offset: float | None) -> Constants:
        """The declared constants in the form that every mechanism takes.

        Rank one means that every Hessian of a record has one and the same direction. A declared
        rank of one says less, unless the loss is quadratic, or θ is a number; it counts as two
        with the trace of one: Theorem 6 takes T, not ρ. Theorem 9 also needs gradients of one
        direction.
        """
        declared, d = self.declared, self.dimension
        rank, trace = declared.rank(d), declared.trace_bound(d)
        return Constants(
            smoothness=min(declared.smoothness, trace),
            anchor_gradient=declared.anchor_bound,
            quadratic=declared.quadratic,
            hessian_rank=rank if declared.quadratic or d == 1 else max(rank, 2),
            linear_rank=rank if d == 1 else max(rank, 2),
            trace=trace,
            frobenius=min(math.sqrt(rank) * declared.smoothness, trace),
        )

    def gradient_bound(
        self,
        bounds: Bounds,
        anchor: Array,
        offset: float | None,
        distance: float,
        *,
        as_written: bool = False,
    ) -> float | None:
        """G as declared."""
        return self.declared.gradient

    def natural_radius(self, bounds: Bounds, anchor: Array, offset: float | None) -> float:
        """G0/L, which is B/R for squared losses."""
        return self.declared.anchor_bound / self.declared.smoothness or 1.0

    def sums(
        self,
        bounds: Bounds,
        anchor: Array,
        offset: float | None,
        nonfinite: str,
        clip: float | None,
        shared: bool,
    ) -> _Sums:
        """Values and gradients."""
        return _Sums(self, anchor)

    def promise(self, constants: Constants, bounds: Bounds, anchored: bool, cut: str | None) -> str:
        """What is believed."""
        return (
            "The loss ℓ of one record is its part of the private terms of the objective. Bounds "
            f"on it were declared by the user: {', '.join(self.declared.lines(self.dimension))}. "
            "That they hold for every record that could occur, at every θ of the constraint set "
            "and between it and the anchor, is believed: no record is clipped."
        )

    def function(self) -> Function:
        """θ ↦ (Σ_i ℓ(θ; z_i), its gradient), None where an atom has no derivative.

        Nothing is written into the user's variables.
        """
        tape = _cvxpy.Tape(self.expression)

        def evaluate(theta: Array) -> tuple[float, Array] | None:
            parts = np.split(theta, np.cumsum([v.size for v in self.variables])[:-1])
            values = {
                v.id: part.reshape(v.shape, order="F")
                for v, part in zip(self.variables, parts, strict=True)
            }
            try:
                found = tape(values)
            except (ArithmeticError, ValueError, np.linalg.LinAlgError):
                return None  # what CVXPY says may hold numbers, and depends on them
            if found is None:
                return None
            value, gradient = found
            flat = [
                np.asarray(gradient.get(v.id, np.zeros(v.shape))).reshape(-1, order="F")
                for v in self.variables
            ]
            return value, np.concatenate(flat)

        return evaluate

    def check_finite(self) -> None:
        """Raise if an entry of a private array is NaN or infinite.

        Raises
        ------
        ProblemError
            Names neither the entry nor its position.
        """
        for leaf in self.leaves:
            value = _cvxpy.leaf_value(leaf)
            entries = value.data if _cvxpy.is_sparse(value) else np.asarray(value)
            if not np.all(np.isfinite(entries)):
                raise ProblemError(
                    "A private array holds NaN or infinity. Remove or repair these records; "
                    'nonfinite="zero" works for recognised losses only.'
                )


@dataclass(frozen=True, eq=False)
class _Sums:
    """Sums over the records of a `DeclaredLoss`, from its values and gradients."""

    loss: DeclaredLoss
    anchor: Array

    def check(self) -> None:
        """Entries are finite, and every atom has a derivative that CVXPY knows; where it is defined
        depends on the data, and is no matter.

        Raises
        ------
        ProblemError
            If CVXPY does not know the derivative of an atom of the loss.
        """
        self.loss.check_finite()
        known = True
        try:
            self.loss.function()(self.anchor)
        except NotImplementedError:
            known = False
        if not known:
            raise ProblemError(
                "The declared loss holds an atom whose derivative CVXPY does not know, so that no "
                "answer can be certified. Write the loss with other atoms."
            )

    def quadratic_form(self) -> tuple[Array, Array]:
        """Hessian and gradient at the anchor of a quadratic loss, from D + 1 gradients.

        Each difference spans G0/L at least, so that the gradients that cancel in it are no larger
        than the curvature that is left, and its rounding stays far below the noise.

        Raises
        ------
        ProblemError
            If they are not finite.
        """
        self.loss.check_finite()
        D, declared, g = self.loss.dimension, self.loss.declared, self.gradient()
        size = declared.anchor_bound / declared.smoothness
        step = min(max(1.0, float(np.linalg.norm(self.anchor)), size), 1e50)
        H = np.zeros((D, D))
        for j in range(D):
            moved = self.anchor.copy()
            moved[j] += step
            H[:, j] = (self._gradient(moved) - g) / step
        if not (np.all(np.isfinite(H)) and np.all(np.isfinite(g))):
            raise ProblemError("The declared loss is not finite: records beyond any bound.")
        return 0.5 * (H + H.T), g

    def gradient(self) -> Array:
        """The gradient at the anchor."""
        return self._gradient(self.anchor)

    def value(self) -> float:
        """The value at the anchor."""
        found = self.loss.function()(self.anchor)
        return np.nan if found is None else float(found[0])

    def _gradient(self, theta: Array) -> Array:
        found = self.loss.function()(theta)
        return np.full(self.loss.dimension, np.nan) if found is None else found[1]

    def whole(self, S: Array) -> Array:
        """S itself."""
        return S

    def cut_gradients(self, theta: Array, cuts: Array, edges: Array) -> tuple[Array, Array]:
        """Not of a declared loss: how it is made of records is not known."""
        raise NotImplementedError

    def columns(self, gradient: Array) -> Array:
        """The gradient itself."""
        return gradient

    stacked = columns

    def smooth(self, finite_sum: Any, function: Any) -> Callable[[Array, Array], Any]:
        """A function of which no more is known than its values and gradients."""
        loss, declared, D = self.loss, self.loss.declared, self.loss.dimension
        evaluate = loss.function()
        return lambda S, a: function(
            evaluate,
            S,
            a,
            self.anchor,
            summands=loss.n,
            smoothness=declared.smoothness,
            slope=declared.anchor_bound,
            curvature=max(loss.n, 1) * declared.trace_bound(D) / D,
        )
