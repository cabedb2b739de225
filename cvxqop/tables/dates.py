"""Dates as days after a public date: each cell by itself, by a declared format, never guessed."""

from __future__ import annotations

import datetime
import math
from typing import Any

import numpy as np

from cvxqop.tables.cells import each
from cvxqop.tables.columns import Array

__all__ = ["days_in", "days_of", "moment"]

_DAY = datetime.timedelta(days=1)
_EPOCH = datetime.datetime(1970, 1, 1)
_PER_DAY = {
    "W": 1 / 7, "D": 1.0, "h": 24.0, "m": 1440.0, "s": 86400.0, "ms": 86400e3, "us": 86400e6,
    "ns": 86400e9, "ps": 86400e12, "fs": 86400e15, "as": 86400e18,
}  # fmt: skip
_NOT_A_TIME = np.iinfo(np.int64).min


def days_in(cells: Any, origin: datetime.datetime, format: str | None) -> Array:
    """Days after ``origin`` of each cell, NaN for what is no date.

    Parameters
    ----------
    cells : array of datetime64, or list
        Dates, datetimes, datetime64 and texts.
    origin : datetime
        Public.
    format : str or None
        How texts are written, as in ``datetime.strptime``; None for ISO 8601.

    Examples
    --------
    >>> start = datetime.datetime(2020, 1, 1)
    >>> cells = ["2020-01-02", datetime.date(2020, 1, 3), "2020-01-01T12:00", "2020-02-30", 7]
    >>> days_in(cells, start, None).tolist()
    [1.0, 2.0, 0.5, nan, nan]
    """
    if isinstance(cells, np.ndarray) and cells.dtype.kind == "M":
        return _from_array(cells) - days_of(origin, _EPOCH)
    return each(lambda cell: _days(cell, origin, format), cells)


def days_of(value: datetime.datetime, origin: datetime.datetime) -> float:
    """Days from ``origin`` to a moment."""
    return (value - origin) / _DAY


def moment(cell: Any, format: str | None) -> datetime.datetime | None:
    """The moment that a cell states, without a time zone (in UTC if it had one), or None."""
    try:
        if isinstance(cell, str):
            text = cell.strip()
            cell = (
                datetime.datetime.fromisoformat(text)
                if format is None
                else datetime.datetime.strptime(text, format)
            )
        if not isinstance(cell, datetime.datetime):
            if not isinstance(cell, datetime.date):
                return None
            cell = datetime.datetime(cell.year, cell.month, cell.day)
        if cell != cell:  # NaT of pandas
            return None
        if cell.tzinfo is not None:
            cell = cell.astimezone(datetime.UTC).replace(tzinfo=None)
        day = datetime.date(cell.year, cell.month, cell.day)
        time = datetime.time(cell.hour, cell.minute, cell.second, cell.microsecond)
        return datetime.datetime.combine(day, time)
    except Exception:  # its words would hold the cell
        return None


def _days(cell: Any, origin: datetime.datetime, format: str | None) -> float:
    if isinstance(cell, np.datetime64):
        return float(_from_array(np.array([cell]))[0]) - days_of(origin, _EPOCH)
    found = moment(cell, format)
    return math.nan if found is None else days_of(found, origin)


def _from_array(cells: Any) -> Array:
    """Days after 1970 of an array of datetime64."""
    unit, count = np.datetime_data(cells.dtype)
    if unit not in _PER_DAY:  # years and months have no fixed length
        cells, unit, count = cells.astype("datetime64[D]"), "D", 1
    ticks = np.ascontiguousarray(cells).view(np.int64)
    days = ticks.astype(np.float64) * (count / _PER_DAY[unit])
    return np.where(ticks == _NOT_A_TIME, np.nan, days)
