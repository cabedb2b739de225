"""Sets placed on coordinates of θ, and the intersection of several, by Dykstra's algorithm."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cvxqop.solve.rest.projections import Ball, ConvexSet, Projection

__all__ = ["Intersection", "Placement"]

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Placement:
    """The set {θ : scale · θ[index] + shift ∈ C}, seen on the coordinates ``index``."""

    inner: ConvexSet
    index: npt.NDArray[np.intp]
    scale: float = 1.0
    shift: Array | float = 0.0

    def ball_centre(self) -> Array | None:
        """Centre of the set if it is a 2-ball, in the order of ``index``."""
        return self.inner.centre if isinstance(self.inner, Ball) else None

    def project(self, y: Array) -> Projection:
        """Projection of θ[index]; a uniform scale keeps distances proportional."""
        found = self.inner.project(self.scale * y + self.shift)
        if self.scale == 1.0 and not np.any(self.shift):
            return found
        return Projection(
            (found.point - self.shift) / self.scale,
            found.normal / self.scale,
            found.slack / self.scale**2,
            found.violation / abs(self.scale),
        )


class Intersection:
    """Several sets on the same coordinates, by Dykstra's algorithm in the product space.

    The normal is the sum of one normal per set, n_k normal to C_k at y_k, and
    Σ_k n_k'(y_k − z) bounds its support function against the returned point z. Each call starts
    from the normals of the last one: Dykstra's is ascent on the dual, from wherever it starts.
    """

    def __init__(self, sets: list[Placement], dimension: int) -> None:
        self._sets, self._d = sets, dimension
        self._normals = [np.zeros(len(s.index)) for s in sets]

    def project(self, y: Array, *, sweeps: int = 500, tolerance: float = 1e-14) -> Projection:
        """Cycle through the sets until a sweep moves nothing."""
        normals = self._normals
        z = y.copy()
        for s, n in zip(self._sets, normals, strict=True):
            z[s.index] -= n
        points = [z[s.index] for s in self._sets]
        slack = 0.0
        limit = tolerance * (1.0 + float(np.linalg.norm(y)))
        for _ in range(sweeps):
            slack = change = 0.0
            for k, s in enumerate(self._sets):
                before = z[s.index]
                found = s.project(before + normals[k])
                change = max(change, float(np.abs(found.normal - normals[k]).max(initial=0.0)))
                change = max(change, float(np.abs(found.point - before).max(initial=0.0)))
                normals[k] = found.normal
                points[k] = z[s.index] = found.point
                slack += found.slack
            if change <= limit:
                break
        normal = np.zeros(self._d)
        violation = 0.0
        for s, n, point in zip(self._sets, normals, points, strict=True):
            normal[s.index] += n
            slack += max(0.0, float(n @ (point - z[s.index])))
            violation = max(violation, float(np.linalg.norm(point - z[s.index])))
        return Projection(z, normal, slack, violation)
