"""From a noisy release back onto the constraints: post-processing, and the last check of all."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np
import numpy.typing as npt

from cvxqop import _cvxpy
from cvxqop.errors import AccuracyError
from cvxqop.problem.erm import ERM
from cvxqop.solve.cones.engine import nearest

__all__ = ["feasible_release", "unreleased"]

Array = npt.NDArray[np.float64]


def feasible_release(erm: ERM, theta: Array) -> dict[cp.Variable, Any]:
    """Values of all variables at the point of C next to θ plus noise, finite and feasible.

    Raises
    ------
    AccuracyError
        There is none that passes; the words hold no number.
    """
    rest = (erm.variables, erm.regulariser, erm.constraints)
    what = "could not be put back onto the constraints"
    try:
        answer = nearest(*rest, theta)
        what = answer.fault(*rest)
    except Exception:  # whatever it says, it depends on records
        answer = None
    if answer is None or what:
        raise AccuracyError(unreleased(what)) from None
    return _cvxpy.released({**erm.unstack(erm.scale * answer.theta), **answer.auxiliary})


def unreleased(what: str) -> str:
    """Why a point that was certified, or trusted, is not released after all."""
    return (
        f"The point that would be released {what}. Nothing was released, and the charge for this "
        "draw stands. Write the constraints in the units of the variables, or fewer of them."
    )
