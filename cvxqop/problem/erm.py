"""A private problem as data: losses over rows, a public regulariser, public constraints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import cvxpy as cp
import numpy as np
import numpy.typing as npt

from cvxqop.errors import OptionError, ProblemError
from cvxqop.problem.bounds import Bounds
from cvxqop.problem.losses.multinomial import Multinomial
from cvxqop.problem.losses.scalar import ScalarLoss
from cvxqop.problem.parts import Constants, RowParts, Texts
from cvxqop.problem.records.clipping import ClippedRows
from cvxqop.problem.records.output_clipping import ClippedLabels, ClippedOutputs
from cvxqop.problem.records.outputs import Outputs
from cvxqop.problem.records.rows import Rows

__all__ = ["ERM", "Constants", "RowParts", "Texts"]

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ERM:
    """J(θ) = Σ_j Σ_i w_ij φ_j(a_i'θ + c_ij) + r(θ) over C, with private rows and public r, C.

    Attributes
    ----------
    variables : tuple of Variable
        θ: the variables of the loss in order of appearance, each flattened column by column.
    rows : Rows
        The rows a_i (D,) and offsets c_i (J,) as written, before clipping.
    losses : tuple of (ScalarLoss, weight)
        φ_j and its weight: a positive number or a public array (n,).
    regulariser : Expression or None
        r: the public rest of the objective.
    constraints : list of Constraint
        C.
    private_names : tuple of str
        One description a private array.
    public_data : tuple of str
        Descriptions of public arrays with one row a record.
    mean : bool
        Whether a weight holds the factor 1/n.
    adjacency : str
        What the problem was read for: "replace_one" or "add_remove".
    row_parts : RowParts
        What is private and what is public about a.
    has_offset : bool
        Whether some c_j is not structurally zero.
    texts : Texts
        The problem in words.
    outputs : Outputs, optional
        Where a record has several outputs, φ(Θ'a_i + c_i): how Θ stands in θ. There is one loss
        then, the rows are those of a, and J is the number of outputs.
    private_leaves : tuple
        The constants and parameters that hold records.
    private_arrays : tuple
        The arrays that were listed as private or given to a `glm_loss`.
    """

    variables: tuple[cp.Variable, ...]
    rows: Rows
    losses: tuple[tuple[ScalarLoss | Multinomial, float | Array], ...]
    regulariser: cp.Expression | None
    constraints: list[Any]
    private_names: tuple[str, ...]
    public_data: tuple[str, ...]
    mean: bool
    adjacency: str
    row_parts: RowParts
    has_offset: bool
    texts: Texts
    outputs: Outputs | None = None
    private_leaves: tuple[Any, ...] = ()
    private_arrays: tuple[Any, ...] = ()

    @property
    def dimension(self) -> int:
        """D, the length of θ."""
        return sum(variable.size for variable in self.variables)

    @property
    def quadratic(self) -> bool:
        """Whether the loss is quadratic in θ."""
        return all(loss.quadratic for loss, _ in self.losses)

    @property
    def labelled(self) -> bool:
        """Whether the loss has a linear part Σ_i q_i (a_i'θ + c_i) beside the φ_j.

        Its gradient is ``clipped(…).linear_term()``, which whoever minimises must add.
        """
        return self.rows.labels is not None

    @property
    def terms(self) -> tuple[str, ...]:
        """The loss terms as they were written, one a loss."""
        return self.texts.terms

    @property
    def scale_statement(self) -> str | None:
        """What has to be assumed of numbers that multiply the loss: under add_remove, where n is
        private, none of them may be computed from it. None where there is nothing to assume."""
        return self.texts.scale

    def row_norm(self, bounds: Bounds) -> float:
        """R = sqrt((s row_norm)² + ‖public part‖²), in units of a, with the public factor s of the
        private part; their sum where both parts of the row meet on the same entries of θ."""
        parts = self.row_parts
        own = parts.factor * bounds.row_norm if parts.private else 0.0
        if parts.overlap:
            return own + parts.public_norm
        return float(np.hypot(own, parts.public_norm))

    def offset(self, bounds: Bounds) -> float | None:
        """B, the bound on |a'θ0 + c| that ``bounds.offset`` makes: t offset, with the public
        factor t around the whole argument of the loss."""
        return None if bounds.offset is None else self.row_parts.offset_factor * bounds.offset

    def constants(
        self, bounds: Bounds, anchor: Array | None = None, offset: float | None = None
    ) -> Constants:
        """R, L and G0 from public numbers alone (theory §1, GLM form).

        Parameters
        ----------
        bounds : Bounds
            Bounds on a record.
        anchor : (D,) array, optional
            θ0 (zeros).
        offset : float, optional
            B, in place of the one that ``bounds.offset`` makes.

        Raises
        ------
        ProblemError
            If B is needed and not given.
        """
        R = self.row_norm(bounds)
        B = self._offset(bounds, anchor, offset)
        smoothness = slope = 0.0
        for loss, weight in self.losses:
            largest = float(np.max(weight, initial=0.0)) if np.ndim(weight) else float(weight)
            smoothness += largest * loss.curvature
            slope += largest * loss.slope_bound(B or 0.0)
        plain = Constants(R, R * R * smoothness, R * slope, self.quadratic)
        if self.outputs is None:
            return plain
        loss, weight = self.losses[0]
        if not isinstance(loss, Multinomial):
            return replace(plain, outputs=self.outputs.count)
        scale = R * R * float(np.max(weight))
        return replace(
            plain,
            hessian_rank=loss.hessian_rank,
            hessian_range=loss.hessian_rank,  # the vectors u ⊗ a with Σ u = 0
            trace=scale * loss.trace,
            frobenius=scale * loss.frobenius,
        )

    def clipped(
        self,
        bounds: Bounds,
        anchor: Array | None = None,
        nonfinite: str = "raise",
        offset: float | None = None,
    ) -> ClippedRows:
        """The rows with every record clipped to the bounds.

        Parameters
        ----------
        bounds, anchor, offset
            As in `constants`.
        nonfinite : {"raise", "zero"}
            What becomes of a record with NaN or infinity.
        """
        B = self._offset(bounds, anchor, offset)
        theta = self._anchor(anchor)
        if self.outputs is None:
            return ClippedRows(self.rows, self.row_norm(bounds), theta, B, nonfinite)
        kind = ClippedLabels if self.outputs.labelled else ClippedOutputs
        matrix = None if theta is None else self.outputs.matrix(theta)
        return kind(self.rows, self.row_norm(bounds), matrix, B, nonfinite)

    def stack(self, values: Mapping[cp.Variable, npt.ArrayLike]) -> Array:
        """θ from one value a variable.

        Raises
        ------
        OptionError
            If a variable has no value, or one of another shape.
        """
        by_id = {variable.id: value for variable, value in values.items()}
        parts = []
        for variable in self.variables:
            if variable.id not in by_id:
                raise OptionError(f"No value was given for the variable {variable.name()}.")
            value = np.asarray(by_id[variable.id], dtype=np.float64)
            if value.shape != variable.shape:
                raise OptionError(
                    f"The value for the variable {variable.name()} has shape {value.shape}; "
                    f"the variable has shape {variable.shape}."
                )
            parts.append(value.reshape(-1, order="F"))
        return np.concatenate(parts)

    def unstack(self, theta: Array) -> dict[cp.Variable, Array]:
        """One value a variable from θ, in the variables' shapes."""
        values: dict[cp.Variable, Array] = {}
        start = 0
        for variable in self.variables:
            part = theta[start : start + variable.size]
            values[variable] = part.reshape(variable.shape, order="F").copy()
            start += variable.size
        return values

    def _anchor(self, anchor: Array | None) -> Array | None:
        if anchor is None:
            return None
        theta = np.asarray(anchor, dtype=np.float64)
        if theta.shape != (self.dimension,):
            raise OptionError(
                f"The anchor has shape {theta.shape}; the stacked variables have shape "
                f"({self.dimension},)."
            )
        if not np.all(np.isfinite(theta)):
            raise OptionError("The anchor must be finite.")
        return theta

    def _offset(self, bounds: Bounds, anchor: Array | None, offset: float | None) -> float | None:
        """B; None where a'θ0 + c is structurally zero."""
        B = self.offset(bounds) if offset is None else float(offset)
        theta = self._anchor(anchor)
        moved = theta is not None and bool(np.any(theta))
        if self.outputs is not None and self.outputs.labelled:
            return np.inf if moved else None  # the slope is bounded, no argument is cut
        if B is None and (self.has_offset or moved):
            why = "the loss has an offset" if self.has_offset else "the anchor is not zero"
            raise ProblemError(
                f"Bounds(offset=…) is missing: {why}, so a bound on |a'θ0 + c|, the argument of "
                "the loss at the anchor (with a zero anchor: on the target), is needed. State a "
                "public bound; records beyond it are clipped."
            )
        return B if self.has_offset or moved else None
