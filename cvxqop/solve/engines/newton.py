"""Sub-sampled proximal Newton around the splitting engine: the default of STOTOS.

Each outer iteration costs one pass over the data for the exact gradient. The model's Hessian comes
from a few rows, S + (n/n_s) Σ φ'' a a', or is exact for a quadratic form. The certificate, not the
model, says when to stop.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from cvxqop.errors import AccuracyError
from cvxqop.solve.certificate import Certificate, Curvature, certify, localised
from cvxqop.solve.engines.monitor import Goal, Monitor, PrecisionError, failure
from cvxqop.solve.engines.splitting import DenseForm, Form, LowRankForm, Stagnation, minimise_form
from cvxqop.solve.rest.rest import Candidate, Rest
from cvxqop.solve.smooth.finite_sum import FiniteSum
from cvxqop.solve.smooth.quadratic import EPS, Evaluation, Quadratic

__all__ = ["Certified", "minimise_quadratic", "minimise_sum"]

Array = npt.NDArray[np.float64]

SAMPLE_BLOCK = 512
STALLED = 6
INNER_ITERATIONS = 2_000
ROUND_ITERATIONS = 20_000


@dataclass(frozen=True, eq=False)
class Certified:
    """A feasible point, its certificate, and Φ there (up to the constant of r)."""

    candidate: Candidate
    certificate: Certificate
    value: float


def minimise_quadratic(
    quadratic: Quadratic,
    rest: Rest,
    start: Array,
    goal: Goal,
    monitor: Monitor,
    curvature: Curvature | None = None,
) -> Certified:
    """Minimise a quadratic form plus the rest until the goal is certified."""
    bound = curvature or Curvature(quadratic.H)
    if not bound.least > 0.0:
        raise AccuracyError(failure("a Hessian that is not positive definite was met"))
    form = DenseForm(quadratic.H)
    best: list[Certified] = []
    checked = [np.inf]
    floor = 1e3 * EPS * float(np.linalg.norm(quadratic.g) + np.linalg.norm(quadratic.H))
    stagnation = Stagnation(floor, ROUND_ITERATIONS // 20)

    def done(candidate: Candidate, residual: Array) -> bool:
        monitor.check_time()
        size = float(np.linalg.norm(residual))
        if size > 0.3 * checked[0]:
            return stagnation.reached(size)
        checked[0] = size
        found = judge(quadratic.evaluate(candidate.point), candidate, rest, bound)
        met = goal.met(found.certificate, found.value)
        # The point that meets the goal is the answer, even where an earlier gap was smaller.
        if met or not best or found.certificate.gap < best[-1].certificate.gap:
            best[:] = [found]
        return met

    centre = rest.project(start).point
    last = np.inf
    while True:
        monitor.check()
        gradient = quadratic.gradient(centre)
        outcome = minimise_form(form, gradient, centre, rest, done, ROUND_ITERATIONS)
        if not best:
            break
        monitor.report(best[0].certificate)
        if outcome.converged and goal.met(best[0].certificate, best[0].value):
            return best[0]
        if not best[0].certificate.gap < 0.5 * last:
            break
        last = best[0].certificate.gap
        # Start afresh from the best point: momentum and memory are forgotten.
        centre, checked[0] = best[0].candidate.point, np.inf
    raise PrecisionError(failure("working precision was reached"))


def judge(
    evaluation: Evaluation, candidate: Candidate, rest: Rest, curvature: Curvature
) -> Certified:
    """The best certificate for a candidate at which f has been evaluated."""
    if rest.separable:
        # Exact and nearer to −∇f than any other, entry by entry.
        z = candidate.point
        candidate = Candidate(z, rest.nearest_subgradient(z, -evaluation.gradient))
    certificate = certify(evaluation, candidate, curvature)
    value = evaluation.value + rest.value(candidate.point)
    return Certified(candidate, certificate, value)


def minimise_sum(
    smooth: FiniteSum,
    rest: Rest,
    start: Array,
    goal: Goal,
    monitor: Monitor,
    generator: np.random.Generator,
    curvature: Curvature | None = None,
) -> Certified:
    """Minimise a finite sum plus the rest until the goal is certified.

    Parameters
    ----------
    smooth : FiniteSum
        f; quadratic losses of up to 200 dimensions go through their Gram form.
    rest : Rest
        g and C.
    start : (D,) array
        Projected onto C first.
    goal : Goal
        What must be certified.
    monitor : Monitor
        Limits and progress.
    generator : numpy Generator
        Chooses the rows of the model; independent of the privacy mechanism's noise.
    curvature : Curvature or None
        S with its Cholesky factor, where the caller has it.

    Raises
    ------
    AccuracyError
        A limit of the caller was reached, or working precision.
    """
    n, D = smooth.n, smooth.dimension
    if smooth.quadratic and smooth.gram_is_small:
        monitor.passes += 1
        return minimise_quadratic(smooth.gram_form(), rest, start, goal, monitor)
    bound = curvature or Curvature(smooth.lower_curvature())
    z = rest.project(start).point
    size, share, stalled, damping = max(5 * D, 1024), 0.1, 0, 0.0
    looks = _Looks(smooth, generator)
    evaluation = looks.evaluate(z, size)
    if not np.all(np.isfinite(evaluation.gradient)):
        raise AccuracyError(failure("a record that is not finite was met"))
    monitor.passes += 1
    value = evaluation.value + rest.value(z)
    best: Certified | None = None
    # At rounding level iterates may alternate: progress is measured against the best so far.
    smallest_gap = residual = np.inf
    lowest = value
    while True:
        monitor.check()
        form = _model(looks, z, size, damping)
        monitor.passes += min(size, n) / max(n, 1)
        candidate = _inner(form, evaluation.gradient, z, rest, share, residual, stalled, monitor)
        trial = looks.evaluate(candidate.point, size)
        monitor.passes += 1
        now = trial.value + rest.value(candidate.point)
        rounding = 1e-13 * (abs(value) + abs(now))
        move = candidate.point - z
        bend = float(move @ form.apply(move))
        promise = value - evaluation.value - float(evaluation.gradient @ move) - 0.5 * bend
        promise -= rest.value(candidate.point)
        kept = (value - now) / promise if promise > 4.0 * rounding else 1.0
        step = 1.0
        while not now <= value + rounding and step > 1e-4:
            # The model was too flat: shorten the step, and sample more rows next time.
            monitor.check_time()
            step *= 0.5
            size *= 2
            point = np.clip(z + step * (candidate.point - z), rest.lower, rest.upper)
            candidate = candidate._replace(point=point, slack=np.inf)
            trial = looks.evaluate(point, size)
            monitor.passes += 1
            now = trial.value + rest.value(point)
        if step < 1.0 or (kept < 0.25 and size >= n):
            # φ'' vanishes beyond a cut or a kink, and a flat model oversteps: damp the next.
            damping = max(2.0 * damping, bend / float(move @ move) / step)
        elif kept > 0.5:
            damping = 0.2 * damping if damping * float(move @ move) > 1e-3 * bend else 0.0
        found = judge(trial, candidate, rest, bound)
        residual = float(np.linalg.norm(trial.gradient + found.candidate.subgradient))
        monitor.report(found.certificate)
        if best is None or found.certificate.distance < best.certificate.distance:
            best = found
        if goal.met(found.certificate, found.value):
            return found
        shrink = found.certificate.gap / smallest_gap if smallest_gap > 0.0 else 1.0
        if not shrink <= 0.25:
            size *= 2
            share = max(0.1 * share, 1e-8)
        # The bound need not fall with the value while kinks are being found.
        stalled = 0 if shrink < 0.9 or lowest - now > 10.0 * rounding else stalled + 1
        if stalled >= 3 and size >= n:
            # At the floor of rounding only a better M can tighten the bound.
            tighter = localised(
                smooth, best.candidate, smooth.evaluate(best.candidate.point), best.certificate
            )
            monitor.passes += 3
            if goal.met(tighter, best.value):
                return Certified(best.candidate, tighter, best.value)
            if stalled >= STALLED:
                raise PrecisionError(failure("working precision was reached"))
        smallest_gap = min(smallest_gap, found.certificate.gap)
        lowest = min(lowest, now)
        z, evaluation, value = candidate.point, trial, now


@dataclass(eq=False)
class _Looks:
    """f at one point after the other. Where a pass is dear, the same pass finds the Hessians that
    the model at this point may ask for: of the sample of the size of now, and of twice that."""

    smooth: FiniteSum
    generator: np.random.Generator
    known: dict[tuple[tuple[int, int], ...], Array] = field(default_factory=dict)

    def evaluate(self, point: Array, size: int) -> Evaluation:
        """f and ∇f."""
        if not self.smooth.remote:
            return self.smooth.evaluate(point)
        draws = (_sample(self.smooth.n, s, deepcopy(self.generator)) for s in (size, 2 * size))
        samples = list(dict.fromkeys(map(tuple, draws)))
        evaluation, found = self.smooth.evaluate_with(point, samples)
        self.known = dict(zip(samples, found, strict=True))
        return evaluation

    def data_hessian(self, point: Array, chosen: list[tuple[int, int]]) -> Array:
        """That of the chosen records, at the point that f was evaluated at last."""
        found = self.known.get(tuple(chosen))
        return self.smooth.data_hessian(point, chosen) if found is None else found


def _inner(
    form: Form,
    gradient: Array,
    z: Array,
    rest: Rest,
    share: float,
    residual: float,
    stalled: int,
    monitor: Monitor,
) -> Candidate:
    """Minimise the model until its residual is a share of its first one and of the true one."""
    level: list[float] = []
    # Below this the residual is rounding.
    floor = 32.0 * EPS * float(np.linalg.norm(gradient) + np.linalg.norm(form.apply(z)))

    def done(candidate: Candidate, model_residual: Array) -> bool:
        monitor.check_time()
        size = float(np.linalg.norm(model_residual))
        if not level:
            level.append(max(share * min(size, residual), floor))
        return size <= level[0]

    # A badly conditioned model takes more iterations: they grow while nothing else helps.
    limit = INNER_ITERATIONS * (1 + stalled) ** 2
    return minimise_form(form, gradient, z, rest, done, limit).candidate


def _model(looks: _Looks, z: Array, size: int, damping: float) -> Form:
    """S + damping·I + (n/n_s) Σ φ'' a a' over blocks of rows chosen at random, all if few."""
    smooth = looks.smooth
    n, D = smooth.n, smooth.dimension
    chosen = list(_sample(n, size, looks.generator))
    rows = sum(stop - start for start, stop in chosen)
    factor = n / rows if rows else 1.0
    S = smooth.S
    sparse: bool = sp.issparse(S)
    if damping > 0.0:
        S = S + damping * (sp.eye_array(D, format="csr") if sparse else np.eye(D))
    if not chosen:
        return LowRankForm(S, np.zeros((0, D)))
    few = (smooth.record_rank + 1) * rows <= D and not smooth.remote
    thin = sparse and not smooth.remote and smooth.rows_are_thin
    if few or thin:
        return LowRankForm(S, np.sqrt(factor) * smooth.data_root(z, chosen, sparse=thin))
    return DenseForm(np.asarray(factor * looks.data_hessian(z, chosen) + S))


def _sample(n: int, size: int, generator: np.random.Generator) -> Iterator[tuple[int, int]]:
    """Blocks of rows (start, stop): all of them in order, or a random choice of about ``size``."""
    if 2 * size >= n:
        block = 4096
        chosen = np.arange(-(-n // block))
    else:
        block = SAMPLE_BLOCK
        blocks = -(-n // block)
        chosen = np.sort(generator.choice(blocks, min(blocks, -(-size // block)), replace=False))
    for k in chosen:
        yield int(k) * block, min(n, (int(k) + 1) * block)
