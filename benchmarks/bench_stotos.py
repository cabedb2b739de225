"""The STOTOS engine against CVXPY's solvers and scikit-learn, to a certified relative gap of 1e-6.

    python benchmarks/bench_stotos.py              # writes results/bench_stotos.md
    python benchmarks/bench_stotos.py --quick      # the small sizes only, writes nothing
    python benchmarks/bench_stotos.py --heavy      # also CVXPY as typed, logistic 10^5 × 100

One BLAS thread, processor seconds, everything of a line in the same run; medians. Problems:

    least squares   Σ (x_i'θ − y_i)² + ½ θ'Sθ + a'θ + λ‖θ‖₁,  ‖θ‖_∞ ≤ 0.2
    logistic        Σ log(1 + exp(−y_i x_i'θ)) + ½ θ'Sθ + a'θ + λ‖θ‖₁,  ‖θ‖₂ ≤ 1

S is a Wishart matrix with its Cholesky factor at hand, as the mechanism draws it. "generic" adds
the constraint 1'θ = 0.1: then no prox of g + ι_C is known, and three-operator splitting works.
Reading, clipping and drawing are not counted. CVXPY's solvers run at tolerance 1e-6.
"""

from __future__ import annotations

import argparse
import statistics
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cvxpy as cp
import numpy as np
from machine import describe_machine
from sklearn.linear_model import Lasso
from threadpoolctl import threadpool_limits

from cvxqop.problem.losses.part import Part
from cvxqop.problem.losses.scalar import logistic, squared
from cvxqop.problem.records.rows import ArrayRows
from cvxqop.solve.engines.stotos import solve_stotos
from cvxqop.solve.smooth.finite_sum import FiniteSum

RESULTS = Path(__file__).resolve().parent / "results" / "bench_stotos.md"
GAP = 1e-6
TOLERANCES: dict[str, dict[str, Any]] = {
    "CLARABEL": {"tol_gap_abs": 1e-6, "tol_gap_rel": 1e-6, "tol_feas": 1e-6},
    "OSQP": {"eps_abs": 1e-6, "eps_rel": 1e-6, "max_iter": 100_000},
    "SCS": {"eps_abs": 1e-6, "eps_rel": 1e-6, "max_iters": 100_000},
}


class Instance:
    """One random problem."""

    def __init__(self, kind: str, n: int, d: int, *, generic: bool = False) -> None:
        rng = np.random.default_rng(0)
        self.kind, self.n, self.d = kind, n, d
        X = rng.standard_normal((n, d)) / np.sqrt(d)
        truth = rng.standard_normal(d) * (rng.random(d) < 0.3)
        W = rng.standard_normal((2 * d, d))
        S = W.T @ W
        self.S = 0.5 * (S + S.T)
        self.factor = np.linalg.cholesky(self.S)
        self.a = 0.1 * rng.standard_normal(d)
        self.X, self.theta = X, cp.Variable(d)
        noise = 0.3 * rng.standard_normal(n)
        if kind == "least squares":
            self.y = X @ truth + noise
            rows, loss = ArrayRows(X, -self.y[:, None]), squared
            self.level = 0.02 * float(np.abs(X.T @ self.y).max())
            self.constraints = [cp.norm_inf(self.theta) <= 0.2]
        else:
            self.y = np.sign(X @ truth + noise)
            rows, loss = ArrayRows(-self.y[:, None] * X, np.zeros((n, 1))), logistic
            self.level = 0.01 * float(np.abs(X.T @ self.y).max())
            self.constraints = [cp.norm(self.theta) <= 1]
        if generic:
            self.constraints.append(cp.sum(self.theta) == 0.1)
        self.smooth = FiniteSum([Part.of(rows, [loss])], self.S, self.a, np.zeros(d))

    @property
    def regulariser(self) -> cp.Expression:
        return self.level * cp.norm1(self.theta)

    def stotos(self, gap: float = GAP, log: list[Any] | None = None) -> Any:
        return solve_stotos(
            self.smooth,
            [self.theta],
            self.regulariser,
            self.constraints,
            accuracy=None,
            relative_gap=gap,
            cholesky=self.factor,
            seed=np.random.default_rng(1),
            progress=False if log is None else lambda *row: log.append(row),
        )

    def perturbation(self) -> cp.Expression:
        theta = self.theta
        return 0.5 * cp.quad_form(theta, cp.psd_wrap(self.S)) + self.a @ theta + self.regulariser

    def solve_gram(self, solver: str) -> None:
        """CVXPY on the D × D form, the Gram product included."""
        theta = self.theta
        H = 2.0 * (self.X.T @ self.X) + self.S
        H = 0.5 * (H + H.T)
        g = self.a - 2.0 * (self.X.T @ self.y)
        objective = 0.5 * cp.quad_form(theta, cp.psd_wrap(H)) + g @ theta + self.regulariser
        cp.Problem(cp.Minimize(objective), self.constraints).solve(
            solver=solver, **TOLERANCES[solver]
        )

    def solve_typed(self, solver: str) -> None:
        """CVXPY on the problem as a person writes it."""
        if self.kind == "least squares":
            loss = cp.sum_squares(self.X @ self.theta - self.y)
        else:
            loss = cp.sum(cp.logistic(-cp.multiply(self.y, self.X @ self.theta)))
        cp.Problem(cp.Minimize(loss + self.perturbation()), self.constraints).solve(
            solver=solver, **TOLERANCES[solver]
        )


