"""Pieces: what a row is made of, and their algebra.

Rows stay symbolic until a block is asked for. The argument of a loss is a sum of *pieces*

    s_i · z_i' (G θ + g),      s_i a product of columns, z_i' a row of an array (or 1), G, g public,

with one piece for each *signature* (columns, array).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from cvxqop._blocks import canonical
from cvxqop._cvxpy import is_sparse

__all__ = [
    "Column",
    "LabelLeaf",
    "Leaf",
    "Piece",
    "Pieces",
    "Signature",
    "ZeroOneLeaf",
    "linear_part",
    "product",
    "signs_of",
    "times",
    "total",
]

Array = npt.NDArray[np.float64]
Signature = tuple[tuple[Any, ...], Any]


@dataclass(eq=False)
class Leaf:
    """An (n, p) array of the problem, one row a record; ``key`` is its identity."""

    array: Any
    key: Any
    private: bool
    name: str
    is_label: ClassVar[bool] = False
    _csr: Any = field(default=None, repr=False)

    @property
    def width(self) -> int:
        """p."""
        return int(self.array.shape[1])

    @property
    def sparse(self) -> bool:
        """Whether slices of rows are SciPy sparse matrices."""
        return is_sparse(self.array) or bool(getattr(self.array, "sparse", False))

    def over(self, arrays: Mapping[Any, Any]) -> Leaf:
        """The leaf with the array of its key in place of its own."""
        return replace(self, array=arrays[self.key], _csr=None)

    def take(self, start: int, stop: int) -> Any:
        """Rows start…stop as float64; a view where the array already is a dense float64 one."""
        if is_sparse(self.array):
            if self._csr is None:
                self._csr = canonical(self.array)
            return self._csr[start:stop]
        rows = self.array[start:stop]
        return canonical(rows) if is_sparse(rows) else np.asarray(rows, dtype=np.float64)


@dataclass(eq=False)
class LabelLeaf(Leaf):
    """Labels ±1: what is beyond is cut, record by record, so that a factor |y_i| ≤ 1 is certain.

    NaN and infinity stay what they are, to be refused.
    """

    is_label: ClassVar[bool] = True

    def take(self, start: int, stop: int) -> Any:
        """Rows start…stop."""
        rows = super().take(start, stop)
        return _cut(rows.toarray() if is_sparse(rows) else rows, 1.0)


@dataclass(eq=False)
class ZeroOneLeaf(LabelLeaf):
    """Labels 0 and 1, or False and True: cut to [0, 1], then taken as 2y − 1, hence ±1."""

    def take(self, start: int, stop: int) -> Any:
        """Rows start…stop."""
        rows = Leaf.take(self, start, stop)
        return 2.0 * _cut(rows.toarray() if is_sparse(rows) else rows, 1.0, 0.0) - 1.0


@dataclass(eq=False)
class TamedLeaf(Leaf):
    """A leaf whose finite entries are cut to ±1e75, so that products of a few of them are finite.

    For records of finite entries whose row would overflow; NaN and infinity stay what they are.
    """

    def take(self, start: int, stop: int) -> Any:
        """Rows start…stop."""
        rows = super().take(start, stop)
        if is_sparse(rows):
            data = _cut(rows.data, 1e75)
            return sp.csr_array((data, rows.indices, rows.indptr), shape=rows.shape)
        return _cut(rows, 1e75)


def _tame(leaf: Leaf) -> Leaf:
    return leaf if leaf.is_label else TamedLeaf(leaf.array, leaf.key, leaf.private, leaf.name)


def _cut(entries: Array, high: float, low: float | None = None) -> Array:
    """Entries cut to [low, high], ±high unless ``low`` is given; what is not finite is left alone.

    No copy if no entry is beyond.
    """
    low = -high if low is None else low
    if entries.size and entries.max() <= high and entries.min() >= low:
        return entries
    return np.where(np.isfinite(entries), np.clip(entries, low, high), entries)


@dataclass(frozen=True, eq=False)
class Column:
    """The numbers z_i'g, one a record: a label, a scale, or a column of an array."""

    leaf: Leaf
    weights: Array

    @property
    def key(self) -> tuple[Any, bytes]:
        """Identity."""
        return (self.leaf.key, self.weights.tobytes())

    def take(self, start: int, stop: int) -> Array:
        """Entries start…stop."""
        if not self.leaf.sparse and self.leaf.width == 1:
            column = self.leaf.take(start, stop)[:, 0]
            return np.asarray(column if self.weights[0] == 1.0 else column * self.weights[0])
        return np.asarray(self.leaf.take(start, stop) @ self.weights).reshape(-1)


