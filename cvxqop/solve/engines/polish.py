"""Proximal steps after a conic solver, kept only where they are seen to do no harm.

A solver's answer has its tolerance in every entry. A few splitting steps make the zeros of a LASSO
exact and let simple constraints hold to the last bit; where projections are iterative they may
also lead away, so that a judge who does not look at the operators has the last word.
"""

from __future__ import annotations

from collections.abc import Sequence

import cvxpy as cp
import numpy as np
import numpy.typing as npt

from cvxqop.errors import ProblemError
from cvxqop.solve.certificate import Curvature, certify
from cvxqop.solve.engines.splitting import DenseForm, minimise_form
from cvxqop.solve.rest.agreement import Public
from cvxqop.solve.rest.prox import NotSplittable, split
from cvxqop.solve.rest.rest import Candidate, Rest
from cvxqop.solve.smooth.quadratic import EPS, Quadratic

__all__ = ["polished"]

Array = npt.NDArray[np.float64]

STEPS = 30
FLOOR = 1e-14
CERTAIN = 1e-9
"""Certified distance, relative to ‖θ‖, at which a point is right whatever the solver says."""


def polished(
    quadratic: Quadratic,
    variables: Sequence[cp.Variable],
    regulariser: cp.Expression | None,
    constraints: Sequence[cp.Constraint],
    theta: Array,
) -> Array:
    """The point of C next to a solver's answer, or one after splitting steps that is no worse.

    Where the rest cannot be split, the answer as it is.
    """
    try:
        rest = split(variables, regulariser, constraints)
    except (NotSplittable, ProblemError):
        return theta
    public = Public(variables, regulariser, constraints)
    theta = _projected(rest, public, theta)
    f = quadratic if rest.Q is None and not np.any(rest.q) else quadratic.plus(rest.Q, rest.q)
    if not rest.fused or not np.any(f.H):
        return theta
    found = _steps(f, rest, theta)
    if not _as_feasible(public, found.point, theta):
        return theta
    if _lower(quadratic, public, found.point, theta) or _certain(f, found):
        return found.point
    return theta


def _projected(rest: Rest, public: Public, theta: Array) -> Array:
    """P_C(θ), which is no farther from any point of C; θ where the projection is not exact."""
    found = rest.project(theta)
    exact = found.violation == 0.0 and _as_feasible(public, found.point, theta)
    return found.point if exact else theta


def _steps(f: Quadratic, rest: Rest, theta: Array) -> Candidate:
    """The candidate of the smallest residual; slack counts like a residual of the same gap."""
    best: list[tuple[float, Candidate]] = []
    reach = float(np.abs(theta).max(initial=0.0))
    floor = FLOOR * float(np.linalg.norm(f.g) + reach * np.abs(f.H).max())
    mean = float(np.trace(f.H)) / len(theta)
    gradient = f.gradient(theta)
    pull = float(np.linalg.norm(gradient))

    def done(candidate: Candidate, residual: Array) -> bool:
        slack = candidate.slack + candidate.violation * pull
        size = float(np.sqrt(residual @ residual + 2.0 * mean * slack))
        if not best or size < best[0][0]:
            best[:] = [(size, candidate)]
        return size <= floor

    minimise_form(DenseForm(f.H), gradient, theta, rest, done, STEPS, warm=True)
    return best[0][1]


def _as_feasible(public: Public, point: Array, theta: Array) -> bool:
    """Whether no constraint is violated by more than rounding, or than by θ."""
    (violation, size), (before, _) = public.violation(point), public.violation(theta)
    return violation <= max(before, 16.0 * EPS * size)


def _lower(quadratic: Quadratic, public: Public, point: Array, theta: Array) -> bool:
    """Whether Φ(point) ≤ Φ(θ) up to rounding."""
    # f(a) − f(b) = ∇f(½(a + b))'(a − b), in which nothing cancels.
    move = point - theta
    slope = quadratic.gradient(0.5 * (point + theta))
    own, other = public.value(point), public.value(theta)
    rounding = 8.0 * EPS * (abs(own) + abs(other))
    rounding += EPS * (len(move) + 4) * float(np.linalg.norm(slope) * np.linalg.norm(move))
    return float(slope @ move) + own - other <= rounding


def _certain(f: Quadratic, found: Candidate) -> bool:
    certificate = certify(f.evaluate(found.point), found, Curvature(f.H))
    return certificate.distance <= CERTAIN * float(np.linalg.norm(found.point))
