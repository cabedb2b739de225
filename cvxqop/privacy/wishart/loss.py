"""Privacy losses of one record under the Wishart ensemble, and expectations over them.

The functions Z(h) and their parameters are those of :mod:`cvxqop.privacy.wishart.ensemble`; here
they are evaluated for many (c, ν) at once, by rules with a given number of nodes (Theorems 3 to 5).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from cvxqop.privacy.accounting.profile import gaussian_profile
from cvxqop.privacy.accounting.quadrature import chi_mean

__all__ = ["Direction", "Loss", "one_sided", "replace_quadratic"]

Array = npt.NDArray[np.float64]
Direction = Literal["add", "remove"]


@dataclass(frozen=True)
class Loss:
    """Z(h) of one direction for arrays of c and ν (one integral each)."""

    direction: Direction
    quadratic: bool
    c: Array
    nu: Array
    positive: bool
    """Use max(0, Z): the loss of a record that shares its ε with another (replace_one), or whose
    size varies with θ (j = 1)."""

    @property
    def k(self) -> Array:
        return 0.5 * self.nu - 1.0

    @property
    def exponent(self) -> Array:
        return self.k if self.quadratic else self.k + 1.0

    def __call__(self, y: Array) -> Array:
        """Z at y = √h, shape (P, N) for P integrals."""
        c, k, exponent = self.c[:, None], self.k[:, None], self.exponent[:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = c / np.maximum(y * y, 1e-300)
            if self.direction == "add":
                z = np.where(ratio < 1.0, -exponent * np.log1p(-ratio) - 0.5 * c, np.inf)
            else:
                growth = np.log1p(ratio)
                z = 0.5 * c - k * growth
                z = z if self.quadratic else np.maximum(growth, z)
        return np.maximum(z, 0.0) if self.positive else np.asarray(z)

    def kinks(self, epsilon: Array, mu: Array) -> Array:
        """Points y at which δ_G(ε − Z; μ) changes its manner, shape (P, K); ∞ where there is none.

        Kinks of Z, the boundary layers of width μ/|Z'| around Z = ε, and a geometric sequence
        towards the singularity of ADD at h = c.
        """
        c, k = self.c, self.k
        zero = np.zeros_like(epsilon)
        if self.direction == "add":
            start = np.sqrt(c)
            points = [start * step for step in (1.0, 1.003, 1.03, 1.2, 1.6, 2.5, 4.0, 8.0, 16.0)]
            points += self._layer(self._add_level(epsilon), mu)
            points += [self._add_level(zero)] if self.positive else []
        else:
            points = self._layer(self._remove_level(epsilon), mu)
            if not self.quadratic:
                points += [_root(c / np.expm1(0.5 * c / (k + 1.0)))]
                points += self._layer(_root(c / np.expm1(np.clip(epsilon, 1e-300, 700.0))), mu)
            elif self.positive:
                points += [self._remove_level(zero)]
        return np.stack(points, axis=1)

    def _layer(self, y: Array, mu: Array) -> list[Array]:
        """y with Z(y) = ε, and the edges of the layer in which δ_G(ε − Z; μ) leaves its limits."""
        h = np.minimum(y * y, 1e150)
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            gap = h - self.c if self.direction == "add" else h + self.c
            slope = 2.0 * self.c * np.minimum(self.exponent, 1.0 + self.k) / (y * np.abs(gap))
            width = mu / slope
        thin = np.isfinite(y) & (width > 0.0) & (width < 0.5)
        width = np.where(thin, width, 0.0)
        steps = (-8.0, -2.5, 2.5, 8.0)
        return [y, *(np.where(thin, np.maximum(y + step * width, 0.0), np.inf) for step in steps)]

    def _add_level(self, level: Array) -> Array:
        gap = (level + 0.5 * self.c) / self.exponent
        return np.where(gap > 0.0, _root(self.c / -np.expm1(-np.maximum(gap, 1e-300))), np.inf)

    def _remove_level(self, level: Array) -> Array:
        gap = (0.5 * self.c - level) / self.k
        return np.where(gap > 0.0, _root(self.c / np.expm1(np.clip(gap, 1e-300, 700.0))), np.inf)


def _root(h: Array) -> Array:
    return np.sqrt(np.minimum(h, 1e300))


def one_sided(loss: Loss, epsilon: Array, mu: Array, nodes: int) -> Array:
    """E[δ_G(ε − Z(h); μ)] for P losses."""

    def weight(y: Array) -> Array:
        return gaussian_profile(epsilon[:, None] - loss(y), mu[:, None])

    return chi_mean(weight, loss.nu, loss.kinks(epsilon, mu), nodes)


def replace_quadratic(epsilon: Array, c: Array, nu: Array, mu: Array, nodes: int) -> Array:
    """E[δ_G(ε − max(0, Z_rem(B)) − max(0, Z_add(h)); μ)], B ~ χ²_{ν+1} and h ~ χ²_ν independent."""
    removed = Loss("remove", True, c, nu, positive=True)

    def weight(y: Array, nodes: int) -> Array:
        left = (epsilon[:, None] - removed(y)).ravel()
        added = Loss("add", True, np.repeat(c, y.shape[1]), np.repeat(nu, y.shape[1]), True)
        inner = one_sided(added, left, np.repeat(mu, y.shape[1]), nodes)
        return np.asarray(inner.reshape(y.shape))

    return chi_mean(
        lambda y: weight(y, nodes),
        nu + 1.0,
        removed.kinks(epsilon, mu),
        nodes,
        scan=lambda y: weight(y, 5),
    )
