"""Spending: one fresh draw, one solve, one release. Nothing here is tried twice on fresh noise."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from cvxpy.error import SolverError

from cvxqop import _cvxpy
from cvxqop.backend import STOTOS, Backend
from cvxqop.case import Case
from cvxqop.errors import (
    AccuracyError,
    PrivateSolverError,
    Resumable,
    keep,
    sealed,
)
from cvxqop.privacy.gaussian.calibrated import CalibratedGaussian
from cvxqop.privacy.gaussian.symmetric import SymmetricDraw
from cvxqop.privacy.grid import Grid
from cvxqop.privacy.mechanism import Draw
from cvxqop.problem.erm import ERM
from cvxqop.solution import PrivateLoss, PrivateSolution
from cvxqop.solve.answer import Answer
from cvxqop.solve.engines import conic, stotos
from cvxqop.solve.smooth.quadratic import Quadratic
from cvxqop.spending.certified import from_records
from cvxqop.spending.paid import Paid, afterwards, backend_of

__all__ = ["release_quadratic", "spend"]

Array = npt.NDArray[np.float64]


@sealed
def spend(case: Case, backend: Backend) -> PrivateSolution:
    """Run a plan: draw, solve, release. Nothing is written into a variable here."""
    if backend.touches_records:
        return from_records(case, backend)
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
    if case.erm.loss.linear:
        g = case.sums.gradient()
        H = np.zeros((len(g), len(g)))
    else:
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
    size, scale = None, 0.0
    if case.erm.loss.linear:  # no curvature tells how large θ will be
        size = case.settings.distance
        scale = float(np.abs(loss.gradient).max()) / size
    return conic.solve_conic(
        quadratic,
        *rest,
        solver=backend.name,
        solver_options=backend.options,
        scale=scale,
        size=size,
    )


def _rest(erm: ERM) -> tuple[Any, Any, Any]:
    return erm.variables, erm.regulariser, erm.constraints
