"""The numbers of terms that are alike, one a record, found among the listed arrays.

``X[i]`` of NumPy is a row of which CVXPY keeps a copy and no trace. What tells that the terms of a
loop run over the records is that the rows of all of them, in order, are a listed array.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import cvxpy as cp
import numpy as np

from cvxqop import _cvxpy
from cvxqop.problem.private.compare import NO_MATCH, record_axis
from cvxqop.problem.private.entries import Entry

__all__ = ["Stacks"]


class Stacks:
    """Listed arrays, and the leaves that stand for them.

    Parameters
    ----------
    private, public : sequence of Entry
        What is listed.
    """

    def __init__(self, private: Sequence[Entry], public: Sequence[Entry]) -> None:
        dense = [entry for entry in (*private, *public) if not _cvxpy.is_sparse(entry.array)]
        self._entries = [entry for entry in dense if entry.array.ndim in (1, 2)]
        self._leaves: dict[int, Any] = {}
        self.counts = {int(entry.array.shape[0]) for entry in private}

    def find(self, rows: Any) -> Any:
        """The expression with these numbers (n,) or rows (n, d), or with their negatives; or None.

        ``-y[i]`` is a number that Python has computed, and −y all the same.
        """
        found = self._find(rows)
        if found is None:
            negative = self._find(-rows)
            found = None if negative is None else -negative
        return found

    def _find(self, rows: Any) -> Any:
        for k, entry in enumerate(self._entries):
            array = entry.array
            if array.shape[0] != rows.shape[0]:
                continue
            if array.shape == rows.shape and record_axis(array, rows) is not NO_MATCH:
                return self._leaf(k)
            if rows.ndim == 1 and array.ndim == 2:
                same = [j for j in range(array.shape[1]) if _equal(array[:, j], rows)]
                if same:
                    return self._leaf(k)[:, same[0]]
        return None

    def _leaf(self, k: int) -> Any:
        if k not in self._leaves:
            entry = self._entries[k]
            given = entry.given if isinstance(entry.given, np.ndarray) else entry.array
            self._leaves[k] = cp.Constant(given) if entry.leaf is None else entry.leaf
        return self._leaves[k]


def _equal(column: Any, rows: Any) -> bool:
    return record_axis(column, rows) is not NO_MATCH
