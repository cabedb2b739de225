"""The public rest g + ι_C of the problem as proximal operators and projections."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from cvxqop.solve.rest.intersection import Placement
from cvxqop.solve.rest.penalties import NEAR, GroupNorm, NuclearNorm, Placed, soft
from cvxqop.solve.rest.projections import Projection

__all__ = ["Candidate", "Rest"]

Array = npt.NDArray[np.float64]

ROUNDING = float(np.finfo(np.float64).eps)


class Candidate(NamedTuple):
    """A feasible point with an ε-subgradient of G = g + ι_C there.

    G(c) ≥ G(point) + subgradient'(c − point) − slack for every c. ``error`` bounds the rounding of
    the subgradient in the 2-norm, ``violation`` how far the point may lie outside of C. Where the
    subgradient holds for a point of C within ``offset`` of this one, slack and error have their
    share of that already.
    """

    point: Array
    subgradient: Array
    slack: float = 0.0
    violation: float = 0.0
    error: float = 0.0
    offset: float = 0.0


@dataclass(frozen=True, eq=False)
class Rest:
    """r(θ) = ½ θ'Qθ + q'θ + g(θ) over θ in C, split into parts.

    Parameters
    ----------
    dimension : int
        D.
    Q : (D, D) array or None
        Curvature of the quadratic terms, which belong to the smooth part of the problem.
    q : (D,) array
        Linear terms.
    weights, kinks : (D,) arrays
        g has the summands weights_i |θ_i − kinks_i|.
    norms : tuple of Placed
        Further norms in g, on disjoint coordinates.
    lower, upper : (D,) arrays
        A box that contains C.
    sets : tuple of Placement
        C is the box and these, which touch disjoint coordinates and include the box there.
    fused : bool
        Whether prox of g + ι_C is (projection ∘ norm's prox ∘ soft threshold ∘ clip).
    """

    dimension: int
    Q: Array | None
    q: Array
    weights: Array
    kinks: Array
    norms: tuple[Placed, ...] = ()
    lower: Array = field(default_factory=lambda: np.zeros(0))
    upper: Array = field(default_factory=lambda: np.zeros(0))
    sets: tuple[Placement, ...] = ()
    fused: bool = True

    @property
    def separable(self) -> bool:
        """Whether g + ι_C is weighted absolute values on a box."""
        return not self.norms and not self.sets

    def value(self, theta: Array) -> float:
        """g(θ), without the quadratic and linear terms."""
        total = float(self.weights @ np.abs(theta - self.kinks))
        return total + sum(norm.value(theta) for norm in self.norms)

    def prox_penalty(self, x: Array, t: float) -> tuple[Array, Array]:
        """θ = prox_{t g}(x) and u = (x − θ)/t in ∂g(θ)."""
        theta = self.kinks + soft(x - self.kinks, t * self.weights)
        # Clipping keeps u a subgradient to the last bit where g is an absolute value.
        u = np.clip((x - theta) / t, -self.weights, self.weights)
        for norm in self.norms:
            moved = norm.prox(theta, t)
            theta[norm.index] = moved
            u[norm.index] = (x[norm.index] - moved) / t
        return theta, u

    def project(self, y: Array) -> Projection:
        """Projection onto C, with a normal vector."""
        z = np.clip(y, self.lower, self.upper)
        normal = y - z
        slack = violation = 0.0
        for s in self.sets:
            found = s.project(y[s.index])
            z[s.index], normal[s.index] = found.point, found.normal
            slack += found.slack
            violation = float(np.hypot(violation, found.violation))
        return Projection(z, normal, slack, violation)

    def candidate(self, x: Array, t: Array | float) -> Candidate:
        """prox_{t (g + ι_C)}(x) with its subgradient (x − prox)/t; needs ``fused``.

        One step length per coordinate is allowed where the rest is ``separable``.
        """
        y = self.kinks + soft(x - self.kinks, t * self.weights)
        np.clip(y, self.lower, self.upper, out=y)
        for norm in self.norms:
            y[norm.index] = norm.prox(y, float(t))
        if not self.sets:
            return Candidate(y, (x - y) / t, error=self._rounding(x) / float(np.min(t)))
        z, moved = y.copy(), x - y
        slack = violation = 0.0
        for s in self.sets:
            # A set that is not touched by g wants the point before the clip, not after it.
            found = s.project((x if s.ball_centre() is None else y)[s.index])
            z[s.index] = found.point
            if s.ball_centre() is None:
                moved[s.index] = found.normal
            else:
                moved[s.index] += found.normal
            slack += found.slack
            violation = float(np.hypot(violation, found.violation))
        error = self._rounding(x) / float(t)
        return Candidate(z, moved / t, float(slack / t), violation, error)

    def _rounding(self, *vectors: Array) -> float:
        """Rounding of prox and projection: a few units each, more where matrices are factored."""
        units = 4.0 if self.separable else 16.0 + 2.0 * np.sqrt(self.dimension)
        return ROUNDING * units * sum(math.sqrt(float(v @ v)) for v in vectors)

    def nearest_subgradient(self, z: Array, target: Array) -> Array:
        """The subgradient of g + ι_C at z nearest to ``target``, exactly; needs ``separable``."""
        side = np.sign(z - self.kinks)
        low = np.where(side == 0.0, -self.weights, side * self.weights)
        high = np.where(side == 0.0, self.weights, side * self.weights)
        low = np.where(z <= self.lower, -np.inf, low)
        high = np.where(z >= self.upper, np.inf, high)
        return np.clip(target, low, high)

    def split_candidate(self, u_g: Array, projection: Projection, t: float) -> Candidate:
        """ε-subgradient at z = P_C(y) from u_g ∈ ∂g anywhere and the normal (y − z)/t."""
        z = projection.point
        u_g, slack = self.bregman(z, u_g)
        slack += projection.slack / t
        normal = projection.normal / t
        error = self._rounding(z / t, u_g, normal)
        return Candidate(z, u_g + normal, slack, projection.violation, error)

    def transferred(self, found: Candidate, z: Array) -> Candidate:
        """The subgradient of a candidate as an ε-subgradient at another point z of C."""
        w, u = found.point, found.subgradient
        if not self.separable:
            own, moved = self.value(z) + self.value(w), np.abs(u) @ np.abs(z - w)
            slack = max(0.0, self.value(z) - self.value(w) - float(u @ (z - w)))
            slack += ROUNDING * (self.dimension + 8) * (own + float(moved))
            return Candidate(z, u, found.slack + slack, found.violation, found.error)
        u_g = np.clip(u, -self.weights, self.weights)
        # What exceeds the weights is normal to the box, up to rounding where there is no bound.
        normal = u - u_g
        bound = np.where(normal > 0.0, self.upper, self.lower)
        normal = np.where(np.isfinite(bound), normal, 0.0)
        room = np.where(normal != 0.0, bound - z, 0.0)
        u_g, slack = self.bregman(z, u_g)
        return Candidate(z, u_g + normal, slack + float(normal @ room))

    def bregman(self, z: Array, u: Array) -> tuple[Array, float]:
        """u, and a bound on max_c [g(z) − g(c) − u'(z − c)], for u a subgradient of g somewhere.

        Norms are positively homogeneous, so the maximum is g(z) − u'(z − centre). Where u is as
        good as the subgradient of a group norm at z itself, that one is returned: its slack is 0,
        while the difference of two equal sums would leave their rounding.
        """
        u = u.copy()
        centred = z - self.kinks
        # No digits cancel: |u| ≤ weights, and both factors are exact to one rounding.
        gaps = (self.weights - u * np.sign(centred)) * np.abs(centred)
        total = 0.0
        for norm in self.norms:
            index, centre = norm.index, -norm.shift / norm.scale
            gaps[index] = 0.0
            y = norm.scale * z[index] + norm.shift
            if isinstance(norm.norm, GroupNorm):
                u[index], missing = self._group(norm.norm, norm.scale, y, index, centred, u[index])
                total += missing
                continue
            if isinstance(norm.norm, NuclearNorm):
                exact, missing = norm.norm.subgradient(y, u[index] / norm.scale)
                exact = norm.scale * exact
                if np.linalg.norm(exact - u[index]) <= 1e-5 * np.linalg.norm(exact):
                    u[index] = exact
                    total += missing
                    continue
            own = norm.value(z) + float(self.weights[index] @ np.abs(centred[index]))
            terms = u[index] * (z[index] - centre)
            sides = 8.0 + np.sqrt(len(index))
            rounding = ROUNDING * sides * (own + float(np.abs(terms).sum()))
            total += max(own - math.fsum(terms), 0.0) + rounding
        return u, total + float(np.sum(np.maximum(gaps, 0.0)))

    def _group(
        self, norm: GroupNorm, scale: float, y: Array, index: Any, centred: Array, u: Array
    ) -> tuple[Array, float]:
        """A subgradient near u of a group norm plus absolute values, and its slack."""
        c, w = centred[index], self.weights[index]
        unit = scale * norm.gradient(y)
        beside = np.clip(u - unit, -w, w)
        close = norm.norms(unit + beside - u) <= NEAR * abs(scale) * norm.weights
        close &= norm.norms(y) > 0.0
        part = np.where(np.repeat(close, norm.lengths), beside, np.clip(u, -w, w))
        main, slack = norm.subgradient(y, (u - part) / scale)
        slack += float(np.sum(np.maximum((w - part * np.sign(c)) * np.abs(c), 0.0)))
        return scale * main + part, slack
