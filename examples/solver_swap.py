"""One private LASSO through six solvers, and how fast and how surely each of them gets there.

    python examples/solver_swap.py            # a table, and solver_swap.png with matplotlib
    python examples/solver_swap.py --quick    # fewer people and steps, a few seconds

The table solves the LASSO of private_lasso.py from the same seed. The plot is made on synthetic
data, because what a solver reports on the way (gaps, certificates, times) is not private.
"""

import argparse
import time

import cvxpy as cp
import numpy as np
from private_lasso import BOUNDS, DELTA, lasso, load

import cvxqop
from cvxqop.problem.losses.part import Part
from cvxqop.problem.losses.scalar import logistic
from cvxqop.problem.records.rows import ArrayRows
from cvxqop.solve.certificate import Curvature
from cvxqop.solve.engines.stochastic import PlainSteps, certified_point, plain_step_length
from cvxqop.solve.engines.stotos import solve_stotos
from cvxqop.solve.rest.prox import split
from cvxqop.solve.smooth.finite_sum import FiniteSum

SOLVERS = (
    ("CLARABEL", {}),
    ("OSQP", {}),
    ("SCS", {}),
    ("STOTOS", {"variant": "newton"}),
    ("STOTOS", {"variant": "svrg"}),
    ("STOTOS", {"variant": "plain"}),
)


def table(train, plain_steps):
    """The same seed through every solver.

    A solver that sees the perturbed quadratic only may be as inexact as it likes: that quadratic is
    itself the release. The stochastic variants read records, so their accuracy is part of the
    mechanism: certified, followed by a Gaussian release, and paid for with 1% more noise.
    """
    problem, _, w, b = lasso(*train)
    print("       solver  from CLARABEL  from its kind  seconds  solves          certified within")
    first, kinds = None, {}
    for solver, options in SOLVERS:
        options = dict(options)
        variant = options.get("variant", "")
        if variant == "plain":
            options["max_iter"] = plain_steps
        plan = cvxqop.plan(
            problem, private=list(train), bounds=BOUNDS, epsilon=1, delta=DELTA, seed=2,
            perturbation="wishart",
            solver=solver, solver_options=options,
        )  # fmt: skip
        start = time.perf_counter()
        plan.run()
        seconds = time.perf_counter() - start
        theta = np.append(w.value, b.value)
        release = plan.mechanism.release
        kind = kinds.setdefault(release is None, theta)
        first = theta if first is None else first
        apart = [f"{np.max(np.abs(theta - other)):.1e}" for other in (first, kind)]
        sees = "the quadratic" if release is None else "the records"
        promise = "not needed" if release is None else f"{release.accuracy:.1e}, then noise"
        if release is not None:
            promise += f" {release.scale:.0e}"
        name = f"{solver} {variant}".strip()
        print(f"{name:>13}  {apart[0]:>13}  {apart[1]:>13}  {seconds:7.2f}  {sees:14}  {promise}")


def synthetic(side):
    """A logistic loss plus λ‖θ‖₁ on made-up records, inside a box of this side or without one."""
    n, d = 500, 10
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = np.where(3 * X @ rng.standard_normal(d) + rng.logistic(size=n) > 0, 1.0, -1.0)
    W = rng.standard_normal((d, 3 * d))
    smooth = FiniteSum(
        [Part.of(ArrayRows(-y[:, None] * X, np.zeros((n, 1))), [logistic])],
        S=W @ W.T / 3, a=rng.standard_normal(d), anchor=np.zeros(d),
    )  # fmt: skip
    theta = cp.Variable(d)
    constraints = [] if side is None else [cp.norm_inf(theta) <= side]
    return smooth, theta, 2 * cp.norm1(theta), constraints


