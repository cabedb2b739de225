"""The term that keeps its records: value, gradient, rows, and data that do not fit a Constant."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from cvxqop.errors import OptionError, ProblemError
from cvxqop.problem.bounds import Bounds
from cvxqop.problem.glm import glm_loss
from cvxqop.problem.reading.analysis import read, read_expression

from .test_losses import LOG_COSH

pytestmark = pytest.mark.blas

rng = np.random.default_rng(4)
N, D = 13, 3
X = rng.standard_normal((N, D))
Y = rng.standard_normal(N)
SIGN = np.sign(Y)
w, b = cp.Variable(D, name="w"), cp.Variable(name="b")
t = X @ w + b

WRITTEN = {
    "squared": cp.sum_squares(t - Y),
    "huber": cp.sum(cp.huber(t - Y, 0.7)),
    "logistic": cp.sum(cp.logistic(-cp.multiply(SIGN, t))),
    "squared_hinge": cp.sum(cp.square(cp.pos(1 - cp.multiply(SIGN, t)))),
}


def target(name):
    return Y if name in ("squared", "huber") else SIGN


@pytest.mark.parametrize("name", WRITTEN)
def test_same_as_written_out(name, agrees):
    term = glm_loss(name, X, target(name), w, intercept=b, threshold=0.7)
    rest = 0.5 * cp.norm1(w)
    problem = cp.Problem(cp.Minimize(0.5 * term + rest))
    assert problem.is_dcp()
    erm = read(problem, [])
    other = read(cp.Problem(cp.Minimize(0.5 * WRITTEN[name] + rest)), [X, target(name)])
    bounds = Bounds(row_norm=1.5, offset=2.0)
    assert erm.loss.constants(bounds) == other.loss.constants(bounds)
    assert erm.variables == other.variables
    for one, two in zip(
        erm.loss.terms[0].clipped(bounds).blocks(5),
        other.loss.terms[0].clipped(bounds).blocks(5),
        strict=True,
    ):
        np.testing.assert_allclose(one[0], two[0], atol=1e-15)
        np.testing.assert_allclose(one[1], two[1], atol=1e-15)
    agrees(erm, 0.5 * WRITTEN[name] + rest)


@pytest.mark.parametrize("name", WRITTEN)
def test_value_and_gradient(name):
    term = glm_loss(name, X, target(name), 2 * w + 1, intercept=b, threshold=0.7)
    written = {
        "squared": cp.sum_squares(X @ (2 * w + 1) + b - Y),
        "huber": cp.sum(cp.huber(X @ (2 * w + 1) + b - Y, 0.7)),
        "logistic": cp.sum(cp.logistic(-cp.multiply(SIGN, X @ (2 * w + 1) + b))),
        "squared_hinge": cp.sum(cp.square(cp.pos(1 - cp.multiply(SIGN, X @ (2 * w + 1) + b)))),
    }[name]
    w.value, b.value = np.array([0.2, -0.1, 0.4]), np.array(0.3)
    assert term.value == pytest.approx(written.value, rel=1e-12)
    for variable in (w, b):
        found, expected = (_dense(node.grad[variable]) for node in (term, written))
        np.testing.assert_allclose(found, expected, rtol=1e-9)


def _dense(gradient):
    return np.ravel(gradient.toarray() if sp.issparse(gradient) else gradient)


def test_own_loss():
    erm = read_expression(glm_loss(LOG_COSH, X, Y, w), [])
    assert erm.loss.terms[0].losses[0][0] is LOG_COSH
    A, C = erm.loss.terms[0].rows.take(0, N)
    np.testing.assert_allclose(A, X)
    np.testing.assert_allclose(C[:, 0], -Y)
    without = read_expression(glm_loss(LOG_COSH, X, None, w), [])
    assert not without.loss.has_offset


KINDS = {
    "list of blocks": lambda A: [A[:4], A[4:5], A[5:]],
    "list of sparse blocks": lambda A: [sp.csr_array(A[:4]), sp.csc_array(A[4:])],
    "csr": sp.csr_array,
    "csc matrix": sp.csc_matrix,
    "frame": pd.DataFrame,
    "fortran": np.asfortranarray,
    "float32": lambda A: A.astype(np.float32),
}


@pytest.mark.parametrize("kind", KINDS)
def test_kinds_of_data(kind):
    labels = [Y[:7], Y[7:]] if kind == "list of blocks" else pd.Series(Y)
    data = KINDS[kind](X)
    erm = read_expression(glm_loss("squared", data, labels, w, intercept=b), [])
    sparse = kind in ("csr", "csc matrix", "list of sparse blocks")
    parts = []
    for A, C in erm.loss.terms[0].rows.blocks(5):
        assert sp.issparse(A) == sparse
        parts.append(np.c_[A.toarray() if sparse else A, C])
    expected = np.c_[X, np.ones(N), -Y]
    np.testing.assert_allclose(np.vstack(parts), expected, rtol=1e-6 if kind == "float32" else 0)


def test_memory_map_is_read_in_place(tmp_path):
    path = tmp_path / "rows"
    X.tofile(path)
    data = np.memmap(path, dtype=np.float64, mode="r", shape=(N, D))
    erm = read_expression(glm_loss("squared", data, Y, w), [])
    A, _ = erm.loss.terms[0].rows.take(3, 9)
    assert np.shares_memory(A, data)
    np.testing.assert_array_equal(A, X[3:9])


def test_truncated_memory_map(tmp_path):
    path = tmp_path / "rows"
    X.tofile(path)
    data = np.memmap(path, dtype=np.float64, mode="r", shape=(N, D))
    term = glm_loss("squared", data, Y, w)
    with open(path, "r+b") as file:
        file.truncate(8 * D * 4)
    with pytest.raises(ProblemError, match="memory map X is shorter than its shape"):
        read_expression(term, []).loss.terms[0].rows.take(0, N)
    with pytest.raises(ProblemError, match="truncated"):
        glm_loss("squared", data, Y, w)
    path.unlink()
    with pytest.raises(ProblemError, match="memory map X is gone"):
        glm_loss("squared", data, Y, w)


def test_two_terms_on_the_same_data():
    loss = glm_loss("squared", X, Y, w) + 2 * glm_loss("huber", X, None, w)
    erm = read_expression(loss, [])
    assert [weight for _, weight in erm.loss.terms[0].losses] == [1.0, 2.0]


def test_words_hold_no_entry():
    term = glm_loss("squared", X, Y, w, intercept=b)
    assert str(term) == 'glm_loss("squared", X(13,3), y(13,), w, b)'
    erm = read_expression(term, [])
    assert erm.terms == ('glm_loss("squared", X(n,3), y(n,), w, b)',)
    assert erm.loss.terms[0].row_parts.private


def test_cvxpy_cannot_solve_it_and_says_so():
    problem = cp.Problem(cp.Minimize(glm_loss("squared", X, Y, w)))
    with pytest.raises(ProblemError, match=r"keeps its records outside CVXPY.*cvxqop\.privatize"):
        problem.solve(solver="CLARABEL")


def test_no_records():
    term = glm_loss("squared", np.zeros((0, D)), np.zeros(0), w)
    w.value = np.ones(D)
    assert term.value == 0.0
    assert read_expression(term, []).loss.terms[0].rows.n == 0


def test_private_in_a_constraint():
    problem = cp.Problem(cp.Minimize(cp.norm1(w)), [glm_loss("squared", X, Y, w) <= 1])
    with pytest.raises(ProblemError, match=r"The constraint glm_loss.* holds private data"):
        read(problem, [])


@pytest.mark.parametrize(
    ("arguments", "options", "error", "words"),
    [
        (("cubic", X, Y, w), {}, OptionError, "unknown loss 'cubic'; known are squared"),
        ((3, X, Y, w), {}, OptionError, "loss must be a name or a ScalarLoss, not int"),
        (("huber", X, Y, w), {"threshold": 0}, OptionError, "threshold must be positive"),
        (("logistic", X, None, w), {}, OptionError, "'logistic' needs labels y"),
        (("squared", X, Y[:5], w), {}, ProblemError, r"X has shape \(13, 3\) and y \(5, 1\)"),
        (("squared", X, Y, cp.Variable(4)), {}, ProblemError, "3 columns and theta 4 entries"),
        (("squared", X, Y, w), {"intercept": w}, ProblemError, "intercept has 3 entries"),
        (("squared", X[0], Y, w), {}, ProblemError, "X has 1 axes; it must have 2"),
        (("squared", X * 1j, Y, w), {}, ProblemError, "X must hold real numbers"),
        (("squared", "X", Y, w), {}, ProblemError, "X must be an array, a memory map.*not str"),
        (("squared", [], Y, w), {}, ProblemError, "X is an empty list of blocks"),
        (("squared", [X, X[:, :2]], Y, w), {}, ProblemError, "same number of columns"),
    ],
)
def test_refused(arguments, options, error, words):
    with pytest.raises(error, match=words):
        glm_loss(*arguments, **options)


def test_theta_must_be_affine():
    with pytest.raises(ProblemError, match="theta and intercept must be affine"):
        read_expression(glm_loss("squared", X, Y, cp.abs(w)), [])


def test_a_factor_under_add_remove_is_said():
    """Whether it equals 1/n is not looked at, so that nothing depends on n."""
    for n in (N, N + 1):
        with pytest.raises(ProblemError, match="divided by a number"):
            read_expression(glm_loss("squared", X, Y, w) / n, [], adjacency="add_remove")
        term = 0.5 * ((1 / n) * glm_loss("squared", X, Y, w))
        erm = read_expression(term, [], adjacency="add_remove")
        assert erm.scale_statement == (
            f"The factor 1/{n} of the loss is a public number and not the number of records."
        )
        assert not erm.mean


@pytest.mark.parametrize("name", ["logistic", "squared_hinge"])
def test_the_intercept_of_a_classifier_is_public(name):
    """R² = row_norm² + 1, and a record with ‖x‖ = row_norm and a label ±1 is not touched."""
    rows = X / np.linalg.norm(X, axis=1)[:, None] * (1 - 1e-12)
    erm = read_expression(glm_loss(name, rows, SIGN, w, intercept=b), [])
    assert erm.loss.row_norm(Bounds(row_norm=1.0)) == pytest.approx(np.sqrt(2.0), rel=1e-15)
    A, _ = erm.loss.terms[0].clipped(Bounds(row_norm=1.0, offset=1.0)).take(0, N)
    np.testing.assert_array_equal(A, -SIGN[:, None] * np.c_[rows, np.ones(N)])
    twice = read_expression(glm_loss(name, rows, SIGN, w, intercept=2 * b + 1), [])
    assert twice.loss.row_norm(Bounds(row_norm=1.0)) == pytest.approx(np.sqrt(5.0), rel=1e-15)
    shared = read_expression(glm_loss(name, rows, SIGN, w, intercept=w[0]), [])
    assert shared.loss.row_norm(Bounds(row_norm=1.0)) == pytest.approx(2.0, rel=1e-15)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_labels_beyond_one_are_cut(kind):
    wild = np.array([1e300, -7.0, 0.3, 0.0, 1.0, -1.0, 2.0, -1e-300, *np.ones(N - 8)])
    erm = read_expression(glm_loss("logistic", kind(X), wild, w, intercept=b), [])
    A, _ = erm.loss.terms[0].clipped(Bounds(row_norm=100.0)).take(0, N)
    A = A.toarray() if sp.issparse(A) else A
    np.testing.assert_allclose(A, -np.clip(wild, -1, 1)[:, None] * np.c_[X, np.ones(N)])
    for A, _ in erm.loss.terms[0].clipped(Bounds(row_norm=0.01)).blocks(4):
        A = A.toarray() if sp.issparse(A) else A
        assert np.linalg.norm(A, axis=1).max() <= np.hypot(0.01, 1.0)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_label_that_is_not_finite(bad):
    labels = SIGN.copy()
    labels[2] = bad
    erm = read_expression(glm_loss("logistic", X, labels, w, intercept=b), [])
    with pytest.raises(ProblemError, match="NaN or infinite"):
        erm.loss.terms[0].clipped(Bounds(row_norm=1.0)).check_finite()
    assert not erm.loss.terms[0].clipped(Bounds(row_norm=1.0), nonfinite="zero").take(2, 3)[0].any()


def test_finite_rows_with_huge_entries():
    """Entries whose squares overflow are clipped and not taken for infinite; labels cut first."""
    huge = X.copy()
    huge[1] = [3e300, 4e300, 0.0]
    erm = read_expression(glm_loss("logistic", huge, 1e308 * SIGN, w, intercept=b), [])
    A, _ = erm.loss.terms[0].clipped(Bounds(row_norm=1.0)).take(1, 2)
    expected = -SIGN[1] * np.sqrt(2) * np.array([0.6, 0.8, 0, 0])
    np.testing.assert_allclose(A[0], expected, rtol=1e-9, atol=1e-200)
