"""Square brackets: rows of a listed array, and entries of variables at listed positions.

X[:k], with X a constant or a parameter and public positions, is an array of its own, whose records
are those that were chosen. M[i, j], with listed arrays of indices, is one row of indicators a
record times the entries of M.
"""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np
import scipy.sparse as sp

from cvxqop import _cvxpy
from cvxqop.errors import ProblemError
from cvxqop.problem.private.data import PrivateData
from cvxqop.problem.reading import refusals

__all__ = ["Selections"]

_POSITIONS = (
    "Square brackets in the objective: X[:k] selects records by their position, which has no "
    "meaning where the number of records is private. Choose in NumPy by a rule that looks at one "
    "record at a time, and list what is chosen: Xt = X[rule(X)], private=[Xt]."
)


class Selections:
    """Makes arrays of selections.

    Parameters
    ----------
    data : PrivateData
        What is private.

    Attributes
    ----------
    private : list of Constant
        The arrays that were made: one row a record.
    entries : set of int
        The listed arrays that they were made of.
    """

    def __init__(self, data: PrivateData) -> None:
        self._data = data
        self.private: list[Any] = []
        self.entries: set[int] = set()
        self._chosen: Any = None
        self._made: dict[int, Any] = {}

    def read(self, node: Any, given: Any) -> Any:
        """What an expression with arrays of indices is, or None."""
        held = node.args[0]
        arrays, picked = _cvxpy.selected_entries(node)
        if any(np.ndim(key) != 1 for key in arrays):
            return None
        if self._data.match(held) is not None:
            listed = not (given in self._data.hidden or self._data.is_unlisted(given))
            return self._rows(held, arrays[0]) if listed and len(arrays) == 1 else None
        whole = all(np.asarray(key).dtype.kind in "iu" for key in arrays)
        if not whole or not _cvxpy.has_variables(held) or self._data.contains(held):
            return None
        if node.ndim == 1 and len(arrays) == held.ndim:
            rows, source = picked, cp.vec(held, order="F") if held.ndim > 1 else held
        elif node.ndim == 2 and len(arrays) == 1 and held.ndim == 2:
            rows, source = picked[:, 0], held
        else:
            return None
        width, n = source.shape[0], len(rows)
        ones = sp.csr_array((np.ones(n), (np.arange(n), rows)), shape=(n, width))
        return self._constant(ones, "indicators", self._data.hidden.get(given, set())) @ source

    def rows(self, node: Any, given: Any) -> Any:
        """X[a:b], rows of a listed array and all of its columns, or None."""
        held, key = node.args[0], _cvxpy.index_key(node)
        match = self._data.match(held)
        rows = match is not None and match.axis in (0, None)
        if rows and self._data.count_is_private and not _cvxpy.keeps_rows(node):
            raise ProblemError(_POSITIONS)  # of few records, X[:k] is all of them
        if match is None or node.ndim != held.ndim or held.ndim == 0:
            return None
        others = zip(held.shape[1:], key[1:], strict=True)
        if not all(range(side)[own] == range(side) for side, own in others):
            return None
        if len(range(held.shape[0])[key[0]]) != node.shape[0]:
            return None  # CVXPY writes [::-1] with the end −1, which is another place
        return self._rows(held, key[0])

    def _rows(self, leaf: Any, key: Any) -> Any:
        """The chosen records: the same of every array, and each once, because the records of one
        term are those of all."""
        match = self._data.match(leaf)
        everyone = np.arange(leaf.shape[0])
        chosen = everyone[key]
        if match is None or match.axis not in (0, None) or self._data.count_is_private:
            return None
        if _cvxpy.is_sparse(_cvxpy.leaf_value(leaf)):
            return None
        known = chosen if self._chosen is None else self._chosen
        if len(np.unique(chosen)) < len(chosen) or not np.array_equal(known, chosen):
            raise ProblemError(refusals.CHOSEN)
        if len(chosen) == len(everyone):
            return None  # in another order, beside arrays in theirs, records would meet others
        self._chosen = chosen
        if match.entry not in self._made:
            rows = np.array(_cvxpy.leaf_value(leaf)[chosen])
            self._made[match.entry] = self._constant(rows, "rows", {match.entry})
        return self._made[match.entry]

    def _constant(self, array: Any, what: str, entries: set[int]) -> Any:
        names = ", ".join(self._data.names[i] for i in sorted(entries))
        constant = cp.Constant(array, name=f"{what} of {names}")
        self.private.append(constant)
        self.entries |= entries
        return constant
