"""How far off is it? Error bars of private least squares on the earnings of 15,992 people.

    python examples/error_bars.py            # a table, and error_bars.png with matplotlib
    python examples/error_bars.py --quick    # fewer people and redraws, a few seconds

The intervals need the release alone. Beside them stands what nobody outside has: the fit without
privacy on the same records, and its classical 95% intervals. With one stage they are narrower than
with the adaptive stages of the default, whose first stage, from which they are, has a fifth of the
privacy. The picture is of one stage.
"""

import argparse

import cvxpy as cp
import numpy as np
from private_lasso import BOUNDS, DELTA, load

import cvxqop

EPSILONS = (0.1, 1.0, 8.0)
MECHANISMS = {"one stage": cvxqop.Gaussian(), "default": "auto"}
MAIN = slice(0, 11)  # without the products of features


def ordinary(X, y):
    """Least squares with an intercept: coefficients, and half of their 95% intervals."""
    Z = np.column_stack([X, np.ones(len(y))])
    fit = np.linalg.lstsq(Z, y, rcond=None)[0]
    variance = np.sum((Z @ fit - y) ** 2) / (len(y) - Z.shape[1])
    error = np.sqrt(variance * np.diag(np.linalg.inv(Z.T @ Z)))
    return fit[:-1], 1.96 * error[:-1]


def private(X, y, epsilon, perturbation, draws):
    """Released coefficients, ends of their intervals, and which are not determined."""
    w, b = cp.Variable(X.shape[1], name="w"), cp.Variable(name="b")
    problem = cp.Problem(cp.Minimize(cp.sum_squares(X @ w + b - y)))
    solution = cvxqop.privatize(
        problem, private=[X, y], bounds=BOUNDS, epsilon=epsilon, delta=DELTA, seed=1,
        perturbation=perturbation,
    )  # fmt: skip
    bars = solution.error_bars(draws=draws, seed=2)
    return bars.released[w], bars.lower[w], bars.upper[w], bars.undetermined[w]


def draw(names, fit, half, found, file):
    """Intervals by coefficient and epsilon, beside the fit without privacy."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7.4, 6.2), layout="constrained")
    rows = np.arange(len(names))[::-1]
    axes.errorbar(
        fit, rows + 0.3, xerr=half, fmt="D", color="black", ms=3.5, capsize=2.5,
        label="not private, with classical 95% intervals",
    )  # fmt: skip
    for place, (epsilon, (released, lower, upper, loose)) in enumerate(found.items()):
        at, colour = rows + 0.1 - 0.2 * place, f"C{place}"
        style = ["solid" if sure else "dotted" for sure in ~loose]
        axes.hlines(at, lower, upper, colour, style, linewidth=2.2, label=f"ε = {epsilon:g}")
        axes.plot(released, at, "o", color=colour, markersize=4)
    axes.axvline(0, color="0.8", linewidth=1, zorder=0)
    axes.set_yticks(rows, names)
    ends = np.concatenate([fit - half, fit + half, *found[1.0][1:3], *found[8.0][1:3]])
    axes.set_xlim(ends.min() - 0.1, ends.max() + 0.1)
    axes.set(xlabel="coefficient, in units of $13,000; wider intervals are cut off",
             title="95% intervals from the release; dotted: not determined")  # fmt: skip
    axes.legend(loc="lower right", fontsize=8)
    figure.savefig(file, dpi=120)
    print(f"Plot written to {file}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer people and redraws")
    parser.add_argument("--plot", default="error_bars.png", help="where to write the plot")
    options = parser.parse_args()

    X, y, names = load(4000 if options.quick else None)
    X, names = X[:, MAIN], names[MAIN]
    fit, half = ordinary(X, y)
    draws = 200 if options.quick else 1000
    print(f"Earnings in 1978 of {len(y)} people, least squares with {X.shape[1]} features")
    print(f"95% intervals for the fit without privacy, {draws} redraws, delta = {DELTA:g}\n")
    print("| mechanism | ε | error of the release | median width | not determined | hold the fit |")
    print("| --- | --- | --- | --- | --- | --- |")
    found = {}
    for name, perturbation in MECHANISMS.items():
        for epsilon in EPSILONS:
            bars = private(X, y, epsilon, perturbation, draws)
            released, lower, upper, loose = bars
            found.setdefault(epsilon, bars)
            inside = np.sum((lower <= fit) & (fit <= upper))
            print(
                f"| {name} | {epsilon:g} | {np.sqrt(np.mean((released - fit) ** 2)):.3f} | "
                f"{np.median(upper - lower):.3f} | {np.sum(loose)} | {inside} of {len(fit)} |"
            )
    print(f"\nMedian width of the classical intervals: {np.median(2 * half):.3f}")
    try:
        draw(names, fit, half, found, options.plot)
    except ImportError:
        print("No plot: matplotlib is not installed")
    print("\nSeeds make this page repeat. For a real release leave out seed=…")


if __name__ == "__main__":
    main()
