"""The multinomial logistic sum: derivatives, lower Hessians, rounding, certificates."""

from dataclasses import replace

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from instances import finite_sum
from scipy.optimize import minimize

from cvxqop.problem.losses.multinomial import Softmax
from cvxqop.problem.records.rows import ArrayRows
from cvxqop.solve.engines.stotos import solve_stotos

pytestmark = pytest.mark.blas

rng = np.random.default_rng(0)
N, P, K = 60, 4, 3
D = P * K
LAYOUT = rng.permutation(D).reshape(P, K)


def instance(n=N, weight=1.7, sparse=False):
    A = rng.standard_normal((n, P))
    A = sp.csr_array(np.where(np.abs(A) > 0.6, A, 0.0)) if sparse else A
    Y = rng.dirichlet(np.full(K, 0.3), size=n)
    root = rng.standard_normal((D, D + 2))
    S = root @ root.T / D + 0.1 * np.eye(D)
    a, anchor = rng.standard_normal((2, D))
    return finite_sum(ArrayRows(A, Y), Softmax(K, weight), S, a, anchor, layout=LAYOUT), A, Y


def direct(f, A, Y, theta):
    """The value in extended precision, from the definition."""
    t = np.asarray(A @ theta[LAYOUT], dtype=np.longdouble)
    u = np.asarray(theta - f.anchor, dtype=np.longdouble)
    total = np.sum(np.log(np.sum(np.exp(t), axis=1))) - np.sum(Y * t)
    return f.parts[0].loss.weight * total + u @ (f.a + f.S @ u / 2)


@pytest.mark.parametrize("sparse", [False, True])
def test_value_and_derivatives(sparse):
    f, A, Y = instance(sparse=sparse)
    theta = rng.standard_normal(D)
    found = f.evaluate(theta)
    assert found.value == pytest.approx(float(direct(f, A, Y, theta)), rel=1e-13)
    step = 1e-6
    units = step * np.eye(D)
    numeric = [
        float(direct(f, A, Y, theta + e) - direct(f, A, Y, theta - e)) / (2 * step) for e in units
    ]
    np.testing.assert_allclose(found.gradient, numeric, rtol=1e-7, atol=1e-7)
    columns = [
        (f.evaluate(theta + e).gradient - f.evaluate(theta - e).gradient) / (2 * step)
        for e in units
    ]
    H = f.hessian(theta)
    np.testing.assert_allclose(H, np.array(columns), rtol=1e-6, atol=1e-6)
    root = f.data_root(theta, [(0, N)])
    np.testing.assert_allclose(root.T @ root, H - f.S, atol=1e-12)
    np.testing.assert_allclose(f.data_hessian(theta, [(0, N)]), H - f.S, atol=1e-12)
    data = f.record_gradient(theta, 0, N) + f.a + f.S @ (theta - f.anchor)
    np.testing.assert_allclose(data, found.gradient, rtol=1e-12)
    fine = replace(f, fine=True, _sizes=[]).evaluate(theta)
    np.testing.assert_allclose(fine.gradient, found.gradient, rtol=1e-13, atol=1e-12)


@pytest.mark.parametrize("radius", [1e-3, 0.1, 1.0])
def test_hessian_from_below(radius):
    f, _, _ = instance()
    theta = rng.standard_normal(D)
    low = f.hessian(theta, radius)
    assert np.linalg.eigvalsh(low - f.S)[0] >= -1e-12
    for _ in range(200):
        u = rng.standard_normal(D)
        other = f.hessian(theta + radius * u / np.linalg.norm(u))
        assert np.linalg.eigvalsh(other - low)[0] >= -1e-11


@pytest.mark.parametrize("scale", [1e-8, 1.0, 30.0, 1e4])
def test_rounding_is_bounded(scale):
    """Against the gradient in extended precision, entry by entry, for small and saturated p."""
    f, A, Y = instance(n=3000)
    theta = scale * rng.standard_normal(D)
    found = f.evaluate(theta)
    t = np.asarray(A, dtype=np.longdouble) @ theta[LAYOUT].astype(np.longdouble)
    p = np.exp(t - t.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    exact = np.asarray(f.a + f.S.astype(np.longdouble) @ (theta - f.anchor), dtype=np.longdouble)
    exact[LAYOUT] += f.parts[0].loss.weight * (A.astype(np.longdouble).T @ (p - Y))
    assert float(np.linalg.norm(found.gradient - exact)) <= found.error
    assert found.error <= 1e-9 * (1.0 + np.linalg.norm(found.gradient))


@pytest.mark.parametrize("variant", ["newton", "svrg"])
def test_certified_minimiser(variant):
    """The certified distance holds against Newton's method in the plain problem with a ridge."""
    f, _, _ = instance(n=400)
    theta = cp.Variable(D)
    options = {} if variant == "newton" else {"variant": variant, "seed": np.random.default_rng(1)}
    answer = solve_stotos(f, [theta], 3.0 * cp.sum_squares(theta), [], accuracy=1e-8, **options)
    start = minimize(
        lambda v: f.evaluate(v).value + 3 * v @ v,
        np.zeros(D),
        jac=lambda v: f.evaluate(v).gradient + 6 * v,
        method="BFGS",
        options={"gtol": 1e-5},
    ).x
    for _ in range(5):
        H = f.hessian(start) + 6 * np.eye(D)
        start = start - np.linalg.solve(H, f.evaluate(start).gradient + 6 * start)
    assert answer.distance <= 1e-8
    assert np.linalg.norm(answer.theta - start) <= answer.distance + 1e-12


def test_constrained_with_few_records():
    """n·k below D: the model is of low rank; against CVXPY on the same problem."""
    f, A, Y = instance(n=2)
    theta = cp.Variable(D)
    answer = solve_stotos(f, [theta], 0.3 * cp.norm1(theta), [cp.abs(theta) <= 0.5])
    matrix = cp.vstack([cp.hstack([theta[int(j)] for j in row]) for row in LAYOUT])
    t = A @ matrix
    u = theta - f.anchor
    loss = f.parts[0].loss.weight * (cp.sum(cp.log_sum_exp(t, axis=1)) - cp.sum(cp.multiply(Y, t)))
    objective = loss + 0.5 * cp.quad_form(u, cp.psd_wrap(f.S)) + f.a @ u + 0.3 * cp.norm1(theta)
    cp.Problem(cp.Minimize(objective), [cp.abs(theta) <= 0.5]).solve(solver="CLARABEL")
    np.testing.assert_allclose(answer.theta, theta.value, atol=1e-4)
