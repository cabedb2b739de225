"""Rows of which some do not count, and rows that count in part: shares of a person's rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from cvxqop._blocks import is_sparse, scale_rows
from cvxqop.problem.records.clipping import erase
from cvxqop.problem.records.pieces import Leaf
from cvxqop.problem.records.rows import Rows
from cvxqop.problem.records.sums import Summed

__all__ = ["KeptRows", "SharedRows", "WeightedRows", "Wrapped"]

Array = npt.NDArray[np.float64]


class Wrapped(Summed):
    """Rows that are taken from other rows, record by record."""

    _rows: Any

    def __init__(self, rows: Summed | Rows) -> None:
        self._rows = rows
        self.n, self.dimension, self.terms = rows.n, rows.dimension, rows.terms
        self.sparse = rows.sparse

    @property
    def edges(self) -> Array | None:
        """Those of the rows."""
        found: Array | None = self._rows.edges
        return found


class KeptRows(Wrapped):
    """Rows of which those with share 0 become zero rows with zero offsets, whatever they hold.

    Parameters
    ----------
    rows : Rows
        The rows as they are.
    shares : Leaf
        (n, 1), 0 or 1.
    """

    _rows: Rows

    def __init__(self, rows: Rows, shares: Leaf) -> None:
        super().__init__(rows)
        self._shares = shares
        self.beside = rows.beside.kept(shares)

    @property
    def leaves(self) -> list[Leaf]:
        """Every array that is read."""
        return [*self._rows.leaves, self._shares]

    def over(self, arrays: Mapping[Any, Any], start: int, stop: int) -> KeptRows:
        """The records start…stop, in other arrays, with their shares."""
        return KeptRows(self._rows.over(arrays, start, stop), self._shares.over(arrays))

    def tamed(self) -> KeptRows:
        """The same rows, tamed."""
        return KeptRows(self._rows.tamed(), self._shares)

    def take(self, start: int, stop: int) -> tuple[Any, Array]:
        """Rows and offsets of the records start…stop."""
        A, C = self._rows.take(start, stop)
        lost = _lost(self._shares, start, stop)
        return (erase(A, lost), np.where(lost[:, None], 0.0, C)) if lost.any() else (A, C)


class SharedRows(Wrapped):
    """Clipped rows and offsets times √share: a squared loss of them is the share of the loss.

    Parameters
    ----------
    rows : Summed
        Rows (n, p) and offsets.
    shares : Leaf
        (n, 1), between 0 and 1.
    """

    def __init__(self, rows: Summed, shares: Leaf) -> None:
        super().__init__(rows)
        self._shares = shares

    @property
    def leaves(self) -> list[Leaf]:
        """Every array that is read."""
        return [*self._rows.leaves, self._shares]

    def over(self, arrays: Mapping[Any, Any], start: int, stop: int) -> SharedRows:
        """The records start…stop, in other arrays, with their shares."""
        return type(self)(self._rows.over(arrays, start, stop), self._shares.over(arrays))

    def take(self, start: int, stop: int) -> tuple[Any, Array]:
        """Rows and offsets of the records start…stop."""
        A, C = self._rows.take(start, stop)
        roots = np.sqrt(self._shares.take(start, stop))
        return (scale_rows(A, roots[:, 0]) if is_sparse(A) else A * roots), C * roots


class WeightedRows(Wrapped):
    """Clipped rows with labels, and a last number of each record: its share, times the weight of
    its class.

    Parameters
    ----------
    rows : Summed
        Rows (n, p) and labels (n, k).
    shares : Leaf, optional
        (n, 1), between 0 and 1.
    classes : tuple of float
        k weights between 0 and 1, or none.
    """

    def __init__(self, rows: Summed, shares: Leaf | None, classes: tuple[float, ...] = ()) -> None:
        super().__init__(rows)
        self._shares, self._classes = shares, classes

    @property
    def leaves(self) -> list[Leaf]:
        """Every array that is read."""
        return [*self._rows.leaves, *([self._shares] if self._shares else [])]

    def over(self, arrays: Mapping[Any, Any], start: int, stop: int) -> WeightedRows:
        """The records start…stop, in other arrays, with their shares."""
        shares = self._shares and self._shares.over(arrays)
        return WeightedRows(self._rows.over(arrays, start, stop), shares, self._classes)

    def take(self, start: int, stop: int) -> tuple[Any, Array]:
        """Rows, and numbers followed by the weight."""
        A, C = self._rows.take(start, stop)
        weights = np.ones(stop - start)
        if self._classes:
            weights = np.array(self._classes)[np.argmax(C, axis=1)]
        if self._shares is not None:
            weights = weights * self._shares.take(start, stop)[:, 0]
        return A, np.column_stack([C, weights])


def _lost(shares: Leaf, start: int, stop: int) -> npt.NDArray[np.bool_]:
    return np.asarray(shares.take(start, stop)[:, 0] == 0.0)
