"""Recognised terms of one number a record: φ(a'θ + c), with labels and weights."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cvxqop.problem.losses.cut_loss import CutLoss, linear_term
from cvxqop.problem.losses.margins import LossSum
from cvxqop.problem.losses.part import Part
from cvxqop.problem.losses.terms import Term
from cvxqop.problem.records.clipping import ClippedRows
from cvxqop.problem.records.cut_rows import CutRows

__all__ = ["MarginTerm"]

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class MarginTerm(Term):
    """φ_j(a'θ + c_j): losses of one number that share a row, with weights and labels."""

    cuts_slopes = True

    @property
    def vanishing(self) -> bool:
        """As in `Term`; labels move the minimiser of each record."""
        return self.rows.beside.labels is None and super().vanishing

    def _slope(self, bound: float, as_written: bool = False) -> float:
        """As in `Term`, and what labels add that are no part of a logistic loss."""
        return super()._slope(bound, as_written) + self.rows.beside.slope

    @property
    def _weighted(self) -> bool:
        return self.rows.beside.weighted or any(np.ndim(weight) for _, weight in self.losses)

    def _point(self, theta: Array) -> Array:
        return theta

    def _alike(self, clip: float | None) -> bool:
        """Whether records have the same loss; else it reads its numbers from the record."""
        return clip is None and not self._weighted and self.shares is None

    def linear(self, rows: ClippedRows, clip: float | None) -> Array:
        """Labels, where they are not among the numbers that the loss reads."""
        return linear_term(rows) if self._alike(clip) else super().linear(rows, clip)

    def part(self, rows: ClippedRows, clip: float | None) -> Part:
        """Σ_j φ_j; where weights or a cut make records differ, one loss with their numbers."""
        layout = self.outputs.layout
        if self._alike(clip):
            losses = [loss.times(float(weight)) for loss, weight in self.losses]
            return Part(rows, LossSum(losses), layout, self.dimension)
        cut = CutRows(rows, [weight for _, weight in self.losses], clip, self.shares)
        loss = CutLoss(tuple(loss for loss, _ in self.losses), self._curvature)
        return Part(cut, loss, layout, self.dimension)
