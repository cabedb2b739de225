"""What every array of a problem is: private, listed as public, or neither."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import cvxpy as cp
import numpy as np

from cvxqop import _cvxpy
from cvxqop.errors import ProblemError
from cvxqop.problem.private.entries import Entry, check_outside, read_entries
from cvxqop.problem.private.matching import Finder, Match, shares_memory
from cvxqop.problem.private.persons import Persons
from cvxqop.problem.records.forms import is_boolean

__all__ = ["Match", "PrivateData", "Unlisted", "match", "public_entries"]


@dataclass(frozen=True, eq=False)
class Unlisted:
    """An array of the problem that is listed nowhere.

    ``owner`` is the leaf that holds it, or the node that keeps it in a slot, ``where`` in words.
    """

    owner: Any
    array: Any
    where: str = ""
    is_index: bool = False


class PrivateData:
    """The lists ``private`` and ``public``, and what they hold of a problem.

    Attributes
    ----------
    count_is_private : bool
        The number of records must not decide anything, nor appear in a message.
    dropped : bool
        Some private entry does not occur. CVXPY reads ``e + zeros`` as ``e``, so that it may have
        been an offset that happens to be zero: whether it is must not decide anything.
    counts : set of int
        Lengths that an axis of records may have.
    unlisted : list of Unlisted
        The arrays that are neither private nor listed as public, each once.
    hidden : dict {node: set of int}
        Nodes that keep private arrays beside their arguments, and which.
    """

    def __init__(
        self, reading: _Reading, count_is_private: bool, within: Collection[int] = ()
    ) -> None:
        self.count_is_private = count_is_private
        self._entries, self._held, self._within = reading.entries, reading.held, within
        self._all = [*reading.entries, *reading.held]
        self._found, self.hidden = reading.found, reading.hidden
        self._shown, self._variables = reading.shown, reading.variables
        self.unlisted, self._lengths = reading.unlisted, reading.lengths
        occurring = {self._given(match.entry) for match in self._found.values()}
        occurring |= {self._given(i) for entries in self.hidden.values() for i in entries}
        occurring |= {id(entry.given) for entry in self._held}
        occurring |= {self._given(i) for i in within}
        self.dropped = any(id(entry.given) not in occurring for entry in self._entries)
        self._contains: dict[Any, bool] = {}

    def _given(self, i: int) -> int:
        """Which object entry i is: an ``id`` that the entry keeps from passing to another one."""
        return id(self._all[i].given)

    @property
    def records(self) -> int | None:
        """Number of rows of the entries, others that were made of them in their place; None where
        they disagree."""
        own = [entry for i, entry in enumerate(self._entries) if i not in self._within]
        counts = {int(entry.array.shape[0]) for entry in own}
        return counts.pop() if len(counts) == 1 else None

    @property
    def counts(self) -> set[int]:
        """Lengths that an axis of records may have."""
        return {int(entry.array.shape[0]) for entry in self._entries} | self._lengths

    @property
    def sizes(self) -> set[int]:
        """Numbers of entries that an array of records may have, however it is folded."""
        return {int(np.prod(entry.array.shape)) for entry in self._all}

    @property
    def arrays(self) -> tuple[Any, ...]:
        """The arrays of all entries."""
        return tuple(entry.array for entry in self._all)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the entries, in the order given."""
        return tuple(entry.name for entry in self._all)

    @property
    def descriptions(self) -> tuple[str, ...]:
        """Name and shape of each entry, n in place of the number of records."""
        return tuple(f"{entry.name}, shape {_shape(entry, True)}" for entry in self._entries)

    @property
    def leaf_names(self) -> dict[Any, str]:
        """Name of every private leaf."""
        names = self.names
        return {leaf: names[match.entry] for leaf, match in self._found.items()}

    @property
    def leaf_shapes(self) -> dict[Any, tuple[int | str, ...]]:
        """Shape of every private leaf, the number of records replaced by n."""
        shapes: dict[Any, tuple[int | str, ...]] = {}
        for leaf, match in self._found.items():
            entry = self._all[match.entry]
            shape: tuple[int | str, ...] = ("n", *entry.array.shape[1:])
            shapes[leaf] = shape[::-1] if match.axis == 1 else shape
        return shapes

    def match(self, leaf: Any) -> Match | None:
        """The entry that a leaf holds, or None for one that is not private."""
        return self._found.get(leaf)

    def shows(self, leaf: Any) -> bool:
        """Whether a leaf holds what is listed in ``public``."""
        return leaf in self._shown

    def is_unlisted(self, node: Any) -> bool:
        """Whether a node is, or keeps, an array that is listed nowhere."""
        return any(unlisted.owner is node for unlisted in self.unlisted)

    def is_boolean(self, leaf: Any) -> bool:
        """Whether a leaf holds an entry that was given as booleans."""
        hit = self._found.get(leaf)
        return hit is not None and is_boolean(self._all[hit.entry].given)

    def is_listed(self, variable: Any) -> bool:
        """Whether the shape of a variable is listed in ``public``."""
        return any(variable is other for other in self._variables)

    def has_listed(self, node: Any) -> bool:
        """Whether the shapes of all variables of an expression are listed in ``public``."""
        return all(map(self.is_listed, _cvxpy.variables(node)))

    @property
    def public_descriptions(self) -> tuple[str, ...]:
        """What ``public`` states: name and shape of each entry that occurs, n for the number of
        records, and the variables whose shape is listed."""
        entries = dict.fromkeys(self._shown.values())
        counts = set() if self.count_is_private else self.counts
        shapes = [["n" if s in counts else s for s in e.array.shape] for e in entries]
        texts = zip((e.name for e in entries), map(_cvxpy.format_shape, shapes), strict=True)
        released = (
            f"the shape of the variable {v.name()}"
            for v in self._variables
            if self.count_is_private and v.ndim
        )
        return (*(f"{name}, shape {shape}" for name, shape in texts), *released)

    def contains(self, node: Any) -> bool:
        """Whether records occur in an expression or a constraint, in whatever it holds."""
        known = self._contains.get(node)
        if known is None:
            known = any(map(self._is_private, _cvxpy.holdings(node).nodes))
            self._contains[node] = known  # the key keeps the node, and so its address, alive
        return known

    def _is_private(self, node: Any) -> bool:
        return node in self._found or node in self.hidden or _cvxpy.holds_records(node)

    def found_in(self, node: Any) -> list[str]:
        """Names of the entries that occur in an expression or constraint, with their shapes."""
        nodes = _cvxpy.holdings(node).nodes
        return self.found_among(nodes, nodes)

    def found_among(self, owners: Iterable[Any], leaves: Iterable[Any]) -> list[str]:
        """Names of the entries in slots of ``owners`` and in ``leaves``, with their shapes."""
        indices = {self._found[leaf].entry for leaf in leaves if leaf in self._found}
        for owner in owners:
            indices |= self.hidden.get(owner, set())
        found = [self._all[i] for i in sorted(indices)]
        return [f"{entry.name} {_shape(entry, self.count_is_private)}" for entry in found]


