"""Spending: one fresh draw, one solve, one release. Nothing here is tried twice on fresh noise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt
from cvxpy.error import SolverError

from cvxqop import _cvxpy
from cvxqop.backend import STOTOS, Backend
from cvxqop.case import Case
from cvxqop.errors import AccuracyError, PrivateSolverError, sealed
from cvxqop.feasible_release import feasible_release, unreleased
from cvxqop.privacy.gaussian.options import CalibratedGaussian
from cvxqop.privacy.gaussian.symmetric import SymmetricDraw
from cvxqop.privacy.grid import Grid
from cvxqop.privacy.mechanism import Draw
from cvxqop.problem.declared_erm import DeclaredERM
from cvxqop.solution import PrivateLoss, PrivateSolution
from cvxqop.solve.answer import Answer
from cvxqop.solve.cones import engine as cone_engine
from cvxqop.solve.engines import conic, monitor, stotos
from cvxqop.solve.smooth.finite_sum import FiniteSum
from cvxqop.solve.smooth.quadratic import Quadratic
from cvxqop.solve.smooth.softmax import SoftmaxSum
from cvxqop.spend_declared import from_function

__all__ = ["release_quadratic", "spend"]

Array = npt.NDArray[np.float64]


@sealed
def spend(case: Case, backend: Backend) -> PrivateSolution:
    """Run a plan: draw, solve, release. Nothing is written into a variable here."""
    if not backend.touches_records:
        return _from_quadratic(case, backend)
    if isinstance(case.erm, DeclaredERM):
        return from_function(case, case.erm, backend)
    return _from_records(case, backend)


def release_quadratic(case: Case, backend: Backend) -> PrivateLoss:
    """(H̃, g̃) = (H + S, g + a), on a public grid: the records are read before the noise is drawn.

    The Gaussian ensemble repairs the curvature of H̃, which is post-processing, and may release
    the gradient again at the solution of a stage, with residuals cut closer (theory §6).

    Parameters
    ----------
    case : Case
        The problem, its mechanism and its records.
    backend : Backend
        Solves the stages but the last.
    """
    H, g = case.gram()
    if case.mechanism.sensitivity.anchor_gradient == 0.0:
        g = np.zeros_like(g)  # it is zero but for rounding, and no guard would hide that
    draw, _, _ = case.draw()
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
        later = case.reanchored(anchor, bound)
        gradient = grid.add(later.slope(), guard)
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


def _from_quadratic(case: Case, backend: Backend) -> PrivateSolution:
    """Squared losses: the solver sees what has been released, so its accuracy is no matter."""
    loss = release_quadratic(case, backend)
    failure = ""
    try:
        answer = _solve_quadratic(case, backend, loss)
    except (SolverError, AccuracyError) as error:
        failure = str(error)
    if failure:
        raise PrivateSolverError(
            f"{failure}. The perturbed loss is private and paid for: error.private_loss.expression "
            "can be solved again, with any solver, at no further cost.",
            loss,
        )
    values = _cvxpy.released({**case.erm.unstack(answer.theta), **answer.auxiliary})
    return PrivateSolution(values, case.guarantee, backend.name, private_loss=loss)


def _solve_quadratic(case: Case, backend: Backend, loss: PrivateLoss) -> Answer:
    erm = case.erm
    quadratic = Quadratic(loss.hessian, loss.gradient, loss.anchor)
    rest = (erm.variables, erm.regulariser, erm.constraints)
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


def _perturbed(case: Case) -> Callable[[Draw], Quadratic | FiniteSum]:
    """The smooth part as a function of the draw, once every record has been found usable."""
    outputs, anchor = case.erm.outputs, case.anchor
    if outputs is not None and not outputs.labelled:
        H, g = case.gram()
        return lambda draw: Quadratic(H + draw.curvature, g + draw.guard, anchor)
    if outputs is not None:
        case.rows.check_finite()
        (_, weight), *_ = case.erm.losses
        return lambda draw: SoftmaxSum.of(
            case.rows, outputs.layout, float(weight), draw.curvature, draw.guard, anchor
        )
    rows, losses, linear = case.finite_sum()
    return lambda draw: FiniteSum(rows, losses, draw.curvature, draw.guard + linear, anchor)


def _from_records(case: Case, backend: Backend) -> PrivateSolution:
    """Other losses: a point certified to lie within Δ of the minimiser, then the release."""
    erm, release = case.erm, case.mechanism.release
    assert release is not None
    perturbed = _perturbed(case)
    draw, noise, sampling = case.draw()
    rest = (erm.variables, erm.regulariser, erm.constraints)
    common = {
        "accuracy": release.accuracy,
        "cholesky": draw.factor,
        "progress": case.settings.verbose,
        **backend.options,
    }
    try:
        if backend.over_cones:
            size = case.settings.distance
            answer = cone_engine.solve_over_cones(perturbed(draw), *rest, size=size, **common)
        else:
            answer = stotos.solve_stotos(perturbed(draw), *rest, seed=sampling, **common)
    except AccuracyError:
        raise
    except Exception:  # whatever it says, it depends on records
        raise AccuracyError(monitor.failure("the solver failed")) from None
    if answer.distance is None or not answer.distance <= release.accuracy:
        raise AccuracyError(
            "The point that STOTOS stopped at (finish=False) is not certified to the accuracy that "
            "the release needs. Nothing was released, and the charge for this draw stands. Leave "
            "out finish=False, or take more iterations."
        )
    if not answer.finite:
        raise AccuracyError(unreleased("is not finite"))
    theta = release.apply(answer.theta, noise)
    return PrivateSolution(feasible_release(erm, theta), case.guarantee, backend.name)
