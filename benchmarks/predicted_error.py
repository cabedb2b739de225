"""What a plan predicts of the error of predictions, beside what releases do.

    CVXQOP_PEERS_DATA=…/peers-data OMP_NUM_THREADS=1 python benchmarks/predicted_error.py

Six regression sets with a squared loss and nine classification sets with a logistic one, no
regulariser (classification: ‖θ‖²/2, for classes that a plane separates have no minimiser), the
default mechanism, both adjacencies, six ε, δ = 1e-6. Measured is the root mean square over the
training rows of x'(θ − θ̂), in units of the target, or of the difference of two probabilities; the
median of nine releases. A probability moves by at most a quarter of x'θ, so that this is what is
predicted there, and never more than ½. Writes results/predicted_error.md.
"""

from __future__ import annotations

from pathlib import Path

import cvxpy as cp
import numpy as np
import peers_data
from machine import describe_machine
from scipy.special import expit

import cvxqop

EPSILONS = (0.1, 0.5, 1.0, 2.0, 4.0, 8.0)
DRAWS = 9
RESULTS = Path(__file__).resolve().parent / "results" / "predicted_error.md"


def problem(kind: str, X: np.ndarray, y: np.ndarray) -> tuple[cp.Problem, cp.Variable]:
    theta = cp.Variable(X.shape[1])
    if kind == "regression":
        return cp.Problem(cp.Minimize(0.5 * cp.sum_squares(X @ theta - y))), theta
    loss = cp.sum(cp.logistic(-cp.multiply(y, X @ theta)))
    return cp.Problem(cp.Minimize(loss + 0.5 * cp.sum_squares(theta))), theta


def cells(kind: str, name: str) -> list[tuple[str, float, float, float]]:
    """(adjacency, ε, predicted, measured)."""
    split = peers_data.split(name, 0)
    X, y = split.X, split.y
    asked, theta = problem(kind, X, y)
    asked.solve(solver="CLARABEL")
    shown = (lambda t: t) if kind == "regression" else expit
    truth = shown(X @ theta.value)
    bounds = cvxqop.Bounds(row_norm=1.0, offset=1.0 if kind == "regression" else None)
    found = []
    for adjacency in ("add_remove", "replace_one"):
        for epsilon in EPSILONS:
            plan = cvxqop.plan(
                asked, private=[X, y], bounds=bounds, epsilon=epsilon, delta=1e-6,
                adjacency=adjacency,
            )  # fmt: skip
            predicted = plan.predicted_error(len(X))
            if kind == "classification":
                predicted = min(0.25 * predicted, 0.5)
            errors = []
            for _ in range(DRAWS):
                plan.run()
                errors.append(np.sqrt(np.mean((shown(X @ theta.value) - truth) ** 2)))
            found.append((adjacency, epsilon, predicted, float(np.median(errors))))
    return found


def main() -> None:
    names = {"regression": peers_data.REGRESSION, "classification": peers_data.CLASSIFICATION}
    lines, all_ratios = [], {}
    for kind, sets in names.items():
        head = " | ".join(f"ε = {epsilon:g}" for epsilon in EPSILONS)
        lines += [
            "", f"## {kind.capitalize()}: predicted / measured", "",
            f"| set | adjacency | {head} |", f"| --- | --- |{' ---: |' * len(EPSILONS)}",
        ]  # fmt: skip
        for name in sets:
            found = cells(kind, name)
            for adjacency in ("add_remove", "replace_one"):
                own = [cell for cell in found if cell[0] == adjacency]
                text = " | ".join(f"{p:.2g} / {m:.2g}" for _, _, p, m in own)
                lines.append(f"| {name} | {adjacency} | {text} |")
                print(lines[-1], flush=True)
                all_ratios.setdefault(kind, []).extend(p / m for _, _, p, m in own)
    said = []
    for kind, ratios in all_ratios.items():
        within = np.mean([0.5 <= ratio <= 2.0 for ratio in ratios])
        said.append(
            f"{kind.capitalize()}: within a factor of two in {within:.0%} of {len(ratios)} cells; "
            f"median of the ratio {np.median(ratios):.2f}."
        )
    header = [
        "# The error that a plan predicts, and that of releases", "",
        f"{describe_machine()}. Made by `benchmarks/predicted_error.py`, which says how.", "",
        *said,
    ]  # fmt: skip
    RESULTS.write_text("\n".join([*header, *lines]) + "\n", encoding="utf-8")
    print("\n".join(said))


if __name__ == "__main__":
    main()
