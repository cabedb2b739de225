"""What the size of an intercept's column and cut slopes are worth: logistic regression.

    OMP_NUM_THREADS=1 python benchmarks/intercept.py

On the nine classification sets of peers_data.py, add_remove, δ = 1e-6, no regulariser. "As it is"
has the column of ones among the private features, so that it stays what it is. Written to
results/intercept.csv: median test accuracy of 5 splits × 4 releases.
"""

from __future__ import annotations

import math
from pathlib import Path

import cvxpy as cp
import numpy as np
from machine import describe_machine
from peers_data import CLASSIFICATION, Split, split

import cvxqop

EPSILONS = (0.1, 0.5, 1.0, 2.0, 4.0, 8.0)
SPLITS, DRAWS = 5, 4
METHODS = {
    "linear, ones as they are": {"perturbation": "linear"},
    "linear": {"perturbation": "linear"},
    "clip='anchor'": {"perturbation": cvxqop.Linear(clip="anchor")},
    "keep_loss=False": {"keep_loss": False},
}
RESULTS = Path(__file__).resolve().parent / "results" / "intercept.csv"


def with_ones(X: np.ndarray) -> np.ndarray:
    return np.hstack([X, np.ones((len(X), 1))])


def scores(data: Split, method: str, epsilon: float, seed: int) -> list[float]:
    """Test accuracies of the releases on one split."""
    bare = method.endswith("as they are")
    X, X_test = (with_ones(data.X), with_ones(data.X_test)) if bare else (data.X, data.X_test)
    w, b = cp.Variable(X.shape[1]), 0.0 if bare else cp.Variable()
    term = cvxqop.glm_loss("logistic", X, data.y, w, intercept=None if bare else b)
    plan = cvxqop.plan(
        cp.Problem(cp.Minimize(term)), private=[], epsilon=epsilon, delta=1e-6, seed=seed,
        bounds=cvxqop.Bounds(row_norm=math.sqrt(2.0) if bare else 1.0),
        adjacency="add_remove", **METHODS[method],
    )  # fmt: skip
    found = []
    for _ in range(DRAWS):
        solution = plan.run()
        t = X_test @ solution[w] + (0.0 if bare else float(solution[b]))
        found.append(float(np.mean((t > 0) == (data.y_test > 0))))
    return found


def main() -> None:
    lines = [
        f"# {describe_machine()}",
        f"# test accuracy, median of {SPLITS} splits × {DRAWS} releases",
        "dataset,records,features,method,epsilon,accuracy",
    ]
    found: dict[tuple[str, str], list[float]] = {}
    for name in CLASSIFICATION:
        splits = [split(name, seed) for seed in range(SPLITS)]
        n, d = splits[0].X.shape
        for method in METHODS:
            for epsilon in EPSILONS:
                own = [scores(one, method, epsilon, k) for k, one in enumerate(splits)]
                median = float(np.median(own))
                lines.append(f'{name},{n},{d},"{method}",{epsilon:g},{median:.4f}')
                for key in (f"{epsilon:g}", "all"):
                    found.setdefault((method, key), []).append(median)
    for (method, key), values in found.items():
        lines.append(f'mean,,,"{method}",{key},{np.mean(values):.5f}')
    RESULTS.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
