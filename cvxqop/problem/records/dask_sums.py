"""Sums over records that lie with the workers of Dask.

One task reads a partition, clips it and adds it up; its results are merged in the order of the
partitions. No record comes back, neither as a result nor in an error: a task never fails, it
returns a `_Failure`, which holds the words of one of our own errors, or the name of another's type.
What a task does stands in objects that show nothing of it, since Dask logs and displays its tasks.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from cvxqop._blocks import is_sparse
from cvxqop.errors import CvxqopError, ProblemError
from cvxqop.problem.records.blocks import as_records
from cvxqop.problem.records.dask_arrays import DaskRows
from cvxqop.problem.records.executors import one_blas_thread

__all__ = ["Task", "compute", "joined", "nothing"]

SHARED = -1


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
    reading = _reading([leaf.array for leaf in leaves], np.diff(edges).tolist())
    name = f"cvxqop-sum-{uuid.uuid4().hex}"
    graph = dict(reading.shared)
    for k in sorted(set().union(*(task.ranges for task in tasks))):
        start, stop = edges[k], edges[k + 1]
        works = [
            (task.work, [(low - start, high - start) for low, high in task.ranges.get(k, [])])
            for task in tasks
        ]
        local = rows.over(_stubs(rows, start, stop), start, stop)
        job = _Job(local, [(leaf.key, leaf.array.name) for leaf in leaves], works)
        recipe = reading.recipes[k]
        graph[name, k] = (_summed, job, recipe, [reading.names[key] for key in recipe.needs])
    results = []
    for j, task in enumerate(tasks):
        *folds, (last, _) = _folds(task.order, f"{name}-{j}", name)
        for key, children in [*folds, (last, _)]:
            graph[key] = (_folded, _Merger(task.merge, j), children)
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
    failure = _Failure(None, kind) if kind else _first_failure(found)
    if failure is not None:
        raise failure.error(" and ".join(leaf.array.name for leaf in leaves))
    return [tuple(map(_own, parts)) for parts in found]


@dataclass(frozen=True)
class _Failure:
    """Why a task has no result: one of our errors with its words, or the type of another."""

    kind: type[CvxqopError] | None
    words: str

    @classmethod
    def of(cls, error: Exception) -> _Failure:
        if isinstance(error, CvxqopError):
            return cls(type(error), str(error))
        return cls(None, type(error).__name__)

    def error(self, names: str) -> CvxqopError:
        if self.kind is not None:
            return self.kind(self.words)
        return ProblemError(
            f"The chunks of {names} could not be read: {self.words} was raised where they lie. "
            "What it says is not shown here, for it may hold records. To see it, compute the "
            "array without cvxqop, such as array.sum().compute()."
        )


def _first_failure(values: Any) -> _Failure | None:
    return next((value for value in values if isinstance(value, _Failure)), None)


class _Sealed:
    """What tasks are given: it shows nothing, and names that Dask makes do not depend on it."""

    def __dask_tokenize__(self) -> str:
        return uuid.uuid4().hex


class _Recipe(_Sealed):
    """The part of a graph of Dask that makes some of its keys, from results that it needs."""

    def __init__(self, nodes: dict[Any, Any], keys: list[Any], needs: list[Any]) -> None:
        self.nodes, self.keys, self.needs = nodes, keys, needs

    def read(self, values: Sequence[Any]) -> list[Any]:
        """What stands behind the keys."""
        import dask

        given = {key: (_Held(value),) for key, value in zip(self.needs, values, strict=True)}
        return list(dask.get({**self.nodes, **given}, self.keys))


class _Held:
    """A value that Dask does not look into."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def __call__(self) -> Any:
        return self._value


class _Reading(NamedTuple):
    """How the partitions of some arrays are read.

    ``recipes`` has one a partition, ``shared`` the tasks that several of them need, or whose
    results lie with workers already, and ``names`` under which key of ``shared`` a result is found.
    """

    recipes: list[_Recipe]
    shared: dict[Any, Any]
    names: dict[Any, Any]


def _reading(arrays: Sequence[DaskRows], lengths: list[int]) -> _Reading:
    """Made once for the same arrays and partitions."""
    which = (*(array.array.name for array in arrays), *lengths)
    known = arrays[0].readings
    if which not in known:
        known[which] = _read_by([array.within(tuple(lengths)) for array in arrays], len(lengths))
    found: _Reading = known[which]
    return found


