"""Recognised terms with several outputs a record: squares, multinomial, and of a length."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from cvxqop.errors import OptionError
from cvxqop.problem.bounds import Bounds
from cvxqop.problem.losses.multinomial import Softmax, WeightedSoftmax
from cvxqop.problem.losses.part import Part
from cvxqop.problem.losses.radial import RadialSum
from cvxqop.problem.losses.squares import Squares
from cvxqop.problem.losses.terms import Term
from cvxqop.problem.parts import Constants
from cvxqop.problem.records.beside import class_text
from cvxqop.problem.records.clipping import ClippedRows
from cvxqop.problem.records.output_clipping import ClippedLabels, ClippedOutputs
from cvxqop.problem.records.shares import SharedRows, WeightedRows

__all__ = ["LabelledTerm", "RadialTerm", "SquaresTerm"]

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SquaresTerm(Term):
    """½κw ‖Θ'a + c‖²: a squared loss with k outputs, whose Hessian is the same in each."""

    clipped_rows = ClippedOutputs

    def constants(
        self, bounds: Bounds, anchor: Array | None = None, offset: float | None = None
    ) -> Constants:
        """As in `Term`, with k outputs."""
        plain = super().constants(bounds, anchor, offset)
        return replace(plain, outputs=self.outputs.count, gradient_range=None)

    def part(self, rows: ClippedRows, clip: float | None) -> Part:
        """κw times the square."""
        loss = Squares(self.outputs.count, self._curvature)
        records = rows if self.shares is None else SharedRows(rows, self.shares)
        return Part(records, loss, self.outputs.layout, self.dimension)

    def promise(self, offset: float | None, moved: bool) -> str:
        """The vector of arguments is cut in its norm."""
        return norm_promise(offset) if self.has_offset or moved else ""


@dataclass(frozen=True, eq=False)
class BentTerm(Term):
    """w ψ(Θ'a + c), ψ a function of k numbers whose Hessian M has constants of its own."""

    def constants(
        self, bounds: Bounds, anchor: Array | None = None, offset: float | None = None
    ) -> Constants:
        """Rank, trace and Frobenius norm of M ⊗ aa'."""
        loss, R = self.losses[0][0], self.row_norm(bounds)
        scale = R * R * self.largest[0]
        return Constants(
            smoothness=scale * loss.curvature,
            anchor_gradient=R
            * self._slope(self._bound(bounds, self._checked(anchor), offset) or 0.0),
            quadratic=False,
            row_norm=R,
            hessian_rank=loss.hessian_rank,
            hessian_range=loss.hessian_rank,  # vectors u ⊗ a
            gradient_range=loss.hessian_rank,
            trace=scale * loss.trace,
            frobenius=scale * loss.frobenius,
        )


@dataclass(frozen=True, eq=False)
class LabelledTerm(BentTerm):
    """w (log Σ exp t − y't), t = Θ'a: the multinomial logistic loss.

    ``classes`` are public weights of the k classes, or none.
    """

    classes: tuple[float, ...] = ()

    clipped_rows = ClippedLabels
    cuts_arguments = False

    @property
    def vanishing(self) -> bool:
        """False: p − y is never zero."""
        return False

    @property
    def flat(self) -> Array:
        """One number added to a row of Θ, which no softmax of Θ'a sees."""
        return self.outputs.shifts(self.dimension)

    def part(self, rows: ClippedRows, clip: float | None) -> Part:
        """Softmax with its labels."""
        count, weight = self.outputs.count, self.largest[0]
        part = Part(rows, Softmax(count, weight), self.outputs.layout, self.dimension)
        if self.shares is None and not self.classes:
            return part
        most = max(self.classes, default=1.0)
        records = WeightedRows(rows, self.shares, tuple(own / most for own in self.classes))
        return replace(part, records=records, loss=WeightedSoftmax(count, weight))

    @cached_property
    def largest(self) -> list[float]:
        """As in `Term`, times the largest weight of a class."""
        return [float(self.losses[0][1]) * max(self.classes, default=1.0)]

    @property
    def enforced(self) -> tuple[str, ...]:
        """What the loss of a record is multiplied with."""
        return (class_text(tuple(enumerate(self.classes))),) if self.classes else ()

    def _bound(self, bounds: Bounds, anchor: Array, offset: float | None) -> float | None:
        """Infinity: the slope is bounded, and no argument is cut."""
        return math.inf if np.any(anchor) else None

    def promise(self, offset: float | None, moved: bool) -> str:
        """Labels become probability vectors."""
        return ", and its labels to the nearest probability vector"


@dataclass(frozen=True, eq=False)
class RadialTerm(BentTerm):
    """w φ(‖Θ'a + c‖)."""

    clipped_rows = ClippedOutputs

    def part(self, rows: ClippedRows, clip: float | None) -> Part:
        """φ of the length."""
        if self.shares is not None:
            raise OptionError(
                "rows_per_person='mean' does not take a loss of the length of several outputs: "
                "state a number of rows, such as rows_per_person=5."
            )
        summed = RadialSum(self.outputs.count, self.losses[0][0].loss, self.largest[0])
        return Part(rows, summed, self.outputs.layout, self.dimension)

    def promise(self, offset: float | None, moved: bool) -> str:
        """The vector of arguments is cut in its norm."""
        return norm_promise(offset) if self.has_offset or moved else ""


def norm_promise(offset: float | None) -> str:
    """What is enforced of several arguments."""
    return f", and ‖Θ0'a + c‖ ≤ {offset:g} at the anchor"
