"""Losses of a length: constants against dense differentiation, sums, reading, refusals."""

import cvxpy as cp
import numpy as np
import pytest

import cvxqop
from cvxqop.errors import ProblemError
from cvxqop.problem.bounds import Bounds
from cvxqop.problem.describe import describe
from cvxqop.problem.losses.output_terms import RadialTerm
from cvxqop.problem.losses.radial import Radial, RadialSum
from cvxqop.problem.losses.scalar import ScalarLoss, huber
from cvxqop.problem.reading.analysis import read

rng = np.random.default_rng(0)
N, K, P = 300, 3, 2
LOG_COSH = ScalarLoss(
    "log-cosh",
    value=lambda t: np.logaddexp(t, -t) - np.log(2.0),
    derivative=np.tanh,
    second_derivative=lambda t: 1 / np.cosh(t) ** 2,
    curvature=1.0,
    slope=1.0,
    even=True,
    unimodal=True,
)
LOSSES = {"huber": huber(0.7), "log-cosh": LOG_COSH}


def value(loss, A, C, theta):
    return loss.evaluate(A @ theta, C)[0].sum()


@pytest.mark.parametrize("name", LOSSES)
def test_gradient_and_hessian_are_derivatives(name):
    loss = RadialSum(K, LOSSES[name], 1.5)
    A, C = rng.standard_normal((5, P)), rng.standard_normal((5, K))
    theta, h = rng.standard_normal((P, K)), 1e-5
    place = [(i, j) for j in range(K) for i in range(P)]
    gradient = A.T @ loss.evaluate(A @ theta, C)[1]
    H = loss.hessian(A, A @ theta, C)
    for m, (i, j) in enumerate(place):
        step = np.zeros((P, K))
        step[i, j] = h
        ends = [theta + step, theta - step]
        difference = (value(loss, A, C, ends[0]) - value(loss, A, C, ends[1])) / (2 * h)
        assert gradient[i, j] == pytest.approx(difference, rel=1e-6, abs=1e-8)
        slopes = [A.T @ loss.evaluate(A @ end, C)[1] for end in ends]
        column = ((slopes[0] - slopes[1]) / (2 * h)).T.ravel()
        np.testing.assert_allclose(H[:, m], column, rtol=1e-4, atol=1e-6)
    root = loss.root(A, A @ theta, C)
    np.testing.assert_allclose(root.T @ root, H, atol=1e-10)


@pytest.mark.parametrize("name", LOSSES)
def test_no_record_exceeds_the_constants(name):
    """At 10⁴ points of all sizes, zero among them; at zero they are attained."""
    loss, scalar = Radial(K, LOSSES[name]), LOSSES[name]
    sizes = np.concatenate([[0.0], 10.0 ** rng.uniform(-3, 2, 10_000)])
    T = sizes[:, None] * rng.standard_normal((10_001, K))
    values, slopes = RadialSum(K, scalar, 1.0).evaluate(T, np.zeros_like(T))
    assert np.all(values >= 0.0)
    for bound in (0.1, 1.0, np.inf):
        inside = np.linalg.norm(T, axis=1) <= bound
        assert np.linalg.norm(slopes[inside], axis=1).max() <= loss.slope_bound(bound) * (1 + 1e-12)
    one = np.ones((1, 1))
    bends = [RadialSum(K, scalar, 1.0).hessian(one, t[None], np.zeros((1, K))) for t in T[:2000]]
    norms = np.array([np.linalg.eigvalsh(M) for M in bends])
    assert norms.min() >= -1e-12
    assert norms.max() == pytest.approx(loss.curvature)
    assert norms.sum(axis=1).max() == pytest.approx(loss.trace)
    assert np.linalg.norm(norms, axis=1).max() == pytest.approx(loss.frobenius)


@pytest.mark.parametrize("name", LOSSES)
def test_a_matrix_below_is_below(name):
    loss = RadialSum(K, LOSSES[name], 2.0)
    for _ in range(300):
        A, t = np.ones((1, 1)), rng.standard_normal((1, K)) * 10.0 ** rng.uniform(-2, 1)
        reach = np.array([10.0 ** rng.uniform(-3, 0.5)])
        below = loss.hessian(A, t, np.zeros((1, K)), reach)
        step = rng.standard_normal((20, K))
        step *= (reach * rng.uniform(size=20))[:, None] / np.linalg.norm(step, axis=1)[:, None]
        for moved in t + step:
            M = loss.hessian(A, moved[None], np.zeros((1, K)))
            assert np.linalg.eigvalsh(M - below).min() >= -1e-12


Z = rng.uniform(-0.5, 0.5, (N, K)) + 0.1
X = rng.uniform(-0.5, 0.5, (N, P))
mu, Theta = cp.Variable((1, K), name="mu"), cp.Variable((P, K), name="Theta")
FORMS = {
    "location": (cp.sum(cp.huber(cp.norm(Z - np.ones((N, 1)) @ mu, 2, axis=1), 0.2)), [Z]),
    "row": (cp.sum(cp.huber(cp.norm(Z - mu, 2, axis=1), 0.2)), [Z]),
    "mean": (cp.mean(cp.huber(cp.norm(Z - mu, 2, axis=1) / 0.5, 0.4)), [Z]),
    "regression": (2 * cp.sum(cp.huber(cp.norm(X @ Theta - Z, 2, axis=1), 0.3)), [X, Z]),
}


@pytest.mark.parametrize("name", FORMS)
def test_read_and_released(name):
    loss, private = FORMS[name]
    problem = cp.Problem(cp.Minimize(loss))
    erm = read(problem, private)
    (term,) = erm.loss.terms
    assert isinstance(term, RadialTerm)
    assert f"of rank ≤ {K}" in describe(erm)
    bounds = Bounds(row_norm=1.0, offset=1.1)
    found = erm.loss.constants(bounds, np.zeros(erm.dimension), None)
    R2 = 1.0
    scale = {"mean": 2.0 / 0.25 / N, "regression": 4.0}.get(name, 2.0)
    assert found.smoothness == pytest.approx(scale * R2)
    assert (found.hessian_rank, found.gradient_range) == (K, K)
    assert found.trace == pytest.approx(K * found.smoothness)
    slope = {"mean": 2 * 0.4 / 0.5 / N, "regression": 4 * 0.3}.get(name, 2 * 0.2)
    assert found.anchor_gradient == pytest.approx(slope)
    solution = cvxqop.privatize(
        problem, private=private, bounds=bounds, epsilon=1e6, delta=1e-6, seed=1
    )
    (variable,) = problem.variables()
    answer = solution[variable]
    problem.solve(solver="CLARABEL")
    np.testing.assert_allclose(answer, variable.value, atol=2e-3)


def test_what_is_not_smooth_in_zero_is_refused():
    for loss in (
        cp.sum(cp.norm(Z - mu, 2, axis=1)),
        cp.sum(cp.square(cp.norm(Z - mu, 2, axis=1) + 1)),
    ):
        with pytest.raises(ProblemError, match=r"length of several outputs.*huber\(norm"):
            read(cp.Problem(cp.Minimize(loss)), [Z], losses="any")
