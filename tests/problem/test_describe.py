"""What `explain` prints: the reading in words, no entry of an array."""

from __future__ import annotations

import re

import cvxpy as cp
import numpy as np

from cvxqop.problem.describe import describe
from cvxqop.problem.glm import glm_loss
from cvxqop.problem.reading.analysis import read

rng = np.random.default_rng(0)
N, D = 11, 3
X, Y = rng.standard_normal((N, D)), rng.standard_normal(N)
w, b = cp.Variable(D, name="w"), cp.Variable(name="b")


def test_lasso():
    problem = cp.Problem(
        cp.Minimize(0.5 * cp.sum_squares(X @ w + b - Y) + 0.1 * cp.norm1(w)),
        [cp.norm_inf(w) <= 4, b >= 0],
    )
    assert (
        describe(read(problem, [X, Y]))
        == """\
Private loss, a sum over records of φ(a'θ + c):
  0.5 * sum_squares(private[0](n,3) @ w + b - private[1](n,))
    φ = squared, t²; curvature κ = 2; weight 0.5
Rows: n = 11 records, D = 4
  a = private[0][i] on w and 1 on b
θ, in this order:
  θ[0:3] = w, shape (3,)
  θ[3:4] = b, shape ()
Private arrays (row i belongs to record i):
  private[0], shape (n,3)
  private[1], shape (n,)
Public part of a: norm 1
Public rest of the objective:
  const * norm1(w)
Constraints:
  norm_inf(w) <= 4
  0 <= b
Neighbours: replace_one"""
    )


def test_everything_else_has_a_line():
    P = cp.Parameter((N, D), name="rows", value=X)
    labels = cp.Constant((Y > 0).astype(float), name="labels")
    weights = rng.uniform(1, 2, N)
    loss = cp.mean(cp.logistic(P @ w) - cp.multiply(labels, P @ w))
    text = describe(read(cp.Problem(cp.Minimize(loss)), [P, labels]))
    assert "labels of the logistic loss" in text
    assert "weight 1/n times a constant" in text
    assert "rows[i] on w" in text
    assert "Public rest of the objective:\n  none" in text
    loss = weights @ cp.square(P @ w - Y)
    text = describe(read(cp.Problem(cp.Minimize(loss)), [P], public=[weights, Y]))
    assert "public weights of shape (11,)" in text
    assert "public[1], shape (n,)" in text


def test_no_entry_of_an_array():
    M = rng.standard_normal((D, D))
    loss = cp.sum_squares(cp.multiply(Y, X @ (M @ w) + b) - 1)
    text = describe(read(cp.Problem(cp.Minimize(loss)), [X, Y]))
    entries = {f"{abs(x):.3g}"[:4] for x in np.r_[X.ravel(), Y]}
    assert not entries & set(re.findall(r"\d+\.\d+", text))
    assert "private[1][i] · private[0][i] times a public factor up to" in text


def test_labels_that_multiply_the_intercept_are_pointed_out():
    y = np.sign(Y)
    line = (
        "  private[1][i] multiplies the whole row, its public part (the 1 of an intercept) included"
    )
    loss = cp.sum_squares(cp.multiply(y, X @ w + b - Y))  # may be a weight
    assert line in describe(read(cp.Problem(cp.Minimize(loss)), [X, y, Y]))
    loss = cp.sum(cp.logistic(-cp.multiply(y, X @ w + b)))
    text = describe(read(cp.Problem(cp.Minimize(loss)), [X, y]))
    assert "  private[1] is cut to [−1, 1]: row_norm bounds the features alone" in text
    assert line not in text
    for other in (
        cp.sum(cp.logistic(-cp.multiply(y, X @ w))),
        cp.sum_squares(X @ w + b - y),
        cp.sum_squares(X @ w - cp.multiply(y, b)),
    ):
        assert "multiplies the whole row" not in describe(
            read(cp.Problem(cp.Minimize(other)), [X, y])
        )
    text = describe(read(cp.Problem(cp.Minimize(glm_loss("logistic", X, y, w, intercept=b))), []))
    assert "  y is cut to [−1, 1]: row_norm bounds the rest of the private part" in text
    assert "multiplies the whole row" not in text
    assert "Public part of a: norm 1\n" in text
