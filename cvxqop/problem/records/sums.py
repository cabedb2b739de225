"""The one way to add something up over records.

Records are cut into *partitions*, and a partition into *blocks* that fit the cache. A kernel makes
a tuple of arrays of one block. The blocks of a partition are added in their order, and the sums of
partitions along a fixed tree, so that the answer does not depend on who computed which partition.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from cvxqop._blocks import is_sparse
from cvxqop.errors import CvxqopError, ProblemError
from cvxqop.problem.records import dask_sums
from cvxqop.problem.records.executors import run
from cvxqop.problem.records.pieces import Leaf

__all__ = ["Kernel", "Request", "Summed", "tree"]

Array = npt.NDArray[np.float64]
Kernel = Callable[..., tuple[Any, ...]]
Ranges = list[tuple[int, int]]

BLOCK_ENTRIES = 2**18
"""Entries of a row block (2 MiB): it stays in cache from the norm to the product."""

BLOCK_ROWS = 2**14
"""Rows of a block at most."""

FINE = 256
"""Rows of a block where sums are wanted with little rounding."""

SPARSE_SHARE = 64
"""No row is taken to have fewer than D/64 entries: blocks of sparse rows end somewhere."""

PARTITION_BLOCKS = 8
PARTITIONS = 64
FANOUT = 8


class Request(NamedTuple):
    """The arguments of `Summed.sum`."""

    kernel: Kernel
    args: tuple[Any, ...] = ()
    fine: bool = False
    chosen: Sequence[tuple[int, int]] | None = None
    combine: Callable[..., Any] = np.add

    def work(self, records: Summed, ranges: Ranges) -> tuple[Any, ...]:
        """The blocks of these ranges, added in their order."""
        return _partition(records, self.kernel, self.args, self.fine, self.combine, ranges)

    def merge(self, total: tuple[Any, ...], part: tuple[Any, ...]) -> tuple[Any, ...]:
        """The results of two partitions as one."""
        return _merged(total, part, combine=self.combine)


class Summed:
    """``sum`` for records that can be taken by rows: ``n``, ``dimension``, ``terms``, ``take``."""

    n: int
    dimension: int
    terms: int
    sparse: bool = False

    def take(self, start: int, stop: int) -> tuple[Any, Array]:
        """Rows A (stop − start, D) and numbers C (stop − start, ·) of the records start…stop."""
        raise NotImplementedError

    def blocks(self, size: int = 4096) -> Iterator[tuple[Any, Array]]:
        """``take`` over all records in order, ``size`` at a time; for looking at rows in tests."""
        for start in range(0, self.n, size):
            yield self.take(start, min(start + size, self.n))

    @property
    def edges(self) -> Array | None:
        """Where partitions begin and end, 0 … n, if the arrays say so."""
        return None

    @property
    def leaves(self) -> list[Leaf]:
        """The arrays that are read, where they may be replaced: see `over`."""
        return []

    @property
    def remote(self) -> bool:
        """Whether the records lie with workers, so that a pass over them is dear."""
        return any(getattr(leaf.array, "remote", False) for leaf in self.leaves)

    def over(self, arrays: Mapping[Any, Any], start: int, stop: int) -> Summed:
        """The records start…stop; ``arrays`` holds these records alone, by the keys of leaves."""
        raise NotImplementedError

    def sum(
        self,
        kernel: Kernel,
        *args: Any,
        fine: bool = False,
        chosen: Sequence[tuple[int, int]] | None = None,
        combine: Callable[..., Any] = np.add,
    ) -> tuple[Any, ...]:
        """Σ over blocks of ``kernel(A, C, *args)``.

        Parameters
        ----------
        kernel : callable
            A pure function of a block of rows A (b, D), C (b, ·); returns a tuple of new arrays or
            numbers whose shapes do not depend on the block. It may run in any thread or process.
        *args
            Passed on.
        fine : bool
            Blocks of 256 rows, added in extended precision.
        chosen : sequence of (start, stop), optional
            Only these records, in increasing order.
        combine : callable
            What takes the place of addition, such as ``np.maximum``.

        Returns
        -------
        tuple
            Of no records at all, what the kernel makes of an empty block.
        """
        (found,) = self.sums([(kernel, args, fine, chosen, combine)])
        return found

    def sums(self, requests: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        """`sum` for the fields of several `Request`; records that lie with workers are read once
        for all of them."""
        made = [Request(*request) for request in requests]
        return self._sums_of_workers(made) if self.remote else list(map(self._sum, made))

    def _sum(self, request: Request) -> tuple[Any, ...]:
        work, chosen = partial(request.work, self), request.chosen
        if chosen is not None and len(chosen) == 1 and chosen[0][1] - chosen[0][0] <= FINE:
            return work([chosen[0]])
        units = self._units(chosen)
        size = self.dimension * sum(stop - start for unit in units for start, stop in unit)
        with closing(run(work, units, size)) as parts:
            found = tree(parts, request.merge)
        return work([(0, 0)]) if found is None else found

    def _sums_of_workers(self, requests: Sequence[Request]) -> list[tuple[Any, ...]]:
        edges = self.partitions.tolist()
        tasks = []
        for request in requests:
            units = self._units(request.chosen)
            numbers = [bisect_right(edges, unit[0][0]) - 1 for unit in units]
            ranges = dict(zip(numbers, units, strict=True))
            order = tree(numbers, dask_sums.joined)
            tasks.append(dask_sums.Task(request.work, ranges, request.merge, order))
        found = iter(dask_sums.compute(self, edges, [task for task in tasks if task.ranges]))
        return [
            next(found) if task.ranges else request.work(dask_sums.nothing(self), [(0, 0)])
            for task, request in zip(tasks, requests, strict=True)
        ]

    @property
    def partitions(self) -> Array:
        """Where partitions begin and end: at edges of the arrays, each a block long at least."""
        block = self._block_rows(None)
        if self.edges is None:
            rows = max(PARTITION_BLOCKS * block, -(-self.n // PARTITIONS))
            return np.append(np.arange(0, self.n, rows), self.n)
        kept = [0]
        for edge in self.edges.tolist():
            if edge - kept[-1] >= block:
                kept.append(edge)
        return np.array([*kept, self.n] if kept[-1] < self.n else kept)

    def _units(self, chosen: Sequence[tuple[int, int]] | None) -> list[Ranges]:
        """The ranges of each partition, those that are chosen if some are."""
        edges = self.partitions
        bounds = list(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True))
        if chosen is None:
            return [[bound] for bound in bounds if bound[0] < bound[1]]
        units: list[Ranges] = []
        for low, high in bounds:
            cut = [(max(start, low), min(stop, high)) for start, stop in chosen]
            unit = [(start, stop) for start, stop in cut if start < stop]
            units += [unit] if unit else []
        return units

    def _block_rows(self, first: Any) -> int:
        """Records in a block: by D where rows are dense, by their fill where they are sparse.

        Products of sparse blocks fill up as they are added, so that few and large blocks are best.
        """
        D = max(1, self.dimension + self.terms)
        if first is None or not is_sparse(first) or not first.shape[0]:
            return int(min(BLOCK_ROWS, max(64, BLOCK_ENTRIES // D)))
        fill = max(first.nnz / first.shape[0], D / SPARSE_SHARE)
        return max(64, int(4 * BLOCK_ENTRIES / fill))


def _partition(
    records: Summed,
    kernel: Kernel,
    args: tuple[Any, ...],
    fine: bool,
    combine: Callable[..., Any],
    ranges: Ranges,
) -> tuple[Any, ...]:
    """The blocks of one partition, added in their order."""
    total: tuple[Any, ...] | None = None
    size = FINE if fine else 0
    for start, stop in ranges:
        if not size:
            first = _read(records, start, min(stop, start + FINE))[0] if records.sparse else None
            size = records._block_rows(first)
        for begin in range(start, max(stop, start + 1), size):
            part = kernel(*_read(records, begin, min(begin + size, stop)), *args)
            if total is None:
                total = tuple(map(_extended, part)) if fine else part
            else:
                total = _merged(total, part, combine=combine)
    assert total is not None
    return total


def _read(records: Summed, start: int, stop: int) -> tuple[Any, Array]:
    """``take``, whose failures do not say what they have seen."""
    try:
        return records.take(start, stop)
    except (CvxqopError, MemoryError):
        raise
    except Exception as error:
        kind = type(error).__name__
    raise ProblemError(
        f"The records could not be read: {kind} was raised. What it says is not shown here, for "
        "it may hold records. To see it, read rows of the arrays without cvxqop."
    )


def _extended(part: Any) -> Any:
    return part if is_sparse(part) else np.asarray(part, dtype=np.longdouble)


def _merged(
    total: tuple[Any, ...], part: tuple[Any, ...], *, combine: Callable[..., Any]
) -> tuple[Any, ...]:
    """Two results as one; arrays of the first are reused."""
    merged = []
    for one, other in zip(total, part, strict=True):
        if combine is np.add and (is_sparse(one) or is_sparse(other)):
            merged.append(one + other)
        elif isinstance(one, np.ndarray) and one.ndim:
            merged.append(combine(one, other, out=one))
        else:
            merged.append(combine(one, other))
    return tuple(merged)


def tree(parts: Iterable[Any], merge: Callable[[Any, Any], Any]) -> Any:
    """Results merged in their order along a tree: eight at a time, then eights of these.

    Each is let go once it is merged. ``None`` of none at all.

    Examples
    --------
    >>> tree("abcdefghij", lambda one, other: f"({one}{other})")
    '((((((((ab)c)d)e)f)g)h)(ij))'
    """
    levels: list[list[Any]] = []  # of each level what waits there: how many, and their merger
    for part in parts:
        for level in levels:
            count, waiting = level
            level[:] = [count + 1, merge(waiting, part) if count else part]
            if level[0] < FANOUT:
                break
            part = level[1]
            level[:] = [0, None]
        else:
            levels.append([1, part])
    result = None
    for count, waiting in levels:
        if count:
            result = waiting if result is None else merge(waiting, result)
    return result
