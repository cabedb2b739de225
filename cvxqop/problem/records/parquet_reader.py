"""Rows of Parquet files, decoded in order, a batch of rows at a time.

A row group may hold a million rows. It is decoded as it is read, so that memory is that of a few
pages of each column and of the last batches, whatever the size of the group.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from cvxqop.errors import ProblemError
from cvxqop.problem.records.parquet_files import File, file_status, open_file, row_counts
from cvxqop.problem.records.sums import BLOCK_ROWS

__all__ = ["Batch", "Reader"]

BATCH_ENTRIES = 2**20
# A slice of no more entries than these, or no more rows than a block, is decoded once for X and y.
KEPT_ENTRIES = 2**21


@dataclass(frozen=True)
class Batch:
    """The rows from ``start`` to ``stop``: one array of numbers a column."""

    start: int
    stop: int
    columns: tuple[npt.NDArray[Any], ...] = field(repr=False)


class _Progress(threading.local):
    """How far a thread has read, and the batches that it read last."""

    def __init__(self) -> None:
        self.recent: deque[Batch] = deque()
        self.file: Any = None
        self.index = -1
        self.rewind()

    def rewind(self) -> None:
        """Forget the row group that is being read."""
        self.batches: Iterator[Any] = iter(())
        self.position = self.end = 0

    def keep(self, batch: Batch, rows: int) -> Batch:
        """The batch, kept with those before it that are needed to have ``rows`` rows or more."""
        self.recent.append(batch)
        spare = sum(one.stop - one.start for one in self.recent) - rows
        while spare >= (size := self.recent[0].stop - self.recent[0].start):
            self.recent.popleft()
            spare -= size
        return batch


class Reader:
    """Columns of files that lie one below the other.

    Each thread reads on its own, so that several may read different row groups at once; one that
    reads in order decodes every row group once. What travels to another process is the names of
    files and columns and the layout of the row groups; the files are opened there.

    Parameters
    ----------
    files : tuple of File
        In order.
    columns : tuple of str
        Each once.
    """

    def __init__(self, files: tuple[File, ...], columns: tuple[str, ...]) -> None:
        self._files, self._columns = files, columns
        self._groups = [
            (i, j) for i, file in enumerate(files) for j, rows in enumerate(file.rows) if rows
        ]
        self.edges = np.cumsum([0, *(files[i].rows[j] for i, j in self._groups)], dtype=np.int64)
        self.edges.flags.writeable = False
        self._size = max(BLOCK_ROWS, BATCH_ENTRIES // len(columns))
        self._kept = self._size + max(BLOCK_ROWS, KEPT_ENTRIES // len(columns))
        self._modified = {index: _modified(file.path) for index, file in enumerate(files)}
        self._progress = _Progress()

    def __reduce__(self) -> tuple[Any, ...]:
        return Reader, (self._files, self._columns)

    def batches(self, start: int, stop: int) -> Iterator[Batch]:
        """The batches that hold the rows from ``start`` to ``stop``, in order.

        Raises
        ------
        ProblemError
            A file is gone, has changed since it was found, or cannot be decoded.
        """
        while start < stop:
            batch = self._batch(start)
            yield batch
            start = batch.stop

    def _batch(self, row: int) -> Batch:
        progress = self._progress
        for batch in progress.recent:
            if batch.start <= row < batch.stop:
                return batch
        if not progress.position <= row < progress.end:
            self._begin(int(np.searchsorted(self.edges, row, "right")) - 1)
        while True:
            start, columns = progress.position, self._next()
            progress.position = start + len(columns[0])
            if row < progress.position:
                break
        return progress.keep(Batch(start, progress.position, columns), self._kept)

    def _begin(self, group: int) -> None:
        """Go to the first row of a row group."""
        progress = self._progress
        progress.rewind()
        index, place = self._groups[group]
        self._check(index)
        if progress.index != index:
            progress.index, progress.file = -1, None
            progress.file = self._open(index)
            progress.index = index
        progress.batches = progress.file.iter_batches(
            self._size, row_groups=[place], columns=list(self._columns), use_threads=False
        )
        progress.position, progress.end = (int(edge) for edge in self.edges[group : group + 2])

    def _next(self) -> tuple[npt.NDArray[Any], ...]:
        """The columns of the next batch."""
        progress = self._progress
        try:
            return _numbers(next(progress.batches), self._columns)
        except Exception:  # its words may hold values
            pass
        path = self._files[progress.index].path
        progress.rewind()
        progress.index, progress.file = -1, None
        raise ProblemError(f"{path} could not be read: the file is damaged or has changed.")

    def _open(self, index: int) -> Any:
        file = open_file(self._files[index].path)
        if row_counts(file) != self._files[index].rows:
            raise _changed(self._files[index].path)
        return file

    def _check(self, index: int) -> None:
        """The file is still the one that was found."""
        file = self._files[index]
        found = file_status(file.path)
        modified = self._modified[index]
        if (found.st_size, found.st_mtime_ns) != (file.size, modified):
            raise _changed(file.path)


def _modified(path: str) -> int:
    """When the file was changed, as this machine says; 0 where there is none, to be refused."""
    try:
        return file_status(path).st_mtime_ns
    except ProblemError:
        return 0


def _changed(path: str) -> ProblemError:
    return ProblemError(
        f"The file {path} has changed since it was opened. Call parquet_columns again."
    )


def _numbers(batch: Any, names: tuple[str, ...]) -> tuple[npt.NDArray[Any], ...]:
    """Columns as arrays of real dtypes, null as NaN; no copy where Arrow has that already."""
    import pyarrow
    from pyarrow import types

    arrays = []
    for column in map(batch.column, names):
        kind = column.type
        if column.null_count or not (types.is_integer(kind) or types.is_floating(kind)):
            column = column.cast(pyarrow.float64(), safe=False).fill_null(float("nan"))
        arrays.append(np.from_dlpack(column))
    return tuple(arrays)
