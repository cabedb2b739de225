"""The perturbed quadratic with the public rest of the problem, through CVXPY's solvers.

The solver receives the D × D quadratic form, never n rows, and a problem of our own: nothing is
written into the user's variables, parameters, constraints or problem.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import cvxpy as cp
import numpy as np
import numpy.typing as npt
from cvxpy import settings
from cvxpy.error import SolverError

from cvxqop._cvxpy import is_sparse
from cvxqop.errors import OptionError, ProblemError
from cvxqop.solve.answer import Answer
from cvxqop.solve.engines.polish import polished
from cvxqop.solve.rest.prox import NotSplittable, split
from cvxqop.solve.smooth.quadratic import Quadratic
from cvxqop.solve.solvers import TIGHT, attempt, compiles, installed
from cvxqop.solve.units import Rescaled, power_of_two, rescaled, size_of

__all__ = ["default_solver", "quadratic_problem", "quickest", "solve_conic", "stacked"]

Array = npt.NDArray[np.float64]

SMALL = 1e-3
"""Part of the expected size of θ below which an answer is looked for again, in its own units."""


def solve_conic(
    quadratic: Quadratic,
    variables: Sequence[cp.Variable],
    regulariser: cp.Expression | None,
    constraints: Sequence[cp.Constraint],
    *,
    solver: str | None = None,
    solver_options: Mapping[str, Any] | None = None,
    scale: float = 0.0,
    size: float | None = None,
    polish: bool = True,
) -> Answer:
    """Minimise f(θ) + r(θ) over θ in C with a solver that CVXPY knows.

    Parameters
    ----------
    quadratic : Quadratic
        f, over the stacked variables.
    variables : sequence of cp.Variable
        θ is their entries in this order, each flattened in Fortran order.
    regulariser : cp.Expression or None
        r, a convex scalar expression; None is 0.
    constraints : sequence of cp.Constraint
        C.
    solver : str or None
        A name from ``cp.installed_solvers()``; None chooses (`default_solver`).
    solver_options : mapping or None
        Passed through; they win over the tight tolerances set here.
    scale : float
        Curvature of ``regulariser`` where it is a loss that outweighs f.
    size : float or None
        Expected size of θ, the unit that the solver works in; None takes that of the minimiser of
        f.
    polish : bool
        Whether proximal steps follow.

    Returns
    -------
    Answer
        After a few proximal steps from the solver's point where r + ι_C has a known proximal
        operator: the zeros of a LASSO are exact, simple constraints hold to the last bit, and the
        solvers agree to far below their tolerances.

    Raises
    ------
    cvxpy.error.SolverError
        The solver failed, did not reach its tolerance, or its answer is not finite or not
        feasible (`feasibility`), whatever its status says. The message carries no number.

    Examples
    --------
    >>> import cvxpy as cp, numpy as np
    >>> from cvxqop.solve.smooth.quadratic import Quadratic
    >>> theta = cp.Variable(2)
    >>> f = Quadratic(np.eye(2), np.array([-3.0, 0.5]), np.zeros(2))
    >>> answer = solve_conic(f, [theta], cp.norm1(theta), [theta <= 1])
    >>> answer.theta.tolist(), theta.value is None
    ([1.0, 0.0], True)
    """
    name = solver or default_solver(variables, regulariser, constraints)
    mean = float(np.trace(quadratic.H)) / len(quadratic.g)
    curvature, options = mean + scale, dict(solver_options or {})
    rest = (variables, regulariser, constraints)
    unit = size or size_of(quadratic)
    answer, fault = _in_units(unit, curvature, quadratic, *rest, name, options, polish)
    found = 0.0 if answer is None else float(np.abs(answer.theta).max(initial=0.0))
    if 0.0 < found < SMALL * unit:
        # Constraints that confine θ to far less than f alone would have: tolerances were coarse.
        again, wrong = _in_units(found, curvature, quadratic, *rest, name, options, polish)
        if fault or not wrong:
            answer, fault = again, wrong
    if answer is None or fault:
        raise SolverError(fault) from None
    return answer


def _in_units(
    size: float,
    curvature: float,
    quadratic: Quadratic,
    variables: Sequence[cp.Variable],
    regulariser: cp.Expression | None,
    constraints: Sequence[cp.Constraint],
    name: str,
    options: Mapping[str, Any],
    polish: bool,
) -> tuple[Answer | None, str]:
    """An answer for θ of about ``size``, and what is wrong with it, in words without numbers."""
    # Powers of two change no digit, and bring θ and the objective to the scale of the tolerances.
    scale = power_of_two(curvature)
    rest = rescaled(size, variables, regulariser, constraints)
    problem = quadratic_problem(
        quadratic.H / scale,
        (quadratic.g - quadratic.H @ quadratic.anchor) / (scale * rest.unit),
        rest.variables,
        rest.over(scale * rest.unit**2),
        rest.constraints,
    )
    status, solution = attempt(problem, name, {**TIGHT.get(name, {}), **options})
    if status == settings.OPTIMAL_INACCURATE and name in TIGHT:
        # The tight tolerance was out of reach: the solver's own may not be.
        second = attempt(problem, name, options)
        if second[0] == settings.OPTIMAL:
            status, solution = second
    if status != settings.OPTIMAL:
        return None, (
            f"solver {name} ended with status {status!r} on the perturbed problem; "
            "try another solver, or other solver_options"
        )
    answer = _answer(rest, solution)
    if answer is not None and polish and not answer.auxiliary and answer.finite:
        theta = polished(quadratic, variables, regulariser, constraints, answer.theta)
        answer = replace(answer, theta=theta)
    what = "is incomplete" if answer is None else answer.fault(variables, regulariser, constraints)
    return answer, what and (
        f"the answer of solver {name} {what}, whatever its status says; try another solver, "
        "or other solver_options"
    )


def default_solver(
    variables: Sequence[cp.Variable],
    regulariser: cp.Expression | None,
    constraints: Sequence[cp.Constraint],
) -> str:
    """Name of the solver that is used when none is asked for.

    CLARABEL where it is installed, as CVXPY itself would choose: on the D × D form it is the
    fastest of the bundled solvers at tight tolerances, and takes every cone. Otherwise the first
    installed solver that accepts the problem.
    """
    if "CLARABEL" in installed():
        return "CLARABEL"
    D = sum(v.size for v in variables)
    problem = quadratic_problem(np.eye(D), np.zeros(D), variables, regulariser, constraints)
    for name in installed():
        if compiles(problem, name):
            return name
    raise OptionError("solver: no installed CVXPY solver can take this problem") from None


def quickest(
    variables: Sequence[cp.Variable],
    regulariser: cp.Expression | None,
    constraints: Sequence[cp.Constraint],
) -> str:
    """Name of the quickest solver of a released quadratic form plus the rest.

    STOTOS where r and C act on each coordinate by itself (absolute values, squares, boxes): one
    Cholesky factor and a few products then do what takes a conic solver minutes for thousands of
    features. Else that of `default_solver`.

    Examples
    --------
    >>> import cvxpy as cp
    >>> theta = cp.Variable(3)
    >>> quickest([theta], cp.norm1(theta), [theta >= 0]), quickest([theta], cp.norm(theta), [])
    ('STOTOS', 'CLARABEL')
    """
    try:
        if split(variables, regulariser, constraints).separable:
            return "STOTOS"
    except (NotSplittable, ProblemError):
        pass
    return default_solver(variables, regulariser, constraints)


def stacked(variables: Sequence[cp.Variable]) -> cp.Expression:
    """θ as one CVXPY vector: the variables in order, each flattened in Fortran order."""
    if len(variables) == 1 and variables[0].ndim == 1:
        return variables[0]
    return cp.hstack([cp.vec(v, order="F") for v in variables])


def quadratic_problem(
    H: Array,
    linear: Array,
    variables: Sequence[cp.Variable],
    regulariser: cp.Expression | None,
    constraints: Sequence[cp.Constraint],
) -> cp.Problem:
    theta = stacked(variables)
    # H is positive definite by construction: CVXPY's own test of it is slow and errs near 0.
    objective = 0.5 * cp.quad_form(theta, cp.psd_wrap(H)) + linear @ theta
    if regulariser is not None:
        objective = objective + regulariser
    return cp.Problem(cp.Minimize(objective), list(constraints))


def _answer(rest: Rescaled, solution: Any) -> Answer | None:
    """What a solver reports, in the units of θ; None where a variable is missing or of another
    size."""
    found = {}
    for v in (*rest.variables, *rest.auxiliary.values()):
        value = solution.primal_vars.get(v.id)
        value = np.asarray(value.toarray() if is_sparse(value) else value)
        if value.size != v.size or value.dtype.kind not in "fiu":
            return None
        found[v.id] = rest.unit * value.astype(np.float64).reshape(v.shape, order="F")
    theta = np.concatenate([found[v.id].reshape(-1, order="F") for v in rest.variables])
    return Answer(theta, {v: found[own.id] for v, own in rest.auxiliary.items()})
