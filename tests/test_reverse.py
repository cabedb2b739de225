"""One reverse pass over an expression gives the value and the gradient that CVXPY gives."""

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp

from cvxqop._cvxpy.reverse import Tape

RNG = np.random.default_rng(0)
X, Z = RNG.standard_normal((20, 3)), RNG.standard_normal((20, 3))
y, c = RNG.standard_normal(20), RNG.uniform(0.1, 2.0, 20)
Y = np.eye(4)[RNG.integers(0, 4, 20)]
w, b, W, bias = cp.Variable(3), cp.Variable(), cp.Variable((3, 4)), cp.Variable((1, 4))

EXPRESSIONS = {
    "exp": cp.sum(cp.exp(0.3 * (X @ w))) - y @ (X @ w),
    "softmax": cp.sum(cp.log_sum_exp(X @ W + bias, axis=1)) - cp.sum(cp.multiply(Y, X @ W)),
    "softmax, transposed": cp.sum(cp.log_sum_exp(W.T @ X.T, axis=0)),
    "two rows": cp.sum(cp.square(cp.pos(X @ w - y))) + cp.sum_squares(Z @ w + b),
    "huber of norms": cp.sum(cp.huber(cp.norm(X @ W, axis=1), 0.7)),
    "pseudo-Huber": cp.sum(cp.norm(cp.vstack([X @ w - y, np.ones(20)]), axis=0)),
    "squared norm": cp.norm(X @ w - y) ** 2 / 7,
    "perspective": cp.quad_over_lin(X @ w - y, 3 + b),
    "kl": cp.sum(cp.kl_div(c, X @ w + 20)),
    "rel_entr": cp.sum(cp.rel_entr(X @ w + 20, c)),
    "quad_form": (X.T @ y) @ w + 0.5 * cp.quad_form(w, X.T @ X),
    "power": cp.sum(cp.power(X @ W, 4)),
    "sparse": cp.sum(cp.logistic((sp.csr_array(X) @ W)[:, 1])),
    "column": cp.sum(cp.logistic(X @ W[:, 0] - y)) + cp.sum(cp.huber(X @ W.T[1, :3])),
    "chosen": cp.sum((X @ w)[2:7] ** 2) + cp.mean(cp.logistic(X @ w)),
    "concave": cp.sum(-cp.log(X @ w + 20)) + cp.sum(cp.inv_pos(X @ w + 20)),
    "weights": c @ cp.exp(X @ w) + 2 * cp.sum(cp.multiply(c, cp.square(X @ w)) / 3),
    "shared": cp.square(cp.sum(w)) + cp.exp(cp.sum(w)) + cp.exp(b) * 2,
}


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_against_cvxpy(name):
    expression = EXPRESSIONS[name]
    rng = np.random.default_rng(1)
    point = {v: 0.3 * rng.standard_normal(v.shape) for v in expression.variables()}
    value, gradient = Tape(expression)({v.id: x for v, x in point.items()})
    assert all(v.value is None for v in point)
    try:
        for v, x in point.items():
            v.value = x
        assert value == pytest.approx(float(np.squeeze(expression.value)), rel=1e-13)
        known = expression.grad
    finally:
        for v in point:
            v.value = None
    for v in point:
        exact = known[v].toarray() if sp.issparse(known[v]) else np.asarray(known[v])
        exact = exact.reshape(v.shape, order="F")
        np.testing.assert_allclose(gradient[v.id], exact, rtol=1e-12, atol=1e-12)


def test_outside_the_domain_or_without_derivative():
    assert Tape(cp.sum(-cp.log(X @ w)))({w.id: np.zeros(3)}) is None
    length = Tape(cp.sum(cp.square(cp.norm(X @ W, axis=1))))
    assert not np.any(length({W.id: np.zeros((3, 4))})[1][W.id])


def test_the_same_tape_at_several_points():
    tape = Tape(cp.sum_squares(X @ w - y))
    for point in np.eye(3):
        value, gradient = tape({w.id: point})
        residual = X @ point - y
        assert value == pytest.approx(residual @ residual)
        np.testing.assert_allclose(gradient[w.id], 2.0 * X.T @ residual)


@pytest.mark.parametrize("atom", [cp.kl_div, cp.rel_entr])
def test_a_count_of_zero_has_a_derivative(atom):
    """∂/∂y of x log(x/y) − x + y is 1 − x/y, at x = 0 as elsewhere."""
    x = cp.Variable(3)
    tape = Tape(cp.sum(atom(np.array([0.0, 2.0, 1.0]), x)))
    _, gradient = tape({x.id: np.array([0.5, 4.0, 2.0])})
    shift = 1.0 if atom is cp.kl_div else 0.0
    np.testing.assert_allclose(gradient[x.id], shift - np.array([0.0, 0.5, 0.5]))
    assert tape({x.id: np.array([0.0, 4.0, 2.0])}) is None
