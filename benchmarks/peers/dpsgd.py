"""DP-SGD with Google DeepMind's jax-privacy: its clipping, sampling, noise and accounting.

Hyperparameters follow from public numbers by rules fixed before anything was measured:

- 1,000 steps; a batch holds a sixteenth of the records in expectation, but 256 where that is less,
  and never more than half (large batches, as Ponomareva et al. 2023 advise);
- gradients clipped at 1, which bounds them at θ = 0;
- the step of stochastic gradient descent on a smooth convex function (Lan 2012),
  min(1/L, D/(v √steps)), L the smoothness of the mean loss, D the radius that cvxqop's default
  supposes too (1 for least squares, 2√d/R for logistic regression with d coefficients and rows of
  norm R), v = √d σ/batch the size of the noise in one step;
- the answer is the mean of the second half of the iterates.

The noise multiplier σ is the library's own calibration by numerical composition, for Poisson
sampling; n counts as public there.
"""

from __future__ import annotations

import math
import os
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any

import numpy as np
from method import Array, Draw, Fit, Method, Task, with_ones

STEPS = 1000
CLIP = 1.0
DRAWS = 10
ONE_THREAD = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"


def sampling_rate(n: int) -> Fraction:
    """Expected share of the records in a batch."""
    return min(Fraction(1, 2), max(Fraction(1, 16), Fraction(256, n)))


@lru_cache
def noise_multiplier(epsilon: float, delta: float, rate: Fraction) -> float:
    """σ/clip, such that STEPS steps together are (ε, δ)-differentially private."""
    from jax_privacy import accounting

    config = accounting.PldAccountantConfig(
        value_discretization_interval=1e-3 * min(1.0, max(epsilon, 0.1))
    )
    return accounting.calibrate_noise_multiplier(
        target_epsilon=epsilon,
        accountant=accounting.DpsgdTrainingAccountant(dp_accountant_config=config),
        batch_sizes=rate.numerator,
        num_samples=rate.denominator,
        num_updates=STEPS,
        target_delta=delta,
    )


@lru_cache
def trainer(logistic: bool, n: int, d: int, width: int) -> Any:
    """The loop, compiled for n rows of d features and batches of at most this width.

    Its arguments are rows, targets, batches, step, noise, batch size and key; it returns the mean
    of the second half of the iterates.
    """
    os.environ.setdefault("XLA_FLAGS", ONE_THREAD)
    import jax
    import jax.numpy as jnp
    from jax_privacy import clipped_grad, noise_addition

    def loss(theta: Any, row: Any, target: Any) -> Any:
        t = row @ theta
        return jnp.logaddexp(0.0, -target * t) if logistic else 0.5 * (t - target) ** 2

    gradient = clipped_grad(loss, l2_clip_norm=CLIP, batch_argnums=(1, 2), keep_batch_dim=False)

    @jax.jit
    def train(
        rows: Any, targets: Any, batches: Any, step: Any, noise: Any, size: Any, key: Any
    ) -> Any:
        privatizer = noise_addition.gaussian_privatizer(stddev=1.0, prng_key=key)
        start = jnp.zeros(rows.shape[1])

        def one(carry: Any, batch: Any) -> Any:
            theta, state = carry
            padding = batch < 0
            total = gradient(theta, rows[batch], targets[batch], is_padding_example=padding)
            unit, state = privatizer.update(jnp.zeros_like(total), state)
            theta = theta - step * (total + noise * unit) / size
            return (theta, state), theta

        _, path = jax.lax.scan(one, (start, privatizer.init(start)), batches)
        return path[STEPS // 2 :].mean(axis=0)

    empty = np.full((STEPS, width), -1, dtype=np.int32)
    rows, targets = np.zeros((n, d), dtype=np.float32), np.zeros(n, dtype=np.float32)
    train(rows, targets, empty, 0.1, 1.0, 1.0, jax.random.key(0))
    return train


def prepare(task: Task, X: Array, y: Array, seed: int, *, logistic: bool) -> Draw:
    """Logistic regression gets a column of ones; least squares has centred data."""
    rows = (with_ones(X) if logistic else X).astype(np.float32)
    rate = sampling_rate(task.n)
    size = float(rate * task.n)
    width = min(task.n, math.ceil(size + 8.0 * math.sqrt(size)))
    train = trainer(logistic, *rows.shape, width)

    import jax
    from jax_privacy import batch_selection

    targets = y.astype(np.float32)
    smoothness = 0.5 if logistic else 1.0
    radius = math.sqrt(2.0 * rows.shape[1]) if logistic else 1.0
    noise = CLIP * noise_multiplier(task.epsilon, task.delta, rate)
    spread = math.sqrt(rows.shape[1]) * noise / size
    step = min(1.0 / smoothness, radius / (spread * math.sqrt(STEPS)))
    sampler = batch_selection.CyclicPoissonSampling(sampling_prob=float(rate), iterations=STEPS)
    rng = np.random.default_rng(seed)

    def draw() -> Fit:
        batches = np.full((STEPS, width), -1, dtype=np.int32)
        for row, chosen in zip(batches, sampler.batch_iterator(task.n, rng), strict=True):
            row[: len(chosen)] = chosen
        key = jax.random.key(int(rng.integers(2**31)))
        theta = np.asarray(train(rows, targets, batches, step, noise, size, key), dtype=float)
        return Fit(theta[:-1], float(theta[-1])) if logistic else Fit(theta)

    return draw


REGRESSION = (Method("DP-SGD, jax-privacy", partial(prepare, logistic=False), draws=DRAWS),)
CLASSIFICATION = (
    Method("DP-SGD, jax-privacy, intercept", partial(prepare, logistic=True), draws=DRAWS),
)
