"""What the engine for any convex rest is trusted with, decided on the public part of a problem."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import cvxpy as cp
import numpy as np

from cvxqop.errors import AccuracyError, OptionError
from cvxqop.solve import conic
from cvxqop.solve.cone_engine import solve_over_cones
from cvxqop.solve.cone_solvers import cone_problem
from cvxqop.solve.program import Program
from cvxqop.solve.quadratic import Quadratic
from cvxqop.solve.quadratic_terms import quadratic_terms
from cvxqop.solve.solvers import compiles
from cvxqop.solve.standard_form import standard_form

__all__ = ["LIMITS", "check_cone_engine"]

LIMITS = ("max_iter", "time_limit")

TRUSTED = ((60, 1e-9, 1e-6), (250, 1e-7, 1e-5), (1000, 1e-5, 1e-3))
"""Up to how many entries of θ which accuracy, relative to the radius, is taken on: for cones that
are polyhedral or of second order, and for others, whose membership is known to √ε less."""


def check_cone_engine(
    solver: str | None,
    options: Mapping[str, Any],
    variables: Sequence[cp.Variable],
    regulariser: cp.Expression | None,
    constraints: Sequence[cp.Constraint],
    *,
    accuracy: float,
    size: float = 1.0,
    curvature: float = 1.0,
) -> str:
    """Name of the solver inside, after all that can be checked on the public part of the problem.

    What is taken on is decided by D, the cones and the accuracy alone, and then tried with a public
    quadratic in the place of the private loss.

    Parameters
    ----------
    solver : str or None
        A solver of CVXPY; None chooses.
    options : mapping
        Its options.
    variables, regulariser, constraints
        The public rest.
    accuracy : float
        Δ relative to ``size``.
    size, curvature : float
        Public sizes of θ and of the curvature of the loss.

    Raises
    ------
    OptionError
        The solver, an option or the accuracy does not do; the message says what does.
    ProblemError
        The constraints are infeasible, or the rest is not convex.
    """
    name = solver or conic.default_solver(variables, regulariser, constraints)
    rest = (variables, regulariser, constraints)
    conic.check_solver("CLARABEL", {}, *rest, size=size, curvature=curvature)
    remainder = quadratic_terms(variables, regulariser).remainder
    program = Program.of(standard_form(variables, remainder, constraints, size))
    _check_cones(name, program)
    conic.check_solver(name, dict(options), *rest, size=size, curvature=curvature)
    least = _least_accuracy(program)
    if accuracy < least:
        raise OptionError(
            f"accuracy={accuracy:g}: with {program.dimension} entries of θ and these cones the "
            f"conic engine is trusted with {least:.1g} at best; pass a larger accuracy, which adds "
            "release noise in proportion"
        )
    D = program.dimension
    # Off the kinks of most terms, and steep enough to stay there.
    steep = curvature + float(np.linalg.norm(program.form.c)) / size
    trial = Quadratic(steep * np.eye(D), np.zeros(D), size * np.cos(1.0 + np.arange(D)))
    try:
        solve_over_cones(
            trial,
            *rest,
            accuracy=accuracy * size,
            size=size,
            solver=name,
            solver_options=options,
            max_iter=20,
        )
    except AccuracyError:
        raise OptionError(
            f"solver={name!r} with these solver_options does not reach accuracy={accuracy:g} on "
            "the public part of the problem; pass a larger accuracy, or leave out solver and "
            "solver_options"
        ) from None
    return name


def _least_accuracy(program: Program) -> float:
    plain = all(cone.kind in ("zero", "nonneg", "soc") for cone in program.cones.parts)
    for most, straight, curved in TRUSTED:
        if program.dimension <= most:
            return straight if plain else curved
    return float("inf")


def _check_cones(name: str, program: Program) -> None:
    """Refuse a solver that lacks a cone, naming those that have them."""
    if _takes(name, program):
        return
    others = [other for other in cp.installed_solvers() if _takes(other, program)]
    raise OptionError(
        f"solver={name!r} cannot take this problem: its regulariser or constraints need cones that "
        f"it does not have; of the installed solvers {', '.join(others)} have them"
    )


def _takes(name: str, program: Program) -> bool:
    form = program.form
    problem, _, _ = cone_problem(np.eye(program.dimension), form.c, form.A, form.b, program.cones)
    return compiles(problem, name)
