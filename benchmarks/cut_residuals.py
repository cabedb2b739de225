"""What cutting residuals costs: squared loss on targets of ±1, where they stay large.

    OMP_NUM_THREADS=1 python benchmarks/cut_residuals.py

`Gaussian(stages=…)` cuts residuals to a part of their bound from the second stage on. On the nine
classification sets of peers_data.py, read as regressions on ±1, most residuals exceed that part, so
that the later stages minimise another loss. Written to results/cut_residuals.csv: median test R² of
3 splits × 6 releases, add_remove, δ = 1e-6, with a column of ones and rows of norm at most 1.
"""

from __future__ import annotations

import sys
from pathlib import Path

import cvxpy as cp
import numpy as np
from machine import describe_machine
from peers_data import CLASSIFICATION, split

import cvxqop

EPSILONS = (0.5, 2.0, 8.0)
SPLITS, DRAWS = 3, 6
MECHANISMS = {
    "1 stage": cvxqop.Gaussian(),
    "2 stages": cvxqop.Gaussian(stages=2),
    "6 stages": cvxqop.Gaussian(stages=6),
    "6 stages, uncut": cvxqop.Gaussian(stages=6, residual_bound=1.0),
    "wishart": cvxqop.Wishart(),
}
RESULTS = Path(__file__).resolve().parent / "results" / "cut_residuals.csv"


def with_ones(X: np.ndarray) -> np.ndarray:
    """Rows with an intercept, of norm at most 1."""
    return np.hstack([X, np.ones((len(X), 1))]) / np.sqrt(2.0)


def measure(name: str, epsilon: float) -> list[str]:
    """Lines of the results file for one data set and ε."""
    scores: dict[str, list[float]] = {mechanism: [] for mechanism in MECHANISMS}
    exact = []
    for seed in range(SPLITS):
        data = split(name, seed)
        X, X_test, y, y_test = with_ones(data.X), with_ones(data.X_test), data.y, data.y_test
        total = np.sum((y_test - y.mean()) ** 2)
        theta = cp.Variable(X.shape[1])
        problem = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(X @ theta - y)))
        best = np.linalg.lstsq(X, y, rcond=None)[0]
        exact.append(1.0 - np.sum((X_test @ best - y_test) ** 2) / total)
        for mechanism, perturbation in MECHANISMS.items():
            plan = cvxqop.plan(
                problem, private=[X, y], bounds=cvxqop.Bounds(row_norm=1.0, offset=1.0),
                epsilon=epsilon,
                delta=1e-6, adjacency="add_remove", perturbation=perturbation, seed=seed,
            )  # fmt: skip
            for _ in range(DRAWS):
                error = np.sum((X_test @ plan.run()[theta] - y_test) ** 2)
                scores[mechanism].append(1.0 - error / total)
    scores["least squares, not private"] = exact
    n, d = X.shape
    return [
        f'{name},{n},{d},"{mechanism}",{epsilon:g},{np.median(values):.4f}'
        for mechanism, values in scores.items()
    ]


def main() -> None:
    header = [
        f"# {describe_machine()}",
        f"# median test R² of {SPLITS} splits × {DRAWS} draws; squared loss on targets of ±1",
        "dataset,n_train,d,mechanism,epsilon,r2_median",
    ]
    lines = []
    for name in CLASSIFICATION:
        for epsilon in EPSILONS:
            lines += measure(name, epsilon)
        print(name, file=sys.stderr)
    RESULTS.write_text("\n".join(header + lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
