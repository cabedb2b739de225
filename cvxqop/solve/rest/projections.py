"""Closed convex sets with a projection, on the coordinates they touch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

__all__ = [
    "AffineSet",
    "Ball",
    "BallInBox",
    "Box",
    "ConvexSet",
    "L1Ball",
    "Projection",
    "SecondOrderCone",
    "SemidefiniteCone",
    "Slab",
    "SymmetricMatrices",
    "project_l1_ball",
]

Array = npt.NDArray[np.float64]


class Projection(NamedTuple):
    """A point z of C with a vector nearly normal to C there: u'(c − z) ≤ slack for all c in C.

    ``violation`` bounds how far z may lie outside of C beyond rounding.
    """

    point: Array
    normal: Array
    slack: float = 0.0
    violation: float = 0.0


class ConvexSet(Protocol):
    """A set with its projection."""

    def project(self, y: Array) -> Projection:
        """Nearest point to y, and y minus it as a normal vector."""


def _exact(y: Array, z: Array) -> Projection:
    return Projection(z, y - z)


@dataclass(frozen=True, eq=False)
class Box:
    """lower ≤ y ≤ upper, entries may be infinite."""

    lower: Array
    upper: Array

    def project(self, y: Array) -> Projection:
        """Clip."""
        return _exact(y, np.clip(y, self.lower, self.upper))


@dataclass(frozen=True, eq=False)
class Ball:
    """‖y − centre‖₂ ≤ radius."""

    centre: Array
    radius: float

    def project(self, y: Array) -> Projection:
        """Scale towards the centre."""
        offset = y - self.centre
        length = float(np.linalg.norm(offset))
        if length <= self.radius:
            return Projection(y.copy(), np.zeros_like(y))
        return _exact(y, self.centre + offset * (self.radius / length))


@dataclass(frozen=True, eq=False)
class BallInBox:
    """‖y − centre‖₂ ≤ radius and lower ≤ y ≤ upper.

    The nearest point is clip(centre + s (y − centre)) for the s in [0, 1] that meets the radius;
    the length grows with s, and s is explicit once the free entries are known.
    """

    centre: Array
    radius: float
    lower: Array
    upper: Array

    def project(self, y: Array) -> Projection:
        """Bisection between the entries' knots, then the explicit s."""
        offset = y - self.centre
        z = np.clip(y, self.lower, self.upper)
        if float(np.linalg.norm(z - self.centre)) <= self.radius:
            return _exact(y, z)
        low, high = 0.0, 1.0
        s = 1.0
        for _ in range(200):
            free = (z > self.lower) & (z < self.upper)
            fixed = float(np.sum((z - self.centre)[~free] ** 2))
            moving = float(np.sum(offset[free] ** 2))
            room = self.radius**2 - fixed
            trial = float(np.sqrt(room / moving)) if room >= 0.0 and moving > 0.0 else -1.0
            s = trial if low < trial < high else 0.5 * (low + high)
            z = np.clip(self.centre + s * offset, self.lower, self.upper)
            length = float(np.linalg.norm(z - self.centre))
            if abs(length - self.radius) <= 4e-16 * self.radius or high - low <= 1e-16:
                break
            if length > self.radius:
                high = s
            else:
                low = s
        return _exact(y, z)


@dataclass(frozen=True, eq=False)
class L1Ball:
    """‖y − centre‖₁ ≤ radius."""

    centre: Array
    radius: float

    def project(self, y: Array) -> Projection:
        """Soft threshold at the level that meets the radius."""
        return _exact(y, self.centre + project_l1_ball(y - self.centre, self.radius))


def project_l1_ball(y: Array, radius: float) -> Array:
    """Projection onto ‖·‖₁ ≤ radius by sorting."""
    sizes = np.abs(y)
    if sizes.sum() <= radius:
        return y.copy()
    ordered = np.sort(sizes)[::-1]
    levels = (np.cumsum(ordered) - radius) / np.arange(1, len(y) + 1)
    level = levels[np.flatnonzero(ordered > levels)[-1]] if radius > 0 else ordered[0]
    return y - np.clip(y, -level, level)


