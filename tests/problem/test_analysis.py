"""Every spelling of a loss is read to the same numbers that CVXPY computes."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from cvxqop.errors import OptionError, ProblemError
from cvxqop.problem.reading.analysis import read, read_expression

from .listed import public_of

rng = np.random.default_rng(0)
N, D = 11, 3
X = rng.standard_normal((N, D))
X2 = rng.standard_normal((N, 2))
Y = rng.standard_normal(N)
Y1 = Y[:, None].copy()
S = rng.uniform(0.1, 2.0, N)
ROOT = np.sqrt(S)
M = rng.standard_normal((D, D))
w = cp.Variable(D, name="w")
v = cp.Variable(2, name="v")
b = cp.Variable(name="b")
b1 = cp.Variable((1,), name="b1")
b11 = cp.Variable((1, 1), name="b11")
W = cp.Variable((D, 1), name="W")
R = cp.Variable((1, D), name="R")
CX = cp.Constant(X)
CY = cp.Constant(Y)

SQUARED = {
    "sum_squares": (cp.sum_squares(X @ w - Y), [X, Y]),
    "target first": (cp.sum_squares(Y - X @ w), [X, Y]),
    "sum of squares": (cp.sum(cp.square(X @ w - Y)), [X, Y]),
    "power": (cp.sum((X @ w - Y) ** 2), [X, Y]),
    "exact power": (cp.sum(cp.power(X @ w - Y, 2, approx=False)), [X, Y]),
    "square of abs": (cp.sum(cp.abs(X @ w - Y) ** 2), [X, Y]),
    "norm squared": (cp.norm(X @ w - Y, 2) ** 2, [X, Y]),
    "square of norm": (cp.square(cp.norm(X @ w - Y)), [X, Y]),
    "pnorm": (cp.pnorm(X @ w - Y, 2) ** 2, [X, Y]),
    "frobenius": (cp.norm(X @ W - Y1, "fro") ** 2, [X, Y1]),
    "quad_over_lin": (cp.quad_over_lin(X @ w - Y, 4.0), [X, Y]),
    "mean": (cp.mean(cp.square(X @ w - Y)), [X, Y]),
    "sum over n": (cp.sum_squares(X @ w - Y) / N, [X, Y]),
    "half": (0.5 * cp.sum_squares(X @ w - Y), [X, Y]),
    "scaled twice": (3 * (cp.sum_squares(X @ w - Y) / 7), [X, Y]),
    "minus minus": (-(-2 * cp.sum_squares(X @ w - Y)), [X, Y]),
    "scaled residual": (cp.sum_squares((X @ w - Y) / 3), [X, Y]),
    "scaled rows": (cp.sum_squares(2 * (CX @ w) - CX @ w / 4 - Y), [X, Y]),
    "negative rows": (cp.sum_squares(-(X @ w) - Y), [X, Y]),
    "column vector": (cp.sum_squares(X @ W - Y1), [X, Y1]),
    "column vector, flat target": (cp.sum_squares(X @ W - Y1), [X, Y]),
    "transposed": (cp.sum_squares(w @ X.T - Y), [X, Y]),
    "row vector": (cp.sum_squares(R @ X.T - Y[None, :]), [X, Y]),
    "transposed atom": (cp.sum_squares((w @ CX.T).T - Y), [X, Y]),
    "intercept": (cp.sum_squares(X @ w + b - Y), [X, Y]),
    "intercept (1,)": (cp.sum_squares(X @ w + b1 - Y), [X, Y]),
    "intercept (1, 1)": (cp.sum_squares(X @ W + b11 - Y1), [X, Y1]),
    "ones column": (cp.sum_squares(X @ w + np.ones((N, 1)) @ b1 - Y), [X, Y]),
    "two groups": (cp.sum_squares(X @ w + X2 @ v - Y), [X, X2, Y]),
    "shared shift": (cp.sum_squares(X @ w - cp.sum(v) - Y), [X, Y]),
    "shifted variable": (cp.sum_squares(X @ (w - np.arange(3.0)) - Y), [X, Y]),
    "offset": (cp.sum_squares(X @ w + 2 - Y), [X, Y]),
    "constant vector offset": (cp.sum_squares(X @ w + np.full(N, 2.0) - Y), [X, Y]),
    "label scaling": (cp.sum_squares(cp.multiply(Y, X @ w) - 1), [X, Y]),
    "label scaling, intercept": (cp.sum_squares(cp.multiply(Y, X @ w + b) - 1), [X, Y]),
    "affine label": (cp.sum_squares(cp.multiply(2 * CY - 1, X @ w)), [X, CY]),
    "diagonal of labels": (cp.sum_squares(cp.diag(CY) @ (X @ w)), [X, Y]),
    "diagonal of labels, public rows": (cp.sum_squares(cp.diag(CY) @ (X @ w) - 1), [Y]),
    "label times variable": (cp.sum_squares(X @ w - CY * b), [X, Y]),
    "weights inside": (cp.sum_squares(cp.multiply(ROOT, X @ w - Y)), [X, Y, ROOT]),
    "public weights inside": (cp.sum_squares(cp.multiply(ROOT, X @ w - Y)), [X, Y]),
    "public diagonal": (cp.sum_squares(sp.diags_array(ROOT) @ (X @ w - Y)), [X, Y]),
    "public dense diagonal": (cp.sum_squares(np.diag(ROOT) @ (X @ w - Y)), [X, Y]),
    "public divisor": (cp.sum_squares((X @ w - Y) / ROOT), [X, Y]),
    "weights outside": (cp.sum(cp.multiply(S, cp.square(X @ w - Y))), [X, Y]),
    "weights by product": (S @ cp.square(X @ w - Y), [X, Y]),
    "weights by division": (cp.sum(cp.square(X @ w - Y) / S), [X, Y]),
    "two terms": (cp.sum_squares(X @ w - Y) + 3 * cp.sum_squares(2 * (X @ w)), [X, Y]),
    "two terms in a sum": (cp.sum(cp.square(X @ w - Y) + 2 * cp.square(X @ w)), [X, Y]),
    "opposite terms": (cp.sum_squares(X @ w - Y) + cp.sum_squares(1 - X @ w), [X, Y]),
    "public map": (cp.sum_squares(X @ (M @ w) - Y), [X, Y]),
    "public map on the array": (cp.sum_squares((CX @ M) @ w - Y), [X, Y]),
    "columns": (cp.sum_squares(CX[:, :2] @ w[:2] - Y), [X, Y]),
    "target from the array": (cp.sum_squares(CX[:, 1:] @ w[1:] - CX[:, 0]), [X]),
    "one column": (cp.sum_squares(X[:, :1] @ b1 - Y), [X[:, :1], Y]),
    "reshaped": (cp.sum_squares(cp.vec(X @ W, order="F") - Y), [X, Y]),
    "sparse": (cp.sum_squares(sp.csr_array(X) @ w - Y), [sp.csr_array(X), Y]),
    "sparse csc matrix": (cp.sum_squares(sp.csc_matrix(X) @ w - Y), [sp.csc_matrix(X), Y]),
    "sparse transposed": (cp.sum_squares(w @ sp.csr_array(X).T - Y), [sp.csr_array(X), Y]),
    "sparse with intercept": (cp.sum_squares(sp.csr_array(X) @ w + b - Y), [sp.csr_array(X), Y]),
    "sparse with labels": (
        cp.sum_squares(cp.multiply(Y, sp.csr_array(X) @ w) - 1),
        [sp.csr_array(X), Y],
    ),
    "sparse and dense": (
        cp.sum_squares(sp.csr_array(X) @ w + X2 @ v - Y),
        [sp.csr_array(X), X2, Y],
    ),
    "sparse with map": (cp.sum_squares(sp.csr_array(X) @ (M @ w) - Y), [sp.csr_array(X), Y]),
    "public rows": (cp.sum_squares(X @ w - Y), [Y]),
    "constants": (cp.sum_squares(CX @ w - CY), [CX, CY]),
    "target without array": (cp.sum_squares(b - Y), [Y]),
    "product with number": (cp.sum_squares(cp.Constant(2.0) * (X @ w) - Y), [X, Y]),
}

OTHERS = {
    "logistic": (cp.sum(cp.logistic(X @ w)), [X]),
    "logistic labels": (cp.sum(cp.logistic(-cp.multiply(Y, X @ w + b))), [X, Y]),
    "logistic mean": (cp.mean(cp.logistic(X @ w)), [X]),
    "huber": (cp.sum(cp.huber(X @ w - Y, 0.7)), [X, Y]),
    "huber of abs": (cp.sum(cp.huber(cp.abs(X @ w - Y), 0.7)), [X, Y]),
    "scaled huber": (0.5 * cp.sum(cp.huber(3 * (X @ w) - Y)), [X, Y]),
    "squared hinge": (cp.sum(cp.square(cp.pos(1 - cp.multiply(Y, X @ w)))), [X, Y]),
    "maximum": (cp.sum(cp.maximum(0, 1 - cp.multiply(Y, X @ w)) ** 2), [X, Y]),
    "two losses": (cp.sum(cp.huber(X @ w - Y)) + 2 * cp.sum(cp.logistic(-X @ w)), [X, Y, -X]),
}


@pytest.mark.parametrize("name", [*SQUARED, *OTHERS])
def test_reading_has_the_value_of_the_expression(name, agrees):
    loss, private = {**SQUARED, **OTHERS}[name]
    rest = 0.3 * cp.norm1(loss.variables()[0]) + 1.0
    problem = cp.Problem(cp.Minimize(loss + rest))
    erm = read(problem, private, public=public_of(problem, private))
    agrees(erm, problem.objective.expr)
    assert erm.quadratic == (name in SQUARED)
    assert len(erm.loss.terms) == (2 if name == "two losses" else 1)
    assert erm.dimension == sum(variable.size for variable in erm.variables)


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.int8, bool])
def test_other_dtypes(dtype, agrees):
    A = (4 * X).astype(dtype)
    t = (2 * Y).astype(dtype)
    problem = cp.Problem(cp.Minimize(cp.sum_squares(A @ w - t)))
    agrees(read(problem, [A, t]), problem.objective.expr)


def test_fortran_order_and_read_only(agrees):
    A = np.asfortranarray(X)
    t = Y.copy()
    A.flags.writeable = t.flags.writeable = False
    problem = cp.Problem(cp.Minimize(cp.sum_squares(A @ w - t)))
    erm = read(problem, [A, t])
    agrees(erm, problem.objective.expr)
    assert all(block.flags.c_contiguous for block, _ in erm.loss.terms[0].rows.blocks(4))


def test_pandas_with_any_index(agrees):
    frame = pd.DataFrame(X, index=np.arange(N) + 100, columns=list("abc"))
    series = pd.Series(Y, index=np.arange(N)[::-1])
    problem = cp.Problem(cp.Minimize(cp.sum_squares(cp.Constant(frame) @ w - series)))
    agrees(read(problem, [frame, series]), problem.objective.expr)


@pytest.mark.parametrize("private_as", ["parameter", "array"])
def test_parameters(private_as, agrees):
    P = cp.Parameter((N, D), name="P", value=X)
    q = cp.Parameter(N, name="q", value=Y)
    scale = cp.Parameter(nonneg=True, value=2.5)
    problem = cp.Problem(cp.Minimize(scale * cp.sum_squares(P @ w - q)))
    erm = read(problem, [P, q] if private_as == "parameter" else [X, Y])
    agrees(erm, problem.objective.expr)
    assert erm.loss.terms[0].losses[0][1] == 2.5


def test_sparse_parameter(agrees):
    matrix = sp.random_array((N, D), density=0.4, rng=np.random.default_rng(3), format="coo")
    P = cp.Parameter((N, D), sparsity=matrix.coords)
    P.value_sparse = matrix
    problem = cp.Problem(cp.Minimize(cp.sum_squares(P @ w - Y)))
    erm = read(problem, [P, Y])
    A, C = erm.loss.terms[0].rows.take(0, N)
    assert sp.issparse(A)
    np.testing.assert_allclose(A.toarray(), matrix.toarray())
    np.testing.assert_allclose(C[:, 0], -Y)


@pytest.mark.parametrize(("n", "d"), [(0, 3), (1, 3), (1, 1), (2, 3), (3, 1)])
def test_few_records(n, d, agrees):
    A, t = X[:n, :d], Y[:n]
    u = cp.Variable(d)
    problem = cp.Problem(cp.Minimize(cp.sum_squares(A @ u + b - t) + cp.norm1(u)))
    for adjacency in ("replace_one", "add_remove"):
        public = public_of(problem, [A, t])
        erm = read(problem, [A, t], public=public, adjacency=adjacency)
        assert (erm.loss.terms[0].rows.n, erm.dimension) == (n, d + 1)
        if n:
            agrees(erm, problem.objective.expr)
        else:
            assert list(erm.loss.terms[0].rows.blocks()) == []


def test_a_norm_of_one_record(agrees):
    """CVXPY makes ``norm1`` of any norm of one number; with two records it stays a norm."""
    texts = []
    for n in (1, 2):
        expression = cp.norm(X[:n] @ w - Y[:n], 2) ** 2
        erm = read(cp.Problem(cp.Minimize(expression)), [X[:n], Y[:n]], adjacency="add_remove")
        agrees(erm, expression)
        texts.append(erm.terms)
    assert texts[0] == texts[1]


@pytest.mark.parametrize("n", [1, 2, N])
def test_records_times_a_map_of_the_variables(n, agrees):
    z, A = cp.Variable(D), X[:n].copy()
    for row in (A @ cp.diag(z) @ M[:, 0], M[0] @ (cp.diag(z) @ cp.Constant(A).T)):
        expression = cp.sum_squares(row)
        problem = cp.Problem(cp.Minimize(expression))
        listed = public_of(problem, [A])
        agrees(read(problem, [A], public=listed, adjacency="add_remove"), expression)


def test_zero_and_constant_columns(agrees):
    A = X.copy()
    A[:, 0], A[:, 1] = 0.0, 4.0
    problem = cp.Problem(cp.Minimize(cp.sum_squares(A @ w - np.zeros(N))))
    erm = read(problem, [A], adjacency="add_remove")
    agrees(erm, problem.objective.expr)
    assert not erm.loss.has_offset


def test_rows_are_views_of_the_constant():
    problem = cp.Problem(cp.Minimize(cp.sum_squares(CX @ w - Y)))
    A, _ = read(problem, [CX, Y]).loss.terms[0].rows.take(2, 7)
    assert np.shares_memory(A, CX.value)


def test_nothing_of_the_users_is_touched():
    u = cp.Variable(D)
    A, t = X.copy(), Y.copy()
    problem = cp.Problem(cp.Minimize(cp.sum_squares(A @ u - t) + cp.norm1(u)), [u <= 1])
    read(problem, [A, t])
    assert u.value is None
    assert problem.status is None
    np.testing.assert_array_equal(A, X)
    constants = [leaf for leaf in problem.constants() if leaf.ndim == 2]
    assert all(leaf._nonneg is None and leaf._cached_is_pos is None for leaf in constants)


def test_public_terms_under_one_factor():
    problem = cp.Problem(cp.Minimize((cp.sum_squares(X @ w - Y) + cp.norm1(w)) / 4 + 2))
    erm = read(problem, [X, Y])
    w.value = np.array([1.0, -2.0, 3.0])
    assert erm.loss.terms[0].losses[0][1] == 0.25
    assert erm.regulariser.value == pytest.approx(6 / 4 + 2)


def test_a_maximisation_is_the_minimisation_of_the_negative(agrees):
    loss, rest = cp.sum_squares(X @ w - Y), 3 * cp.norm1(w) - cp.sum(w)
    one = read(cp.Problem(cp.Maximize(-loss - rest)), [X, Y])
    other = read(cp.Problem(cp.Minimize(loss + rest)), [X, Y])
    agrees(one, loss + rest)
    assert one.terms == other.terms
    with pytest.raises(ProblemError, match="negative weight"):
        read(cp.Problem(cp.Maximize(loss)), [X, Y])


def test_variables_in_order_of_appearance():
    problem = cp.Problem(cp.Minimize(cp.norm1(w) + cp.sum_squares(b + X2 @ v - X @ w)))
    assert read(problem, [X, X2]).variables == (b, v, w)


def test_same_array_twice_and_equal_arrays():
    problem = cp.Problem(cp.Minimize(cp.sum_squares(X @ w - Y)))
    assert read(problem, [X, X, Y]).private_names[1] == "private[1], shape (n,3)"
    zeros = np.zeros(N), np.zeros(N)
    problem = cp.Problem(cp.Minimize(cp.sum_squares(cp.multiply(zeros[0], X @ w) - zeros[1])))
    assert read(problem, [X, *zeros]).loss.terms[0].rows.n == N


def test_square_symmetric_array_is_not_special():
    symmetric = X.T @ X
    t = Y[:D]
    for argument in (symmetric @ w - t, w @ symmetric.T - t):
        erm = read(cp.Problem(cp.Minimize(cp.sum_squares(argument))), [symmetric, t])
        np.testing.assert_allclose(erm.loss.terms[0].rows.take(0, D)[0], symmetric)


def test_expression_alone(agrees):
    erm = read_expression(cp.sum_squares(X @ w - Y), [X, Y])
    assert erm.regulariser is None
    agrees(erm, cp.sum_squares(X @ w - Y))


def test_expression_with_public_terms_is_refused():
    with pytest.raises(ProblemError, match=r"public terms: norm1\(w\)\. Pass the private loss"):
        read_expression(cp.sum_squares(X @ w - Y) + cp.norm1(w), [X, Y])


def test_wrong_types():
    with pytest.raises(ProblemError, match=r"problem must be a cvxpy\.Problem, not int"):
        read(3, [X])
    with pytest.raises(ProblemError, match="expression must be a CVXPY expression, not float"):
        read_expression(1.0, [X])
    with pytest.raises(OptionError, match="adjacency must be one of replace_one, add_remove"):
        read(cp.Problem(cp.Minimize(cp.sum_squares(X @ w))), [X], adjacency="swap")
