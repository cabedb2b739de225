"""How far a constraint set reaches from a point: what bounds of gradients over C depend on."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

import cvxpy as cp
import numpy as np
import numpy.typing as npt

from cvxqop.solve.rest.projections import Ball, BallInBox, L1Ball
from cvxqop.solve.rest.prox import NotSplittable, split, splits
from cvxqop.solve.rest.rest import Rest

__all__ = ["farthest", "reach"]

Array = npt.NDArray[np.float64]


def farthest(
    variables: Sequence[cp.Variable], constraints: Sequence[cp.Constraint], anchor: Array
) -> float:
    """`reach` of the constraints that can be split: the others leave less, and ∞ stays possible.

    Examples
    --------
    >>> theta = cp.Variable(2)
    >>> farthest([theta], [cp.norm(theta, 2) <= 3], np.zeros(2))
    3.0
    >>> farthest([theta], [cp.sum(cp.exp(theta)) <= 3], np.zeros(2))
    inf
    >>> farthest([theta], [cp.sum(cp.exp(theta)) <= 3, cp.norm(theta, 2) <= 3], np.zeros(2))
    3.0
    """
    with contextlib.suppress(NotSplittable):
        return reach(split(variables, None, constraints), anchor)
    try:
        kept = [c for c in constraints if splits(variables, None, [c])]
        return reach(split(variables, None, kept), anchor)
    except NotSplittable:
        return float("inf")


def reach(rest: Rest, anchor: Array) -> float:
    """Upper bound on sup ‖θ − θ0‖₂ over θ in C; ∞ where C is not seen to be bounded.

    Boxes and balls of norm 1, 2 and ∞ on disjoint coordinates are seen, in the Euclidean norm.

    Examples
    --------
    >>> import cvxpy as cp
    >>> from cvxqop.solve.rest.prox import split
    >>> theta = cp.Variable(4)
    >>> reach(split([theta], None, [cp.norm_inf(theta) <= 1]), np.zeros(4))
    2.0
    >>> reach(split([theta], None, [cp.norm(theta, 2) <= 3]), np.zeros(4))
    3.0
    >>> reach(split([theta], None, [theta >= 0]), np.zeros(4))
    inf
    """
    farthest = np.maximum(np.abs(rest.lower - anchor), np.abs(rest.upper - anchor)) ** 2
    total = 0.0
    free = np.ones(len(anchor), dtype=bool)
    for placed in rest.sets:
        inside = float(np.sum(farthest[placed.index]))
        if isinstance(placed.inner, Ball | BallInBox | L1Ball):
            centre = (placed.inner.centre - placed.shift) / placed.scale
            offset = float(np.linalg.norm(centre - anchor[placed.index]))
            inside = min(inside, (placed.inner.radius / abs(placed.scale) + offset) ** 2)
        total += inside
        free[placed.index] = False
    total += float(np.sum(farthest[free]))
    return float(np.sqrt(total))
