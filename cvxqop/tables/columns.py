"""What a column of a table may hold, declared: the contract of numbers, dates and categories.

A column is coded record by record, from its declaration alone, to entries of which those of one
record have a Euclidean norm of at most 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from cvxqop.errors import OptionError

__all__ = ["Array", "Column", "Feature", "check_rule"]

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Feature:
    """An entry that a column is coded to.

    Attributes
    ----------
    name : str
        What it is called.
    label : str
        What its coefficient is, after it was brought back to the units of the column.
    """

    name: str
    label: str


class Column(Protocol):
    """A declared column."""

    @property
    def missing(self) -> Any:
        """What becomes of a missing cell: "drop", "own" or a public value; None if not stated."""

    def ruled(self, missing: Any, unknown: Any) -> Column:
        """The column with these rules where it states none of its own."""

    def features(self, name: str) -> tuple[Feature, ...]:
        """What it is coded to."""

    def read(self, cells: Any) -> Array:
        """A number a cell, each from this cell alone; NaN for a missing one."""

    def code(self, values: Array) -> Array:
        """Entries (n, number of features) from what was read; NaN where the record is dropped."""

    def to_units(self) -> tuple[Array, Array]:
        """(T, s): coefficients θ of the entries are Tθ in the units of the column, and add s'θ to
        the intercept."""

    def counts(self, values: Array) -> dict[str, int]:
        """How many cells were read as what; NOT private."""

    def describe(self) -> tuple[str, str]:
        """The declaration, and the rules for what is missing or unknown, in words."""


def check_rule(what: str, rule: Any, value: bool) -> None:
    """A rule is "drop", "own", or, as ``value`` says, a public value of the column.

    Raises
    ------
    OptionError
        It is none of these.
    """
    if not (value or (isinstance(rule, str) and rule in ("drop", "own"))):
        raise OptionError(
            f'{what} must be "drop", "own" or a public value of the column, not {rule!r}.'
        )
