"""Outputs of the linear mechanism where C is an interval: a density inside, an atom at either end.

With S = μI the minimiser over [l, r] is the minimiser over the line, projected, so that

    p(u) = p_a(−J'(u) − μu) (J''(u) + μ),  l < u < r,
    P(l) = Φ((J'(l) + μl)/s_a),            P(r) = Φ(−(J'(r) + μr)/s_a).

J enters on [l, r] alone, as the bound G of Theorem 9 does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from cvxqop.audit.density import density
from cvxqop.audit.objective import Smooth
from cvxqop.case import Case
from cvxqop.errors import OptionError
from cvxqop.privacy.linear.options import CalibratedLinear
from cvxqop.privacy.mechanism import Mechanism
from cvxqop.solve.rest.prox import split

__all__ = ["Interval", "interval", "on_intervals"]

Array = npt.NDArray[np.float64]

BOUNDING = ("nonneg", "nonpos", "PSD", "NSD", "symmetric", "diag", "bounds", "sparsity", "integer",
            "boolean")  # fmt: skip
"""Attributes of a variable that are constraints."""

FAR = 1e9
"""An end of C beyond it counts as none."""

STEPS = 8000
"""Cells between two neighbouring ends; half as many tell the error."""


class Interval(NamedTuple):
    """The two ends of C, as distances from the anchor."""

    lower: float
    upper: float


@dataclass(frozen=True, eq=False)
class Cells:
    """A quadrature rule on several intervals at once, with a cell of its own for each end.

    Attributes
    ----------
    points : ndarray, shape (N, 1)
        The middle of each cell between two ends.
    weights : ndarray, shape (N + E,)
        Lengths of these cells, then a one for the atom at each of the ends.
    ends : ndarray, shape (E,)
    """

    points: Array
    weights: Array
    ends: Array

    @classmethod
    def of(cls, intervals: Sequence[Interval], steps: int = STEPS) -> Cells:
        """The midpoint rule with as many cells between any two neighbouring ends."""
        ends = np.unique(np.ravel(intervals))
        middles = (np.arange(steps) + 0.5) / steps
        lengths = np.diff(ends)
        points = (ends[:-1, None] + lengths[:, None] * middles).reshape(-1, 1)
        weights = np.concatenate([np.repeat(lengths / steps, steps), np.ones(len(ends))])
        return cls(points, weights, ends)


def interval(case: Case) -> Interval | None:
    """C as an interval, read as it is read where a release is projected; None without constraints.

    Raises
    ------
    OptionError
        If the output has several entries, C is not bounded, or the mechanism is not linear.
    """
    erm = case.erm
    bounding = any(v.attributes.get(name) for v in erm.variables for name in BOUNDING)
    if not erm.constraints and not bounding:
        return None
    if erm.dimension == 1 and isinstance(case.mechanism, CalibratedLinear):
        C = split(erm.variables, None, erm.constraints)
        lower, upper = (float(C.project(np.array([end])).point[0]) for end in (-FAR, FAR))
        if -FAR < lower <= upper < FAR:
            return Interval(lower - float(case.anchor[0]), upper - float(case.anchor[0]))
    raise OptionError(
        "divergence: an output on the boundary of a constraint has no density, and its atoms are "
        "known for the linear mechanism on a bounded interval of one variable only. Leave the "
        "constraints out (they are post-processing of what is integrated for squared losses)."
    )


def on_intervals(
    mechanisms: Sequence[Mechanism], objectives: Sequence[Smooth], intervals: Sequence[Interval]
) -> list[tuple[Array, Array, Array]]:
    """Probabilities p and q of both outputs and the weights of their cells, fine and coarse."""
    rules = []
    for steps in (STEPS, STEPS // 2):
        cells = Cells.of(intervals, steps)
        outputs = zip(mechanisms, objectives, intervals, strict=True)
        p, q = (_probabilities(*output, cells) for output in outputs)
        rules.append((p, q, cells.weights))
    return rules


def _probabilities(mechanism: Mechanism, objective: Smooth, own: Interval, cells: Cells) -> Array:
    """Density at the points of the cells, then the atoms at the ends, for an output on ``own``."""
    assert isinstance(mechanism, CalibratedLinear)
    u = cells.points[:, 0]
    inside = (own.lower < u) & (u < own.upper)
    p = np.where(inside, density(mechanism, objective, cells.points), 0.0)
    atoms = np.zeros(len(cells.ends))
    for end, side in zip(own, (1.0, -1.0), strict=True):
        slope = objective.at(np.array([[end]]))[0][0, 0] + mechanism.ridge * end
        atoms[cells.ends == end] += ndtr(side * slope / mechanism.guard_scale)
    return np.concatenate([p, atoms])
