"""Losses whose constants follow from public numbers: a smoothed one, and two on a bounded range.

Absolute values are smoothed over h = 2, so that κ = ½ on |t − y| ≤ 2, where all records near the
anchor are. Counts of Poisson regression have κ and slope of exp at
the end of the range, where a public term moves θ.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import cvxpy as cp
import numpy as np
import numpy.typing as npt

from cvxqop.audit.neighbours import B, Loss, R
from cvxqop.audit.public_data import PUSH, ConstrainedLoss
from cvxqop.audit.row import ALONE, FAR, OPPOSITE, Row, group
from cvxqop.problem.bounds import Bounds

__all__ = ["POISSON", "POISSON_RANGE", "SMOOTHED", "SmoothedLoss", "scalar_rows"]

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class SmoothedLoss(Loss):
    """A loss with kinks, smoothed over a public width."""

    width: float = 2.0

    @property
    def public(self) -> dict[str, Any]:
        """Bounds and width."""
        return {"bounds": self.bounds, "smoothing": self.width}


def _absolute(t: Any, y: Array) -> Any:
    return cp.sum(cp.abs(t - y))


def _poisson(t: Any, y: Array) -> Any:
    return cp.sum(cp.exp(t) - cp.multiply(y, t))


SMOOTHED = SmoothedLoss("absolute value, smoothed", Bounds(row_norm=R, offset=B), _absolute)
POISSON = ConstrainedLoss("Poisson on a ball", Bounds(row_norm=R, offset=B), _poisson, push=PUSH)
POISSON_RANGE = Loss(
    "Poisson on a range", Bounds(row_norm=R, offset=B, argument=(-1.0, 0.25)), _poisson
)


def scalar_rows(adjacency: str) -> Iterator[Row]:
    """The rows for an adjacency."""
    rows = partial(group, adjacency=adjacency)
    added = ("aligned",) if adjacency == "add_remove" else ()
    pairs = OPPOSITE, *added, ALONE, FAR
    for loss in (SMOOTHED, POISSON_RANGE):
        yield from rows("wishart", loss, pairs, sampled=(FAR,), radius=0.1)
        yield from rows("gaussian", loss, (OPPOSITE, FAR), radius=0.1)
    yield from rows("linear", SMOOTHED, pairs, sampled=(FAR,))
    yield from rows("linear", POISSON, (OPPOSITE, "at the norm bound", FAR), sampled=(FAR,))
