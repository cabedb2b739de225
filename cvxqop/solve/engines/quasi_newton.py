"""Proximal quasi-Newton steps for a function that has no Hessian to offer.

The model's Hessian is S + B: S is known exactly, and B, which stands for that of the losses, is
updated from the gradients met on the way (Broyden, Fletcher, Goldfarb, Shanno). The certificate
needs ∇f and S alone, and says when to stop.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from cvxqop.solve.certificate import Curvature
from cvxqop.solve.engines.monitor import Goal, Monitor, PrecisionError, failure
from cvxqop.solve.engines.newton import Certified, judge
from cvxqop.solve.engines.splitting import DenseForm, Stagnation, minimise_form
from cvxqop.solve.rest.rest import Candidate, Rest
from cvxqop.solve.smooth.function import PerturbedFunction
from cvxqop.solve.smooth.quadratic import EPS, Evaluation

__all__ = ["minimise_function", "updated"]

Array = npt.NDArray[np.float64]

STALLED = 40
INNER_ITERATIONS = 5_000
SHORTEST = 2.0**-60


def minimise_function(
    smooth: PerturbedFunction,
    rest: Rest,
    start: Array,
    goal: Goal,
    monitor: Monitor,
    curvature: Curvature,
) -> Certified:
    """Minimise f plus the rest until the goal is certified.

    Parameters
    ----------
    smooth : PerturbedFunction
        f.
    rest : Rest
        g and C.
    start : (D,) array
        Projected onto C first; it must lie in the domain of f then.
    goal, monitor, curvature
        What must be certified, limits and progress, and S.

    Raises
    ------
    AccuracyError
        A limit of the caller was reached, or working precision.
    """
    z = rest.project(start).point
    evaluation = smooth.evaluate(z)
    if not np.isfinite(evaluation.value):
        raise PrecisionError(failure("a point without a gradient was met"))
    value = evaluation.value + rest.value(z)
    B = smooth.curvature * np.eye(smooth.dimension)
    best: Certified | None = None
    stalled, share = 0, 0.01
    while True:
        monitor.check()
        form = DenseForm(smooth.S + B)
        candidate = _step(form, evaluation.gradient, z, rest, share, monitor)
        whole = candidate.point
        candidate, trial = _shortened(smooth, rest, z, value, candidate, monitor)
        monitor.passes += 1
        if not np.isfinite(trial.value):
            raise PrecisionError(failure("a point without a gradient was met"))
        found = judge(trial, candidate, rest, curvature)
        monitor.report(found.certificate)
        if best is None or found.certificate.distance < 0.9 * best.certificate.distance:
            best, stalled = found, 0
        else:
            stalled += 1
        if stalled or candidate.point is not whole:
            share = max(0.1 * share, 1e-8)
        if goal.met(found.certificate, found.value):
            return found
        if stalled >= STALLED:
            raise PrecisionError(failure("working precision was reached"))
        B = updated(B, smooth.S, z, evaluation, candidate.point, trial)
        z, evaluation, value = candidate.point, trial, found.value


def _step(
    form: DenseForm, gradient: Array, z: Array, rest: Rest, share: float, monitor: Monitor
) -> Candidate:
    """Minimise the model until its residual is a share of the first, or rounding.

    The slack of a subgradient counts like the residual that would leave the same gap.
    """
    level: list[float] = []
    mean = float(np.trace(form.H)) / len(z)
    floor = 32.0 * EPS * float(np.linalg.norm(gradient) + np.linalg.norm(form.apply(z)))

    stagnation = Stagnation(100.0 * floor)

    def done(candidate: Candidate, residual: Array) -> bool:
        monitor.check_time()
        size = float(np.sqrt(residual @ residual + 2.0 * mean * candidate.slack))
        if not level:
            level.append(max(share * size, floor))
        # The slack of an iterative projection may stay where it is.
        return size <= level[0] or stagnation.reached(float(np.linalg.norm(residual)))

    return minimise_form(form, gradient, z, rest, done, INNER_ITERATIONS, warm=True).candidate


def _shortened(
    smooth: PerturbedFunction,
    rest: Rest,
    z: Array,
    value: float,
    candidate: Candidate,
    monitor: Monitor,
) -> tuple[Candidate, Evaluation]:
    """The candidate, or a point between it and z at which the objective is no larger."""
    trial = smooth.evaluate(candidate.point)
    whole, step = candidate.point, 1.0
    while step > SHORTEST:
        now = trial.value + rest.value(candidate.point)
        if np.isfinite(now) and now <= value + 1e-13 * (abs(value) + abs(now)):
            break
        monitor.check_time()
        step *= 0.5
        point = np.clip(z + step * (whole - z), rest.lower, rest.upper)
        candidate = candidate._replace(point=point, slack=np.inf)
        trial = smooth.evaluate(point)
        monitor.passes += 1
    return candidate, trial


def updated(
    B: Array, S: Array, z: Array, at_z: Evaluation, point: Array, at_point: Evaluation
) -> Array:
    """B after the gradients at two points; unchanged where their difference is rounding."""
    s = point - z
    y = at_point.gradient - at_z.gradient - S @ s
    slope, Bs = float(s @ y), B @ s
    length = float(np.linalg.norm(y))
    noise = at_point.error + at_z.error + EPS * float(np.linalg.norm(S) * np.linalg.norm(s))
    if length <= noise or slope <= 1e-8 * length * float(np.linalg.norm(s)):
        return B
    B = B - np.outer(Bs, Bs) / float(s @ Bs) + np.outer(y, y) / slope
    return 0.5 * (B + B.T)
