"""Public factors around the listed arrays: what they make of bounds that are stated in the units of
the arrays.

A row is a = Σ_p m_p G_p'z_p over its private pieces: z_p the features of a listed array, times the
listed columns that multiply them, G_p public maps, and m_p numbers that are bounded, public ones
and labels. Its norm is at most ‖(m_p G_p)_p‖, the spectral norm of the maps one below the other,
times that of all features together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from cvxqop import _cvxpy
from cvxqop.problem.parts import RowParts
from cvxqop.problem.private.data import PrivateData
from cvxqop.problem.reading.public import constant_array
from cvxqop.problem.records.pieces import Column, Piece
from cvxqop.problem.records.rows import AffineRows

__all__ = ["columns_factor", "outer_factor", "row_parts"]

_ROUNDING = 1e-12
_LARGE = 1024


def row_parts(linear: Sequence[Piece], outer: float, n: int, dimension: int) -> RowParts:
    """What is private and what is public in the row that pieces make.

    ``outer`` is the factor around the whole argument.
    """
    private = [piece for piece in linear if not piece.label_only]
    public = [piece for piece in linear if piece.label_only]
    touched = set(np.concatenate([p.G.indices for p in private]).tolist()) if private else set()
    overlap = any(touched & set(piece.G.indices.tolist()) for piece in public)
    norm = _largest_norm(public, n, dimension)
    return RowParts(bool(private), norm, overlap, _row_factor(private), outer)


def _row_factor(pieces: Sequence[Piece]) -> float:
    """s with ‖private part of a‖ ≤ s ‖z‖, z the features of the listed arrays, each once."""
    maps: dict[Any, list[Any]] = {}
    beside = 0.0
    for piece in pieces:
        columns = [c for c in piece.columns if c.leaf.private and not c.leaf.is_label]
        m = math.prod(_largest(c) for c in piece.columns if not c.leaf.private)
        leaf, G = piece.matrix, sp.csr_array(piece.G)
        if leaf is None or not leaf.private:
            last = columns.pop()
            if leaf is not None:  # a public array, one row a record, times a listed column
                beside += (m * float(np.linalg.norm(last.weights)) * _largest_row(leaf, G)) ** 2
                continue
            leaf, G = last.leaf, sp.csr_array(last.weights[:, None]) @ G
        key = (tuple(sorted(repr(c.key) for c in columns)), leaf.key)
        maps.setdefault(key, []).append(m * G)
    stacked = []
    for own in maps.values():
        if _apart(own):
            stacked.append(sum(own[1:], own[0]))
        else:
            beside += sum(map(_spectral, own)) ** 2
    norm = _spectral(sp.vstack(stacked, format="csr")) if stacked else 0.0
    return _near_one(math.hypot(norm, math.sqrt(beside))) if maps or beside else 1.0


def outer_factor(node: Any, private: PrivateData) -> float:
    """Largest absolute public factor around a whole argument, such as 10 in (y − X @ w) / 0.1.

    Read off the structure: CVXPY drops a target of zeros, and what it would have been multiplied
    with must not decide anything.
    """
    factor = 1.0
    while True:
        kind = _cvxpy.kind(node)
        if kind in ("neg", "reshape", "transpose", "conj", "promote", "broadcast"):
            node = node.args[0]
            continue
        if kind not in ("multiply", "matmul", "divide"):
            return _near_one(factor)
        sides = [node.args[::-1]] if kind == "divide" else [node.args, node.args[::-1]]
        found = [(c, e) for c, e in sides if not _cvxpy.has_variables(c)]
        if not found or private.contains(found[0][0]) or found[0][1].size != node.size:
            return _near_one(factor)
        constant, node = found[0]
        number = _cvxpy.kind(constant) == "promote"  # of no records, an array of none is left of it
        value = constant_array(constant.args[0] if number else constant)
        entries = np.abs(value.data if _cvxpy.is_sparse(value) else np.asarray(value, dtype=float))
        if kind == "divide":
            factor /= float(np.min(entries, initial=np.inf))
        elif kind == "multiply" or value.size == 1 or _is_diagonal(value):
            factor *= float(np.max(entries, initial=0.0))
        else:
            return _near_one(factor)


def _is_diagonal(value: Any) -> bool:
    if value.ndim != 2 or value.shape[0] != value.shape[1]:
        return False
    rows, columns = sp.coo_array(value).coords
    return bool(np.all(rows == columns))


def columns_factor(piece: Piece) -> float:
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


def _largest_row(leaf: Any, G: Any) -> float:
    rows = leaf.take(0, int(leaf.array.shape[0])) @ G
    squares = rows.multiply(rows) if _cvxpy.is_sparse(rows) else np.square(rows)
    return float(np.sqrt(np.max(squares.sum(axis=1), initial=0.0)))


def _apart(maps: Sequence[Any]) -> bool:
    """Whether maps of the same features lead to different entries of θ."""
    touched = [np.unique(G.indices) for G in maps]
    return bool(np.unique(np.concatenate(touched)).size == sum(map(len, touched)))


def _spectral(G: Any) -> float:
    """‖G‖, or a bound on it where G is large on both sides, rounded up."""
    G = sp.csr_array(G)
    G.sum_duplicates()
    G.eliminate_zeros()
    sides = [abs(G).sum(axis=k) for k in (0, 1)]
    if all((G != 0).sum(axis=k).max(initial=0) <= 1 for k in (0, 1)):
        return float(abs(G).max()) if G.nnz else 0.0  # one entry a row and a column at most
    if min(G.shape) > _LARGE:
        return float(np.sqrt(max(sides[0]) * max(sides[1]))) * (1.0 + _ROUNDING)
    gram = (G @ G.T if G.shape[0] <= G.shape[1] else G.T @ G).toarray()
    return float(np.sqrt(np.linalg.eigvalsh(gram)[-1])) * (1.0 + _ROUNDING)


def _near_one(factor: float) -> float:
    """One where a factor is one but for rounding, so that plain problems keep plain constants."""
    return 1.0 if abs(factor - 1.0) <= 4.0 * _ROUNDING else factor


def _largest_norm(public: Sequence[Piece], n: int, dimension: int) -> float:
    """Largest norm over the records of the row that the public pieces make.

    The labels of `glm_loss` are no larger than one; a part of them does not depend on their values.
    """
    labelled = [piece for piece in public if piece.private]
    if labelled:
        own = sum(float(np.linalg.norm(piece.G.data)) for piece in labelled)
        return own + _largest_norm([p for p in public if not p.private], n, dimension)
    if not any(piece.leaves for piece in public):
        row = sum((piece.G.toarray()[0] for piece in public), np.zeros(dimension))
        return float(np.linalg.norm(row))
    (largest,) = AffineRows(public, [], n, dimension).sum(_largest_square, combine=np.maximum)
    return float(np.sqrt(largest))


def _largest_square(A: Any, C: Any) -> tuple[float]:
    squares = A.multiply(A).sum(axis=1) if _cvxpy.is_sparse(A) else np.einsum("ij,ij->i", A, A)
    return (float(np.max(squares, initial=0.0)),)
