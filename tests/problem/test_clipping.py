"""Clipping is a rule for one record: the norm and the offset afterwards, and nothing else moves."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from cvxqop.errors import OptionError, ProblemError
from cvxqop.problem.records.clipping import ClippedRows
from cvxqop.problem.records.rows import ArrayRows

pytestmark = pytest.mark.blas

EPS = np.finfo(np.float64).eps
entries = st.floats(-1e6, 1e6, allow_subnormal=False)

small = st.floats(-10, 10).map(lambda x: round(x, 3))


@st.composite
def cases(draw):
    n, d, terms = draw(st.integers(1, 6)), draw(st.integers(1, 4)), draw(st.integers(1, 2))
    A = draw(hnp.arrays(np.float64, (n, d), elements=entries))
    C = draw(hnp.arrays(np.float64, (n, terms), elements=entries))
    anchor = draw(st.none() | hnp.arrays(np.float64, d, elements=small))
    R = draw(st.floats(1e-3, 1e3))
    B = draw(st.floats(0, 1e3))
    return A, C, anchor, R, B


def exact(values):
    return [mpmath.mpf(float(x)) for x in values]


@settings(max_examples=150, deadline=None)
@given(cases(), st.booleans(), st.integers(1, 4))
def test_bounds_hold_in_exact_arithmetic(case, sparse, size):
    A, C, anchor, R, B = case
    rows = ArrayRows(sp.csr_array(A) if sparse else A, C)
    # Below the rounding of a'θ0 itself, the cut cannot be exact.
    rounding = 1e-14 * (B + R * (0.0 if anchor is None else np.linalg.norm(anchor)))
    with mpmath.workdps(60):
        for a_block, c_block in ClippedRows(rows, R, anchor, B).blocks(size):
            dense = a_block.toarray() if sparse else a_block
            for a, c in zip(dense, c_block, strict=True):
                assert mpmath.norm(exact(a)) <= R
                shift = 0 if anchor is None else mpmath.fdot(exact(a), exact(anchor))
                assert all(abs(shift + t) <= max(B, rounding) for t in exact(c))


@settings(max_examples=100, deadline=None)
@given(cases())
def test_is_the_stated_map(case):
    """Against the definition, record by record, in plain arithmetic."""
    A, C, anchor, R, B = case
    new_a, new_c = ClippedRows(ArrayRows(A, C), R, anchor, B).take(0, len(A))
    theta = np.zeros(A.shape[1]) if anchor is None else anchor
    for i in range(len(A)):
        norm = np.linalg.norm(A[i])
        factor = min(1.0, R / norm) if norm else 1.0
        a, c = A[i] * factor, C[i] * factor
        c = np.clip(a @ theta + c, -B, B) - a @ theta
        scale = 1e-11 * (1 + R * np.linalg.norm(theta) + B)
        np.testing.assert_allclose(new_a[i], a, rtol=1e-12, atol=1e-300)
        np.testing.assert_allclose(new_c[i], c, rtol=1e-11, atol=scale)


@settings(max_examples=50, deadline=None)
@given(cases(), st.integers(0, 5), hnp.arrays(np.float64, 4, elements=entries))
def test_a_record_does_not_move_the_others(case, i, other):
    A, C, anchor, R, B = case
    i %= len(A)
    A2, C2 = A.copy(), C.copy()
    A2[i], C2[i] = other[: A.shape[1]], other[-1]
    one = ClippedRows(ArrayRows(A, C), R, anchor, B).take(0, len(A))
    two = ClippedRows(ArrayRows(A2, C2), R, anchor, B).take(0, len(A))
    rest = np.arange(len(A)) != i
    rounding = 8 * A.shape[1] * EPS
    reach = B + R * (0.0 if anchor is None else np.linalg.norm(anchor))
    np.testing.assert_allclose(one[0][rest], two[0][rest], rtol=rounding)
    np.testing.assert_allclose(one[1][rest], two[1][rest], rtol=rounding, atol=rounding * reach)


def test_interpolation_is_kept():
    """A record that a parameter interpolates is interpolated after the rows were scaled."""
    rng = np.random.default_rng(0)
    A, theta = 100 * rng.standard_normal((20, 3)), rng.standard_normal(3)
    a, c = ClippedRows(ArrayRows(A, -(A @ theta)[:, None]), 1.0, None, 1e3).take(0, 20)
    np.testing.assert_allclose(a @ theta + c[:, 0], 0, atol=1e-13)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("where", ["row", "offset"])
def test_not_finite(sparse, bad, where):
    A, C = np.ones((5, 2)), np.ones((5, 1))
    (A if where == "row" else C)[3, 0] = bad
    rows = ArrayRows(sp.csr_array(A) if sparse else A, C)
    with pytest.raises(ProblemError, match="contain NaN or infinite entries") as caught:
        ClippedRows(rows, 10.0, None, 1.0).check_finite()
    assert "3" not in str(caught.value)
    a, c = ClippedRows(rows, 10.0, None, 1.0, nonfinite="zero").take(0, 5)
    a = a.toarray() if sparse else a
    kept = np.array([1.0, 1.0, 1.0, 0.0, 1.0])
    np.testing.assert_array_equal(a, np.outer(kept, [1.0, 1.0]))
    np.testing.assert_array_equal(c[:, 0], kept)


@pytest.mark.parametrize("sparse", [False, True])
def test_finite_rows_whose_squares_overflow(sparse):
    A = np.array([[3e300, 4e300], [3e-300, 4e-300], [1.0, 0.0], [0.0, 0.0]])
    C = np.array([[1e308], [1e308], [-1e308], [0.0]])
    rows = ArrayRows(sp.csr_array(A) if sparse else A, C)
    a, c = ClippedRows(rows, 1.0, np.ones(2), 2.0).take(0, 4)
    a = a.toarray() if sparse else a
    np.testing.assert_allclose(a[0], [0.6, 0.8], rtol=1e-12)
    np.testing.assert_allclose(a[1:], A[1:], rtol=1e-12)
    np.testing.assert_allclose((a @ np.ones(2))[:, None] + c, [[2], [2], [-2], [0]], atol=1e-12)


def test_what_is_inside_is_not_copied():
    A, C = np.full((6, 2), 0.1), np.zeros((6, 1))
    a, _ = ClippedRows(ArrayRows(A, C), 1.0, None, 1.0).take(0, 6)
    assert np.shares_memory(a, A)
    before = A.copy()
    ClippedRows(ArrayRows(A, C), 0.01, None, 1.0).take(0, 6)
    np.testing.assert_array_equal(A, before)


def test_no_records():
    rows = ClippedRows(ArrayRows(np.ones((0, 3)), np.ones((0, 1))), 1.0, np.ones(3), 1.0)
    assert list(rows.blocks(5)) == []
    a, c = rows.take(0, 0)
    assert a.shape == (0, 3)
    assert c.shape == (0, 1)


def test_unknown_rule():
    with pytest.raises(OptionError, match='nonfinite must be "raise" or "zero", not \'drop\''):
        ClippedRows(ArrayRows(np.ones((1, 1)), np.ones((1, 1))), 1.0, nonfinite="drop")


def test_an_offset_bound_of_zero_cuts_every_argument():
    """B = 0: to zero, up to rounding."""
    rng = np.random.default_rng(3)
    A, anchor = rng.standard_normal((50, 4)), rng.standard_normal(4)
    rows = ArrayRows(A, rng.standard_normal((50, 1)))
    clipped = ClippedRows(rows, 1.0, anchor, 0.0)
    a, c = clipped.take(0, 50)
    assert np.abs(a @ anchor + c[:, 0]).max() <= 8 * 4 * EPS * np.linalg.norm(anchor)
