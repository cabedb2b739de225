"""Clipping of records to public bounds: per record, always on, silent.

For a record (a, c), a bound R on rows and a bound B on the argument of φ at the anchor θ0:

1. if ‖a‖ > R, replace (a, c) by (a, c) · R/‖a‖, which keeps every interpolating θ of the record;
2. replace c_j by cut(a'θ0 + c_j, B) − a'θ0, with cut(t, B) = min(max(t, −B), B).

The record that comes out depends on the record that went in and on nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from cvxqop._blocks import canonical, is_sparse, row_squares, scale_rows
from cvxqop.errors import OptionError, ProblemError
from cvxqop.problem.records.beside import Beside, Labels
from cvxqop.problem.records.pieces import Leaf
from cvxqop.problem.records.rows import Rows
from cvxqop.problem.records.sums import Summed

__all__ = ["ClippedRows", "erase"]

Array = npt.NDArray[np.float64]
_EPS = float(np.finfo(np.float64).eps)


class ClippedRows(Summed):
    """Rows with every record inside the bounds.

    Parameters
    ----------
    rows : Rows
        The records as they are.
    row_norm : float
        R, in units of a.
    anchor : (D,) array or None
        θ0; None for zeros.
    offset : float or None
        B; None to leave the offsets alone (allowed when they are structurally zero).
    nonfinite : {"raise", "zero"}
        What becomes of a record with NaN or infinity: a `ProblemError` that does not say which, or
        a zero row with zero offsets.
    """

    def __init__(
        self,
        rows: Rows,
        row_norm: float,
        anchor: Array | None = None,
        offset: float | None = None,
        nonfinite: str = "raise",
    ) -> None:
        if nonfinite not in ("raise", "zero"):
            raise OptionError(f'nonfinite must be "raise" or "zero", not {nonfinite!r}.')
        self._rows = rows
        self.n, self.dimension, self.terms = rows.n, rows.dimension, rows.terms
        # A computed norm or dot product of D terms is off by at most about D/2 ulps.
        slack = (self.dimension + 8) * _EPS
        self._target = row_norm * (1.0 - 2.0 * slack)
        self._threshold = (row_norm * (1.0 - slack)) ** 2
        self._anchor = None if anchor is None or not np.any(anchor) else anchor
        self._offset = offset
        if offset is not None and self._anchor is not None:
            reach = offset + row_norm * float(np.linalg.norm(self._anchor))
            self._offset = max(0.0, offset - slack * reach)
        self._raise = nonfinite == "raise"
        self.beside, self.sparse = rows.beside, rows.sparse

    @property
    def edges(self) -> Array | None:
        """Those of the rows."""
        return self._rows.edges

    @property
    def leaves(self) -> list[Leaf]:
        """Those of the rows."""
        return self._rows.leaves

    def over(self, arrays: Mapping[Any, Any], start: int, stop: int) -> ClippedRows:
        """The records start…stop, in other arrays, clipped to the same bounds."""
        rows = copy(self)
        rows._rows = self._rows.over(arrays, start, stop)
        rows.n, rows.beside, rows.sparse = rows._rows.n, rows._rows.beside, rows._rows.sparse
        return rows

    def take(self, start: int, stop: int) -> tuple[Any, Array]:
        """Rows and offsets of the records start…stop, clipped. No copy where nothing is clipped.

        Raises
        ------
        ProblemError
            If a record of the block holds NaN or infinity and ``nonfinite`` is "raise".
        """
        A, C = self._rows.take(start, stop)
        if is_sparse(A):
            A = canonical(A)
        squares = row_squares(A)
        beside = [own.take(start, stop) for own in self.beside.numbers]
        # One pass flags what is not finite; overflow of finite numbers is told apart below.
        with np.errstate(over="ignore", invalid="ignore"):
            suspect = squares.sum() + C.sum() + sum(own.sum() for own in beside)
        if not np.isfinite(suspect):
            A, C = self._repair(A, C, start, stop)
            squares = row_squares(A)
        over = squares > self._threshold
        if over.any():
            factor = np.ones(len(squares))
            factor[over] = self._target / np.sqrt(squares[over])
            A, C = _scale(A, factor), self._scaled(C, factor)
        return A, self._cut(A, C)

    def check_finite(self) -> None:
        """Read every record once and raise if one is not finite and ``nonfinite`` is "raise"."""
        if self._raise:
            self.sum(_nothing)

    @property
    def labels(self) -> Labels | None:
        """The linear part of the loss, if any."""
        return self.beside.labels

    def _repair(self, A: Any, C: Array, start: int, stop: int) -> tuple[Any, Array]:
        """Deal with NaN, infinity and finite records that overflow."""
        dirty = self._dirty(A, C, self.beside, start, stop)
        if dirty.any():
            tamed = self._rows.tamed()
            tame_A, tame_C = tamed.take(start, stop)
            tame_A = canonical(tame_A) if is_sparse(tame_A) else tame_A
            lost = self._dirty(tame_A, tame_C, tamed.beside, start, stop)
            if lost.any() and self._raise:
                raise ProblemError(
                    "The private data contain NaN or infinite entries. Remove or fill such records "
                    'by a rule that looks at one record at a time, or pass nonfinite="zero", which '
                    "turns each of them into a record that contributes nothing."
                )
            A = erase(A, dirty) + erase(tame_A, lost | ~dirty)
            A = canonical(A) if is_sparse(A) else A
            C = np.where(dirty[:, None], np.where(lost[:, None], 0.0, tame_C), C)
        huge = ~np.isfinite(row_squares(A))
        if huge.any():
            factor = np.where(huge, 1e100 / np.where(huge, _row_largest(A), 1.0), 1.0)
            A, C = _scale(A, factor), self._scaled(C, factor)
        return A, C

    @staticmethod
    def _dirty(A: Any, C: Array, beside: Beside, start: int, stop: int) -> npt.NDArray[np.bool_]:
        """Records with an entry that is not finite."""
        clean = _finite_rows(A) & np.isfinite(C).all(axis=1)
        for own in beside.numbers:
            clean &= np.isfinite(own.take(start, stop))
        return np.asarray(~clean)

    def _scaled(self, C: Array, factor: Array) -> Array:
        """Offsets of rows that were scaled: the same θ interpolates the record."""
        return C * factor[:, None]

    def _cut(self, A: Any, C: Array) -> Array:
        B = self._offset
        if B is None or not C.size:
            return C
        if self._anchor is None:
            return C if max(C.max(), -C.min()) <= B else np.clip(C, -B, B)
        at_anchor = np.asarray(A @ self._anchor).reshape(-1, 1)
        argument = at_anchor + C
        if max(argument.max(), -argument.min()) <= B:
            return C
        return np.where(np.abs(argument) > B, np.clip(argument, -B, B) - at_anchor, C)


def _nothing(A: Any, C: Array) -> tuple[float]:
    """What is read is checked."""
    return (0.0,)


def _finite_rows(A: Any) -> npt.NDArray[np.bool_]:
    if is_sparse(A):
        bad = sp.csr_array(
            ((~np.isfinite(A.data)).astype(np.int64), A.indices, A.indptr), shape=A.shape
        )
        return np.asarray(np.asarray(bad.sum(axis=1)).reshape(-1) == 0)
    return np.asarray(np.isfinite(A).all(axis=1))


def _row_largest(A: Any) -> Array:
    if is_sparse(A):
        return np.asarray(abs(A).max(axis=1).toarray(), dtype=np.float64).reshape(-1)
    return np.asarray(np.abs(A).max(axis=1), dtype=np.float64)


def _scale(A: Any, factor: Array) -> Any:
    return scale_rows(A, factor) if is_sparse(A) else A * factor[:, None]


def erase(A: Any, dirty: npt.NDArray[np.bool_]) -> Any:
    """Rows with zeros in the place of those that are flagged, NaN or not."""
    if is_sparse(A):
        data = np.where(np.repeat(dirty, np.diff(A.indptr)), 0.0, A.data)
        return sp.csr_array((data, A.indices, A.indptr), shape=A.shape)
    return np.where(dirty[:, None], 0.0, A)
