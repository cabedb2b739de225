"""What one cell says, read by itself: a number, a word, or nothing.

Nothing here sees another cell, and nothing raises: what cannot be read is missing. The words of an
error of NumPy or Python would hold the cell.
"""

from __future__ import annotations

import functools
import math
import numbers
import re
from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["CURRENCIES", "MISSING", "each", "id_in", "number_in", "word_in"]

CURRENCIES = ("$", "€", "£", "¥")
"""Signs that may stand before or behind a number whose column declares no unit."""

MISSING = frozenset({"", "na", "n/a", "#n/a", "<na>", "nan", "null", "none", "nat", "-", "?", "."})
"""Words for a missing entry, in small letters, where they are no declared level."""

_REMEMBERED = 2**16
_NUMBER = re.compile(
    r"(?:\d{1,3}(?:([,' \u00a0\u202f])\d{3}(?:\1\d{3})*)|\d+)?(?:\.\d*)?(?:[eE][-+]?\d+)?", re.ASCII
)
_WHOLE = re.compile(r"([-+]?\d+)\.0+", re.ASCII)
_SWAPPED = str.maketrans(",.", ".,")


def each(read: Callable[[Any], float], cells: Iterable[Any]) -> npt.NDArray[np.float64]:
    """What is read of every cell by itself; texts that come again are read once."""
    text = functools.lru_cache(_REMEMBERED)(read)
    return np.fromiter((text(c) if type(c) is str else read(c) for c in cells), np.float64)


def number_in(cell: Any, units: tuple[str, ...] = CURRENCIES, decimal: str = ".") -> float:
    """The finite number that a cell states, or NaN.

    Parameters
    ----------
    cell : object
        A number, a Boolean (0 or 1) or a text: digits of ASCII with an optional sign, exponent and
        one of ``units``, in groups of three or not: ``-$45,000``, ``1 200.5``, ``3e4``.
    units : tuple of str
        What may stand before or behind the digits.
    decimal : {".", ","}
        The decimal mark of texts.

    Examples
    --------
    >>> number_in("-$45,000"), number_in(" 1.200,5 €", decimal=","), number_in(True)
    (-45000.0, 1200.5, 1.0)
    >>> number_in("45,5"), number_in("1e400"), number_in("about 30"), number_in(None)
    (nan, nan, nan, nan)
    """
    if type(cell) is float:
        return cell if math.isfinite(cell) else math.nan
    if isinstance(cell, str):
        cell = _plain(cell, units, decimal)
    elif not _is_number(cell):
        return math.nan
    try:
        value = float(cell)
    except Exception:
        return math.nan
    return value if math.isfinite(value) else math.nan


def word_in(cell: Any) -> str | None:
    """The word of a cell, None for a cell that is neither text, number nor Boolean.

    The types of a column in a data frame depend on all of its cells, so that a whole number reads
    the same as an integer, as a float and as text.

    Examples
    --------
    >>> word_in(" N "), word_in(3), word_in(3.0), word_in("3.0"), word_in(True), word_in(None)
    ('N', '3', '3', '3', 'True', None)
    """
    try:
        if isinstance(cell, str):
            text = cell.strip()
            whole = _WHOLE.fullmatch(text)
            return whole.group(1) if whole else text
        if isinstance(cell, bool | np.bool_):
            return str(bool(cell))
        if isinstance(cell, numbers.Integral) and _is_number(cell):
            return str(int(cell))
        if _is_number(cell):
            value = float(cell)
            return str(int(value)) if value.is_integer() else None if value != value else str(value)
    except Exception:
        pass
    return None


def id_in(cell: Any) -> str:
    """The id of a person as text, empty for a missing one."""
    word = word_in(cell) or ""
    return "" if word.lower() in MISSING else word


def _is_number(cell: Any) -> bool:
    """Whether a cell is a number by its type; a span of time of NumPy is an integer of another."""
    number = isinstance(cell, numbers.Real | Decimal | np.bool_)
    return number and not isinstance(cell, np.timedelta64)


def _plain(text: str, units: tuple[str, ...], decimal: str) -> str:
    """The text as Python writes numbers, without unit and groups; empty for anything else."""
    sign, text = _sign(text.strip())
    for unit in units:
        bare = text.removeprefix(unit)
        bare = text.removesuffix(unit) if bare == text else bare
        if bare != text:
            text = bare.strip()
            break
    if not sign:
        sign, text = _sign(text)
    if decimal == ",":
        text = text.translate(_SWAPPED)
    found = _NUMBER.fullmatch(text)
    return "" if found is None else sign + text.replace(found.group(1) or ",", "")


def _sign(text: str) -> tuple[str, str]:
    """A sign at the beginning, and the rest."""
    if text[:1] in ("-", "−"):
        return "-", text[1:].strip()
    return ("+", text[1:].strip()) if text[:1] == "+" else ("", text)
