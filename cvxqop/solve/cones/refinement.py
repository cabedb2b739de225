"""Primal and dual answers of a cone program to working precision, by semismooth Newton steps.

The answer of min ½x'Px + q'x, b − Ax ∈ K solves, with one σ > 0 a cone and w = s − Σy,

    Px + q + A'Σ⁻¹(Π_K(w) − w) = 0,    Ax + Π_K(w) − b = 0.

From a solver's answer full Newton steps converge fast where the solution is not degenerate; the
last steps take their residuals in extended precision. Nothing here needs to succeed: whatever comes
out, the certificate is computed from it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.linalg as sla
import scipy.sparse as sp
import scipy.sparse.linalg as spl

from cvxqop.solve.cones.cones import Cones
from cvxqop.solve.cones.solvers import ConeSolution

__all__ = ["Refined", "refine"]

Array = npt.NDArray[np.float64]
Vector = npt.NDArray[Any]

STEPS = 20
PATIENCE = 6
LONG_STEPS = 4
CLOSE = 1e-9
LOST = 1e-10
DENSE = 250
"""Unknowns up to which systems are dense."""
SHIFT = 1e-9
"""Diagonal that is added to a singular system; the solution is then refined against the system."""


@dataclass(frozen=True, eq=False)
class Refined:
    """x and y; arrays may be in extended precision."""

    x: Vector
    y: Vector


@dataclass(frozen=True, eq=False)
class _State:
    x: Vector
    w: Vector
    s: Vector
    residual: Vector
    jacobian: Array

    @property
    def size(self) -> float:
        return float(np.sqrt((self.residual**2).sum()))

    @property
    def finite(self) -> bool:
        return bool(np.isfinite(self.size) and np.all(np.isfinite(self.jacobian)))


def refine(
    H: Array, q: Array, A: Any, b: Array, cones: Cones, found: ConeSolution
) -> Refined | None:
    """The answer of min ½d'Hd + q'x, x = (d, v), b − Ax ∈ K near a solver's; None if it got lost.

    Parameters
    ----------
    H : (D, D) array
        Curvature of the first entries of x.
    q, b : arrays
    A : sparse array
    cones : Cones
        K; without power cones.
    found : ConeSolution
        Where to start.
    """
    if not cones.smooth:
        return None
    system = _System(H, q, A, b, cones, found)
    state = system.state(found.x, found.s - system.sigma * found.y, found.s)
    if not state.finite:
        return None
    size = float(np.linalg.norm(q) + np.linalg.norm(b) + np.linalg.norm(found.x))
    floor = 1e-16 * size
    best, idle = state, 0
    for _ in range(STEPS):
        step = system.solver(state.jacobian)(-state.residual)
        if not np.all(np.isfinite(step)):
            break
        state = system.state(state.x + step[: system.N], state.w + step[system.N :], state.s)
        if not state.finite:
            break
        idle = 0 if state.size < 0.5 * best.size else idle + 1
        best = state if state.size < best.size else best
        if idle >= (2 if best.size < 1e-13 else PATIENCE) or best.size <= floor:
            break
    if best.size > LOST * size:
        return None
    if best.size < CLOSE:
        best = _extended(system, best)
    return Refined(best.x, (best.s - best.w) / system.sigma)


class _System:
    """The equations, and linear systems with their generalised Jacobian."""

    def __init__(
        self, H: Array, q: Array, A: Any, b: Array, cones: Cones, found: ConeSolution
    ) -> None:
        self.cones, self.q, self.b = cones, q, b
        m, self.N = A.shape
        self.dense = m + self.N <= DENSE
        P = np.zeros((self.N, self.N))
        P[: len(H), : len(H)] = H
        self.sigma = _scales(cones, found)
        scaled = sp.diags_array(1.0 / self.sigma)
        self.A, self.AS, self.P = sp.csr_array(A), sp.csr_array(A.T @ scaled), sp.csr_array(P)
        self._parts = (P, self.A.toarray(), self.AS.toarray()) if self.dense else None

    def state(self, x: Vector, w: Vector, near: Vector) -> _State:
        """Residual and Jacobian at (x, w); ``near`` is close to Π(w)."""
        with np.errstate(all="ignore"):
            s, jacobian = self.cones.project(w, (near, near - w))
            residual = np.concatenate(
                [self.P @ x + self.q + self.AS @ (s - w), self.A @ x + s - self.b]
            )
        return _State(x, w, s, residual, jacobian)

    def lengthened(self) -> None:
        """Take residuals in extended precision from now on."""
        long = np.longdouble
        scaled = sp.diags_array(1 / self.sigma.astype(long))
        self.P, self.A = self.P.astype(long), self.A.astype(long)
        self.AS = sp.csr_array(self.A.T @ scaled)
        self.q, self.b = self.q.astype(long), self.b.astype(long)

    def solver(self, jacobian: Array) -> Callable[[Array], Array]:
        """v ↦ J⁻¹v, by least squares or a shifted factor where J is singular."""
        m = len(jacobian)
        if self._parts is not None:
            P, A, AS = self._parts
            J = np.block([[P, AS @ (jacobian - np.eye(m))], [A, jacobian]])
            return _dense_solver(J)
        block = sp.csc_array(jacobian)
        gap = sp.csc_array(self.AS.astype(np.float64)) @ (block - sp.eye_array(m, format="csc"))
        P, A = (M.astype(np.float64) for M in (self.P, self.A))
        return _sparse_solver(sp.csc_matrix(sp.block_array([[P, gap], [A, block]])))


def _scales(cones: Cones, found: ConeSolution) -> Array:
    """σ = ‖s‖/‖y‖ of each cone, of all rows together for inequalities."""
    ratio = _ratio(found.s, found.y)
    sigma = np.full(cones.size, ratio)
    for cone in cones.parts:
        if cone.kind not in ("zero", "nonneg"):
            own = _ratio(found.s[cone.rows], found.y[cone.rows])
            sigma[cone.rows] = np.clip(own, 1e-6 * ratio, 1e6 * ratio)
    return sigma


def _ratio(s: Array, y: Array) -> float:
    return float((np.linalg.norm(s) + 1e-14) / (np.linalg.norm(y) + 1e-14))


def _dense_solver(J: Array) -> Callable[[Array], Array]:
    with np.errstate(all="ignore"):
        factor, pivots, failed = sla.lapack.dgetrf(J)
    size = np.abs(np.diagonal(factor))
    if failed or size.min() <= 1e-14 * size.max():
        return lambda v: np.asarray(np.linalg.lstsq(J, v, rcond=1e-12)[0])
    return lambda v: np.asarray(sla.lapack.dgetrs(factor, pivots, v)[0])


def _sparse_solver(J: Any) -> Callable[[Array], Array]:
    try:
        factor = spl.splu(J)
    except RuntimeError:  # singular
        shifted = spl.splu(sp.csc_matrix(J + SHIFT * sp.eye_array(J.shape[0])))

        def solve(v: Array) -> Array:
            found = shifted.solve(v)
            for _ in range(4):
                found = found + shifted.solve(v - J @ found)
            return np.asarray(found)

        return solve
    return lambda v: np.asarray(factor.solve(v))


def _extended(system: _System, state: _State) -> _State:
    """A few steps with one Jacobian and residuals in extended precision."""
    solve = system.solver(state.jacobian)
    system.lengthened()
    state = best = system.state(
        state.x.astype(np.longdouble), state.w.astype(np.longdouble), state.s.astype(np.longdouble)
    )
    for _ in range(LONG_STEPS):
        if not (state.finite and best.size > 0.0):
            break
        step = solve(-(state.residual / state.size).astype(np.float64)) * state.size
        state = system.state(state.x + step[: system.N], state.w + step[system.N :], state.s)
        if not (state.finite and state.size < best.size):
            break
        slow, best = state.size > 0.3 * best.size, state
        if slow:
            break
    return best
