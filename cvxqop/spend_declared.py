"""Spending on a declared loss: a solver's answer, its certificate, the release.

Only values and gradients of the loss are at hand. The certificate needs no more than that: the
perturbed objective is λ_min(S)-strongly convex because the loss is convex.
"""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np
import numpy.typing as npt
from cvxpy.error import SolverError

from cvxqop.backend import STOTOS, Backend
from cvxqop.case import Case
from cvxqop.errors import AccuracyError, OptionError, ProblemError
from cvxqop.feasible_release import feasible_release, unreleased
from cvxqop.problem.declared_erm import DeclaredERM
from cvxqop.solution import PrivateSolution
from cvxqop.solve.cones import engine as cone_engine
from cvxqop.solve.engines import conic, stotos
from cvxqop.solve.engines.monitor import PrecisionError, failure
from cvxqop.solve.rest.prox import NotSplittable, splits
from cvxqop.solve.smooth.function import Function, PerturbedFunction
from cvxqop.solve.smooth.quadratic import Quadratic
from cvxqop.solve.solvers import compiles

__all__ = ["from_function"]

Array = npt.NDArray[np.float64]


def from_function(case: Case, erm: DeclaredERM, backend: Backend) -> PrivateSolution:
    """A point within Δ of the minimiser, certified or trusted to be, then the Gaussian release."""
    release = case.mechanism.release
    assert release is not None
    erm.check_finite()
    function = erm.function()
    _check_derivatives(function, case.anchor)
    if backend.name != STOTOS and not backend.over_cones:
        _check_cones(erm, backend)
    draw, noise, sampling = case.draw()
    declared, D = erm.declared, erm.dimension
    smooth = PerturbedFunction(
        function,
        draw.curvature,
        draw.guard,
        case.anchor,
        summands=erm.rows.n,
        smoothness=declared.smoothness,
        slope=declared.anchor_bound,
        curvature=max(erm.rows.n, 1) * declared.trace_bound(D) / D,
    )
    try:
        theta = _solved(case, erm, backend, smooth, draw.factor, sampling)
    except AccuracyError as error:
        raise AccuracyError(str(error)) from None
    except Exception:  # whatever it says, it depends on records
        raise AccuracyError(failure("the solver failed")) from None
    if not np.all(np.isfinite(theta)):
        raise AccuracyError(unreleased("is not finite"))
    values = feasible_release(erm, release.apply(theta, noise))
    return PrivateSolution(values, case.guarantee, backend.name)


def _solved(
    case: Case,
    erm: DeclaredERM,
    backend: Backend,
    smooth: PerturbedFunction,
    factor: Array,
    sampling: np.random.Generator,
) -> Array:
    """The minimiser for this draw: by STOTOS, from a conic solver's answer where one was asked for
    or where STOTOS alone did not get there."""
    trusting, release = case.settings.accept_solver_accuracy, case.mechanism.release
    size, rest = case.settings.distance, (erm.variables, erm.regulariser, erm.constraints)
    assert release is not None

    def certified(start: Array | None, options: Any) -> Array:
        answer = stotos.solve_stotos(
            smooth,
            *rest,
            accuracy=release.accuracy,
            start=start,
            seed=sampling,
            cholesky=factor,
            progress=case.settings.verbose,
            **options,
        )
        assert answer.distance is not None
        assert answer.distance <= release.accuracy
        return answer.theta

    if backend.over_cones:
        return cone_engine.solve_over_cones(
            smooth,
            *rest,
            size=size,
            accuracy=release.accuracy,
            cholesky=factor,
            progress=case.settings.verbose,
            **backend.options,
        ).theta
    if backend.name == STOTOS:
        try:
            return certified(None, backend.options)
        except PrecisionError:
            start = _conic(erm, smooth, size, None, {})
        options = backend.options
    else:
        start, options = _conic(erm, smooth, size, backend.name, backend.options), {}
    if trusting and start is None and not splits(*rest):
        raise AccuracyError(_unanswered(backend.name))
    try:
        return certified(start, options)
    except (AccuracyError, NotSplittable):
        if trusting and start is not None:
            return start
        raise


def _unanswered(name: str) -> str:
    return (
        f"solver {name} found no finite and feasible answer to the perturbed problem; nothing was "
        "released and the privacy charge stands. Another solver, or other solver_options, may find "
        "one. This failure depends on the data: it is for the holder of the data only"
    )


def _conic(
    erm: DeclaredERM, smooth: PerturbedFunction, size: float, name: str | None, options: Any
) -> Array | None:
    """The answer of a solver of CVXPY for a θ of about ``size``, finite and feasible; None if it
    failed."""
    form = Quadratic(smooth.S, smooth.a, smooth.anchor)
    objective = erm.term if erm.regulariser is None else erm.term + erm.regulariser
    try:
        answer = conic.solve_conic(
            form,
            erm.variables,
            objective,
            erm.constraints,
            solver=name,
            solver_options=options,
            scale=smooth.curvature,
            size=size,
            polish=False,
        )
    except SolverError:
        return None
    return answer.theta


def _check_derivatives(function: Function, anchor: Array) -> None:
    """Refuse atoms without a derivative; where it is defined depends on the data, and is no matter.

    Raises
    ------
    ProblemError
        If CVXPY does not know the derivative of an atom of the loss.
    """
    known = True
    try:
        function(anchor)
    except NotImplementedError:
        known = False
    if not known:
        raise ProblemError(
            "The declared loss holds an atom whose derivative CVXPY does not know, so that no "
            "answer can be certified. Write the loss with other atoms."
        )


def _check_cones(erm: DeclaredERM, backend: Backend) -> None:
    """Refuse a solver that cannot take the atoms of the loss.

    Raises
    ------
    OptionError
        Names the solver, and those that can.
    """
    theta = conic.stacked(erm.variables)
    objective = erm.term + cp.sum_squares(theta)
    problem = cp.Problem(cp.Minimize(objective), list(erm.constraints))
    if compiles(problem, backend.name):
        return
    others = [repr(name) for name in cp.installed_solvers() if compiles(problem, name)]
    remedy = f"use {' or '.join(others)}" if others else "write it with other atoms"
    raise OptionError(
        f"solver={backend.name!r} cannot take the private loss {' + '.join(erm.terms)}: {remedy}."
    )
