"""What a wrong hint for the radius costs: test R² of the Gaussian ensemble on real data.

    OMP_NUM_THREADS=1 python benchmarks/wrong_radius.py

`radius` moves the shares of the privacy between curvature and gradients. The protocol is that of
peers_regression.py; the hint is the default, B/R = 1 here, times ¼, 1 and 4. Written to
results/wrong_radius.csv: median test R² of 10 splits × 10 draws, add_remove, δ = 1e-6.
"""

from __future__ import annotations

import sys
from pathlib import Path

import cvxpy as cp
import numpy as np
from machine import describe_machine
from peers_data import Split, split

import cvxqop

DATA = ("diabetes", "abalone", "ames")
EPSILONS = (0.1, 0.5, 1.0, 2.0, 4.0, 8.0)
SPLITS, DRAWS = 10, 10
STAGES = (1, 6)
FACTORS = (0.25, 1.0, 4.0)
RESULTS = Path(__file__).resolve().parent / "results" / "wrong_radius.csv"


def scores(data: Split, epsilon: float, stages: int, radius: float, seed: int) -> list[float]:
    """Test R² of the releases of one plan."""
    theta = cp.Variable(data.X.shape[1])
    plan = cvxqop.plan(
        cp.Problem(cp.Minimize(0.5 * cp.sum_squares(data.X @ theta - data.y))),
        private=[data.X, data.y],
        bounds=cvxqop.Bounds(row_norm=1.0, offset=1.0),
        epsilon=epsilon,
        delta=1e-6,
        adjacency="add_remove",
        perturbation=cvxqop.Gaussian(stages=stages),
        radius=radius,
        seed=seed,
    )
    return [data.r_squared(plan.run()[theta]) for _ in range(DRAWS)]


def main() -> None:
    lines = [
        f"# {describe_machine()}",
        f"# median test R² of {SPLITS} splits × {DRAWS} draws; add_remove, anchor 0, delta = 1e-6",
        "dataset,stages,radius,epsilon,r2_median",
    ]
    for name in DATA:
        splits = [split(name, seed) for seed in range(SPLITS)]
        for stages in STAGES:
            for radius in FACTORS:
                for epsilon in EPSILONS:
                    found = [
                        scores(data, epsilon, stages, radius, seed)
                        for seed, data in enumerate(splits)
                    ]
                    lines.append(f"{name},{stages},{radius:g},{epsilon:g},{np.median(found):.4f}")
        print(name, file=sys.stderr)
    RESULTS.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
