"""Products of cones in the order and scaling of Clarabel: projections, distances, radii.

A vector s is cut into blocks: rows of a zero or a nonnegative cone are one block each, every other
cone is one. Symmetric matrices are stacked by columns of their upper triangle, entries off the
diagonal times √2. Distances are upper bounds and radii lower bounds, rounding included, in whatever
precision ``numpy.longdouble`` has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from cvxqop.solve.cones import exponential_cone as exponential
from cvxqop.solve.cones.exponential_cone import LONG_EPS
from cvxqop.solve.cones.projections import PROJECTIONS, matrix, negative_part, vector

__all__ = ["Cone", "Cones"]

Array = npt.NDArray[np.float64]
Vector = npt.NDArray[Any]

EPS = float(np.finfo(np.float64).eps)
SLACK = 1.0 + 1e-12


@dataclass(frozen=True)
class Cone:
    """One cone on the entries ``rows``.

    Attributes
    ----------
    kind : {"zero", "nonneg", "soc", "psd", "exp", "pow"}
    rows : slice
        Its entries of s.
    parameter : float
        Side of the matrices of "psd", α of "pow" (x^α y^(1−α) ≥ |z|), else 0.
    """

    kind: str
    rows: slice
    parameter: float = 0.0

    @property
    def side(self) -> int:
        """Side of the matrices of a "psd" cone."""
        return int(self.parameter)


@dataclass(frozen=True)
class Cones:
    """K, a product of cones, and its dual K*."""

    parts: tuple[Cone, ...]

    @classmethod
    def of(
        cls,
        zero: int,
        nonneg: int,
        soc: Sequence[int] = (),
        psd: Sequence[int] = (),
        exp: int = 0,
        power: Sequence[float] = (),
    ) -> Cones:
        """Cones of these sizes, in this order."""
        parts: list[Cone] = []
        start = 0

        def add(kind: str, size: int, parameter: float = 0.0) -> None:
            nonlocal start
            if size:
                parts.append(Cone(kind, slice(start, start + size), parameter))
            start += size

        add("zero", zero)
        add("nonneg", nonneg)
        for size in soc:
            add("soc", size)
        for side in psd:
            add("psd", side * (side + 1) // 2, side)
        for _ in range(exp):
            add("exp", 3)
        for alpha in power:
            add("pow", 3, alpha)
        return cls(tuple(parts))

    @cached_property
    def size(self) -> int:
        """Length of s."""
        return self.parts[-1].rows.stop if self.parts else 0

    @cached_property
    def zero(self) -> npt.NDArray[np.bool_]:
        """Which entries are rows of the zero cone."""
        found = np.zeros(self.size, dtype=bool)
        for cone in self.parts:
            found[cone.rows] = cone.kind == "zero"
        return found

    @cached_property
    def block(self) -> npt.NDArray[np.intp]:
        """The block of each entry."""
        found, count = np.zeros(self.size, dtype=np.intp), 0
        for cone in self.parts:
            size = cone.rows.stop - cone.rows.start
            single = cone.kind in ("zero", "nonneg")
            found[cone.rows] = count + (np.arange(size) if single else 0)
            count += size if single else 1
        return found

    @property
    def blocks(self) -> int:
        """How many blocks there are."""
        return int(self.block[-1]) + 1 if self.size else 0

    @cached_property
    def centre(self) -> Array:
        """A vector inside of K and of K*; 0 on rows of the zero cone."""
        found = np.zeros(self.size)
        for cone in self.parts:
            if cone.kind == "nonneg":
                found[cone.rows] = 1.0
            elif cone.kind == "soc":
                found[cone.rows.start] = 1.0
            elif cone.kind == "psd":
                found[cone.rows] = vector(np.eye(cone.side))
            elif cone.kind == "exp":
                found[cone.rows] = exponential.CENTRE
            elif cone.kind == "pow":
                found[cone.rows] = [1.0, 1.0, 0.0]
        return found

    @property
    def smooth(self) -> bool:
        """Whether every projection is known here."""
        return all(cone.kind != "pow" for cone in self.parts)

    def norms(self, s: Vector) -> Array:
        """‖s_j‖₂ of each block."""
        squares = np.asarray(s, dtype=np.float64) ** 2
        return np.asarray(np.sqrt(np.bincount(self.block, squares, minlength=self.blocks)))

    def project(
        self, w: Vector, guess: tuple[Vector, Vector] | None = None
    ) -> tuple[Vector, Array]:
        """Π_K(w) and one element of its generalised Jacobian, (m, m).

        ``guess`` holds s and y near the decomposition w = s − y, for the exponential cones.
        """
        out, J = np.zeros_like(w), np.zeros((len(w), len(w)))
        for cone in self.parts:
            at = cone.rows
            if cone.kind in ("nonneg", "soc", "psd"):
                out[at], J[at, at] = PROJECTIONS[cone.kind](w[at])
        rows = [range(c.rows.start, c.rows.stop) for c in self.parts if c.kind == "exp"]
        if rows:
            index = np.array(rows)
            near = None if guess is None else (guess[0][index], guess[1][index])
            out[index], blocks = exponential.project(w[index], near)
            for k, own in enumerate(index):
                J[np.ix_(own, own)] = blocks[k]
        return out, J

    def outside(self, s: Vector, *, dual: bool = False) -> Array:
        """For each block an upper bound on the distance of s from K (from K* if ``dual``)."""
        found = np.zeros(self.blocks)
        for cone in self.parts:
            v, k = s[cone.rows], self.block[cone.rows.start]
            if cone.kind == "nonneg":
                found[self.block[cone.rows]] = np.maximum(-v, 0.0).astype(np.float64)
            elif cone.kind == "soc":
                length = np.sqrt((v[1:] ** 2).sum()) * (1.0 + (len(v) + 4) * LONG_EPS)
                found[k] = float(max(length - v[0], 0.0))
            elif cone.kind == "psd":
                found[k] = negative_part(v, cone.side)
            elif cone.kind == "exp":
                found[k] = exponential.outside(v, dual)
            elif cone.kind == "pow":
                found[k] = _outside_power(v, cone.parameter, dual)
        return found * SLACK

    def radii(self, s: Vector, *, dual: bool = False) -> Array:
        """For each block a lower bound on the radius of the ball around s that lies in K (in K*).

        Infinite for rows of the zero cone, of which K* is the whole line; their K is a point, which
        `outside` leaves to the equations.
        """
        found = np.full(self.blocks, np.inf)
        s = np.asarray(s, dtype=np.float64)
        for cone in self.parts:
            v, k = s[cone.rows], self.block[cone.rows.start]
            rounding = 16.0 * EPS * len(v) * float(np.linalg.norm(v))
            if cone.kind == "nonneg":
                found[self.block[cone.rows]] = v
            elif cone.kind == "soc":
                found[k] = (v[0] - np.linalg.norm(v[1:])) / np.sqrt(2.0) - rounding
            elif cone.kind == "psd":
                found[k] = float(np.linalg.eigvalsh(matrix(v, cone.side))[0]) - rounding
            elif cone.kind == "exp":
                found[k] = exponential.radius(v, dual)
            elif cone.kind == "pow":
                found[k] = _radius_power(v, cone.parameter, dual)
        return found / SLACK


def _power(v: Vector, alpha: float, dual: bool) -> tuple[Vector, Any]:
    """(x, y) of a power cone with x and y not below 0, and the largest |z| there, rounded down."""
    x, y = (np.maximum(entry, 0.0) for entry in v[:2])
    scale = (alpha, 1.0 - alpha) if dual else (1.0, 1.0)
    most = (x / scale[0]) ** alpha * (y / scale[1]) ** (1.0 - alpha)
    return np.array([x, y]), most * (1.0 - 64.0 * LONG_EPS)


def _outside_power(v: Vector, alpha: float, dual: bool) -> float:
    pair, most = _power(v, alpha, dual)
    missing = np.maximum(np.abs(v[2]) - most, 0.0)
    return float(np.sqrt(((pair - v[:2]) ** 2).sum() + missing**2))


def _radius_power(v: Array, alpha: float, dual: bool) -> float:
    """A ball of radius ρ is inside if the corner (x − ρ, y − ρ, |z| + ρ) is."""
    low, high = 0.0, float(max(min(v[0], v[1]), 0.0))
    for _ in range(60):
        middle = 0.5 * (low + high)
        inside = _power(v - middle, alpha, dual)[1] * (1.0 - 1e-12) >= abs(v[2]) + middle
        low, high = (middle, high) if inside else (low, middle)
    return low
