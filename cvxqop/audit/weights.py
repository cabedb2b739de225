"""Losses whose records have weights: private ones, cut to a bound, and public ones of classes.

Every record has the weight W |y|, so that those beyond the bounds are beyond that of the weights.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import cvxpy as cp
import numpy as np
import numpy.typing as npt

from cvxqop.audit.neighbours import LOSSES, Data, Loss
from cvxqop.audit.row import ALONE, FAR, OPPOSITE, Row, group

__all__ = ["CLASSES", "WEIGHTED", "W", "weight_rows"]

Array = npt.NDArray[np.float64]

W = 3.0
"""Bound on a private weight, and the largest weight of a class."""


@dataclass(frozen=True)
class PrivatelyWeighted(Loss):
    """A loss with a private weight a record; ``term`` is the loss of each record."""

    def state(self, data: Data, intercept: bool = False) -> tuple[Any, ...]:
        """(problem, private arrays)."""
        X, y = data
        theta, weights = cp.Variable(X.shape[1], name="theta"), W * np.abs(y)
        loss = cp.sum(cp.multiply(weights, self.term(X @ theta, np.clip(y, -1.0, 1.0))))
        return cp.Problem(cp.Minimize(loss)), [X, np.clip(y, -1.0, 1.0), weights]


@dataclass(frozen=True)
class ClassWeighted(Loss):
    """A loss of labels −1 and 1, the first of which has the larger weight."""

    weights: dict[int, float] = field(default_factory=lambda: {-1: W, 1: 1.0})

    @property
    def public(self) -> dict[str, Any]:
        """Bounds and the weights of the classes."""
        return {"bounds": self.bounds, "class_weight": self.weights}


def _squares(t: Any, y: Array) -> Any:
    return 0.5 * cp.square(t - y)


def _logistics(t: Any, y: Array) -> Any:
    return cp.logistic(-cp.multiply(y, t))


def _bounded(loss: Loss) -> Any:
    assert loss.bounds is not None
    return replace(loss.bounds, weight=W)


SQUARED, LOGISTIC, _ = LOSSES
WEIGHTED = (
    PrivatelyWeighted("squared, private weights", _bounded(SQUARED), _squares),
    PrivatelyWeighted("logistic, private weights", _bounded(LOGISTIC), _logistics),
)
CLASSES = ClassWeighted("logistic, weights of classes", LOGISTIC.bounds, LOGISTIC.term)


def weight_rows(adjacency: str) -> Iterator[Row]:
    """The rows for an adjacency."""
    rows = partial(group, adjacency=adjacency)
    squared, logistic = WEIGHTED
    for mechanism in ("wishart", "gaussian"):
        yield from rows(mechanism, squared, (OPPOSITE, FAR, ALONE), "loss", (OPPOSITE,), thinning=1)
    for loss in (logistic, CLASSES):
        for mechanism in ("wishart", "gaussian", "linear"):
            yield from rows(mechanism, loss, (OPPOSITE, FAR), sampled=(FAR,))
