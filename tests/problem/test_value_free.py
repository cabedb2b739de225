"""How a problem is read does not depend on the values of valid data: no error, same constants.

CVXPY itself looks at values (it drops an added constant of zeros), so this is not automatic.
"""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp

from cvxqop.errors import ProblemError
from cvxqop.problem.bounds import Bounds
from cvxqop.problem.reading.analysis import read

N, D = 6, 3
rng = np.random.default_rng(8)
W = rng.uniform(0.5, 2, N)
M = rng.standard_normal((D, D))


def problems(X, Z, y):
    """Name -> (loss, private), with the data in every place that a loss has."""
    w, v, b, b1 = cp.Variable(D), cp.Variable(2), cp.Variable(), cp.Variable((1,))
    ones = np.ones((len(y), 1))
    yield "least squares", cp.sum_squares(X @ w - y), [X, y]
    yield "target first", cp.sum_squares(y - X @ w), [X, y]
    yield "target added", cp.sum_squares(X @ w + y), [X, y]
    yield "intercept", cp.sum_squares(X @ w + b - y), [X, y]
    yield "column of ones", cp.sum_squares(X @ w + ones @ b1 - y), [X, y]
    yield "column of ones, target added", cp.sum_squares(X @ w + ones @ b1 + y), [X, y]
    yield "constant shift", cp.sum_squares(X @ w + np.ones(len(y)) - y), [X, y]
    yield "label", cp.sum_squares(cp.multiply(y, X @ w + b) - 1), [X, y]
    yield "label and target", cp.sum_squares(cp.multiply(y, X @ w) - y), [X, y]
    yield "label times variable", cp.sum_squares(X @ w - cp.multiply(y, b)), [X, y]
    yield "two groups", cp.sum_squares(X @ w + Z @ v - y), [X, Z, y]
    yield "two terms", cp.sum_squares(X @ w - y) + cp.sum_squares(X @ w), [X, y]
    yield "weights", W[: len(y)] @ cp.square(X @ w - y), [X, y]
    yield "map", cp.sum_squares(X @ (M @ w) - y), [X, y]
    yield "transposed", cp.sum_squares(w @ X.T - y), [X, y]
    yield "constants", cp.sum_squares(cp.Constant(X) @ w - cp.Constant(y)), [X, y]
    yield "columns", cp.sum_squares(cp.Constant(X)[:, :2] @ w[:2] - y), [X, y]
    yield "sparse", cp.sum_squares(sp.csr_array(X) @ w - y), [sp.csr_array(X), y]
    yield "huber", cp.sum(cp.huber(X @ w - y)), [X, y]
    yield "logistic", cp.sum(cp.logistic(-cp.multiply(y, X @ w + b))), [X, y]
    yield "zero-one labels", cp.sum(cp.logistic(X @ w)) - y @ (X @ w), [X, y]
    yield "inner labels", cp.sum(cp.logistic(X @ w) - cp.multiply(y, X @ w)), [X, y]
    yield "hinge", cp.sum(cp.square(cp.pos(1 - cp.multiply(y, X @ w)))), [X, y]


TYPICAL = (rng.standard_normal((N, D)), rng.standard_normal((N, 2)), rng.standard_normal(N))
SPECIAL = {
    "zeros": (np.zeros((N, D)), np.zeros((N, 2)), np.zeros(N)),
    "zero target": (*TYPICAL[:2], np.zeros(N)),
    "ones": (np.ones((N, D)), np.ones((N, 2)), np.ones(N)),
    "constant target": (*TYPICAL[:2], np.ones(N)),
    "minus ones": (-np.ones((N, D)), -np.ones((N, 2)), -np.ones(N)),
    "target in the rows": (np.tile(TYPICAL[2][:, None], D), TYPICAL[1], TYPICAL[2].copy()),
    "zero column": (TYPICAL[0] * [0, 1, 1], TYPICAL[1] * [0, 1], TYPICAL[2]),
    "not finite": (TYPICAL[0] * np.nan, TYPICAL[1] + np.inf, TYPICAL[2] * np.inf),
    "huge": tuple(1e200 * part for part in TYPICAL),
    "rank one": (np.outer(TYPICAL[2], [1, 2, 3]), TYPICAL[1][:, [0, 0]], TYPICAL[2]),
}
NAMES = [name for name, *_ in problems(*TYPICAL)]


