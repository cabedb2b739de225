"""Sparse arrays that store a position twice mean the sum, and are clipped by it."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp

from cvxqop._blocks import canonical
from cvxqop.errors import PrivacyWarning
from cvxqop.problem.bounds import Bounds
from cvxqop.problem.glm import glm_loss
from cvxqop.problem.reading.analysis import read
from cvxqop.problem.records.clipping import ClippedRows, row_squares
from cvxqop.problem.records.rows import ArrayRows

pytestmark = pytest.mark.blas

THETA = cp.Variable(3)
BOUNDS = Bounds(row_norm=1.0, offset=1.0)

# Row 0 adds 400 times 0.05 to 20; row 1 cancels; row 2 is unsorted; row 3 has an explicit zero.
COUNTS = [400, 3, 2, 2]
DATA = np.array([0.05] * 400 + [7.0, -7.0, 0.5, 0.3, 0.4, 0.0, 0.25])
COLUMNS = np.array([0] * 400 + [1, 1, 2, 2, 0, 0, 1])
ROWS = np.repeat(np.arange(4), COUNTS)
DENSE = np.array([[20.0, 0.0, 0.0], [0.0, 0.0, 0.5], [0.4, 0.0, 0.3], [0.0, 0.25, 0.0]])
CLIPPED = np.vstack([[1.0, 0.0, 0.0], DENSE[1:]])


def csr(data=DATA):
    return sp.csr_array((data, COLUMNS, np.cumsum([0, *COUNTS])), shape=(4, 3))


def csc(data=DATA):
    order = np.argsort(COLUMNS, kind="stable")
    counts = np.bincount(COLUMNS, minlength=3)
    return sp.csc_array((data[order], ROWS[order], np.cumsum([0, *counts])), shape=(4, 3))


def coo(data=DATA):
    return sp.coo_array((data, (ROWS, COLUMNS)), shape=(4, 3))


def stale(data=DATA):
    """A matrix that wrongly believes to be canonical."""
    matrix = csr(data)
    matrix.has_canonical_format = True
    matrix.has_sorted_indices = True
    return matrix


KINDS = {
    "csr": csr,
    "csc": csc,
    "coo": coo,
    "stale flags": stale,
    "csr matrix": lambda: sp.csr_matrix(csr()),
    "int64 indices": lambda: sp.csr_array(
        (DATA, COLUMNS.astype(np.int64), np.cumsum([0, *COUNTS]).astype(np.int64)), shape=(4, 3)
    ),
}


def stored(matrix):
    """What a matrix stores, to see that nobody wrote to it."""
    names = ("data", "indices", "indptr", "coords")
    parts = [getattr(matrix, name) for name in names if hasattr(matrix, name)]
    return [np.array(part, copy=True) for part in parts]


def spellings(matrix, y):
    yield "sum_squares", cp.sum_squares(matrix @ THETA - y), [matrix, y]
    yield "constant", cp.sum_squares(cp.Constant(matrix) @ THETA - y), [matrix, y]
    yield "transposed", cp.sum_squares(THETA @ matrix.T - y), [matrix, y]
    yield "glm_loss", glm_loss("squared", matrix, y, THETA), []
    yield "blocks", glm_loss("squared", [matrix.tocsr()[:1], matrix.tocsr()[1:]], y, THETA), []
    mixed = [matrix.tocsr()[:2], matrix.toarray()[2:]]
    yield "blocks, not all sparse", glm_loss("squared", mixed, y, THETA), []
    yield "logistic", glm_loss("logistic", matrix, -np.ones(4), THETA), []


SPELLINGS = [name for name, *_ in spellings(csr(), np.ones(4))]


@pytest.mark.parametrize("size", [1, 3, 4])
@pytest.mark.parametrize("spelling", range(len(SPELLINGS)), ids=SPELLINGS)
@pytest.mark.parametrize("kind", KINDS)
def test_clipped_as_the_matrix_that_is_meant(kind, spelling, size):
    matrix = KINDS[kind]()
    before = stored(matrix)
    _, loss, private = list(spellings(matrix, np.full(4, 0.5)))[spelling]
    rows = read(cp.Problem(cp.Minimize(loss)), private).loss.terms[0].clipped(BOUNDS)
    parts = [A.toarray() if sp.issparse(A) else A for A, _ in rows.blocks(size)]
    np.testing.assert_allclose(np.vstack(parts), CLIPPED, rtol=1e-12, atol=1e-15)
    for one, two in zip(stored(matrix), before, strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("kind", KINDS)
def test_array_rows(kind):
    A, _ = ClippedRows(ArrayRows(KINDS[kind](), np.zeros((4, 1))), 1.0, None, 1.0).take(0, 4)
    np.testing.assert_allclose(A.toarray(), CLIPPED, rtol=1e-12, atol=1e-15)


def test_the_norm_refuses_what_it_would_get_wrong():
    with pytest.raises(AssertionError, match="stored twice"):
        row_squares(csr())


@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.bool_, np.float32])
@pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_array, sp.coo_array])
@pytest.mark.parametrize("glm", [False, True])
def test_other_dtypes_are_squared_as_floats(dtype, kind, glm):
    """100² does not fit an int8."""
    matrix = kind(np.array([[100, 0, 0], [0, 0, 1], [0, 0, 0]]).astype(dtype))
    loss = glm_loss("squared", matrix, None, THETA) if glm else cp.sum_squares(matrix @ THETA)
    erm = read(cp.Problem(cp.Minimize(loss)), [] if glm else [matrix])
    A, _ = erm.loss.terms[0].clipped(BOUNDS).take(0, 3)
    np.testing.assert_allclose(A.toarray(), [[1, 0, 0], [0, 0, 1], [0, 0, 0]], rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.int8, np.bool_])
def test_duplicates_are_added_as_floats(dtype):
    matrix = sp.csr_array((np.array([100, 100]).astype(dtype), [0, 0], [0, 2]), shape=(1, 3))
    total = 200.0 if dtype is np.int8 else 2.0
    assert canonical(matrix).toarray()[0, 0] == total
    for loss, private in (
        (cp.sum_squares(matrix @ THETA), [matrix]),
        (glm_loss("squared", matrix, None, THETA), []),
    ):
        rows = read(cp.Problem(cp.Minimize(loss)), private)
        assert rows.loss.terms[0].rows.take(0, 1)[0].toarray()[0, 0] == total
        assert rows.loss.terms[0].clipped(BOUNDS).take(0, 1)[0].toarray()[0, 0] == pytest.approx(
            1.0
        )


def test_a_coo_of_another_dtype_is_found():
    """SciPy adds the duplicates of a COO in its own dtype before CVXPY sees them."""
    matrix = sp.coo_array((np.array([True, True]), ([0, 0], [0, 0])), shape=(2, 3))
    assert (
        read(cp.Problem(cp.Minimize(cp.sum_squares(matrix @ THETA))), [matrix]).loss.terms[0].rows.n
        == 2
    )


def test_canonical_arrays_are_not_copied():
    matrix = sp.csr_array(DENSE)
    assert np.shares_memory(canonical(matrix).data, matrix.data)


def test_duplicates_that_are_not_finite():
    matrix = sp.csr_array((np.array([np.inf, -np.inf, 1.0]), [0, 0, 1], [0, 2, 3]), shape=(2, 3))
    erm = read(cp.Problem(cp.Minimize(glm_loss("squared", matrix, None, THETA))), [])
    A, _ = erm.loss.terms[0].clipped(BOUNDS, nonfinite="zero").take(0, 2)
    np.testing.assert_allclose(A.toarray(), [[0, 0, 0], [0, 1, 0]], rtol=1e-12)


def test_bounds_from_data():
    with pytest.warns(PrivacyWarning):
        assert Bounds.unsafe_from_data(csr()).row_norm == pytest.approx(20.0)
    for kind in (np.asarray, sp.csr_array, sp.coo_array):
        with pytest.warns(PrivacyWarning):
            bounds = Bounds.unsafe_from_data(kind(np.array([[100, 0]], dtype=np.int8)))
        assert bounds.row_norm == 100.0
