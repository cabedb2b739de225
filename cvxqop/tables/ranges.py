"""Numbers and dates of a table, mapped from their public range to [−1, 1]."""

from __future__ import annotations

import datetime
import math
import numbers
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from cvxqop.errors import OptionError
from cvxqop.tables.cells import CURRENCIES, each, number_in
from cvxqop.tables.columns import Array, Feature, check_rule
from cvxqop.tables.dates import days_in, days_of, moment

__all__ = ["Date", "Number"]

_SMALLEST, _LARGEST = 1e-70, 1e70


class _Scaled:
    """v in [low, high] as (2v − low − high)/(high − low); what lies beyond is cut to the range.

    With ``missing="own"`` there is a second entry: (v, 0) of what is there and (0, 1) of what is
    missing, so that the norm stays within 1.
    """

    low: Any
    high: Any
    missing: Any

    def _ends(self) -> tuple[float, float]:
        return self.low, self.high

    def _public(self) -> float:
        """The public value in the place of a missing one."""
        return float(self.missing)

    @property
    def middle(self) -> float:
        """Where the entry is 0."""
        low, high = self._ends()
        return 0.5 * (low + high)

    @property
    def half(self) -> float:
        """What moves the entry by 1."""
        low, high = self._ends()
        return 0.5 * (high - low)

    def ruled(self, missing: Any, unknown: Any) -> Self:
        """As `Column`."""
        return replace(self, missing=missing) if self.missing is None else self  # type: ignore[type-var]

    def code(self, values: Array) -> Array:
        """As `Column`."""
        low, high = self._ends()
        if self.missing not in (None, "drop", "own"):
            values = np.where(np.isnan(values), self._public(), values)
        # Cut twice: before, so that nothing overflows; after, because a quotient is rounded.
        entries = np.clip((np.clip(values, low, high) - self.middle) / self.half, -1.0, 1.0)
        if self.missing != "own":
            return np.asarray(entries[:, None])
        absent = np.isnan(values)
        return np.column_stack([np.where(absent, 0.0, entries), absent.astype(float)])

    def to_units(self) -> tuple[Array, Array]:
        """As `Column`. A missing value has an effect of its own, in the place of slope · value."""
        ratio = self.middle / self.half
        if self.missing != "own":
            return np.array([[1.0 / self.half]]), np.array([-ratio])
        return np.array([[1.0 / self.half, 0.0], [ratio, 1.0]]), np.array([-ratio, 0.0])

    def counts(self, values: Array) -> dict[str, int]:
        """As `Column`."""
        low, high = self._ends()
        absent, beyond = np.isnan(values), (values < low) | (values > high)
        return {
            "read": int(np.sum(~absent & ~beyond)),
            "beyond the range": int(np.sum(beyond)),
            "missing": int(np.sum(absent)),
        }

    def _features(self, name: str, label: str) -> tuple[Feature, ...]:
        first = Feature(name, f"{name}, {label}")
        own = Feature(f"{name} missing", f"{name} missing")
        return (first, own) if self.missing == "own" else (first,)

    def _rule(self) -> str:
        if isinstance(self.missing, str):
            told = {"drop": "dropped", "own": "an entry of its own"}[self.missing]
        else:
            told = f"taken for {self.missing}"
        return f"missing: {told}"


