"""The quadratic form of squared losses against the direct sum: dense, sparse, mapped rows."""

import numpy as np
import pytest
import scipy.sparse as sp

from cvxqop.problem.losses.cut_loss import CutLoss
from cvxqop.problem.losses.part import Part
from cvxqop.problem.losses.scalar import squared
from cvxqop.problem.losses.squares import Squares
from cvxqop.problem.records.clipping import ClippedRows
from cvxqop.problem.records.cut_rows import CutRows
from cvxqop.problem.records.rows import ArrayRows
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
    losses = (squared, squared.times(0.25))
    w = rng.uniform(0.1, 3, (n, 2)) if weighted else np.ones((n, 2))
    anchor, theta = rng.standard_normal(d), rng.standard_normal(d)
    rows = ArrayRows(X if fill < 1 else X.toarray(), C)
    if weighted:
        records = CutRows(ClippedRows(rows, 1e6), list(w.T))
        part = Part(records, CutLoss(losses, 9.0), np.arange(d)[:, None], d)
    else:
        part = Part.of(rows, losses)
    H, g = part.quadratic_form(anchor)
    f = Quadratic(H, g, anchor)
    assert np.array_equal(H, H.T)
    dense = X.toarray()
    change = direct(dense, C, kappa, w, theta) - direct(dense, C, kappa, w, anchor)
    np.testing.assert_allclose(f.value(theta), change, rtol=1e-11)
    slopes = (w * ((dense @ theta)[:, None] + C)) @ kappa
    np.testing.assert_allclose(f.gradient(theta), dense.T @ slopes, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(part.gradient(theta), dense.T @ slopes, rtol=1e-10, atol=1e-10)


def test_no_rows():
    H, g = Part.of(ArrayRows(np.zeros((0, 3)), np.zeros((0, 1))), [squared]).quadratic_form(
        np.ones(3)
    )
    assert np.array_equal(H, np.zeros((3, 3)))
    assert np.array_equal(g, np.zeros(3))


def test_rows_of_a_memory_map(tmp_path):
    rng = np.random.default_rng(2)
    X = rng.standard_normal((100, 4))
    path = tmp_path / "rows.bin"
    X.tofile(path)
    A = np.memmap(path, dtype=np.float64, shape=(100, 4), mode="r")
    H, g = Part.of(ArrayRows(A, np.ones((100, 1))), [squared]).quadratic_form(np.zeros(4))
    np.testing.assert_allclose(H, 2 * X.T @ X, rtol=1e-12)
    np.testing.assert_allclose(g, 2 * X.sum(0), rtol=1e-12, atol=1e-12)


def test_gradients_cut_in_norm_and_their_histogram():
    A, C = np.array([[3.0, 4.0], [0.0, 1.0], [1.0, 0.0]]), np.array([[1.0], [-2.0], [0.0]])
    part = Part.of(ArrayRows(A, C), [squared])  # norms 2·1·5, 2·2·1 and 0 at the origin
    cuts, edges = np.array([100.0, 5.0, 1.0]), np.array([0.0, 1.0, 5.0, 20.0])
    found, counts = part.cut_gradients(np.zeros(2), cuts, edges)
    assert counts.tolist() == [0, 1, 1]  # what has no gradient counts nowhere
    by_hand = [[6.0, 4.0], [3.0, 0.0], [0.6, -0.2]]  # (6, 8) and (0, −4), each cut
    np.testing.assert_allclose(found, by_hand, atol=1e-12)
    _, above = part.cut_gradients(np.zeros(2), cuts, np.array([0.0, 5.0, np.inf]))
    assert above.tolist() == [1, 1]
    none = Part.of(ArrayRows(A[:0], C[:0]), [squared]).cut_gradients(np.zeros(2), cuts, edges)
    assert [part.tolist() for part in none] == [[[0.0, 0.0]] * 3, [0.0] * 3]


def test_gradients_of_several_outputs_are_cut_in_the_frobenius_norm():
    rng = np.random.default_rng(5)
    A, C, theta = rng.normal(size=(40, 3)), rng.normal(size=(40, 2)), rng.normal(size=6)
    layout = np.arange(6).reshape(3, 2, order="F")
    part = Part(ArrayRows(A, C), Squares(2, 1.5), layout, 6)
    each = 1.5 * np.einsum("ip,ik->ipk", A, A @ theta[layout] + C)
    norms = np.sqrt(np.einsum("ipk,ipk->i", each, each))
    zeta = float(np.median(norms))
    cut = np.einsum("ipk,i->pk", each, np.minimum(1.0, zeta / norms))
    found, counts = part.cut_gradients(theta, np.array([zeta]), np.array([0.0, zeta, np.inf]))
    np.testing.assert_allclose(found[0][layout], cut, rtol=1e-12, atol=1e-12)
    assert counts.tolist() == [20, 20]
