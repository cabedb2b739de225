"""Sums over records that lie with the workers of Dask.

One task reads a partition, clips it and adds it up; the results are merged in the order of the
partitions. No record comes back, neither as a result nor in an error: see `dask_graphs`.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from cvxqop._blocks import is_sparse
from cvxqop.errors import CvxqopError, ProblemError
from cvxqop.problem.records.blocks import as_records
from cvxqop.problem.records.dask_arrays import DaskRows
from cvxqop.problem.records.dask_graphs import (
    Failure,
    Recipe,
    Sealed,
    first_failure,
    guarded,
    reading_of,
)
from cvxqop.problem.records.executors import one_blas_thread

__all__ = ["Task", "compute", "joined", "nothing"]


class Task(NamedTuple):
    """One sum: ``work(rows, ranges)`` of each partition k that has ranges, results merged by
    ``merge`` as ``order`` of the partitions says, in nested lists."""

    work: Callable[..., Any]
    ranges: Mapping[int, list[tuple[int, int]]]
    merge: Callable[[Any, Any], Any]
    order: Any


def joined(one: Any, other: Any) -> list[Any]:
    """Two results to be merged from left to right, as a list."""
    return [*one, other] if isinstance(one, list) else [one, other]


def nothing(rows: Any) -> Any:
    """The same rows of no records at all, on this machine."""
    return rows.over(_stubs(rows, 0, 0), 0, 0)


def compute(rows: Any, edges: Sequence[int], tasks: Sequence[Task]) -> list[Any]:
    """The results of all tasks, in one pass over the partitions that some of them needs.

    Raises
    ------
    ProblemError
        If records cannot be read, or a worker fails.
    """
    import dask.threaded
    from dask.optimization import cull

    if not tasks:
        return []
    leaves = [leaf for leaf in rows.leaves if isinstance(leaf.array, DaskRows)]
    _check_together(rows)
    reading = reading_of([leaf.array for leaf in leaves], np.diff(edges).tolist())
    name = f"cvxqop-sum-{uuid.uuid4().hex}"
    graph = dict(reading.shared)
    for k in sorted(set().union(*(task.ranges for task in tasks))):
        start, stop = edges[k], edges[k + 1]
        works = [
            (task.work, [(low - start, high - start) for low, high in task.ranges.get(k, [])])
            for task in tasks
        ]
        local = rows.over(_stubs(rows, start, stop), start, stop)
        recipe = reading.recipes[k]
        job = _Job(local, [(leaf.key, leaf.array.name) for leaf in leaves], works, recipe)
        graph[name, k] = (guarded, job, [reading.names[key] for key in recipe.needs])
    results = []
    for j, task in enumerate(tasks):
        *folds, (last, _) = _folds(task.order, f"{name}-{j}", name)
        for key, children in [*folds, (last, _)]:
            graph[key] = (guarded, _Merger(task.merge, j), children)
        results.append(last)
    graph, _ = cull(graph, results)
    get = dask.base.get_scheduler() or dask.threaded.get
    kind, found = "", []
    try:
        found = get(graph, results)
    except (CvxqopError, MemoryError):
        raise
    except Exception as error:  # its words may hold records
        kind = type(error).__name__
    failure = Failure(None, kind) if kind else first_failure(found)
    if failure is not None:
        raise failure.error(" and ".join(leaf.array.name for leaf in leaves))
    return [tuple(map(_own, parts)) for parts in found]


class _Job(Sealed):
    """The sums of one partition: rows without arrays, and what is to be done with them."""

    def __init__(
        self, rows: Any, leaves: list[tuple[Any, str]], works: list[Any], recipe: Recipe
    ) -> None:
        self._rows, self._leaves, self._works, self._recipe = rows, leaves, works, recipe

    def __call__(self, values: Sequence[Any]) -> list[Any]:
        """A result for each sum, None for those without a range here."""
        shapes = {leaf.key: leaf.array.shape for leaf in self._rows.leaves}
        arrays = {leaf.key: leaf.array for leaf in self._rows.leaves}
        for (key, name), chunk in zip(self._leaves, self._recipe.read(values), strict=True):
            arrays[key] = as_records(chunk, name, (1, 2))
            if tuple(arrays[key].shape) != (self._rows.n, shapes[key][1]):
                raise ProblemError(
                    f"A chunk of {name} has another shape than Dask was told. Correct the chunks "
                    "where the array is made, or call array.compute_chunk_sizes()."
                )
        rows = self._rows.over(arrays, 0, self._rows.n)
        with one_blas_thread():
            return [work(rows, ranges) if ranges else None for work, ranges in self._works]


class _Merger(Sealed):
    """Merges the results of sum ``number``, and leaves what it is given as it is."""

    def __init__(self, merge: Callable[[Any, Any], Any], number: int) -> None:
        self._merge, self._number = merge, number

    def __call__(self, values: Sequence[Any]) -> Any:
        """From left to right."""
        parts = [value[self._number] if isinstance(value, list) else value for value in values]
        total = tuple(part if is_sparse(part) else np.array(part) for part in parts[0])
        for part in parts[1:]:
            total = self._merge(total, part)
        return total


def _folds(order: Any, name: str, leaf: str) -> Iterator[tuple[Any, list[Any]]]:
    """A key and what is merged under it, for every list of the order; the whole comes last."""
    keys, count = [], 0
    for k, child in enumerate(order if isinstance(order, list) else [order]):
        if isinstance(child, list):
            found = list(_folds(child, f"{name}-{k}", leaf))
            yield from found
            keys.append(found[-1][0])
        else:
            keys.append((leaf, child))
        count += 1
    yield (name, count), keys


def _stubs(rows: Any, start: int, stop: int) -> dict[Any, Any]:
    """For each array of the rows, the records start…stop: of an array of Dask, an empty one."""
    stubs: dict[Any, Any] = {}
    for leaf in rows.leaves:
        array = leaf.array
        if isinstance(array, DaskRows):
            make = sp.csr_array if array.sparse else np.empty
            array = make((0, array.shape[1]))
        else:
            array = array[start:stop]
        stubs[leaf.key] = array
    return stubs


def _check_together(rows: Any) -> None:
    """No records of this machine travel to workers."""
    for leaf in rows.leaves:
        if leaf.key == "persons":
            raise ProblemError(
                "persons: the ids are ranked on this machine, and what belongs to records does not "
                "travel to workers. Keep one row a person before the array is made, or pass the "
                "arrays in memory."
            )
        if leaf.private and not isinstance(leaf.array, DaskRows):
            raise ProblemError(
                f"{leaf.name} is no Dask array, but other records of its term are. Give all of "
                "them as Dask arrays, or none."
            )


def _own(part: Any) -> Any:
    """What came from a worker may be read-only."""
    return np.array(part) if isinstance(part, np.ndarray) and not part.flags.writeable else part
