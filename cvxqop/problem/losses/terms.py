"""Recognised terms: rows of the records with a loss of one number, or of several.

A record enters as ψ(Θ'a + c), a (p,), Θ (p, k) = θ[layout]; a loss of one number is k = 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from cvxqop.errors import OptionError, ProblemError
from cvxqop.problem.bounds import Bounds
from cvxqop.problem.losses.part import Part
from cvxqop.problem.parts import Constants, RowParts
from cvxqop.problem.private.persons import Persons
from cvxqop.problem.records.clipping import ClippedRows
from cvxqop.problem.records.outputs import Outputs
from cvxqop.problem.records.pieces import LabelLeaf, Leaf
from cvxqop.problem.records.rows import Rows
from cvxqop.problem.records.shares import KeptRows

__all__ = ["Term"]

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Term:
    """Rows that one or several losses share, with what is public about them.

    Attributes
    ----------
    rows : Rows
        a_i (p,) and offsets or labels (·,) as written, before clipping.
    losses : tuple of (loss, weight)
        φ_j and its weight: a positive number, or a public array (n,) for losses of one number.
    row_parts : RowParts
        What is private and what is public about a.
    has_offset : bool
        Whether some c is not structurally zero.
    outputs : Outputs
        How Θ stands in θ.
    dimension : int
        D, the length of θ.
    persons : Persons, optional
        Whose rows are whose, where a person has several.
    sign : LabelLeaf, optional
        Labels that multiply the whole row: to be cut to ±1.
    """

    rows: Rows
    losses: tuple[tuple[Any, Any], ...]
    row_parts: RowParts
    has_offset: bool
    outputs: Outputs
    dimension: int
    persons: Persons | None = None
    sign: LabelLeaf | None = None

    cuts_slopes = False
    cuts_arguments = True
    clipped_rows: ClassVar[type[ClippedRows]] = ClippedRows

    @property
    def quadratic(self) -> bool:
        """Whether the loss is quadratic in θ."""
        return all(loss.quadratic for loss, _ in self.losses)

    @property
    def vanishing(self) -> bool:
        """Whether the gradient of a record vanishes where a'θ + c = 0."""
        return all(loss.slope_bound(0.0) == 0.0 for loss, _ in self.losses)

    @property
    def flat(self) -> Array | None:
        """None: a record may have curvature along every direction."""
        return None

    @property
    def _squares(self) -> bool:
        """Whether every loss is ½κt²."""
        zero = np.zeros(1)
        plain = all(float(loss.value(zero)[0]) == 0.0 for loss, _ in self.losses)
        return self.quadratic and self.vanishing and plain

    @property
    def squares(self) -> float | None:
        """κ where each record adds one ½κr², r in units of the target; else None."""
        (_, weight), *others = self.losses
        own = self.shares is not None or self.rows.beside.weighted or np.size(weight) != 1
        if others or own or self.row_parts.completed or not self._squares:
            return None
        return float(self.prediction_curvature)

    @property
    def prediction_curvature(self) -> float:
        """t² κ, with the public factor t around the whole argument."""
        return self.row_parts.offset_factor**2 * self._curvature

    @cached_property
    def largest(self) -> list[float]:
        """Largest weight of each loss: public, times the bound on a private one and on a class."""
        own = self.rows.beside.largest(len(self.losses))
        return [_largest(weight) * W for (_, weight), W in zip(self.losses, own, strict=True)]

    @cached_property
    def _curvature(self) -> float:
        """Σ_j κ_j max_i w_ij."""
        kappa = [float(loss.curvature) for loss, _ in self.losses]
        return sum(w * own for w, own in zip(self.largest, kappa, strict=True))

    def _slope(self, bound: float, as_written: bool = False) -> float:
        """Σ_j max_i w_ij sup |φ_j'(t)| over |t| ≤ bound."""
        name = "slope_as_written" if as_written else "slope_bound"
        found = [getattr(own, name)(bound) for own, _ in self.losses]
        return sum(w * float(own) for w, own in zip(self.largest, found, strict=True))

    @cached_property
    def support(self) -> set[int]:
        """The entries of θ that the rows are on; all of Θ where the rows do not say."""
        pieces = getattr(self.rows, "pieces", None)
        if pieces is None or self.outputs.count > 1:
            return set(self.outputs.layout.ravel().tolist())
        entries: set[int] = set()
        return entries.union(*(piece.G.indices.tolist() for piece in pieces))

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

    def smoothness(self, bounds: Bounds) -> float:
        """L = R² Σ_j κ_j w_j."""
        return self.row_norm(bounds) ** 2 * self._curvature

    def constants(
        self, bounds: Bounds, anchor: Array | None = None, offset: float | None = None
    ) -> Constants:
        """R, L and G0 from public numbers alone (theory §1, GLM form).

        Raises
        ------
        ProblemError
            If B is needed and not given.
        """
        B = self._bound(bounds, self._checked(anchor), offset)
        return Constants(
            smoothness=self.smoothness(bounds),
            anchor_gradient=self.row_norm(bounds) * self._slope(B or 0.0),
            quadratic=self.quadratic,
            row_norm=self.row_norm(bounds),
            gradient_range=1,
            one_row=self._squares or not any(self.rows.beside.weights),
            anchor_value=0.5 * self._curvature * (B or 0.0) ** 2 if self._squares else None,
        )

    def gradient_bound(
        self,
        bounds: Bounds,
        anchor: Array,
        offset: float | None,
        distance: float,
        *,
        as_written: bool = False,
    ) -> float:
        """G: the slope at arguments up to B + R ‖θ − θ0‖, times R."""
        R = self.row_norm(bounds)
        B = self.offset(bounds) if offset is None else offset
        if not self.has_offset and not np.any(anchor):
            B = 0.0
        return R * self._slope((B or 0.0) + R * distance, as_written)

    def argument_bound(
        self, bounds: Bounds, anchor: Array, offset: float | None, distance: float
    ) -> float:
        """A bound on |a'θ + c| within ``distance`` of the anchor.

        Raises
        ------
        ProblemError
            If B is needed and not given.
        """
        B = self._bound(bounds, self._checked(anchor), offset) or 0.0
        return B + self.row_norm(bounds) * distance

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
            As in `constants`; no anchor is the origin.
        nonfinite : {"raise", "zero"}
            What becomes of a record with NaN or infinity.
        """
        theta = self._checked(anchor)
        B = self._bound(bounds, theta, offset)
        rows: Any = self.rows if self.sign is None else self.rows.with_label(self.sign)
        if self.persons is not None and self.persons.weights is None:
            rows = KeptRows(rows, self.persons.shares)
        return self.clipped_rows(rows, self.row_norm(bounds), self._point(theta), B, nonfinite)

    def part(self, rows: ClippedRows, clip: float | None) -> Part:
        """Clipped rows with their loss as the solver sees it."""
        raise NotImplementedError

    def linear(self, rows: ClippedRows, clip: float | None) -> Array:
        """Gradient (D,) of what is linear in θ beside `part`, from the records as they are now."""
        return np.zeros(self.dimension)

    @property
    def shares(self) -> Leaf | None:
        """Private weights 1/m (n, 1), where the rows of a person are averaged."""
        return None if self.persons is None else self.persons.weights

    def _point(self, theta: Array) -> Array:
        """Θ0 in the form that clipping takes."""
        return self.outputs.matrix(theta)

    def _checked(self, anchor: Array | None) -> Array:
        theta = np.zeros(self.dimension) if anchor is None else np.asarray(anchor, dtype=np.float64)
        if theta.shape != (self.dimension,):
            raise OptionError(
                f"The anchor has shape {theta.shape}; the stacked variables have shape "
                f"({self.dimension},)."
            )
        if not np.all(np.isfinite(theta)):
            raise OptionError("The anchor must be finite.")
        return theta

    def _bound(self, bounds: Bounds, anchor: Array, offset: float | None) -> float | None:
        """B; None where a'θ0 + c is structurally zero."""
        B = self.offset(bounds) if offset is None else float(offset)
        moved = bool(np.any(anchor))
        if B is None and (self.has_offset or moved):
            why = "the loss has an offset" if self.has_offset else "the anchor is not zero"
            raise ProblemError(
                f"Bounds(offset=…) is missing: {why}, so a bound on |a'θ0 + c|, the argument of "
                "the loss at the anchor (with a zero anchor: on the target), is needed. State a "
                "public bound; records beyond it are clipped."
            )
        return B if self.has_offset or moved else None

    def promise(self, offset: float | None, moved: bool) -> str:
        """What clipping does to an offset, in words."""
        return f", and |a'θ0 + c| ≤ {offset:g} at the anchor" if self.has_offset or moved else ""

    @property
    def enforced(self) -> tuple[str, ...]:
        """What is enforced of labels and weights, in words."""
        cut = self.sign or any(leaf.is_label for leaf in self.rows.leaves)
        return (*([", and its label to [−1, 1]"] if cut else []), *self.rows.beside.enforced)


def _largest(weight: Any) -> float:
    return float(np.max(weight, initial=0.0)) if np.ndim(weight) else float(weight)
