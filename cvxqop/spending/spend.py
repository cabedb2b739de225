"""Spending: one fresh draw, one solve, one release. Nothing here is tried twice on fresh noise."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from cvxpy.error import SolverError

from cvxqop import _cvxpy
from cvxqop.backend import Backend
from cvxqop.case import Case
from cvxqop.errors import (
    AccuracyError,
    PrivateSolverError,
    Resumable,
    keep,
    sealed,
)
from cvxqop.privacy.gaussian.adaptive import AdaptiveDraw, CalibratedAdaptive
from cvxqop.privacy.gaussian.calibrated import CalibratedGaussian
from cvxqop.privacy.gaussian.symmetric import SymmetricDraw
from cvxqop.privacy.grid import Grid
from cvxqop.privacy.mechanism import Draw
from cvxqop.solution import PrivateLoss, PrivateSolution
from cvxqop.solve.smooth.quadratic import Quadratic
from cvxqop.spending.adaptive import adaptive_loss
from cvxqop.spending.certified import from_records
from cvxqop.spending.paid import Paid, afterwards, backend_of
from cvxqop.spending.quadratic import minimiser, solve_quadratic

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
    asked = isinstance(case.mechanism, CalibratedGaussian) and case.mechanism.sum_of_squares_scale
    value = case.sums.value() if asked else None
    draw, _, _ = case.draw()
    return Paid(case, partial(_perturbed_form, case, (H, g, value), draw)).run(backend)


def _perturbed_form(
    case: Case, sums: tuple[Array, Array, float | None], draw: Draw, backend: Backend
) -> PrivateLoss:
    """The form with this draw, in θ. The Gaussian ensemble repairs the curvature of H̃, which is
    post-processing, and may release the gradient again at the solution of a stage, with residuals
    cut closer (theory §6)."""
    mechanism, anchor = case.mechanism, case.anchor
    H, g, value = sums
    grid, *grids = mechanism.grids
    released, gradient = grid.add(H, draw.curvature), grids[0].add(g, draw.guard)
    first = _first(case, released, gradient, value, draw)
    outward = 1.0 / case.erm.scale
    if isinstance(mechanism, CalibratedAdaptive) and isinstance(draw, AdaptiveDraw):
        loss = adaptive_loss(case, mechanism, released, gradient, draw, backend)
        return replace(loss, **first).of_scaled(outward)
    later_stages: list[tuple[float, Array, Grid]] = []
    if isinstance(mechanism, CalibratedGaussian) and isinstance(draw, SymmetricDraw):
        later_stages = list(
            zip(mechanism.residual_bounds, draw.guards[1:], grids[1:], strict=False)
        )
    gradients = [gradient]
    hessian = case.repaired(released, gradients)
    loss = PrivateLoss(hessian, gradient, anchor, case.erm.variables, case.guarantee, **first)
    for bound, guard, grid in later_stages:
        anchor = _stage(case, backend, loss)
        gradient = grid.add(case.reanchored(anchor, bound).sums.gradient(), guard)
        gradients.append(gradient)
        hessian = case.repaired(released, gradients)
        loss = replace(loss, hessian=hessian, gradient=gradient, anchor=anchor)
    return loss.of_scaled(outward)


def _first(
    case: Case, released: Array, gradient: Array, value: float | None, draw: Draw
) -> dict[str, Any]:
    """What was released first, and the public law of its noise: what inference starts from."""
    mechanism, erm, noisy = case.mechanism, case.erm, None
    if value is not None:
        assert isinstance(mechanism, CalibratedGaussian)
        assert isinstance(draw, SymmetricDraw)
        noisy = float(mechanism.value_grid.add(np.asarray(value), np.asarray(draw.value)))
    return {
        "raw_hessian": released,
        "first_gradient": gradient,
        "first_anchor": case.anchor,
        "first_value": noisy,
        "noise": mechanism.law,
        "layout": case.layout,
        "records": erm.public_count if erm.persons is None else None,
        "squares": erm.loss.squares,
    }


def _stage(case: Case, backend: Backend, loss: PrivateLoss) -> Array:
    """The solution of a stage: any public rule will do, for the last stage has the last word."""
    found = minimiser(case, backend, Quadratic(*loss.numbers()))
    if found is not None:
        return found
    return np.asarray(loss.anchor - np.linalg.solve(loss.hessian, loss.gradient))


def _from_quadratic(case: Case, backend: Backend, loss: PrivateLoss) -> PrivateSolution:
    """Squared losses: the solver sees what has been released, so its accuracy is no matter."""
    failure, T = "", case.erm.scale
    try:
        answer = solve_quadratic(case, backend, Quadratic(*loss.of_scaled(T).numbers()))
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
    values = _cvxpy.released({**case.erm.unstack(T * answer.theta), **answer.auxiliary})
    return PrivateSolution(
        values, case.guarantee, backend.name, loss, _rest=case.erm.rest_as_written
    )
