"""Many quadratics at once over one rest that acts on each coordinate by itself.

Projected Newton: on the coordinates that neither a kink nor a bound holds a full Newton step, cut
where a coordinate meets its kink or bound, at the best of a few lengths. That is a descent
direction (Bertsekas 1982), and once the right coordinates are held one step is exact. Each answer
has a certificate; what is not done by then goes to an engine that always ends.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from cvxqop.solve.rest.rest import Rest
from cvxqop.solve.smooth.quadratic import EPS

__all__ = ["Many", "minimise_many"]

Array = npt.NDArray[np.float64]

ROUNDS = 40
LENGTHS = np.array([1.0, 0.5, 0.25, 0.1, 0.03, 0.01])


class Many(NamedTuple):
    """Minimisers θ (B, D), and a certified bound (B,) on the distance of each to the exact one."""

    theta: Array
    distance: Array


def minimise_many(H: Array, linear: Array, least: Array, rest: Rest, start: Array) -> Many:
    """Minimise ½θ'Hθ + linear'θ + r(θ) over C for each of B pairs (H, linear).

    Parameters
    ----------
    H : (B, D, D) array
        Positive definite.
    linear : (B, D) array
        Linear terms.
    least : (B,) array
        A lower bound on the smallest eigenvalue of each H.
    rest : Rest
        r and C; they must be ``separable``. Its quadratic and linear terms are added here.
    start : (D,) array
        A guess of all of the minimisers.

    Examples
    --------
    >>> import cvxpy as cp, numpy as np
    >>> from cvxqop.solve.rest.prox import split
    >>> theta = cp.Variable(2)
    >>> rest = split([theta], cp.norm1(theta), [theta <= 1])
    >>> H, linear = np.stack([np.eye(2)] * 2), np.array([[-3.0, 0.5], [-1.5, 4.0]])
    >>> minimise_many(H, linear, np.ones(2), rest, np.zeros(2)).theta.tolist()
    [[1.0, 0.0], [0.5, -3.0]]
    """
    if rest.Q is not None:
        H = H + rest.Q
    linear = linear + rest.q
    theta = np.broadcast_to(np.clip(start, rest.lower, rest.upper), linear.shape).copy()
    distance = np.full(len(theta), np.inf)
    left = np.arange(len(theta))
    for steps in range(ROUNDS + 1):
        A, b, at = H[left], linear[left], theta[left]
        gradient = _times(A, at) + b
        residual = np.linalg.norm(gradient + rest.nearest_subgradient(at, -gradient), axis=1)
        distance[left] = residual / least[left]
        size = np.linalg.norm(A, axis=(1, 2)) * np.linalg.norm(at, axis=1)
        going = residual > 16.0 * EPS * (size + np.linalg.norm(b, axis=1))
        left = left[going]
        if not len(left) or steps == ROUNDS:
            break
        theta[left] = _stepped(A[going], gradient[going], b[going], at[going], rest)
    return Many(theta, distance)


def _times(A: Array, x: Array) -> Array:
    return np.asarray(np.matmul(A, x[:, :, None])[:, :, 0])


def _stepped(A: Array, gradient: Array, b: Array, theta: Array, rest: Rest) -> Array:
    """The best of a few points on the path of a Newton step that stays on its side of kinks."""
    kinked = rest.weights > 0.0
    side = np.where(kinked, np.sign(theta - rest.kinks), 0.0)
    # A coordinate on its kink leaves it where the slope of f is steeper than that of r.
    leaves = kinked & (side == 0.0) & (np.abs(gradient) > rest.weights)
    side = np.where(leaves, -np.sign(gradient), side)
    slope = gradient + side * rest.weights
    held = (kinked & (side == 0.0)) | ((theta <= rest.lower) & (slope >= 0.0))
    held |= (theta >= rest.upper) & (slope <= 0.0)
    step = _newton(A, slope, ~held)
    low = np.where(side > 0.0, np.maximum(rest.lower, rest.kinks), rest.lower)
    high = np.where(side < 0.0, np.minimum(rest.upper, rest.kinks), rest.upper)
    trials = np.clip(theta + LENGTHS[:, None, None] * step, low, high)
    trials = np.where(held, theta, trials)
    # f and r relative to θ: nothing cancels, and the best is found where all are close.
    moved = trials - theta
    curved = np.matmul(A, moved.transpose(1, 2, 0)).transpose(2, 0, 1)
    gain = np.einsum("kbd,kbd->kb", moved, slope + 0.5 * curved)
    best = np.argmin(gain, axis=0)
    return np.asarray(trials[best, np.arange(len(theta))])


def _newton(A: Array, slope: Array, free: npt.NDArray[np.bool_]) -> Array:
    """d with A d = −slope on the free coordinates, and 0 on the others."""
    matrix = A * (free[:, :, None] & free[:, None, :])
    k = np.arange(A.shape[1])
    matrix[:, k, k] += ~free
    return np.asarray(np.linalg.solve(matrix, np.where(free, -slope, 0.0)[:, :, None])[:, :, 0])
