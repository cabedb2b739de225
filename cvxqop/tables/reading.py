"""Tables as people have them, as one sequence of cells a column: what is asked for, and no more.

Nothing is inferred from the cells of a column. A message names columns that were declared, and no
other: the first line of a file without a header is a record.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from cvxqop.errors import OptionError, ProblemError
from cvxqop.problem.records.parquet_files import open_file

__all__ = ["columns_of"]

_NOT_A_TIME = np.iinfo(np.int64).min


def columns_of(
    table: Any, names: Sequence[str], encoding: str = "utf-8-sig", delimiter: str = ","
) -> tuple[dict[str, Any], int]:
    """The cells of each column in ``names``: a list, or an array of numbers or datetime64.

    Parameters
    ----------
    table : str, path, data frame of pandas or polars, table of pyarrow, or mapping of columns
        A path that ends in .parquet or .pq is read as Parquet, any other as CSV, all cells as text.
    names : sequence of str
        Which columns.
    encoding, delimiter : str
        Of a CSV file.

    Returns
    -------
    cells : dict
    n : int
        Number of rows.

    Raises
    ------
    ProblemError
        A column is missing or there twice, or the table is none of these.
    OptionError
        There is no such encoding, or the delimiter is none.
    """
    if isinstance(table, str | os.PathLike):
        place = os.fspath(table)
        if not os.path.isfile(place):
            raise ProblemError(f"There is no file {place}.")
        if place.lower().endswith((".parquet", ".pq")):
            cells = _from_parquet(place, names)
        else:
            cells = _from_csv(place, names, encoding, delimiter)
    elif hasattr(table, "collect") or hasattr(table, "compute"):
        raise ProblemError("The table is not in memory: pass it after .collect() or .compute().")
    elif hasattr(table, "column_names") and hasattr(table, "combine_chunks"):
        cells = _from_arrow(table, names)
    elif hasattr(table, "iloc") and hasattr(table, "columns"):
        places = _places(list(table.columns), names)
        rows = slice(None)
        cells = {
            name: _taken(name, table.iloc.__getitem__, (rows, i)) for name, i in places.items()
        }
    elif hasattr(table, "get_columns"):
        columns = table.get_columns()
        places = _places([column.name for column in columns], names)
        cells = {name: _taken(name, columns.__getitem__, i) for name, i in places.items()}
    elif isinstance(table, Mapping):
        _places(list(table), names)
        cells = {name: _taken(name, table.__getitem__, name) for name in names}
    else:
        raise ProblemError(
            "The table must be the path of a CSV or Parquet file, a data frame of pandas or "
            f"polars, or a dict of columns, not {type(table).__name__}."
        )
    counts = {len(column) for column in cells.values()}
    if len(counts) > 1:
        raise ProblemError("The columns of the table have different lengths.")
    return cells, counts.pop() if counts else 0


def _places(found: Sequence[Any], names: Iterable[str]) -> dict[str, int]:
    """Where each name stands."""
    places: dict[str, list[int]] = {name: [] for name in names}
    for i, name in enumerate(found):
        if isinstance(name, str) and name in places:
            places[name].append(i)
    for name, at in places.items():
        if not at:
            raise ProblemError(
                f"The table has no column {name!r}, which the schema declares. Names of columns "
                "must agree to the letter; a CSV file begins with a line of them."
            )
        if len(at) > 1:
            raise ProblemError(f"Several columns of the table are called {name!r}; rename them.")
    return {name: at[0] for name, at in places.items()}


def _from_csv(path: str, names: Sequence[str], encoding: str, delimiter: str) -> dict[str, Any]:
    """The columns of a CSV file as texts; a row that ends early has empty cells, one that goes on
    too long is cut. Bytes that are no text are replaced, so that one row spoils no other."""
    try:
        with open(path, newline="", encoding=encoding, errors="replace") as file:
            rows = csv.reader(file, delimiter=delimiter)
            places = _places([name.strip() for name in next(rows, [])], names)
            taken = [
                [row[i] if i < len(row) else "" for i in places.values()] for row in rows if row
            ]
    except (LookupError, TypeError):
        problem: Exception = OptionError(
            "encoding must be one that Python knows, such as 'utf-8-sig' or 'cp1252', and "
            "delimiter one character."
        )
    except (csv.Error, OSError, UnicodeError):
        problem = ProblemError(
            f"{path} cannot be read as CSV. Is a quote not closed, or the encoding another one?"
        )
    else:
        columns = list(map(list, zip(*taken, strict=True))) if taken else [[] for _ in places]
        return dict(zip(places, columns, strict=True))
    raise problem


def _from_parquet(path: str, names: Sequence[str]) -> dict[str, Any]:
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError:
        raise ImportError("Parquet files need pyarrow: pip install cvxqop[parquet]") from None
    file = open_file(path)
    places = _places(file.schema_arrow.names, names)
    cells = {name: _taken(name, _arrow_column, file, name) for name in places}
    file.close()
    return cells


def _from_arrow(table: Any, names: Sequence[str]) -> dict[str, Any]:
    places = _places(table.column_names, names)
    return {name: _taken(name, _arrow_column, table, name) for name in places}


def _arrow_column(source: Any, name: str) -> Any:
    """A column of a table or file of pyarrow. Moments go on as numbers, since not all of them are
    dates of Python."""
    from pyarrow import int32, int64, types

    table = source.read([name]) if hasattr(source, "read") else source
    column = table.column(name)
    kind = column.type
    if not (types.is_timestamp(kind) or types.is_date(kind)):
        return column.to_pylist()
    unit = "D" if types.is_date32(kind) else "ms" if types.is_date64(kind) else kind.unit
    ticks = column.cast(int32() if unit == "D" else int64()).cast(int64()).fill_null(_NOT_A_TIME)
    return ticks.to_numpy().astype(f"datetime64[{unit}]")


def _taken(name: str, get: Any, *where: Any) -> Any:
    """A column as a list, or as an array of numbers or of datetime64."""
    try:
        column = get(*where)
        dtype = getattr(column, "dtype", None)
        if str(dtype).startswith("Date"):  # of polars
            column = column.to_numpy()
        plain = isinstance(getattr(column, "dtype", None), np.dtype)
        if plain and column.dtype.kind in "biufMm" and not isinstance(column, np.ma.MaskedArray):
            found: Any = np.asarray(column)
        elif isinstance(column, list | tuple):
            found = list(column)
        else:
            found = column.to_list() if hasattr(column, "to_list") else column.tolist()
        if isinstance(found, list | np.ndarray) and getattr(column, "ndim", 1) == 1:
            return found
    except Exception:  # its words may hold cells
        pass
    raise ProblemError(f"The column {name!r} of the table is not one that can be read.")
