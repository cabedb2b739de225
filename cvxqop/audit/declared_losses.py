"""Losses that the library knows by declared constants, each of them attained by a record.

A record (x, y), |x| ≤ R, |y| ≤ B, enters through rows x·M_j, M public. Two of them are not
recognised, nor is √(1 + t²). Nothing is clipped: the pairs of neighbours must keep the bounds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np
import numpy.typing as npt

from cvxqop.audit.neighbours import LOSSES, B, Data, Loss, R
from cvxqop.audit.objective import Objective
from cvxqop.problem.losses.declared import Declared
from cvxqop.problem.losses.margins import LossSum
from cvxqop.problem.losses.scalar import ScalarLoss, logistic

__all__ = [
    "DECLARED_LINE",
    "DECLARED_PLANE",
    "DECLARED_QUADRATIC",
    "NO_GUARD",
    "TWO_ROWS",
    "DeclaredLoss",
]

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class DeclaredLoss(Loss):
    """Σ_j φ(x M_j θ, y) for rows M_j (D,), with declared constants.

    Attributes
    ----------
    declared : Declared
        Constants of a record.
    rows : tuple of tuples
        M (r, D).
    scalar : {"logistic", "pseudo-Huber"}
        φ, of −y·t where ``signed`` and of t − y otherwise; a name, which other processes can read.
    signed : bool
    """

    declared: Declared | None = None
    rows: tuple[tuple[float, ...], ...] = ((1.0,),)
    scalar: str = "logistic"
    signed: bool = True

    @property
    def public(self) -> dict[str, Any]:
        """The declared constants."""
        return {"declared": self.declared}

    def state(self, data: Data, intercept: bool = False) -> tuple[Any, ...]:
        """(problem, private arrays, public arrays), for data of one feature."""
        X, y = data
        theta = cp.Variable(len(self.rows[0]), name="theta")
        rows = [np.array([row]) for row in self.rows]
        arguments = [X @ (row @ theta) for row in rows]
        terms = self.terms(arguments, y)
        if self.push:
            terms.append(-self.push * cp.sum(theta))
        return cp.Problem(cp.Minimize(cp.sum(terms))), [X, y] if self.targets else [X], rows

    def terms(self, arguments: list[Any], y: Array) -> list[Any]:
        """One term for all rows: several terms would be recognised, and need no declaration."""
        return [self.term(cp.vstack(arguments) if len(arguments) > 1 else arguments[0], y)]

    def objective(self, data: Data) -> Objective:
        """The same, row by row."""
        X, y = data
        M = np.array(self.rows)
        rows, offsets = (-y * X[:, 0], 0.0 * y) if self.signed else (X[:, 0], -y)
        D = M.shape[1]
        return Objective(
            np.einsum("i,jd->ijd", rows, M).reshape(-1, D),
            np.repeat(offsets, len(M))[:, None],
            LossSum([SCALARS[self.scalar]]),
            np.zeros(D),
            np.full(D, -self.push),
            np.zeros((D, D)),
        )


@dataclass(frozen=True)
class SeveralRows(DeclaredLoss):
    """The same rows as terms of their own, which are recognised: constants follow from bounds."""

    @property
    def public(self) -> dict[str, Any]:
        """The bounds."""
        return {"bounds": self.bounds}

    def terms(self, arguments: list[Any], y: Array) -> list[Any]:
        """A term a row."""
        return [self.term(argument, y) for argument in arguments]


def _pseudo_huber(t: Any, y: Array) -> Any:
    return cp.sum(cp.norm(cp.vstack([t - y, np.ones(len(y))]), axis=0))


def _length(t: Any, y: Array) -> Any:
    return 0.5 * cp.sum_squares(t)


SQUARED, LOGISTIC, *_ = LOSSES
PLANE = ((1.0, 0.0), (0.0, 1.0))
PSEUDO_HUBER = ScalarLoss(
    "pseudo-Huber, √(1 + t²)",
    value=lambda t: np.hypot(1.0, t),
    derivative=lambda t: t / np.hypot(1.0, t),
    second_derivative=lambda t: np.hypot(1.0, t) ** -3.0,
    curvature=1.0,
    slope=1.0,
    unimodal=True,
)
SCALARS = {"logistic": logistic, "pseudo-Huber": PSEUDO_HUBER}

DECLARED_LINE = DeclaredLoss(
    "declared, d = 1",
    None,
    _pseudo_huber,
    # The Hessian is R² where xθ = y; at θ = 0 the gradient is R/√2 for |y| = B = 1, and R far away.
    declared=Declared(
        smoothness=R**2, hessian_rank=1, anchor_gradient=R * math.sqrt(0.5), gradient=R
    ),
    scalar="pseudo-Huber",
    signed=False,
)
DECLARED_PLANE = DeclaredLoss(
    "declared, rank 2",
    None,
    LOGISTIC.term,
    rows=PLANE,
    # At θ = 0 the Hessian is R²/4 · I and the gradient ∓R/2 · (1, 1).
    declared=Declared(
        smoothness=0.25 * R**2,
        hessian_rank=2,
        trace=0.5 * R**2,
        anchor_gradient=math.sqrt(0.5) * R,
        gradient=math.sqrt(2.0) * R,
    ),
)
DECLARED_QUADRATIC = DeclaredLoss(
    "declared, quadratic",
    None,
    SQUARED.term,
    rows=PLANE,
    # The Hessian is R² I, and the gradient at 0 is −RB(1, 1).
    declared=Declared(
        smoothness=R**2,
        hessian_rank=2,
        trace=2.0 * R**2,
        anchor_gradient=math.sqrt(2.0) * R * B,
        quadratic=True,
    ),
)
TWO_ROWS = SeveralRows("two rows, squared", SQUARED.bounds, SQUARED.term, rows=PLANE)
NO_GUARD = DeclaredLoss(
    "declared, no guard",
    None,
    _length,
    targets=False,
    rows=PLANE,
    declared=Declared(
        smoothness=R**2, hessian_rank=2, trace=2.0 * R**2, anchor_gradient=0.0, quadratic=True
    ),
)
