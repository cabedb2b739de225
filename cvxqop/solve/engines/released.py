"""Minimising a released quadratic form plus the public rest by the quickest solver that can.

What is solved has been paid for, so that a second solver may be tried where the first one fails.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import cvxpy as cp

from cvxqop.errors import AccuracyError, ProblemError
from cvxqop.solve.answer import Answer
from cvxqop.solve.engines import conic, stotos
from cvxqop.solve.rest.prox import NotSplittable, split
from cvxqop.solve.smooth.quadratic import Quadratic

__all__ = ["STOTOS", "quickest", "solve_quickly"]

STOTOS = "STOTOS"


def quickest(
    variables: Sequence[cp.Variable],
    regulariser: cp.Expression | None,
    constraints: Sequence[cp.Constraint],
) -> str:
    """Name of the solver that is used where none is asked for.

    STOTOS where r and C act on each coordinate by itself (absolute values, squares, boxes): one
    Cholesky factor and a few products then do what takes a conic solver minutes for thousands of
    features. Else that of `conic.default_solver`.

    Examples
    --------
    >>> theta = cp.Variable(3)
    >>> quickest([theta], cp.norm1(theta), [theta >= 0]), quickest([theta], cp.norm(theta), [])
    ('STOTOS', 'CLARABEL')
    """
    try:
        if split(variables, regulariser, constraints).separable:
            return STOTOS
    except (NotSplittable, ProblemError):
        pass
    return conic.default_solver(variables, regulariser, constraints)


def solve_quickly(
    quadratic: Quadratic,
    variables: Sequence[cp.Variable],
    regulariser: cp.Expression | None,
    constraints: Sequence[cp.Constraint],
    *,
    accuracy: float = 1e-6,
    progress: bool | Callable[[int, float, float, float], Any] = False,
) -> tuple[Answer, str]:
    """The answer of the quickest solver, and its name; that of a conic solver where it fails.

    Parameters
    ----------
    quadratic : Quadratic
        f, released.
    variables, regulariser, constraints
        The public rest.
    accuracy : float
        Certified distance of an answer of STOTOS, in units of θ.
    progress : bool or callable
        See `Monitor`.

    Raises
    ------
    cvxpy.error.SolverError
        No solver found an answer that is finite and feasible.

    Examples
    --------
    >>> import numpy as np
    >>> theta = cp.Variable(2)
    >>> f = Quadratic(np.eye(2), np.array([-3.0, 0.5]), np.zeros(2))
    >>> answer, name = solve_quickly(f, [theta], cp.norm1(theta), [theta <= 1])
    >>> answer.theta.tolist(), name
    ([1.0, 0.0], 'STOTOS')
    """
    rest = (variables, regulariser, constraints)
    name = quickest(*rest)
    if name == STOTOS:
        try:
            answer = stotos.solve_stotos(quadratic, *rest, accuracy=accuracy, progress=progress)
            if not answer.fault(*rest):
                return answer, name
        except AccuracyError:
            pass
        name = conic.default_solver(*rest)
    return conic.solve_conic(quadratic, *rest, solver=name), name
