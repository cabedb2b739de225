"""The quadratic and linear terms of r, which belong to the smooth part of the problem."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import cvxpy as cp
import numpy as np
import numpy.typing as npt

from cvxqop._cvxpy import kind
from cvxqop.solve.rest.agreement import Public, agrees
from cvxqop.solve.rest.rest import Rest
from cvxqop.solve.rest.terms import (
    NotSplittable,
    Stack,
    constant,
    quadratic_form,
    squared_norm,
    summands,
)

__all__ = ["QuadraticTerms", "quadratic_terms"]

Array = npt.NDArray[np.float64]


class QuadraticTerms(NamedTuple):
    """r(θ) = ½ θ'Qθ + q'θ + remainder(θ) up to a constant; Q and the remainder may be None."""

    Q: Array | None
    q: Array
    remainder: cp.Expression | None


def quadratic_terms(
    variables: Sequence[cp.Variable], regulariser: cp.Expression | None
) -> QuadraticTerms:
    """Take sums of squares, quadratic forms and linear terms out of r.

    CVXPY would decompose quadratic forms and may drop small eigenvalues. What is not seen to be
    quadratic, or holds other variables, stays; so does everything where CVXPY's own values of r
    disagree.
    """
    stack = Stack(variables)
    D = stack.dimension
    nothing = QuadraticTerms(None, np.zeros(D), regulariser)
    if regulariser is None:
        return nothing
    Q, q = np.zeros((D, D)), np.zeros(D)
    taken: list[Any] = []
    left: list[Any] = []
    for factor, term in summands(regulariser):
        part = _form(stack, factor, term)
        if part is None:
            left.append(factor * term)
        else:
            Q, q = Q + part[0], q + part[1]
            taken.append(cp.sum(factor * term))
    if not taken:
        return nothing
    free = np.full(D, np.inf)
    seen = Rest(D, Q, q, np.zeros(D), np.zeros(D), lower=-free, upper=free)
    plain = [cp.Variable(v.shape, var_id=v.id) for v in variables]
    if agrees(seen, Public(plain, sum(taken), [])):
        return nothing
    remainder = sum(cp.sum(term) for term in left) if left else None
    return QuadraticTerms(Q if np.any(Q) else None, q, remainder)


def _form(stack: Stack, factor: float, term: Any) -> tuple[Array, Array] | None:
    """Q and q of one term, None where it is not a convex quadratic of θ."""
    try:
        if term.is_affine():
            affine = stack.affine(term)
            slope = factor * np.asarray(affine.A.sum(axis=0)).reshape(-1)
            return np.zeros((stack.dimension, stack.dimension)), slope
        square = squared_norm(term)
        if square is not None:
            return quadratic_form(stack, factor * square[0], square[1])
        if kind(term) == "quad_form" and (P := constant(term.args[1])) is not None:
            return quadratic_form(stack, factor, term.args[0], P)
    except NotSplittable:
        pass
    return None
