"""Sums, lists and constraints that were written in a loop over the records.

n terms that are alike, as many as there are records, are one term over all of them:
Σ_i (x_i'w − y_i)² is sum(square(X @ w − y)).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import cvxpy as cp
import numpy as np

from cvxqop import _cvxpy
from cvxqop.errors import ProblemError
from cvxqop.problem.reading import refusals
from cvxqop.problem.spelling.lifting import Lifter, NotLifted, Signatures, one_a_record
from cvxqop.problem.spelling.stacks import Stacks

__all__ = ["Loops"]

_STACKS = ("hstack", "vstack", "concatenate")


class Loops:
    """Writes loops over the records as one expression.

    Parameters
    ----------
    stacks : Stacks
        The listed arrays.

    Attributes
    ----------
    found : list of (str, Expression)
        What was written anew, in words, and as what.
    """

    def __init__(self, stacks: Stacks) -> None:
        self._counts = stacks.counts
        self._lifter, self._signatures = Lifter(stacks), Signatures()
        self.found: list[tuple[str, Any]] = []

    def objective(self, node: Any) -> Any:
        """An expression without loops.

        Raises
        ------
        ProblemError
            If as many terms as there are records are alike, with numbers of each that are no row
            of a listed array.
        """
        if _cvxpy.is_leaf(node) or not all(isinstance(a, cp.Expression) for a in node.args):
            return node
        kind = _cvxpy.kind(node)
        if kind == "add" and self._may_be_looped(node.args):
            return self._sum(node)
        if kind in _STACKS and self._may_be_looped(node.args):
            (group, *others) = self._grouped(node.args, self._signatures.of)
            lifted = None if others else self._lifted(group)
            if lifted is not None and (lifted.shape == node.shape or lifted.size == len(group)):
                self.found.append((f"a list of {len(group)} numbers, one a record", lifted))
                same = lifted.shape == node.shape
                return lifted if same else one_a_record(lifted, node.ndim - 1)
        return _cvxpy.rebuilt(node, [self.objective(argument) for argument in node.args])

    def constraints(self, given: Sequence[Any]) -> list[Any]:
        """Constraints without loops.

        Raises
        ------
        ProblemError
            As `objective`.
        """
        if not self._may_be_looped(given):
            return list(given)
        found: list[Any] = []
        for group in self._grouped(given, self._relation):
            sides = None
            if len(group) > 1 and len(group) in self._counts:
                sides = self._parts([list(c.args) for c in group])
            if sides is None or not any(own for _, own in sides):
                found += group
                continue
            together = _cvxpy.related(group[0], *(side for side, _ in sides))
            self.found.append((f"{len(group)} constraints, one a record", together))
            found.append(together)
        return found

    def _may_be_looped(self, nodes: Sequence[Any]) -> bool:
        return any(1 < count <= len(nodes) for count in self._counts)

    def _grouped(self, nodes: Sequence[Any], signature: Callable[[Any], Any]) -> list[list[Any]]:
        groups: dict[Any, list[Any]] = {}
        for node in nodes:
            groups.setdefault(signature(node), []).append(node)
        return list(groups.values())

    def _relation(self, constraint: Any) -> Any:
        """Signature of an inequality or equality; any other constraint is like no other."""
        if not _cvxpy.is_relation(constraint):
            return constraint.id
        return (type(constraint).__name__, *map(self._signatures.of, constraint.args))

    def _sum(self, node: Any) -> Any:
        parts: list[Any] = []
        for group in self._grouped(node.args, self._signatures.of):
            lifted = self._lifted(group)
            if lifted is None:
                parts += [self.objective(argument) for argument in group]
                continue
            rows = _cvxpy.kind(lifted) == "sum" and lifted.ndim == 1
            parts.append(cp.sum(lifted.args[0] if rows else lifted))
            self.found.append((f"{len(group)} terms, one a record", parts[-1]))
        if len(parts) == len(node.args):
            return _cvxpy.rebuilt(node, parts)
        total = parts[0]
        for part in parts[1:]:
            total = total + part
        return total

    def _lifted(self, nodes: list[Any]) -> Any:
        """One expression for alike ones, as many as there are records, or None."""
        if len(nodes) < 2 or len(nodes) not in self._counts:
            return None
        ((lifted, own),) = self._parts([[node] for node in nodes]) or [(None, False)]
        return lifted if own else None

    def _parts(self, rows: list[list[Any]]) -> list[tuple[Any, bool]] | None:
        try:
            return [self._lifter.lift(nodes) for nodes in zip(*rows, strict=True)]
        except NotLifted:
            if any(_vary(nodes) and not _whole(nodes) for nodes in zip(*rows, strict=True)):
                raise ProblemError(refusals.LOOP) from None
            return None


def _vary(nodes: Sequence[Any]) -> bool:
    """Whether the constants beside variables in alike expressions differ."""
    if not any(map(_cvxpy.has_variables, nodes)):
        return False
    own = [[leaf for leaf in _cvxpy.leaves(n) if _cvxpy.kind(leaf) == "constant"] for n in nodes]
    first = [_cvxpy.leaf_value(leaf) for leaf in own[0]]
    return any(
        len(other) != len(first)
        or not all(_same(a, _cvxpy.leaf_value(b)) for a, b in zip(first, other, strict=True))
        for other in own[1:]
    )


def _whole(nodes: Sequence[Any]) -> bool:
    """Whether each of n alike terms has a matrix of n rows, and is a sum over records by itself:
    an array like that is listed, or refused later on."""

    def shapes(node: Any) -> list[tuple[int, ...]]:
        return [leaf.shape for leaf in _cvxpy.leaves(node) if not _cvxpy.has_variables(leaf)]

    n = len(nodes)
    return all(any(len(s) == 2 and s[0] == n for s in shapes(node)) for node in nodes)


def _same(one: Any, other: Any) -> bool:
    if _cvxpy.is_sparse(one) or _cvxpy.is_sparse(other):
        return one is other
    return bool(np.array_equal(one, other, equal_nan=True))
