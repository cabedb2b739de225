"""Dask arrays of records, chunked by rows: what is known of them here, and nothing that is read."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from cvxqop._blocks import is_sparse
from cvxqop.errors import ProblemError
from cvxqop.problem.records.forms import as_numbers

__all__ = ["DaskRows", "as_dask_array", "is_dask"]


def is_dask(data: Any) -> bool:
    """Whether ``data`` is an array, a frame or another collection of Dask."""
    return hasattr(data, "__dask_graph__") and hasattr(data, "__dask_keys__")


def as_dask_array(data: Any, name: str) -> Any:
    """``data`` itself, if it is an array of real numbers in chunks of known lengths.

    Raises
    ------
    ProblemError
        If it is something else. Of a data frame the way to an array is told: Dask itself fails at
        the lengths of a frame of chosen columns (its issues 12411, 12193).
    """
    kind = type(data)  # an object of dask.delayed says that it has whatever is asked for
    if hasattr(kind, "to_dask_array"):
        raise ProblemError(
            f"{name} is a data frame of Dask: make an array of the whole frame once, then slice "
            "it: table = frame.to_dask_array(lengths=True), X = table[:, 1:], y = table[:, 0]. "
            "Choose no columns before: Dask loses the lengths of the chunks then."
        )
    if not all(hasattr(kind, part) for part in ("chunks", "rechunk", "dtype")):
        raise ProblemError(f"{name} must be an array of Dask, not {kind.__name__}.")
    if any(np.isnan(side) for side in data.shape):
        raise ProblemError(
            f"{name}: the lengths of the chunks are unknown. Call array.compute_chunk_sizes(), or "
            "make the array with to_dask_array(lengths=True)."
        )
    return as_numbers(data, name)


class DaskRows:
    """A Dask array with one row a record. Its chunks are read by the workers of Dask only.

    Parameters
    ----------
    array : dask.array.Array, shape (n, p) or (n,)
        See `as_dask_array`. Chunks of columns are put together, on the workers.
    name : str
        Name for messages.
    """

    remote = True

    def __init__(self, array: Any, name: str) -> None:
        if array.ndim > 1 and len(array.chunks[1]) > 1:
            array = array.rechunk({1: -1})
        self.array, self.name, self.dtype = array, name, array.dtype
        self.shape = (int(array.shape[0]), int(array.shape[1]) if array.ndim > 1 else 1)
        self.sparse = is_sparse(getattr(array, "_meta", None))
        self.readings: dict[Any, Any] = {}

    @property
    def edges(self) -> npt.NDArray[np.int64]:
        """Where chunks begin, and n."""
        return np.cumsum([0, *self.array.chunks[0]])

    def within(self, lengths: tuple[int, ...]) -> Any:
        """The Dask array in chunks of these lengths."""
        same = lengths == tuple(self.array.chunks[0])
        return self.array if same else self.array.rechunk({0: lengths})

    def __getitem__(self, key: slice) -> NoReturn:
        raise ProblemError(f"{self.name} is a Dask array: its rows are read by workers only.")
