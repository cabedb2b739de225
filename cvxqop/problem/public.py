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

__all__ = ["AffineMap", "Stacking", "affine_map", "constant_array", "number"]

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
