"""Matching arrays by value."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp

from cvxqop.errors import ProblemError
from cvxqop.problem.bounds import Bounds
from cvxqop.problem.private.data import match
from cvxqop.problem.reading.analysis import read

rng = np.random.default_rng(0)
X, Y = rng.standard_normal((6, 3)), rng.standard_normal(6)
w = cp.Variable(3)


def axis(entry, constant):
    leaf = cp.Constant(constant)
    found = match([entry], [leaf + 0]).match(leaf)
    return "another array" if found is None else found.axis


@pytest.mark.parametrize(
    ("entry", "constant", "expected"),
    [
        (X, X, 0),
        (X, X.T, 1),
        (Y, Y, 0),
        (Y, Y[:, None], 0),
        (Y, Y[None, :], 1),
        (Y[:, None], Y, 0),
        (Y[:, None], Y[None, :], 1),
        (Y[None, :], Y, -1),
        (Y[None, :], Y[None, :], 0),
        (Y[None, :], Y[:, None], 1),
        (X @ X.T + X @ X.T, X @ X.T + X @ X.T, 0),
        (sp.csr_array(X), sp.csc_array(X), 0),
        (sp.csr_array(X), sp.coo_array(X.T), 1),
        (np.float32(X), np.float32(X), 0),
        (Y[:1], Y[:1], None),
    ],
)
def test_axis_of_the_records(entry, constant, expected):
    entry = (entry + entry.T) / 2 if entry.shape == (6, 6) else entry
    constant = entry if entry.shape == (6, 6) else constant
    assert axis(entry, constant) == expected


def test_nan_matches_nan():
    A = X.copy()
    A[2, 1] = np.nan
    assert axis(A, A) == axis(A[:], A.copy()) == 0
    B = A.copy()
    B[0, 0] = np.nan
    assert axis(A, B) == "another array"


def test_unsorted_sparse_with_duplicates():
    a = sp.coo_array(([1.0, 2.0, 3.0], ([0, 0, 4], [1, 1, 0])), shape=(5, 3))
    b = sp.csc_array(a)
    assert axis(a, b) == 0


def test_a_last_entry_decides():
    big = rng.standard_normal((70_000, 5))
    other = big.copy()
    other[-1, -1] += 1e-12
    assert axis(big, other) == "another array"


def test_scalars_are_never_matched():
    node = 2.0 * cp.sum(w)
    data = match([], [node])
    assert not data.contains(node)
    with pytest.raises(ProblemError, match="one or two axes, not 0"):
        match([np.array(2.0)], [node])


def test_equal_arrays_are_told_apart_by_identity():
    a, b = np.ones(6), np.ones(6)
    first, second = cp.Constant(b), cp.Constant(a)
    data = match([a, b], [first + second])
    assert data.match(first).entry == 1
    assert data.match(second).entry == 0


@pytest.mark.parametrize("kind", [np.asarray, cp.Constant, lambda y: sp.csr_array(y[:, None])])
def test_zeros_that_cvxpy_dropped(kind):
    """CVXPY turns e + zeros into e: no error, and the loss still counts as having an offset."""
    zeros = kind(np.zeros(6))
    argument = X @ cp.Variable((3, 1) if sp.issparse(zeros) else 3) + zeros
    assert argument.args[0].shape == (6, 3)
    problem = cp.Problem(cp.Minimize(cp.sum_squares(argument)))
    erm = read(problem, [X, zeros])
    assert erm.loss.has_offset
    with pytest.raises(ProblemError, match="the loss has an offset"):
        erm.loss.constants(Bounds(row_norm=1.0))
    nonzero = X @ w + Y
    same = read(cp.Problem(cp.Minimize(cp.sum_squares(nonzero))), [X, Y])
    bounds = Bounds(row_norm=1.0, offset=1.0)
    assert erm.loss.constants(bounds) == same.loss.constants(bounds)


@pytest.mark.parametrize("as_constant", [False, True])
def test_a_constant_target_is_not_the_column_of_ones(as_constant):
    """The intercept stays public, and the constants the same, whatever the target holds."""
    b = cp.Variable((1,))
    found = []
    for y in (np.ones(6), Y):
        target = cp.Constant(y) if as_constant else y
        loss = cp.sum_squares(X @ w + np.ones((6, 1)) @ b - target)
        erm = read(cp.Problem(cp.Minimize(loss)), [X, target])
        found.append(
            (erm.loss.constants(Bounds(row_norm=1.0, offset=1.0)), erm.loss.terms[0].row_parts)
        )
    assert found[0] == found[1]


def test_temporary_arrays_may_share_an_id():
    """CVXPY remembers the id of an array; a later array may have got the same one."""
    for _ in range(50):
        loss = cp.sum(cp.logistic(-cp.multiply(Y[:1] * 0 + 1, X[:1] @ w)))
        erm = read(cp.Problem(cp.Minimize(loss)), [X[:1], Y[:1] * 0 + 1])
        assert erm.loss.terms[0].row_parts.private
        assert erm.public_data == ()
        ones = np.ones(6)
        loss = cp.sum_squares(X @ w - ones[:]) + cp.sum_squares(X @ w - ones[:])
        assert read(cp.Problem(cp.Minimize(loss)), [X, ones[:]]).public_data == ()
        assert read(cp.Problem(cp.Minimize(loss)), [X, ones[:]], adjacency="add_remove")


def test_names():
    P = cp.Parameter((6, 3), name="P", value=X)
    C = cp.Constant(Y, name="target")
    data = match([P, C], [P @ w - C])
    assert data.names == ("P", "target")
    assert data.descriptions == ("P, shape (n,3)", "target, shape (n,)")