def plain(smooth, theta, regulariser, constraints, optimum, steps):
    """Passes, gap and certificate of StoTOS as published, at the projection of prox(x) onto C."""
    rest = split([theta], regulariser, constraints)
    length, curvature = plain_step_length(smooth), Curvature(smooth.lower_curvature())
    walk = PlainSteps(smooth, rest, np.zeros(theta.size), length, np.random.default_rng(1))
    shown = set(np.unique(np.geomspace(50, steps, 40).astype(int)).tolist())
    curve = []
    for step, _ in enumerate(walk, 1):
        if step in shown:
            point = rest.project(rest.prox_penalty(walk.x, length)[0]).point
            found = certified_point(smooth, rest, point, walk.x, length, curvature)
            passes = step / smooth.n
            curve.append((passes, found.value - optimum, found.certificate.gap))
        if step == steps:
            return np.array(curve)
    return None


def convergence(side, steps):
    """Certificates against passes over the data, relative to |Φ*|, and the gap of plain StoTOS."""
    problem = synthetic(side)
    smooth, theta, regulariser, constraints = problem
    curves = {}
    for variant in ("svrg", "newton"):
        seen = []
        answer = solve_stotos(
            smooth, [theta], regulariser, constraints, accuracy=1e-6, variant=variant,
            seed=np.random.default_rng(2),
            progress=lambda step, passes, gap, distance, seen=seen: seen.append((passes, gap)),
        )  # fmt: skip
        curves[variant] = np.array(seen)
    rest = split([theta], regulariser, constraints)
    optimum = smooth.evaluate(answer.theta).value + rest.value(answer.theta)
    curves["plain"] = plain(*problem, optimum, steps)
    for curve in curves.values():
        curve[:, 1:] /= abs(optimum)
    return curves


def draw(panels, file):
    """One panel a problem."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(10, 4), sharey=True, layout="constrained")
    for ax, (title, curves) in zip(axes, panels.items(), strict=True):
        passes, gap, certificate = curves["plain"].T
        ax.plot(passes, certificate, "--", color="C3", label="plain StoTOS, certificate")
        ax.plot(passes, gap, color="C3", label="plain StoTOS, true gap")
        for variant, color in (("svrg", "C0"), ("newton", "C2")):
            ax.plot(*curves[variant].T, "o--", color=color, label=f"{variant}, certificate")
        ax.set(xscale="log", yscale="log", ylim=(1e-13, 3), title=title)
        ax.set(xlabel="passes over the data")
        ax.grid(alpha=0.3)
    figure.suptitle("Synthetic logistic regression, three engines of STOTOS")
    axes[0].set_ylabel("gap / |optimal value|")
    axes[0].legend(loc="lower left", fontsize=9)
    figure.savefig(file, dpi=90)
    print(f"Plot written to {file}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer people and steps")
    parser.add_argument("--plot", default="solver_swap.png", help="where to write the plot")
    options = parser.parse_args()

    X, y, _ = load(4000 if options.quick else None)
    cut = int(0.8 * len(y))
    print(f"A private LASSO on the earnings of {cut} people, epsilon = 1, the same seed throughout")
    table((X[:cut], y[:cut]), plain_steps=500 if options.quick else 5000)

    steps = 1000 if options.quick else 10_000
    sides = {"a box that binds": 0.3, "no box": None}
    panels = {title: convergence(side, steps) for title, side in sides.items()}
    print("\nSynthetic logistic regression, gap relative to the optimal value")
    print(f"{'':>18}  plain: gap  certificate  passes    svrg  passes  newton  passes")
    for title, curves in panels.items():
        passes, gap, certificate = curves["plain"][-1]
        ends = "".join(
            f"  {curves[name][-1, 1]:6.0e}  {curves[name][-1, 0]:6.1f}"
            for name in ("svrg", "newton")
        )
        print(f"{title:>18}  {gap:10.1e}  {certificate:11.1e}  {passes:6.1f}{ends}")
    print("Where the box binds plain StoTOS stays off the optimum, and its certificate says so.")
    try:
        draw(panels, options.plot)
    except ImportError:
        print("No plot: matplotlib is not installed")
    print("\nSeeds make this page repeat. For a real release leave out seed=…")


if __name__ == "__main__":
    main()
