"""How often error bars cover: six real data sets, five problems, by ε and mechanism.

    OMP_NUM_THREADS=1 python benchmarks/coverage.py             # 200 releases × 200 redraws
    OMP_NUM_THREADS=1 python benchmarks/coverage.py --quick     # 60 releases, two ε, no groups

The truth is the solution of the same problem on the same records without noise; for population
intervals, least squares on the whole data set, from which each release draws its records with
replacement. Every release is a new draw of the noise. Data as in peers_data.py. Written to
results/coverage.csv (a line a cell) and results/coverage.md.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import cvxpy as cp
import numpy as np
import pandas as pd
from machine import describe_machine
from peers_data import REGRESSION, split

import cvxqop

BOUNDS = cvxqop.Bounds(row_norm=1.0, offset=1.0)
EPSILONS = (0.1, 0.5, 1.0, 4.0)
MECHANISMS = {
    "one stage": cvxqop.Gaussian(),
    "default": cvxqop.Gaussian(stages="adaptive"),
}
RESULTS = Path(__file__).resolve().parent / "results"
TINY = 1e-7


def problems(theta: cp.Variable, X: np.ndarray, y: np.ndarray, group: bool) -> dict[str, Any]:
    """r and C by name, scaled to the data: this is a measurement, not a release."""
    d, force = theta.size, float(np.abs(X.T @ y).max())
    usual = float(np.median(np.abs(np.linalg.lstsq(X, y, rcond=None)[0])))
    pairs = [theta[j : j + 2] for j in range(0, d, 2)]
    found: dict[str, Any] = {
        "least squares": (None, []),
        "ridge": (0.005 * float(np.sum(X**2)) / d * cp.sum_squares(theta), []),
        "LASSO": (0.05 * force * cp.norm1(theta), []),
        "box": (None, [cp.abs(theta) <= usual]),
    }
    if group:
        found["group LASSO"] = (0.05 * force * sum(cp.norm(pair) for pair in pairs), [])
    return found


def cell(**fields: Any) -> dict[str, Any]:
    """A line of the results."""
    return fields


def exact(theta: cp.Variable, X: np.ndarray, y: np.ndarray, rest: Any) -> np.ndarray:
    """The solution without noise, from its d × d form."""
    r, C = rest
    loss = 0.5 * cp.quad_form(theta, cp.psd_wrap(X.T @ X)) - (X.T @ y) @ theta
    tight = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), 1e-11)
    cp.Problem(cp.Minimize(loss if r is None else loss + r), C).solve("CLARABEL", **tight)
    return np.array(theta.value)


def released(X: np.ndarray, y: np.ndarray, theta: cp.Variable, **options: Any) -> Any:
    """One release of ½‖Xθ − y‖²."""
    return cvxqop.private_loss(
        0.5 * cp.sum_squares(X @ theta - y),
        private=[X, y],
        bounds=BOUNDS,
        delta=1e-6,
        **options,
    )


def of_the_solution(name: str, data: Any, sizes: Any, mechanism: str, epsilon: float) -> list[Any]:
    """Coverage of the solution without privacy, problem by problem."""
    X, y = data
    theta = cp.Variable(X.shape[1])
    rests = problems(theta, X, y, sizes.group)
    truths = {key: exact(theta, X, y, rest) for key, rest in rests.items()}
    hits: dict[str, list[Any]] = {key: [] for key in rests}
    narrow: dict[str, list[Any]] = {key: [] for key in rests}
    loose: list[Any] = []
    for seed in range(sizes.releases):
        loss = released(
            X, y, theta, epsilon=epsilon, adjacency=sizes.adjacency, seed=seed,
            perturbation=MECHANISMS.get(mechanism, cvxqop.Wishart()),
        )  # fmt: skip
        for key, (r, C) in rests.items():
            bars = loss.error_bars(r, C, draws=sizes.draws, seed=seed)
            loose.append(bars.undetermined[theta].mean())
            for level, kept in ((0.95, hits), (0.9, narrow)):
                low, high = np.quantile(
                    bars.draws, [0.5 - 0.5 * level, 0.5 + 0.5 * level], axis=0, method="weibull"
                )
                kept[key].append((low - TINY <= truths[key]) & (truths[key] <= high + TINY))
    return [
        cell(
            data=name, n=len(X), d=X.shape[1], adjacency=sizes.adjacency, mechanism=mechanism,
            epsilon=epsilon, problem=key, coverage95=np.mean(hits[key]),
            worst95=np.mean(hits[key], axis=0).min(), coverage90=np.mean(narrow[key]),
            undetermined=np.mean(loose),
        )
        for key in rests
    ]  # fmt: skip


def of_the_population(name: str, data: Any, sizes: Any, epsilon: float) -> list[Any]:
    """Coverage of least squares on the whole data set, from records drawn with replacement."""
    X, y = data
    theta, rng = cp.Variable(X.shape[1]), np.random.default_rng(7)
    truth = np.linalg.lstsq(X, y, rcond=None)[0]
    hits = []
    for seed in range(sizes.releases):
        rows = rng.integers(0, len(X), len(X))
        loss = released(
            X[rows], y[rows], theta, epsilon=epsilon, adjacency="replace_one", seed=seed,
            perturbation=cvxqop.Gaussian(sum_of_squares=True),
        )  # fmt: skip
        try:
            bars = loss.error_bars(population=True, draws=sizes.draws, seed=seed)
        except cvxqop.OptionError:  # the noise exceeds the sum of squares: no interval is given
            continue
        hits.append((bars.lower[theta] <= truth) & (truth <= bars.upper[theta]))
    if 2 * len(hits) < sizes.releases:
        return []
    return [
        cell(
            data=name, n=len(X), d=X.shape[1], adjacency="replace_one", mechanism="one stage",
            epsilon=epsilon, problem="population", coverage95=np.mean(hits),
            worst95=np.mean(hits, axis=0).min(), given=len(hits) / sizes.releases,
        )
    ]  # fmt: skip


def simulated(d: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Records for the cells that no data set has: many features."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    X /= np.maximum(1.2 * np.sqrt(d), np.linalg.norm(X, axis=1))[:, None]
    return X, np.clip(X @ rng.standard_normal(d) + 0.1 * rng.standard_normal(n), -1.0, 1.0)


def table(cells: pd.DataFrame, sizes: Any, seconds: float) -> str:
    """Means over data sets, and the worst data set, as a page."""
    size = f"{sizes.releases} releases × {sizes.draws} redraws a cell"
    kind = "A reduced run" if sizes.quick else "The full run"
    lines = [
        "# Coverage of error bars",
        "",
        f"{describe_machine()}. {kind}: {size}, {seconds:.0f} s of processor time.",
        "",
        "Mean over coefficients and data sets of the coverage of 95% intervals; in brackets the",
        "data set with the lowest mean. Each cell by itself, with 90% intervals and the worst",
        "coefficient, is in `coverage.csv`. Population intervals are left out where half of the",
        "released sums of squares did not exceed twice their noise: none are given then.",
    ]
    groups = ["adjacency", "mechanism"]
    for (adjacency, mechanism), part in cells.groupby(groups, sort=False):
        epsilons = sorted(part.epsilon.unique())
        lines += ["", f"## {mechanism}, {adjacency}", ""]
        lines += ["| problem | " + " | ".join(f"ε = {e:g}" for e in epsilons) + " |"]
        lines += ["| --- |" + " --- |" * len(epsilons)]
        for problem, rows in part.groupby("problem", sort=False):
            row = []
            for e in epsilons:
                own = rows[rows.epsilon == e].coverage95
                row.append(f"{own.mean():.3f} ({own.min():.3f})" if len(own) else "")
            lines.append(f"| {problem} | " + " | ".join(row) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    asked = parser.parse_args()
    sizes = argparse.Namespace(
        quick=asked.quick, releases=60 if asked.quick else 200, draws=200, group=not asked.quick
    )
    epsilons = (0.1, 1.0) if asked.quick else EPSILONS
    rows: list[Any] = []
    for name in REGRESSION:
        found = split(name, 0)
        data = (np.asarray(found.X), np.asarray(found.y))
        for epsilon in epsilons:
            for adjacency in ("add_remove", "replace_one"):
                sizes.adjacency = adjacency
                for mechanism in MECHANISMS if adjacency == "add_remove" else ["default"]:
                    rows += of_the_solution(name, data, sizes, mechanism, epsilon)
            rows += of_the_population(name, data, sizes, epsilon)
        print(f"{name}: {time.process_time():.0f} s", file=sys.stderr, flush=True)
    sizes.adjacency, sizes.group = "add_remove", False
    if not asked.quick:
        rows += of_the_solution("d = 100", simulated(100, 50_000), sizes, "one stage", 1.0)
    found = split("diabetes", 0)
    data = (np.asarray(found.X), np.asarray(found.y))
    rows += of_the_solution("diabetes", data, sizes, "wishart", 1.0)
    cells = pd.DataFrame(rows)
    cells.round(4).to_csv(RESULTS / "coverage.csv", index=False)
    text = table(cells, sizes, time.process_time())
    (RESULTS / "coverage.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
