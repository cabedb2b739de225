"""Operator splitting for a quadratic form plus the rest: the inner engine.

Where the prox of g + ι_C is known: accelerated proximal gradient with restarts, and for absolute
values on a box a direct solve on the free coordinates. Otherwise: the three-operator splitting of
Davis and Yin (2017) with Anderson acceleration.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from scipy.linalg.lapack import dposv

from cvxqop._blocks import dense
from cvxqop.solve.rest.rest import Candidate, Rest

__all__ = ["DenseForm", "Form", "LowRankForm", "Outcome", "Stagnation", "minimise_form"]

Array = npt.NDArray[np.float64]
Done = Callable[[Candidate, Array], bool]

MEMORY = 8
DIRECT_DIMENSION = 2000


class Form(Protocol):
    """A positive definite H, as a product."""

    def apply(self, v: Array) -> Array:
        """H v."""

    def diagonal(self) -> Array:
        """The diagonal of H."""

    def block(self, index: npt.NDArray[np.intp]) -> Array:
        """Rows and columns ``index`` of H."""


@dataclass(frozen=True, eq=False)
class DenseForm:
    """H as an array."""

    H: Array

    def apply(self, v: Array) -> Array:
        """H v."""
        return np.asarray(self.H @ v)

    def diagonal(self) -> Array:
        """The diagonal of H."""
        return np.diagonal(self.H)

    def block(self, index: npt.NDArray[np.intp]) -> Array:
        """Rows and columns ``index`` of H."""
        return self.H[np.ix_(index, index)]


@dataclass(frozen=True, eq=False)
class LowRankForm:
    """H = S + B'B with B of few rows or sparse, never formed; S may be sparse, too."""

    S: Any
    B: Any

    def apply(self, v: Array) -> Array:
        """H v."""
        return np.asarray(self.S @ v + self.B.T @ (self.B @ v))

    def diagonal(self) -> Array:
        """The diagonal of H."""
        squares = np.asarray((self.B * self.B).sum(axis=0)).reshape(-1)
        return np.asarray(self.S.diagonal() + squares)

    def block(self, index: npt.NDArray[np.intp]) -> Array:
        """Rows and columns ``index`` of H."""
        part = self.B[:, index]
        return dense(self.S[np.ix_(index, index)]) + dense(part.T @ part)


@dataclass(frozen=True, eq=False)
class Outcome:
    """Where the splitting stopped: a candidate and r = ∇f(point) + subgradient."""

    candidate: Candidate
    residual: Array
    converged: bool
    iterations: int


class Stagnation:
    """Whether residuals are at the level of rounding and no longer fall.

    Parameters
    ----------
    floor : float
        That level.
    patience : int
        How many residuals in a row may bring nothing.
    """

    def __init__(self, floor: float, patience: int = 50) -> None:
        self._floor, self._patience = floor, patience
        self._least, self._idle = np.inf, 0

    def reached(self, size: float) -> bool:
        """Take note of one more residual of this size."""
        if size < 0.99 * self._least:
            self._least, self._idle = size, 0
        else:
            self._idle += 1
        return self._least <= self._floor and self._idle >= self._patience


def minimise_form(
    form: Form,
    gradient: Array,
    centre: Array,
    rest: Rest,
    done: Done,
    max_iter: int = 20_000,
    *,
    warm: bool = False,
) -> Outcome:
    """Minimise gradient'(θ − centre) + ½ (θ − centre)'H(θ − centre) + g(θ) over C.

    Parameters
    ----------
    form : Form
        H.
    gradient, centre : (D,) arrays
        The gradient at ``centre``, from where the search starts.
    rest : Rest
        g and C.
    done : callable
        Called with a candidate and its residual r; True ends the search.
    max_iter : int
        Bound on the iterations.
    warm : bool
        Whether ``centre`` is nearly the solution, so that a direct solve may come first.
    """
    if rest.fused:
        return _accelerated(form, gradient, centre, rest, done, max_iter, warm)
    return _three_operator(form, gradient, centre, rest, done, max_iter)


def largest_eigenvalue(apply: Callable[[Array], Array], size: int) -> float:
    """λ_max by ten power iterations, raised by 5%; the callers check it as they go."""
    v = np.random.default_rng(0).standard_normal(size)
    value = 0.0
    for _ in range(10):
        length = float(np.linalg.norm(v))
        if length == 0.0:
            return 1.0
        v = apply(v / length)
        value = float(np.linalg.norm(v))
    return 1.05 * value if value > 0.0 else 1.0


