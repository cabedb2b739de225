"""More records lead to the minimiser of the loss as written, and without the check they do not."""

import cvxpy as cp
import numpy as np
import pytest

import cvxqop
from cvxqop.spending import adaptive

RNG = np.random.default_rng(2)
N = 200
X = np.c_[RNG.uniform(-0.5, 0.5, (N, 2)), np.full(N, 0.5)]
TARGETS = {
    # In both some residuals exceed what any cut leaves alone, 1.1 times the bound on targets.
    "classes": np.where(RNG.random(N) < 0.1 + 0.1 * (X[:, 0] > 0), 1.0, -1.0),
    "heavy tails": np.clip(0.9 + 0.1 * X[:, 0] - 0.1 * RNG.standard_t(1.0, N) ** 2, -1.0, 1.0),
}


def excess(y, times, adjacency="add_remove", seeds=3):
    """(J(θ) − J(θ̂))/(J(0) − J(θ̂)) of the squared loss as written, the median of some draws."""
    exact = np.linalg.lstsq(X, y, rcond=None)[0]
    best = np.sum((X @ exact - y) ** 2)
    x, targets = np.tile(X, (times, 1)), np.tile(y, times)
    theta = cp.Variable(3)
    problem = cp.Problem(cp.Minimize(cp.sum_squares(x @ theta - targets)))
    found = []
    for seed in range(seeds):
        cvxqop.privatize(
            problem, private=[x, targets], bounds=cvxqop.Bounds(row_norm=0.9, offset=1.0),
            epsilon=2.0, delta=1e-6, adjacency=adjacency, seed=seed,
            perturbation=cvxqop.Gaussian(stages="adaptive"),
        )  # fmt: skip
        found.append((np.sum((X @ theta.value - y) ** 2) - best) / (np.sum(y**2) - best))
    return float(np.median(found))


@pytest.mark.parametrize("name", TARGETS)
def test_the_answer_tends_to_the_minimiser_of_the_loss_as_written(monkeypatch, name):
    y = TARGETS[name]
    few, more, many = (excess(y, times) for times in (1, 16, 1024))
    assert many < 1e-6
    assert many < 1e-2 * more < 1e-2 * few
    monkeypatch.setattr(
        adaptive, "_checked", lambda case, mechanism, spectrum, gradient, theta: 0.0 * gradient
    )
    assert excess(y, 1024) > 1e4 * many


def test_replace_one_too():
    assert excess(TARGETS["classes"], 1024, "replace_one", seeds=1) < 1e-5
