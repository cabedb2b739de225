"""AdaSSP: adaptive sufficient statistics perturbation for least squares.

Wang 2018, "Revisiting differentially private linear regression: optimal and adaptive prediction &
estimation in unbounded domain", Algorithm 2. For rows of norm at most 1 and targets in [-1, 1]
three things are released under add_remove, each of sensitivity 1: the smallest eigenvalue of X'X,
the matrix X'X itself and the vector X'y. A ridge is chosen from the first so that the noisy matrix
stays positive definite with high probability.

The paper gives each release a third of (ε, δ) by a classical bound. With exact accounting each is
μ/√3-GDP, so that the three together are μ-GDP with the μ of (ε, δ).
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np
from method import Array, Draw, Fit, Method, Task, gdp_mu
from scipy.special import ndtri

FAILURE = 0.05
"""ϱ of the paper: how often the ridge may be too small."""


def noise_scale(task: Task, exact: bool) -> float:
    """Standard deviation of each release per unit of sensitivity."""
    if exact:
        return math.sqrt(3.0) / gdp_mu(task.epsilon, task.delta)
    return math.sqrt(math.log(6.0 / task.delta)) / (task.epsilon / 3.0)


def eigenvalue_margin(task: Task, scale: float, exact: bool) -> float:
    """What the noise on the smallest eigenvalue stays below with high probability."""
    if exact:
        return -scale * float(ndtri(FAILURE / 2.0))
    return math.log(6.0 / task.delta) / (task.epsilon / 3.0)


def adassp(X: Array, y: Array, scale: float, margin: float, rng: np.random.Generator) -> Array:
    """One private fit.

    λ̃ = max(0, λ_min(X'X) + scale·z − margin), λ = max(0, scale √(d log(2d²/ϱ)) − λ̃), and
    θ = (X'X + scale·Z + λI)⁻¹ (X'y + scale·v), with z, v standard normal and Z symmetric with
    independent standard normal entries on and above the diagonal.
    """
    d = X.shape[1]
    gram = X.T @ X
    smallest = np.linalg.eigvalsh(gram)[0] + scale * rng.standard_normal() - margin
    wanted = scale * math.sqrt(d * math.log(2.0 * d**2 / FAILURE))
    ridge = max(0.0, wanted - max(0.0, float(smallest)))
    upper = np.triu(rng.standard_normal((d, d)))
    noise = upper + np.triu(upper, 1).T
    right = X.T @ y + scale * rng.standard_normal(d)
    return np.linalg.solve(gram + scale * noise + ridge * np.eye(d), right)


def prepare(task: Task, X: Array, y: Array, seed: int, *, exact: bool) -> Draw:
    scale = noise_scale(task, exact)
    margin = eigenvalue_margin(task, scale, exact)
    rng = np.random.default_rng(seed)
    return lambda: Fit(adassp(X, y, scale, margin, rng))


METHODS = (
    Method("AdaSSP, constants of the paper", partial(prepare, exact=False)),
    Method("AdaSSP, exact accounting", partial(prepare, exact=True)),
)
