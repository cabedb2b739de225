"""Persons with several rows: who a row belongs to, and which of a person's rows count.

The ids are as private as the rows. They are ranked once, before any row is read, by a rule that
looks at one person at a time, and nothing but the number of persons is made of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from cvxqop.errors import ProblemError
from cvxqop.problem.records.pieces import Leaf

__all__ = ["Persons"]

Array = npt.NDArray[np.float64]

_MISSING = (
    "persons: some ids are missing. Give every row the id of its person, such as a number of its "
    "own where nobody else's rows may be meant."
)
_ONE_COLUMN = "persons must be one column with one id a row."
_KINDS = "persons: the ids must be of one type, all numbers or all strings, that can be compared."


@dataclass(frozen=True, eq=False)
class Persons:
    """Whose rows are whose, and what a person's rows count.

    Attributes
    ----------
    shares : Leaf
        (n, 1): 1 for a row that is used and 0 for one that is left out; with the mean 1/m, m the
        number of rows of the person.
    count : int
        Number of persons.
    rows : int or None
        k, the most rows of a person that are used; None for the mean.
    given : object
        The ids as they were given.
    numbers : array or None
        The ids as an array that could occur in a problem, if they are numbers.

    Examples
    --------
    >>> people = Persons.of(["ann", "bob", "ann", "ann"], 2)
    >>> people.count, people.shares.take(0, 4)[:, 0].tolist()
    (2, [1.0, 1.0, 1.0, 0.0])
    >>> Persons.of(["ann", "bob", "ann"], "mean").shares.take(0, 3)[:, 0].tolist()
    [0.5, 1.0, 0.5]
    """

    shares: Leaf = field(repr=False)
    count: int
    rows: int | None
    given: Any = field(repr=False)
    numbers: Any = field(repr=False)

    @classmethod
    def of(cls, ids: Any, rows_per_person: int | str) -> Persons:
        """Rank the ids.

        Parameters
        ----------
        ids : array, column of pandas or polars, or list
            One a row, without missing ones.
        rows_per_person : int or "mean"
            k, or that the rows of a person weigh 1/m each.

        Raises
        ------
        ProblemError
            The ids are not one column, or some are missing or of another type. No id is told.
        """
        column = _column(ids)
        ranks, sizes, count = _ranked(_keys(column))
        k = None if rows_per_person == "mean" else int(rows_per_person)
        shares = 1.0 / sizes if k is None else (ranks < k).astype(float)
        array = np.asarray(column)
        numbers = array if array.dtype.kind in "biuf" else None
        return cls(Leaf(shares[:, None], "persons", True, "persons"), count, k, ids,
                   numbers)  # fmt: skip

    @property
    def n(self) -> int:
        """Number of rows, those that are left out included; private."""
        return int(self.shares.array.shape[0])

    @property
    def weights(self) -> Leaf | None:
        """1/m of every row, where rows are weighed."""
        return self.shares if self.rows is None else None

    @property
    def rule(self) -> str:
        """What becomes of the rows of a person, in words."""
        if self.rows is None:
            return "the rows of a person weigh 1/m each, m their number"
        if self.rows == 1:
            return "the first row of a person is used, in storage order"
        return f"at most {self.rows} rows of a person are used, the first in storage order"


def _column(ids: Any) -> Any:
    """The ids as an array of NumPy, or as a list of objects, none of them missing.

    Raises
    ------
    ProblemError
        As `Persons.of`.
    """
    if isinstance(ids, list | tuple):
        return list(ids)
    if hasattr(ids, "compute") or hasattr(ids, "collect"):
        raise ProblemError("persons must be in memory: pass the column after .compute().")
    if hasattr(ids, "columns") or isinstance(ids, str | bytes) or not hasattr(ids, "dtype"):
        raise ProblemError(f"{_ONE_COLUMN} Pass an array, a list, or a column of a data frame.")
    for name in ("isna", "is_null"):  # of pandas and of polars
        if hasattr(ids, name) and bool(getattr(ids, name)().any()):
            raise ProblemError(_MISSING)
    if np.ma.isMaskedArray(ids) and np.any(np.ma.getmaskarray(ids)):
        raise ProblemError(_MISSING)
    try:
        array = np.asarray(ids)
    except Exception:  # its words may hold an id
        array = np.empty((0, 0))
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise ProblemError(_ONE_COLUMN)
    return array if array.dtype.kind in "biufUSMm" else array.tolist()


def _keys(column: Any) -> npt.NDArray[Any]:
    """What tells persons apart, as an array that can be sorted."""
    if isinstance(column, np.ndarray):
        if column.dtype.kind in "fMm" and bool(np.any(column != column)):
            raise ProblemError(_MISSING)
        return column
    if any(map(_is_missing, column)):
        raise ProblemError(_MISSING)
    found = _counted(column) if len({_type(one) for one in column}) <= 1 else None
    if found is None:
        raise ProblemError(_KINDS)
    return found


def _counted(column: Iterable[Any]) -> npt.NDArray[np.intp] | None:
    """Numbers in order of appearance; None of what has no hash, whose words would hold an id."""
    seen: dict[Any, int] = {}
    try:
        return np.array([seen.setdefault(one, len(seen)) for one in column], dtype=np.intp)
    except Exception:
        return None


def _type(one: Any) -> Any:
    """The type, alike for the numbers and for the strings of Python and of NumPy."""
    return type(one.item() if isinstance(one, np.generic) else one)


def _is_missing(one: Any) -> bool:
    try:
        return one is None or bool(one != one)
    except Exception:  # pd.NA has no truth
        return True


def _ranked(
    keys: npt.NDArray[Any],
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp], int]:
    """Of each row how many of the same person stand before it and how many there are; how many
    persons."""
    n = len(keys)
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    starts = np.flatnonzero(np.append(n > 0, ordered[1:] != ordered[:-1]))
    lengths = np.diff(np.append(starts, n))
    ranks, sizes = np.empty(n, dtype=np.intp), np.empty(n, dtype=np.intp)
    ranks[order] = np.arange(n) - np.repeat(starts, lengths)
    sizes[order] = np.repeat(lengths, lengths)
    return ranks, sizes, len(starts)
