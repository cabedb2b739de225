"""What the engine for any convex rest is trusted with, decided on the public part of a problem."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import cvxpy as cp
import numpy as np
import numpy.typing as npt

from cvxqop.errors import AccuracyError, OptionError
from cvxqop.solve.cones.engine import solve_over_cones
from cvxqop.solve.cones.program import Program
from cvxqop.solve.cones.solvers import cone_problem
from cvxqop.solve.cones.standard_form import standard_form
from cvxqop.solve.engines import conic, conic_checks
from cvxqop.solve.rest.quadratic_terms import quadratic_terms
from cvxqop.solve.smooth.quadratic import Quadratic
from cvxqop.solve.solvers import compiles, installed

__all__ = ["LIMITS", "check_cone_engine", "check_ridge"]

Array = npt.NDArray[np.float64]

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
    conic_checks.check_solver("CLARABEL", {}, *rest, size=size, curvature=curvature)
    remainder = quadratic_terms(variables, regulariser).remainder
    program = Program.of(standard_form(variables, remainder, constraints, size))
    _check_cones(name, program)
    if name != "CLARABEL" or options:
        conic_checks.check_solver(name, dict(options), *rest, size=size, curvature=curvature)
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
    if not _reached(steep * np.eye(D), *rest, accuracy, size, name, options):
        remedy = "" if solver is None else ", or leave out solver and solver_options"
        raise OptionError(
            f"accuracy={accuracy:g}: solver {name} does not reach it on the public part of the "
            f"problem; pass a larger accuracy{remedy}"
        )
    return name


def check_ridge(
    solver: str,
    options: Mapping[str, Any],
    variables: Sequence[cp.Variable],
    regulariser: cp.Expression | None,
    constraints: Sequence[cp.Constraint],
    *,
    accuracy: float,
    size: float,
    flat: Array,
    ridge: float,
) -> None:
    """Refuse an accuracy that the ridge of a mechanism is too small for.

    Where no record has curvature the ridge m is all there is, and what rounding leaves of an
    ε-subgradient counts √(ε/m).

    Parameters
    ----------
    solver, options, variables, regulariser, constraints, accuracy, size
        As in `check_cone_engine`.
    flat : (D, k) array
        Orthonormal directions in which the loss is linear, whatever the records.
    ridge : float
        m, known before the draw.

    Raises
    ------
    OptionError
        Names an accuracy that is reached on the public part of the problem, if any is.
    """
    rest = (variables, regulariser, constraints)
    steep = max(1.0, ridge)
    H = steep * np.eye(len(flat)) - (steep - ridge) * (flat @ flat.T)
    coarser = [accuracy * factor for factor in (1.0, 10.0, 100.0, 1e3)]
    reached = (a for a in coarser if _reached(H, *rest, a, size, solver, options))
    found = next(reached, None)
    if found == accuracy:
        return
    larger = "a larger accuracy" if found is None else f"accuracy={found:g}"
    raise OptionError(
        f"accuracy={accuracy:g} cannot be certified: in some directions no record has curvature, "
        f"only the ridge {ridge:.2g} of the mechanism. Pass {larger}, or add a public ridge to the "
        "objective, such as cp.sum_squares of the variable"
    )


def _reached(
    H: Array,
    variables: Sequence[cp.Variable],
    regulariser: cp.Expression | None,
    constraints: Sequence[cp.Constraint],
    accuracy: float,
    size: float,
    solver: str,
    options: Mapping[str, Any],
) -> bool:
    """Whether the engine certifies a public quadratic in the place of the private loss."""
    D = len(H)
    trial = Quadratic(H, np.zeros(D), size * np.cos(1.0 + np.arange(D)))
    try:
        solve_over_cones(
            trial,
            variables,
            regulariser,
            constraints,
            accuracy=accuracy * size,
            size=size,
            solver=solver,
            solver_options=options,
            max_iter=20,
        )
    except AccuracyError:
        return False
    return True


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
    others = [other for other in installed() if _takes(other, program)]
    raise OptionError(
        f"solver={name!r} cannot take this problem: its regulariser or constraints need cones that "
        f"it does not have; of the installed solvers {', '.join(others)} have them"
    )


def _takes(name: str, program: Program) -> bool:
    form = program.form
    problem, _, _ = cone_problem(np.eye(program.dimension), form.c, form.A, form.b, program.cones)
    return compiles(problem, name)
