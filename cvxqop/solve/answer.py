"""What a solver found."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import cvxpy as cp
import numpy as np
import numpy.typing as npt

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