@pytest.mark.parametrize("special", SPECIAL)
@pytest.mark.parametrize("index", range(len(NAMES)), ids=NAMES)
def test_same_reading(index, special):
    bounds = Bounds(row_norm=0.7, offset=0.4)
    found = []
    for data in (TYPICAL, SPECIAL[special]):
        _, loss, private = list(problems(*data))[index]
        erm = read(cp.Problem(cp.Minimize(loss + 1.0)), private, public=[W])
        found.append(
            (
                erm.loss.constants(bounds),
                erm.loss.has_offset,
                erm.loss.terms[0].rows.labels is not None,
                erm.loss.terms[0].row_parts,
            )
        )
        for A, C in erm.loss.terms[0].clipped(bounds, nonfinite="zero").blocks(4):
            assert np.sqrt(np.square(A.toarray() if sp.issparse(A) else A).sum(axis=1)).max() <= (
                found[-1][0].row_norm
            )
            assert np.abs(C).max() <= 0.4 or not erm.loss.has_offset
    assert found[0] == found[1]


@pytest.mark.parametrize("n", [0, 1, 2, 3])
@pytest.mark.parametrize("index", range(len(NAMES)), ids=NAMES)
def test_same_reading_for_few_records(index, n):
    bounds = Bounds(row_norm=0.7, offset=0.4)
    found = []
    for rows in (N, n):
        X, Z, y = (part[:rows].copy() for part in TYPICAL)
        _, loss, private = list(problems(X, Z, y))[index]
        if NAMES[index] == "weights" or (n == 0 and NAMES[index] == "constant shift"):
            continue  # two empty vectors cannot be told apart
        problem = cp.Problem(cp.Minimize(loss + 1.0))
        erm = read(problem, private, public=[M], adjacency="add_remove")
        found.append(
            (
                erm.loss.constants(bounds),
                erm.loss.has_offset,
                erm.loss.terms[0].rows.labels is not None,
                erm.loss.terms[0].row_parts,
            )
        )
    assert len(set(found)) <= 1


LONG = rng.standard_normal((101, D)), rng.standard_normal(101), rng.uniform(0.5, 2, (101, D))


def scaled(X, y, W):
    """Losses with numbers that some n equals, and with public arrays of one row a record."""
    w, b = cp.Variable(D, name="w"), cp.Variable((1,), name="b")
    residual, column = X @ w - y, W[:, 0].copy()
    loss = cp.sum_squares(residual)
    yield loss / 100
    yield loss / 50
    yield 0.5 * (loss / 2)
    yield 0.01 * loss
    yield cp.quad_over_lin(residual, 3.0)
    yield np.array([3.0]) * loss
    yield cp.mean(cp.square(residual))
    yield cp.sum(cp.square(residual)) / 100
    yield cp.sum(cp.square(residual)) / 3
    yield cp.mean(cp.logistic(X @ w) - cp.multiply(y, X @ w))
    yield cp.sum(cp.multiply(column, cp.square(residual)))
    yield column @ cp.square(residual)
    yield cp.sum(cp.square(residual) / column)
    yield cp.sum_squares(residual / column)
    yield cp.sum_squares(cp.multiply(column, residual))
    yield cp.sum_squares(residual + column)
    yield cp.sum_squares(residual + W[:, :1] @ b)
    yield cp.sum_squares((cp.Constant(X) - W) @ w - y)
    yield cp.sum_squares(residual + 2.7)
    yield cp.sum_squares(residual + np.array([2.7]))
    yield cp.sum_squares(residual + W[0] @ w)
    yield cp.sum_squares(np.ones((len(y), 1)) @ b + residual)
    yield cp.sum(cp.multiply(np.full(len(y), 2.0), cp.square(residual)))
    yield cp.sum(residual)
    yield cp.norm1(residual)
    yield cp.sum_squares(cp.reshape(X @ w, (len(y), 1), order="F") - y)
    yield cp.sum_squares(cp.cumsum(X @ w) - y)
    yield cp.sum_squares(X @ cp.Variable((D, 2), name="V"))


CASES = len(list(scaled(*LONG)))


@pytest.mark.filterwarnings("ignore:This use of:UserWarning")
@pytest.mark.parametrize("case", range(CASES))
def test_nothing_depends_on_the_number_of_records(case):
    """Under add_remove n is private: same outcome, same words, and n in none of them."""
    outcomes = {}
    for n in (1, 2, 3, 50, 100, 101):
        X, y, W = (part[:n].copy() for part in LONG)
        loss = list(scaled(X, y, W))[case]
        try:
            erm = read(cp.Problem(cp.Minimize(loss)), [X, y], adjacency="add_remove")
        except ProblemError as error:
            outcomes[n] = str(error)
        else:
            bounds = erm.loss.constants(Bounds(row_norm=0.7, offset=0.4))
            outcomes[n] = (
                bounds,
                erm.loss.terms[0].row_parts,
                erm.texts,
                erm.mean,
                erm.scale_statement,
            )
    assert len(set(outcomes.values())) == 1
