"""Test R² of private least squares on real data, for the protocol of peers_data.py.

    OMP_NUM_THREADS=1 python benchmarks/peers_regression.py            # all six data sets
    OMP_NUM_THREADS=1 python benchmarks/peers_regression.py diabetes ames
    OMP_NUM_THREADS=1 python benchmarks/peers_regression.py --only "gaussian, 6 stages"

For each data set, ε and split, one `plan` is made and run 20 times: everything goes through the
public interface, and each run reads the records and draws afresh. AdaSSP is `peers/adassp.py`, on
the same splits with as many draws. Written to results/peers_regression.csv: medians over 10 splits
× 20 draws, and the standard error of the median by a bootstrap over splits (1,000 resamples of 10
splits with all their draws), since the draws of one split share its data; and a table of the
medians to results/peers_regression.md.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import cvxpy as cp
import numpy as np
from machine import describe_machine
from peers_data import REGRESSION, Split, split

import cvxqop

sys.path.append(str(Path(__file__).resolve().parent / "peers"))
from adassp import METHODS as ADASSP
from method import Task

EPSILONS = (0.1, 0.5, 1.0, 2.0, 4.0, 8.0)
DELTA = 1e-6
SPLITS, DRAWS, RESAMPLES = 10, 20, 1000
RESULTS = Path(__file__).resolve().parent / "results" / "peers_regression.csv"


def private_scores(
    data: Split, epsilon: float, draws: int, seed: int, *, loss: str, perturbation: object
) -> list[float]:
    """Test R² of this many releases of one plan."""
    theta = cp.Variable(data.X.shape[1])
    residual = data.X @ theta - data.y
    terms = cp.sum_squares(residual) if loss == "squared" else cp.sum(cp.huber(residual, 1.0))
    plan = cvxqop.plan(
        cp.Problem(cp.Minimize(0.5 * terms)),
        private=[data.X, data.y],
        bounds=cvxqop.Bounds(row_norm=1.0, offset=1.0),
        epsilon=epsilon,
        delta=DELTA,
        adjacency="add_remove",
        perturbation=perturbation,
        seed=seed,
    )
    return [data.r_squared(plan.run()[theta]) for _ in range(draws)]


def adassp_scores(data: Split, epsilon: float, draws: int, seed: int, *, which: int) -> list[float]:
    """The same of AdaSSP."""
    n, d = data.X.shape
    draw = ADASSP[which].prepare(Task(n, d, epsilon, delta=DELTA), data.X, data.y, seed)
    return [data.r_squared(draw().theta) for _ in range(draws)]


def gaussian(**options: object) -> Callable[..., list[float]]:
    return partial(private_scores, loss="squared", perturbation=cvxqop.Gaussian(**options))


MECHANISMS: dict[str, Callable[..., list[float]]] = {
    "AdaSSP, constants of the paper": partial(adassp_scores, which=0),
    "AdaSSP, exact accounting": partial(adassp_scores, which=1),
    "linear, Huber loss": partial(private_scores, loss="huber", perturbation="linear"),
    "linear, clipped": partial(
        private_scores, loss="squared", perturbation=cvxqop.Linear(clip=0.25)
    ),
    "wishart": partial(private_scores, loss="squared", perturbation="wishart"),
    "wishart, floor": partial(
        private_scores, loss="squared", perturbation=cvxqop.Wishart(curvature="floor")
    ),
    "gaussian, ridge": gaussian(curvature="ridge"),
    "gaussian": gaussian(stages=1),
    "gaussian, 2 stages": gaussian(stages=2),
    "gaussian, 3 stages": gaussian(stages=3),
    "gaussian, 6 stages": gaussian(stages=6),
}


def standard_error(scores: np.ndarray) -> float:
    """Of the median of scores (splits × draws), by resampling splits."""
    rng = np.random.default_rng(0)
    chosen = rng.integers(len(scores), size=(RESAMPLES, len(scores)))
    return float(np.std([np.median(scores[rows]) for rows in chosen], ddof=1))


def measure(name: str, splits: int, draws: int, mechanisms: list[str]) -> list[str]:
    """Lines of the results file for one data set."""
    data = [split(name, seed) for seed in range(splits)]
    n, d = data[0].X.shape
    exact = np.array(
        [[one.r_squared(np.linalg.lstsq(one.X, one.y, rcond=None)[0])] for one in data]
    )
    lines = [f"{name},{n},{d},none,inf,{np.median(exact):.4f},{standard_error(exact):.4f}"]
    for mechanism in mechanisms:
        scores_of = MECHANISMS[mechanism]
        for epsilon in EPSILONS:
            scores = np.array(
                [scores_of(one, epsilon, draws, seed) for seed, one in enumerate(data)]
            )
            middle, error = np.median(scores), standard_error(scores)
            lines.append(f'{name},{n},{d},"{mechanism}",{epsilon:g},{middle:.4f},{error:.4f}')
    return lines


def merged(lines: list[str]) -> list[str]:
    """New lines in the place of those of the results file for the same mechanism, in order."""
    old = RESULTS.read_text(encoding="utf-8").splitlines() if RESULTS.exists() else []
    known = [line for line in old if line.partition(",")[0] in REGRESSION]
    rows = {tuple(next(csv.reader([line]))[i] for i in (0, 3, 4)): line for line in known + lines}
    names, mechanisms = list(REGRESSION), ["none", *MECHANISMS]
    kept = [key for key in rows if key[1] in mechanisms]
    kept.sort(key=lambda key: (names.index(key[0]), mechanisms.index(key[1]), float(key[2])))
    return [rows[key] for key in kept]


def markdown(lines: list[str]) -> str:
    """Medians with standard errors, one row a data set and mechanism."""
    rows = list(csv.reader(lines))
    cells = {(r[0], r[3], r[4]): f"{float(r[5]):.3f} ± {float(r[6]):.3f}" for r in rows}
    sizes = {r[0]: f"{int(r[1]):,} × {r[2]}" for r in rows}
    head = "| data | mechanism | " + " | ".join(f"ε = {e:g}" for e in EPSILONS) + " |"
    table = [head, "| --- | --- |" + " ---: |" * len(EPSILONS)]
    for name, size in sizes.items():
        for mechanism in dict.fromkeys(r[3] for r in rows if r[3] != "none"):
            values = " | ".join(cells.get((name, mechanism, f"{e:g}"), "") for e in EPSILONS)
            table.append(f"| {name} ({size}) | {mechanism} | {values} |")
        exact = f"| {name} ({size}) | least squares, not private |"
        table.append(exact + f" {cells[name, 'none', 'inf']} |" * len(EPSILONS))
    return "\n".join(table) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help=f"of {', '.join(REGRESSION)}; all if none")
    parser.add_argument("--splits", type=int, default=SPLITS)
    parser.add_argument("--draws", type=int, default=DRAWS)
    parser.add_argument(
        "--only", action="append", choices=list(MECHANISMS), help="mechanism; repeatable"
    )
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
        found = measure(name, options.splits, options.draws, options.only or list(MECHANISMS))
        print(*found, sep="\n")
        print(f"{name}: {time.perf_counter() - start:.1f} s", file=sys.stderr)
        lines += found
    if not options.names and (options.splits, options.draws) == (SPLITS, DRAWS):
        lines = merged(lines)
        RESULTS.write_text("\n".join(header + lines) + "\n", encoding="utf-8")
        title = "# Private least squares: test R², median ± its standard error\n\n"
        notes = "".join(f"{line[2:]}\n" for line in header[:2])
        text = title + notes + "\n" + markdown(lines)
        RESULTS.with_suffix(".md").write_text(text, encoding="utf-8")
        print(f"written to {RESULTS.name}", file=sys.stderr)


if __name__ == "__main__":
    main()
