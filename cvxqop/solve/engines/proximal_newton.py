"""Proximal Newton for any convex rest: a cone program of D × D inside, never a row.

Each outer step minimises the model ∇f(z)'d + ½ d'Hd + G(z + d) by a solver of CVXPY, refines its
answer, and turns it into a feasible point and an ε-subgradient of G. The certificate judges.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from cvxqop.errors import AccuracyError
from cvxqop.solve.certificate import Certificate, Curvature, certify, localised, smallest
from cvxqop.solve.cones.cones import Cones
from cvxqop.solve.cones.program import Feasible, Program
from cvxqop.solve.cones.refinement import refine
from cvxqop.solve.cones.solvers import ConeSolution
from cvxqop.solve.engines.monitor import Goal, Monitor, PrecisionError, failure
from cvxqop.solve.engines.newton import Certified
from cvxqop.solve.engines.quasi_newton import updated
from cvxqop.solve.rest.rest import Candidate
from cvxqop.solve.smooth.finite_sum import FiniteSum
from cvxqop.solve.smooth.function import PerturbedFunction
from cvxqop.solve.smooth.quadratic import Evaluation, Quadratic

__all__ = ["Inner", "minimise_over_cones"]

Array = npt.NDArray[np.float64]
Smooth = Quadratic | FiniteSum | PerturbedFunction
Inner = Callable[[Array, Array, Any, Array, Cones, float], ConeSolution | None]
"""(H, q, A, b, K, tolerance) ↦ the answer of min ½d'Hd + q'x, x = (d, v), b − Ax ∈ K."""

TOLERANCE = 1e-10
TIGHTEST = 1e-14

STALLED = 6
SHORTEST = 2.0**-20
CONFINED = 1e3
"""Distances from which a local Hessian is worth its passes, times the goal's."""


@dataclass(frozen=True, eq=False)
class _Point:
    """A feasible point with f there and Φ up to a constant."""

    at: Feasible
    theta: Array
    evaluation: Evaluation
    value: float


def minimise_over_cones(
    smooth: Smooth,
    program: Program,
    inner: Inner,
    goal: Goal,
    monitor: Monitor,
    curvature: Curvature | None = None,
) -> Certified:
    """Minimise f + G until the goal is certified.

    Parameters
    ----------
    smooth : Quadratic, FiniteSum or PerturbedFunction
        f.
    program : Program
        G.
    inner : callable
        The solver.
    goal, monitor, curvature
        What must be certified, limits and progress, and a matrix below every Hessian of f.

    Raises
    ------
    AccuracyError
        A limit of the caller was reached, or working precision.
    """
    engine = _Engine(smooth, program, inner, monitor, curvature)
    point = engine.start()
    best: Certified | None = None
    # Near the floor of rounding iterates may alternate: progress is measured against the best.
    stalled, lowest = 0, point.value
    while True:
        monitor.check()
        following, found = engine.step(point, goal)
        if found is not None:
            monitor.report(found.certificate)
            if goal.met(found.certificate, found.value):
                return found
        if found is not None and (
            best is None or found.certificate.distance < 0.9 * best.certificate.distance
        ):
            best, stalled = found, 0
        elif following is not None and following.value < lowest - 1e-12 * abs(lowest):
            stalled = 0
        else:
            stalled += 1
        if stalled >= STALLED or following is None:
            raise PrecisionError(failure("working precision was reached"))
        point, lowest = following, min(lowest, following.value)


