"""The forms in which people have numbers: arrays, masked arrays, lists, pandas and polars objects.

What is taken is decided by types alone, never by values. An error names the column and a cure; a
cell appears in none, which is why every conversion that fails is reported `from None`.
"""

from __future__ import annotations

import numbers
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from cvxqop.errors import ProblemError

__all__ = ["as_numbers", "floats", "is_boolean", "is_list_of_numbers", "is_masked"]

Array = npt.NDArray[np.float64]

REAL = "biuf"
ONE_HOT = (
    "one 0/1 column a category says the same in numbers: cvxqop.Schema makes them from the levels "
    "that you declare, or write them yourself, {}"
)
CURES = {
    "c": "take its .real, .imag or np.abs(…)",
    "f": "double precision is what is computed in, so pass .astype(float)",
    "O": "if it holds numbers, pass .astype(float)",
    "M": "subtract a public date and divide by a unit, such as np.timedelta64(1, 'D')",
    "m": "divide by a unit, such as np.timedelta64(1, 'D')",
    "V": "pass numpy.lib.recfunctions.structured_to_unstructured(…)",
}
FRAME_CURES = {
    **CURES,
    "M": "subtract a public date and divide by pd.Timedelta(days=1)",
    "m": "divide by pd.Timedelta(days=1)",
}


def as_numbers(data: Any, name: str) -> Any:
    """The numbers of ``data`` as an array or array-like of a real dtype; a real array as it is.

    Missing entries (pd.NA, None, polars' null) become NaN; masked arrays stay masked.

    Parameters
    ----------
    data : array-like, DataFrame, Series, Index or list of numbers
        What was given. Anything else comes back as it is.
    name : str
        Name for messages.

    Raises
    ------
    ProblemError
        A column, or the whole, is not of a real type that double precision holds.
    """
    library = _library(data)
    if library == "pandas":
        return _pandas_frame(data, name) if hasattr(data, "columns") else _pandas(data, name)
    if library == "polars":
        return _polars(data, name)
    if is_list_of_numbers(data):
        return _from_list(data)
    array = data.to_numpy() if hasattr(data, "to_numpy") else data
    if isinstance(array, np.matrix):
        array = np.asarray(array)
    if hasattr(array, "dtype"):
        _check_real(_dtype(array, name), name)
    return array


def is_boolean(data: Any) -> bool:
    """Whether the types of ``data``, or of its blocks, say that all entries are False or True."""
    if isinstance(data, bool):
        return True
    if isinstance(data, list | tuple):
        return bool(data) and all(map(is_boolean, data))
    dtypes = list(getattr(data, "dtypes", [])) if hasattr(data, "columns") else []
    kinds = [_kind(dtype) for dtype in dtypes or [getattr(data, "dtype", None)]]
    return all(kind == "b" for kind in kinds)


def is_masked(data: Any) -> bool:
    """Whether ``data`` is a masked array, with or without an entry that is masked."""
    return isinstance(data, np.ma.MaskedArray)


def is_list_of_numbers(data: Any) -> bool:
    """Whether ``data`` is a list of numbers, or of lists of numbers (None is a missing one)."""
    if not isinstance(data, list | tuple) or not data:
        return False
    if all(isinstance(row, list | tuple) for row in data):
        return all(bool(row) and all(map(_is_number, row)) for row in data)
    return all(map(_is_number, data))


def floats(block: Any) -> Array:
    """A dense block of numbers as float64, masked entries NaN; no copy where it is that already."""
    if is_masked(block):
        return np.asarray(block.astype(np.float64).filled(np.nan))
    return np.asarray(block, dtype=np.float64)


def _dtype(array: Any, name: str) -> np.dtype[Any]:
    try:
        dtype: np.dtype[Any] = np.dtype(array.dtype)
        return dtype
    except TypeError:
        pass
    raise ProblemError(f"{name} has a dtype that NumPy does not know: pass np.asarray(…) of it.")


def _check_real(dtype: np.dtype[Any], name: str) -> None:
    """Refuse a NumPy dtype that is not real or has more digits than double precision."""
    if dtype.kind in "US":
        _refuse(name, dtype, ONE_HOT.format("such as (x[:, None] == categories).astype(float)"))
    if not _is_real(dtype):
        _refuse(name, dtype, CURES.get(dtype.kind, "convert it first"))


def _is_number(entry: Any) -> bool:
    return entry is None or isinstance(entry, numbers.Real | np.bool_)


def _is_real(dtype: Any) -> bool:
    """Whether a NumPy or pandas dtype holds real numbers of at most double precision."""
    return dtype.kind in REAL and not (dtype.kind == "f" and getattr(dtype, "itemsize", 8) > 8)


