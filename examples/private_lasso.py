"""A private LASSO on the earnings of 15,992 people, beside the same LASSO without privacy.

    python examples/private_lasso.py            # a table, and private_lasso.png with matplotlib
    python examples/private_lasso.py --quick    # fewer people and draws, a few seconds

The target is a man's earnings in 1978, the features what was known about him in 1975. The data and
their licence are described in data/README.md.
"""

import argparse
from pathlib import Path

import cvxpy as cp
import numpy as np

import cvxqop

HERE = Path(__file__).resolve().parent
EPSILONS = (0.1, 0.5, 1, 2, 4, 8)
DELTA = 1e-6  # well below one over the number of people
LAMBDA = 50.0  # chosen beforehand: choosing it by the error on private data would cost privacy

# Public constants, none of them computed from the data. Social Security records stop at the year's
# taxable maximum, about $26,000 of 1982 in all three years; the sample holds ages 16 to 55; the
# survey counts 0 to 18 years of schooling. Means and deviations of the data would not be public.
HALF_MAXIMUM = 13_000.0
# The library shrinks longer rows to norm 2 and cuts targets to [-1, 1], whatever the data hold.
BOUNDS = cvxqop.Bounds(row_norm=2.0, offset=1.0)


def load(people=None):
    """Features X, target y in units of $13,000 around $13,000, and the names of the features."""
    table = np.genfromtxt(HERE / "data" / "cps_earnings.csv", delimiter=",", names=True)
    table = np.random.default_rng(0).permutation(table)[:people]
    money = {year: table[f"earnings_{year}"] / HALF_MAXIMUM - 1 for year in (1974, 1975, 1978)}
    age = (table["age"] - 35) / 20
    education = (table["education"] - 12) / 6
    features = {
        "earnings 1974": money[1974],
        "earnings 1975": money[1975],
        "none in 1974": table["earnings_1974"] == 0,
        "none in 1975": table["earnings_1975"] == 0,
        "age": age,
        "age²": age**2,
        "education": education,
        "no degree": table["no_degree"],
        "married": table["married"],
        "black": table["black"],
        "hispanic": table["hispanic"],
        "1974 × 1975": money[1974] * money[1975],
        "age × 1975": age * money[1975],
        "education × 1975": education * money[1975],
        "age × education": age * education,
        "age × married": age * table["married"],
    }
    return np.column_stack(list(features.values())).astype(float), money[1978], list(features)


def lasso(X, y):
    """The LASSO as anyone would write it in CVXPY: nothing here knows about privacy."""
    w, b = cp.Variable(X.shape[1], name="w"), cp.Variable(name="b")
    loss = 0.5 * cp.sum_squares(X @ w + b - y)
    return cp.Problem(cp.Minimize(loss + LAMBDA * cp.norm1(w))), loss, w, b


def r_squared(w, b, X, y):
    return 1 - np.mean((X @ w.value + b.value - y) ** 2) / np.var(y)


def row(label, scores, y, w):
    """A line of the table: R² of the releases, their error in dollars, zeros of the last one."""
    middle, low, high = np.median(scores), np.min(scores), np.max(scores)
    dollars = HALF_MAXIMUM * np.sqrt((1 - middle) * np.var(y))
    zeros = np.sum(w.value == 0)
    return f"{label:>11}  {middle:7.3f}  {low:8.3f} to {high:.3f}  {dollars:12,.0f}  {zeros:5d}"


def accuracy(train, test, draws):
    """Error on people who were not used, without privacy and for each epsilon."""
    problem, _, w, b = lasso(*train)
    problem.solve(solver="CLARABEL")
    w.value = np.where(np.abs(w.value) < 1e-6, 0, w.value)  # CVXPY's solvers return no exact zeros
    exact = r_squared(w, b, *test)
    print(f"    epsilon  test R²  {f'{draws} releases':>17}  RMS error, $  zeros")
    print(row("not private", [exact], test[1], w))
    scores = {}
    for epsilon in EPSILONS:
        plan = cvxqop.plan(
            problem, private=list(train), bounds=BOUNDS, epsilon=epsilon, delta=DELTA, seed=1
        )
        # One run is one release and costs epsilon. Several are made here only to show the spread.
        scores[epsilon] = []
        for _ in range(draws):
            plan.run()
            scores[epsilon].append(r_squared(w, b, *test))
        print(row(f"{epsilon:g}", scores[epsilon], test[1], w))
    return exact, scores


