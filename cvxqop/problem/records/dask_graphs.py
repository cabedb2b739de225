"""How workers of Dask read the partitions of arrays, so that nothing that they read is told.

A task never fails: what is raised in it becomes a `Failure`, its result. What it is given stands in
objects that show nothing, for Dask logs and displays its tasks.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from cvxqop.errors import CvxqopError, ProblemError
from cvxqop.problem.records.dask_arrays import DaskRows

__all__ = ["Failure", "Reading", "Recipe", "Sealed", "first_failure", "guarded", "reading_of"]

SHARED = -1


@dataclass(frozen=True)
class Failure:
    """Why a task has no result: one of our errors with its words, or the type of another."""

    kind: type[CvxqopError] | None
    words: str

    @classmethod
    def of(cls, error: Exception) -> Failure:
        """Of what was raised."""
        if isinstance(error, CvxqopError):
            return cls(type(error), str(error))
        return cls(None, type(error).__name__)

    def error(self, names: str) -> CvxqopError:
        """What is raised on this machine; ``names`` are those of the arrays."""
        if self.kind is not None:
            return self.kind(self.words)
        return ProblemError(
            f"The chunks of {names} could not be read: {self.words} was raised where they lie. "
            "What it says is not shown here, for it may hold records. To see it, compute the "
            "array without cvxqop, such as array.sum().compute()."
        )


def first_failure(values: Any) -> Failure | None:
    """The first of the results that is one."""
    return next((value for value in values if isinstance(value, Failure)), None)


class Sealed:
    """What tasks are given: it shows nothing, and names that Dask makes do not depend on it."""

    def __dask_tokenize__(self) -> str:
        return uuid.uuid4().hex


class Recipe(Sealed):
    """The part of a graph of Dask that makes some of its keys, from results that it needs."""

    def __init__(self, nodes: dict[Any, Any], keys: list[Any], needs: list[Any]) -> None:
        self.nodes, self.keys, self.needs = nodes, keys, needs

    def __call__(self, values: Sequence[Any]) -> Any:
        """What stands behind the only key."""
        return self.read(values)[0]

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


class Reading(NamedTuple):
    """How the partitions of some arrays are read.

    ``recipes`` has one a partition, ``shared`` the tasks that several of them need, or whose
    results lie with workers already, and ``names`` under which key of ``shared`` a result is found.
    """

    recipes: list[Recipe]
    shared: dict[Any, Any]
    names: dict[Any, Any]


def reading_of(arrays: Sequence[DaskRows], lengths: list[int]) -> Reading:
    """Made once for the same arrays and partitions."""
    which = (*(array.array.name for array in arrays), *lengths)
    known = arrays[0].readings
    if which not in known:
        known[which] = _read_by([array.within(tuple(lengths)) for array in arrays], len(lengths))
    found: Reading = known[which]
    return found


def _read_by(arrays: Sequence[Any], partitions: int) -> Reading:
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
        recipe = Recipe({key: graph[key]}, [key], list(needs[key]))
        task = (guarded, recipe, [names[need] for need in recipe.needs])
        shared[new] = graph[key] if new == key else task
    recipes = []
    for keys, nodes in zip(wanted, mine, strict=True):
        used = {*keys, *(need for key in nodes for need in needs[key])}
        recipes.append(Recipe(nodes, keys, [key for key in used if key not in nodes]))
    return Reading(recipes, shared, names)


def _is_future(node: Any) -> bool:
    return type(node).__module__.split(".")[0] == "distributed"


def guarded(action: Callable[[list[Any]], Any], values: list[Any]) -> Any:
    """What is done with the results of other tasks, or the first failure."""
    failure = first_failure(values)
    if failure is not None:
        return failure
    try:
        return action(values)
    except Exception as error:  # its words may hold records, and a task that fails is logged
        return Failure.of(error)
