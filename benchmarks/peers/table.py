"""Pages and plots from the results files: results/peers.md, docs/benchmarks.md, docs/peers_*.png.

    python benchmarks/peers/table.py

The prose of docs/benchmarks.md is written by hand; this script fills what stands between its
markers, so that no number there is typed.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "benchmarks" / "results"
PAGE = ROOT / "docs" / "benchmarks.md"
EPSILONS = ("0.1", "0.5", "1", "2", "4", "8")
MEASURE = {"regression": "test R²", "classification": "test accuracy"}
WORST = -1.0
"""Scores below are printed as such: they say that the answer is useless."""

Row = dict[str, str]


def read(kind: str) -> tuple[str, list[Row]]:
    """Versions and machine, and the rows, of a results file."""
    lines = (RESULTS / "peers" / f"{kind}.csv").read_text(encoding="utf-8").splitlines()
    return lines[0].removeprefix("# "), list(csv.DictReader(lines[1:]))


def cell(row: Row) -> str:
    """Median ± standard error."""
    median, error = float(row["score_median"]), float(row["score_se"])
    return "< -1" if median < WORST else f"{median:.3f} ± {error:.3f}"


def time(values: list[str]) -> str:
    """Median of milliseconds, to two digits."""
    ordered = sorted(map(float, values))
    return f"{float(f'{ordered[len(ordered) // 2]:.2g}'):g}"


def grouped(rows: list[Row], *keys: str) -> dict[tuple[str, ...], list[Row]]:
    found: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        found.setdefault(tuple(row[key] for key in keys), []).append(row)
    return found


def full(kind: str) -> list[str]:
    """Every number: a line for each data set and method, a column for each ε."""
    head, rows = read(kind)
    lines = [f"## {kind.capitalize()}: {MEASURE[kind]}", "", f"{head}.", ""]
    lines += [
        f"| data set | method | {' | '.join(f'ε = {e}' for e in EPSILONS)} | releases | setup, ms |"
        " fit, ms |",
        "| --- | --- |" + " ---: |" * (len(EPSILONS) + 3),
    ]
    last = ""
    for (name, method), some in grouped(rows, "dataset", "method").items():
        by_epsilon = {row["epsilon"]: cell(row) for row in some}
        always = by_epsilon.get("inf")
        cells = [always] + ["〃"] * 5 if always else [by_epsilon.get(e, "") for e in EPSILONS]
        title = f"{name} ({int(some[0]['n_train']):,} × {some[0]['d']})" if name != last else ""
        count = int(some[0]["splits"]) * int(some[0]["draws"])
        times = [time([row[key] for row in some]) for key in ("setup_ms", "fit_ms")]
        lines.append(
            f"| {title} | {method} | {' | '.join(cells)} | {count} | {' | '.join(times)} |"
        )
        last = name
    return lines


def results_page() -> str:
    """The text of results/peers.md."""
    intro = (
        "Median and its standard error over splits × releases, from `results/peers/*.csv`; see "
        "`benchmarks/README.md` for how. add_remove, δ = 1e-6 (diffprivlib: δ = 0). Times are "
        "processor time, medians over ε; setup does not depend on records."
    )
    return "\n".join(["# Beside other methods", "", intro, "", *full("regression"), "",
                      *full("classification"), ""])  # fmt: skip


def at_one(kind: str) -> str:
    """ε = 1: a line for each method, a column for each data set, and the time of a fit."""
    _, rows = read(kind)
    names = list(dict.fromkeys(row["dataset"] for row in rows))
    lines = [
        f"| {MEASURE[kind]} at ε = 1 | {' | '.join(names)} | fit, ms |",
        "| --- |" + " ---: |" * (len(names) + 1),
    ]
    for (method,), some in grouped(rows, "method").items():
        chosen = {r["dataset"]: r for r in some if r["epsilon"] in ("1", "inf")}
        cells = [cell(chosen[name]) if name in chosen else "" for name in names]
        span = sorted(float(row["fit_ms"]) for row in chosen.values())
        low, high = (f"{float(f'{value:.2g}'):g}" for value in (span[0], span[-1]))
        lines.append(f"| {method} | {' | '.join(cells)} | {low} to {high} |")
    return "\n".join(lines)


def wins(kind: str) -> str:
    """How often each private method is best, or within two standard errors of the best."""
    _, rows = read(kind)
    methods = [m for (m,) in grouped(rows, "method") if "not private" not in m]
    counts = {method: [0] * len(EPSILONS) for method in methods}
    for (_, epsilon), some in grouped(rows, "dataset", "epsilon").items():
        if epsilon not in EPSILONS:
            continue
        private = [row for row in some if row["method"] in counts]
        best = max(private, key=lambda row: float(row["score_median"]))
        floor = float(best["score_median"]) - 2.0 * float(best["score_se"])
        for row in private:
            counts[row["method"]][EPSILONS.index(epsilon)] += float(row["score_median"]) >= floor
    total = len({row["dataset"] for row in rows})
    lines = [
        f"| within two standard errors of the best, of {total} |"
        f" {' | '.join(f'ε = {e}' for e in EPSILONS)} |",
        "| --- |" + " ---: |" * len(EPSILONS),
    ]
    lines += [f"| {m} | {' | '.join(map(str, found))} |" for m, found in counts.items()]
    return "\n".join(lines)


BLOCKS: dict[str, Callable[[], str]] = {
    f"{kind} {name}": (lambda kind=kind, block=block: block(kind))
    for kind in MEASURE
    for name, block in (("at 1", at_one), ("best", wins))
}


def filled(page: str) -> str:
    """The page with every block between `<!-- name -->` and `<!-- end -->` written anew."""

    def block(found: re.Match[str]) -> str:
        return f"<!-- {found[1]} -->\n\n{BLOCKS[found[1]]()}\n\n<!-- end -->"

    pattern = re.compile(rf"<!-- ({'|'.join(BLOCKS)}) -->.*?<!-- end -->", re.DOTALL)
    return pattern.sub(block, page)


STYLES = {
    "cvxqop, Wishart": ("#0072B2", "-", "o"),
    "cvxqop, Gaussian, 1 stage": ("#56B4E9", "-", "s"),
    "cvxqop, Gaussian, 2 stages": ("#009E73", "-", "D"),
    "cvxqop, Gaussian, 6 stages": ("#7F3C8D", "-", "P"),
    "cvxqop, Linear": ("#CC79A7", "-", "^"),
    "cvxqop, Linear, clipped": ("#882255", "-", "X"),
    "AdaSSP, exact": ("#E69F00", "--", "v"),
    "LOP after RKW23": ("#D55E00", "--", "x"),
    "DP-SGD": ("#000000", ":", "*"),
    "diffprivlib, no intercept": ("#999999", "--", "+"),
}


def plotted(rows: list[Row]) -> dict[str, tuple[str, str, str]]:
    """Methods that are drawn, and how: of a pair the one with intercept, none that is off scale."""
    styles = {}
    for (method,), some in grouped(rows, "method").items():
        keys = [key for key in STYLES if method.startswith(key)]
        useless = sum(float(row["score_median"]) < WORST for row in some) > len(some) / 2
        if keys and not useless and ("no intercept" not in method or "diffprivlib" in method):
            styles[method] = STYLES[max(keys, key=len)]
    return styles


def plot(kind: str) -> None:
    """One panel for each data set, ε across, one line for each method."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    _, rows = read(kind)
    styles = plotted(rows)
    sets = grouped(rows, "dataset")
    height = -(-len(sets) // 3)
    figure, panels = pyplot.subplots(height, 3, figsize=(13, 3.4 * height + 1.2), sharex=True)
    for panel, ((name,), some) in zip(panels.flat, sets.items(), strict=True):
        draw_panel(panel, name, some, styles)
    for panel in panels[-1]:
        panel.set_xlabel("ε")
    for panel in panels[:, 0]:
        panel.set_ylabel(MEASURE[kind])
    handles, labels = panels.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncols=3, frameon=False, fontsize=11)
    figure.tight_layout(rect=(0, 1.1 / figure.get_figheight(), 1, 1))
    figure.savefig(ROOT / "docs" / f"peers_{kind}.png", dpi=110)
    pyplot.close(figure)


