"""Columns of Parquet files as arrays of records that stay where they are."""

from __future__ import annotations

import importlib.util
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from cvxqop.errors import ProblemError, sealed
from cvxqop.problem.records.parquet_files import find_table
from cvxqop.problem.records.parquet_reader import Reader

__all__ = ["ParquetColumns", "parquet_columns"]

Array = npt.NDArray[np.float64]


class ParquetColumns:
    """Columns of Parquet files as an array-like, (n, p) or (n,), for `glm_loss`.

    A slice of rows, ``X[start:stop]``, is read from the files as float64, with NaN for null; of the
    rows, nothing else is kept than what was decoded last. Made by `parquet_columns`.

    Attributes
    ----------
    shape, ndim
        Of the array.
    dtype
        bool for a target of False and True, which `glm_loss` reads as labels; float64 otherwise.
    edges : array of int64
        The first row of each row group, and n at the end: 0, …, n. A pass that reads whole row
        groups, in any order and from several threads, decodes each once.
    """

    outside = "columns of Parquet files"

    def __init__(
        self, reader: Reader, positions: tuple[int, ...], ndim: int, dtype: type, label: str
    ) -> None:
        self._reader, self._positions, self._label = reader, positions, label
        self.shape = (int(reader.edges[-1]), len(positions))[:ndim]
        self.ndim = ndim
        self.dtype = np.dtype(dtype)

    @property
    def edges(self) -> npt.NDArray[np.int64]:
        """Where row groups begin, and n."""
        return self._reader.edges

    def __len__(self) -> int:
        return self.shape[0]

    @sealed  # the frames below hold rows
    def __getitem__(self, key: slice) -> Array:
        if not isinstance(key, slice) or key.step not in (None, 1):
            raise TypeError("Columns of Parquet files give slices of rows, such as X[0:1000].")
        start, stop, _ = key.indices(self.shape[0])
        rows = np.empty((max(0, stop - start), len(self._positions)))
        for batch in self._reader.batches(start, stop):
            low, high = max(start, batch.start), min(stop, batch.stop)
            part = rows[low - start : high - start]
            for j, position in enumerate(self._positions):
                part[:, j] = batch.columns[position][low - batch.start : high - batch.start]
        return rows.reshape(len(rows), *self.shape[1:])

    def __array__(self, dtype: Any = None, copy: Any = None) -> NoReturn:
        """Refuse: CVXPY and NumPy would read all files into memory."""
        raise ProblemError(
            f"{self!r} stands in cvxqop.glm_loss only, where it is read by blocks of rows. As an "
            "array in memory it is X[:]."
        )

    def __repr__(self) -> str:
        return f"ParquetColumns({self._label})"


def parquet_columns(
    path: Any, features: Any = None, target: str | None = None
) -> tuple[ParquetColumns, ParquetColumns | None]:
    """Columns of a Parquet file, or of a folder of files, as X and y of `glm_loss`.

    Only names, types and numbers of rows are read here. `glm_loss` then reads blocks of rows, so
    that files may be larger than memory: X and y share what is decoded, and a pass over the records
    decodes every row group once. Losses other than squared ones take many passes, in some of them
    at random places; a memory map is quicker there if there is disk for it.

    Parameters
    ----------
    path : str or path
        A file, or a folder: its files lie one below the other in the order of their names, apart
        from those that begin with a dot or an underscore. Columns that are held in the names of
        folders (``year=2020/``) are not supported.
    features : list of str, optional
        Columns of X, in this order. None: every column of numbers but the target and an index of
        pandas.
    target : str, optional
        The column y. None: there is no y.

    Returns
    -------
    X : ParquetColumns, shape (n, p)
        Integers, floats, decimals and booleans as float64; null is NaN.
    y : ParquetColumns, shape (n,), or None
        A column of booleans is one of labels, as in `glm_loss`.

    Raises
    ------
    ProblemError
        If there is no such file or column, a column is not of numbers, or the files have different
        columns. Later, when rows are read: if a file is gone, has changed or is damaged.
    OptionError
        If ``features`` is no list of names, or holds the target.
    ImportError
        Without pyarrow: ``pip install cvxqop[parquet]``.

    Examples
    --------
    >>> import os, tempfile
    >>> import cvxpy as cp, cvxqop, pyarrow, pyarrow.parquet
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = os.path.join(folder.name, "people.parquet")
    >>> table = pyarrow.table({"age": [0.25, 0.5], "pay": [1.0, None], "town": ["A", "B"]})
    >>> pyarrow.parquet.write_table(table, path)
    >>> X, y = cvxqop.parquet_columns(path, ["age"], "pay")
    >>> X[0:2].tolist(), y[0:2].tolist()
    ([[0.25], [0.5]], [1.0, nan])
    >>> term = cvxqop.glm_loss("squared", X, y, cp.Variable(1))
    >>> folder.cleanup()
    """
    if importlib.util.find_spec("pyarrow") is None:
        raise ImportError("parquet_columns needs pyarrow: pip install cvxqop[parquet]")
    table = find_table(path, features, target)
    names = table.features if target is None else (*table.features, target)
    read = tuple(dict.fromkeys(names))
    reader = Reader(table.files, read)
    positions = tuple(read.index(name) for name in table.features)
    X = ParquetColumns(reader, positions, 2, float, f"{str(path)!r}, {len(positions)} columns")
    if target is None:
        return X, None
    dtype, label = bool if table.boolean else float, f"{str(path)!r}, {target!r}"
    return X, ParquetColumns(reader, (read.index(target),), 1, dtype, label)