def swap_solvers(train):
    """The same draw through three solvers: the answer belongs to the problem, not to the solver."""
    problem, _, w, _ = lasso(*train)
    reference = None
    for solver in ("CLARABEL", "OSQP", "SCS"):
        cvxqop.privatize(
            problem, private=list(train), bounds=BOUNDS, epsilon=1, delta=DELTA, solver=solver,
            seed=2,
        )  # fmt: skip
        reference = w.value if reference is None else reference
        print(f"{solver:>11}  largest difference {np.max(np.abs(w.value - reference)):.1e}")


def path(loss, w, lambdas):
    """The coefficients for each lambda; `loss` is any CVXPY expression in w, private or not."""
    strength = cp.Parameter(nonneg=True)
    problem = cp.Problem(cp.Minimize(loss + strength * cp.norm1(w)))
    coefficients = []
    for strength.value in lambdas:
        problem.solve(solver="CLARABEL")
        coefficients.append(w.value)
    return np.array(coefficients)


def paths(train, lambdas):
    """The λ path of the data, and that of one private loss, bought once at epsilon = 1."""
    _, loss, w, _ = lasso(*train)
    private = cvxqop.private_loss(
        loss, private=list(train), bounds=BOUNDS, epsilon=1, delta=DELTA, seed=3
    )
    return path(loss, w, lambdas), path(private.expression, w, lambdas)


def draw(exact, scores, lambdas, coefficients, names, file):
    """Accuracy against epsilon, and the two λ paths."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(2, 2, figsize=(8.4, 7), layout="constrained")
    (left, corner), (middle, right) = panels
    corner.axis("off")
    values = np.array([scores[epsilon] for epsilon in EPSILONS])
    left.axhline(exact, color="black", linestyle="--", label="not private")
    left.plot(EPSILONS, np.median(values, axis=1), "o-", label="private, median")
    left.fill_between(EPSILONS, values.min(1), values.max(1), alpha=0.2, label="all releases")
    left.set(xscale="log", xlabel="ε", ylabel="test R²", title=f"Accuracy, δ = {DELTA:g}")
    left.set_xticks(EPSILONS, [f"{epsilon:g}" for epsilon in EPSILONS])
    left.minorticks_off()
    left.legend(loc="lower right")
    shown = np.argsort(-np.abs(coefficients[0]).max(axis=0))[:7]
    for axes, values, title in (
        (middle, coefficients[0], "LASSO path, not private"),
        (right, coefficients[1], "LASSO path of one private loss, ε = 1"),
    ):
        axes.plot(lambdas, values, color="0.8", linewidth=0.8)
        for place, j in enumerate(shown):
            axes.plot(lambdas, values[:, j], color=f"C{place}", label=names[j])
        axes.axvline(LAMBDA, color="black", linestyle=":", linewidth=0.8, label="λ of the table")
        axes.set(xscale="log", xlabel="λ", title=title)
    middle.set_ylabel("coefficient")
    ends = (axes.get_ylim() for axes in (middle, right))
    low, high = zip(*ends, strict=True)
    for axes in (middle, right):
        axes.set_ylim(min(low), max(high))
    lines = right.get_legend_handles_labels()
    corner.legend(*lines, loc="center", frameon=False, title="Coefficients below")
    figure.savefig(file, dpi=120)
    print(f"Plot written to {file}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer people, releases and lambdas")
    parser.add_argument("--plot", default="private_lasso.png", help="where to write the plot")
    options = parser.parse_args()

    X, y, names = load(4000 if options.quick else None)
    cut = int(0.8 * len(y))
    train, test = (X[:cut], y[:cut]), (X[cut:], y[cut:])
    print(f"Earnings in 1978: {cut} people to fit, {len(y) - cut} to test, {X.shape[1]} features")
    print(f"delta = {DELTA:g}, neighbouring data sets differ in the values of one person\n")
    exact, scores = accuracy(train, test, draws=3 if options.quick else 10)

    print("\nThe same draw at epsilon = 1 through three solvers")
    swap_solvers(train)

    lambdas = np.geomspace(1, 3000, 10 if options.quick else 50)
    coefficients = paths(train, lambdas)
    print(f"\nA path of {len(lambdas)} values of lambda from one private loss: epsilon = 1 in all")
    try:
        draw(exact, scores, lambdas, coefficients, names, options.plot)
    except ImportError:
        print("No plot: matplotlib is not installed")
    print("\nSeeds make this page repeat. For a real release leave out seed=…")


if __name__ == "__main__":
    main()
