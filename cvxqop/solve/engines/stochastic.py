"""Stochastic three-operator splitting: StoTOS as published, and its variance-reduced form.

CC26 and SKM26 iterate, with a record i drawn uniformly at each step,

    θ = prox_{ωg}(x),   ĝ = n ∇ℓ_i(θ) + S(θ − θ0) + a,   z = P_C(2θ − x − ω ĝ),
    x ← x + λ_k (z − θ),   λ_k = (k + 1)^(−1/2 − 0.002),   ω = 1/(nL + λ_max(S)).

The noise of ĝ is inside the projection: where C is active the iterates settle at the fixed point of
the mean operator, not at the minimiser (theory §7). Only the certificate shows it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from cvxqop.solve.certificate import Curvature, smallest, theta_form
from cvxqop.solve.engines.monitor import Goal, Monitor
from cvxqop.solve.engines.newton import Certified, judge
from cvxqop.solve.rest.rest import Candidate, Rest
from cvxqop.solve.smooth.finite_sum import FiniteSum

__all__ = ["PlainSteps", "variance_reduced"]

Array = npt.NDArray[np.float64]

DECAY = 0.5 + 2e-3


@dataclass(eq=False)
class PlainSteps:
    """The published recursion; iterate over it for the points z = P_C(·).

    Parameters
    ----------
    smooth : FiniteSum
        f.
    rest : Rest
        g and C; its quadratic terms must have been moved into f.
    x : (D,) array
        Start, changed in place of the state.
    step : float
        ω.
    generator : numpy Generator
        Draws the records.
    """

    smooth: FiniteSum
    rest: Rest
    x: Array
    step: float
    generator: np.random.Generator

    def __iter__(self) -> Iterator[Candidate]:
        f, n = self.smooth, self.smooth.n
        k = 0
        while True:
            theta, u_g = self.rest.prox_penalty(self.x, self.step)
            estimate = f.a + f.S @ (theta - f.anchor)
            if n:
                i = int(self.generator.integers(n))
                estimate = estimate + n * f.record_gradient(theta, i, i + 1)
            projection = self.rest.project(2.0 * theta - self.x - self.step * estimate)
            self.x = self.x + (k + 1.0) ** -DECAY * (projection.point - theta)
            k += 1
            yield self.rest.split_candidate(u_g, projection, self.step)


def plain_step_length(smooth: FiniteSum) -> float:
    """ω = 1/(nL + λ_max(S))."""
    return float(1.0 / (smooth.n * smooth.record_smoothness() + _top(smooth.S)))


def certified_point(
    smooth: FiniteSum, rest: Rest, z: Array, x: Array, step: float, curvature: Curvature
) -> Certified:
    """Certify z as it is, by the smallest bound that one exact splitting step gives."""
    evaluation = smooth.evaluate(z)
    if rest.fused:
        exact = rest.candidate(z - step * evaluation.gradient, step)
        return judge(evaluation, rest.transferred(exact, z), rest, curvature)
    theta, u_g = rest.prox_penalty(x, step)
    projection = rest.project(2.0 * theta - x - step * evaluation.gradient)
    exact = rest.split_candidate(u_g, projection, step)
    found = judge(evaluation, rest.transferred(exact, z), rest, curvature)
    if projection.slack > 0.0 or projection.violation > 0.0:
        return found
    other = theta_form(
        (evaluation, rest.value(z)),
        (smooth.evaluate(theta), rest.value(theta)),
        projection.point,
        theta,
        u_g,
        projection.normal / step,
        curvature,
    )
    return replace(found, certificate=smallest(found.certificate, other))


def variance_reduced(
    smooth: FiniteSum,
    rest: Rest,
    start: Array,
    goal: Goal,
    monitor: Monitor,
    generator: np.random.Generator,
    max_iter: int,
    curvature: Curvature,
) -> tuple[Certified, bool]:
    """Loopless SVRG inside the splitting: unbiased, and its noise vanishes at the solution.

    The full gradient at a reference point corrects a minibatch of 4D consecutive records from a
    random position; the reference moves with probability batch/n, and is certified then.

    Returns
    -------
    Certified, bool
        The best point, and whether the goal was met within ``max_iter`` iterations.
    """
    n, D = smooth.n, smooth.dimension
    batch = max(1, min(n, 4 * D))
    largest = smooth.record_smoothness()
    # λ_max of the data's Hessian is at most the trace bound n·largest; the power method is tighter.
    top = smooth.data_smoothness() + _top(smooth.S)
    step = 1.0 / (2.0 * (top + n * largest / batch))
    x = rest.project(start).point
    reference, full = x, np.zeros(D)
    best: Certified | None = None
    renew = True
    for _ in range(max_iter):
        monitor.check_time()
        theta, _ = rest.prox_penalty(x, step)
        if renew:
            reference = theta
            evaluation = smooth.evaluate(theta)
            full = evaluation.gradient
            monitor.passes += 1
            z = rest.project(theta).point
            if rest.fused:
                # Its exact step is a better point than z, at the price of no further pass.
                z = rest.candidate(theta - step * full, step).point
            found = certified_point(smooth, rest, z, x, step, curvature)
            monitor.passes += 1
            monitor.report(found.certificate)
            if best is None or found.certificate.gap < best.certificate.gap:
                best = found
            if goal.met(best.certificate, best.value):
                return best, True
        correction = smooth.S @ (theta - reference)
        if n:
            for begin, end in _window(int(generator.integers(n)), batch, n):
                difference = smooth.record_gradient(theta, begin, end)
                difference -= smooth.record_gradient(reference, begin, end)
                correction = correction + (n / batch) * difference
            monitor.passes += 2 * batch / n
        projection = rest.project(2.0 * theta - x - step * (full + correction))
        x = x + (projection.point - theta)
        renew = n == 0 or bool(generator.random() < batch / n)
    assert best is not None
    return best, False


def _top(S: Any) -> float:
    """λ_max(S); of a sparse S its largest absolute row sum, which is no less."""
    if sp.issparse(S):
        return float(abs(S).sum(axis=1).max())
    return float(np.linalg.eigvalsh(S)[-1])


def _window(first: int, batch: int, n: int) -> Iterator[tuple[int, int]]:
    """Records first … first + batch − 1, around the end."""
    yield first, min(first + batch, n)
    if first + batch > n:
        yield 0, first + batch - n
