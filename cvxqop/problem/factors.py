"""Public factors around the listed arrays: what they make of bounds that are stated in the units of
the arrays.

A row is a = Σ_p c_p G_p'z_p over its private pieces, with z_p features of the listed arrays, public
maps G_p and public numbers c_p, so that ‖a‖ ≤ ‖[c_1 G_1; c_2 G_2; …]‖₂ ‖(z_1, z_2, …)‖.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from cvxqop.problem.pieces import Column, Piece

__all__ = ["offset_units", "row_factor"]

_ROUNDING = 1e-12
_DENSE = 400
"""Side up to which a spectral norm is computed; beyond, its bound sqrt(‖·‖₁ ‖·‖_∞)."""


def row_factor(pieces: Sequence[Piece]) -> float:
    """s with ‖private part of a‖ ≤ s ‖z‖, z the features of the listed arrays; rounded up."""
    maps = [_columns_factor(piece) * sp.csr_array(piece.G) for piece in pieces]
    return _norm(sp.csr_array(sp.vstack(maps))) if maps else 1.0


def offset_units(groups: Sequence[Sequence[Piece]]) -> tuple[float, float] | None:
    """(t, p) with |c| ≤ t |target| + p in every loss, None where no offset holds private data.

    ``groups`` are the offsets of each loss, g (·,) or, of several outputs, (·, k).
    """
    found = []
    for pieces in groups:
        private = [piece for piece in pieces if piece.private]
        public = [_columns_factor(piece) * _size(piece) for piece in pieces if not piece.private]
        if private:
            own = sum(_columns_factor(piece) * _size(piece) for piece in private)
            found.append((_near_one(own), sum(public)))
    if not found:
        return None
    return max(t for t, _ in found), max(p for _, p in found)


def _columns_factor(piece: Piece) -> float:
    """Largest absolute product of the public columns, times the norms of the maps of private ones.

    A private column beside a matrix, such as a label, is part of the features as it is.
    """
    factor = 1.0
    for column in piece.columns:
        factor *= float(np.linalg.norm(column.weights)) if column.leaf.private else _largest(column)
    return factor


def _largest(column: Column) -> float:
    entries = column.take(0, int(column.leaf.array.shape[0]))
    return float(np.max(np.abs(entries), initial=0.0))


def _size(piece: Piece) -> float:
    """‖g‖₂, of a piece with several outputs the largest of its columns' where a matrix has them."""
    g = np.asarray(piece.g, dtype=np.float64)
    if g.ndim == 2 and piece.matrix is not None:
        return float(np.linalg.norm(g, 2))
    return float(np.linalg.norm(g))


def _norm(G: sp.csr_array) -> float:
    """‖G‖₂, rounded up; exact for a selection of entries times numbers."""
    if not G.nnz:
        return 1.0
    size = abs(G)
    rows, columns = size.count_nonzero(axis=1), size.count_nonzero(axis=0)
    if rows.max() <= 1 and columns.max() <= 1:
        return _near_one(float(size.max()))
    if min(G.shape) <= _DENSE:
        return _near_one(float(np.linalg.norm(G.toarray(), 2)) * (1.0 + _ROUNDING))
    return float(np.sqrt(size.sum(axis=0).max() * size.sum(axis=1).max()))


def _near_one(factor: float) -> float:
    """One where a factor is one but for rounding, so that plain problems keep plain constants."""
    return 1.0 if abs(factor - 1.0) <= 4.0 * _ROUNDING else factor
