"""Arrays of records that stay where they are: memory maps, sparse matrices, lists of blocks."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from cvxqop._blocks import canonical
from cvxqop._cvxpy import is_sparse
from cvxqop.errors import ProblemError
from cvxqop.problem.records.dask_arrays import DaskRows, as_dask_array, is_dask
from cvxqop.problem.records.forms import as_numbers, floats

__all__ = ["BlockList", "RowSlices", "as_records", "is_elsewhere"]


class BlockList:
    """Blocks of rows one below the other; a slice reads only the blocks that it meets."""

    def __init__(self, blocks: Sequence[Any], name: str) -> None:
        widths = {tuple(block.shape[1:]) for block in blocks}
        if len(widths) != 1:
            raise ProblemError(f"The blocks of {name} must have the same number of columns.")
        # Rows of a CSR matrix are sliced at the cost of the slice.
        self.blocks = tuple(canonical(b) if is_sparse(b) else b for b in blocks)
        self.edges = np.cumsum([0, *(block.shape[0] for block in blocks)])
        self.shape = (int(self.edges[-1]), *next(iter(widths)))
        self.ndim = len(self.shape)
        self.dtype = np.result_type(*(block.dtype for block in blocks))
        self.sparse = all(is_sparse(block) for block in blocks)

    def __getitem__(self, key: slice) -> Any:
        start, stop, _ = key.indices(self.shape[0])
        parts: list[Any] = []
        for block, begin in zip(self.blocks, self.edges, strict=False):
            low, high = max(start - begin, 0), min(stop - begin, block.shape[0])
            if low < high:
                part = block[low:high]
                parts.append(part if self.sparse else _dense(part))
        if len(parts) == 1:
            return parts[0]
        if self.sparse:
            return sp.vstack(parts) if parts else sp.csr_array((0, self.shape[1]))
        return np.concatenate(parts) if parts else np.zeros((0, *self.shape[1:]))


class RowSlices:
    """An (n, p) array-like of which only slices of rows are ever read, as float64.

    Parameters
    ----------
    array : array-like
        Anything with ``shape``, ``dtype`` and slices of rows: NumPy arrays and memory maps,
        `BlockList`, arrays of Zarr or HDF5.
    name : str
        Name for messages.
    """

    def __init__(self, array: Any, name: str) -> None:
        self._array, self._name = array, name
        self.shape = (int(array.shape[0]), int(array.shape[1]) if len(array.shape) > 1 else 1)
        self.sparse = bool(getattr(array, "sparse", False))
        self.edges = getattr(array, "edges", None)
        self._check_map()

    def __getitem__(self, key: slice) -> Any:
        self._check_map()
        if self.sparse:
            return canonical(self._array[key])
        rows = _dense(self._array[key])
        return rows.reshape(rows.shape[0], self.shape[1])

    def _check_map(self) -> None:
        """Reading past the end of a mapped file would end the process; refuse instead."""
        array = self._array
        if not isinstance(array, np.memmap) or array.filename is None:
            return
        try:
            size = os.path.getsize(array.filename)
        except OSError:
            raise ProblemError(f"The file behind the memory map {self._name} is gone.") from None
        if size < array.offset + array.nbytes:
            raise ProblemError(
                f"The file behind the memory map {self._name} is shorter than its shape says: it "
                "is truncated."
            )


def as_records(data: Any, name: str, axes: tuple[int, ...]) -> Any:
    """A sparse matrix as it is, a Dask array as `DaskRows`, anything else as `RowSlices`; no copy.

    Parameters
    ----------
    data : array-like, sparse matrix, DataFrame, or a list of numbers or of blocks of rows
        One row a record. What is masked or missing is NaN.
    name : str
        Name for messages.
    axes : tuple of int
        Numbers of axes that are allowed.

    Raises
    ------
    ProblemError
        If ``data`` is of another kind, not real, or has another number of axes.
    """
    array = data if is_dask(data) else as_numbers(data, name)
    if isinstance(array, (list, tuple)):
        if any(map(is_dask, array)):
            raise ProblemError(f"{name} is a list of Dask arrays: pass dask.array.concatenate(…).")
        blocks = [as_array(block, f"a block of {name}") for block in array]
        if not blocks:
            raise ProblemError(f"{name} is an empty list of blocks.")
        array = BlockList(blocks, name)
    array = as_dask_array(array, name) if is_dask(array) else as_array(array, name)
    if len(array.shape) not in axes:
        raise ProblemError(
            f"{name} has {len(array.shape)} axes; it must have {' or '.join(map(str, axes))}."
        )
    if is_dask(array):
        return DaskRows(array, name)
    return array if is_sparse(array) else RowSlices(array, name)


def is_elsewhere(array: Any) -> bool:
    """Whether an array is not in the memory of this process, so that it cannot be listed."""
    return is_dask(array) or bool(getattr(type(array), "outside", ""))


def as_array(data: Any, name: str) -> Any:
    """``data`` itself if it has a shape, a real dtype and slices."""
    array = as_numbers(data, name)
    complete = all(hasattr(array, name) for name in ("shape", "dtype", "__getitem__"))
    if not (complete or is_sparse(array)) or len(array.shape) == 0:
        raise ProblemError(
            f"{name} must be an array, a memory map, a sparse matrix, a DataFrame or a list of "
            f"numbers or of blocks of rows, not {type(data).__name__}."
        )
    return array


def _dense(block: Any) -> Any:
    return canonical(block).toarray() if is_sparse(block) else floats(block)
