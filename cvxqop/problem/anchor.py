"""The anchor θ0: a public point at which gradients of records are bounded."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np
import numpy.typing as npt

from cvxqop.errors import OptionError
from cvxqop.problem.bounds import Bounds
from cvxqop.problem.erm import ERM
from cvxqop.problem.private.matching import shares_memory

__all__ = ["CommonMinimizer", "resolve_anchor"]

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class CommonMinimizer:
    """A public point within η of a minimiser shared by every record that could occur.

    The assumption (interpolation) is enforced, not trusted: in every record the argument of the
    loss at the anchor, a'θ0 + c, is cut to ±Rη, so that the guarantee holds for any data. With
    ``error=0`` no linear guard is needed. `Wishart(calibration="paper")` with ``error`` > 0 is the
    exception: it rests on the assumption, and the solution says so.

    Parameters
    ----------
    theta : array or dict {variable: array}
        θ*, public. An estimate from the private data does not qualify.
    error : float
        η ≥ 0, bound on ‖θ0 − θ*‖ in units of θ.

    Raises
    ------
    OptionError
        If ``error`` is negative or not finite.

    Examples
    --------
    >>> import numpy as np
    >>> CommonMinimizer(np.zeros(3), error=0.1).error
    0.1
    """

    theta: Any
    error: float = 0.0

    def __post_init__(self) -> None:
        if isinstance(self.error, bool) or not isinstance(
            self.error, int | float | np.integer | np.floating
        ):
            raise OptionError("CommonMinimizer: error must be a number.")
        if not (math.isfinite(self.error) and self.error >= 0):
            raise OptionError(f"CommonMinimizer: error must be ≥ 0 and finite, got {self.error!r}.")


def resolve_anchor(erm: ERM, anchor: Any, bounds: Bounds) -> tuple[Array, float | None]:
    """θ0 stacked, and the bound on |a'θ0 + c| that takes the place of ``bounds.offset``.

    Parameters
    ----------
    erm : ERM
        The problem.
    anchor : None, array, dict {variable: array} or CommonMinimizer
        None is the origin.
    bounds : Bounds
        Gives R for the cut ±Rη of a `CommonMinimizer`.

    Raises
    ------
    OptionError
        If the anchor has the wrong shape or type, is not finite, or lies in the memory of a
        private array.
    """
    offset = None
    if isinstance(anchor, CommonMinimizer):
        offset = erm.loss.row_norm(bounds) * float(anchor.error)
        anchor = anchor.theta
    if anchor is None:
        return np.zeros(erm.dimension), offset
    if isinstance(anchor, cp.Expression):
        raise OptionError("anchor must be an array, not a CVXPY expression: pass its numbers.")
    if not isinstance(anchor, Mapping):
        if len(erm.variables) != 1:
            names = ", ".join(variable.name() for variable in erm.variables)
            raise OptionError(
                f"anchor: the loss has several variables ({names}); pass a dict "
                "{variable: array}."
            )
        try:
            value = np.asarray(anchor, dtype=np.float64)
        except (TypeError, ValueError):
            raise OptionError("anchor must be an array of numbers.") from None
        if value.size == erm.variables[0].size and value.squeeze().ndim <= 1:
            value = value.reshape(erm.variables[0].shape)
        anchor = {erm.variables[0]: value}
    for value in anchor.values():
        if any(shares_memory(np.asarray(value), array) for array in erm.private_arrays):
            raise OptionError(
                "anchor: the array lies in the memory of one that is private. The anchor is "
                "public: a point that was chosen without looking at the data, or None."
            )
    theta = erm.stack(anchor)
    if not np.all(np.isfinite(theta)):
        raise OptionError("anchor: every entry must be finite.")
    return theta, offset
