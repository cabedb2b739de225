"""Constraints of a CVXPY problem as sets with a projection."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np
import numpy.typing as npt

from cvxqop._cvxpy import exponent, kind
from cvxqop.errors import ProblemError
from cvxqop.solve.rest.groups import EMPTY, Groups
from cvxqop.solve.rest.intersection import Placement
from cvxqop.solve.rest.projections import (
    Ball,
    L1Ball,
    SecondOrderCone,
    SemidefiniteCone,
    SymmetricMatrices,
)
from cvxqop.solve.rest.terms import (
    Affine,
    NotSplittable,
    Stack,
    squared_norm,
    summands,
    weighted_absolute,
)

__all__ = ["SetReader"]

Array = npt.NDArray[np.float64]
Index = npt.NDArray[np.intp]

UNKNOWN = "is a constraint without a known projection"


class SetReader:
    """Collects constraints; ``finish`` groups those that share coordinates."""

    def __init__(self, stack: Stack) -> None:
        D = stack.dimension
        self.stack = stack
        self.lower, self.upper = np.full(D, -np.inf), np.full(D, np.inf)
        self._rows: list[tuple[Any, Array, Array]] = []
        self._sets: list[Placement] = []

    def add_attributes(self, variable: cp.Variable) -> None:
        """Bounds and symmetry that were declared with the variable."""
        index = self.stack.indices(variable)
        active = {k: v for k, v in variable.attributes.items() if v is not None and v is not False}
        for name, value in active.items():
            if name in ("nonneg", "pos"):
                self._bound(index, 0.0, np.inf)
            elif name in ("nonpos", "neg"):
                self._bound(index, -np.inf, 0.0)
            elif name == "bounds":
                low, high = (np.broadcast_to(_number(v), variable.shape) for v in value)
                self._bound(index, low.reshape(-1, order="F"), high.reshape(-1, order="F"))
            elif name == "symmetric":
                self._sets.append(Placement(SymmetricMatrices(variable.shape[0]), index))
            elif name in ("PSD", "NSD"):
                cone = SemidefiniteCone(variable.shape[0], symmetric=True)
                self._sets.append(Placement(cone, index, 1.0 if name == "PSD" else -1.0))
            else:
                raise NotSplittable(variable, f"has the attribute {name}")

    def add(self, constraint: Any) -> None:
        """One CVXPY constraint."""
        name = type(constraint).__name__
        if name == "Inequality":
            self._below_zero(constraint.expr, constraint)
        elif name == "NonPos":
            self._below_zero(constraint.args[0], constraint)
        elif name == "NonNeg":
            self._below_zero(-constraint.args[0], constraint)
        elif name in ("Equality", "Zero"):
            affine = self.stack.affine(constraint.expr)
            self._linear(affine.A, -affine.b, -affine.b)
        elif name == "PSD":
            self._semidefinite(constraint)
        elif name == "SOC" and constraint.args[0].size == 1:
            bound, x = self.stack.affine(constraint.args[0]), constraint.args[1]
            self._norm_cone(1.0, x, bound, constraint)
        else:
            raise NotSplittable(str(name), UNKNOWN)

    def _below_zero(self, expression: Any, constraint: Any) -> None:
        if expression.is_affine():
            affine = self.stack.affine(expression)
            self._linear(affine.A, np.full(len(affine.b), -np.inf), -affine.b)
        elif expression.size == 1:
            self._level_set(expression, constraint)
        else:
            self._elementwise(expression, constraint)

    def _level_set(self, expression: Any, constraint: Any) -> None:
        """factor · h(θ) + affine ≤ 0 for one convex h."""
        slope, b = np.zeros(self.stack.dimension), 0.0
        curved: list[tuple[float, Any]] = []
        for factor, term in summands(expression):
            if term.is_affine():
                affine = self.stack.affine(term)
                slope += factor * np.asarray(affine.A.sum(axis=0)).reshape(-1)
                b += factor * float(affine.b.sum())
            else:
                curved.append((factor, term))
        if len(curved) != 1 or curved[0][0] <= 0.0:
            raise NotSplittable(constraint, UNKNOWN)
        factor, term = curved[0]
        if np.any(slope):
            if kind(term) == "pnorm" and exponent(term) == 2 and term.axis is None:
                self._norm_cone(
                    factor, term.args[0], Affine(-slope[None, :], np.array([-b])), constraint
                )
                return
            raise NotSplittable(constraint, UNKNOWN)
        self._ball(term, -b / factor, constraint)

    def _ball(self, term: Any, level: float, constraint: Any) -> None:
        if level < 0.0 and term.is_nonneg():
            raise ProblemError(EMPTY.format("a bound below zero on a norm"))
        name = kind(term)
        square = squared_norm(term)
        absolute = weighted_absolute(term)
        if square is not None:
            index, scale, shift = self._uniform(square[1], constraint)
            radius = float(np.sqrt(level / square[0]))
        elif name == "pnorm" and exponent(term) == 2 and term.axis is None:
            index, scale, shift = self._uniform(term.args[0], constraint)
            radius = level
        elif name == "norm_inf" or (name == "max" and kind(term.args[0]) == "abs"):
            argument = term.args[0]
            self._absolute_box(argument.args[0] if name == "max" else argument, level, constraint)
            return
        elif absolute is not None and absolute[0] is None and absolute[1].is_affine():
            index, scale, shift = self._uniform(absolute[1], constraint)
            self._sets.append(Placement(L1Ball(-shift / scale, level / abs(scale)), index))
            return
        else:
            raise NotSplittable(constraint, UNKNOWN)
        self._sets.append(Placement(Ball(-shift / scale, radius / abs(scale)), index))

    def _elementwise(self, expression: Any, constraint: Any) -> None:
        """factor · |affine| + constants ≤ 0, entry by entry."""
        factor, absolute, level = 1.0, None, np.zeros(expression.shape)
        stack = list(expression.args) if kind(expression) == "add" else [expression]
        for part in stack:
            if not part.variables():
                level = level - np.asarray(part.value)
            elif kind(part) == "abs" and absolute is None:
                absolute = part.args[0]
            elif kind(part) == "multiply" and absolute is None and kind(part.args[1]) == "abs":
                number = np.asarray(part.args[0].value, dtype=np.float64)
                if number.size > 1 and len(np.unique(number)) > 1:
                    raise NotSplittable(constraint, UNKNOWN)
                factor, absolute = float(number.flat[0]), part.args[1].args[0]
            else:
                raise NotSplittable(constraint, UNKNOWN)
        if absolute is None or factor <= 0.0:
            raise NotSplittable(constraint, UNKNOWN)
        level = np.broadcast_to(level, expression.shape).reshape(-1, order="F") / factor
        self._absolute_box(absolute, level, constraint)

    def _absolute_box(self, argument: Any, level: Array | float, constraint: Any) -> None:
        if not argument.is_affine():
            raise NotSplittable(constraint, UNKNOWN)
        affine = self.stack.affine(argument)
        self._linear(affine.A, -level - affine.b, level - affine.b)

    def _uniform(self, argument: Any, constraint: Any) -> tuple[Index, float, Array]:
        diagonal = None
        if argument.is_affine():
            affine = self.stack.affine(argument)
            diagonal = affine.diagonal()
        if diagonal is None or len(np.unique(np.abs(diagonal[1]))) != 1:
            raise NotSplittable(
                constraint, "bounds a norm of a linear map that is no multiple of θ"
            )
        index, scales = diagonal
        # Signs do not change a norm: |s| with the shift turned along.
        return index, float(abs(scales[0])), affine.b * np.sign(scales)

    def _norm_cone(self, factor: float, x: Any, bound: Affine, constraint: Any) -> None:
        """factor · ‖x‖₂ ≤ t on separate coordinates of one scale."""
        affine = self.stack.affine(x) if x.is_affine() else None
        diagonal = affine.diagonal() if affine is not None else None
        head = bound.diagonal()
        if affine is None or diagonal is None or head is None:
            raise NotSplittable(constraint, "is a second-order cone of a general linear map")
        scales = np.concatenate([head[1], factor * np.abs(diagonal[1])])
        index = np.concatenate([head[0], diagonal[0]])
        if not np.allclose(scales, scales[0], rtol=1e-15) or scales[0] <= 0 or _repeats(index):
            raise NotSplittable(constraint, "is a second-order cone of a general linear map")
        shift = np.concatenate([bound.b, factor * affine.b * np.sign(diagonal[1])])
        self._sets.append(Placement(SecondOrderCone(), index, float(scales[0]), shift))

    def _semidefinite(self, constraint: Any) -> None:
        argument = constraint.args[0]
        affine = self.stack.affine(argument)
        diagonal = affine.diagonal()
        if diagonal is None or len(np.unique(diagonal[1])) != 1:
            raise NotSplittable(constraint, "bounds eigenvalues of a general linear map")
        side = argument.shape[0]
        cone = SemidefiniteCone(side, symmetric=False)
        self._sets.append(Placement(cone, diagonal[0], float(diagonal[1][0]), affine.b))

    def _bound(self, index: Index, low: Array | float, high: Array | float) -> None:
        self.lower[index] = np.maximum(self.lower[index], low)
        self.upper[index] = np.minimum(self.upper[index], high)
        if np.any(self.lower[index] > self.upper[index]):
            raise ProblemError(EMPTY.format("the bounds on an entry of a variable"))

    def _linear(self, A: Any, low: Array, high: Array) -> None:
        """low ≤ Aθ ≤ high: single entries become bounds, the rest is kept as rows."""
        counts = np.diff(A.indptr)
        empty = counts == 0
        if np.any(low[empty] > 0.0) or np.any(high[empty] < 0.0):
            raise ProblemError(EMPTY.format("a constraint that holds no variable"))
        single = counts == 1
        if np.any(single):
            first = A.indptr[:-1][single]
            j, factor = A.indices[first].astype(np.intp), A.data[first]
            with np.errstate(divide="ignore"):
                ends = np.sort([low[single] / factor, high[single] / factor], axis=0)
            if _repeats(j):
                # Fancy assignment would keep only the last of several bounds on one entry.
                for k in range(len(j)):
                    self._bound(j[k : k + 1], ends[0, k], ends[1, k])
            else:
                self._bound(j, ends[0], ends[1])
        several = np.flatnonzero(counts > 1)
        if len(several):
            self._rows.append((A[several], low[several], high[several]))

    def finish(self) -> tuple[Array, Array, tuple[Placement, ...]]:
        """The box, and sets on disjoint coordinates that include it there."""
        groups = Groups(self.lower, self.upper)
        return self.lower, self.upper, groups.of(self._sets, self._rows)


def _number(value: Any) -> Array:
    return np.asarray(getattr(value, "value", value), dtype=np.float64)


def _repeats(index: Index) -> bool:
    return len(np.unique(index)) < len(index)
