"""Spending: one fresh draw, one solve, one release. Nothing here is tried twice on fresh noise."""

from __future__ import annotations

from typing import Any

import numpy as np
from cvxpy.error import SolverError

from cvxqop import _cvxpy
from cvxqop.backend import STOTOS, Backend
from cvxqop.case import Case
from cvxqop.errors import PrivateSolverError, sealed
from cvxqop.solution import PrivateLoss, PrivateSolution
from cvxqop.solve import conic, oracle, prox, stotos
from cvxqop.solve.answer import Answer

__all__ = ["release_quadratic", "spend"]


@sealed
def spend(case: Case, backend: Backend) -> PrivateSolution:
    """Run a plan: draw, solve, release, and write the release into the variables."""
    solution = (_from_records if backend.touches_records else _from_quadratic)(case, backend)
    _cvxpy.write_values(solution.values)
    return solution


def release_quadratic(case: Case) -> PrivateLoss:
    """(H̃, g̃) = (H + S, g + a): the records are read before the noise is drawn, and never after."""
    H, g = oracle.gram(case.blocks(), case.curvatures, case.anchor)
    noise, _ = case.randomness.fresh()
    draw = case.mechanism.draw(noise)
    return PrivateLoss(
        hessian=H + draw.curvature,
        gradient=g + draw.guard,
        anchor=case.anchor,
        variables=case.erm.variables,
        guarantee=case.guarantee,
    )


def _from_quadratic(case: Case, backend: Backend) -> PrivateSolution:
    """Squared losses: the solver sees what has been released, so its accuracy is no matter."""
    erm = case.erm
    loss = release_quadratic(case)
    failure = ""
    try:
        answer = _solve_quadratic(case, backend, loss)
    except SolverError as error:
        failure = str(error)
    if failure:
        raise PrivateSolverError(
            f"{failure}. The perturbed loss is private and paid for: error.private_loss.expression "
            "can be solved again, with any solver, at no further cost.",
            loss,
        )
    values = {**erm.unstack(answer.theta), **answer.auxiliary}
    return PrivateSolution(values, case.guarantee, backend.name, private_loss=loss)


def _solve_quadratic(case: Case, backend: Backend, loss: PrivateLoss) -> Answer:
    erm = case.erm
    quadratic = oracle.Quadratic(loss.hessian, loss.gradient, loss.anchor)
    rest = (erm.variables, erm.regulariser, erm.constraints)
    if backend.name == STOTOS:
        return stotos.solve_stotos(
            quadratic,
            *rest,
            accuracy=case.settings.accuracy,
            progress=case.settings.verbose,
            **backend.options,
        )
    return conic.solve_conic(quadratic, *rest, solver=backend.name, solver_options=backend.options)


def _from_records(case: Case, backend: Backend) -> PrivateSolution:
    """Other losses: a point certified to lie within Δ of the minimiser, then the release."""
    erm, release = case.erm, case.mechanism.release
    assert release is not None
    losses = case.losses
    case.rows.check_finite()
    linear = case.rows.linear_term()  # of a logistic loss with labels beside it
    noise, sampling = case.randomness.fresh()
    draw = case.mechanism.draw(noise)
    smooth = oracle.FiniteSum(case.rows, losses, draw.curvature, draw.guard + linear, case.anchor)
    answer = stotos.solve_stotos(
        smooth,
        erm.variables,
        erm.regulariser,
        erm.constraints,
        accuracy=release.accuracy,
        seed=sampling,
        cholesky=draw.factor,
        progress=case.settings.verbose,
        **backend.options,
    )
    theta = release.apply(answer.theta, noise)
    theta = prox.split(erm.variables, None, erm.constraints).project(theta).point
    values: dict[Any, Any] = dict(erm.unstack(np.asarray(theta)))
    return PrivateSolution(values, case.guarantee, backend.name)
