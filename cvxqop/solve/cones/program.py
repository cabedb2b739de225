"""Feasible points and minorants of G from what a solver returns: exact, with a bound on the rest.

G(θ) = min {c'x : x = (θ, v), b − Ax ∈ K}. If y ∈ K* and A_v'y + c_v = 0, then for every θ

    G(θ) ≥ u'θ − b'y,    u = c_θ + A_θ'y,

and at a feasible x⁺ = (z, v) with s⁺ = b − Ax⁺ the vector u is an ε-subgradient of G at z with
ε = y's⁺: c'x⁺ ≥ G(z) is all that is used of v, and no value of r is needed (theory, conic engine).

A solver's x and y miss all of this by a little. Equations are met by a least-norm correction, cones
by moving towards a public centre that is strictly inside: if each block of s is within ω_j of K_j,
and a ball of radius R_j around the block of the centre's s̄ lies in K_j, then (x + τx̄)/(1 + τ) with
τ = max ω_j/R_j is feasible. What remains of the equations, η, is divided by the least singular
value σ of their matrix, and enters every bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.linalg as sla
import scipy.sparse as sp

from cvxqop.errors import OptionError
from cvxqop.solve.cones.centres import dual_centre, primal_centre
from cvxqop.solve.cones.cones import Cones
from cvxqop.solve.cones.exponential_cone import LONG_EPS
from cvxqop.solve.cones.standard_form import StandardForm
from cvxqop.solve.smooth.quadratic import EPS

__all__ = ["Feasible", "Minorant", "Program"]

Array = npt.NDArray[np.float64]
Vector = npt.NDArray[Any]

LONG = np.longdouble
IDLE = 1e-13


@dataclass(frozen=True, eq=False)
class Feasible:
    """A point near one that is exactly feasible.

    Attributes
    ----------
    x, s : (N,) and (m,) arrays in extended precision
        s = b − Ax, 0 on equations.
    offset : float
        Bound on the distance of x from an exactly feasible x⁺.
    rounding : float
        Bound on ‖s − s⁺‖₂, s⁺ = b − Ax⁺.
    """

    x: Vector
    s: Vector
    offset: float
    rounding: float


@dataclass(frozen=True, eq=False)
class Minorant:
    """u with bounds on its error and on ε, at a feasible point."""

    u: Array
    error: float
    slack: float


class _Equations:
    """B'w = r with B of full column rank: least-norm corrections of w, and σ_min(B) from below."""

    def __init__(self, B: Array) -> None:
        self._Q, self._R = np.linalg.qr(B)
        size = float(np.linalg.norm(B))
        least = float(sla.svdvals(self._R).min(initial=np.inf)) if B.shape[1] else np.inf
        self.sigma = least - 64.0 * EPS * max(B.shape, default=1) * size
        self.empty = B.shape[1] == 0

    def correction(self, residual: Vector) -> Array:
        """The shortest Δ with B'Δ = −residual."""
        half = sla.solve_triangular(self._R, -residual.astype(np.float64), trans="T")
        return np.asarray(self._Q @ half)


