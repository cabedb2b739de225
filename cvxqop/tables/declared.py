"""Declarations of columns, in short or written out."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any

from cvxqop.errors import OptionError
from cvxqop.tables.categories import Category, boolean
from cvxqop.tables.columns import Column
from cvxqop.tables.ranges import Date, Number

__all__ = ["declared", "pairs_of", "target_of"]

_SHORT = (
    "(low, high) for numbers or dates, a list of levels for a category, bool, or a Number, Date or "
    "Category of cvxqop.tables"
)


def declared(columns: Any, missing: str, unknown: str) -> dict[str, Column]:
    """The declarations by the names of their columns, with these rules where they state none.

    Raises
    ------
    OptionError
        There is none, or one is not understood. It names the column.
    """
    if not isinstance(columns, Mapping) or not columns:
        raise OptionError(
            f"Schema: columns must be a dict that declares columns by name: {_SHORT}."
        )
    return {_name(n): _declared(n, short).ruled(missing, unknown) for n, short in columns.items()}


def target_of(target: Any) -> dict[str, Column]:
    """The declaration of the target by its name.

    Raises
    ------
    OptionError
        It is not one column of numbers or classes.
    """
    if not isinstance(target, Mapping) or len(target) != 1:
        raise OptionError(
            'Schema: target must be a dict of one column, such as {"spend": (0, 5_000)}.'
        )
    found = declared(target, "drop", "drop")
    ((name, column),) = found.items()
    if not isinstance(column, Number | Category) or (
        isinstance(column, Number) and column.missing == "own"
    ):
        raise OptionError(
            f"Schema: the target {name!r} must be numbers or a category, and a missing number "
            "among them is dropped or a public value: it has no entry of its own, and a date is "
            "a number of days, computed beforehand."
        )
    return found


def pairs_of(interactions: Any, columns: Mapping[str, Column]) -> tuple[tuple[str, str], ...]:
    """The pairs of columns that are multiplied.

    Raises
    ------
    OptionError
        One is no pair of declared columns, is there twice, or is that of a category with itself.
    """
    pairs = list(interactions) if isinstance(interactions, list | tuple) else [interactions]
    found: list[tuple[str, str]] = []
    for pair in pairs:
        named = isinstance(pair, list | tuple) and len(pair) == 2
        if not named or not all(isinstance(n, str) and n in columns for n in pair):
            raise OptionError(
                "Schema: interactions must be a list of pairs of declared columns, such as "
                '[("age", "sex")].'
            )
        first, second = pair
        if (first, second) in found or (second, first) in found:
            raise OptionError(
                f"Schema: the interaction of {first!r} and {second!r} is there twice."
            )
        column = columns[first]
        alone = len(column.features(first)) == 1 and not isinstance(column, Category)
        if first == second and not alone:
            raise OptionError(
                f"Schema: {first!r} is not multiplied with itself: that is for numbers and dates "
                "without an entry for what is missing."
            )
        found.append((first, second))
    return tuple(found)


def _name(name: Any) -> str:
    if not isinstance(name, str):
        raise OptionError(f"Schema: the name of a column must be a text, not {name!r}.")
    return name


def _declared(name: str, short: Any) -> Column:
    try:
        if isinstance(short, Number | Date | Category):
            return short
        if short is bool:
            return boolean()
        if isinstance(short, tuple) and len(short) == 2:
            low, high = short
            if all(isinstance(end, str | datetime.date) for end in short):
                return Date(low, high)
            return Number(low, high)
        if isinstance(short, list | Mapping):
            return Category(short)
    except OptionError as error:
        words = isinstance(short, tuple) and all(isinstance(one, str) for one in short)
        told = ' The levels of a category are a list: ["F", "M"].' if words else ""
        problem = OptionError(f"Schema: column {name!r}: {error}{told}")
    else:
        problem = OptionError(f"Schema: column {name!r} must be declared as {_SHORT}.")
    raise problem