@dataclass(frozen=True, eq=False)
class Slab:
    """low ≤ a'y ≤ high inside a box: hyperplane, halfspace, simplex, knapsack.

    The nearest point is clip(y − μa) for the μ that meets the bound, a monotone scalar equation
    that is solved by sorting the breakpoints.
    """

    a: Array
    low: float
    high: float
    lower: Array
    upper: Array

    def project(self, y: Array) -> Projection:
        """clip(y − μ a)."""
        inside = np.clip(y, self.lower, self.upper)
        level = float(self.a @ inside)
        if level < self.low:
            target = self.low
        elif level > self.high:
            target = self.high
        else:
            return _exact(y, inside)
        return _exact(y, self._meet(y, target))

    def _meet(self, y: Array, target: float) -> Array:
        a = self.a
        bounded = np.isfinite(self.lower) | np.isfinite(self.upper)
        if not np.any(bounded & (a != 0.0)):
            return np.asarray(y - ((a @ y - target) / (a @ a)) * a)
        moving = a != 0.0
        with np.errstate(invalid="ignore", divide="ignore"):
            one, other = (y - self.lower) / a, (y - self.upper) / a
        # Coordinate i moves with slope −a_i² while μ lies between its two ends.
        begin, end = np.minimum(one, other)[moving], np.maximum(one, other)[moving]
        squares = (a * a)[moving]
        first_knots, last_knots = np.isfinite(begin), np.isfinite(end)
        knots = np.concatenate([begin[first_knots], end[last_knots]])
        change = np.concatenate([squares[first_knots], -squares[last_knots]])
        order = np.argsort(knots)
        knots = knots[order]
        slopes = float(squares[~first_knots].sum()) + np.cumsum(change[order])
        highest = float(a @ np.clip(y - knots[0] * a, self.lower, self.upper))
        levels = highest - np.concatenate([[0.0], np.cumsum(slopes[:-1] * np.diff(knots))])
        first = int(np.sum(levels > target))
        left = knots[first - 1] if first > 0 else -np.inf
        right = knots[first] if first < len(knots) else np.inf
        if np.isfinite(left) and np.isfinite(right):
            probe = 0.5 * (left + right)
        elif np.isfinite(right):
            probe = right - 1.0 - abs(right)
        else:
            probe = left + 1.0 + abs(left)
        trial = y - probe * a
        free = moving & (trial > self.lower) & (trial < self.upper)
        fixed = float(a[~free] @ np.clip(trial, self.lower, self.upper)[~free])
        curvature = float(a[free] @ a[free])
        if curvature > 0.0:
            probe = (float(a[free] @ y[free]) + fixed - target) / curvature
        elif np.isfinite(right):
            probe = right
        return np.clip(y - probe * a, self.lower, self.upper)


class AffineSet:
    """A y = b, A of full row rank after removal of dependent rows."""

    def __init__(self, A: Array, b: Array) -> None:
        U, sizes, Vt = np.linalg.svd(A, full_matrices=False)
        rank = int(np.sum(sizes > 1e-12 * max(A.shape) * np.max(sizes, initial=0.0)))
        self._basis = Vt[:rank]
        self._offset = (U[:, :rank].T @ b) / sizes[:rank]
        self.consistent = bool(
            np.allclose(A @ (self._basis.T @ self._offset), b, rtol=1e-9, atol=1e-9)
        )

    def project(self, y: Array) -> Projection:
        """y minus its component across the set; the normal lies exactly in the row space."""
        return Projection(
            y - self._basis.T @ (self._basis @ y - self._offset),
            self._basis.T @ (self._basis @ y - self._offset),
        )


@dataclass(frozen=True)
class SecondOrderCone:
    """‖y[1:]‖₂ ≤ y[0]."""

    def project(self, y: Array) -> Projection:
        """The three cases: inside, in the polar cone, between."""
        t, length = float(y[0]), float(np.linalg.norm(y[1:]))
        if length <= t:
            return Projection(y.copy(), np.zeros_like(y))
        if length <= -t:
            return Projection(np.zeros_like(y), y.copy())
        z = y.copy()
        z[0] = 0.5 * (t + length)
        z[1:] *= z[0] / length
        return _exact(y, z)


@dataclass(frozen=True)
class SemidefiniteCone:
    """Matrices of order ``side`` whose symmetric part is positive semidefinite, flattened.

    With ``symmetric`` the matrix must be symmetric as well. (CVXPY's ``X >> 0`` speaks of the
    symmetric part only, unless the variable itself is symmetric.)
    """

    side: int
    symmetric: bool

    def project(self, y: Array) -> Projection:
        """Drop the negative eigenvalues of the symmetric part."""
        Y = y.reshape(self.side, self.side, order="F")
        values, V = np.linalg.eigh(0.5 * (Y + Y.T))
        Z = (V * np.maximum(values, 0.0)) @ V.T
        Z = 0.5 * (Z + Z.T)
        if not self.symmetric:
            Z = Z + 0.5 * (Y - Y.T)
        return _exact(y, Z.reshape(-1, order="F"))


@dataclass(frozen=True)
class SymmetricMatrices:
    """Symmetric matrices of order ``side``, flattened."""

    side: int

    def project(self, y: Array) -> Projection:
        """The symmetric part."""
        Y = y.reshape(self.side, self.side, order="F")
        return _exact(y, (0.5 * (Y + Y.T)).reshape(-1))
