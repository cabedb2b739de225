"""Random losses that are declared, with constants that hold for every record within the bounds.

A record is ‖x‖ ≤ R, ‖z‖ ≤ R, |y| ≤ 1 in every entry, 0 ≤ c ≤ 1; anchors have norm A at most.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np

import cvxqop

__all__ = ["FAMILIES", "Family", "declared", "family"]


@dataclass(frozen=True, eq=False)
class Family:
    """A private loss on ``theta``, its constants, and the constraints that they need."""

    loss: Any
    private: list[Any]
    arrays: list[Any]
    constants: dict[str, Any]
    constraints: list[Any]


FAMILIES = ("poisson", "pseudo-huber", "softmax", "two rows", "huber outputs", "private weights")


def family(rng: Any, name: str, theta: Any, X: Any, anchor: float) -> Family:
    """The family ``name`` on records X (n, d), whose rows are shortened to a bound R ≤ 3."""
    n, d = X.shape
    R = float(rng.choice([0.3, 1.0, 3.0]))
    X, Z = _rows(X, R), _rows(rng.standard_normal((n, d)), R)
    y, c = rng.uniform(-1, 1, n), rng.uniform(0, 1, n)
    if name == "poisson":  # exp(t) − y t with |t| ≤ max(R, RA)
        R = min(R, 1.0)
        X, y = _rows(X, R), np.abs(y)
        slope = R * (np.exp(R * max(1.0, anchor)) + 1)
        constants = {"smoothness": R**2 * np.exp(R * max(1.0, anchor)), "gradient": slope}
        e = _times(X, theta)
        loss, private = cp.sum(cp.exp(e)) - y @ e, [X, y]
        return Family(loss, private, private, constants | {"hessian_rank": 1}, [_ball(theta)])
    if name == "pseudo-huber":  # √(1 + t²) has |φ'| ≤ 1 and φ'' ≤ 1
        stack = cp.vstack([_times(X, theta) - y, np.ones(n)])
        constants = {"smoothness": R**2, "gradient": R, "hessian_rank": 1}
        return Family(cp.sum(cp.norm(stack, axis=0)), [X, y], [X, y], constants, [])
    if name == "softmax":  # the Hessian in the two arguments is at most ½, their Jacobian √2 R
        stack = cp.vstack([_times(X, theta), _times(Z, theta), np.zeros(n)])
        constants = {"smoothness": R**2, "gradient": R, "hessian_rank": min(2, d)}
        return Family(cp.sum(cp.log_sum_exp(stack, axis=0)), [X, Z], [X, Z], constants, [])
    if name == "two rows":
        loss = cp.sum_squares(_times(X, theta) - y) + cp.sum(cp.logistic(_times(Z, theta)))
        constants = {"smoothness": 2.25 * R**2, "trace": 2.25 * R**2, "hessian_rank": min(2, d)}
        slopes, ball = _slopes(rng, theta, lambda size: 2 * R * (1 + R * size) + R, anchor)
        return Family(loss, [X, y, Z], [X, y, Z], constants | slopes, ball)
    if name == "huber outputs":  # a Hessian xx' in each output, |φ'| ≤ 2 and φ'' ≤ 2
        k = theta.shape[1]
        Y = rng.uniform(-1, 1, (n, k))
        constants = {"smoothness": 2 * R**2, "gradient": 2 * R * k**0.5, "hessian_rank": k}
        return Family(cp.sum(cp.huber(X @ theta - Y)), [X, Y], [X, Y], constants, [])
    weights = cp.Parameter(n, nonneg=True, value=c, name="weights")
    loss = cp.sum(cp.multiply(weights, cp.square(_times(X, theta) - y)))
    constants = {"smoothness": 2 * R**2, "hessian_rank": 1, "quadratic": True}
    slopes, ball = _slopes(rng, theta, lambda size: 2 * R * (1 + R * size), anchor)
    return Family(loss, [X, y, weights], [X, y, c], constants | slopes, ball)


def declared(constants: dict[str, Any]) -> cvxqop.Declared:
    """The declaration, a little above the constants."""
    larger = {
        key: 1.001 * value if isinstance(value, float) else value
        for key, value in constants.items()
    }
    return cvxqop.Declared(**larger)


def _slopes(rng: Any, theta: Any, slope: Any, anchor: float) -> tuple[dict[str, float], list[Any]]:
    """Bounds on gradients of at most slope(‖θ‖): at the anchor, or on a ball that is added."""
    if rng.random() < 0.5:
        return {"anchor_gradient": slope(anchor)}, []
    bounds = {"anchor_gradient": slope(anchor), "gradient": slope(max(1.0, anchor))}
    return bounds, [_ball(theta)]


def _times(X: Any, theta: Any) -> Any:
    return X @ theta if len(X) else cp.Constant(X) @ theta


def _ball(theta: Any) -> Any:
    return cp.norm(theta, 2) <= 1


def _rows(X: Any, bound: float) -> Any:
    """The rows, shortened where they are longer."""
    norms = np.linalg.norm(X, axis=1, keepdims=True)
    return X * np.minimum(1.0, bound / np.maximum(norms, 1e-300))
