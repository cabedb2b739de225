"""Public parts of an expression: numbers, constant arrays, and affine maps of the variables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from cvxqop import _cvxpy
from cvxqop.errors import ProblemError

__all__ = [
    "AffineMap",
    "Stacking",
    "affine_map",
    "constant_array",
    "is_plain",
    "is_plain_identity",
    "number",
    "outputs_of",
    "record_count",
    "records_of",
    "regrouped",
]

Array = npt.NDArray[np.float64]


class Stacking:
    """θ: the variables of the loss, each flattened column by column, one after the other."""

    def __init__(self, variables: Sequence[cp.Variable]) -> None:
        self.variables = tuple(variables)
        sizes = [variable.size for variable in self.variables]
        ends = np.cumsum([0, *sizes])
        self.dimension = int(ends[-1])
        self._start = {v.id: int(s) for v, s in zip(self.variables, ends[:-1], strict=True)}

    def start(self, variable: cp.Variable) -> int:
        """Position of the variable's first entry in θ."""
        return self._start[variable.id]


@dataclass(frozen=True, eq=False)
class AffineMap:
    """θ ↦ G θ + g, the entries of an expression column by column: G (p, D) sparse, g (p,)."""

    G: Any
    g: Array


def number(node: Any) -> float | None:
    """Value of a public expression of one entry without variables; None if it is not one."""
    if node.size != 1 or _cvxpy.has_variables(node):
        return None
    array = constant_array(node)
    dense = array.toarray() if _cvxpy.is_sparse(array) else np.asarray(array)
    value = dense.reshape(-1)[0]
    if np.iscomplexobj(value) or not np.isfinite(value):
        raise ProblemError("A public constant in the private loss is not a finite real number.")
    return float(value)


def record_count(node: Any) -> int | None:
    """n for an expression with one entry a record: (n,), (n, 1), (1, n) or one number."""
    if _cvxpy.holds_records(node):
        return int(node.n)
    long = [side for side in node.shape if side != 1]
    return None if len(long) > 1 else long[0] if long else 1


def records_of(argument: Any, records: int | None) -> int | None:
    """n for an argument with one entry a record, or one row of outputs."""
    return record_count(argument) if outputs_of(argument, records) is None else records


def outputs_of(argument: Any, records: int | None) -> Any:
    """The (n, k) expression, k > 1, that the argument of a loss is, or None.

    A norm flattens its argument; what it flattens has the same sum of squares. ``records`` is the
    number of rows of the private arrays, so that n = 1 is read as any other n.
    """
    if _cvxpy.holds_records(argument):
        return None
    while _cvxpy.kind(argument) == "reshape" and argument.ndim == 1:
        argument = argument.args[0]
    shape = argument.shape
    several = len(shape) == 2 and shape[0] == records and shape[1] > 1
    return argument if several else None


def is_plain(array: Any) -> bool:
    """Whether all entries are one of the numbers that a formula is made of, such as a one.

    Such an array is a way to write that number, and is the same array for any number of rows.
    """
    if _cvxpy.is_sparse(array):
        return bool(array.nnz == 0)
    entries = np.asarray(array, dtype=np.float64).reshape(-1)
    plain = entries.size == 0 or abs(entries[0]) in (0.0, 0.25, 0.5, 1.0, 2.0, 4.0)
    return bool(plain and np.all(entries == entries[:1]))


def is_plain_identity(array: Any) -> bool:
    """Whether a matrix is a plain number times the identity, a way to write that number as well."""
    if array.ndim != 2 or array.shape[0] != array.shape[1]:
        return False
    diagonal = array.diagonal() if _cvxpy.is_sparse(array) else np.diagonal(array)
    others = (array.count_nonzero() if _cvxpy.is_sparse(array) else np.count_nonzero(array)) - (
        np.count_nonzero(diagonal)
    )
    return is_plain(diagonal) and others == 0


def constant_array(node: Any) -> Any:
    """Value of a public expression without variables: an array of its shape, dense or sparse."""
    for leaf in _cvxpy.leaves(node):
        if _cvxpy.leaf_value(leaf) is None:
            raise ProblemError(
                f"The parameter {leaf.name()} has no value; set its value before this call."
            )
    return _cvxpy.evaluate(node, {})


def affine_map(node: Any, stacking: Stacking) -> AffineMap | None:
    """The map of a public affine expression; None if the expression is not affine.

    A variable is read off; anything else is evaluated at zero and at each unit vector of its
    variables, through CVXPY's own numeric rules and without setting any value.
    """
    D = stacking.dimension
    if _cvxpy.kind(node) == "variable":
        p, start = node.size, stacking.start(node)
        entries = (np.ones(p), (np.arange(p), np.arange(start, start + p)))
        return AffineMap(sp.csr_array(sp.coo_array(entries, shape=(p, D))), np.zeros(p))
    if not _cvxpy.has_variables(node):
        return AffineMap(sp.csr_array((node.size, D)), _flat(constant_array(node)))
    if not node.is_affine():
        return None
    inner = _cvxpy.variables(node)
    point = {variable.id: np.zeros(variable.shape) for variable in inner}
    origin = _flat(_cvxpy.evaluate(node, point))
    rows, columns, data = [], [], []
    for variable in inner:
        for k in range(variable.size):
            unit = np.zeros(variable.size)
            unit[k] = 1.0
            moved = {**point, variable.id: unit.reshape(variable.shape, order="F")}
            slope = _flat(_cvxpy.evaluate(node, moved)) - origin
            support = np.flatnonzero(slope)
            rows.append(support)
            columns.append(np.full(support.size, stacking.start(variable) + k))
            data.append(slope[support])
    entries = (np.concatenate(data), (np.concatenate(rows), np.concatenate(columns)))
    return AffineMap(sp.csr_array(sp.coo_array(entries, shape=(node.size, D))), origin)


def _flat(value: Any) -> Array:
    dense = value.toarray() if _cvxpy.is_sparse(value) else np.asarray(value)
    return np.asarray(dense, dtype=np.float64).reshape(-1, order="F")


def regrouped(left: Any, right: Any) -> tuple[Any, Any]:
    """A (B c) in the place of (A B) c where B holds the variables; c (B A) likewise."""
    for side, other in ((left, right), (right, left)):
        if _cvxpy.kind(side) != "matmul" or any(part.ndim != 2 for part in side.args):
            continue
        first, second = side.args
        held, outer = (second, first) if side is left else (first, second)
        if _cvxpy.has_variables(held) and not any(map(_cvxpy.has_variables, (outer, other))):
            return (first, second @ other) if side is left else (other @ first, second)
    return left, right
