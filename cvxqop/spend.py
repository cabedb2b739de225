"""Spending: one fresh draw, one solve, one release. Nothing here is tried twice on fresh noise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import cvxpy as cp
import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from cvxpy.error import SolverError

from cvxqop import _cvxpy
from cvxqop.backend import STOTOS, Backend
from cvxqop.case import Case
from cvxqop.errors import (
    AccuracyError,
    OptionError,
    PrivateSolverError,
    Resumable,
    keep,
    sealed,
)
from cvxqop.feasible_release import feasible_release, unreleased
from cvxqop.paid import Paid, afterwards, backend_of
from cvxqop.privacy.gaussian.calibrated import CalibratedGaussian
from cvxqop.privacy.gaussian.symmetric import SymmetricDraw
from cvxqop.privacy.grid import Grid
from cvxqop.privacy.mechanism import Draw
from cvxqop.problem.erm import ERM
from cvxqop.solution import PrivateLoss, PrivateSolution
from cvxqop.solve.answer import Answer
from cvxqop.solve.cones import engine as cone_engine
from cvxqop.solve.engines import conic, monitor, stotos
from cvxqop.solve.rest.prox import splits
from cvxqop.solve.rest.terms import NotSplittable
from cvxqop.solve.smooth.finite_sum import FiniteSum
from cvxqop.solve.smooth.function import PerturbedFunction
from cvxqop.solve.smooth.quadratic import Quadratic
from cvxqop.solve.solvers import compiles

__all__ = ["release_quadratic", "spend"]

Array = npt.NDArray[np.float64]
Smooth = Quadratic | FiniteSum | PerturbedFunction


@sealed
def spend(case: Case, backend: Backend) -> PrivateSolution:
    """Run a plan: draw, solve, release. Nothing is written into a variable here."""
    if backend.touches_records:
        return _from_records(case, backend)
    try:
        loss = release_quadratic(case, backend)
    except Resumable as error:
        afterwards(error, lambda loss: _from_quadratic(case, backend, loss))
        raise
    return _from_quadratic(case, backend, loss)


@sealed
def release_quadratic(case: Case, backend: Backend) -> PrivateLoss:
    """(H̃, g̃) = (H + S, g + a), on a public grid: the records are read before the noise is drawn.

    Parameters
    ----------
    case : Case
        The problem, its mechanism and its records.
    backend : Backend
        Solves the stages but the last.
    """
    H, g = case.sums.quadratic_form()
    if case.mechanism.sensitivity.anchor_gradient == 0.0:
        g = np.zeros_like(g)  # it is zero but for rounding, and no guard would hide that
    draw, _, _ = case.draw()
    return Paid(case, partial(_perturbed_form, case, H, g, draw)).run(backend)


def _perturbed_form(case: Case, H: Array, g: Array, draw: Draw, backend: Backend) -> PrivateLoss:
    """The form with this draw. The Gaussian ensemble repairs the curvature of H̃, which is
    post-processing, and may release the gradient again at the solution of a stage, with residuals
    cut closer (theory §6)."""
    mechanism, anchor = case.mechanism, case.anchor
    grid, *grids = mechanism.grids
    released, gradient = grid.add(H, draw.curvature), grids[0].add(g, draw.guard)
    later_stages: list[tuple[float, Array, Grid]] = []
    if isinstance(mechanism, CalibratedGaussian) and isinstance(draw, SymmetricDraw):
        later_stages = list(
            zip(mechanism.residual_bounds, draw.guards[1:], grids[1:], strict=False)
        )
    gradients = [gradient]
    hessian = case.repaired(released, gradients)
    loss = PrivateLoss(hessian, gradient, anchor, case.erm.variables, case.guarantee)
    for bound, guard, grid in later_stages:
        anchor = _stage(case, backend, loss)
        gradient = grid.add(case.reanchored(anchor, bound).sums.gradient(), guard)
        gradients.append(gradient)
        hessian = case.repaired(released, gradients)
        loss = replace(loss, hessian=hessian, gradient=gradient, anchor=anchor)
    return loss


def _stage(case: Case, backend: Backend, loss: PrivateLoss) -> Array:
    """The solution of a stage: any public rule will do, for the last stage has the last word."""
    if case.erm.regulariser is not None or case.erm.constraints:
        try:
            return _solve_quadratic(case, backend, loss).theta
        except (SolverError, AccuracyError):
            pass
    return np.asarray(loss.anchor - np.linalg.solve(loss.hessian, loss.gradient))


def _from_quadratic(case: Case, backend: Backend, loss: PrivateLoss) -> PrivateSolution:
    """Squared losses: the solver sees what has been released, so its accuracy is no matter."""
    failure = ""
    try:
        answer = _solve_quadratic(case, backend, loss)
    except (SolverError, AccuracyError) as error:
        failure = str(error)
    if failure:
        failed = PrivateSolverError(
            f"{failure}. The perturbed loss is private and paid for: error.private_loss.expression "
            "can be solved again, with any solver, at no further cost, and error.resume(solver=…) "
            "does so.",
            loss,
        )
        keep(
            failed,
            lambda *asked: _from_quadratic(case, backend_of(case, backend, *asked), loss),
        )
        raise failed
    values = _cvxpy.released({**case.erm.unstack(answer.theta), **answer.auxiliary})
    return PrivateSolution(values, case.guarantee, backend.name, private_loss=loss)


def _solve_quadratic(case: Case, backend: Backend, loss: PrivateLoss) -> Answer:
    quadratic = Quadratic(loss.hessian, loss.gradient, loss.anchor)
    rest = _rest(case.erm)
    if backend.name == STOTOS:
        answer = stotos.solve_stotos(
            quadratic,
            *rest,
            accuracy=case.settings.tolerance,
            progress=case.settings.verbose,
            **backend.options,
        )
        if what := answer.fault(*rest):
            raise SolverError(f"the answer of STOTOS {what}; try another solver")
        return answer
    return conic.solve_conic(quadratic, *rest, solver=backend.name, solver_options=backend.options)


def _rest(erm: ERM) -> tuple[Any, Any, Any]:
    return erm.variables, erm.regulariser, erm.constraints


def _from_records(case: Case, backend: Backend) -> PrivateSolution:
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
    variables, regulariser, constraints = _rest(case.erm)
    form = Quadratic(smooth.S, smooth.a, smooth.anchor)
    loss = case.erm.loss.expression
    try:
        answer = conic.solve_conic(
            form,
            variables,
            loss if regulariser is None else loss + regulariser,
            constraints,
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
