"""The entry to the engine for any convex rest, and the way back onto C."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import cvxpy as cp
import numpy as np
import numpy.typing as npt
from cvxpy.error import SolverError

from cvxqop._cvxpy import SHARED
from cvxqop.errors import AccuracyError, OptionError
from cvxqop.solve.answer import Answer
from cvxqop.solve.certificate import Curvature
from cvxqop.solve.cones.cones import Cones
from cvxqop.solve.cones.program import Program
from cvxqop.solve.cones.solvers import ConeSolution, run_clarabel, run_cvxpy
from cvxqop.solve.cones.standard_form import standard_form
from cvxqop.solve.engines import conic
from cvxqop.solve.engines.monitor import Goal, Monitor, failure, with_less_rounding
from cvxqop.solve.engines.proximal_newton import Inner, minimise_over_cones
from cvxqop.solve.rest.feasibility import domain
from cvxqop.solve.rest.prox import NotSplittable, split
from cvxqop.solve.rest.quadratic_terms import quadratic_terms
from cvxqop.solve.smooth.finite_sum import FiniteSum
from cvxqop.solve.smooth.function import PerturbedFunction
from cvxqop.solve.smooth.quadratic import Quadratic
from cvxqop.solve.solvers import TIGHT, run
from cvxqop.solve.units import size_of

__all__ = ["nearest", "solve_over_cones"]

Array = npt.NDArray[np.float64]
Smooth = Quadratic | FiniteSum | PerturbedFunction

PROJECTED = 1e-8
CLOSE = 1e6


def solve_over_cones(
    smooth: Smooth,
    variables: Sequence[cp.Variable],
    regulariser: cp.Expression | None,
    constraints: Sequence[cp.Constraint],
    *,
    accuracy: float = 1e-6,
    size: float | None = None,
    solver: str = "CLARABEL",
    solver_options: Mapping[str, Any] | None = None,
    max_iter: int | None = None,
    time_limit: float | None = None,
    cholesky: Array | None = None,
    progress: bool | Callable[[int, float, float, float], Any] = False,
) -> Answer:
    """Minimise f(θ) + r(θ) over C to a certified accuracy, for any convex r and C.

    Parameters
    ----------
    smooth : Quadratic, FiniteSum or PerturbedFunction
        f.
    variables, regulariser, constraints
        The public rest; other variables may occur in it.
    accuracy : float
        Certified bound on ‖θ − argmin‖₂.
    size : float or None
        Expected size of θ, the unit of the cone programs; None takes that of the minimiser of f
        where f is a quadratic form, else one.
    solver, solver_options
        A solver of CVXPY for the D × D models, with its options.
    max_iter, time_limit : int, float or None
        Outer iterations and seconds.
    cholesky : (D, D) array or None
        Lower Cholesky factor of S where the caller has it.
    progress : bool or callable
        See `Monitor`. Not private.

    Raises
    ------
    AccuracyError
        A limit set by the caller, or working precision, was reached first.

    Examples
    --------
    >>> import cvxpy as cp, numpy as np
    >>> from cvxqop.solve.smooth.quadratic import Quadratic
    >>> theta = cp.Variable(2)
    >>> f = Quadratic(np.eye(2), np.array([-3.0, -0.5]), np.zeros(2))
    >>> answer = solve_over_cones(f, [theta], None, [cp.max(theta) + cp.max(-theta) <= 2])
    >>> answer.theta.round(6).tolist(), answer.distance <= 1e-6
    ([2.75, 0.75], True)
    """
    with SHARED:
        Q, q, remainder = quadratic_terms(variables, regulariser)
        form = standard_form(variables, remainder, constraints, size or _size(smooth))
    program = Program.of(form)
    factor = cholesky if Q is None else None
    smooth = smooth if Q is None and not np.any(q) else smooth.plus(Q, q)
    curvature = Curvature(smooth.lower_curvature(), factor)
    inner = _inner(solver, solver_options or {})
    monitor = Monitor(max_iter, time_limit, progress)
    goal = Goal(accuracy)
    try:
        found = with_less_rounding(
            lambda f: minimise_over_cones(f, program, inner, goal, monitor, curvature), smooth
        )
    finally:
        monitor.close()
    certificate = found.certificate
    return Answer(found.candidate.point, {}, certificate.distance, certificate.gap)


def _size(smooth: Smooth) -> float:
    return size_of(smooth) if isinstance(smooth, Quadratic) else 1.0


def _inner(name: str, options: Mapping[str, Any]) -> Inner:
    """A solver as a function of a model; whatever it raises is no answer."""

    def solve(
        H: Array, q: Array, A: Any, b: Array, cones: Cones, tolerance: float
    ) -> ConeSolution | None:
        try:
            if name == "CLARABEL":
                P = np.zeros((len(q), len(q)))
                P[: len(H), : len(H)] = H
                tight = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), tolerance)
                return run_clarabel(P, q, A, b, cones, {**tight, **options})
            settings = {**TIGHT.get(name, {}), **options}
            return run_cvxpy(lambda p: run(p, name, settings), H, q, A, b, cones)
        except Exception:  # whatever it says, it depends on records
            return None

    return solve


def nearest(
    variables: Sequence[cp.Variable],
    regulariser: cp.Expression | None,
    constraints: Sequence[cp.Constraint],
    theta: Array,
) -> Answer:
    """The point of C ∩ dom r next to a release, with values of the other variables to go with it.

    Post-processing: only what has been released, and the public rest, enter.

    Raises
    ------
    AccuracyError
        No installed solver finds it.
    """
    constraints = [*constraints, *([] if regulariser is None else domain(regulariser))]
    theta = _projected(variables, constraints, theta)
    own = {v.id for v in variables}
    terms = [*constraints] if regulariser is None else [regulariser, *constraints]
    if all(v.id in own for term in terms for v in term.variables()):
        return Answer(theta)
    # With θ fixed the other variables are left to choose; on the edge of C rounding may forbid it.
    one, zero = np.eye(len(theta)), np.zeros(len(theta))
    fixed = [*constraints, conic.stacked(variables) == theta]
    found = _solved(Quadratic(one, zero, theta), variables, regulariser, fixed) or _solved(
        Quadratic(CLOSE * one, zero, theta), variables, regulariser, constraints
    )
    if found is None:
        raise AccuracyError(failure("the release could not be put back onto the constraints"))
    return Answer(theta, found.auxiliary)


def _projected(
    variables: Sequence[cp.Variable], constraints: Sequence[cp.Constraint], theta: Array
) -> Array:
    """Π_C(θ): exactly where C can be split, else certified, else as a solver has it."""
    with contextlib.suppress(NotSplittable):
        return split(variables, None, constraints).project(theta).point
    onto = Quadratic(np.eye(len(theta)), np.zeros(len(theta)), theta)
    with contextlib.suppress(AccuracyError, OptionError):
        accuracy = PROJECTED * (float(np.linalg.norm(theta)) or 1.0)
        return solve_over_cones(onto, variables, None, constraints, accuracy=accuracy).theta
    found = _solved(onto, variables, None, constraints)
    if found is None:
        raise AccuracyError(failure("the release could not be put back onto the constraints"))
    return found.theta


def _solved(
    form: Quadratic,
    variables: Sequence[cp.Variable],
    regulariser: cp.Expression | None,
    constraints: Sequence[cp.Constraint],
) -> Answer | None:
    for name in ("CLARABEL", "SCS", None):
        try:
            return conic.solve_conic(form, variables, regulariser, constraints, solver=name)
        except (SolverError, OptionError):
            continue
    return None
