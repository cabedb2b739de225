"""Rows and losses for tests, written here so that the solver is tested on its own."""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit


@dataclass
class Loss:
    name: str
    value: object
    derivative: object
    second_derivative: object
    curvature: float
    quadratic: bool = False


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


class ArrayRows:
    """A and C in memory."""

    def __init__(self, A, C):
        self.A, self.C = A, C
        self.n, self.dimension = A.shape

    def take(self, start, stop):
        return self.A[start:stop], self.C[start:stop]

    def blocks(self, size):
        for start in range(0, self.n, size):
            yield self.take(start, min(start + size, self.n))


def wishart(rng, d, scale=1.0, rows=None):
    W = rng.standard_normal((rows or 2 * d + 2, d))
    S = scale * (W.T @ W)
    return 0.5 * (S + S.T)
