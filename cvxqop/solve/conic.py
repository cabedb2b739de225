"""The perturbed quadratic with the public rest of the problem, through CVXPY's solvers.

The solver receives the D × D quadratic form, never n rows, and a problem of our own: nothing is
written into the user's variables, parameters, constraints or problem.
"""

from __future__ import annotations

import contextlib
import os
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import cvxpy as cp
import numpy as np
import numpy.typing as npt
from cvxpy import settings
from cvxpy.error import DCPError, SolverError

from cvxqop.errors import OptionError, ProblemError
from cvxqop.solve.answer import Answer
from cvxqop.solve.polish import polished
from cvxqop.solve.prox import NotSplittable, split
from cvxqop.solve.quadratic import Quadratic

__all__ = ["check_feasible", "check_solver", "default_solver", "solve_conic"]

Array = npt.NDArray[np.float64]

TIGHT: Mapping[str, Mapping[str, Any]] = {
    "CLARABEL": {"tol_gap_abs": 1e-10, "tol_gap_rel": 1e-10, "tol_feas": 1e-10},
    "OSQP": {"eps_abs": 1e-10, "eps_rel": 1e-10, "max_iter": 200_000, "polishing": True},
    "SCS": {"eps_abs": 1e-10, "eps_rel": 1e-10, "max_iters": 200_000},
    "HIGHS": {
        "primal_feasibility_tolerance": 1e-10,
        "dual_feasibility_tolerance": 1e-10,
    },
    "ECOS": {"abstol": 1e-10, "reltol": 1e-10, "feastol": 1e-10},
    "PIQP": {"eps_abs": 1e-10, "eps_rel": 1e-10},
    "PROXQP": {"eps_abs": 1e-10, "eps_rel": 1e-10},
    "DAQP": {"eps_prim": 1e-10, "eps_dual": 1e-10},
    "QOCO": {"abstol": 1e-10, "reltol": 1e-10},
    "CVXOPT": {"abstol": 1e-10, "reltol": 1e-10, "feastol": 1e-10},
    "GUROBI": {"BarConvTol": 1e-10, "FeasibilityTol": 1e-9, "OptimalityTol": 1e-9},
}

# Options that make a solver print iterations, which come from records.
PRINTING = frozenset({"verbose", "output_flag", "log_to_console", "OutputFlag"})


