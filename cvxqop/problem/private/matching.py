"""Which leaf of a problem holds which listed array, decided by origin first and by value second.

CVXPY copies arrays. It remembers the ``id`` of a dense float64 array that it copied, a parameter
and a constant made from a data frame share memory with their source, and everything else (sparse
arrays, other dtypes) leaves no trace. So there are three cases for a leaf with the numbers of an
entry:

1. it is the entry, was copied from it, or shares its memory: it holds the entry;
2. it was copied from another object, and case 1 holds for some other leaf: it is another array,
   whatever it holds;
3. otherwise it holds the entry, because values are all that is left to go by.

That a leaf is another array does not make it public: only listing does (`listing`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cvxqop import _cvxpy
from cvxqop.problem.private.compare import NO_MATCH, is_constant, record_axis
from cvxqop.problem.private.entries import Entry, held_elsewhere

__all__ = ["Finder", "Match", "shares_memory"]


@dataclass(frozen=True)
class Match:
    """A leaf that holds entry ``entry``; its axis ``axis`` runs over the records.

    ``axis`` is None where there is one entry only, and −1 where no axis does.
    """

    entry: int
    axis: int | None


class Finder:
    """Finds the entries of a list among leaves and other arrays.

    Parameters
    ----------
    given : sequence
        The list as it was given.
    entries : sequence of Entry
        Its elements.
    leaves : iterable
        The constants and parameters of the problem that have a value.
    trace : bool
        Whether a leaf that is known to come from elsewhere is another array. Without, equal
        numbers are enough.
    """

    def __init__(
        self, given: Any, entries: Sequence[Entry], leaves: Iterable[Any], *, trace: bool = True
    ) -> None:
        self._trace = trace
        self._given, self._entries, self._leaves = given, entries, list(leaves)
        self._settled = _settled(entries, self._leaves)
        self._known: dict[int, set[int] | None] = {}

    def find(self, leaf: Any) -> Match | None:
        """The entry that a leaf holds, or None."""
        for i, entry in enumerate(self._entries):
            if entry.leaf is leaf:
                return Match(i, 0 if leaf.size > 1 else None)
        if leaf.ndim == 0:
            return self._view(leaf)
        # Where two arrays hold the same values, the one that CVXPY copied decides.
        source = _cvxpy.source(leaf)
        order = sorted(
            range(len(self._entries)), key=lambda i: id(self._entries[i].given) != source
        )
        for i in order:
            entry = self._entries[i]
            axis = record_axis(entry.array, _cvxpy.leaf_value(leaf))
            straight = leaf.shape == entry.array.shape and axis in (0, None)
            if axis is NO_MATCH or (i in self._settled and not straight):
                continue
            known = source if straight and self._trace else None
            if axis is None and leaf.size > 1:
                # Of a symmetric array, what is known not to be the array is its transpose.
                return Match(i, int(known is not None and self._is_elsewhere(known, i)))
            if known is None or not self._is_other(known, i):
                return Match(i, axis)
        return self._view(leaf)

    def _view(self, leaf: Any) -> Match | None:
        """The entry in whose memory a leaf lies, such as a row of it: no axis has the records."""
        value = _cvxpy.leaf_value(leaf)
        indices = (i for i, e in enumerate(self._entries) if shares_memory(value, e.array))
        return next((Match(i, -1) for i in indices), None)

    def originates(self, leaf: Any, i: int) -> bool:
        """Whether a leaf is known to be, or to have been copied from, entry i itself."""
        source = _cvxpy.source(leaf)
        copied = source is not None and not self._is_elsewhere(source, i)
        return copied or self._entries[i].leaf is leaf

    def find_array(self, array: Any) -> int | None:
        """The entry whose memory or whose numbers an array outside the tree holds, or None."""
        for i, entry in enumerate(self._entries):
            if array is entry.given or shares_memory(array, entry.array):
                return i
            if array.ndim and record_axis(entry.array, array) is not NO_MATCH:
                return i
        return None

    def is_given(self, array: Any) -> bool:
        """Whether an array outside the tree is one of the list itself."""
        return any(array is entry.given for entry in self._entries)

    def _is_other(self, source: int, i: int) -> bool:
        """Whether the object behind ``source`` is known not to be entry i.

        Asked for leaves in the shape of the entry only: ``X.T`` is another object than ``X`` and
        the same data all the same.
        """
        if not self._is_elsewhere(source, i):
            return False
        if i not in self._known:
            self._known[i] = self._sources(self._entries[i])
        known = self._known[i]
        return known is not None and source not in known

    def _is_elsewhere(self, source: int, i: int) -> bool:
        """Whether a source is another object than entry i, where CVXPY would remember that."""
        entry = self._entries[i]
        if source in (id(entry.given), id(entry.array)):
            return False
        return entry.leaf is None or source != _cvxpy.source(entry.leaf)

    def _sources(self, entry: Entry) -> set[int] | None:
        """What CVXPY may have copied the entry from; None if it is not certain to occur.

        An ``id`` is evidence only for an array that is older than the problem. A view, such as
        ``df.to_numpy()``, and an array without a name may have been made after it.
        """
        if any(entry.leaf is leaf for leaf in self._leaves):
            return {_cvxpy.source(entry.leaf) or 0}
        same = [leaf for leaf in self._leaves if leaf.shape == entry.array.shape and leaf.ndim]
        untraced = [leaf for leaf in same if _cvxpy.source(leaf) is None]
        certain = [leaf for leaf in same if _shares(leaf, entry)]
        if not _leaves_a_trace(entry):
            certain += untraced  # the leaf that CVXPY made of the entry is among them
        elif entry.array.base is None and held_elsewhere(self._given, entry):
            certain += [leaf for leaf in same if _cvxpy.source(leaf) == id(entry.given)]
        values = (_cvxpy.leaf_value(leaf) for leaf in certain)
        found = any(record_axis(entry.array, value) is not NO_MATCH for value in values)
        return set() if found else None


def shares_memory(array: Any, other: Any) -> bool:
    """Whether two arrays have numbers in the same memory; two columns of one table do not."""
    one, two = (a.data if _cvxpy.is_sparse(a) else a for a in (array, other))
    dense = isinstance(one, np.ndarray) and isinstance(two, np.ndarray)
    return bool(dense and np.shares_memory(one, two))


def _leaves_a_trace(entry: Entry) -> bool:
    """Whether CVXPY remembers where it copied an entry from."""
    array = entry.given
    return isinstance(array, np.ndarray) and array.dtype == np.float64 and array is entry.array


def _shares(leaf: Any, entry: Entry) -> bool:
    """Whether a leaf was not even copied."""
    return shares_memory(_cvxpy.leaf_value(leaf), entry.array)


def _settled(entries: Sequence[Entry], leaves: Sequence[Any]) -> set[int]:
    """Constant vectors that occur in the very shape they were given in.

    A public column of ones (n, 1) beside a target (n,) is not the target that happens to hold ones.
    """

    def occurs(entry: Entry, leaf: Any) -> bool:
        if entry.leaf is leaf:
            return True
        return bool(
            leaf.shape == entry.array.shape
            and record_axis(entry.array, _cvxpy.leaf_value(leaf)) is not NO_MATCH
        )

    return {
        i
        for i, entry in enumerate(entries)
        if min(entry.array.shape[1:], default=1) <= 1
        and is_constant(entry.array)
        and any(occurs(entry, leaf) for leaf in leaves)
    }
