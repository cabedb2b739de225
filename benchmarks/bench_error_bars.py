"""Time of 1,000 redraws: least squares and LASSO with 10 and with 100 features, and other rests.

    OMP_NUM_THREADS=1 python benchmarks/bench_error_bars.py

Written to results/bench_error_bars.md: the quickest of three runs; rests that are not solved all at
once are timed for 100 redraws and multiplied by ten.
"""

from __future__ import annotations

import time
from pathlib import Path

import cvxpy as cp
import numpy as np
from coverage import simulated
from machine import describe_machine

import cvxqop

RESULT = Path(__file__).resolve().parent / "results" / "bench_error_bars.md"
DRAWS = 1000


def seconds(loss: cvxqop.PrivateLoss, r: object, C: list[object], draws: int, runs: int) -> float:
    """The quickest of some runs."""
    best = float("inf")
    for _ in range(runs):
        start = time.perf_counter()
        loss.error_bars(r, C, draws=draws)
        best = min(best, time.perf_counter() - start)
    return best * DRAWS / draws


def main() -> None:
    lines = [
        "# Time of error bars",
        "",
        f"{describe_machine()}. Seconds for {DRAWS} redraws, one thread.",
        "",
        "| problem | d = 10 | d = 100 |",
        "| --- | --- | --- |",
    ]
    rows: dict[str, list[float]] = {}
    for d in (10, 100):
        X, y = simulated(d, 50_000)
        theta = cp.Variable(d)
        loss = cvxqop.private_loss(
            0.5 * cp.sum_squares(X @ theta - y), private=[X, y], epsilon=1.0, delta=1e-6,
            bounds=cvxqop.Bounds(row_norm=1.0, offset=1.0),
        )  # fmt: skip
        force = float(np.abs(loss.first_gradient).max())
        groups = sum(cp.norm(theta[j : j + 5]) for j in range(0, d, 5))
        for name, r, C, draws in (
            ("least squares", None, [], DRAWS),
            ("LASSO", 0.05 * force * cp.norm1(theta), [], DRAWS),
            ("box", None, [cp.abs(theta) <= 0.5], DRAWS),
            ("group LASSO", 0.05 * force * groups, [], 100),
            ("simplex", None, [theta >= 0, cp.sum(theta) == 1], 100),
        ):
            runs = 3 if draws == DRAWS else 1
            rows.setdefault(name, []).append(seconds(loss, r, C, draws, runs))
    lines += [f"| {name} | {a:.2f} | {b:.1f} |" for name, (a, b) in rows.items()]
    RESULT.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
