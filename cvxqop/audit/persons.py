"""Rows of the suite for persons of several rows, which are alike and at the bound.

The Hessian of such a person is k times that of a row, and so is the gradient: the triangle
inequality that the constants rest on is attained. In the plane the second row has its features in
the other order, so that a person has a Hessian of rank two. One more row a person is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np

from cvxqop.audit.neighbours import LOSSES, PAIRS, Data, Loss
from cvxqop.audit.row import ADAPTIVE, Row
from cvxqop.audit.wide import pushed

__all__ = ["MEAN", "PERSONS", "PersonLoss", "person_rows"]


@dataclass(frozen=True)
class PersonLoss(Loss):
    """A loss in which each record of a pair is a person with several rows.

    ``rows`` is k, of which one more than that are there; None is the mean of three.
    """

    rows: int | None = 2

    @property
    def public(self) -> dict[str, Any]:
        """Bounds of a row, and how many of a person count."""
        return {"bounds": self.bounds, "rows_per_person": self.rows or "mean"}

    def state(self, data: Data, intercept: bool = False) -> tuple[Any, ...]:
        """(problem, private arrays, public arrays, ids)."""
        X, y = data
        copies = (self.rows or 2) + 1
        several = np.repeat(X, copies, axis=0), np.repeat(y, copies)
        several[0][1::copies] = X[:, ::-1]
        problem, private = super().state(several, intercept)
        (theta,) = problem.variables()
        pushed = cp.Problem(cp.Minimize(problem.objective.args[0] - self.push * cp.sum(theta)))
        return pushed if self.push else problem, private, [], np.repeat(np.arange(len(y)), copies)


SQUARED, LOGISTIC, _ = LOSSES
PERSONS = {
    loss.name: PersonLoss(f"{loss.name}, 2 rows a person", loss.bounds, loss.term)
    for loss in (SQUARED, LOGISTIC)
}
MEAN = {
    loss.name: PersonLoss(f"{loss.name}, mean of a person", loss.bounds, loss.term, rows=None)
    for loss in (SQUARED, LOGISTIC)
}
PAIR = {pair.name: pair for pair in PAIRS}
OPPOSITE, FAR, ALONE, PLANE = "opposite", "far beyond the bounds", "n = 1", "orthogonal"


def person_rows(adjacency: str) -> Iterator[Row]:
    """The rows for an adjacency."""

    def group(
        mechanism: str, loss: Loss, names: Sequence[str], exact: str | None, sampled: str = ""
    ) -> Iterator[Row]:
        for place, name in enumerate(names):
            output = exact if name == sampled else None
            yield Row(
                mechanism, mechanism, adjacency, loss, PAIR[name], exact, output, law=place == 0
            )

    for losses in (PERSONS, MEAN):
        squared, logistic = losses["squared"], losses["logistic"]
        yield from group("gaussian", squared, (OPPOSITE, FAR, ALONE, PLANE), "loss", OPPOSITE)
        yield from group("wishart", squared, (OPPOSITE, FAR, ALONE, PLANE), "loss", OPPOSITE)
        yield from group("wishart", logistic, (OPPOSITE, FAR, ALONE, PLANE), "solution")
        yield from group("gaussian", logistic, (OPPOSITE, FAR, ALONE), "solution")
        yield from group("linear", pushed(logistic), (OPPOSITE, FAR), "solution")
    for name in (OPPOSITE, FAR, PLANE):
        yield Row(
            "gaussian, adaptive", ADAPTIVE, adjacency, PERSONS["squared"], PAIR[name], "loss", None,
            law=name == OPPOSITE,
        )  # fmt: skip
