"""One regulariser and one set of constraints, solved for many quadratics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np
import numpy.typing as npt
from cvxpy.error import SolverError

from cvxqop.errors import AccuracyError, OptionError, ProblemError
from cvxqop.inference.released import Released, whole
from cvxqop.solve.certificate import Curvature
from cvxqop.solve.engines.conic import solve_conic
from cvxqop.solve.engines.many import minimise_many
from cvxqop.solve.engines.monitor import Goal, Monitor
from cvxqop.solve.engines.newton import minimise_quadratic
from cvxqop.solve.rest.intersection import Intersection
from cvxqop.solve.rest.polyhedron import Polyhedron
from cvxqop.solve.rest.prox import NotSplittable, split
from cvxqop.solve.rest.rest import Rest
from cvxqop.solve.smooth.quadratic import Quadratic

__all__ = ["PublicRest"]

Array = npt.NDArray[np.float64]

FEW = 30
ACCURATE = 1e-7
"""Certified distance to the minimiser, relative to its size, that every solve must reach."""


@dataclass(frozen=True, eq=False)
class PublicRest:
    """r and C, read once.

    Attributes
    ----------
    variables, regulariser, constraints
        As the caller wrote them.
    rest : Rest or None
        The same as operators; None where they do not split.
    scale : ndarray, shape (D,)
        T: the forms that are solved are functions of T⁻¹θ, and so are the answers.
    """

    variables: tuple[cp.Variable, ...]
    regulariser: cp.Expression | None
    constraints: tuple[cp.Constraint, ...]
    rest: Rest | None
    scale: Array

    @classmethod
    def of(
        cls,
        loss: Released,
        regulariser: cp.Expression | float | None,
        constraints: Sequence[cp.Constraint] | None,
    ) -> PublicRest:
        """Read r and C in the variables of a private loss, for forms that are functions of T⁻¹θ.

        Raises
        ------
        OptionError
            They are no convex regulariser and constraints.
        """
        r = None if regulariser is None else cp.Expression.cast_to_const(regulariser)
        C = tuple(constraints or ())
        if r is not None and not (r.is_scalar() and r.is_convex()):
            raise OptionError("regularizer: a convex scalar expression is needed, or None.")
        if not all(isinstance(c, cp.constraints.Constraint) and c.is_dcp() for c in C):
            raise OptionError("constraints: a list of convex CVXPY constraints is needed, or None.")
        if r is not None and not r.variables():
            r = None
        try:
            rest = split(loss.variables, r, C)
        except NotSplittable:
            rest = None
        return cls(loss.variables, r, C, rest, loss.scale)

    @property
    def free(self) -> bool:
        """Whether there is nothing but the loss."""
        rest = self.rest
        return (
            rest is not None
            and rest.separable
            and rest.Q is None
            and not np.any(rest.q)
            and not np.any(rest.weights)
            and bool(np.all(np.isinf(rest.lower)) and np.all(np.isinf(rest.upper)))
        )

    @property
    def exact(self) -> bool:
        """Whether solutions lie on kinks and bounds to the last digit."""
        return self.rest is not None and self.rest.separable

    @property
    def _splits_quickly(self) -> bool:
        """Whether splitting is quicker than a conic solver: in few dimensions, or without
        projections that are iterations themselves."""
        rest = self.rest
        assert rest is not None
        slow = any(isinstance(s.inner, Polyhedron | Intersection) for s in rest.sets)
        return rest.dimension <= FEW or (rest.fused and not slow)

    def released(self, loss: Released) -> Array:
        """T⁻¹θ (D,) of the released form itself, which is one of T⁻¹θ."""
        least = np.asarray(np.linalg.eigvalsh(loss.hessian)[:1], dtype=np.float64)
        if self.free:
            return np.asarray(loss.anchor - np.linalg.solve(loss.hessian, loss.gradient))
        H = loss.hessian[None]
        found = self._minimisers(H, loss.gradient[None], loss.anchor, least, loss.anchor)
        return np.asarray(found[0])

    def solve(self, H: Array, g: Array, loss: Released, least: Array, start: Array) -> Array:
        """Minimisers (B, D) for curvatures (B, d, d) of one output, and gradients (B, D) at the
        first anchor.

        Raises
        ------
        SolverError
            A solver failed on one of them.
        """
        anchor, layout = loss.first_anchor, loss.layout
        if self.free:  # one factor for all outputs
            theta = np.broadcast_to(anchor, g.shape).copy()
            theta[:, layout] -= np.linalg.solve(H, g[:, layout])
            return theta
        return self._minimisers(whole(H, layout), g, anchor, least, start)

    def _minimisers(self, H: Array, g: Array, anchor: Array, least: Array, start: Array) -> Array:
        T = self.scale
        H, g, anchor, start = H / np.outer(T, T), g / T, T * anchor, T * start
        return self._in_units(H, g, anchor, least / np.max(T) ** 2, start) / T

    def _in_units(self, H: Array, g: Array, anchor: Array, least: Array, start: Array) -> Array:
        rest = self.rest
        if rest is None or not (rest.separable or self._splits_quickly):
            return np.stack([self._conic(*form, anchor) for form in zip(H, g, strict=True)])
        if not rest.separable:
            return np.stack([self._one(*form, anchor, start) for form in zip(H, g, strict=True)])
        found = minimise_many(H, g - np.matmul(H, anchor), least, rest, start)
        size = np.linalg.norm(found.theta, axis=1)
        for b in np.flatnonzero(~(found.distance <= ACCURATE * size + ACCURATE**2)):
            found.theta[b] = self._one(H[b], g[b], anchor, start)
        return found.theta

    def _one(self, H: Array, g: Array, anchor: Array, start: Array) -> Array:
        """By the engine that certifies; by a solver of CVXPY where rounding stands before that."""
        rest = self.rest
        assert rest is not None
        smooth = Quadratic(H, g, anchor)
        if rest.Q is not None or np.any(rest.q):
            smooth = smooth.plus(rest.Q, rest.q)
        size = float(np.linalg.norm(start)) or 1.0
        try:
            found = minimise_quadratic(
                smooth, rest, start, Goal(ACCURATE * size), Monitor(), Curvature(smooth.H)
            )
        except AccuracyError:
            return self._conic(H, g, anchor)
        return found.candidate.point

    def _conic(self, H: Array, g: Array, anchor: Array) -> Array:
        form: Any = Quadratic(H, g, anchor)
        try:
            return solve_conic(form, self.variables, self.regulariser, self.constraints).theta
        except (SolverError, ProblemError) as error:
            words = str(error)
        raise SolverError(f"On a redrawn form: {words}")
