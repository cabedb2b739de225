"""Losses that meet public data: the set C, weights, columns and a centre, and their rows.

What is public sets the noise (C, weights, columns) or moves the output (the centre), so that it has
to be the same on both data sets, and the same when the noise is drawn as when it was calibrated.
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
from cvxqop.audit.row import ADAPTIVE, ALONE, FAR, OPPOSITE, PLANE, Row, group
from cvxqop.privacy.linear.options import Linear

__all__ = [
    "BOUNDED",
    "CENTRED",
    "CLASSES",
    "COLUMNS",
    "CONSTRAINED",
    "PRIVATELY_WEIGHTED",
    "REACH",
    "WEIGHTED",
    "W",
    "public_rows",
    "weight_rows",
]

Array = npt.NDArray[np.float64]

REACH = 1.0
"""C is |θ_j| ≤ REACH, or ‖θ‖ ≤ REACH."""


@dataclass(frozen=True)
class ConstrainedLoss(Loss):
    """A loss over ‖θ‖ ≤ ρ, ρ a parameter."""

    def state(self, data: Data, intercept: bool = False) -> tuple[Any, ...]:
        """(problem, private arrays)."""
        X, y = data
        theta = cp.Variable(X.shape[1], name="theta")
        radius = cp.Parameter(name="radius", nonneg=True, value=REACH)
        loss = self.term(X @ theta, y) - self.push * cp.sum(theta)
        return cp.Problem(cp.Minimize(loss), [cp.norm(theta, 2) <= radius]), [X, y]


@dataclass(frozen=True)
class BoundedLoss(Loss):
    """A loss of a variable with bounds, which are arrays or parameters."""

    parameters: bool = False

    def state(self, data: Data, intercept: bool = False) -> tuple[Any, ...]:
        """(problem, private arrays, public arrays)."""
        X, y = data
        d = X.shape[1]
        ends: list[Any] = [np.full(d, -REACH), np.full(d, REACH)]
        if self.parameters:
            ends = [cp.Parameter(d, value=end) for end in ends]
        theta = cp.Variable(d, name="theta", bounds=ends)
        loss = self.term(X @ theta, y) - self.push * cp.sum(theta)
        return cp.Problem(cp.Minimize(loss)), [X, y], ends


@dataclass(frozen=True)
class CentredLoss(Loss):
    """A loss with a public quadratic term around a listed centre."""

    def state(self, data: Data, intercept: bool = False) -> tuple[Any, ...]:
        """(problem, private arrays, public arrays)."""
        X, y = data
        theta, centre = cp.Variable(X.shape[1], name="theta"), np.full(X.shape[1], 0.5)
        loss = self.term(X @ theta, y) + cp.sum_squares(theta - centre)
        return cp.Problem(cp.Minimize(loss)), [X, y], [centre]


@dataclass(frozen=True)
class WeightedLoss(Loss):
    """A loss with a public weight a record, the largest for the one that differs; ``term`` is the
    loss of each record."""

    def state(self, data: Data, intercept: bool = False) -> tuple[Any, ...]:
        """(problem, private arrays, public arrays)."""
        X, y = data
        theta, weights = cp.Variable(X.shape[1], name="theta"), 0.5 + np.arange(len(y))
        loss = cp.sum(cp.multiply(weights, self.term(X @ theta, y)))
        return cp.Problem(cp.Minimize(loss)), [X, y], [weights]


@dataclass(frozen=True)
class ColumnLoss(Loss):
    """A loss with a public column beside the private ones, longest for the record that differs."""

    def state(self, data: Data, intercept: bool = False) -> tuple[Any, ...]:
        """(problem, private arrays, public arrays)."""
        X, y = data
        theta, gamma = cp.Variable(X.shape[1], name="theta"), cp.Variable(1, name="gamma")
        column = 0.5 + np.arange(len(y), dtype=float)[:, None]
        loss = self.term(X @ theta + column @ gamma, y)
        return cp.Problem(cp.Minimize(loss)), [X, y], [column]


def _squares(t: Any, y: Array) -> Any:
    return 0.5 * cp.square(t - y)


def _logistics(t: Any, y: Array) -> Any:
    return cp.logistic(-cp.multiply(y, t))


SQUARED, LOGISTIC, _ = LOSSES
PUSH = 20.0
"""It moves the output to the end of C, where the gradient of a record is G."""

CONSTRAINED = ConstrainedLoss("squared, ‖θ‖ ≤ parameter", SQUARED.bounds, SQUARED.term, push=PUSH)
BOUNDED = tuple(
    BoundedLoss(
        f"squared, bounds are {kind}",
        SQUARED.bounds,
        SQUARED.term,
        push=PUSH,
        parameters=kind == "parameters",
    )
    for kind in ("arrays", "parameters")
)
CENTRED = CentredLoss("logistic, public centre", LOGISTIC.bounds, LOGISTIC.term)
WEIGHTED = (
    WeightedLoss("squared, public weights", SQUARED.bounds, _squares),
    WeightedLoss("logistic, public weights", LOGISTIC.bounds, _logistics),
)
COLUMNS = (
    ColumnLoss("squared, public column", SQUARED.bounds, SQUARED.term),
    ColumnLoss("logistic, public column", LOGISTIC.bounds, LOGISTIC.term),
)


def public_rows(adjacency: str) -> Iterator[Row]:
    """The rows for an adjacency. Public numbers of records exist under replace_one only."""

    rows = partial(group, adjacency=adjacency)
    for loss in (CONSTRAINED, *BOUNDED):
        yield from rows("linear", loss, (OPPOSITE, FAR, ALONE), sampled=(FAR,))
        yield from rows("linear", loss, (PLANE,), None, sampled=(PLANE,))
    for mechanism in ("wishart", "linear"):
        yield from rows(mechanism, CENTRED, (OPPOSITE, FAR), sampled=(FAR,))
    if adjacency == "add_remove":
        return
    squared, logistic = WEIGHTED
    for mechanism in ("wishart", "gaussian"):
        for loss in (squared, COLUMNS[0]):
            yield from rows(
                mechanism, loss, (OPPOSITE, FAR, ALONE), "loss", (OPPOSITE,), thinning=1
            )
    yield from rows("gaussian, adaptive", squared, (OPPOSITE, FAR), "loss", perturbation=ADAPTIVE)
    yield from rows("linear, clipped", squared, (OPPOSITE, FAR), perturbation=Linear(clip=1.0))
    for mechanism in ("wishart", "linear"):
        for loss in (logistic, COLUMNS[1]):
            yield from rows(mechanism, loss, (OPPOSITE, FAR), sampled=(FAR,))
    yield from rows("gaussian", logistic, (OPPOSITE, FAR), sampled=(FAR,))


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


def _bounded(loss: Loss) -> Any:
    assert loss.bounds is not None
    return replace(loss.bounds, weight=W)


PRIVATELY_WEIGHTED = (
    PrivatelyWeighted("squared, private weights", _bounded(SQUARED), _squares),
    PrivatelyWeighted("logistic, private weights", _bounded(LOGISTIC), _logistics),
)
CLASSES = ClassWeighted("logistic, weights of classes", LOGISTIC.bounds, LOGISTIC.term)


def weight_rows(adjacency: str) -> Iterator[Row]:
    """The rows for an adjacency."""
    rows = partial(group, adjacency=adjacency)
    squared, logistic = PRIVATELY_WEIGHTED
    for mechanism in ("wishart", "gaussian"):
        yield from rows(mechanism, squared, (OPPOSITE, FAR, ALONE), "loss", (OPPOSITE,), thinning=1)
    for loss in (logistic, CLASSES):
        for mechanism in ("wishart", "gaussian", "linear"):
            yield from rows(mechanism, loss, (OPPOSITE, FAR), sampled=(FAR,))
