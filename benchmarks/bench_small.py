"""Processor time of `privatize` where the data are few, and where the features are many.

    python benchmarks/bench_small.py             # writes results/bench_small.md
    python benchmarks/bench_small.py --quick     # the smallest problem only, writes nothing

One BLAS thread, processor time of the whole process, imports left out. Each problem has a process
of its own: the first call, and the median of the next five. Peers in the same process: CVXPY with
CLARABEL on the same problem without privacy, and, for many features, one `scipy.linalg.eigh` of
that side. Peak memory is that of the process after the first call, over what it held before.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import cvxpy as cp
import numpy as np
import scipy.linalg
from bench_privatize import BOUNDS, lasso, one_thread
from machine import describe_machine

import cvxqop

SMALL = {"squared": ((300, 100), (10_000, 50)), "logistic": ((300, 100), (10_000, 50))}
MANY = (5_000, 3_000)
RESULTS = Path(__file__).resolve().parent / "results" / "bench_small.md"


def logistic(n: int, d: int) -> tuple[cp.Problem, np.ndarray, np.ndarray]:
    """The rows of `lasso` with the signs of its targets as labels."""
    _, X, y = lasso(n, d)
    labels = np.where(y > 0.0, 1.0, -1.0)
    theta = cp.Variable(d)
    loss = cp.sum(cp.logistic(-cp.multiply(labels, X @ theta)))
    problem = cp.Problem(cp.Minimize(loss + 5.0 * cp.norm1(theta)), [cp.norm_inf(theta) <= 5])
    return problem, X, labels


def seconds(action: Callable[[], object]) -> float:
    start = time.process_time()
    action()
    return time.process_time() - start


def privatize(problem: cp.Problem, X: np.ndarray, y: np.ndarray) -> None:
    cvxqop.privatize(problem, private=[X, y], bounds=BOUNDS, epsilon=1.0, delta=1e-6)


def measure(loss: str, n: int, d: int) -> dict[str, float]:
    """All numbers of one problem; called in a process of its own."""
    make = lasso if loss == "squared" else logistic
    problem = make(n, d)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    first = seconds(lambda: privatize(*problem))
    memory = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1000
    found = {"first": first, "memory": memory}
    if (n, d) == MANY:
        A = np.random.default_rng(0).standard_normal((d, d))
        A += A.T
        return {**found, "eigh": seconds(lambda: scipy.linalg.eigh(A))}
    later = [make(n, d) for _ in range(5)]
    found["later"] = statistics.median(seconds(lambda p=p: privatize(*p)) for p in later)
    solver = {"solver": "CLARABEL"}
    found["peer"] = statistics.median(seconds(lambda p=p: p[0].solve(**solver)) for p in later[:3])
    return found


def in_its_own_process(loss: str, n: int, d: int) -> dict[str, float]:
    command = [sys.executable, str(Path(__file__).resolve()), "--measure", loss, str(n), str(d)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=one_thread())
    return json.loads(done.stdout.splitlines()[-1])


def small(cases: dict[str, tuple[tuple[int, int], ...]]) -> list[str]:
    page = [
        "| loss | n | d | first call, ms | later calls, ms | CVXPY, no privacy, ms | later/CVXPY |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for loss, sizes in cases.items():
        for n, d in sizes:
            found = in_its_own_process(loss, n, d)
            first, later, peer = (1e3 * found[name] for name in ("first", "later", "peer"))
            page.append(
                f"| {loss} | {n:,} | {d} | {first:.0f} | {later:.0f} | {peer:.0f} "
                f"| {later / peer:.2f} |"
            )
            print(page[-1])
    return page


def many() -> list[str]:
    found = in_its_own_process("squared", *MANY)
    first, eigh, memory = found["first"], found["eigh"], found["memory"]
    page = [
        "| n | d | `privatize`, s | one `eigh`, s | ratio | extra peak memory, MB |",
        "| ---: | ---: | ---: | ---: | ---: | ---: |",
        f"| {MANY[0]:,} | {MANY[1]:,} | {first:.1f} | {eigh:.1f} | {first / eigh:.1f} "
        f"| {memory:.0f} |",
    ]
    print(page[-1])
    return page


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="the smallest only, nothing written")
    parser.add_argument("--measure", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        loss, n, d = options.measure
        print(json.dumps(measure(loss, int(n), int(d))))
    elif options.quick:
        small({"squared": SMALL["squared"][:1]})
    else:
        page = [
            "# `privatize` on few records, and on many features",
            "",
            f"{describe_machine()}, one BLAS thread. Made by `benchmarks/bench_small.py`, which "
            "says how. Default adjacency and solver, ε = 1, δ = 1e-6.",
            "",
            *small(SMALL),
            "",
            *many(),
        ]
        RESULTS.write_text("\n".join(page) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
