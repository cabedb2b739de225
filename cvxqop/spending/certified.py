"""Losses that are solved on records: a certified point for a draw, then its release."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import cvxpy as cp
import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from cvxpy.error import SolverError

from cvxqop.backend import Backend
from cvxqop.case import Case
from cvxqop.errors import (
    AccuracyError,
    OptionError,
)
from cvxqop.privacy.mechanism import Draw
from cvxqop.problem.erm import ERM
from cvxqop.solution import PrivateSolution
from cvxqop.solve.cones import engine as cone_engine
from cvxqop.solve.engines import conic, monitor, stotos
from cvxqop.solve.rest.prox import splits
from cvxqop.solve.rest.terms import NotSplittable
from cvxqop.solve.smooth.finite_sum import FiniteSum
from cvxqop.solve.smooth.function import PerturbedFunction
from cvxqop.solve.smooth.quadratic import Quadratic
from cvxqop.solve.solvers import compiles
from cvxqop.spending.feasible_release import feasible_release, unreleased
from cvxqop.spending.paid import Paid

__all__ = ["from_records"]

Array = npt.NDArray[np.float64]
Smooth = Quadratic | FiniteSum | PerturbedFunction


def from_records(case: Case, backend: Backend) -> PrivateSolution:
    """Other losses: a point certified to lie within Δ of the minimiser, then the release."""
    erm, release = case.erm, case.mechanism.release
    assert release is not None
    case.sums.check()
    perturbed = case.sums.smooth(FiniteSum, PerturbedFunction)
    if backend.takes_records:
        _check_taken(erm, backend)
    draw, noise, sampling = case.draw()
    shift = release.apply(np.zeros(erm.dimension), noise)
    attempt = partial(_certified_release, case, perturbed, draw, shift, sampling)
    return Paid(case, attempt).run(backend)


def _certified_release(
    case: Case,
    perturbed: Callable[[Any, Array], Any],
    draw: Draw,
    shift: Array,
    sampling: np.random.Generator,
    backend: Backend,
) -> PrivateSolution:
    """The point that is certified for this draw, with the noise of the release, put back onto C."""
    erm, release = case.erm, case.mechanism.release
    assert release is not None
    factor: Array | None
    if backend.over_cones or not erm.loss.records_are_drawn:  # these work on dense matrices
        S, factor = draw.curvature, draw.factor
    else:
        S = draw.operator
        factor = None if sp.issparse(S) else draw.factor
    if len(draw.guard) != S.shape[0]:
        S, factor = case.sums.whole(S), None
    smooth = perturbed(S, draw.guard)
    theta = _within(case, backend, smooth, factor, sampling, release.accuracy)
    if not np.all(np.isfinite(theta)):
        raise AccuracyError(unreleased("is not finite"))
    return PrivateSolution(feasible_release(erm, theta + shift), case.guarantee, backend.name)


def _within(
    case: Case,
    backend: Backend,
    smooth: Smooth,
    factor: Array | None,
    sampling: np.random.Generator,
    accuracy: float,
) -> Array:
    """The minimiser for this draw to ``accuracy``: by an engine that certifies, from the answer of
    a solver of CVXPY where one was asked for the whole problem, or where the engine alone does not
    get there and CVXPY may be handed the loss."""
    erm, trusting = case.erm, case.settings.accept_solver_accuracy
    progress, variables = case.settings.verbose, erm.variables
    regulariser, constraints = erm.regulariser, erm.constraints

    def certified(start: Array | None, options: Any) -> Array:
        answer = stotos.solve_stotos(
            smooth,
            variables,
            regulariser,
            constraints,
            accuracy=accuracy,
            start=start,
            seed=sampling,
            cholesky=factor,
            progress=progress,
            **options,
        )
        if answer.distance is None or not answer.distance <= accuracy:
            raise AccuracyError(
                "The point that STOTOS stopped at (finish=False) is not certified to the accuracy "
                "that the release needs. Nothing was released, and the charge for this draw "
                "stands. Leave out finish=False, or take more iterations."
            )
        return answer.theta

    if backend.over_cones:
        return cone_engine.solve_over_cones(
            smooth,
            variables,
            regulariser,
            constraints,
            size=case.settings.distance,
            accuracy=accuracy,
            cholesky=factor,
            progress=progress,
            **backend.options,
        ).theta
    start, options = None, backend.options
    if backend.takes_records:
        start, options = _taken(case, smooth, backend.name, backend.options), {}
        if trusting and start is None and not splits(variables, regulariser, constraints):
            raise AccuracyError(_unanswered(backend.name))
    else:
        try:
            return certified(None, options)
        except monitor.PrecisionError:
            if erm.loss.expression is None:
                raise
        start = _taken(case, smooth, None, {})
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


def _taken(case: Case, smooth: Any, name: str | None, options: Any) -> Array | None:
    """The answer of a solver of CVXPY to the whole problem, the loss written out; None if it
    failed."""
    erm = case.erm
    form = Quadratic(smooth.S, smooth.a, smooth.anchor)
    loss, regulariser = erm.loss.expression, erm.regulariser
    try:
        answer = conic.solve_conic(
            form,
            erm.variables,
            loss if regulariser is None else loss + regulariser,
            erm.constraints,
            solver=name,
            solver_options=options,
            scale=smooth.curvature,
            size=case.settings.distance,
            polish=False,
        )
    except SolverError:
        return None
    return answer.theta


def _check_taken(erm: ERM, backend: Backend) -> None:
    """Refuse a solver that cannot take the atoms of the loss.

    Raises
    ------
    OptionError
        Names the solver, and those that can.
    """
    theta = conic.stacked(erm.variables)
    objective = erm.loss.expression + cp.sum_squares(theta)
    problem = cp.Problem(cp.Minimize(objective), list(erm.constraints))
    if compiles(problem, backend.name):
        return
    others = [repr(name) for name in cp.installed_solvers() if compiles(problem, name)]
    remedy = f"use {' or '.join(others)}" if others else "write it with other atoms"
    raise OptionError(
        f"solver={backend.name!r} cannot take the private loss {' + '.join(erm.terms)}: {remedy}."
    )
