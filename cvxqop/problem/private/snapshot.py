"""A problem as it was when a plan was made, and what has changed since.

The noise of a plan is calibrated for the parameters, bounds and constraints that it saw. A run
reads them again, so that it has to find them unchanged.
"""

from __future__ import annotations

import hashlib
import numbers
from collections.abc import Callable, Iterator
from typing import Any

import cvxpy as cp
import numpy as np

from cvxqop import _cvxpy
from cvxqop.errors import PlanError

__all__ = ["Snapshot"]


class Snapshot:
    """Everything that a problem holds: the tree by identity, public numbers by a digest.

    Of private arrays it keeps which object holds them: numbers that were changed in place are what
    runs, with as many records as before; an array in the place of another is refused.

    Parameters
    ----------
    problem : cvxpy.Problem
        The problem.
    is_private : callable
        Whether a leaf holds records.

    Examples
    --------
    >>> R, x = cp.Parameter(name="R", value=1.0), cp.Variable()
    >>> snapshot = Snapshot(cp.Problem(cp.Minimize(x), [x >= R]), lambda leaf: False)
    >>> snapshot.check()
    >>> R.value = 2.0
    >>> snapshot.check()
    Traceback (most recent call last):
    ...
    cvxqop.errors.PlanError: The parameter R has changed since the plan was made, and the noise \
was calibrated for what it was. Nothing was charged. Plan again: cvxqop.plan(problem, …).
    """

    def __init__(self, problem: cp.Problem, is_private: Callable[[Any], bool]) -> None:
        self._problem, self._is_private = problem, is_private
        self._state = list(self._parts())

    def check(self) -> None:
        """Compare the problem with the snapshot.

        Raises
        ------
        PlanError
            Names what has changed.
        """
        if name := self.changed():
            raise PlanError(
                f"{name} has changed since the plan was made, and the noise was calibrated for "
                "what it was. Nothing was charged. Plan again: cvxqop.plan(problem, …)."
            )

    def changed(self) -> str:
        """What is no longer as it was; empty if all is."""
        now = list(self._parts())
        for (name, before), (_, after) in zip(self._state, now, strict=False):
            if not _same(before, after):
                return name
        return "" if len(now) == len(self._state) else "The problem"

    def _parts(self) -> Iterator[tuple[str, Any]]:
        problem = self._problem
        yield "The objective of the problem", problem.objective
        yield "The list of constraints", tuple(problem.constraints)
        whole = _cvxpy.holdings([problem.objective, *problem.constraints])
        for node in whole.nodes:
            name = _name(node)
            yield name, node
            if isinstance(node, cp.Constant | cp.Parameter):
                private = self._is_private(node)
                yield name, node._value if private else _digest(_cvxpy.leaf_value(node))
            elif isinstance(node, cp.Variable):
                yield name, (*_cvxpy.attributes(node), *_numbers(node))
            elif not _cvxpy.holds_records(node):
                yield name, _numbers(node)
        for slot in whole.slots:
            yield f"What is kept as {slot.where}", _digest(slot.array)


def _same(before: Any, after: Any) -> bool:
    """Identity of objects; equality of what was made for the comparison."""
    if before is after:
        return True
    if isinstance(before, tuple) and isinstance(after, tuple):
        pairs = zip(before, after, strict=False)
        return len(before) == len(after) and all(_same(one, other) for one, other in pairs)
    made = (bytes, str, numbers.Number)
    return isinstance(before, made) and type(before) is type(after) and before == after


def _name(node: Any) -> str:
    kind = _cvxpy.kind(node)
    if kind in ("parameter", "variable"):
        return f"The {kind} {node.name()}"
    return "A constant of the problem" if kind == "constant" else "An expression of the problem"


def _numbers(node: Any) -> tuple[Any, ...]:
    """The plain numbers and words that a node keeps: an order, axes, a bound of all entries."""
    own = sorted(item for item in vars(node).copy().items() if not item[0].startswith("_"))
    return tuple(part for _, value in own for part in _plain(value))


def _plain(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for part in value:
            yield from _plain(part)
    elif isinstance(value, np.ndarray) and value.ndim == 0:
        yield value.item()
    elif isinstance(value, numbers.Number | str) and not isinstance(value, bool):
        yield value


def _digest(value: Any) -> bytes:
    """A fingerprint of shape, type and entries."""
    digest = hashlib.blake2b(digest_size=32)
    if value is None:
        return b""
    parts = [value]
    if _cvxpy.is_sparse(value):
        found = value.tocoo()
        parts = [found.data, *found.coords]
    for part in parts:
        array = np.ascontiguousarray(part)
        digest.update(f"{np.shape(value)} {array.shape} {array.dtype}".encode())
        digest.update(array.view(np.uint8).reshape(-1).data if array.size else b"")
    return digest.digest()
