"""Losses that are linear in θ, squares that a linear term completes, and two outputs of any loss.

A linear loss has a public ridge, which leaves it a minimiser. Its records have y x for a row: both
are as large as they can be at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import cvxpy as cp
import numpy as np
import numpy.typing as npt

from cvxqop.audit.neighbours import LOSSES, B, Loss, R
from cvxqop.audit.row import ALONE, FAR, OPPOSITE, Row, group
from cvxqop.problem.bounds import Bounds

__all__ = ["COMPLETED", "HUBER_OUTPUTS", "LINEAR", "TILTED", "linear_rows"]

Array = npt.NDArray[np.float64]


def _linear(t: Any, y: Array) -> Any:
    return cp.sum_squares(t.variables()[0]) - y @ t


def _completed(t: Any, y: Array) -> Any:
    return 0.5 * cp.sum_squares(t) - y @ t


def _tilted(t: Any, y: Array) -> Any:
    return 0.5 * cp.sum_squares(t - y) - 0.5 * cp.sum(t)


LINEAR = Loss("linear", Bounds(row_norm=R, offset=B), _linear)
COMPLETED = Loss("squared, completed", Bounds(row_norm=R, offset=B), _completed)
TILTED = Loss("squared, tilted", Bounds(row_norm=R, offset=B), _tilted)
HUBER_OUTPUTS = Loss("huber, 2 outputs", Bounds(row_norm=R, offset=B), LOSSES[2].term, outputs=2)


def linear_rows(adjacency: str) -> Iterator[Row]:
    """The rows for an adjacency."""
    rows = partial(group, adjacency=adjacency)
    kept = OPPOSITE, FAR, ALONE
    yield from rows("gaussian", LINEAR, kept, "loss", (OPPOSITE, FAR), thinning=2)
    for loss in (COMPLETED, TILTED):
        yield from rows("gaussian", loss, kept, "loss", (FAR,))
        yield from rows("wishart", loss, kept, "loss", (FAR,), radius=0.1)
    yield from rows("wishart", HUBER_OUTPUTS, kept, sampled=(FAR,), radius=0.01)
    yield from rows("linear", HUBER_OUTPUTS, kept, radius=1.0)