def _kind(dtype: Any) -> str:
    """The letter of NumPy for a dtype of NumPy, pandas or polars; empty for what has none."""
    return "b" if str(dtype) == "Boolean" else str(getattr(dtype, "kind", ""))


def _library(data: Any) -> str:
    """ "pandas" or "polars" where a class of ``data`` comes from there."""
    names = {cls.__module__.split(".")[0] for cls in type(data).__mro__}
    return next((name for name in ("pandas", "polars") if name in names), "")


def _from_list(data: Any) -> Array:
    """A list of numbers as an array, whatever the size of its integers.

    Raises
    ------
    ProblemError
        Its rows have different lengths.
    """
    if not isinstance(data[0], list | tuple):
        return np.array([_number(entry) for entry in data])
    if len({len(row) for row in data}) > 1:
        raise ProblemError("The rows of a nested list must have the same number of entries.")
    return np.array([[_number(entry) for entry in row] for row in data])


def _number(entry: Any) -> float:
    try:
        return np.nan if entry is None else float(entry)
    except OverflowError:  # an integer beyond the range of float64 is as valid as one within
        return sys.float_info.max if entry > 0 else -sys.float_info.max


def _pandas_frame(frame: Any, name: str) -> Any:
    """A frame as an array: its own memory where all columns have one dtype of NumPy."""
    dtypes = list(frame.dtypes)
    for column, dtype in zip(frame.columns, dtypes, strict=True):
        _check_pandas(dtype, f"{name}, column {column!r},", f"frame, columns=[{column!r}], ")
    if len(set(dtypes)) == 1 and isinstance(dtypes[0], np.dtype):
        return frame.to_numpy()
    return _columns(
        (_values(frame.iloc[:, j], name) for j in range(len(dtypes))), (len(frame), len(dtypes))
    )


def _pandas(series: Any, name: str) -> Any:
    """A series, an index or an extension array as an array."""
    column = getattr(series, "name", None)
    label = name if column is None else f"{name}, column {column!r},"
    _check_pandas(series.dtype, label, "series, ")
    return series.to_numpy() if isinstance(series.dtype, np.dtype) else _values(series, name)


def _check_pandas(dtype: Any, label: str, arguments: str) -> None:
    """Refuse a dtype of pandas; its ``kind`` is that of NumPy, "O" for what NumPy has not."""
    if _is_real(dtype):
        return
    dummies = ONE_HOT.format(f"such as pd.get_dummies({arguments}dtype=float)")
    if str(dtype) == "object":
        _refuse(label, dtype, f"if it holds numbers, pass .astype(float); if not, {dummies}")
    _refuse(label, dtype, FRAME_CURES[dtype.kind] if dtype.kind in "fcmM" else dummies)


def _values(series: Any, name: str) -> Array:
    """A column of pandas as float64, pd.NA as NaN."""
    try:
        if str(series.dtype).startswith("Sparse"):
            return np.asarray(series, dtype=np.float64)
        return np.asarray(series.to_numpy(dtype=np.float64, na_value=np.nan))
    except Exception:  # its words may hold cells
        pass
    raise ProblemError(f"{name} could not be converted: pass .astype(float).")


def _polars(data: Any, name: str) -> Any:
    """A series or a frame of polars as an array of float64, null as NaN."""
    if not hasattr(data, "to_numpy"):
        raise ProblemError(f"{name} must be a polars DataFrame or Series: pass .collect().")
    framed = hasattr(data, "columns")
    columns = list(data.get_columns()) if framed else [data]
    for series in columns:
        label = f"{name}, column {series.name!r}," if series.name else name
        _check_polars(series.dtype, label, "frame" if framed else "series")
    double = sys.modules["polars"].Float64
    values = (series.cast(double).to_numpy() for series in columns)
    return _columns(values, tuple(data.shape)) if framed else next(values)


def _check_polars(dtype: Any, label: str, given: str) -> None:
    if dtype.is_integer() or dtype.is_float() or str(dtype) == "Boolean":
        return
    if dtype.is_numeric():
        _refuse(label, dtype, "pass .cast(pl.Float64)")
    if dtype.is_temporal():
        _refuse(label, dtype, "subtract a public date and pass .dt.total_days()")
    _refuse(label, dtype, ONE_HOT.format(f"such as {given}.to_dummies()"))


def _columns(values: Iterator[Any], shape: tuple[int, ...]) -> Array:
    """An array filled column by column, so that one column at a time is converted."""
    array = np.empty(shape)
    for j, column in enumerate(values):
        array[:, j] = column
    return array


def _refuse(name: str, dtype: Any, cure: str) -> None:
    raise ProblemError(f"{name} must hold real numbers, not dtype {dtype}: {cure}.")
