"""Which leaves of a problem hold records: arrays by value, constants and parameters by identity."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from cvxqop import _cvxpy
from cvxqop.errors import ProblemError
from cvxqop.problem.compare import NO_MATCH, is_zero, record_axis
from cvxqop.problem.entries import Entry, read_entries
from cvxqop.problem.matching import Match, find_private

__all__ = ["Match", "PrivateData", "match"]


class PrivateData:
    """The entries of ``private`` and the leaves of the problem that hold them.

    ``dropped``: some entry is zero throughout and does not occur. CVXPY reads ``e + zeros`` as
    ``e``, so that the entry may have been an offset. ``count_is_private``: the number of records
    must not decide anything, nor appear in a message.
    """

    def __init__(
        self,
        entries: Sequence[Entry],
        found: dict[int, Match],
        dropped: bool,
        count_is_private: bool,
    ) -> None:
        self.dropped, self.count_is_private = dropped, count_is_private
        self._entries = entries
        self._found = found
        self._contains: dict[int, bool] = {}

    @property
    def records(self) -> int | None:
        """Number of rows of the entries; None where they disagree."""
        counts = {int(entry.array.shape[0]) for entry in self._entries}
        return counts.pop() if len(counts) == 1 else None

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the entries, in the order given."""
        return tuple(entry.name for entry in self._entries)

    @property
    def descriptions(self) -> tuple[str, ...]:
        """Name and shape of each entry, n in place of the number of records."""
        return tuple(f"{entry.name}, shape {_shape(entry, True)}" for entry in self._entries)

    @property
    def leaf_names(self) -> dict[int, str]:
        """Name of every private leaf, by ``id``."""
        return {leaf: self._entries[match.entry].name for leaf, match in self._found.items()}

    @property
    def leaf_shapes(self) -> dict[int, tuple[int | str, ...]]:
        """Shape of every private leaf by ``id``, the number of records replaced by n."""
        shapes: dict[int, tuple[int | str, ...]] = {}
        for leaf, match in self._found.items():
            shape: tuple[int | str, ...] = ("n", *self._entries[match.entry].array.shape[1:])
            shapes[leaf] = shape[::-1] if match.axis == 1 else shape
        return shapes

    def match(self, leaf: Any) -> Match | None:
        """The entry that a leaf holds, or None for a public one."""
        return self._found.get(id(leaf))

    def contains(self, node: Any) -> bool:
        """Whether records occur in an expression or a constraint that is kept alive."""
        known = self._contains.get(id(node))
        if known is None:
            known = any(
                id(inner) in self._found or _cvxpy.holds_records(inner)
                for inner in _cvxpy.nodes(node)
            )
            self._contains[id(node)] = known
        return known

    def found_in(self, node: Any) -> list[str]:
        """Names of the entries that occur in an expression or constraint, with their shapes."""
        indices = {
            self._found[id(leaf)].entry for leaf in _cvxpy.leaves(node) if id(leaf) in self._found
        }
        return [
            f"{self._entries[i].name} {_shape(self._entries[i], self.count_is_private)}"
            for i in sorted(indices)
        ]


def match(
    private: Sequence[Any], roots: Iterable[Any], count_is_private: bool = False
) -> PrivateData:
    """Find the private leaves among those of the expressions and constraints in ``roots``.

    Raises
    ------
    ProblemError
        If an entry has a wrong type or dtype, or occurs nowhere in the problem.
    """
    entries = read_entries(private)
    leaves = {
        id(leaf): leaf
        for root in roots
        for leaf in _cvxpy.leaves(root)
        if _cvxpy.kind(leaf) != "variable" and _cvxpy.leaf_value(leaf) is not None
    }
    found = find_private(private, entries, leaves)
    matched = [entries[i] for i in sorted({hit.entry for hit in found.values()})]
    dropped = False
    for entry in entries:
        if any(entry.given is other.given for other in matched):
            continue
        if is_zero(entry.array):
            dropped = True
        elif all(record_axis(entry.array, other.array) is NO_MATCH for other in matched):
            raise ProblemError(
                f"{entry.name}, {_describe(entry, count_is_private)}, does not occur in the "
                "problem. Pass the very array that the problem is written with: a slice, a product "
                "or a rescaled copy of it is another array, and must be listed itself. DataFrames "
                "are matched by their values."
            )
    return PrivateData(entries, found, dropped, count_is_private)


def _shape(entry: Entry, hidden: bool) -> str:
    """Shape of an entry; ``hidden`` writes n for the number of records."""
    shape = entry.array.shape
    return _cvxpy.format_shape(("n", *shape[1:])) if hidden else str(tuple(map(int, shape)))


def _describe(entry: Entry, hidden: bool) -> str:
    kind = {"Constant": "a constant", "Parameter": "a parameter"}.get(
        type(entry.given).__name__, "an array"
    )
    return f"{kind} of shape {_shape(entry, hidden)}"
