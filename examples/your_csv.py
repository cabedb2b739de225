"""A private LASSO on a CSV file of your own, one row a person: edit the three lines that say so.

python examples/your_csv.py     # from the top of the repository, as long as FILE is unedited
"""

import csv

import cvxpy as cp
import numpy as np

import cvxqop

FILE = "examples/data/cps_earnings.csv"  # edit 1: your file
TARGET = ("earnings_1978", 0, 26_000)  # edit 2: the column to predict, its lowest and highest value
FEATURES = {"age": (16, 55), "education": (0, 18), "earnings_1975": (0, 26_000)}  # edit 3: the same

EPSILON, DELTA = 1.0, 1e-6  # δ well below one over the number of people
LAMBDA = 10.0  # strength of the LASSO, chosen beforehand

with open(FILE, newline="", encoding="utf-8") as file:
    people = list(csv.DictReader(file))


def scaled(name, low, high):
    """A column in units of half its public range, from -1 to 1; a missing value is NaN."""
    numbers = np.array([float(person[name] or "nan") for person in people])
    return (2 * numbers - low - high) / (high - low)


X = np.column_stack([scaled(name, *ends) for name, ends in FEATURES.items()])
y = scaled(*TARGET)

w, b = cp.Variable(len(FEATURES), name="w"), cp.Variable(name="b")
loss = 0.5 * cp.sum_squares(X @ w + b - y)
problem = cp.Problem(cp.Minimize(loss + LAMBDA * cp.norm1(w)))

# Rows of entries in [-1, 1] have norm at most the root of their number. Nothing here is read from
# the data: what lies beyond the ranges is cut, and a row with a missing value counts as zeros.
solution = cvxqop.privatize(
    problem,
    private=[X, y],
    bounds=cvxqop.Bounds(row_norm=len(FEATURES) ** 0.5, offset=1.0),
    epsilon=EPSILON,
    delta=DELTA,
    nonfinite="zero",
)

low, high = TARGET[1:]
print(f"A step of one unit in … moves {TARGET[0]} by")
for (name, ends), weight in zip(FEATURES.items(), w.value, strict=True):
    print(f"  {name:20} {weight * (high - low) / (ends[1] - ends[0]):.6g}")
print(solution)