def seconds(action: Callable[[], object], repeat: int) -> float:
    times = []
    for _ in range(repeat):
        start = time.process_time()
        action()
        times.append(time.process_time() - start)
    return statistics.median(times)


def line(what: str, target: str, ours: float, theirs: float, ratio: float, met: bool) -> str:
    verdict = "met" if met else "**missed**"
    times = f"{1e3 * ours:.1f} ms | {1e3 * theirs:.1f} ms | {ratio:.2f}"
    row = f"| {what} | {times} | {target} | {verdict} |"
    print(row, flush=True)
    return row


def against_gram_product(n: int, d: int, repeat: int, generic: bool) -> str:
    case = Instance("least squares", n, d, generic=generic)
    product = seconds(lambda: case.X.T @ case.X, repeat)
    ours = seconds(case.stotos, repeat)
    product = min(product, seconds(lambda: case.X.T @ case.X, repeat))
    name = f"least squares {n} × {d}{', generic' if generic else ''} / `X.T @ X`"
    return line(name, "≤ 1.3", ours, product, ours / product, ours <= 1.3 * product)


def against_cvxpy_gram(n: int, d: int, times: float, repeat: int, generic: bool) -> str:
    case = Instance("least squares", n, d, generic=generic)
    best, name = min(
        (seconds(lambda s=s: case.solve_gram(s), min(repeat, 3)), s) for s in TOLERANCES
    )
    ours = seconds(case.stotos, repeat)
    what = f"{name} on the Gram form {n} × {d}{', generic' if generic else ''} / least squares"
    return line(what, f"≥ {times:g}", ours, best, best / ours, best >= times * ours)


def against_cvxpy_typed(kind: str, n: int, d: int, times: float) -> str:
    case = Instance(kind, n, d)
    ours = seconds(case.stotos, 5)
    theirs = seconds(lambda: case.solve_typed("CLARABEL"), 1)
    what = f"CLARABEL as typed, {kind} {n} × {d} / ours"
    return line(what, f"≥ {times:g}", ours, theirs, theirs / ours, theirs >= times * ours)


def against_scikit_learn(n: int, d: int) -> str:
    """The same problem without the box, on rows of X stacked on chol(S)'."""
    case = Instance("least squares", n, d)
    case.constraints, case.a[:] = [], 0.0
    rows = np.asfortranarray(np.vstack([case.X, case.factor.T / np.sqrt(2)]))
    targets = np.concatenate([case.y, np.zeros(d)])
    model = Lasso(
        alpha=case.level / (2 * len(rows)), fit_intercept=False, tol=1e-7, max_iter=100_000
    )
    theirs = seconds(lambda: model.fit(rows, targets), 5)
    ours = seconds(case.stotos, 5)
    difference = float(np.abs(model.coef_ - case.stotos(1e-12).theta).max())
    what = f"least squares {n} × {d} / scikit-learn Lasso (answers differ by {difference:.0e})"
    return line(what, "≤ 1.5", ours, theirs, ours / theirs, ours <= 1.5 * theirs)


def passes(n: int, d: int, generic: bool) -> str:
    log: list[Any] = []
    Instance("logistic", n, d, generic=generic).stotos(1e-9, log)
    count = log[-1][1]
    what = (
        f"passes over the data, logistic {n} × {d}{', generic' if generic else ''}, certified 1e-9"
    )
    row = f"| {what} | | | {count:.2f} | ≤ 8 | {'met' if count <= 8 else '**missed**'} |"
    print(row, flush=True)
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--heavy", action="store_true")
    options = parser.parse_args()
    warnings.filterwarnings("ignore", module="cvxpy")
    threadpool_limits(1)
    rows = [against_cvxpy_gram(300, 100, 8, 9, generic) for generic in (False, True)]
    rows += [passes(10_000, 100, generic) for generic in (False, True)]
    if not options.quick:
        rows += [
            row
            for generic in (False, True)
            for row in (
                against_gram_product(100_000, 100, 7, generic),
                against_gram_product(1_000_000, 50, 3, generic),
                against_cvxpy_gram(200, 1000, 25, 5, generic),
                against_cvxpy_gram(100_000, 100, 1.3, 5, generic),
                passes(100_000, 100, generic),
            )
        ]
        rows.append(against_scikit_learn(10_000, 200))
        rows.append(against_scikit_learn(100_000, 100))
        rows.append(against_cvxpy_typed("least squares", 10_000, 200, 200))
        rows.append(against_cvxpy_typed("logistic", 10_000, 100, 500))
    if options.heavy:
        rows.append(against_cvxpy_typed("logistic", 100_000, 100, 2000))
    if not options.quick:
        head = (
            "| what | ours | theirs | ratio | target | |\n| --- | --- | --- | --- | --- | --- |\n"
        )
        text = f"# STOTOS, certified relative gap 1e-6\n\n{describe_machine()}\n\n"
        RESULTS.write_text(text + head + "\n".join(rows) + "\n")


if __name__ == "__main__":
    main()
