"""Test R² of private least squares on real data, for the protocol of peers_data.py.

    OMP_NUM_THREADS=1 python benchmarks/peers_regression.py            # all six data sets
    OMP_NUM_THREADS=1 python benchmarks/peers_regression.py diabetes ames

For each data set, ε and split, one `plan` is made and run 20 times: everything goes through the
public interface, and each run reads the records and draws afresh. Written to
results/peers_regression.csv: medians over 10 splits × 20 draws, and the standard error of the
median by a bootstrap over splits (1,000 resamples of 10 splits with all their draws), since the
draws of one split share its data.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import cvxpy as cp
import numpy as np
from machine import describe_machine
from peers_data import REGRESSION, Split, split

import cvxqop

EPSILONS = (0.1, 0.5, 1.0, 2.0, 4.0, 8.0)
DELTA = 1e-6
SPLITS, DRAWS, RESAMPLES = 10, 20, 1000
RESULTS = Path(__file__).resolve().parent / "results" / "peers_regression.csv"


MECHANISMS = {
    "wishart": ("squared", "wishart"),
    "wishart, floor": ("squared", cvxqop.Wishart(curvature="floor")),
    "gaussian": ("squared", "gaussian"),
    "gaussian, 2 stages": ("squared", cvxqop.Gaussian(stages=2)),
    "linear, Huber loss": ("huber", "linear"),
    "linear, clipped": ("squared", cvxqop.Linear(clip=0.25)),
}


def private_scores(
    data: Split, mechanism: str, epsilon: float, draws: int, seed: int
) -> list[float]:
    """Test R² of this many releases."""
    loss, perturbation = MECHANISMS[mechanism]
    theta = cp.Variable(data.X.shape[1])
    residual = data.X @ theta - data.y
    terms = cp.sum_squares(residual) if loss == "squared" else cp.sum(cp.huber(residual, 1.0))
    problem = cp.Problem(cp.Minimize(0.5 * terms))
    plan = cvxqop.plan(
        problem,
        private=[data.X, data.y],
        bounds=cvxqop.Bounds(row_norm=1.0, offset=1.0),
        epsilon=epsilon,
        delta=DELTA,
        adjacency="add_remove",
        perturbation=perturbation,
        seed=seed,
    )
    scores = []
    for _ in range(draws):
        solution = plan.run()
        scores.append(data.r_squared(solution[theta]))
    return scores


def standard_error(scores: np.ndarray) -> float:
    """Of the median of scores (splits × draws), by resampling splits."""
    rng = np.random.default_rng(0)
    chosen = rng.integers(len(scores), size=(RESAMPLES, len(scores)))
    return float(np.std([np.median(scores[rows]) for rows in chosen], ddof=1))


def measure(name: str, splits: int, draws: int) -> list[str]:
    """Lines of the results file for one data set."""
    data = [split(name, seed) for seed in range(splits)]
    n, d = data[0].X.shape
    exact = np.array(
        [[one.r_squared(np.linalg.lstsq(one.X, one.y, rcond=None)[0])] for one in data]
    )
    lines = [f"{name},{n},{d},none,inf,{np.median(exact):.4f},{standard_error(exact):.4f}"]
    for mechanism in MECHANISMS:
        for epsilon in EPSILONS:
            scores = np.array(
                [
                    private_scores(one, mechanism, epsilon, draws, seed)
                    for seed, one in enumerate(data)
                ]
            )
            middle, error = np.median(scores), standard_error(scores)
            lines.append(f'{name},{n},{d},"{mechanism}",{epsilon:g},{middle:.4f},{error:.4f}')
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help=f"of {', '.join(REGRESSION)}; all if none")
    parser.add_argument("--splits", type=int, default=SPLITS)
    parser.add_argument("--draws", type=int, default=DRAWS)
    options = parser.parse_args()
    unknown = set(options.names) - REGRESSION.keys()
    if unknown:
        parser.error(f"no such data set: {', '.join(sorted(unknown))}")

    header = [
        f"# {describe_machine()}",
        f"# median test R² of {options.splits} splits × {options.draws} draws; "
        "add_remove, anchor 0, delta = 1e-6; mechanism none is ordinary least squares",
        "dataset,n_train,d,mechanism,epsilon,r2_median,r2_median_se",
    ]
    print(*header, sep="\n")
    lines = []
    for name in options.names or REGRESSION:
        start = time.perf_counter()
        found = measure(name, options.splits, options.draws)
        print(*found, sep="\n")
        print(f"{name}: {time.perf_counter() - start:.1f} s", file=sys.stderr)
        lines += found
    if not options.names and (options.splits, options.draws) == (SPLITS, DRAWS):
        RESULTS.write_text("\n".join(header + lines) + "\n", encoding="utf-8")
        print(f"written to {RESULTS.name}", file=sys.stderr)


if __name__ == "__main__":
    main()
