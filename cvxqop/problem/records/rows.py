"""Affine rows of a loss, evaluated block by block: record i enters as φ_j(a_i'θ + c_ij)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from cvxqop._blocks import canonical, is_sparse, scale_rows
from cvxqop.problem.records.beside import Beside, Labels
from cvxqop.problem.records.pieces import LabelLeaf, Leaf, Piece
from cvxqop.problem.records.right import Right
from cvxqop.problem.records.sums import Summed

__all__ = ["AffineRows", "ArrayRows", "Rows"]

Array = npt.NDArray[np.float64]


class Rows(Protocol):
    """What the rest of the library sees of the rows of a loss."""

    @property
    def n(self) -> int:
        """Number of records."""

    @property
    def dimension(self) -> int:
        """D, the length of θ."""

    @property
    def terms(self) -> int:
        """J, the number of losses that share the row."""

    @property
    def beside(self) -> Beside:
        """Labels and weights."""

    def take(self, start: int, stop: int) -> tuple[Any, Array]:
        """Rows A (stop − start, D), an ndarray or a CSR array, and offsets C (stop − start, J)."""

    @property
    def sparse(self) -> bool:
        """Whether A is sparse."""

    @property
    def edges(self) -> Array | None:
        """Where partitions of the records begin and end, if the arrays say so."""

    @property
    def leaves(self) -> list[Leaf]:
        """Every array that is read, once each."""

    def with_label(self, label: LabelLeaf) -> Rows:
        """The same rows, in which an array is read as labels."""

    def over(self, arrays: Mapping[Any, Any], start: int, stop: int) -> Rows:
        """The records start…stop, in other arrays, which hold these records alone."""

    def tamed(self) -> Rows:
        """Rows from entries so small that finite records have finite rows."""


class AffineRows(Summed):
    """Rows and offsets given by pieces.

    Parameters
    ----------
    linear : sequence of Piece
        Their G make the row.
    offsets : sequence of sequences of Piece
        For each of the J losses, the pieces whose g make its offset.
    n, dimension : int
        Number of records, length of θ.
    beside : Beside
        Labels and weights.
    """

    def __init__(
        self,
        linear: Sequence[Piece],
        offsets: Sequence[Sequence[Piece]],
        n: int,
        dimension: int,
        beside: Beside | None = None,
    ) -> None:
        self.beside = beside or Beside()
        self.n, self.dimension, self.terms = n, dimension, len(offsets)
        self._linear, self._offsets = tuple(linear), tuple(tuple(pieces) for pieces in offsets)
        self.sparse = any(piece.matrix is not None and piece.matrix.sparse for piece in linear)
        self._rights = [Right(piece.G, self.sparse) for piece in self._linear]
        runs = sorted((r.start, r.width) for r in self._rights if r.start is not None)
        ends = np.cumsum([0, *(width for _, width in runs)]).tolist()
        tiles = [start for start, _ in runs] + [dimension] == ends
        self._tiled = tiles and len(runs) == len(self._rights)

    @property
    def has_offset(self) -> bool:
        """Whether some offset is not structurally zero."""
        return any(self._offsets)

    @property
    def labels(self) -> Labels | None:
        """The linear part of the loss, if any."""
        return self.beside.labels

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """The pieces of the row."""
        return self._linear

    @property
    def leaves(self) -> list[Leaf]:
        """Every array that rows or offsets read, once each."""
        pieces = [*self._linear, *(piece for group in self._offsets for piece in group)]
        pieces += (piece for own in self.beside.numbers for piece in own.pieces)
        return list(dict.fromkeys(leaf for piece in pieces for leaf in piece.leaves))

    @property
    def edges(self) -> Array | None:
        """Those of the first array that has some."""
        found = (getattr(leaf.array, "edges", None) for leaf in self.leaves)
        return next((edges for edges in found if edges is not None), None)

    def take(self, start: int, stop: int) -> tuple[Any, Array]:
        """Rows and offsets of the records start…stop."""
        with np.errstate(over="ignore", invalid="ignore"):
            return self._rows(start, stop), self._constants(start, stop)

    def over(self, arrays: Mapping[Any, Any], start: int, stop: int) -> AffineRows:
        """The records start…stop, in other arrays."""
        return self._made(lambda piece: piece.over(arrays), stop - start)

    def tamed(self) -> AffineRows:
        """The same rows from entries cut to ±1e75, for finite records whose rows overflow."""
        return self._made(Piece.tamed, self.n)

    def times(self, T: Array) -> AffineRows:
        """The rows with column j times T_j (D,). Of offsets only g counts, whatever their G."""
        diagonal = sp.diags_array(T)

        def scaled(piece: Piece) -> Piece:
            own = piece.G.shape[1] == len(T)
            return replace(piece, G=sp.csr_array(piece.G @ diagonal)) if own else piece

        return self._made(scaled, self.n)

    def _made(self, change: Callable[[Piece], Piece], n: int) -> AffineRows:
        """n records of changed pieces."""
        linear = list(map(change, self._linear))
        offsets = [list(map(change, group)) for group in self._offsets]
        return AffineRows(linear, offsets, n, self.dimension, self.beside.made(change))

    def with_label(self, label: LabelLeaf) -> AffineRows:
        """The same rows with ``label`` in the place of the leaf of its key."""
        linear = [piece.with_label(label) for piece in self._linear]
        offsets = [[piece.with_label(label) for piece in group] for group in self._offsets]
        return AffineRows(linear, offsets, self.n, self.dimension, self.beside)

    def with_beside(self, beside: Beside) -> AffineRows:
        """The same rows with other labels and weights."""
        return AffineRows(self._linear, self._offsets, self.n, self.dimension, beside)

    def _constants(self, start: int, stop: int) -> Array:
        C = np.zeros((stop - start, self.terms))
        for j, group in enumerate(self._offsets):
            for piece in group:
                C[:, j] += piece.constants(start, stop)
        return C

    def _rows(self, start: int, stop: int) -> Any:
        if self.sparse:
            return self._sparse_rows(start, stop)
        if len(self._linear) == 1 and not self._linear[0].columns:
            piece, right = self._linear[0], self._rights[0]
            if piece.matrix is not None and right.identity:
                return np.ascontiguousarray(piece.matrix.take(start, stop))
        if self._tiled:
            A = np.empty((stop - start, self.dimension))
            for piece, right in zip(self._linear, self._rights, strict=True):
                right.fill(A, piece, start, stop)
            return A
        A = np.zeros((stop - start, self.dimension))
        for piece, right in zip(self._linear, self._rights, strict=True):
            right.add(A, piece, start, stop)
        return A

    def _sparse_rows(self, start: int, stop: int) -> Any:
        total: Any = None
        for piece, right in zip(self._linear, self._rights, strict=True):
            scale = piece.scale(start, stop)
            if piece.matrix is None:
                ones = np.ones(stop - start) if scale is None else scale
                block = sp.csr_array(ones[:, None]) @ piece.G
            else:
                taken = piece.matrix.take(start, stop)
                block = taken if is_sparse(taken) else sp.csr_array(taken)
                if scale is not None:
                    block = scale_rows(block, scale)
                if not right.identity:
                    block = block @ piece.G
            total = block if total is None else total + block
        return sp.csr_array(total)


class ArrayRows(Summed):
    """Rows and offsets that are arrays already: A (n, D) dense or CSR, C (n, J)."""

    def __init__(self, A: Any, C: Array) -> None:
        self._A = canonical(A) if is_sparse(A) else A
        self._C = C
        self.n, self.dimension = (int(side) for side in A.shape)
        self.terms = int(C.shape[1])
        self.beside = Beside()
        self.sparse = bool(is_sparse(A))

    def tamed(self) -> ArrayRows:
        """The rows themselves: nothing is computed from them."""
        return self

    def take(self, start: int, stop: int) -> tuple[Any, Array]:
        """Rows and offsets of the records start…stop."""
        A = self._A[start:stop]
        if not self.sparse:
            A = np.ascontiguousarray(A, dtype=np.float64)
        return A, np.ascontiguousarray(self._C[start:stop], dtype=np.float64)
