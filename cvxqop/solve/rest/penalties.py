"""Penalties with a proximal operator, on the coordinates they touch.

A penalty h acts on y = s·θ[index] + b. All of them here are norms, hence positively homogeneous:
h(y) = max {u'y : u ∈ ∂h(0)}, and u ∈ ∂h(x) means h(y) − h(x) − u'(y − x) = h(y) − u'y.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from cvxqop.solve.rest.projections import project_l1_ball

__all__ = ["GroupNorm", "MaxNorm", "Norm", "NuclearNorm", "Placed", "TotalVariation", "soft"]

Array = npt.NDArray[np.float64]

ROUNDING = float(np.finfo(np.float64).eps)
NEAR = 1e-6


def soft(x: Array, level: Array | float) -> Array:
    """Soft threshold sign(x) · max(|x| − level, 0), elementwise."""
    return np.asarray(x - np.clip(x, -level, level))


class Norm(Protocol):
    """A norm: its value and prox_{t h}(y) = argmin_x h(x) + ‖x − y‖²/(2t)."""

    def value(self, y: Array) -> float:
        """h(y)."""

    def prox(self, y: Array, t: float) -> Array:
        """prox_{t h}(y)."""


@dataclass(frozen=True, eq=False)
class GroupNorm:
    """Σ_G w_G ‖y_G‖₂, group after group in y; one group is the plain 2-norm.

    Parameters
    ----------
    weights : (k,) array
        w_G ≥ 0.
    starts : (k,) int array
        Where each group begins.
    lengths : (k,) int array
        Its size.
    """

    weights: Array
    starts: npt.NDArray[np.intp]
    lengths: npt.NDArray[np.intp]

    def norms(self, y: Array) -> Array:
        """‖y_G‖ for each group."""
        return np.asarray(np.sqrt(np.add.reduceat(y * y, self.starts)))

    def value(self, y: Array) -> float:
        """h(y)."""
        return float(self.weights @ self.norms(y))

    def prox(self, y: Array, t: float) -> Array:
        """Each group shrinks towards 0 by t w_G in length."""
        norms = self.norms(y)
        shrink = np.maximum(0.0, 1.0 - t * self.weights / np.maximum(norms, 1e-300))
        return np.asarray(y * np.repeat(shrink, self.lengths))

    def gradient(self, y: Array) -> Array:
        """w_G y_G/‖y_G‖, and 0 for a group that is 0."""
        lengths = self.norms(y)
        return y * np.repeat(self.weights / np.where(lengths > 0.0, lengths, 1.0), self.lengths)

    def subgradient(self, y: Array, near: Array) -> tuple[Array, float]:
        """A subgradient at y close to ``near``, and h(y) − u'y bounded without cancellation.

        Where the gradient w y/‖y‖ of a group is near, it is taken, and adds nothing; elsewhere
        ``near`` itself, which costs w‖y‖ − near'y, where ‖y‖ is small.
        """
        lengths, own = self.norms(y), self.norms(near)
        unit = self.gradient(y)
        shrink = np.minimum(1.0, self.weights / np.maximum(own, 1e-300))
        cut = near * np.repeat(shrink, self.lengths)
        close = (lengths > 0.0) & (self.norms(unit - near) <= NEAR * self.weights)
        missing = self.weights * lengths - np.add.reduceat(cut * y, self.starts)
        missing = np.maximum(missing, 0.0) + ROUNDING * 16.0 * self.weights * lengths
        slack = float(np.sum(np.where(close, 0.0, missing)))
        return np.where(np.repeat(close, self.lengths), unit, cut), slack


@dataclass(frozen=True)
class MaxNorm:
    """w ‖y‖_∞; its prox is the rest of a projection onto the 1-norm ball (Moreau)."""

    weight: float

    def value(self, y: Array) -> float:
        """h(y)."""
        return self.weight * float(np.max(np.abs(y), initial=0.0))

    def prox(self, y: Array, t: float) -> Array:
        """The largest entries are cut to a common level."""
        outside = project_l1_ball(y, t * self.weight)
        if np.abs(y).sum() <= t * self.weight:
            return np.zeros_like(y)
        # Cutting, rather than y − projection, leaves untouched entries exact.
        changed = outside != 0.0
        level = float(np.min(np.abs(y - outside)[changed], initial=np.inf))
        return np.clip(y, -level, level)


@dataclass(frozen=True)
class NuclearNorm:
    """w · (sum of the singular values of y as a matrix in Fortran order)."""

    weight: float
    shape: tuple[int, int]

    def value(self, y: Array) -> float:
        """h(y)."""
        matrix = y.reshape(self.shape, order="F")
        return self.weight * float(np.linalg.svd(matrix, compute_uv=False).sum())

    def prox(self, y: Array, t: float) -> Array:
        """Soft threshold of the singular values."""
        U, sizes, Vt = np.linalg.svd(y.reshape(self.shape, order="F"), full_matrices=False)
        kept = np.maximum(sizes - t * self.weight, 0.0)
        return np.asarray(((U * kept) @ Vt).reshape(-1, order="F"))

    def subgradient(self, y: Array, near: Array) -> tuple[Array, float]:
        """A subgradient at y close to ``near``, and h(y) − u'y bounded without cancellation.

        U₁V₁' for the large singular values; on the rest, where y is small, ``near`` cut to norm 1.
        """
        U, sizes, Vt = np.linalg.svd(y.reshape(self.shape, order="F"))
        target = near.reshape(self.shape, order="F")
        u, slack = target, np.inf
        for share in (NEAR, 1e-3, 1e-1):
            large = int(np.sum(sizes > share * np.max(sizes, initial=0.0)))
            U2, V2, rest = U[:, large:], Vt[large:], sizes[large:]
            left, lengths, right = np.linalg.svd(U2.T @ target @ V2.T, full_matrices=False)
            inner = (left * np.minimum(lengths, self.weight)) @ right
            u = self.weight * (U[:, :large] @ Vt[:large]) + U2 @ inner @ V2
            gaps = self.weight - np.diagonal(inner)[: len(rest)]
            rounding = 32.0 * ROUNDING * self.weight * float(rest.sum())
            slack = float(np.maximum(gaps, 0.0) @ rest) + rounding
            if np.linalg.norm(u - target) <= NEAR * self.weight:
                break
        return u.reshape(-1, order="F"), slack


@dataclass(frozen=True)
class TotalVariation:
    """w Σ |y_{i+1} − y_i|, a seminorm; prox by the taut string, O(k) on typical input."""

    weight: float

    def value(self, y: Array) -> float:
        """h(y)."""
        return self.weight * float(np.abs(np.diff(y)).sum())

    def prox(self, y: Array, t: float) -> Array:
        """Taut string through the tube of half-width t w around the running sums of y."""
        return _taut_string(y, t * self.weight)


def _taut_string(y: Array, level: float) -> Array:
    """Condat's direct algorithm (2013) for argmin_x ½‖x − y‖² + level Σ|x_{i+1} − x_i|."""
    n = len(y)
    x = np.empty(n)
    if n == 0:
        return x
    values = y.tolist()
    k = k0 = kminus = kplus = 0
    vmin, vmax = values[0] - level, values[0] + level
    umin, umax = level, -level
    while True:
        if k == n - 1:
            if umin < 0.0:
                x[k0 : kminus + 1] = vmin
                k = k0 = kminus = kminus + 1
                vmin, umin = values[k], level
                umax = vmin + level - vmax
            elif umax > 0.0:
                x[k0 : kplus + 1] = vmax
                k = k0 = kplus = kplus + 1
                vmax, umax = values[k], -level
                umin = vmax - level - vmin
            else:
                x[k0:] = vmin + umin / (k - k0 + 1)
                return x
            continue
        following = values[k + 1]
        if following + umin < vmin - level:
            x[k0 : kminus + 1] = vmin
            k = k0 = kminus = kplus = kminus + 1
            vmin, vmax = values[k], values[k] + 2 * level
            umin, umax = level, -level
        elif following + umax > vmax + level:
            x[k0 : kplus + 1] = vmax
            k = k0 = kminus = kplus = kplus + 1
            vmin, vmax = values[k] - 2 * level, values[k]
            umin, umax = level, -level
        else:
            k += 1
            umin += following - vmin
            umax += following - vmax
            if umin >= level:
                vmin += (umin - level) / (k - k0 + 1)
                umin, kminus = level, k
            if umax <= -level:
                vmax += (umax + level) / (k - k0 + 1)
                umax, kplus = -level, k


@dataclass(frozen=True, eq=False)
class Placed:
    """h(scale · θ[index] + shift), one norm on some coordinates of θ."""

    norm: Norm
    index: npt.NDArray[np.intp]
    scale: float
    shift: Array

    def value(self, theta: Array) -> float:
        """h at θ."""
        return self.norm.value(self.scale * theta[self.index] + self.shift)

    def prox(self, theta: Array, t: float) -> Array:
        """prox of t h(scale · + shift) on the coordinates ``index`` of θ."""
        moved = self.norm.prox(self.scale * theta[self.index] + self.shift, t * self.scale**2)
        return (moved - self.shift) / self.scale