class _Engine:
    def __init__(
        self,
        smooth: Smooth,
        program: Program,
        inner: Inner,
        monitor: Monitor,
        curvature: Curvature | None,
    ) -> None:
        self.smooth, self.program, self.inner, self.monitor = smooth, program, inner, monitor
        self.bound = curvature or Curvature(smooth.lower_curvature())
        if not self.bound.least > 0.0:
            raise AccuracyError(failure("a Hessian that is not positive definite was met"))
        self.upper = smooth.upper_curvature()
        self.damping, self.tolerance = 0.0, TOLERANCE
        self.B = np.zeros((0, 0))
        if isinstance(smooth, PerturbedFunction):
            self.B = smooth.curvature * np.eye(smooth.dimension)

    def start(self) -> _Point:
        """The point nearest to the anchor in the sense of G, or the centre."""
        D, form = self.program.dimension, self.program.form
        anchor = self.smooth.anchor
        b = form.b - form.A[:, :D] @ anchor
        cones = self.program.cones
        found = self.inner(np.eye(D), form.c / form.weight, form.A, b / form.unit, cones, TOLERANCE)
        starts = [self.program.centre[0]]
        if found is not None and np.all(np.isfinite(found.x)):
            starts.insert(0, self._shifted(form.unit * found.x, anchor))
        for x in starts:
            at = self.program.feasible(x)
            point = None if at is None else self._point(at)
            if point is not None and np.isfinite(point.value):
                return point
        raise AccuracyError(failure("a record that is not finite was met"))

    def step(self, point: _Point, goal: Goal) -> tuple[_Point | None, Certified | None]:
        """The next point and its certificate, where there is one."""
        H = self._hessian(point.theta)
        mean = float(np.trace(H)) / len(H)
        scale = float(2.0 ** np.round(np.log2(max(mean, 1e-300))))
        form, D = self.program.form, self.program.dimension
        # The model in d/τ: a solver's tolerances are absolute.
        unit = form.unit
        q = form.c.copy()
        q[:D] += point.evaluation.gradient
        q /= scale * unit
        b = np.asarray(form.b - form.A[:, :D].astype(np.longdouble) @ point.theta, dtype=np.float64)
        model = (H / scale, q, form.A, b / unit, self.program.cones)
        raw = self.inner(*model, self.tolerance)
        if raw is None or not all(np.all(np.isfinite(part)) for part in (raw.x, raw.s, raw.y)):
            self.damping = 2.0 * max(self.damping, mean)
            return point, None
        refined = refine(*model, raw)
        found: list[Any] = [raw] if refined is None else [refined, raw]
        # Where refinement is stuck, only the solver itself can bring the slack down.
        self.tolerance = max(TIGHTEST, 0.1 * self.tolerance)
        following = self._following(point, [unit * answer.x for answer in found])
        if following is None:
            return None, None
        self._learn(point, following)
        return following, self._judged(
            following, [scale * unit * answer.y for answer in found], goal
        )

    def _following(self, point: _Point, steps: list[Any]) -> _Point | None:
        """The first step that leads to a nearly feasible point, halved while Φ rises."""
        for x in steps:
            at = self.program.feasible(self._shifted(x, point.theta))
            if at is not None:
                break
        else:
            return None
        found, step = self._point(at), 1.0
        # What a solver leaves of its tolerance in v is no reason to shorten a step.
        share = 1e-12 if len(steps) > 1 else 10.0 * TOLERANCE
        while not found.value <= point.value + share * (abs(point.value) + abs(found.value)):
            if step <= SHORTEST:
                break
            self.monitor.check_time()
            step *= 0.5
            at = self.program.between(point.at, at)
            found = self._point(at)
        least = 1e-3 * float(np.trace(self.smooth.lower_curvature())) / len(point.theta)
        if step < 1.0:
            self.damping = 2.0 * max(self.damping, least, 0.1 * self.model_mean)
        else:
            self.damping = 0.2 * self.damping if self.damping > least else 0.0
        return found if np.isfinite(found.value) else None

    def _hessian(self, theta: Array) -> Array:
        if isinstance(self.smooth, PerturbedFunction):
            H = self.smooth.S + self.B
        else:
            H = self.smooth.hessian(theta)
            self.monitor.passes += 1
        self.model_mean = float(np.trace(H)) / len(H)
        return H + self.damping * np.eye(len(H))

    def _learn(self, point: _Point, following: _Point) -> None:
        if isinstance(self.smooth, PerturbedFunction):
            self.B = updated(
                self.B,
                self.smooth.S,
                point.theta,
                point.evaluation,
                following.theta,
                following.evaluation,
            )

    def _shifted(self, x: Any, theta: Array) -> Any:
        """The point of the program that a step d from θ leads to."""
        x = x.astype(np.longdouble)
        x[: len(theta)] += theta
        return x

    def _point(self, at: Feasible) -> _Point:
        theta = at.x[: self.program.dimension].astype(np.float64)
        evaluation = self.smooth.evaluate(theta)
        self.monitor.passes += 1
        value = evaluation.value + float(self.program.form.c @ at.x)
        return _Point(at, theta, evaluation, value)

    def _candidates(self, point: _Point, duals: list[Any]) -> Iterator[Candidate]:
        theta, at = point.theta, point.at
        left = (at.x[: len(theta)] - theta).astype(np.float64)
        offset = 1.01 * float(np.linalg.norm(left)) + at.offset
        for y in duals:
            found = self.program.minorant(y, at)
            if found is not None:
                slack = found.slack + 0.5 * self.upper * offset * offset
                error = found.error + self.upper * offset
                yield Candidate(theta, found.u, slack, 0.0, error, offset)

    def _judged(self, point: _Point, duals: list[Any], goal: Goal) -> Certified | None:
        """The best certificate that the duals give."""
        best: Certified | None = None
        for candidate in self._candidates(point, duals):
            certificate = certify(point.evaluation, candidate, self.bound)
            if best is None or certificate.distance < best.certificate.distance:
                best = Certified(candidate, certificate, point.value)
        if best is None or goal.met(best.certificate, best.value):
            return best
        return replace(best, certificate=self._local(point, best, goal))

    def _local(self, point: _Point, found: Certified, goal: Goal) -> Certificate:
        """A tighter certificate where the first one is near the goal and f has Hessians."""
        first, smooth = found.certificate, self.smooth
        near = goal.distance is None or first.distance <= CONFINED * goal.distance
        if isinstance(smooth, PerturbedFunction) or not (near or first.distance <= 1.0):
            return first
        self.monitor.passes += 2
        tighter = localised(smooth, found.candidate, point.evaluation, first)
        return smallest(first, tighter)
