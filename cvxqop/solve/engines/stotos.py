"""The built-in solver STOTOS: one entry over its engines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import cvxpy as cp
import numpy as np
import numpy.typing as npt

from cvxqop.errors import AccuracyError, OptionError
from cvxqop.solve.answer import Answer
from cvxqop.solve.certificate import Curvature
from cvxqop.solve.engines.monitor import Goal, Monitor, PrecisionError, failure, with_less_rounding
from cvxqop.solve.engines.newton import Certified, minimise_quadratic, minimise_sum
from cvxqop.solve.engines.quasi_newton import minimise_function
from cvxqop.solve.engines.stochastic import (
    PlainSteps,
    certified_point,
    plain_step_length,
    variance_reduced,
)
from cvxqop.solve.rest.prox import split
from cvxqop.solve.rest.rest import Rest
from cvxqop.solve.smooth.finite_sum import FiniteSum
from cvxqop.solve.smooth.function import PerturbedFunction
from cvxqop.solve.smooth.quadratic import Quadratic

__all__ = ["VARIANTS", "check_limits", "check_stotos", "solve_stotos"]

Array = npt.NDArray[np.float64]

VARIANTS = ("newton", "svrg", "plain")
PLAIN_ITERATIONS = 10_000
SVRG_ITERATIONS = 5_000


def check_limits(*, max_iter: int | None = None, time_limit: float | None = None) -> None:
    """Refuse limits that are none.

    Raises
    ------
    OptionError
        Names the limit.
    """
    if max_iter is not None and (
        isinstance(max_iter, bool) or not isinstance(max_iter, int | np.integer) or max_iter < 1
    ):
        raise OptionError(f"max_iter={max_iter!r} must be a positive integer or None")
    if time_limit is not None and not (
        isinstance(time_limit, int | float) and 0.0 < time_limit < np.inf
    ):
        raise OptionError(f"time_limit={time_limit!r} must be a positive number of seconds or None")


def check_stotos(
    variables: Sequence[cp.Variable],
    regulariser: cp.Expression | None,
    constraints: Sequence[cp.Constraint],
    *,
    variant: str = "newton",
    max_iter: int | None = None,
    time_limit: float | None = None,
    finish: bool = True,
) -> None:
    """Refuse what STOTOS cannot do, before any record is touched.

    Raises
    ------
    OptionError
        A bad option, or a term without proximal operator (named).
    ProblemError
        The constraints are infeasible.
    """
    if variant not in VARIANTS:
        raise OptionError(f"variant={variant!r} is unknown; choose one of {', '.join(VARIANTS)}")
    check_limits(max_iter=max_iter, time_limit=time_limit)
    if not isinstance(finish, bool):
        raise OptionError(f"finish={finish!r} must be True or False")
    split(variables, regulariser, constraints)


def solve_stotos(
    smooth: Quadratic | FiniteSum | PerturbedFunction,
    variables: Sequence[cp.Variable],
    regulariser: cp.Expression | None,
    constraints: Sequence[cp.Constraint],
    *,
    accuracy: float | None = 1e-6,
    relative_gap: float | None = None,
    variant: str = "newton",
    max_iter: int | None = None,
    time_limit: float | None = None,
    finish: bool = True,
    start: Array | None = None,
    seed: np.random.Generator | None = None,
    cholesky: Array | None = None,
    progress: bool | Callable[[int, float, float, float], Any] = False,
) -> Answer:
    """Minimise f(θ) + r(θ) over C to a certified accuracy.

    Parameters
    ----------
    smooth : Quadratic, FiniteSum or PerturbedFunction
        f, the losses with the perturbation.
    variables, regulariser, constraints
        The public rest, see `split`.
    accuracy : float or None
        Certified bound on ‖θ − argmin‖₂.
    relative_gap : float or None
        Certified bound on the gap relative to |Φ|, in addition.
    variant : {"newton", "svrg", "plain"}
        Engine: sub-sampled proximal Newton; variance-reduced StoTOS; StoTOS as published. The
        stochastic ones need a FiniteSum.
    max_iter : int or None
        Outer iterations of "newton", steps of the others (default 5,000 and 10,000).
    time_limit : float or None
        Seconds.
    finish : bool
        Whether a stochastic variant that has not met the accuracy after ``max_iter`` steps is
        finished by "newton". With False an uncertified point is returned as it is: its
        ``distance`` says how far from certified it is.
    start : (D,) array or None
        Where to start; the anchor by default.
    seed : numpy Generator or None
        Draws rows; must be independent of the mechanism's noise.
    cholesky : (D, D) array or None
        Lower Cholesky factor of S (of H for a Quadratic) where the caller has it.
    progress : bool or callable
        See `Monitor`. Not private.

    Returns
    -------
    Answer
        With θ in C, its certified distance and gap.

    Raises
    ------
    AccuracyError
        A limit set by the caller, or working precision, was reached first.
    OptionError
        A term cannot be split, or a bad option.

    Examples
    --------
    >>> import cvxpy as cp, numpy as np
    >>> from cvxqop.solve.smooth.quadratic import Quadratic
    >>> theta = cp.Variable(2)
    >>> f = Quadratic(np.eye(2), np.array([-3.0, 0.5]), np.zeros(2))
    >>> answer = solve_stotos(f, [theta], cp.norm1(theta), [theta <= 1])
    >>> answer.theta.tolist(), answer.distance <= 1e-6
    ([1.0, 0.0], True)
    """
    rest = split(variables, regulariser, constraints, compare=False)
    if variant not in VARIANTS:
        raise OptionError(f"variant={variant!r} is unknown; choose one of {', '.join(VARIANTS)}")
    if variant != "newton" and not isinstance(smooth, FiniteSum):
        raise OptionError(f"variant={variant!r} works on records, not on a quadratic form")
    factor = cholesky if rest.Q is None else None
    smooth = smooth.plus(rest.Q, rest.q) if rest.Q is not None or np.any(rest.q) else smooth
    curvature = Curvature(smooth.lower_curvature(), factor)
    goal = Goal(accuracy, relative_gap)
    newton_limit = max_iter if variant == "newton" else None
    monitor = Monitor(newton_limit, time_limit, progress)
    generator = seed if seed is not None else np.random.default_rng()
    point = smooth.anchor if start is None else start

    def attempt(f: Quadratic | FiniteSum | PerturbedFunction) -> Certified:
        found = _run(f, rest, point, goal, monitor, generator, curvature, variant, max_iter, finish)
        if finish and not goal.met(found.certificate, found.value):
            raise PrecisionError(failure("working precision was reached"))
        return found

    try:
        found = with_less_rounding(attempt, smooth)
    finally:
        monitor.close()
    certificate = found.certificate
    return Answer(found.candidate.point, {}, certificate.distance, certificate.gap)


def _run(
    smooth: Quadratic | FiniteSum | PerturbedFunction,
    rest: Rest,
    start: Array,
    goal: Goal,
    monitor: Monitor,
    generator: np.random.Generator,
    curvature: Curvature,
    variant: str,
    max_iter: int | None,
    finish: bool,
) -> Certified:
    if isinstance(smooth, Quadratic):
        return minimise_quadratic(smooth, rest, start, goal, monitor, curvature)
    if isinstance(smooth, PerturbedFunction):
        return minimise_function(smooth, rest, start, goal, monitor, curvature)
    if variant == "newton":
        return minimise_sum(smooth, rest, start, goal, monitor, generator, curvature)
    if variant == "svrg":
        found, met = variance_reduced(
            smooth, rest, start, goal, monitor, generator, max_iter or SVRG_ITERATIONS, curvature
        )
    else:
        found = _plain(
            smooth, rest, start, monitor, generator, curvature, max_iter or PLAIN_ITERATIONS
        )
        met = goal.met(found.certificate, found.value)
    if met or not finish:
        return found
    return minimise_sum(smooth, rest, found.candidate.point, goal, monitor, generator, curvature)


def _plain(
    smooth: FiniteSum,
    rest: Rest,
    start: Array,
    monitor: Monitor,
    generator: np.random.Generator,
    curvature: Curvature,
    max_iter: int,
) -> Certified:
    """StoTOS as published, its point prox_{ωg}(x) projected onto C.

    It is certified now and then, which does not change its path.
    """
    step = plain_step_length(smooth)
    steps = PlainSteps(smooth, rest, start.copy(), step, generator)
    every = max(1, max_iter // 20)
    found: Certified | None = None
    for k, _ in enumerate(steps, 1):
        monitor.check_time()
        if k % every == 0 or k == max_iter:
            point = rest.project(rest.prox_penalty(steps.x, step)[0]).point
            found = certified_point(smooth, rest, point, steps.x, step, curvature)
            monitor.passes = k / max(smooth.n, 1)
            monitor.report(found.certificate)
        if k == max_iter:
            break
    if found is None:
        raise AccuracyError(failure("max_iter was reached"))
    return found
