"""A linear term that belongs to no loss: its row is the gradient of a record, whatever θ is.

The gradient is a sum of products of listed numbers. One of features alone is bounded by
``row_norm``; a factor without variables beside them, such as y of Σ_i y_i x_i'w, by ``offset``; and
where all factors are of the same arrays, as in Σ_i z_i'S z_i, each is bounded by ``row_norm``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import scipy.sparse as sp

from cvxqop.problem.parts import Product
from cvxqop.problem.reading.affine import AffineReader
from cvxqop.problem.reading.factors import columns_factor
from cvxqop.problem.reading.loss_terms import LinearTerm
from cvxqop.problem.reading.public import outputs_of
from cvxqop.problem.records.pieces import Piece, Pieces, linear_part, times, total

__all__ = ["products_of", "row_of"]


def row_of(own: LinearTerm, affine: AffineReader, records: int | None) -> Pieces:
    """The row a_i of Σ_i a_i'θ, its weight included; of several outputs a record their sum.

    Raises
    ------
    ProblemError
        If the term is not a sum over records.
    """
    if len(own.factors) == 1 and outputs_of(own.factors[0], records) is not None:
        found = total(affine.read(own.factors[0], own.written))
    else:
        found = affine.read_product(own.factors, own.written)
    return linear_part(times(found, float(own.weight)).values())


def products_of(row: Iterable[Piece]) -> tuple[Product, ...]:
    """What bounds the norm of the private part of a row: a summand for each kind of product."""
    kinds: dict[tuple[int, int], list[Piece]] = {}
    for piece in row:
        if not piece.label_only:
            kinds.setdefault(_degrees(piece), []).append(piece)
    return tuple(
        Product(_norm(pieces), features, others) for (features, others), pieces in kinds.items()
    )


def _degrees(piece: Piece) -> tuple[int, int]:
    """How many of the private factors are features, and how many are numbers beside them."""
    columns = [column for column in piece.columns if column.leaf.private]
    if piece.matrix is None or not piece.matrix.private:
        return 1, len(columns) - 1
    alike = sum(column.leaf.key == piece.matrix.key for column in columns)
    return 1 + alike, len(columns) - alike


def _norm(pieces: Sequence[Piece]) -> float:
    """‖M‖ from above, for a row M f with f the products of private numbers.

    ‖M‖² ≤ ‖M‖_1 ‖M‖_∞, which is exact where M selects or repeats entries. The products of the
    columns of one array with the features have the norm of its row times theirs.
    """
    maps = [sp.csr_array(piece.G) * columns_factor(piece) for piece in pieces]
    M = abs(sp.vstack(maps, "csr"))
    return float(np.sqrt(M.sum(axis=0).max(initial=0.0) * M.sum(axis=1).max(initial=0.0)))
