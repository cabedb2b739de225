"""The objective of one data set near the anchor: gradient and Hessian, many points at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from cvxqop._blocks import dense
from cvxqop.case import Case
from cvxqop.errors import OptionError
from cvxqop.problem.losses.margins import Margin
from cvxqop.problem.losses.recognised import RecognisedSums

__all__ = ["Objective", "Smooth", "public_rest"]

Array = npt.NDArray[np.float64]


class Smooth(Protocol):
    """A twice differentiable objective, as a function of the distance u from the anchor."""

    @property
    def dimension(self) -> int:
        """d, the length of u."""

    def at(self, u: Array) -> tuple[Array, Array]:
        """Gradients (N, d) and Hessians (N, d, d) at points u (N, d)."""


@dataclass(frozen=True)
class Objective:
    """J(θ0 + u) = Σ_i ℓ_i(a_i'(θ0 + u)) + g'u + ½ u'Ku, up to a constant.

    Attributes
    ----------
    rows : ndarray, shape (n, d)
        a_i, clipped.
    numbers : ndarray, shape (n, k)
        What ℓ_i depends on: offsets, and more for weighted or clipped losses.
    loss : LossSum or CutLoss
        ℓ, for the numbers of each record.
    anchor : ndarray, shape (d,)
        θ0.
    linear : ndarray, shape (d,)
        g.
    curvature : ndarray, shape (d, d)
        K.
    others : Objective, optional
        What is added: another row of each record, with its loss.

    Examples
    --------
    >>> import numpy as np
    >>> from cvxqop.problem.losses.scalar import squared
    >>> from cvxqop.problem.losses.margins import LossSum
    >>> J = Objective(
    ...     np.eye(2), np.array([[1.0], [0.0]]), LossSum([squared]), np.zeros(2), np.zeros(2),
    ...     np.zeros((2, 2)),
    ... )
    >>> gradient, hessian = J.at(np.zeros((1, 2)))
    >>> gradient.tolist(), hessian.tolist()
    ([[2.0, 0.0]], [[[2.0, 0.0], [0.0, 2.0]]])
    """

    rows: Array
    numbers: Array
    loss: Any
    anchor: Array
    linear: Array
    curvature: Array
    others: Objective | None = None

    @classmethod
    def of(cls, case: Case) -> Objective:
        """The objective that a case minimises before it is perturbed: clipped records, and the
        public rest where that is a quadratic.

        Raises
        ------
        OptionError
            If the public rest is not quadratic, a record has several outputs, or the loss is
            declared: then no density of the output is known.
        """
        sums = case.sums
        if not isinstance(sums, RecognisedSums):
            raise OptionError(
                "divergence: a declared loss is known by values and gradients only. Pass its "
                "Hessians as objective=…, or use output='loss' if it is quadratic."
            )
        if not all(isinstance(part.loss, Margin) for part in sums.parts):
            raise OptionError(
                "divergence: the solution has no density that is known here where a record has "
                "several targets; use output='loss'."
            )
        linear, curvature = public_rest(case)
        own, others = linear + sums.linear, None
        for part in sums.parts:
            A, numbers = part.records.take(0, part.records.n)
            others = cls(dense(A), numbers, part.loss, case.anchor, own, curvature, others)
            own, curvature = np.zeros_like(own), np.zeros_like(curvature)
        assert others is not None
        return others

    @property
    def dimension(self) -> int:
        """d, the length of θ."""
        return len(self.linear)

    def at(self, u: Array) -> tuple[Array, Array]:
        """Gradients (N, d) and Hessians (N, d, d) at points u (N, d)."""
        gradient = u @ self.curvature + self.linear
        hessian = np.tile(self.curvature, (len(u), 1, 1))
        if self.others is not None:
            more, bend = self.others.at(u)
            gradient, hessian = gradient + more, hessian + bend
        for a, numbers in zip(self.rows, self.numbers, strict=True):
            margin, C = (self.anchor + u) @ a, np.tile(numbers, (len(u), 1))
            gradient += self.loss.values(margin, C)[1][:, None] * a
            hessian += self.loss.second_derivative(margin, C)[:, None, None] * np.outer(a, a)
        return gradient, hessian


def public_rest(case: Case) -> tuple[Array, Array]:
    """Gradient at the anchor and Hessian of the public rest, read off its values.

    Raises
    ------
    OptionError
        If the rest is not quadratic.
    """
    erm, d = case.erm, case.erm.dimension
    rest = erm.regulariser
    if rest is None:
        return np.zeros(d), np.zeros((d, d))
    if not rest.is_quadratic() or any(v not in erm.variables for v in rest.variables()):
        raise OptionError("divergence: the public rest of the objective must be quadratic in θ.")
    kept = [variable.value for variable in erm.variables]

    def value(step: Sequence[float] | Array) -> float:
        for variable, part in erm.unstack(case.anchor + np.asarray(step)).items():
            variable.save_value(part)
        return float(np.asarray(rest.value).reshape(()))

    unit = np.eye(d)
    f0 = value(np.zeros(d))
    up = np.array([value(e) for e in unit])
    down = np.array([value(-e) for e in unit])
    both = np.array([[value(e + f) for f in unit] for e in unit])
    for variable, old in zip(erm.variables, kept, strict=True):
        variable.save_value(old)
    return 0.5 * (up - down), both - up[:, None] - up[None, :] + f0
