"""Linear objective perturbation of a generalised linear model, calibrated after RKW23.

Redberg, Koskela and Wang 2023, "Improving the privacy and practicality of objective perturbation":
minimise Σ ℓ(x_i'θ, y_i) + (λ/2)‖θ‖² + b'θ with b ~ N(0, σ² I). For slopes of at most L and
curvature of at most β the privacy profile under add_remove is that of their theorem on generalised
linear models, and λ is the smallest on a grid for which σ is within a factor of 1.3 of the Gaussian
mechanism's, as they advise. The minimiser is found by L-BFGS; that it is not exact is not accounted
for. This is code of its own, apart from cvxqop's `Linear`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np
from method import Array, Draw, Fit, Method, Task, gdp_mu, with_ones
from scipy.optimize import brentq, minimize
from scipy.special import expit, log_ndtr, ndtr


@dataclass(frozen=True)
class Loss:
    """A scalar loss of the prediction t and the target, and its slope in t.

    Attributes
    ----------
    value, slope : callable
        Vectorised, of (t, y).
    curvature : float
        Bound on the second derivative; the slope is at most 1.
    """

    value: Callable[[Array, Array], Array]
    slope: Callable[[Array, Array], Array]
    curvature: float


HUBER = Loss(
    lambda t, y: np.where(np.abs(t - y) <= 1.0, 0.5 * (t - y) ** 2, np.abs(t - y) - 0.5),
    lambda t, y: np.clip(t - y, -1.0, 1.0),
    1.0,
)
LOGISTIC = Loss(lambda t, y: np.logaddexp(0.0, -y * t), lambda t, y: -y * expit(-y * t), 0.25)


def profile(epsilon: float, sigma: float, ridge: float, slope: float, curvature: float) -> float:
    """δ(ε) of linear objective perturbation of a generalised linear model."""
    ratio = slope / sigma
    left = epsilon + math.log1p(-curvature / ridge)

    def divergence(e: float) -> float:
        return float(ndtr(0.5 * ratio - e / ratio) - np.exp(e + log_ndtr(-0.5 * ratio - e / ratio)))

    beyond = left - 0.5 * ratio**2
    if beyond >= 0.0:
        return 2.0 * divergence(left)
    return -math.expm1(beyond) + 2.0 * math.exp(beyond) * divergence(0.5 * ratio**2)


@lru_cache
def calibrate(epsilon: float, delta: float, slope: float, curvature: float) -> tuple[float, float]:
    """(λ, σ): the ridge and the noise."""
    enough = 1.3 * slope / gdp_mu(epsilon, delta)
    ridge = 2.0 * curvature / epsilon
    while True:
        ridge = max(ridge, 1.0001 * curvature)
        if profile(epsilon, enough, ridge, slope, curvature) <= delta:

            def excess(log_sigma: float, ridge: float = ridge) -> float:
                return profile(epsilon, math.exp(log_sigma), ridge, slope, curvature) - delta

            low = math.log(enough) - 10.0
            return ridge, math.exp(brentq(excess, low, math.log(enough)))
        ridge *= 1.05


def perturbed_minimiser(X: Array, y: Array, loss: Loss, ridge: float, shift: Array) -> Array:
    """argmin Σ ℓ(x_i'θ, y_i) + (ridge/2)‖θ‖² + shift'θ."""

    def objective(theta: Array) -> tuple[float, Array]:
        t = X @ theta
        value = loss.value(t, y).sum() + 0.5 * ridge * theta @ theta + shift @ theta
        return value, X.T @ loss.slope(t, y) + ridge * theta + shift

    options = {"maxiter": 2000, "maxfun": 5000, "gtol": 1e-7, "ftol": 1e-14}
    start = np.zeros(X.shape[1])
    return minimize(objective, start, jac=True, method="L-BFGS-B", options=options).x


def prepare(
    task: Task, X: Array, y: Array, seed: int, *, loss: Loss, intercept: bool = False
) -> Draw:
    rows = with_ones(X) if intercept else X
    squared_norm = 2.0 if intercept else 1.0
    slope, curvature = math.sqrt(squared_norm), loss.curvature * squared_norm
    ridge, sigma = calibrate(task.epsilon, task.delta, slope, curvature)
    rng = np.random.default_rng(seed)

    def draw() -> Fit:
        shift = sigma * rng.standard_normal(rows.shape[1])
        theta = perturbed_minimiser(rows, y, loss, ridge, shift)
        return Fit(theta[:-1], float(theta[-1])) if intercept else Fit(theta)

    return draw


REGRESSION = (Method("LOP after RKW23, Huber loss", partial(prepare, loss=HUBER)),)
CLASSIFICATION = (
    Method("LOP after RKW23, intercept", partial(prepare, loss=LOGISTIC, intercept=True)),
    Method("LOP after RKW23, no intercept", partial(prepare, loss=LOGISTIC)),
)