@dataclass(eq=False)
class _Reading:
    """What was found where, on the way to `PrivateData`."""

    entries: list[Entry]
    held: list[Entry]
    variables: list[Any]
    lengths: set[int] = field(default_factory=set)
    found: dict[Any, Match] = field(default_factory=dict)
    hidden: dict[Any, set[int]] = field(default_factory=dict)
    shown: dict[Any, Entry] = field(default_factory=dict)
    unlisted: list[Unlisted] = field(default_factory=list)


def match(
    private: Sequence[Any],
    roots: Iterable[Any],
    count_is_private: bool = False,
    public: Sequence[Any] = (),
    persons: Persons | None = None,
    within: Collection[int] = (),
) -> PrivateData:
    """Find the listed arrays in everything that the expressions and constraints in ``roots`` hold.

    ``within`` are entries that other entries were made of, and that count as found.

    Raises
    ------
    ProblemError
        If an entry has a wrong type or dtype, or is listed as both, or something occurs whose
        contents cannot be looked at.
    """
    entries, held, lengths = read_entries(private), [], set()
    whole = _cvxpy.holdings(list(roots))
    leaves = [node for node in whole.nodes if _holds_numbers(node)]
    for node in whole.nodes:
        if _cvxpy.holds_records(node):
            held += [Entry(array, None, given, name) for array, given, name in node.held()]
            lengths.add(int(node.n))  # of all blocks together, and of what is only read by slices
    if persons is not None and persons.numbers is not None:
        held.append(Entry(persons.numbers, None, persons.given, "persons"))
    shown, variables = public_entries(public)
    _check_disjoint([*entries, *held], shown)
    finder = Finder(private, [*entries, *held], leaves)
    listing = Finder(public, shown, leaves, trace=False)
    reading = _Reading(entries, held, variables, lengths)
    for leaf in leaves:
        mine, open_ = finder.find(leaf), listing.find(leaf)
        # What holds the numbers of both is private, unless it is known to come from the public one.
        if mine is not None and (open_ is None or not listing.originates(leaf, open_.entry)):
            reading.found[leaf] = mine
        elif open_ is not None:
            reading.shown[leaf] = shown[open_.entry]
        elif leaf.ndim and leaf.size:
            reading.unlisted.append(Unlisted(leaf, _cvxpy.leaf_value(leaf)))
    for slot in whole.slots:
        i, j = finder.find_array(slot.array), listing.find_array(slot.array)
        # As for leaves: a private array that happens to hold the same numbers decides nothing.
        if i is not None and not listing.is_given(slot.array):
            reading.hidden.setdefault(slot.owner, set()).add(i)
        elif j is None and slot.array.size:
            reading.unlisted.append(Unlisted(slot.owner, slot.array, slot.where, slot.is_index))
    return PrivateData(reading, count_is_private, within)


def _holds_numbers(node: Any) -> bool:
    leaf = isinstance(node, cp.Constant | cp.Parameter)
    return leaf and _cvxpy.leaf_value(node) is not None


def public_entries(public: Any) -> tuple[list[Entry], list[Any]]:
    """The arrays of ``public``, and the variables, whose shapes are listed.

    Raises
    ------
    ProblemError
        If it is no list, or something in it is no array.
    """
    check_outside(public, "public")
    if isinstance(public, np.ndarray | cp.Expression | str) or not isinstance(public, Iterable):
        raise ProblemError("public must be a list of arrays: write public=[G], not public=G.")
    variables = [item for item in public if isinstance(item, cp.Variable)]
    rest = [
        np.asarray(item) if isinstance(item, list | tuple) else item
        for item in public
        if not isinstance(item, cp.Variable)
    ]
    return read_entries(rest, "public"), variables


def _check_disjoint(private: Sequence[Entry], public: Sequence[Entry]) -> None:
    for one in private:
        for other in public:
            same = one.given is other.given or (one.leaf is not None and one.leaf is other.leaf)
            if same or shares_memory(one.array, other.array):
                raise ProblemError(
                    f"{other.name} is the array {one.name}, or lies in its memory: what is "
                    "private cannot be listed as public. Leave it out of one of the lists."
                )


def _shape(entry: Entry, hidden: bool) -> str:
    """Shape of an entry; ``hidden`` writes n for the number of records."""
    shape = entry.array.shape
    return _cvxpy.format_shape(("n", *shape[1:])) if hidden else str(tuple(map(int, shape)))
