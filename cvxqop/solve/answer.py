"""What a solver found, and whether it may be released."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import cvxpy as cp
import numpy as np
import numpy.typing as npt

from cvxqop.solve.rest import feasibility

__all__ = ["Answer"]


@dataclass(frozen=True, eq=False)
class Answer:
    """What a solver found.

    Attributes
    ----------
    theta : (D,) array
        Minimiser, stacked in the order of the variables, each in Fortran order.
    auxiliary : dict
        Values of the variables that occur in the regulariser or the constraints only.
    distance : float or None
        Certified bound on the distance to the exact minimiser; None where none was computed.
    gap : float or None
        Certified bound on the objective's excess over its minimum.
    """

    theta: npt.NDArray[np.float64]
    auxiliary: dict[cp.Variable, Any] = field(default_factory=dict)
    distance: float | None = None
    gap: float | None = None

    @property
    def finite(self) -> bool:
        """Whether every number is."""
        return all(bool(np.all(np.isfinite(x))) for x in (self.theta, *self.auxiliary.values()))

    def fault(
        self,
        variables: Sequence[cp.Variable],
        regulariser: cp.Expression | None,
        constraints: Sequence[Any],
    ) -> str:
        """What is wrong with it, without numbers (`feasibility.fault`); empty if nothing is."""
        sizes = [variable.size for variable in variables]
        if self.theta.shape != (sum(sizes),):
            return "is of another shape than its variables"
        parts = np.split(self.theta, np.cumsum(sizes)[:-1])
        values = {
            v: part.reshape(v.shape, order="F") for v, part in zip(variables, parts, strict=True)
        }
        return feasibility.fault({**values, **self.auxiliary}, regulariser, constraints)