@dataclass(frozen=True, eq=False)
class Program:
    """A standard form, with a centre of its points and one of its dual points; see `Program.of`."""

    form: StandardForm

    @classmethod
    def of(cls, form: StandardForm) -> Program:
        """The program of a form, without the inequalities that never have a multiplier.

        Raises
        ------
        OptionError
            There are no centres: nothing could then be repaired.
        """
        program = cls(form)
        idle = program._idle
        if np.any(idle):
            program = cls(form.without(idle))
        regular = program._rows.sigma > 0.0 and program._columns.sigma > 0.0
        primal, dual = program._primal_radii, program._dual_radii
        room = np.all(primal > 0.0) and np.all(dual > program.dual_centre[1])
        if not (regular and room):
            raise OptionError(
                "constraints: the set that the regulariser and the constraints describe has no "
                "interior, or the regulariser no interior subgradient, so that no answer can be "
                "certified. Write pairs of inequalities that leave no room as equalities."
            )
        return program

    @property
    def cones(self) -> Cones:
        """K."""
        return self.form.cones

    @property
    def dimension(self) -> int:
        """D."""
        return self.form.dimension

    @cached_property
    def A(self) -> Array:
        """A as a dense array."""
        return np.asarray(self.form.A.toarray())

    @cached_property
    def _long(self) -> tuple[Any, Any]:
        """A and A' for products in extended precision."""
        A = sp.csr_array(self.form.A).astype(LONG)
        return A, sp.csr_array(A.T)

    @cached_property
    def _sizes(self) -> tuple[Any, Any, Array, Array]:
        """|A|, |A|', and the rounding of a product for each row and column."""
        A = abs(sp.csr_array(self.form.A))
        rows = LONG_EPS * (np.diff(A.indptr) + 4.0)
        columns = LONG_EPS * (np.diff(sp.csc_array(A).indptr) + 4.0)
        return A, sp.csr_array(A.T), rows, columns

    @cached_property
    def _norm(self) -> float:
        """‖A‖₂ from above."""
        return float(np.linalg.norm(self.form.A.data))

    @cached_property
    def _rows(self) -> _Equations:
        """The equations among the rows, A_z x = b_z."""
        return _Equations(self.A[self.cones.zero].T)

    @cached_property
    def _columns(self) -> _Equations:
        """The equations of the dual, A_v'y = −c_v."""
        return _Equations(self.A[:, self.dimension :])

    def slack(self, x: Vector) -> Vector:
        """b − Ax in extended precision."""
        return np.asarray(self.form.b - self._long[0] @ x.astype(LONG))

    def pull(self, y: Vector) -> Vector:
        """c + A'y in extended precision."""
        return np.asarray(self.form.c + self._long[1] @ y.astype(LONG))

    def _row_rounding(self, x: Vector) -> Array:
        A, _, rows, _ = self._sizes
        return np.asarray(rows * (A @ np.abs(x).astype(np.float64) + np.abs(self.form.b)))

    def _column_rounding(self, y: Vector) -> Array:
        _, At, _, columns = self._sizes
        return np.asarray(columns * (At @ np.abs(y).astype(np.float64) + np.abs(self.form.c)))

    def _on_equations(self, x: Vector) -> tuple[Vector, float]:
        """x on the equations, and how far an exact solution may be from it."""
        x, zero = x.astype(LONG), self.cones.zero
        if self._rows.empty:
            return x, 0.0
        for _ in range(2):
            x = x + self._rows.correction(-self.slack(x)[zero])
        left = np.abs(self.slack(x)[zero]).astype(np.float64) + self._row_rounding(x)[zero]
        return x, 1.01 * float(np.linalg.norm(left)) / self._rows.sigma

    def _on_dual_equations(self, y: Vector) -> tuple[Vector, float]:
        """y with A_v'y = −c_v, and η."""
        y, v = y.astype(LONG), slice(self.dimension, None)
        if self._columns.empty:
            return y, 0.0
        for _ in range(2):
            y = y + self._columns.correction(self.pull(y)[v])
        left = np.abs(self.pull(y)[v]).astype(np.float64) + self._column_rounding(y)[v]
        return y, 1.01 * float(np.linalg.norm(left)) / self._columns.sigma

    @cached_property
    def centre(self) -> tuple[Vector, float]:
        """x̄ with b − Ax̄ farthest inside of K, up to one unit, and its distance to the equations."""
        return self._on_equations(primal_centre(self.form))

    @cached_property
    def dual_centre(self) -> tuple[Vector, float]:
        """ȳ with A_v'ȳ = −c_v farthest inside of K*, up to one unit, and η̄."""
        form, D = self.form, self.dimension
        if form.A.shape[1] == D:
            return form.weight * self.cones.centre.astype(LONG), 0.0
        nearest = self._columns.correction(form.c[D:] / form.weight)
        return self._on_dual_equations(dual_centre(form, nearest))

    @cached_property
    def _primal_radii(self) -> Array:
        x, offset = self.centre
        s = self.slack(x)
        missing = self.cones.norms(self._row_rounding(x)) + self._norm * offset
        radii = self.cones.radii(s) - missing - EPS * self.cones.norms(s)
        radii[self.cones.block[self.cones.zero]] = np.inf
        return np.asarray(radii)

    @cached_property
    def _dual_radii(self) -> Array:
        y, _ = self.dual_centre
        return self.cones.radii(y, dual=True) - EPS * self.cones.norms(y)

    @property
    def _idle(self) -> npt.NDArray[np.bool_]:
        """Inequalities whose multiplier is 0 in every dual point: G is the same without them."""
        found = np.zeros(self.cones.size, dtype=bool)
        radii = self._dual_radii[self.cones.block] / self.form.weight
        for cone in self.cones.parts:
            if cone.kind == "nonneg":
                found[cone.rows] = radii[cone.rows] < IDLE
        return found

    def feasible(self, x: Vector) -> Feasible | None:
        """The point of the program reached from x, None if x is too far from all of them."""
        x, offset = self._on_equations(x)
        if not np.all(np.isfinite(x.astype(np.float64))):
            return None
        centre, off_centre = self.centre
        s = self.slack(x)
        s[self.cones.zero] = 0
        missing = self.cones.outside(s) + self.cones.norms(self._row_rounding(x))
        missing += self._norm * offset
        missing[self.cones.block[self.cones.zero]] = 0.0
        tau = float(np.max(missing / self._primal_radii, initial=0.0))
        if not tau < 1.0:
            return None
        x = (x + LONG(tau) * centre) / (1 + LONG(tau))
        offset = max(offset, off_centre) + 8.0 * LONG_EPS * float(np.sqrt((x * x).sum()))
        return self._at(x, offset)

    def between(self, a: Feasible, b: Feasible) -> Feasible:
        """The midpoint of two feasible points."""
        x = (a.x + b.x) / 2
        offset = max(a.offset, b.offset) + 4.0 * LONG_EPS * float(np.sqrt((x * x).sum()))
        return self._at(x, offset)

    def _at(self, x: Vector, offset: float) -> Feasible:
        s = self.slack(x)
        s[self.cones.zero] = 0
        rounding = float(np.linalg.norm(self._row_rounding(x))) + self._norm * offset
        return Feasible(x, s, offset, rounding)

    def minorant(self, y: Vector, at: Feasible) -> Minorant | None:
        """u from a solver's y, with its error and slack at a feasible point."""
        y, eta = self._on_dual_equations(y)
        if not np.all(np.isfinite(y.astype(np.float64))):
            return None
        centre, off_centre = self.dual_centre
        outside = self.cones.outside(y, dual=True) + eta
        outside[self.cones.block[self.cones.zero]] = 0.0
        tau = float(np.max(outside / (self._dual_radii - off_centre), initial=0.0))
        if not np.isfinite(tau):
            return None
        y = (y + LONG(tau) * centre) / (1 + LONG(tau))
        length = float(np.sqrt((y * y).sum()))
        off = eta + tau * off_centre + 8.0 * LONG_EPS * length
        theta = slice(0, self.dimension)
        u = self.pull(y)[theta].astype(np.float64)
        error = self._norm * off + float(np.linalg.norm(self._column_rounding(y)[theta]))
        error += EPS * float(np.linalg.norm(u))
        products = y * at.s
        rounding = LONG_EPS * (len(y) + 8) * float(np.abs(products).sum())
        slack = max(float(products.sum()), 0.0) + rounding
        slack += (float(np.sqrt((at.s * at.s).sum())) + at.rounding) * off
        slack += length * at.rounding
        return Minorant(u, error, slack)