def draw_panel(panel: Any, name: str, rows: list[Row], styles: dict[str, Any]) -> None:
    shown = []
    for (method,), some in grouped(rows, "method").items():
        medians = [float(row["score_median"]) for row in some]
        errors = [float(row["score_se"]) for row in some]
        if method in styles:
            colour, dash, mark = styles[method]
            epsilons = [float(row["epsilon"]) for row in some]
            panel.errorbar(epsilons, medians, errors, color=colour, linestyle=dash, marker=mark,
                           markersize=5, linewidth=1.6, capsize=2, label=method)  # fmt: skip
            shown += medians
        elif method.startswith("not private"):
            larger = "class" in method
            panel.axhline(medians[0], color="0.5", linewidth=1, label=method,
                          linestyle=(0, (1, 3)) if larger else "-")  # fmt: skip
            shown += medians
    panel.set_xscale("log", base=2)
    panel.set_xticks([float(e) for e in EPSILONS], EPSILONS)
    panel.minorticks_off()
    top = max(shown)
    panel.set_ylim(max(min(shown), 0.0 if top < 1.0 and min(shown) < 0.0 else min(shown)) - 0.03,
                   top + 0.03)  # fmt: skip
    panel.set_title(f"{name} ({int(rows[0]['n_train']):,} × {rows[0]['d']})", fontsize=11)
    panel.grid(alpha=0.25)


def main() -> None:
    (RESULTS / "peers.md").write_text(results_page(), encoding="utf-8")
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    for kind in MEASURE:
        plot(kind)


if __name__ == "__main__":
    main()