def solve_conic(
    quadratic: Quadratic,
    variables: Sequence[cp.Variable],
    regulariser: cp.Expression | None,
    constraints: Sequence[cp.Constraint],
    *,
    solver: str | None = None,
    solver_options: Mapping[str, Any] | None = None,
    scale: float = 0.0,
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
        The solver failed or did not reach its tolerance. The message carries no number.

    Examples
    --------
    >>> import cvxpy as cp, numpy as np
    >>> from cvxqop.solve.quadratic import Quadratic
    >>> theta = cp.Variable(2)
    >>> f = Quadratic(np.eye(2), np.array([-3.0, 0.5]), np.zeros(2))
    >>> answer = solve_conic(f, [theta], cp.norm1(theta), [theta <= 1])
    >>> answer.theta.tolist(), theta.value is None
    ([1.0, 0.0], True)
    """
    name = solver or default_solver(variables, regulariser, constraints)
    # A power of two changes no digit, and brings the objective to the scale of the tolerances.
    mean = float(np.trace(quadratic.H)) / len(quadratic.g)
    scale = float(2.0 ** np.round(np.log2(max(mean + scale, 1e-300))))
    problem = _problem(
        quadratic.H / scale,
        (quadratic.g - quadratic.H @ quadratic.anchor) / scale,
        variables,
        None if regulariser is None else regulariser * (1.0 / scale),
        constraints,
    )
    own = dict(solver_options or {})
    status, solution = _attempt(problem, name, {**TIGHT.get(name, {}), **own})
    if status == settings.OPTIMAL_INACCURATE and name in TIGHT:
        # The tight tolerance was out of reach: the solver's own may not be.
        second = _attempt(problem, name, own)
        if second[0] == settings.OPTIMAL:
            status, solution = second
    if status != settings.OPTIMAL:
        raise SolverError(
            f"solver {name} ended with status {status!r} on the perturbed problem; "
            "try another solver, or other solver_options"
        ) from None
    answer = _answer(problem, variables, solution)
    if answer.auxiliary or not polish:
        return answer
    theta = polished(quadratic, variables, regulariser, constraints, answer.theta)
    return replace(answer, theta=theta)


def _attempt(problem: cp.Problem, name: str, options: Mapping[str, Any]) -> tuple[str, Any]:
    """Status and solution; whatever a solver raises is a status too."""
    try:
        solution = _solve(problem, name, options)
    except Exception:
        return settings.SOLVER_ERROR, None
    return str(solution.status), solution


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
    installed = cp.installed_solvers()
    if "CLARABEL" in installed:
        return "CLARABEL"
    D = sum(v.size for v in variables)
    problem = _problem(np.eye(D), np.zeros(D), variables, regulariser, constraints)
    for name in installed:
        with contextlib.suppress(Exception):
            problem.get_problem_data(name, ignore_dpp=True, solver_opts={})
            return str(name)
    raise OptionError("solver: no installed CVXPY solver can take this problem") from None


def check_solver(
    solver: str | None,
    solver_options: Mapping[str, Any] | None,
    variables: Sequence[cp.Variable],
    regulariser: cp.Expression | None,
    constraints: Sequence[cp.Constraint],
) -> None:
    """Refuse a solver, or options, that cannot work, before any record is touched.

    The same solver with the same options minimises ½‖θ‖² + r(θ) over C, which is public.

    Raises
    ------
    OptionError
        Unknown or not installed solver, one that cannot take the problem, unknown or bad options.
    ProblemError
        The constraints are infeasible, r is nowhere finite, or the rest is not convex.
    """
    options = dict(solver_options or {})
    for option in PRINTING & options.keys():
        raise OptionError(f"solver_options: {option!r} would print unreleased numbers")
    if solver is None and not options:
        check_feasible(variables, regulariser, constraints)
        return
    _check_on(solver, options, variables, regulariser, constraints)


def _check_on(
    solver: str | None,
    options: Mapping[str, Any],
    variables: Sequence[cp.Variable],
    regulariser: cp.Expression | None,
    constraints: Sequence[cp.Constraint],
) -> None:
    name = solver or default_solver(variables, regulariser, constraints)
    installed = cp.installed_solvers()
    if name not in installed:
        raise OptionError(f"solver={name!r} is not installed; installed are {', '.join(installed)}")
    D = sum(v.size for v in variables)
    problem = _problem(np.eye(D), np.zeros(D), variables, regulariser, constraints)
    _check_convex(problem)
    try:
        problem.get_problem_data(name, ignore_dpp=True, solver_opts={})
    except SolverError:
        raise OptionError(
            f"solver={name!r} cannot take this problem: its regulariser or constraints need "
            "cones that it does not have"
        ) from None
    try:
        status = _solve(problem, name, options).status
    except Exception as error:
        # Nothing private has entered this problem, so the solver's own words may be shown.
        raise OptionError(f"solver={name!r} refuses solver_options: {error}") from None
    # Any other status says nothing of the real problem, whose scale is another.
    if status in (settings.INFEASIBLE, settings.UNBOUNDED):
        raise ProblemError(
            "constraints: no point satisfies them and has a finite regulariser, or the regulariser "
            "is unbounded below (found before any privacy budget was charged)"
        )


def check_feasible(
    variables: Sequence[cp.Variable],
    regulariser: cp.Expression | None,
    constraints: Sequence[cp.Constraint],
    *,
    solver: str | None = None,
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
    _check_on(solver, {}, variables, regulariser, constraints)


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


def stacked(variables: Sequence[cp.Variable]) -> cp.Expression:
    """θ as one CVXPY vector: the variables in order, each flattened in Fortran order."""
    if len(variables) == 1 and variables[0].ndim == 1:
        return variables[0]
    return cp.hstack([cp.vec(v, order="F") for v in variables])


def _problem(
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


def _solve(problem: cp.Problem, solver: str, options: Mapping[str, Any]) -> Any:
    """CVXPY's chain by hand, so that no value is written into any variable or constraint."""
    if solver == "SCS" and not problem.constraints:
        theta = problem.variables()[0]
        problem = cp.Problem(problem.objective, [cp.sum(theta) * 0 <= 1])
    with _silence(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data, chain, inverse_data = problem.get_problem_data(
            solver, ignore_dpp=True, solver_opts={}
        )
        raw = chain.solve_via_data(
            problem, data, warm_start=False, verbose=False, solver_opts=dict(options)
        )
        return chain.invert(raw, inverse_data)


def _answer(problem: cp.Problem, variables: Sequence[cp.Variable], solution: Any) -> Answer:
    values = solution.primal_vars
    theta = np.concatenate(
        [np.asarray(values[v.id], dtype=np.float64).reshape(-1, order="F") for v in variables]
    )
    own = {v.id for v in variables}
    others = [v for v in problem.variables() if v.id not in own]
    return Answer(theta, {v: np.asarray(values[v.id]).reshape(v.shape) for v in others})


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Send file descriptor 1 to the null device: OSQP and HiGHS write there from C."""
    sys.stdout.flush()
    saved = os.dup(1)
    null = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(null, 1)
        yield
    finally:
        os.dup2(saved, 1)
        os.close(saved)
        os.close(null)
