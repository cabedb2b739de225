"""cvxqop beside other private methods on real data: one split, one ε, one δ for all.

    python benchmarks/peers/run.py                                               # all, with tables
    python benchmarks/peers/run.py regression                                    # one results file
    python benchmarks/peers/run.py regression diabetes --methods cvxqop AdaSSP   # prints only
    python benchmarks/peers/run.py regression --methods cvxqop --update          # replaces rows

See benchmarks/README.md for the data and the environment. Test R² or accuracy, its median over
10 splits × 20 draws (fewer where the file says so) and the standard error of that median by a
bootstrap over splits with all their draws, since the draws of one split share its data; and the
median processor time of one fit on one BLAS thread. What does not depend on records (calibration,
compilation) is timed apart, at the first split; later ones find it done.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from pathlib import Path

import adassp
import cvxqop_fit
import diffprivlib_fit
import dpsgd
import lop
import numpy as np
import plain
import table
from method import Method, Task
from threadpoolctl import threadpool_limits

sys.path.append(str(Path(__file__).resolve().parents[1]))

from machine import describe_machine
from peers_data import CLASSIFICATION, REGRESSION, Split, split

EPSILONS = (0.1, 0.5, 1.0, 2.0, 4.0, 8.0)
SPLITS, DRAWS, RESAMPLES = 10, 20, 1000
RESULTS = Path(__file__).resolve().parents[1] / "results" / "peers"
KINDS = {
    "regression": (
        REGRESSION,
        (
            *cvxqop_fit.REGRESSION,
            *adassp.METHODS,
            *lop.REGRESSION,
            *dpsgd.REGRESSION,
            *diffprivlib_fit.REGRESSION,
            *plain.REGRESSION,
        ),
    ),
    "classification": (
        CLASSIFICATION,
        (
            *cvxqop_fit.CLASSIFICATION,
            *lop.CLASSIFICATION,
            *dpsgd.CLASSIFICATION,
            *diffprivlib_fit.CLASSIFICATION,
            *plain.CLASSIFICATION,
        ),
    ),
}
COLUMNS = [
    "dataset", "n_train", "d", "method", "epsilon", "score_median", "score_se", "splits", "draws",
    "setup_ms", "fit_ms",
]  # fmt: skip
LIBRARIES = ("diffprivlib", "jax_privacy", "dp-accounting", "scikit-learn")


def standard_error(scores: np.ndarray) -> float:
    """Of the median of scores (splits × draws), by resampling splits."""
    rng = np.random.default_rng(0)
    chosen = rng.integers(len(scores), size=(RESAMPLES, len(scores)))
    return float(np.std(np.median(scores[chosen], axis=(1, 2)), ddof=1))


def measure(
    name: str, data: list[Split], method: Method, epsilon: float, draws: int
) -> dict[str, object]:
    """One row of the results: one data set, method and ε."""
    n, d = data[0].X.shape
    scores, setups, times = [], [], []
    for seed, one in enumerate(data):
        task = Task(n, d, epsilon, one.column_bound)
        start = time.process_time()
        draw = method.prepare(task, one.X, one.y, seed)
        setups.append(time.process_time() - start)
        for _ in range(draws):
            start = time.process_time()
            fit = draw()
            times.append(time.process_time() - start)
            score = one.r_squared if name in REGRESSION else one.accuracy
            scores.append(score(fit.theta, fit.intercept))
    releases = np.array(scores).reshape(len(data), draws)
    numbers = (
        name, n, d, method.name, f"{epsilon:g}", f"{np.median(releases):.4f}",
        f"{standard_error(releases):.4f}", len(data), draws, f"{1e3 * setups[0]:.3g}",
        f"{1e3 * np.median(times):.3g}",
    )  # fmt: skip
    return dict(zip(COLUMNS, numbers, strict=True))


def stored(path: Path) -> list[dict[str, object]]:
    if not path.exists():
        return []
    with open(path, encoding="utf-8") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def write(path: Path, rows: list[dict[str, object]], names: list[str], order: list[str]) -> None:
    """The results file, its rows by data set and method."""
    from importlib.metadata import version

    rows = sorted(rows, key=lambda r: (names.index(r["dataset"]), order.index(r["method"])))
    others = ", ".join(f"{name} {version(name)}" for name in LIBRARIES)
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", encoding="utf-8", newline="") as file:
        print(f"# {describe_machine()}; {others}", file=file)
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kind", nargs="?", choices=KINDS, help="both, and the tables, if none")
    parser.add_argument("names", nargs="*", help="data sets; all if none")
    parser.add_argument("--methods", nargs="+", default=[""], help="beginnings of their names")
    parser.add_argument("--splits", type=int, default=SPLITS)
    parser.add_argument("--draws", type=int, default=DRAWS)
    parser.add_argument("--epsilons", type=float, nargs="+", default=EPSILONS)
    parser.add_argument("--update", action="store_true", help="replace these rows of the results")
    options = parser.parse_args()
    unknown = set(options.names) - KINDS[options.kind][0].keys() if options.names else set()
    if unknown:
        parser.error(f"no such data set: {', '.join(sorted(unknown))}")
    for kind in [options.kind] if options.kind else KINDS:
        compare(kind, options)
    if not options.kind:
        table.main()


def compare(kind: str, options: argparse.Namespace) -> None:
    """Measure the methods and data sets chosen; a full run or an update writes the results file."""
    known, methods = KINDS[kind]
    path, order = RESULTS / f"{kind}.csv", [m.name for m in methods]
    chosen = [m for m in methods if m.name.startswith(tuple(options.methods))]
    replaced = {m.name for m in chosen}
    whole = not options.names and options.methods == [""]
    printer = csv.DictWriter(sys.stdout, COLUMNS, lineterminator="\n")
    printer.writeheader()
    rows = stored(path) if options.update else []
    for name in options.names or known:
        data = [split(name, seed) for seed in range(options.splits)]
        rows = [r for r in rows if r["dataset"] != name or r["method"] not in replaced]
        for method in chosen:
            draws = min(options.draws, method.draws or options.draws)
            for epsilon in options.epsilons if method.private else (np.inf,):
                rows.append(measure(name, data, method, epsilon, draws))
                printer.writerow(rows[-1])
                sys.stdout.flush()
        if whole or options.update:
            write(path, rows, list(known), order)


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
