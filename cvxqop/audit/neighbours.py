"""Pairs of neighbouring data sets that are as bad as they come, and the losses they enter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np
import numpy.typing as npt

from cvxqop.audit.objective import Smooth
from cvxqop.problem.bounds import Bounds

__all__ = ["INTERPOLATING", "LOSSES", "MULTINOMIAL", "PAIRS", "TWO_OUTPUTS", "Data", "Loss", "Pair"]

Array = npt.NDArray[np.float64]
Record = tuple[Sequence[float], float]
Data = tuple[Array, Array]

R = 2.0
"""Bound on the norm of a row; not 1, so that R and R² are told apart."""

B = 1.0
"""Bound on a target."""


@dataclass(frozen=True)
class Pair:
    """Records that both data sets have, and the record that differs.

    Attributes
    ----------
    name : str
    common : tuple of records
        (x, y), x in units of R and y in units of B.
    before, after : record
        Exchanged for replace_one; ``after`` is added for add_remove.
    intercept : bool
        Whether the model has an unbounded intercept.
    """

    name: str
    common: tuple[Record, ...]
    before: Record
    after: Record
    intercept: bool = False

    @property
    def dimension(self) -> int:
        """D, the length of θ."""
        return len(self.after[0]) + self.intercept

    def data(self, adjacency: str) -> tuple[Data, Data]:
        """The two data sets (X, y)."""
        first = (self.before,) if adjacency == "replace_one" else ()
        return self._stacked((*self.common, *first)), self._stacked((*self.common, self.after))

    def _stacked(self, records: Sequence[Record]) -> Data:
        X = np.array([x for x, _ in records], dtype=float).reshape(-1, len(self.after[0]))
        return R * X, B * np.array([y for _, y in records], dtype=float)


ONE = ((1.0,), 1.0)
PAIRS = (
    Pair("aligned", (ONE, ONE), ((0.5,), 1.0), ONE),
    Pair("opposite", (ONE, ONE), ONE, ((1.0,), -1.0)),
    Pair("orthogonal", (((1.0, 0.0), 1.0),), ((1.0, 0.0), 1.0), ((0.0, 1.0), -1.0)),
    Pair("zero record", (ONE, ONE), ONE, ((0.0,), 0.0)),
    Pair("at the norm bound", (((0.5,), 1.0),), ((-1.0,), 1.0), ONE),
    Pair("far beyond the bounds", (ONE,), ((1e3,), 1e3), ((1e3,), -1e3)),
    Pair("n = 1", (), ((1.0,), -1.0), ONE),
    Pair("n < d", (((1.0, 0.0, 0.0), 1.0),), ((0.0, 1.0, 0.0), 1.0), ((0.0, 0.0, 1.0), -1.0)),
    Pair("intercept", (ONE, ONE), ONE, ((1.0,), -1.0), intercept=True),
)


@dataclass(frozen=True)
class Loss:
    """How data and variables make a problem, and the bounds that are stated with it.

    With ``labelled`` the outputs are classes: y > 0 is the first, y < 0 the last, with the weight
    |y|, and y = 0 is none of them. A ``push`` is a public linear term that favours the first class:
    where it has moved θ, the gradient of a record of the last class is as large as it can be.
    """

    name: str
    bounds: Bounds | None
    term: Callable[[Any, Array], Any]
    targets: bool = True
    outputs: int = 1
    labelled: bool = False
    push: float = 0.0

    @property
    def public(self) -> dict[str, Any]:
        """Options of a call that say what is known of a record."""
        return {"bounds": self.bounds}

    def objective(self, data: Data) -> Smooth | None:
        """The objective on a data set, where the library has only declared constants of it."""
        return None

    def targets_of(self, y: Array) -> Array:
        """Y (n, k) of several outputs."""
        if self.labelled:
            none = np.zeros((len(y), self.outputs - 2))
            return np.column_stack([np.maximum(y, 0.0), none, np.maximum(-y, 0.0)])
        return np.stack([y / (1 + j) for j in range(self.outputs)], axis=1)

    def state(self, data: Data, intercept: bool = False) -> tuple[Any, ...]:
        """(problem, private arrays) or (problem, private arrays, public arrays)."""
        X, y = data
        if self.outputs > 1:
            Y = self.targets_of(y)
            Theta = cp.Variable((X.shape[1], self.outputs), name="theta")
            loss = self.term(X @ Theta, Y)
            if self.push:
                loss += self.push * cp.sum(Theta[:, -1] - Theta[:, 0])
            return cp.Problem(cp.Minimize(loss)), [X, Y]
        private = [X, y] if self.targets else [X]
        theta = cp.Variable(X.shape[1], name="theta")
        if intercept:
            b = cp.Variable(name="b")
            return cp.Problem(cp.Minimize(self.term(X @ theta + b, y))), private
        return cp.Problem(cp.Minimize(self.term(X @ theta, y))), private


def _squared(t: Any, y: Array) -> Any:
    return 0.5 * cp.sum_squares(t - y)


def _logistic(t: Any, y: Array) -> Any:
    return cp.sum(cp.logistic(-cp.multiply(y, t)))


def _huber(t: Any, y: Array) -> Any:
    return cp.sum(cp.huber(t - y, 0.5))


def _interpolating(t: Any, y: Array) -> Any:
    """No target: 0 minimises every record's loss, so that no guard is needed; a public linear
    term moves the solution."""
    (theta,) = t.variables()
    return 0.5 * cp.sum_squares(t) - cp.sum(theta)


def _multinomial(t: Any, Y: Array) -> Any:
    return cp.sum(cp.log_sum_exp(t, axis=1)) - cp.sum(cp.multiply(Y, t))


INTERPOLATING = Loss("squared, no guard", Bounds(row_norm=R), _interpolating, targets=False)
TWO_OUTPUTS = Loss("squared, 2 outputs", Bounds(row_norm=R, offset=B), _squared, outputs=2)
MULTINOMIAL = tuple(
    Loss(f"multinomial, {k} classes", Bounds(row_norm=R), _multinomial, outputs=k, labelled=True)
    for k in (2, 3)
)
LOSSES = (
    Loss("squared", Bounds(row_norm=R, offset=B), _squared),
    Loss("logistic", Bounds(row_norm=R), _logistic),
    Loss("huber", Bounds(row_norm=R, offset=B), _huber),
)
