"""Time and memory of `privatize` on a LASSO with a box, against the Gram product and CVXPY.

    python benchmarks/bench_privatize.py             # writes results/bench_privatize.md
    python benchmarks/bench_privatize.py --quick     # the smallest size only, writes nothing

One BLAS thread, everything in the same run. Each size is measured in a process of its own, which
  1. makes the data, touches the library once on a tiny problem (imports, compiled solvers),
  2. times `X.T @ X` and `privatize` in turn, 7 times (3 for the largest size): medians,
  3. before those, resets the peak resident memory (/proc/self/clear_refs, Linux) and reads how far
     it rises during one `privatize`: the user's arrays and CVXPY's copy of them exist already, so
     the rise is what `privatize` adds.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import cvxpy as cp
import numpy as np
from machine import describe_machine

import cvxqop

SIZES = ((10_000, 50), (100_000, 100), (1_000_000, 50))
TYPED = (100_000, 100)  # where the problem as typed is given to CLARABEL
RESULTS = Path(__file__).resolve().parent / "results" / "bench_privatize.md"
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
BOUNDS = cvxqop.Bounds(row_norm=1.0, offset=1.0)


def lasso(n: int, d: int) -> tuple[cp.Problem, np.ndarray, np.ndarray]:
    """A LASSO with a box on n records: rows of norm about 1/2, sparse truth, targets in [-1, 1]."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    X *= 0.5 / np.sqrt(d)
    truth = np.where(np.arange(d) < 5, 1.0, 0.0)
    y = np.clip(X @ truth + 0.1 * rng.standard_normal(n), -1.0, 1.0)
    theta = cp.Variable(d)
    loss = 0.5 * cp.sum_squares(X @ theta - y)
    problem = cp.Problem(cp.Minimize(loss + 5.0 * cp.norm1(theta)), [cp.norm_inf(theta) <= 5])
    return problem, X, y


def privatize(problem: cp.Problem, X: np.ndarray, y: np.ndarray) -> None:
    cvxqop.privatize(problem, private=[X, y], bounds=BOUNDS, epsilon=1.0, delta=1e-6)


def seconds(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def resident(field: str) -> float:
    """VmRSS (now) or VmHWM (peak since the last reset) in MB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) / 1000
    raise OSError(f"no {field} in /proc/self/status")


def extra_memory(action: Callable[[], object]) -> float | None:
    """Growth of the resident memory at its peak during the action, in MB; None off Linux."""
    gc.collect()
    try:
        Path("/proc/self/clear_refs").write_text("5")
        before = resident("VmRSS")
        action()
        return resident("VmHWM") - before
    except OSError:
        action()
        return None


def measure(n: int, d: int) -> dict[str, float | None]:
    """All numbers of one size; called in a process of its own."""
    privatize(*lasso(50, 3))
    problem, X, y = lasso(n, d)
    memory = extra_memory(lambda: privatize(problem, X, y))
    repeats = 3 if n >= 1_000_000 else 7
    gram, total = [], []
    for _ in range(repeats):
        gram.append(seconds(lambda: X.T @ X))
        total.append(seconds(lambda: privatize(problem, X, y)))
    found: dict[str, float | None] = {
        "gram": statistics.median(gram),
        "total": statistics.median(total),
        "data": (X.nbytes + y.nbytes) / 1e6,
        "memory": memory,
        "typed": None,
    }
    if (n, d) == TYPED:
        found["typed"] = seconds(lambda: problem.solve(solver="CLARABEL"))
    return found


def one_thread() -> dict[str, str]:
    """One BLAS thread; it is read once, when numpy loads its BLAS."""
    return {**os.environ, **ONE_THREAD}


def in_its_own_process(n: int, d: int) -> dict[str, float | None]:
    command = [sys.executable, str(Path(__file__).resolve()), "--measure", str(n), str(d)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=one_thread())
    return json.loads(done.stdout.splitlines()[-1])


def report(sizes: tuple[tuple[int, int], ...]) -> list[str]:
    """The results as a page."""
    page = [
        "# `privatize` on a LASSO with a box",
        "",
        f"{describe_machine()}, one BLAS thread. Made by `benchmarks/bench_privatize.py`, which "
        "says how. Default adjacency and solver, ε = 1, δ = 1e-6.",
        "",
        "| n | d | `X.T @ X`, s | `privatize`, s | 3 × Gram + 0.25, s | data, MB "
        "| extra peak memory, MB | CVXPY as typed, CLARABEL, s |",
        "| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for n, d in sizes:
        found = in_its_own_process(n, d)
        gram, total, typed = found["gram"], found["total"], found["typed"]
        memory = "" if found["memory"] is None else f"{found['memory']:.0f}"
        peer = "" if typed is None else f"{typed:.1f} ({typed / total:.0f} times `privatize`)"
        page.append(
            f"| {n:,} | {d} | {gram:.3f} | {total:.3f} | {3 * gram + 0.25:.3f} "
            f"| {found['data']:.0f} | {memory} | {peer} |"
        )
        print(page[-1])
    return page


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="the smallest size, nothing written")
    parser.add_argument("--measure", nargs=2, type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(*options.measure)))
    elif options.quick:
        report(SIZES[:1])
    else:
        RESULTS.write_text("\n".join(report(SIZES)) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
