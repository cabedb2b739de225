"""Which leaf of a problem holds which private array, decided by origin first and by value second.

CVXPY copies arrays. It remembers the ``id`` of a dense float64 array that it copied, a parameter
and a constant made from a data frame share memory with their source, and everything else (sparse
arrays, other dtypes) leaves no trace. So there are three cases for a leaf with the numbers of an
entry of ``private``:

1. it is the entry, was copied from it, or shares its memory: it is private;
2. its source is known to be another object, and case 1 holds for some other leaf: it is public. A
   public array that happens to hold the private numbers is thus public whatever they are;
3. otherwise it is private, because values are all that is left to go by.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cvxqop import _cvxpy
from cvxqop.problem.compare import NO_MATCH, is_constant, record_axis
from cvxqop.problem.entries import Entry, held_elsewhere

__all__ = ["Match", "find_private"]


@dataclass(frozen=True)
class Match:
    """A leaf that holds entry ``entry``; its axis ``axis`` runs over the records.

    ``axis`` is None where both axes do (a symmetric array), and −1 where none does.
    """

    entry: int
    axis: int | None


def find_private(
    private: Any, entries: Sequence[Entry], leaves: Mapping[int, Any]
) -> dict[int, Match]:
    """The private ones among ``leaves``, constants and parameters by ``id``."""
    finder = _Finder(private, entries, list(leaves.values()))
    hits = ((key, finder.find(leaf)) for key, leaf in leaves.items())
    return {key: hit for key, hit in hits if hit is not None}


class _Finder:
    def __init__(self, private: Any, entries: Sequence[Entry], leaves: Sequence[Any]) -> None:
        self._private, self._entries, self._leaves = private, entries, leaves
        self._settled = _settled(entries, leaves)
        self._known: dict[int, set[int] | None] = {}

    def find(self, leaf: Any) -> Match | None:
        """The entry that a leaf holds, or None for a public one."""
        for i, entry in enumerate(self._entries):
            if entry.leaf is leaf:
                return Match(i, 0 if leaf.size > 1 else None)
        if leaf.ndim == 0:
            return None
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
            if straight and source is not None and self._is_other(source, i):
                continue
            return Match(i, axis)
        return None

    def _is_other(self, source: int, i: int) -> bool:
        """Whether the object behind ``source`` is known not to be entry i.

        Asked for leaves in the shape of the entry only: ``X.T`` is another object than ``X`` and
        private all the same.
        """
        if source in (id(self._entries[i].given), id(self._entries[i].array)):
            return False
        if i not in self._known:
            self._known[i] = self._sources(self._entries[i])
        known = self._known[i]
        return known is not None and source not in known

    def _sources(self, entry: Entry) -> set[int] | None:
        """What CVXPY may have copied the entry from; None if it is not certain to occur.

        An ``id`` is evidence only for an array that is older than the problem. A view, such as
        ``df.to_numpy()``, and an array without a name may have been made after it.
        """
        if any(entry.leaf is leaf for leaf in self._leaves):
            return {_cvxpy.source(entry.leaf) or 0}
        same = [leaf for leaf in self._leaves if leaf.shape == entry.array.shape and leaf.ndim]
        shared = [leaf for leaf in same if _shares(leaf, entry)]
        copied = [leaf for leaf in same if _cvxpy.source(leaf) == id(entry.given)]
        if entry.array.base is not None or not (copied and held_elsewhere(self._private, entry)):
            copied = []
        values = (_cvxpy.leaf_value(leaf) for leaf in shared + copied)
        certain = any(record_axis(entry.array, value) is not NO_MATCH for value in values)
        return set() if certain else None


def _shares(leaf: Any, entry: Entry) -> bool:
    """Whether a leaf was not even copied."""
    value = _cvxpy.leaf_value(leaf)
    dense = isinstance(value, np.ndarray) and isinstance(entry.array, np.ndarray)
    return bool(dense and np.may_share_memory(value, entry.array))


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