@dataclass(frozen=True, eq=False)
class Piece:
    """One summand Π columns · (z_i' or 1) · (G θ + g), G (p, D) sparse, g (p,)."""

    columns: tuple[Column, ...]
    matrix: Leaf | None
    G: Any
    g: Array

    @property
    def signature(self) -> Signature:
        """What depends on the record, up to order."""
        keys = tuple(sorted((column.key for column in self.columns), key=repr))
        return keys, None if self.matrix is None else self.matrix.key

    @property
    def leaves(self) -> list[Leaf]:
        """Every array the piece reads."""
        own = [] if self.matrix is None else [self.matrix]
        return own + [column.leaf for column in self.columns]

    @property
    def private(self) -> bool:
        """Whether the piece reads private data."""
        return any(leaf.private for leaf in self.leaves)

    @property
    def label_only(self) -> bool:
        """Whether all that is private in it is a product of labels, at most one in size."""
        return all(leaf.is_label for leaf in self.leaves if leaf.private)

    def tamed(self) -> Piece:
        """The piece with `TamedLeaf` in place of each leaf."""
        columns = tuple(replace(c, leaf=_tame(c.leaf)) for c in self.columns)
        return replace(self, columns=columns, matrix=self.matrix and _tame(self.matrix))

    def with_label(self, label: LabelLeaf) -> Piece:
        """The piece with ``label`` in the place of the leaf of its key."""
        columns = tuple(
            replace(c, leaf=label) if c.leaf.key == label.key else c for c in self.columns
        )
        return replace(self, columns=columns)

    def over(self, arrays: Mapping[Any, Any]) -> Piece:
        """The piece with other arrays behind its leaves, by their keys."""
        columns = tuple(replace(c, leaf=c.leaf.over(arrays)) for c in self.columns)
        return replace(self, columns=columns, matrix=self.matrix and self.matrix.over(arrays))

    def scale(self, start: int, stop: int) -> Array | None:
        """Π columns, or None for ones."""
        product: Array | None = None
        for column in self.columns:
            entries = column.take(start, stop)
            product = entries if product is None else product * entries
        return product

    def constants(self, start: int, stop: int) -> Array | float:
        """Π columns · (z_i' or 1) · g."""
        scale = self.scale(start, stop)
        if self.matrix is None:
            constant = float(self.g[0])
            return constant if scale is None else scale if constant == 1.0 else scale * constant
        product = np.asarray(self.matrix.take(start, stop) @ self.g).reshape(-1)
        return product if scale is None else scale * product


Pieces = dict[Signature, Piece]


def total(parts: Iterable[Pieces]) -> Pieces:
    """Sum; pieces of one signature become one."""
    result: Pieces = {}
    for part in parts:
        for piece in part.values():
            key = piece.signature
            if key in result:
                known = result[key]
                piece = replace(known, G=known.G + piece.G, g=known.g + piece.g)
            result[key] = piece
    return result


def times(pieces: Pieces, factor: float) -> Pieces:
    """Product with a public number."""
    return {
        key: replace(piece, G=piece.G * factor, g=piece.g * factor) for key, piece in pieces.items()
    }


def product(constant: Pieces, other: Pieces) -> Pieces:
    """Product, record by record, with an expression without variables."""
    products = []
    for a in constant.values():
        columns, scalar = _as_columns(a)
        for b in other.values():
            piece = replace(b, columns=columns + b.columns, G=b.G * scalar, g=b.g * scalar)
            products.append({piece.signature: piece})
    return total(products)


def linear_part(pieces: Iterable[Piece]) -> Pieces:
    """The pieces with G ≠ 0, in canonical form."""
    linear: Pieces = {}
    for piece in pieces:
        G = sp.csr_array(piece.G)
        G.sum_duplicates()
        G.eliminate_zeros()
        if G.nnz:
            linear[piece.signature] = replace(piece, G=G)
    return linear


def _as_columns(piece: Piece) -> tuple[tuple[Column, ...], float]:
    """A piece without variables as a product of columns and a number."""
    if piece.matrix is None:
        return piece.columns, float(piece.g[0])
    return (*piece.columns, Column(piece.matrix, piece.g)), 1.0


def signs_of(row: Iterable[Piece]) -> list[Leaf]:
    """The listed arrays that multiply a whole row, such as y of multiply(y, X @ w + b), outermost
    first."""
    found: list[Leaf] = []
    for number, piece in enumerate(row):
        keys = Counter(leaf.key for leaf in piece.leaves)
        own = [
            column.leaf
            for column in piece.columns
            if column.leaf.private and column.leaf.width == 1 and keys[column.leaf.key] == 1
        ]
        known = {leaf.key for leaf in own}
        found = own if number == 0 else [leaf for leaf in found if leaf.key in known]
    return found
