"""The Gram form against the direct sum, for dense, sparse and memory-mapped rows."""

import numpy as np
import pytest
import scipy.sparse as sp

from cvxqop.solve.smooth.gram import gram
from cvxqop.solve.smooth.quadratic import Quadratic

pytestmark = pytest.mark.blas


def direct(A, C, kappa, w, theta):
    return 0.5 * np.sum(w * ((A @ theta)[:, None] + C) ** 2 * kappa)


@pytest.mark.parametrize("fill", [0.01, 0.5, 1.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_value_is_the_sum_of_squares(fill, weighted):
    rng = np.random.default_rng(1)
    n, d = 500, 30
    X = sp.random(n, d, fill, format="csr", rng=rng)
    C, kappa = rng.standard_normal((n, 2)), np.array([2.0, 0.5])
    w = rng.uniform(0.1, 3, (n, 2)) if weighted else np.ones((n, 2))
    anchor, theta = rng.standard_normal(d), rng.standard_normal(d)
    A = X if fill < 1 else X.toarray()

    def blocks():
        for i in range(0, n, 64):
            part = (A[i : i + 64], C[i : i + 64])
            yield (*part, w[i : i + 64]) if weighted else part

    H, g = gram(blocks(), kappa, anchor)
    f = Quadratic(H, g, anchor)
    assert np.array_equal(H, H.T)
    dense = X.toarray()
    change = direct(dense, C, kappa, w, theta) - direct(dense, C, kappa, w, anchor)
    np.testing.assert_allclose(f.value(theta), change, rtol=1e-11)
    slopes = (w * ((dense @ theta)[:, None] + C)) @ kappa
    np.testing.assert_allclose(f.gradient(theta), dense.T @ slopes, rtol=1e-10, atol=1e-10)


def test_no_rows():
    H, g = gram(iter([]), [1.0], np.ones(3))
    assert np.array_equal(H, np.zeros((3, 3)))
    assert np.array_equal(g, np.zeros(3))


def test_rows_of_a_memory_map(tmp_path):
    rng = np.random.default_rng(2)
    X = rng.standard_normal((100, 4))
    path = tmp_path / "rows.bin"
    X.tofile(path)
    A = np.memmap(path, dtype=np.float64, shape=(100, 4), mode="r")
    H, g = gram([(A[:50], np.ones((50, 1))), (A[50:], np.ones((50, 1)))], [1.0], np.zeros(4))
    np.testing.assert_allclose(H, X.T @ X, rtol=1e-12)
    np.testing.assert_allclose(g, X.sum(0), rtol=1e-12, atol=1e-12)
