"""What is refused before a conic solver sees a record, by the public part of a problem alone."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

import cvxpy as cp
import numpy as np
from cvxpy import settings
from cvxpy.error import DCPError

from cvxqop.errors import OptionError, ProblemError
from cvxqop.solve.answer import Answer
from cvxqop.solve.engines.conic import default_solver, quadratic_problem
from cvxqop.solve.rest.feasibility import check_judged
from cvxqop.solve.rest.prox import NotSplittable, split
from cvxqop.solve.solvers import Compiled, check_silent, installed
from cvxqop.solve.units import power_of_two, rescaled

__all__ = ["check_feasible", "check_solver"]


def check_solver(
    solver: str | None,
    solver_options: Mapping[str, Any] | None,
    variables: Sequence[cp.Variable],
    regulariser: cp.Expression | None,
    constraints: Sequence[cp.Constraint],
    *,
    size: float = 1.0,
    curvature: float = 1.0,
) -> None:
    """Refuse a solver, or options, that cannot work, before any record is touched.

    The same solver with the same options minimises ½h‖θ‖² + r(θ) over C, which is public; h and
    the ``size`` of θ are public numbers of the order of those that will occur.

    Raises
    ------
    OptionError
        Unknown or not installed solver, one that cannot take the problem, unknown or bad options.
    ProblemError
        The constraints are infeasible, r is nowhere finite, or the rest is not convex.
    """
    options = dict(solver_options or {})
    check_silent(options)
    if solver is None and not options:
        check_feasible(variables, regulariser, constraints)
        return
    if solver == "CLARABEL" and solver in installed() and not options:
        # It takes every cone: nothing is to be tried where a point of C is at hand.
        with contextlib.suppress(NotSplittable):
            if _has_point(variables, regulariser, constraints):
                return
    rest = rescaled(size, variables, regulariser, constraints)
    divisor = power_of_two(curvature) * rest.unit**2
    _check_on(solver, options, rest.variables, rest.over(divisor), rest.constraints)


def _check_on(
    solver: str | None,
    options: Mapping[str, Any],
    variables: Sequence[cp.Variable],
    regulariser: cp.Expression | None,
    constraints: Sequence[cp.Constraint],
) -> None:
    name = solver or default_solver(variables, regulariser, constraints)
    if name not in installed():
        raise OptionError(
            f"solver={name!r} is not installed; installed are {', '.join(installed())}"
        )
    D = sum(v.size for v in variables)
    problem = quadratic_problem(np.eye(D), np.zeros(D), variables, regulariser, constraints)
    _check_convex(problem)
    check_judged(problem.variables(), regulariser, constraints)
    try:
        compiled = Compiled.of(problem, name)
    except Exception:
        raise OptionError(
            f"solver={name!r} cannot take this problem: its regulariser or constraints need "
            "cones that it does not have"
        ) from None
    try:
        status = compiled.solve(options).status
    except Exception as error:
        # Nothing private has entered this problem, so the solver's own words may be shown.
        raise OptionError(f"solver={name!r} refuses solver_options: {error}") from None
    # Any other status says nothing of the real problem, whose scale is another.
    if status in (settings.INFEASIBLE, settings.UNBOUNDED):
        raise ProblemError(
            "constraints: no point satisfies them and has a finite regulariser, or the regulariser "
            "is unbounded below (found before any privacy budget was charged)"
        )


def _has_point(
    variables: Sequence[cp.Variable],
    regulariser: cp.Expression | None,
    constraints: Sequence[cp.Constraint],
) -> bool:
    """Whether a projection onto C finds a point that is as good as a solver's answer must be.

    Raises
    ------
    NotSplittable
        No projection is known.
    ProblemError
        The rest is visibly infeasible, or not convex.
    """
    rest = split(variables, regulariser, constraints)
    theta = np.zeros(rest.dimension)
    _check_convex(quadratic_problem(np.eye(theta.size), theta, variables, regulariser, constraints))
    found = Answer(rest.project(theta).point, {})
    return not found.fault(variables, regulariser, constraints)


def check_feasible(
    variables: Sequence[cp.Variable],
    regulariser: cp.Expression | None,
    constraints: Sequence[cp.Constraint],
) -> None:
    """Refuse constraints that no point satisfies, or a regulariser that is nowhere finite.

    Raises
    ------
    ProblemError
        The public rest of the problem has no feasible point, or is not convex.
    """
    with contextlib.suppress(NotSplittable):
        # Reading the sets finds out whether they are empty, and every penalty here is finite.
        split(variables, regulariser, constraints)
        return
    _check_on(None, {}, variables, regulariser, constraints)


def _check_convex(problem: cp.Problem) -> None:
    try:
        convex = problem.is_dcp()
    except DCPError:
        convex = False
    if not convex:
        raise ProblemError(
            "the public rest of the problem (regulariser and constraints) does not follow CVXPY's "
            "DCP rules; check expr.is_convex() and constraint.is_dcp() of its terms"
        ) from None
