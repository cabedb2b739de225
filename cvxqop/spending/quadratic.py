"""Minimising a released quadratic with the public rest: by the solver asked for, or in steps."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from cvxpy.error import SolverError

from cvxqop import _cvxpy
from cvxqop.backend import STOTOS, Backend
from cvxqop.case import Case
from cvxqop.errors import AccuracyError
from cvxqop.privacy.gaussian.symmetric import Spectrum
from cvxqop.problem.erm import ERM
from cvxqop.solve.answer import Answer
from cvxqop.solve.certificate import Curvature
from cvxqop.solve.engines import conic, stotos
from cvxqop.solve.engines.monitor import Goal, Monitor
from cvxqop.solve.engines.newton import minimise_quadratic
from cvxqop.solve.rest.prox import NotSplittable, split
from cvxqop.solve.rest.rest import Rest
from cvxqop.solve.smooth.quadratic import Quadratic

__all__ = ["Steps", "bare", "minimiser", "solve_quadratic"]

Array = npt.NDArray[np.float64]


def solve_quadratic(case: Case, backend: Backend, quadratic: Quadratic) -> Answer:
    """The answer of the solver of a plan.

    Raises
    ------
    SolverError, AccuracyError
        It failed.
    """
    erm = case.erm
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
    size, scale = None, 0.0
    if erm.loss.linear:  # no curvature tells how large θ will be
        size = case.settings.distance
        scale = float(np.abs(quadratic.g).max()) / size
    return conic.solve_conic(
        quadratic,
        *rest,
        solver=backend.name,
        solver_options=backend.options,
        scale=scale,
        size=size,
    )


def minimiser(case: Case, backend: Backend, quadratic: Quadratic) -> Array | None:
    """Where a stage ends that knows r and C; None where there are none, or the solver fails."""
    if bare(case.erm):
        return None
    try:
        return solve_quadratic(case, backend, quadratic).theta
    except (SolverError, AccuracyError):
        return None


def bare(erm: ERM) -> bool:
    """Whether there is neither r nor C."""
    attributes = any(_cvxpy.attributes(variable) for variable in erm.variables)
    return erm.regulariser is None and not erm.constraints and not attributes


@dataclass(frozen=True, eq=False)
class Steps:
    """θ ↦ argmin over C of g'(t − θ) + ½(t − θ)'Ĥ(t − θ) + r(t), one released H̃ for many θ and g.

    Without r and C it is a linear solve in the eigenbasis of H̃. Where r and C split it is solved by
    the built-in engine, else by the solver of the plan; a solver that fails is passed over, and the
    step is that without r and C.
    """

    case: Case
    backend: Backend
    spectrum: Spectrum
    _raised: dict[float, tuple[Array, Curvature | None]] = field(default_factory=dict)

    @cached_property
    def free(self) -> bool:
        """Whether there is neither r nor C."""
        return bare(self.case.erm)

    @cached_property
    def _rest(self) -> Rest | None:
        erm = self.case.erm
        try:
            return split(erm.variables, erm.regulariser, erm.constraints, compare=False)
        except NotSplittable:
            return None

    def raised(self, level: float) -> Array:
        """Ĥ (D, D): H̃ with its eigenvalues at the level or above."""
        return self.case.sums.whole(self.spectrum.raised(level))

    def __call__(self, theta: Array, gradient: Array, level: float) -> tuple[Array, Array]:
        """The minimiser t, and −g − Ĥ(t − θ): of r + ι_C a subgradient there, zero without."""
        sums = self.case.sums
        if not self.free:
            hessian, curvature = self._curved(level)
            found = self._minimiser(Quadratic(hessian, gradient, theta), curvature)
            if found is not None:
                return found, -gradient - hessian @ (found - theta)
        columns = sums.columns(gradient)
        step = self.spectrum.solved(level, columns.reshape(len(columns), -1))
        return theta - sums.stacked(step.reshape(columns.shape)), np.zeros_like(theta)

    def _curved(self, level: float) -> tuple[Array, Curvature | None]:
        if level not in self._raised:
            hessian = self.raised(level)
            Q = None if self._rest is None else self._rest.Q
            curvature = (
                None if self._rest is None else Curvature(hessian if Q is None else hessian + Q)
            )
            self._raised[level] = hessian, curvature
        return self._raised[level]

    def _minimiser(self, quadratic: Quadratic, curvature: Curvature | None) -> Array | None:
        if self._rest is None or curvature is None:
            return minimiser(self.case, self.backend, quadratic)
        goal: Any = Goal(self.case.settings.tolerance)
        whole = quadratic.plus(self._rest.Q, self._rest.q)
        try:
            found = minimise_quadratic(
                whole, self._rest, quadratic.anchor, goal, Monitor(), curvature
            )
        except AccuracyError:
            return None
        return found.candidate.point
