"""Several outputs a record: reading, constants, clipping."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp

from cvxqop.errors import ProblemError
from cvxqop.problem.bounds import Bounds
from cvxqop.problem.describe import describe
from cvxqop.problem.losses.multinomial import Multinomial
from cvxqop.problem.reading.analysis import read
from cvxqop.problem.records.output_clipping import nearest_probabilities

from .listed import public_of

pytestmark = pytest.mark.blas

rng = np.random.default_rng(0)
N, P, K = 13, 3, 4
EPS = np.finfo(np.float64).eps
X = rng.standard_normal((N, P))
Y = rng.standard_normal((N, K))
Z = np.eye(K)[rng.integers(K, size=N)]
X2 = rng.standard_normal((N, P))
Theta = cp.Variable((P, K), name="Theta")
b = cp.Variable(K, name="b")
row = cp.Variable((1, K), name="row")
s = cp.Variable(name="s")
T, E = X @ Theta, X @ Theta + b
ONES = np.ones((N, 1))


def lse(t):
    return cp.sum(cp.log_sum_exp(t, axis=1))


def chosen(y, t):
    return cp.sum(cp.multiply(y, t))


SQUARED = {
    "sum_squares": cp.sum_squares(T - Y),
    "turned": 0.5 * cp.sum_squares(Y - T),
    "intercept": cp.sum_squares(E - Y),
    "row": cp.sum_squares(T + row - Y),
    "ones": cp.sum_squares(T + ONES @ row - Y),
    "outer": cp.sum_squares(T + cp.outer(np.ones(N), b) - Y),
    "frobenius": cp.norm(T - Y, "fro") ** 2,
    "sum of squares": cp.sum(cp.square(E - Y)),
    "mean of squares": cp.mean(cp.square(T - Y)),
    "scaled": cp.sum_squares((3 * (X @ (2 * Theta)) - Y) / 4),
    "one target for all": cp.sum_squares(T - cp.Constant(Y)[:, :1]),
    "shifted": cp.sum_squares(T - Y - 3.0),
    "several targets": cp.sum_squares(T - Y + 2 * cp.Constant(Y)),
    "no target": cp.sum_squares(X @ Theta + cp.sum_squares(0)) + 0 * cp.sum_squares(Theta),
    "features": cp.sum_squares(cp.Constant(X) @ np.ones((P, P)) @ Theta + T - Y),
    "variable turned": cp.sum_squares(X @ cp.Variable((K, P), name="V").T - Y),
}
LABELLED = {
    "two sums": lse(T) - chosen(Z, T),
    "intercept": lse(E) - chosen(Z, E),
    "weighted": 2 * lse(E) - 2 * chosen(E, Z),
    "one sum": cp.sum(cp.log_sum_exp(E, axis=1) - cp.sum(cp.multiply(Z, E), axis=1)),
    "trace": lse(E) - cp.trace(Z.T @ E),
    "two votes": lse(T) - 0.25 * chosen(Z, T) - cp.sum(0.75 * cp.multiply(Z, T)),
    "mean": (lse(T) - chosen(Z, T)) / N,
    "kept axis": cp.sum(cp.log_sum_exp(T, axis=1, keepdims=True)) - chosen(Z, T),
}


def minimise(loss):
    return cp.Problem(cp.Minimize(loss))


def value_of(erm, values):
    theta = erm.loss.terms[0].outputs.matrix(erm.stack(values))
    total = 0.0
    for A, C in erm.loss.terms[0].rows.blocks(5):
        t = A @ theta
        if erm.loss.terms[0].outputs.labelled:
            total += np.sum(np.log(np.sum(np.exp(t), axis=1))) - np.sum(C * t)
        else:
            total += np.sum(np.square(t + C))
    return erm.loss.terms[0].losses[0][1] * total


@pytest.mark.parametrize("name", [*SQUARED, *(f"labelled {name}" for name in LABELLED)])
def test_the_reading_has_the_value_of_the_expression(name):
    labelled = name.startswith("labelled")
    loss = LABELLED[name.removeprefix("labelled ")] if labelled else SQUARED[name]
    private = [X, Z] if labelled else [X] if name == "no target" else [X, Y]
    erm = read(minimise(loss), private)
    assert erm.loss.terms[0].outputs.labelled == labelled
    assert erm.loss.terms[0].outputs.count == erm.loss.terms[0].rows.terms == K
    assert sorted(erm.loss.terms[0].outputs.layout.ravel().tolist()) == list(range(erm.dimension))
    local = np.random.default_rng(1)
    values = {v: local.standard_normal(v.shape) for v in loss.variables()}
    for variable, value in values.items():
        variable.value = value
    rest = 0.0 if erm.regulariser is None else float(erm.regulariser.value)
    np.testing.assert_allclose(value_of(erm, values) + rest, float(loss.value), rtol=1e-12)
    assert erm.mean == ("mean" in name)


def test_public_targets_and_sparse_records():
    erm = read(minimise(cp.sum_squares(E - Y)), [X], public=[Y])
    assert "public[0], shape (n,4)" in erm.public_data
    A = sp.csr_array(np.where(np.abs(X) > 0.5, X, 0.0))
    erm = read(minimise(cp.sum_squares(A @ Theta + b - Y)), [A, Y])
    values = {Theta: np.ones((P, K)), b: np.arange(K)}
    expected = np.sum((A @ np.ones((P, K)) + np.arange(K) - Y) ** 2)
    np.testing.assert_allclose(value_of(erm, values), expected)


@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
@pytest.mark.parametrize("n", [0, 1, 2, K, N])
def test_the_number_of_records_changes_nothing(n, adjacency):
    """One record with k outputs is not k records; n = k is not a broadcast."""
    for loss, private in (
        (cp.sum_squares(X[:n] @ Theta + row - Y[:n]), [X[:n], Y[:n]]),
        (lse(X[:n] @ Theta + b) - chosen(Z[:n], X[:n] @ Theta + b), [X[:n], Z[:n]]),
    ):
        erm = read(minimise(loss), private, public=[row], adjacency=adjacency)
        assert (
            erm.loss.terms[0].rows.n,
            erm.loss.terms[0].outputs.count,
            erm.loss.terms[0].rows.dimension,
        ) == (n, K, P + 1)
        text = describe(erm).replace(f"n = {n} records", "n = 13 records")
        assert f"({n}," not in text or n in (1, K)


REFUSED = {
    "another row an output": (
        cp.sum_squares(cp.hstack([X @ Theta[:, :2], X2 @ Theta[:, 2:]]) - Y),
        [X, X2, Y],
        "puts records together by hstack",
    ),
    "outputs on the right": (cp.sum_squares(T @ np.eye(K)[:, ::-1] - Y), [X, Y], "on the left"),
    "no labels": (lse(T), [X], "has no labels"),
    "labels of another argument": (lse(E) - chosen(Z, T), [X, Z], "not of the form multiply"),
    "labels of other rows": (
        lse(T) - chosen(Z, X2 @ Theta),
        [X, X2, Z],
        "not of the form multiply",
    ),
    "labels of another weight": (2 * lse(T) - chosen(Z, T), [X, Z], "weight that its labels have"),
    "labels of twice the argument": (lse(T) - chosen(Z, 2 * T), [X, Z], "weight that its labels"),
    "offset beside labels": (lse(T - Y) - chosen(Z, T), [X, Y, Z], "has an offset"),
    "weights a record": (
        cp.sum(cp.multiply(np.arange(1.0, N + 1), cp.log_sum_exp(T, axis=1))) - chosen(Z, T),
        [X, Z],
        "weights, one a record",
    ),
    "all entries at once": (cp.log_sum_exp(T), [X], "without a bound|curvature"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    loss, private, words = REFUSED[name]
    with pytest.raises(ProblemError, match=words) as caught:
        read(minimise(loss), private, public=public_of(minimise(loss), private))
    for entry in (X[0, 0], Y[0, 0], X2[0, 0]):
        assert f"{entry:.4f}" not in str(caught.value)


def probabilities():
    """Vectors of many shapes: Dirichlet of all concentrations, and the extreme ones."""
    local = np.random.default_rng(2)
    for k in (2, 3, 5, 20):
        for alpha in (0.02, 0.1, 0.5, 1.0, 10.0):
            yield from local.dirichlet(np.full(k, alpha), size=300)
        yield np.full(k, 1.0 / k)
        yield np.eye(k)[0]
        yield np.r_[0.5, 0.5, np.zeros(k - 2)]


def test_constants_of_the_multinomial_loss():
    """Suprema over p: never exceeded, and attained where the docstring says."""
    largest = {}
    for p in probabilities():
        k = len(p)
        M = np.diag(p) - np.outer(p, p)
        loss = Multinomial(k)
        values = np.linalg.eigvalsh(M)
        found = np.array([values[-1], np.trace(M), np.linalg.norm(M)])
        bounds = np.array([loss.curvature, loss.trace, loss.frobenius])
        assert np.all(found <= bounds + 1e-12)
        assert np.sum(values > 1e-12) <= loss.hessian_rank
        for y in np.eye(k):
            assert np.linalg.norm(p - y) <= loss.slope + 1e-15
        largest[k] = np.maximum(largest.get(k, 0.0), found / bounds)
    for ratios in largest.values():
        np.testing.assert_allclose(ratios, 1.0, atol=1e-12)
    uniform = np.full(5, 0.2)
    assert np.linalg.norm(uniform - np.eye(5)[0]) == pytest.approx(Multinomial(5).slope_at_zero)


@pytest.mark.parametrize("weight", [0.5, 3.0])
def test_constants_of_records(weight):
    """L, T, F, G0 of an ERM against the Hessians and gradients of random records at random Θ."""
    local = np.random.default_rng(3)
    bounds = Bounds(row_norm=2.0, offset=0.7)
    squared = read(minimise(weight * cp.sum_squares(E - Y)), [X, Y]).loss.constants(bounds)
    R2 = 2.0**2 + 1.0
    assert squared.outputs == K
    assert squared.smoothness == pytest.approx(2 * weight * R2)
    assert squared.anchor_gradient == pytest.approx(2 * weight * np.sqrt(R2) * 0.7)
    erm = read(minimise(weight * (lse(E) - chosen(Z, E))), [X, Z])
    constants = erm.loss.constants(Bounds(row_norm=2.0))
    moved = erm.loss.constants(Bounds(row_norm=2.0), np.ones(erm.dimension))
    assert moved.anchor_gradient == pytest.approx(weight * np.sqrt(2 * R2))
    for _ in range(200):
        x = local.standard_normal(P)
        a = np.r_[2.0 * x / np.linalg.norm(x), 1.0]
        t = 3 * local.standard_normal((K, P + 1)) @ a
        p = np.exp(t) / np.exp(t).sum()
        y = np.eye(K)[local.integers(K)]
        H = weight * np.kron(np.diag(p) - np.outer(p, p), np.outer(a, a))
        assert np.linalg.eigvalsh(H)[-1] <= constants.smoothness
        assert np.trace(H) <= constants.trace
        assert np.linalg.norm(H) <= constants.frobenius
        assert weight * np.linalg.norm(np.outer(a, p - y)) <= moved.anchor_gradient
        at_zero = weight * np.linalg.norm(np.outer(a, np.full(K, 1 / K) - y))
        assert at_zero == pytest.approx(constants.anchor_gradient)


@pytest.mark.parametrize("anchored", [False, True])
def test_clipping_of_offsets(anchored):
    big = Y.copy()
    big[:3] *= [[1e3], [1e140], [0.1]]
    erm = read(minimise(cp.sum_squares(E - big)), [X, big])
    theta = rng.standard_normal(erm.dimension) if anchored else np.zeros(erm.dimension)
    rows = erm.loss.terms[0].clipped(Bounds(row_norm=1.5, offset=0.9), theta)
    A, C = rows.take(0, N)
    raw_A, raw_C = erm.loss.terms[0].rows.take(0, N)
    R = np.sqrt(1.5**2 + 1)
    assert np.all(np.linalg.norm(A, axis=1) <= R)
    argument = A @ erm.loss.terms[0].outputs.matrix(theta) + C
    rounding = 8 * (P + 1) * EPS * (R * np.linalg.norm(theta) + 0.9)  # of A Θ0 + C
    assert np.all(np.linalg.norm(argument, axis=1) <= 0.9 + rounding * anchored)
    scale = np.minimum(1.0, R / np.linalg.norm(raw_A, axis=1))[:, None]
    before = (raw_A * scale) @ erm.loss.terms[0].outputs.matrix(theta) + raw_C * scale
    near = np.linalg.norm(before, axis=1) < 0.9 * (1 - 1e-12)
    np.testing.assert_allclose(argument[near], before[near], atol=1e-12)
    far = np.array([1]) if anchored else ~near  # directions are kept
    np.testing.assert_allclose(
        argument[far] / np.linalg.norm(argument[far], axis=1, keepdims=True),
        before[far] / np.linalg.norm(before[far], axis=1, keepdims=True),
        atol=1e-9,
    )
    one, c = rows.take(1, 2)  # a record is clipped by itself
    np.testing.assert_allclose(one[0], A[1], rtol=0, atol=8 * (P + 1) * EPS * R)
    np.testing.assert_allclose(c[0], C[1], rtol=0, atol=rounding)


def test_labels_become_probabilities():
    local = np.random.default_rng(4)
    raw = np.vstack([
        np.eye(5), np.zeros((1, 5)), np.full((1, 5), 0.2), 3 * local.standard_normal((200, 5)),
        [[1e300, 0, 0, 0, 0], [-1e300, 0, 0, 0, 0], [1e308, 1e308, 0, 0, 0]],
    ])  # fmt: skip
    y = nearest_probabilities(raw)
    assert np.array_equal(y[:5], np.eye(5))
    assert np.all(y >= 0)
    np.testing.assert_allclose(y.sum(axis=1), 1.0, rtol=1e-14)
    np.testing.assert_allclose(y[5], 0.2)
    np.testing.assert_allclose(y[-1], [0.5, 0.5, 0, 0, 0])
    np.testing.assert_allclose(y[-2], [0, 0.25, 0.25, 0.25, 0.25])
    # The nearest point: the angle to every vertex is obtuse.
    for before, after in zip(raw[:-3], y[:-3], strict=True):
        assert np.max((np.eye(5) - after) @ (before - after)) <= 1e-12


def test_labels_of_long_rows_stay():
    """A row that is clipped or tamed keeps its class."""
    for length in (10.0, 1e200):
        long = length * X
        erm = read(minimise(lse(long @ Theta) - chosen(Z, long @ Theta)), [long, Z])
        A, y = erm.loss.terms[0].clipped(Bounds(row_norm=1e-2)).take(0, N)
        assert np.all(np.linalg.norm(A, axis=1) <= 1e-2)
        assert np.array_equal(y, Z)


def test_a_label_that_is_not_finite():
    dirty = Z.copy()
    dirty[2, 1] = np.nan
    erm = read(minimise(lse(T) - chosen(dirty, T)), [X, dirty])
    with pytest.raises(ProblemError, match="NaN or infinite"):
        erm.loss.terms[0].clipped(Bounds(row_norm=1.0)).check_finite()
    A, y = erm.loss.terms[0].clipped(Bounds(row_norm=1.0), nonfinite="zero").take(0, N)
    assert not np.any(A[2])
    np.testing.assert_allclose(y[2], 1 / K)
