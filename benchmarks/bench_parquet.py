"""Time and memory of `privatize` on Parquet files of 10,000,000 × 51 float32, and of polars.

    python benchmarks/bench_parquet.py                # writes results/parquet.md; 2.1 GB of disk
    python benchmarks/bench_parquet.py --rows 500000  # any size, writes nothing

A file is written to a temporary folder, once with row groups of 122,880 rows, once of 1,000,000,
and removed afterwards. Each measurement is a process of its own, on one BLAS thread:

  - cvxqop: `privatize` of a squared loss, `glm_loss` on `parquet_columns`, with ‖θ‖₁ and a box; the
    plan, clipping and the draw included; reading is by one thread;
  - polars: `scan_parquet(…).collect_batches()`, each batch as a float64 array Z, and the sum of
    Z'Z: no clipping; polars reads with as many threads as it likes;
  - the same in batches of 20,000 rows (``chunk_size=20_000``).

They take turns; the medians are reported. The files have just been written, so that they lie in the
page cache. The peak is VmHWM in /proc/self/status (Linux), of the whole process.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from machine import describe_machine

ROWS, FEATURES, REPEATS = 10_000_000, 50, 3
GROUPS = (122_880, 1_000_000)
RESULTS = Path(__file__).resolve().parent / "results" / "parquet.md"
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
RUNS = {
    "cvxqop": "`privatize` on `parquet_columns`",
    "polars": "polars `collect_batches()` and Z'Z",
    "small batches": "polars `collect_batches(chunk_size=20_000)` and Z'Z",
}


def generate(path: Path, n: int, group: int) -> None:
    """Columns x0 … x49 of rows of norm about 1/2, and a target y."""
    import pyarrow as pa
    from pyarrow import parquet

    rng = np.random.default_rng(0)
    schema = pa.schema([(f"x{j}", pa.float32()) for j in range(FEATURES)] + [("y", pa.float32())])
    # A dictionary of numbers that hardly repeat would only make the file larger.
    with parquet.ParquetWriter(path, schema, use_dictionary=False) as writer:
        for start in range(0, n, group):
            rows = min(group, n - start)
            columns = rng.standard_normal((FEATURES, rows), dtype=np.float32)
            columns *= np.float32(0.5 / np.sqrt(FEATURES))
            noise = rng.standard_normal(rows, dtype=np.float32)
            y = np.clip(columns[:5].sum(axis=0) + np.float32(0.1) * noise, -1, 1)
            writer.write_table(pa.table([*columns, y], schema=schema))


def privatize(path: str) -> None:
    """A squared loss on the file plus λ‖θ‖₁ inside a box."""
    import cvxpy as cp

    import cvxqop

    def call(X: Any, y: Any) -> None:
        theta = cp.Variable(FEATURES)
        loss = 0.5 * cvxqop.glm_loss("squared", X, y, theta) + 5.0 * cp.norm1(theta)
        cvxqop.privatize(
            cp.Problem(cp.Minimize(loss), [cp.norm_inf(theta) <= 10]), private=[],
            bounds=cvxqop.Bounds(row_norm=1.0, offset=1.0), epsilon=1.0, delta=1e-6,
        )  # fmt: skip

    call(np.zeros((500, FEATURES)), np.zeros(500))  # imports, compiled solvers
    report(lambda: call(*cvxqop.parquet_columns(path, target="y")))


def gram(path: str, **options: int) -> None:
    import polars as pl

    def call() -> None:
        total = np.zeros((FEATURES + 1, FEATURES + 1))
        for frame in pl.scan_parquet(path).collect_batches(**options):
            Z = frame.to_numpy().astype(np.float64)
            total += Z.T @ Z

    report(call)


def report(call: Any) -> None:
    start, worked = time.perf_counter(), time.process_time()
    call()
    seconds, worked = time.perf_counter() - start, time.process_time() - worked
    lines = Path("/proc/self/status").read_text().splitlines()
    peak = next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1000
    print(json.dumps({"seconds": seconds, "worked": worked, "peak": peak}))


def measure(run: str, path: str) -> dict[str, float]:
    """One run in a process of its own."""
    command = [sys.executable, str(Path(__file__).resolve()), "--measure", run, path]
    environment = {**os.environ, **ONE_THREAD}
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=environment)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def page(n: int) -> list[str]:
    """The results as a page."""
    with_peers = ", ".join(f"{name} {version(name)}" for name in ("pyarrow", "polars"))
    lines = [
        f"# A squared loss on Parquet files of {n:,} × {FEATURES + 1} float32",
        "",
        f"{describe_machine()}, {with_peers}, one BLAS thread. Made by "
        "`benchmarks/bench_parquet.py`, which says how: medians of "
        f"{REPEATS} runs that took turns.",
        "",
        "| rows of a row group | | seconds | of the processors | peak memory, MB |",
        "| ---: | --- | ---: | ---: | ---: |",
    ]
    for group in GROUPS:
        with tempfile.TemporaryDirectory(prefix="cvxqop-") as folder:
            path = Path(folder) / "records.parquet"
            generate(path, n, group)
            found = [{run: measure(run, str(path)) for run in RUNS} for _ in range(REPEATS)]
        for run, words in RUNS.items():
            median = {
                key: statistics.median(turn[run][key] for turn in found)
                for key in ("seconds", "worked", "peak")
            }
            lines.append(
                f"| {group:,} | {words} | {median['seconds']:.1f} | {median['worked']:.1f} "
                f"| {median['peak']:.0f} |"
            )
            print(lines[-1], flush=True)
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, help="another number of rows, nothing written")
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        run, path = options.measure
        if run == "cvxqop":
            privatize(path)
        else:
            gram(path, **({"chunk_size": 20_000} if run == "small batches" else {}))
    elif options.rows:
        page(options.rows)
    else:
        RESULTS.write_text("\n".join(page(ROWS)) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
