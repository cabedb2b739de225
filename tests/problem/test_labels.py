"""Labels of a logistic loss, written as a linear term."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp

from cvxqop.errors import ProblemError
from cvxqop.problem.bounds import Bounds
from cvxqop.problem.losses.cut_loss import linear_term
from cvxqop.problem.losses.scalar import logistic
from cvxqop.problem.reading.analysis import read

from .conftest import value_of

pytestmark = pytest.mark.blas

rng = np.random.default_rng(2)
N, D = 12, 3
X = rng.standard_normal((N, D))
Y = (rng.random(N) < 0.5).astype(float)
SOFT = rng.random(N)
w, b = cp.Variable(D, name="w"), cp.Variable(name="b")
CX, CY, CS = cp.Constant(X), cp.Constant(Y), cp.Constant(SOFT)

SPELLINGS = {
    "inside": (cp.sum(cp.logistic(X @ w) - cp.multiply(CY, X @ w)), [X, CY]),
    "product": (cp.sum(cp.logistic(X @ w)) - CY @ (X @ w), [X, CY]),
    "product from the right": (cp.sum(cp.logistic(X @ w)) - (X @ w) @ CY, [X, CY]),
    "separate sum": (cp.sum(cp.logistic(X @ w)) - cp.sum(cp.multiply(X @ w, CY)), [X, CY]),
    "mean": (cp.mean(cp.logistic(X @ w) - cp.multiply(CY, X @ w)), [X, CY]),
    "negated": (-cp.sum(cp.multiply(CY, X @ w) - cp.logistic(X @ w)) / N, [X, CY]),
    "intercept": (cp.sum(cp.logistic(X @ w + b) - cp.multiply(CY, X @ w + b)), [X, CY]),
    "intercept apart": (cp.sum(cp.logistic(X @ w + b)) - CY @ (X @ w) - cp.sum(CY * b), [X, CY]),
    "soft": (cp.sum(cp.logistic(X @ w) - cp.multiply(CS, X @ w)), [X, CS]),
    "mirrored row": (cp.sum(cp.logistic(-(CX @ w)) + cp.multiply(1 - CS, CX @ w)), [CX, CS]),
    "two summands": (
        cp.sum(cp.logistic(CX @ w)) - 0.5 * CS @ (CX @ w) - CY @ (CX @ w) / 2,
        [CX, CS, CY],
    ),
    "sparse": (
        cp.sum(cp.logistic(sp.csr_array(X) @ w)) - CY @ (sp.csr_array(X) @ w),
        [sp.csr_array(X), CY],
    ),
    "scaled row": (3 * cp.sum(cp.logistic(2 * (CX @ w)) - cp.multiply(CY, 2 * (CX @ w))), [CX, CY]),
    "one column": (
        cp.sum(cp.logistic(CX[:, :1] @ w[:1]) - cp.multiply(CY, CX[:, :1] @ w[:1])),
        [CX, CY],
    ),
    "target ± 1": (
        cp.sum(cp.logistic(CX @ w)) - (2 * CY - 1) @ (CX @ w) / 2 - cp.sum(CX @ w) / 2,
        [CX, CY],
    ),
}


@pytest.mark.parametrize("name", SPELLINGS)
def test_value(name):
    loss, private = SPELLINGS[name]
    erm = read(cp.Problem(cp.Minimize(loss + cp.norm1(w))), private)
    assert erm.loss.terms[0].rows.labels is not None
    linear = linear_term(erm.loss.terms[0].clipped(Bounds(row_norm=1e3, offset=1e3)))
    for seed in range(3):
        values = {v: np.random.default_rng(seed).standard_normal(v.shape) for v in erm.variables}
        for variable, value in values.items():
            variable.value = value
        theta = erm.stack(values)
        found = value_of(erm, theta) + linear @ theta
        np.testing.assert_allclose(found, loss.value, rtol=1e-10, atol=1e-10)


def test_zero_one_labels_are_plus_minus_one():
    """Same gradient as log(1 + exp(−(2y − 1) x'w)), record by record, clipping included."""
    sign = 2 * Y - 1
    one = read(cp.Problem(cp.Minimize(SPELLINGS["inside"][0])), [X, CY])
    two = read(cp.Problem(cp.Minimize(cp.sum(cp.logistic(-cp.multiply(sign, X @ w))))), [X, sign])
    bounds = Bounds(row_norm=0.8)
    assert one.loss.constants(bounds) == two.loss.constants(bounds)
    theta = np.array([0.3, -1.0, 2.0])

    def gradient(erm):
        rows = erm.loss.terms[0].clipped(bounds)
        total = linear_term(rows)
        for A, C in rows.blocks():
            total = total + A.T @ erm.loss.terms[0].losses[0][0].derivative(A @ theta + C[:, 0])
        return total

    np.testing.assert_allclose(gradient(one), gradient(two), rtol=1e-10)


@pytest.mark.parametrize("scale", [1.0, -1.0])
def test_labels_outside_are_cut(scale):
    """y below 0 counts as 0, above 1 as 1, also for a row with the other sign."""
    wild = np.linspace(-3, 4, N)
    row = scale * (CX @ w)
    loss = cp.sum(cp.logistic(row) - cp.multiply(wild, row))
    erm = read(cp.Problem(cp.Minimize(loss)), [CX, wild])
    linear = linear_term(erm.loss.terms[0].clipped(Bounds(row_norm=1e3)))
    np.testing.assert_allclose(linear, -scale * X.T @ np.clip(wild, 0, 1))


def test_slopes_stay_within_the_bound():
    """|φ'(t) − y| ≤ 1 and, at |t| ≤ B, ≤ σ(B): the constants need no change for labels."""
    t, y = np.meshgrid(np.linspace(-3, 3, 61), np.linspace(0, 1, 11))
    assert np.abs(logistic.derivative(t) - y).max() <= logistic.slope_bound(3.0) + 1e-15


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_label_that_is_not_finite(bad):
    labels = Y.copy()
    labels[4] = bad
    loss = cp.sum(cp.logistic(CX @ w) - cp.multiply(labels, CX @ w))
    erm = read(cp.Problem(cp.Minimize(loss)), [CX, labels])
    with pytest.raises(ProblemError, match="NaN or infinite"):
        linear_term(erm.loss.terms[0].clipped(Bounds(row_norm=1.0)))
    with pytest.raises(ProblemError, match="NaN or infinite"):
        erm.loss.terms[0].clipped(Bounds(row_norm=1.0)).check_finite()
    rows = erm.loss.terms[0].clipped(Bounds(row_norm=1e3), nonfinite="zero")
    keep = np.arange(N) != 4
    np.testing.assert_allclose(linear_term(rows), -X[keep].T @ Y[keep])
    assert not rows.take(4, 5)[0].any()


def test_without_labels_the_linear_term_is_zero():
    erm = read(cp.Problem(cp.Minimize(cp.sum_squares(X @ w))), [X])
    assert not erm.loss.terms[0].rows.labels is not None
    assert not linear_term(erm.loss.terms[0].clipped(Bounds(row_norm=1.0))).any()


@pytest.mark.parametrize(
    ("loss", "words"),
    [
        (cp.sum(cp.logistic(CX @ w + b)) - CY @ (CX @ w), "both must have the same row"),
        (cp.sum(cp.logistic(CX @ w)) - CY @ (CX @ w + b), "both must have the same row"),
        (cp.sum(cp.logistic(CX @ w)) - CY[:5] @ (CX[:5] @ w), "different numbers of records"),
        (
            cp.sum(cp.multiply(SOFT, cp.logistic(CX @ w) - cp.multiply(CY, CX @ w))),
            "has public weights",
        ),
    ],
)
def test_refused(loss, words):
    with pytest.raises(ProblemError, match=words):
        read(cp.Problem(cp.Minimize(loss)), [CX, CY], public=[SOFT])


def test_mean_under_add_remove():
    with pytest.raises(ProblemError, match="divided by the number of records"):
        read(cp.Problem(cp.Minimize(SPELLINGS["mean"][0])), [X, CY], adjacency="add_remove")
