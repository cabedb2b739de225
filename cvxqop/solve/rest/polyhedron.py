"""Projection onto {low ≤ A y ≤ high} through OSQP, refined to rounding on its active rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import osqp
import scipy.sparse as sp

from cvxqop.errors import ProblemError
from cvxqop.solve.rest.projections import Projection
from cvxqop.solve.units import power_of_two

__all__ = ["Polyhedron"]

Array = npt.NDArray[np.float64]


class Polyhedron:
    """{y : low ≤ A y ≤ high}; the solver is set up once and starts from its last answer.

    Parameters
    ----------
    A : (k, p) sparse array
    low, high : (k,) arrays
        Equal entries are equalities; infinite ones are absent.

    Raises
    ------
    ProblemError
        No point satisfies the rows.
    """

    def __init__(self, A: Any, low: Array, high: Array) -> None:
        # Rows of length one make OSQP's tolerance a distance.
        lengths = np.sqrt(np.asarray(A.multiply(A).sum(axis=1)).reshape(-1))
        self._A = sp.csc_matrix(sp.diags_array(1.0 / lengths) @ A)
        self._dense = self._A.toarray()
        self._low, self._high = low / lengths, high / lengths
        # OSQP's tolerance is absolute: bounds of order one, by a power of two.
        largest = float(np.max(np.abs(self._bounds())))
        self._unit = power_of_two(largest) if largest > 0.0 else None
        if self._unit is not None:
            self._low, self._high = self._low / self._unit, self._high / self._unit
        p = A.shape[1]
        self._solver = osqp.OSQP()
        self._solver.setup(
            sp.identity(p, format="csc"),
            np.zeros(p),
            self._A,
            self._low,
            self._high,
            verbose=False,
            eps_abs=1e-11,
            eps_rel=1e-11,
            max_iter=100_000,
            polishing=False,
            adaptive_rho_interval=50,
        )
        if self._project(np.zeros(p)).violation > 1e-6 * (
            1.0 + float(np.max(np.abs(self._bounds())))
        ):
            raise ProblemError("constraints: no point satisfies the linear constraints together")

    def _bounds(self) -> Array:
        both = np.concatenate([self._low, self._high, [0.0]])
        return np.asarray(both[np.isfinite(both)])

    def project(self, y: Array) -> Projection:
        """Nearest point, with the normal A'λ and its exact slack against the rows.

        A cone, whose bounds are all zero, takes its unit from y.
        """
        unit = self._unit or power_of_two(float(np.linalg.norm(y)) or 1.0)
        found = self._project(y / unit)
        return Projection(
            found.point * unit, found.normal * unit, found.slack * unit**2, found.violation * unit
        )

    def _project(self, y: Array) -> Projection:
        rows = self._dense @ y
        if np.all(rows >= self._low) and np.all(rows <= self._high):
            return Projection(y.copy(), np.zeros_like(y))
        self._solver.update(q=-y)
        result = self._solver.solve(raise_error=False)
        if result.info.status_val in (3, 4):
            raise ProblemError("constraints: no point satisfies the linear constraints together")
        multipliers = np.asarray(result.y, dtype=np.float64)
        rough = self._certified(np.asarray(result.x, dtype=np.float64), multipliers)
        refined = self._refined(y, multipliers)
        return refined if refined.violation <= rough.violation else rough

    def _refined(self, y: Array, multipliers: Array) -> Projection:
        """Project onto the rows that OSQP found active, as equalities."""
        equal = self._low == self._high
        level = 1e-9 * (1.0 + float(np.max(np.abs(multipliers), initial=0.0)))
        active = equal | (np.abs(multipliers) > level)
        target = np.where(multipliers > 0.0, self._high, self._low)
        target[equal] = self._low[equal]
        active &= np.isfinite(target)
        B = self._dense[active]
        mu = np.linalg.lstsq(
            B.T, y - np.linalg.lstsq(B, target[active], rcond=None)[0], rcond=None
        )[0]
        exact = np.zeros_like(multipliers)
        exact[active] = mu
        exact = np.where(
            equal, exact, np.where(multipliers > 0, np.maximum(exact, 0), np.minimum(exact, 0))
        )
        z = y - B.T @ mu
        z = z - np.linalg.lstsq(B, B @ z - target[active], rcond=None)[0]
        return self._certified(z, exact)

    def _certified(self, z: Array, multipliers: Array) -> Projection:
        """A'λ is normal up to Σ λ⁺(high − Az) + λ⁻(Az − low)."""
        up = np.where(np.isfinite(self._high), np.maximum(multipliers, 0.0), 0.0)
        down = np.where(np.isfinite(self._low), np.maximum(-multipliers, 0.0), 0.0)
        rows = self._dense @ z
        with np.errstate(invalid="ignore"):
            slack = np.where(up > 0, up * (self._high - rows), 0.0)
            slack = slack + np.where(down > 0, down * (rows - self._low), 0.0)
        outside = np.maximum(np.maximum(rows - self._high, self._low - rows), 0.0)
        return Projection(
            z,
            self._dense.T @ (up - down),
            max(0.0, float(slack.sum())),
            float(np.linalg.norm(outside)),
        )
