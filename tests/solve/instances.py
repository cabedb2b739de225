"""Rows and losses for tests, written here so that the solver is tested on its own."""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from cvxqop.problem.losses.margins import LossSum
from cvxqop.problem.losses.part import Part
from cvxqop.solve.smooth.finite_sum import FiniteSum


@dataclass
class Loss:
    name: str
    value: object
    derivative: object
    second_derivative: object
    curvature: float
    quadratic: bool = False

    def least_curvature(self, low, high):
        return np.minimum(self.second_derivative(low), self.second_derivative(high))


SQUARED = Loss("squared", np.square, lambda t: 2 * t, lambda t: np.full_like(t, 2.0), 2.0, True)
LOGISTIC = Loss(
    "logistic",
    lambda t: np.logaddexp(0, t),
    expit,
    lambda t: expit(t) * expit(-t),
    0.25,
)
HUBER = Loss(
    "huber",
    lambda t: np.where(np.abs(t) <= 1, t * t, 2 * np.abs(t) - 1),
    lambda t: 2 * np.clip(t, -1, 1),
    lambda t: np.where(np.abs(t) <= 1, 2.0, 0.0),
    2.0,
)
SQUARED_HINGE = Loss(
    "squared hinge",
    lambda t: np.maximum(t, 0) ** 2,
    lambda t: 2 * np.maximum(t, 0),
    lambda t: np.where(t > 0, 2.0, 0.0),
    2.0,
)


def finite_sum(rows, losses, S, a, anchor, fine=False, layout=None):
    """A `FiniteSum` of one part: rows with a sum of scalar losses, or with one loss."""
    D = len(a)
    loss = LossSum(losses) if isinstance(losses, list | tuple) else losses
    layout = np.arange(D)[:, None] if layout is None else layout
    return FiniteSum([Part(rows, loss, layout, D)], S, a, anchor, fine)


def wishart(rng, d, scale=1.0, rows=None):
    W = rng.standard_normal((rows or 2 * d + 2, d))
    S = scale * (W.T @ W)
    return 0.5 * (S + S.T)
