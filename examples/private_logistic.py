"""A private logistic regression on 15,992 people: who earns close to the taxable maximum?

    python examples/private_logistic.py            # a table, a few seconds
    python examples/private_logistic.py --quick    # fewer people and releases

The target is whether a man earned $25,000 or more in 1978, in dollars of 1982: within about 2% of
the most that Social Security recorded. The features are those of private_lasso.py, what was known
about him in 1975. The data and their licence are described in data/README.md.
"""

import argparse

import cvxpy as cp
import numpy as np
from private_lasso import DELTA, EPSILONS, HALF_MAXIMUM, load
from scipy.stats import rankdata

import cvxqop

# Public: the rows x of private_lasso.py, shrunk to norm 2. Labels, of ±1 or of 0 and 1, and the 1
# of the intercept are counted by the library.
BOUNDS = cvxqop.Bounds(row_norm=2.0)


def people(count=None):
    """Features X and labels: +1 for earnings of $25,000 or more in 1978, else -1."""
    X, earnings, _ = load(count)
    return X, np.where((earnings + 1) * HALF_MAXIMUM >= 25_000, 1.0, -1.0)


def regression(X, y):
    """Logistic regression with an intercept and labels ±1, as anyone would write it in CVXPY."""
    w, b = cp.Variable(X.shape[1], name="w"), cp.Variable(name="b")
    return cp.Problem(cp.Minimize(cp.sum(cp.logistic(-cp.multiply(y, X @ w + b))))), w, b


def zero_one_regression(X, y):
    """The same with labels 0 and 1."""
    w, b = cp.Variable(X.shape[1], name="w"), cp.Variable(name="b")
    scores = X @ w + b
    return cp.Problem(cp.Minimize(cp.sum(cp.logistic(scores) - cp.multiply(y, scores)))), w, b


def not_private(X, y):
    """Coefficients and intercept of the exact minimiser, by Newton's method."""
    Z, theta = np.column_stack([X, np.ones(len(y))]), np.zeros(X.shape[1] + 1)
    for _ in range(20):
        p = 1 / (1 + np.exp(-Z @ theta))
        gradient, hessian = Z.T @ (p - (y > 0)), Z.T @ (Z * (p * (1 - p))[:, None])
        theta = theta - np.linalg.solve(hessian, gradient)
    return theta[:-1], theta[-1]


def quality(w, b, X, y):
    """Accuracy, log-loss and area under the ROC curve."""
    scores = X @ w + b
    yes = np.sum(y > 0)
    area = (np.sum(rankdata(scores)[y > 0]) - yes * (yes + 1) / 2) / (yes * (len(y) - yes))
    return np.mean((scores > 0) == (y > 0)), np.mean(np.logaddexp(0, -y * scores)), area


def row(label, measures):
    """A line of the table: medians over the releases, and the range of the accuracy."""
    accuracy, loss, area = np.median(measures, axis=0)
    low, high = np.min(measures, axis=0)[0], np.max(measures, axis=0)[0]
    return f"{label:>11}  {accuracy:8.3f}  {low:8.3f} to {high:.3f}  {loss:8.3f}  {area:5.3f}"


def compare(train, test, draws):
    """Quality on people who were not used, without privacy and for each epsilon."""
    print(f"    epsilon  accuracy  {f'{draws} releases':>17}  log-loss    AUC")
    share = np.mean(train[1] > 0)
    guess = np.zeros(train[0].shape[1]), np.log(share / (1 - share))
    print(row("share alone", [quality(*guess, *test)]))
    print(row("not private", [quality(*not_private(*train), *test)]))
    problem, w, b = regression(*train)
    for epsilon in EPSILONS:
        plan = cvxqop.plan(
            problem, private=list(train), bounds=BOUNDS, epsilon=epsilon, delta=DELTA, seed=1
        )
        # One run is one release and costs epsilon. Several are made here only to show the spread.
        measures = []
        for _ in range(draws):
            plan.run()
            measures.append(quality(w.value, b.value, *test))
        print(row(f"{epsilon:g}", measures))


def spellings(X, y):
    """Labels ±1 and 0/1 from the same seed."""
    labels = (y + 1) / 2
    answers = []
    for (problem, w, b), private in (
        (regression(X, y), [X, y]),
        (zero_one_regression(X, labels), [X, labels]),
    ):
        cvxqop.privatize(problem, private=private, bounds=BOUNDS, epsilon=1, delta=DELTA, seed=2)
        answers.append(np.append(w.value, b.value))
    return np.max(np.abs(answers[0] - answers[1]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer people and releases")
    options = parser.parse_args()

    X, y = people(4000 if options.quick else None)
    cut = int(0.8 * len(y))
    train, test = (X[:cut], y[:cut]), (X[cut:], y[cut:])
    print(f"Earnings near the maximum: {cut} people to fit, {len(y) - cut} to test")
    print(f"delta = {DELTA:g}, neighbouring data sets differ in the values of one person\n")
    compare(train, test, draws=3 if options.quick else 10)
    print(f"\nLabels 0 and 1 in place of -1 and 1: largest difference {spellings(*train):.1e}")
    print("\nSeeds make this page repeat. For a real release leave out seed=…")


if __name__ == "__main__":
    main()
