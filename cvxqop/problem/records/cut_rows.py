"""Clipped rows with all the numbers that weights, labels and a clipped gradient need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from cvxqop._blocks import row_squares
from cvxqop.problem.records.clipping import ClippedRows
from cvxqop.problem.records.pieces import Leaf
from cvxqop.problem.records.shares import Wrapped

__all__ = ["UNSEEN", "CutRows"]

Array = npt.NDArray[np.float64]

_EPS = float(np.finfo(np.float64).eps)
UNSEEN = 1e-150
"""A row of this norm may vanish when it is squared."""


class CutRows(Wrapped):
    """Clipped rows whose offsets are followed by w (J), q and s: all that a `CutLoss` needs.

    Parameters
    ----------
    rows : ClippedRows
        The records.
    weights : sequence of J numbers or arrays (n,)
        Public weights w_j ≥ 0 of the losses; the rows know the private ones.
    clip : float or None
        ζ, the largest norm of the gradient of a record; None leaves gradients alone (s = ∞).
    shares : Leaf, optional
        (n, 1): what all numbers of a record are multiplied with, after the cut.
    """

    _rows: ClippedRows

    def __init__(
        self,
        rows: ClippedRows,
        weights: Sequence[float | Array],
        clip: float | None = None,
        shares: Leaf | None = None,
    ) -> None:
        super().__init__(rows)
        self._weights, self._clip, self._shares = tuple(weights), clip, shares

    @property
    def leaves(self) -> list[Leaf]:
        """Those of the rows, and the shares."""
        return [*self._rows.leaves, *([self._shares] if self._shares else [])]

    def over(self, arrays: Mapping[Any, Any], start: int, stop: int) -> CutRows:
        """The records start…stop, in other arrays, with their weights."""
        weights = [np.asarray(w)[start:stop] if np.ndim(w) else w for w in self._weights]
        shares = self._shares and self._shares.over(arrays)
        return CutRows(self._rows.over(arrays, start, stop), weights, self._clip, shares)

    def take(self, start: int, stop: int) -> tuple[Any, Array]:
        """Rows (b, D) and columns c, w, q, s (b, 2J + 2) of the records start…stop."""
        A, C = self._rows.take(start, stop)
        columns = np.empty((stop - start, 2 * self.terms + 2))
        own, labels = self._rows.beside.cut(start, stop, self.terms)
        columns[:, : self.terms] = C
        for j, weight in enumerate(self._weights):
            public = np.asarray(weight)[start:stop] if np.ndim(weight) else weight
            columns[:, self.terms + j] = public * own[:, j]
        columns[:, -2] = labels
        columns[:, -1] = np.inf
        if self._clip is not None:
            # s ‖a‖ ≤ ζ whatever the rounding of the norm.
            norms = np.sqrt(row_squares(A)) * (1.0 + (self.dimension + 8) * _EPS) + UNSEEN
            columns[:, -1] = self._clip * (1.0 - 4.0 * _EPS) / norms
        if self._shares is not None:
            columns[:, self.terms :] *= self._shares.take(start, stop)
        return A, columns
