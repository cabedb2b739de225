"""The public factor on the right of an array of records, applied block by block."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from cvxqop._cvxpy import is_sparse
from cvxqop.problem.records.pieces import Piece

__all__ = ["Right"]

Array = npt.NDArray[np.float64]


class Right:
    """The public factor G of a piece in the form that is cheapest to apply."""

    def __init__(self, G: Any, sparse: bool) -> None:
        G = sp.csr_array(G)
        G.sum_duplicates()
        p, D = G.shape
        columns = G.indices
        one_each = G.nnz == p and p > 0 and bool(np.all(np.diff(G.indptr) == 1))
        run = one_each and bool(np.all(np.diff(columns) == 1)) and bool(np.all(G.data == G.data[0]))
        self.start = int(columns[0]) if run else None
        self.factor = float(G.data[0]) if run else 1.0
        self.identity = run and p == D and self.factor == 1.0
        self.width = p
        self.matrix: Any = None if run or sparse else (G.toarray() if G.nnz > 0.1 * p * D else G)

    def fill(self, A: Array, piece: Piece, start: int, stop: int) -> None:
        """The columns of A that the piece alone makes; for a G that is a run of columns."""
        assert self.start is not None
        target = A[:, self.start : self.start + self.width]
        scale = piece.scale(start, stop)
        if scale is not None and self.factor != 1.0:
            scale = scale * self.factor
        factor = self.factor if scale is None else scale[:, None]
        if piece.matrix is None:
            target[...] = factor
        else:
            np.multiply(piece.matrix.take(start, stop), factor, out=target)

    def add(self, A: Array, piece: Piece, start: int, stop: int) -> None:
        """A += piece, for dense A."""
        scale = piece.scale(start, stop)
        if piece.matrix is None:
            column = np.ones(stop - start) if scale is None else scale
            if self.start is not None:
                A[:, self.start] += self.factor * column
            else:
                row = self.matrix.toarray() if is_sparse(self.matrix) else self.matrix
                A += column[:, None] * row
            return
        block = piece.matrix.take(start, stop)
        if scale is not None:
            block = block * scale[:, None]
        if self.start is not None:
            target = A[:, self.start : self.start + self.width]
            target += block if self.factor == 1.0 else self.factor * block
        else:
            A += block @ self.matrix