def _read_by(arrays: Sequence[Any], partitions: int) -> _Reading:
    from dask.highlevelgraph import HighLevelGraph
    from dask.optimization import cull

    wanted = [
        [(array.name, k, *[0] * (array.ndim - 1)) for array in arrays] for k in range(partitions)
    ]
    merged = HighLevelGraph.merge(*(array.__dask_graph__() for array in arrays))
    graph, needs = cull(dict(merged), [key for keys in wanted for key in keys])
    owners: dict[Any, int] = {
        key: SHARED for key, node in graph.items() if _is_future(node)
    }  # results that workers hold: tasks go to where they lie
    for k, keys in enumerate(wanted):
        seen, waiting = set(), list(keys)
        while waiting:
            key = waiting.pop()
            if key not in seen:
                seen.add(key)
                owners[key] = k if owners.get(key, k) == k else SHARED
                waiting += needs[key]
    mine: list[dict[Any, Any]] = [{} for _ in range(partitions)]
    shared: dict[Any, Any] = {}
    names: dict[Any, Any] = {}
    token = f"cvxqop-read-{uuid.uuid4().hex}"
    for key, node in graph.items():
        if owners[key] != SHARED:
            mine[owners[key]][key] = node
        else:
            names[key] = key if _is_future(node) else (token, len(names))
    for key, new in names.items():
        recipe = _Recipe({key: graph[key]}, [key], list(needs[key]))
        guarded = (_guarded, recipe, [names[need] for need in recipe.needs])
        shared[new] = graph[key] if new == key else guarded
    recipes = []
    for keys, nodes in zip(wanted, mine, strict=True):
        used = {*keys, *(need for key in nodes for need in needs[key])}
        recipes.append(_Recipe(nodes, keys, [key for key in used if key not in nodes]))
    return _Reading(recipes, shared, names)


def _is_future(node: Any) -> bool:
    return type(node).__module__.split(".")[0] == "distributed"


class _Job(_Sealed):
    """The sums of one partition: rows without arrays, and what is to be done with them."""

    def __init__(self, rows: Any, leaves: list[tuple[Any, str]], works: list[Any]) -> None:
        self._rows, self._leaves, self._works = rows, leaves, works

    def run(self, chunks: Sequence[Any]) -> list[Any]:
        """A result for each sum, None for those without a range here."""
        shapes = {leaf.key: leaf.array.shape for leaf in self._rows.leaves}
        arrays = {leaf.key: leaf.array for leaf in self._rows.leaves}
        for (key, name), chunk in zip(self._leaves, chunks, strict=True):
            arrays[key] = as_records(chunk, name, (1, 2))
            if tuple(arrays[key].shape) != (self._rows.n, shapes[key][1]):
                raise ProblemError(
                    f"A chunk of {name} has another shape than Dask was told. Correct the chunks "
                    "where the array is made, or call array.compute_chunk_sizes()."
                )
        rows = self._rows.over(arrays, 0, self._rows.n)
        with one_blas_thread():
            return [work(rows, ranges) if ranges else None for work, ranges in self._works]


class _Merger(_Sealed):
    """Merges the results of sum ``number``, and leaves what it is given as it is."""

    def __init__(self, merge: Callable[[Any, Any], Any], number: int) -> None:
        self._merge, self._number = merge, number

    def run(self, values: Sequence[Any]) -> Any:
        """From left to right."""
        parts = [value[self._number] if isinstance(value, list) else value for value in values]
        total = tuple(part if is_sparse(part) else np.array(part) for part in parts[0])
        for part in parts[1:]:
            total = self._merge(total, part)
        return total


def _summed(job: _Job, recipe: _Recipe, values: list[Any]) -> Any:
    failure = _first_failure(values)
    if failure is not None:
        return failure
    try:
        return job.run(recipe.read(values))
    except Exception as error:
        return _Failure.of(error)


def _guarded(recipe: _Recipe, values: list[Any]) -> Any:
    failure = _first_failure(values)
    if failure is not None:
        return failure
    try:
        return recipe.read(values)[0]
    except Exception as error:
        return _Failure.of(error)


def _folded(merger: _Merger, values: list[Any]) -> Any:
    failure = _first_failure(values)
    if failure is not None:
        return failure
    try:
        return merger.run(values)
    except Exception as error:
        return _Failure.of(error)


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
        if leaf.private and not isinstance(leaf.array, DaskRows):
            raise ProblemError(
                f"{leaf.name} is no Dask array, but other records of its term are. Give all of "
                "them as Dask arrays, or none."
            )


def _own(part: Any) -> Any:
    """What came from a worker may be read-only."""
    return np.array(part) if isinstance(part, np.ndarray) and not part.flags.writeable else part
