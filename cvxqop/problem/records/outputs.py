"""Several outputs a record: one row a for all of them, and a matrix of coefficients.

Record i enters as φ(Θ'a_i + c_i) with Θ (p, k) and c_i (k,). The Hessian of a squared loss is then
the same in each of the k columns of Θ and zero between them, whatever the record.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from cvxqop._cvxpy import is_sparse
from cvxqop.problem.records.pieces import Piece
from cvxqop.problem.records.rows import AffineRows

__all__ = ["OutputRows", "Outputs", "stacked_numbers"]

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Outputs:
    """Where the entries of Θ (p, k) stand in θ (D,).

    Attributes
    ----------
    layout : int array, shape (p, k)
        Θ = θ[layout]; an entry of θ occurs once at most.
    labelled : bool
        Whether the rows carry labels y_i (k,) in the place of offsets c_i.

    Examples
    --------
    >>> outputs = Outputs(np.array([[0, 2], [1, 3]]), labelled=False)
    >>> outputs.matrix(np.arange(4.0)).tolist()
    [[0.0, 2.0], [1.0, 3.0]]
    """

    layout: npt.NDArray[np.intp]
    labelled: bool

    @property
    def count(self) -> int:
        """k."""
        return int(self.layout.shape[1])

    def matrix(self, theta: Array) -> Array:
        """Θ (p, k) from θ (D,)."""
        return np.asarray(theta[self.layout])

    def shifts(self, dimension: int) -> Array:
        """Orthonormal (D, p): one number added to row i of Θ, which no softmax of Θ'a sees."""
        directions = np.zeros((dimension, len(self.layout)))
        for i, row in enumerate(self.layout):
            directions[row, i] = self.count**-0.5
        return directions


class OutputRows(AffineRows):
    """Rows a_i (p,) with k numbers a record: offsets or labels.

    Parameters
    ----------
    linear : sequence of Piece
        Their G (·, p) make the row.
    numbers : sequence of Piece
        Their g (·, k) make the offsets or labels.
    n, width, count : int
        Number of records, p and k.
    """

    def __init__(
        self, linear: Sequence[Piece], numbers: Sequence[Piece], n: int, width: int, count: int
    ) -> None:
        super().__init__(linear, [numbers], n, width)
        self.terms = count

    def _made(self, change: Callable[[Piece], Piece], n: int) -> OutputRows:
        linear, numbers = (list(map(change, own)) for own in (self._linear, self._offsets[0]))
        return OutputRows(linear, numbers, n, self.dimension, self.terms)

    def _constants(self, start: int, stop: int) -> Array:
        C = np.zeros((stop - start, self.terms))
        for piece in self._offsets[0]:
            scale = piece.scale(start, stop)
            block: Any = piece.g
            if piece.matrix is not None:
                block = piece.matrix.take(start, stop)
                if not _is_identity(piece.g):
                    block = block @ piece.g
                block = block.toarray() if is_sparse(block) else block
            C += block if scale is None else scale[:, None] * block
        return C


def stacked_numbers(columns: Sequence[Sequence[Piece]]) -> list[Piece]:
    """One piece a signature, g (·, k), from the pieces of k columns, g (·,) each."""
    found: dict[Any, Piece] = {}
    for j, pieces in enumerate(columns):
        for piece in pieces:
            key = piece.signature
            if key not in found:
                found[key] = replace(piece, g=np.zeros((len(piece.g), len(columns))))
            found[key].g[:, j] += piece.g
    return list(found.values())


def _is_identity(g: Array) -> bool:
    return g.shape[0] == g.shape[1] and bool(np.array_equal(g, np.eye(len(g))))
