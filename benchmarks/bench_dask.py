"""Time and memory of `privatize` on 10,000,000 × 50 records that Dask generates in chunks.

    python benchmarks/bench_dask.py                 # writes results/dask.md
    python benchmarks/bench_dask.py --rows 1000000  # any size, writes nothing

A squared loss with ‖θ‖₁ and a box; a chunk of 250,000 records (100 MB) is generated where it is
read and is not kept, so that 4 GB pass through the workers. Each measurement is a process of its
own, with one BLAS thread:

  - one process: the same chunks, generated as ``glm_loss`` reads them, one after the other;
  - threads: Dask arrays with the scheduler of threads;
  - two workers: a LocalCluster of two processes of one thread each, the settings of malloc below;
  - two workers, malloc of Dask: without these settings.

They take turns; the medians are reported. Starting a cluster is not counted. The memory of the
client is VmHWM in /proc/self/status (Linux) when the release is there, that of workers likewise.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from machine import describe_machine

ROWS, FEATURES, CHUNK, REPEATS = 10_000_000, 50, 250_000, 2
RESULTS = Path(__file__).resolve().parent / "results" / "dask.md"
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
MALLOC = {"MALLOC_TRIM_THRESHOLD_": str(1 << 30), "MALLOC_MMAP_THRESHOLD_": str(1 << 25)}
RUNS = {
    "process": "one process, chunk by chunk",
    "threads": "Dask arrays, scheduler of threads",
    "workers": "Dask arrays, LocalCluster of two workers",
    "plain": "the same, settings of malloc as Dask has them",
}


def chunk(k: int, rows: int = CHUNK) -> Any:
    """Records of chunk k with a target, (rows, FEATURES + 1)."""
    rng = np.random.default_rng(k)
    table = np.empty((rows, FEATURES + 1))
    X = table[:, :FEATURES]
    X[...] = rng.random((rows, FEATURES)) - 0.5
    X *= 0.5 / np.sqrt(FEATURES)
    table[:, FEATURES] = X[:, :5].sum(axis=1)
    return table


class Chunks:
    """Columns of all chunks as an array that is read by slices of rows; the last chunk is kept."""

    last: tuple[int, Any] = (-1, None)

    def __init__(self, n: int, columns: Any) -> None:
        self._columns, self.dtype = columns, np.dtype(float)
        self.shape = (n, FEATURES) if isinstance(columns, slice) else (n,)
        self.edges = np.arange(0, n + 1, CHUNK)

    def __getitem__(self, key: slice) -> Any:
        k = key.start // CHUNK
        if Chunks.last[0] != k:
            Chunks.last = (k, chunk(k))
        return Chunks.last[1][key.start - k * CHUNK : key.stop - k * CHUNK, self._columns]


def lazy(n: int) -> tuple[Any, Any]:
    """The same as Dask arrays."""
    import dask.array as da

    table = da.map_blocks(
        lambda block_id: chunk(block_id[0]),
        chunks=((CHUNK,) * (n // CHUNK), (FEATURES + 1,)),
        dtype=float,
        meta=np.empty((0, 0)),
    )
    return table[:, :FEATURES], table[:, FEATURES]


def privatize(X: Any, y: Any) -> Any:
    import cvxpy as cp

    import cvxqop

    theta = cp.Variable(FEATURES)
    loss = 0.5 * cvxqop.glm_loss("squared", X, y, theta) + 5.0 * cp.norm1(theta)
    return cvxqop.privatize(
        cp.Problem(cp.Minimize(loss), [cp.norm_inf(theta) <= 10]), private=[], seed=1,
        bounds=cvxqop.Bounds(row_norm=1.0, offset=1.0), epsilon=1.0, delta=1e-6,
    )  # fmt: skip


def peak() -> float:
    """MB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1000


def serial_executor() -> None:
    from cvxqop.problem.records import executors

    executors.workers = lambda: 1