def _accelerated(
    form: Form, gradient: Array, centre: Array, rest: Rest, done: Done, max_iter: int, warm: bool
) -> Outcome:
    D = len(centre)
    # A diagonal metric where the prox allows one: badly scaled columns then cost nothing.
    metric = np.maximum(form.diagonal(), 1e-300) if rest.separable else np.ones(D)
    root = np.sqrt(metric)
    L = largest_eigenvalue(lambda v: form.apply(v / root) / root, D)
    offset = gradient - form.apply(centre)
    z, Hz = centre, gradient - offset
    previous, H_previous = z, Hz
    momentum = 1.0
    # A direct solve costs D/3 products; it pays early for small D only.
    patience = 2 if warm else 2 + D * D // 20_000
    wait = attempt = patience
    outcome = None
    for k in range(1, max_iter + 1):
        following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum * momentum))
        beta = (momentum - 1.0) / following
        y = z + beta * (z - previous)
        g_y = offset + Hz + beta * (Hz - H_previous)
        t = 1.0 / (L * metric) if rest.separable else 1.0 / L
        found = rest.candidate(y - t * g_y, t)
        H_new = form.apply(found.point)
        residual = offset + H_new + found.subgradient
        outcome = Outcome(found, residual, True, k)
        if done(found, residual):
            return outcome
        step = found.point - z
        # The power method may have stopped short of λ_max.
        length = float(step @ (metric * step))
        curvature = float(step @ (H_new - Hz))
        if curvature > L * length > 0.0:
            L = 1.05 * curvature / length
        if float((y - found.point) @ (metric * step)) > 0.0:
            following = 1.0
        previous, H_previous, z, Hz, momentum = z, Hz, found.point, H_new, following
        if not rest.separable or k < attempt:
            continue
        direct = _direct(form, offset, rest, found, residual, t)
        if direct is not None and _size(direct.residual, metric) < 0.5 * _size(residual, metric):
            if done(direct.candidate, direct.residual):
                return direct
            z = previous = direct.candidate.point
            Hz = H_previous = direct.residual - offset - direct.candidate.subgradient
            momentum, wait = 1.0, patience
        else:
            wait *= 2
        attempt = k + wait
    assert outcome is not None
    return Outcome(outcome.candidate, outcome.residual, False, max_iter)


def _size(residual: Array, metric: Array) -> float:
    return float(residual @ (residual / metric))


def _direct(
    form: Form, offset: Array, rest: Rest, found: Candidate, residual: Array, t: Array | float
) -> Outcome | None:
    """Newton's step on the coordinates off their kinks and bounds, then one proximal step."""
    z = found.point.copy()
    off_kink = (rest.weights == 0.0) | (z != rest.kinks)
    free = np.flatnonzero(off_kink & (z > rest.lower) & (z < rest.upper))
    if len(free) == 0 or len(free) > DIRECT_DIMENSION:
        return None
    step, failed = dposv(form.block(free), -residual[free])[1:]
    if failed:
        return None
    z[free] += step
    candidate = rest.candidate(z - t * (offset + form.apply(z)), t)
    return Outcome(candidate, offset + form.apply(candidate.point) + candidate.subgradient, True, 0)


def _three_operator(
    form: Form, gradient: Array, centre: Array, rest: Rest, done: Done, max_iter: int
) -> Outcome:
    L = largest_eigenvalue(form.apply, len(centre))
    t = 1.5 / L
    offset = gradient - form.apply(centre)
    anderson = _Anderson()
    # A guess of the subgradient of g at the solution: the one after a gradient step.
    x = centre + t * rest.prox_penalty(centre - t * gradient, t)[1]
    outcome = None
    for k in range(1, max_iter + 1):
        theta, u_g = rest.prox_penalty(x, t)
        slope = offset + form.apply(theta)
        y = 2.0 * theta - x - t * slope
        projection = rest.project(y)
        found = rest.split_candidate(u_g, projection, t)
        residual = offset + form.apply(found.point) + found.subgradient
        outcome = Outcome(found, residual, True, k)
        if done(found, residual):
            return outcome
        x = anderson.step(x, projection.point - theta)
    assert outcome is not None
    return Outcome(outcome.candidate, outcome.residual, False, max_iter)


class _Anderson:
    """Anderson acceleration of x ← x + F(x), kept only while the residual does not grow."""

    def __init__(self) -> None:
        self._xs: list[Array] = []
        self._fs: list[Array] = []
        self._safe: tuple[Array, float] | None = None

    def step(self, x: Array, f: Array) -> Array:
        """Next x from the residual f = F(x)."""
        size = float(np.linalg.norm(f))
        if self._safe is not None and size > 2.0 * self._safe[1]:
            # The last extrapolation did harm: take the plain step instead, and forget.
            plain = self._safe[0]
            self._safe = None
            self._xs.clear()
            self._fs.clear()
            return plain
        self._xs.append(x)
        self._fs.append(f)
        if len(self._xs) > MEMORY:
            self._xs.pop(0)
            self._fs.pop(0)
        if len(self._xs) < 2:
            return x + f
        F = np.diff(np.array(self._fs), axis=0)
        X = np.diff(np.array(self._xs), axis=0)
        gram = F @ F.T
        gram[np.diag_indices(len(gram))] += 1e-12 * np.trace(gram) + 1e-300
        gamma = np.linalg.solve(gram, F @ f)
        self._safe = (x + f, size)
        return np.asarray(x + f - (X + F).T @ gamma)
