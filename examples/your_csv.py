"""A private LASSO on a CSV file of your own, one row a person: edit the three lines that say so.

python examples/your_csv.py     # from the top of the repository, as long as FILE is unedited
"""

import cvxpy as cp

import cvxqop

FILE = "examples/data/cps_earnings.csv"  # edit 1: your file
TARGET = ("earnings_1978", 0, 26_000)  # edit 2: the column to predict, its lowest and highest value
FEATURES = {"age": (16, 55), "education": (0, 18), "earnings_1975": (0, 26_000)}  # edit 3: the same

EPSILON, DELTA = 1.0, 1e-6  # δ well below one over the number of people
LAMBDA = 10.0  # strength of the LASSO, chosen beforehand

# Nothing here is read from the data: what lies beyond the ranges is cut, and a row with a missing
# value counts, and contributes nothing.
schema = cvxqop.Schema(FEATURES, target={TARGET[0]: TARGET[1:]})
people = schema.read(FILE)

w, b = cp.Variable(len(schema.names), name="w"), cp.Variable(name="b")
loss = 0.5 * cp.sum_squares(people.X @ w + b - people.y)
problem = cp.Problem(cp.Minimize(loss + LAMBDA * cp.norm1(w)))
solution = cvxqop.privatize(problem, private=people, epsilon=EPSILON, delta=DELTA)

print(f"A step of one unit in … moves {TARGET[0]} by")
print(schema.coefficients(w.value, b.value))
print(solution)