@dataclass(frozen=True)
class Number(_Scaled):
    """A column of numbers with a public range.

    Coded as (2v − low − high)/(high − low), from −1 to 1. A value beyond the range is cut to it.
    What is no finite number is missing: an empty cell, a word, infinity, digits of other scripts.

    Parameters
    ----------
    low, high : float
        Smallest and largest value that is possible, in the units of the column.
    unit : str
        What stands before or behind the numbers in texts, such as "kg", and in the names of
        coefficients. Without it, one of $ € £ ¥ may stand there.
    decimal : {".", ","}
        The decimal mark of texts; the other one, a space or an apostrophe may separate groups of
        three digits.
    missing : {"drop", "own"} or float, optional
        The record is dropped, there is an entry of its own for "missing", or this public value is
        taken. None: the rule of the schema.

    Raises
    ------
    OptionError
        An argument is of a wrong type, or the range is empty.

    Examples
    --------
    >>> pay = Number(0, 100_000, missing=20_000)
    >>> pay.code(pay.read(["$45,000", "NA", "2.5e5"])).ravel().tolist()
    [-0.1, -0.6, 1.0]
    """

    low: float
    high: float
    unit: str = ""
    decimal: str = "."
    missing: Any = None

    def __post_init__(self) -> None:
        for name in ("low", "high"):
            object.__setattr__(self, name, _finite(f"Number: {name}", getattr(self, name)))
        if not self.high - self.low >= _SMALLEST:
            raise OptionError(f"Number: low must be below high, not {self.low:g}, {self.high:g}.")
        if not isinstance(self.unit, str) or any(c in "0123456789+-.," for c in self.unit):
            raise OptionError("Number: unit must be a text without digits, signs and marks.")
        if self.decimal not in (".", ","):
            raise OptionError('Number: decimal must be "." or ",".')
        if self.missing is not None and not isinstance(self.missing, str):
            _finite("Number: missing", self.missing)
        elif self.missing is not None:
            check_rule("Number: missing", self.missing, False)

    def features(self, name: str) -> tuple[Feature, ...]:
        """As `Column`."""
        return self._features(name, f"per {self.unit or 'unit'}")

    def read(self, cells: Any) -> Array:
        """As `Column`."""
        if isinstance(cells, np.ndarray) and cells.dtype.kind in "biuf":
            with np.errstate(over="ignore"):
                values = cells.astype(np.float64)
            return np.where(np.isfinite(values), values, np.nan)
        units = (self.unit.strip(),) if self.unit.strip() else CURRENCIES
        return each(lambda cell: number_in(cell, units, self.decimal), cells)

    def describe(self) -> tuple[str, str]:
        """As `Column`."""
        unit = f" {self.unit}" if self.unit else ""
        return f"number from {self.low:g} to {self.high:g}{unit}", self._rule()


@dataclass(frozen=True)
class Date(_Scaled):
    """A column of dates with a public range, counted in days from its beginning.

    Times of day count as parts of a day; those with a time zone are taken in UTC, the others as
    they are. A date beyond the range is cut to it. What is no date is missing.

    Parameters
    ----------
    low, high : date, datetime or str
        First and last possible date; a text is of ISO 8601, "2020-01-31".
    format : str, optional
        How texts are written, in the codes of ``datetime.strptime``: "%d/%m/%Y". None: ISO 8601.
    missing : {"drop", "own"}, date or str, optional
        As in `Number`; a public date in the place of a missing one.

    Raises
    ------
    OptionError
        An argument is of a wrong type, or the range is empty.

    Examples
    --------
    >>> joined = Date("2020-01-01", "2020-01-11", format="%d.%m.%Y")
    >>> joined.read(["02.01.2020", "2020-01-02"]).tolist()
    [1.0, nan]
    """

    low: Any
    high: Any
    format: str | None = None
    missing: Any = None

    def __post_init__(self) -> None:
        for name in ("low", "high", "missing"):
            value = getattr(self, name)
            if name == "missing" and (value is None or value in ("drop", "own")):
                continue
            found = moment(value, None)
            if found is None:
                raise OptionError(
                    f'Date: {name} must be a date, such as "2020-01-31", not {value!r}.'
                )
            object.__setattr__(self, name, found)
        if not self.low < self.high:
            raise OptionError("Date: low must be before high.")
        if not isinstance(self.format, str | None):
            raise OptionError('Date: format must be a text, such as "%d/%m/%Y", or None.')

    def _ends(self) -> tuple[float, float]:
        return 0.0, days_of(self.high, self.low)

    def _public(self) -> float:
        return days_of(self.missing, self.low)

    def features(self, name: str) -> tuple[Feature, ...]:
        """As `Column`."""
        return self._features(name, f"per day after {_day(self.low)}")

    def read(self, cells: Any) -> Array:
        """As `Column`."""
        return days_in(cells, self.low, self.format)

    def describe(self) -> tuple[str, str]:
        """As `Column`."""
        written = f", written {self.format}" if self.format else ""
        return f"date from {_day(self.low)} to {_day(self.high)}{written}", self._rule()


def _day(value: datetime.datetime) -> str:
    return value.isoformat(" ").removesuffix(" 00:00:00")


def _finite(what: str, value: Any) -> float:
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Real):
        raise OptionError(f"{what} must be a number, not {type(value).__name__}.")
    number = float(value)
    if not (math.isfinite(number) and abs(number) <= _LARGEST):
        raise OptionError(f"{what} must lie between -{_LARGEST:g} and {_LARGEST:g}.")
    return number