def measured(run: str, n: int) -> None:
    privatize(np.zeros((500, FEATURES)), np.zeros(500))  # imports, compiled solvers
    found: dict[str, Any] = {}
    with contextlib.ExitStack() as stack:
        client = None
        if run == "process":
            serial_executor()
            X, y = Chunks(n, slice(FEATURES)), Chunks(n, FEATURES)
        else:
            import dask

            X, y = lazy(n)
            if run == "threads":
                stack.enter_context(dask.config.set(scheduler="threads"))
            else:
                client = cluster(stack, MALLOC if run == "workers" else {})
        before = sum(client.run(time.process_time).values()) if client else float("nan")
        start, worked = time.perf_counter(), time.process_time()
        solution = privatize(X, y)
        found["seconds"] = time.perf_counter() - start
        found["worked"], found["peak"] = time.process_time() - worked, peak()
        after = sum(client.run(time.process_time).values()) if client else float("nan")
        found["by_workers"] = after - before
        found["workers"] = max(client.run(peak).values()) if client else float("nan")
        found["hessian"] = float(np.sum(solution.private_loss.hessian)).hex()
    print(json.dumps(found))


def cluster(stack: contextlib.ExitStack, malloc: dict[str, str]) -> Any:
    import dask
    from distributed import Client, LocalCluster

    known = dask.config.get("distributed.nanny.pre-spawn-environ", {})
    environment = {"distributed.nanny.pre-spawn-environ": {**known, **ONE_THREAD, **malloc}}
    stack.enter_context(dask.config.set(environment))
    made = stack.enter_context(
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0")
    )
    client = stack.enter_context(Client(made))
    client.run(lambda: __import__("cvxqop") and None)
    return client


def measure(run: str, n: int) -> dict[str, Any]:
    """One run in a process of its own."""
    command = [sys.executable, str(Path(__file__).resolve()), "--measure", run, str(n)]
    environment = {**os.environ, **ONE_THREAD}
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=environment)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def page(n: int) -> list[str]:
    """The results as a page."""
    peers = ", ".join(f"{name} {version(name)}" for name in ("dask", "distributed"))
    found = [{run: measure(run, n) for run in RUNS} for _ in range(REPEATS)]
    forms = {turn[run]["hessian"] for turn in found for run in RUNS}
    serial = statistics.median(turn["process"]["seconds"] for turn in found)
    lines = [
        f"# A squared loss on {n:,} × {FEATURES} records in chunks of {CHUNK:,}",
        "",
        f"{describe_machine()}, {peers}, one BLAS thread. Made by `benchmarks/bench_dask.py`, "
        f"which says how: medians of {REPEATS} runs that took turns. Load of the machine before "
        f"and after (os.getloadavg, one minute): {LOAD[0]:.1f} and {os.getloadavg()[0]:.1f}.",
        "",
        "Released quadratic forms, same seed: "
        + ("equal to the bit." if len(forms) == 1 else f"{len(forms)} different ones."),
        "",
        "| | seconds | ratio | client's CPU, s | workers' CPU, s | client, MB | a worker, MB |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for run, words in RUNS.items():
        median = {
            key: statistics.median(turn[run][key] for turn in found)
            for key in ("seconds", "worked", "by_workers", "peak", "workers")
        }
        apart = not np.isnan(median["workers"])
        worker, by_workers = (
            (f"{median['workers']:.0f}", f"{median['by_workers']:.1f}") if apart else ("", "")
        )
        lines.append(
            f"| {words} | {median['seconds']:.1f} | {median['seconds'] / serial:.2f} "
            f"| {median['worked']:.1f} | {by_workers} | {median['peak']:.0f} | {worker} |"
        )
    return lines


LOAD = os.getloadavg()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, help="another number of rows, nothing written")
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        measured(options.measure[0], int(options.measure[1]))
    elif options.rows:
        print("\n".join(page(options.rows)))
    else:
        RESULTS.write_text("\n".join(page(ROWS)) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
