"""Which leaves of a problem hold records: arrays by value, constants and parameters by identity."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np

from cvxqop import _cvxpy
from cvxqop.errors import ProblemError
from cvxqop.problem.compare import NO_MATCH, is_constant, is_zero, record_axis

__all__ = ["PrivateData", "match"]


@dataclass(frozen=True, eq=False)
class _Entry:
    """One element of ``private``: its array, and the CVXPY leaf it was given as, if any."""

    array: Any
    leaf: Any
    given: Any
    name: str


@dataclass(frozen=True)
class Match:
    """A leaf that holds entry ``entry``; its axis ``axis`` runs over the records.

    ``axis`` is None where both axes do (a symmetric array), and −1 where none does.
    """

    entry: int
    axis: int | None


class PrivateData:
    """The entries of ``private`` and the leaves of the problem that hold them.

    ``dropped``: some entry is zero throughout and does not occur. CVXPY reads ``e + zeros`` as
    ``e``, so that the entry may have been an offset.
    """

    def __init__(self, entries: Sequence[_Entry], found: dict[int, Match], dropped: bool) -> None:
        self.dropped = dropped
        self._entries = entries
        self._found = found
        self._contains: dict[int, bool] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the entries, in the order given."""
        return tuple(entry.name for entry in self._entries)

    @property
    def descriptions(self) -> tuple[str, ...]:
        """Name and shape of each entry, n in place of the number of records."""
        return tuple(
            f"{entry.name}, shape {_cvxpy.format_shape(('n', *entry.array.shape[1:]))}"
            for entry in self._entries
        )

    @property
    def leaf_names(self) -> dict[int, str]:
        """Name of every private leaf, by ``id``."""
        return {leaf: self._entries[match.entry].name for leaf, match in self._found.items()}

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
            f"{self._entries[i].name} {_shape(self._entries[i].array)}" for i in sorted(indices)
        ]


def match(private: Sequence[Any], roots: Iterable[Any]) -> PrivateData:
    """Find the private leaves among those of the expressions and constraints in ``roots``.

    Raises
    ------
    ProblemError
        If an entry has a wrong type or dtype, or occurs nowhere in the problem.
    """
    entries = _entries(private)
    leaves = {
        id(leaf): leaf
        for root in roots
        for leaf in _cvxpy.leaves(root)
        if _cvxpy.kind(leaf) != "variable" and _cvxpy.leaf_value(leaf) is not None
    }
    settled = _settled(entries, list(leaves.values()))
    found: dict[int, Match] = {}
    for key, leaf in leaves.items():
        hit = _find(leaf, entries, settled)
        if hit is not None:
            found[key] = hit
    matched = [entries[i] for i in sorted({hit.entry for hit in found.values()})]
    dropped = False
    for entry in entries:
        if any(entry.given is other.given for other in matched):
            continue
        if is_zero(entry.array):
            dropped = True
        elif all(record_axis(entry.array, other.array) is NO_MATCH for other in matched):
            raise ProblemError(
                f"{entry.name}, {_describe(entry)}, does not occur in the problem. Pass the very "
                "array that the problem is written with: a slice, a product or a rescaled copy of "
                "it is another array, and must be listed itself. DataFrames are matched by their "
                "values."
            )
    return PrivateData(entries, found, dropped)


def _entries(private: Any) -> list[_Entry]:
    if (
        isinstance(private, (np.ndarray, cp.Expression))
        or _cvxpy.is_sparse(private)
        or hasattr(private, "to_numpy")
    ):
        raise ProblemError("private must be a list of arrays: write private=[X], not private=X.")
    if isinstance(private, (str, bytes)) or not isinstance(private, Iterable):
        raise ProblemError(
            f"private must be a list of arrays, constants or parameters, "
            f"not {type(private).__name__}."
        )
    return [_entry(item, f"private[{i}]") for i, item in enumerate(private)]


def _entry(item: Any, name: str) -> _Entry:
    leaf, array, label = None, item, name
    if isinstance(item, (cp.Constant, cp.Parameter)):
        leaf, array, label = item, _cvxpy.leaf_value(item), _cvxpy.given_name(item) or name
        if array is None:
            raise ProblemError(
                f"{name}, the parameter {item.name()}, has no value; set its value first."
            )
    elif hasattr(item, "to_numpy"):
        array = item.to_numpy()
    if not (isinstance(array, np.ndarray) or _cvxpy.is_sparse(array)):
        raise ProblemError(
            f"{name} must be a NumPy array, a SciPy sparse matrix, a pandas object, a cp.Constant "
            f"or a cp.Parameter, not {type(item).__name__}."
        )
    if array.dtype.kind not in "biuf":
        raise ProblemError(f"{name} must hold real numbers, not dtype {array.dtype}.")
    if array.ndim not in (1, 2):
        raise ProblemError(
            f"{name} must have one row a record, hence one or two axes, not {array.ndim}."
        )
    return _Entry(array, leaf, item, label)


def _find(leaf: Any, entries: Sequence[_Entry], settled: set[int]) -> Match | None:
    for i, entry in enumerate(entries):
        if entry.leaf is leaf:
            return Match(i, 0 if leaf.size > 1 else None)
    if leaf.ndim == 0:
        return None
    # Where two arrays hold the same values, the one that CVXPY copied decides.
    source = _cvxpy.source(leaf)
    for i in sorted(range(len(entries)), key=lambda i: id(entries[i].given) != source):
        axis = record_axis(entries[i].array, _cvxpy.leaf_value(leaf))
        other = i in settled and leaf.shape != entries[i].array.shape
        if axis is not NO_MATCH and not other:
            return Match(i, axis)
    return None


def _settled(entries: Sequence[_Entry], leaves: Sequence[Any]) -> set[int]:
    """Constant vectors that occur in the very shape they were given in.

    A public column of ones (n, 1) beside a target (n,) is not the target that happens to hold ones.
    """

    def occurs(entry: _Entry, leaf: Any) -> bool:
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


def _shape(array: Any) -> str:
    return str(tuple(int(side) for side in array.shape))


def _describe(entry: _Entry) -> str:
    kind = {"Constant": "a constant", "Parameter": "a parameter"}.get(
        type(entry.given).__name__, "an array"
    )
    return f"{kind} of shape {_shape(entry.array)}"
