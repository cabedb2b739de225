"""Sets that share coordinates become one set with a projection; empty ones are refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from cvxqop.errors import ProblemError
from cvxqop.solve.rest.intersection import Intersection, Placement
from cvxqop.solve.rest.polyhedron import Polyhedron
from cvxqop.solve.rest.projections import AffineSet, Ball, BallInBox, Box, ConvexSet, Slab

__all__ = ["EMPTY", "Groups"]

Array = npt.NDArray[np.float64]
Index = npt.NDArray[np.intp]

EMPTY = "constraints: no point satisfies {}; relax it"


@dataclass(frozen=True, eq=False)
class Groups:
    """Groups sets and rows by the coordinates that they share, within the box of θ."""

    lower: Array
    upper: Array

    def of(
        self, sets: Sequence[Placement], rows: Sequence[tuple[Any, Array, Array]]
    ) -> tuple[Placement, ...]:
        """Sets on disjoint coordinates that include the box there.

        Parameters
        ----------
        sets : sequence of Placement
            Each with a projection of its own.
        rows : sequence of (A, low, high)
            low ≤ Aθ ≤ high, A a sparse matrix.

        Raises
        ------
        ProblemError
            If a group is visibly empty.
        """
        sets = list(sets)
        if rows:
            A = sp.csr_array(sp.vstack([A for A, _, _ in rows]))
            low = np.concatenate([ends for _, ends, _ in rows])
            high = np.concatenate([ends for _, _, ends in rows])
            supports = [A.indices[A.indptr[k] : A.indptr[k + 1]] for k in range(len(low))]
            sets += [self._polyhedral(A[k], low[k], high[k]) for k in _clusters(supports)]
        placed = []
        for members in _clusters([s.index for s in sets]):
            group = [sets[k] for k in members]
            index = np.unique(np.concatenate([s.index for s in group]))
            bounded = np.isfinite(self.lower[index]) | np.isfinite(self.upper[index])
            simple = len(group) == 1 and (
                not np.any(bounded) or isinstance(group[0].inner, (Slab, Polyhedron))
            )
            placed.append(group[0] if simple else self._intersection(group, index))
        for s in placed:
            self._check_nonempty(s)
        return tuple(placed)

    def _polyhedral(self, A: Any, low: Array, high: Array) -> Placement:
        index = np.unique(A.indices).astype(np.intp)
        A = sp.csr_array(A[:, index])
        lower, upper = self.lower[index], self.upper[index]
        bounded = np.isfinite(lower) | np.isfinite(upper)
        inner: ConvexSet
        if A.shape[0] == 1:
            a = A.toarray()[0]
            least = float(np.sum(np.minimum(a * lower, a * upper)))
            most = float(np.sum(np.maximum(a * lower, a * upper)))
            rounding = 1e-12 * float(np.sum(np.abs(a))) + 1e-300
            if low[0] > high[0] or least > high[0] + rounding or most < low[0] - rounding:
                raise ProblemError(EMPTY.format("a linear constraint within the bounds"))
            inner = Slab(a, float(low[0]), float(high[0]), lower, upper)
        elif np.array_equal(low, high) and not np.any(bounded):
            inner = affine = AffineSet(A.toarray(), low)
            if not affine.consistent:
                raise ProblemError(EMPTY.format("the linear equalities together"))
        else:
            rows = sp.vstack([A, sp.eye_array(len(index), format="csr")[bounded]], format="csr")
            inner = Polyhedron(
                rows, np.concatenate([low, lower[bounded]]), np.concatenate([high, upper[bounded]])
            )
        return Placement(inner, index)

    def _intersection(self, group: list[Placement], index: Index) -> Placement:
        only = group[0]
        if len(group) == 1 and isinstance(only.inner, Ball):
            ball, low, high = only.inner, self.lower[only.index], self.upper[only.index]
            nearest = np.clip(ball.centre, low, high)
            if np.linalg.norm(nearest - ball.centre) > ball.radius:
                raise ProblemError(EMPTY.format("a ball within the bounds"))
            return Placement(BallInBox(ball.centre, ball.radius, low, high), only.index)
        position = np.full(len(self.lower), -1, dtype=np.intp)
        position[index] = np.arange(len(index))
        local = [Placement(s.inner, position[s.index], s.scale, s.shift) for s in group]
        lower, upper = self.lower[index], self.upper[index]
        if np.any(np.isfinite(lower) | np.isfinite(upper)):
            local.append(Placement(Box(lower, upper), np.arange(len(index))))
        return Placement(Intersection(local, len(index)), index)

    def _check_nonempty(self, placed: Placement) -> None:
        if isinstance(placed.inner, Intersection):
            size = len(placed.index)
            found = placed.project(np.zeros(size))
            if found.violation > 1e-6 * (1.0 + float(np.linalg.norm(found.point))):
                raise ProblemError(EMPTY.format("the constraints together"))


def _clusters(supports: list[Any]) -> list[list[int]]:
    """Numbers of the supports, grouped so that different groups share no coordinate."""
    groups: list[tuple[set[int], list[int]]] = []
    for k, support in enumerate(supports):
        merged, members = set(np.asarray(support).tolist()), [k]
        rest = []
        for coordinates, numbers in groups:
            if coordinates & merged:
                merged |= coordinates
                members = [*numbers, *members]
            else:
                rest.append((coordinates, numbers))
        groups = [*rest, (merged, sorted(members))]
    return [numbers for _, numbers in groups]
