"""Several outputs a record, end to end: multi-output least squares, multinomial regression."""

import cvxpy as cp
import numpy as np
import pytest
from scipy.optimize import minimize

import cvxqop
from cvxqop.errors import OptionError

pytestmark = pytest.mark.blas

rng = np.random.default_rng(0)
N, P, K = 4000, 4, 3
X = rng.uniform(-0.5, 0.5, (N, P))
Y = 0.3 * X @ rng.standard_normal((P, K)) + 0.1 + rng.uniform(-0.1, 0.1, (N, K))
LABELS = np.argmax(6 * X @ rng.standard_normal((P, K)) + rng.gumbel(size=(N, K)), axis=1)
Z = np.eye(K)[LABELS]
BOUNDS = cvxqop.Bounds(row_norm=1.0, offset=1.0)
Theta, b = cp.Variable((P, K), name="Theta"), cp.Variable(K, name="b")
E = X @ Theta + b
SQUARED = 0.5 * cp.sum_squares(E - Y)
LOGISTIC = cp.sum(cp.log_sum_exp(E, axis=1)) - cp.sum(cp.multiply(Z, E))


def pay(loss, epsilon, rest=0, constraints=(), **options):
    problem = cp.Problem(cp.Minimize(loss + rest), list(constraints))
    options = {"delta": 1e-6, "seed": 1, "bounds": BOUNDS, **options}
    private = [X, Z] if loss is LOGISTIC else [X, Y]
    return cvxqop.privatize(problem, private=private, epsilon=epsilon, **options)


def least_squares(rest, constraints=()):
    """The non-private answer from the normal equations, through CVXPY."""
    A = np.c_[X, np.ones(N)]
    stacked = cp.vstack([Theta, cp.reshape(b, (1, K), order="F")])
    root = np.linalg.cholesky(A.T @ A).T
    target = np.linalg.solve(root.T, A.T @ Y)
    objective = 0.5 * cp.sum_squares(root @ stacked - target) + rest
    cp.Problem(cp.Minimize(objective), list(constraints)).solve(solver="CLARABEL")
    return Theta.value, b.value


RESTS = {
    "ridge": (2.0 * cp.sum_squares(Theta), []),
    "l1": (5.0 * cp.sum(cp.abs(Theta)), []),
    "groups": (5.0 * cp.sum(cp.norm(Theta, 2, axis=1)), []),
    "nuclear": (5.0 * cp.normNuc(Theta), []),
    "box": (cp.sum_squares(b), [cp.abs(Theta) <= 0.2]),
}


@pytest.mark.parametrize("name", RESTS)
@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
def test_squared_loss_with_little_noise(name, adjacency):
    rest, constraints = RESTS[name]
    expected = least_squares(rest, constraints)
    options = {"perturbation": "gaussian", "adjacency": adjacency}
    solution = pay(SQUARED, 1e6, rest, constraints, **options)
    np.testing.assert_allclose(solution[Theta], expected[0], atol=1e-4)
    np.testing.assert_allclose(solution[b], expected[1], atol=1e-4)
    assert solution.mechanism.sensitivity.outputs == K
    assert solution.private_loss.hessian.shape == (P * K + K, P * K + K)


@pytest.mark.parametrize("perturbation", ["wishart", cvxqop.Gaussian(stages=2)])
@pytest.mark.parametrize("epsilon", [1e6, 1.0, 1e-3])
def test_squared_loss_at_every_epsilon(perturbation, epsilon):
    constraints = [cp.abs(Theta) <= 2, cp.abs(b) <= 2]
    solution = pay(SQUARED, epsilon, 0, constraints, perturbation=perturbation)
    assert np.all(np.abs(solution[Theta]) <= 2)
    assert float(solution.profile(epsilon)) <= 1e-6
    if epsilon == 1e6:
        A = np.c_[X, np.ones(N)]
        ridge = solution.mechanism.mean_curvature * np.eye(P + 1)
        expected = np.linalg.solve(A.T @ A + ridge, A.T @ Y)
        np.testing.assert_allclose(solution[Theta], expected[:P], atol=1e-3)


def test_one_matrix_is_one_column_at_a_time():
    """With no noise to speak of, a matrix of targets is as many regressions."""
    solution = pay(SQUARED, 1e6, 0, perturbation="gaussian")
    w, c = cp.Variable(P), cp.Variable()
    for j in range(K):
        y = Y[:, j].copy()
        problem = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(X @ w + c - y)))
        cvxqop.privatize(
            problem, private=[X, y], bounds=BOUNDS, epsilon=1e6, delta=1e-6, seed=1,
            perturbation="gaussian",
        )  # fmt: skip
        np.testing.assert_allclose(solution[Theta][:, j], w.value, atol=1e-4)


def test_noise_is_that_of_one_output():
    """The curvature noise does not know how many outputs there are."""
    w = cp.Variable(P)
    y = Y[:, 0].copy()
    shares = cvxqop.Gaussian(shares=(0.5, 0.5))
    options = {"bounds": BOUNDS, "epsilon": 1.0, "delta": 1e-6, "perturbation": shares}
    one = cvxqop.plan(cp.Problem(cp.Minimize(cp.sum_squares(X @ w - y))), private=[X, y], **options)
    all_of_them = cvxqop.plan(
        cp.Problem(cp.Minimize(cp.sum_squares(X @ Theta - Y))), private=[X, Y], **options
    )
    assert all_of_them.mechanism.scale == one.mechanism.scale
    assert all_of_them.mechanism.guard_scale == one.mechanism.guard_scale
    assert all_of_them.dimension == P * K


def test_a_record_beyond_the_bounds_moves_no_more_than_one_within():
    """One enormous record: the release stays that of the clipped data."""
    huge_X, huge_Y = X.copy(), Y.copy()
    huge_X[0] *= 1e6
    huge_Y[0] *= 1e9
    clipped_X, clipped_Y = X.copy(), Y.copy()
    scale = np.sqrt(2.0) / np.linalg.norm(np.r_[huge_X[0], 1.0])
    clipped = scale * np.r_[huge_X[0], 1.0]
    assert np.linalg.norm(clipped) <= np.sqrt(2.0) * (1 + 1e-14)
    plan = {"epsilon": 1.0, "delta": 1e-6, "seed": 3, "bounds": BOUNDS, "perturbation": "gaussian"}
    first = cvxqop.private_loss(
        cp.sum_squares(huge_X @ Theta + b - huge_Y), private=[huge_X, huge_Y], **plan
    )
    clipped_X[0], clipped_Y[0] = 0.0, 0.0
    other = cvxqop.private_loss(
        cp.sum_squares(clipped_X @ Theta + b - clipped_Y), private=[clipped_X, clipped_Y], **plan
    )
    # Same noise: the difference is that of one clipped record, 2 (aa', a r') with ‖r‖ ≤ 1.
    moved = first.gradient - other.gradient
    assert np.linalg.norm(moved) <= 2 * (np.sqrt(2.0) + 1.0)


@pytest.mark.parametrize("perturbation", ["wishart", "linear"])
def test_multinomial_with_little_noise(perturbation):
    A = np.c_[X, np.ones(N)]
    rest = 2.0 * (cp.sum_squares(Theta) + cp.sum_squares(b))
    solution = pay(LOGISTIC, 1e6, rest, perturbation=perturbation, adjacency="add_remove")
    # The Wishart ridge never falls below the curvature of one record, 1 here.
    ridge = 2.0 + 0.5 * solution.mechanism.mean_curvature

    def objective(v):
        M = v.reshape(P + 1, K)
        t = A @ M
        top = t.max(axis=1, keepdims=True)
        e = np.exp(t - top)
        sums = e.sum(axis=1, keepdims=True)
        value = np.sum(np.log(sums) + top) - np.sum(Z * t) + ridge * v @ v
        return value, (A.T @ (e / sums - Z)).ravel() + 2 * ridge * v

    found = minimize(
        objective, np.zeros((P + 1) * K), jac=True, method="L-BFGS-B",
        options={"ftol": 1e-15, "gtol": 1e-8, "maxiter": 2000},
    ).x.reshape(P + 1, K)  # fmt: skip
    np.testing.assert_allclose(solution[Theta], found[:P], atol=0.15)
    # D0 = B/R, and the column of ones is taken at 1/2.
    assert solution.certificate == pytest.approx(1e-6 / np.sqrt(1.25), rel=1e-12)


def test_multinomial_at_a_small_epsilon():
    solution = pay(LOGISTIC, 1e-3, cp.normNuc(Theta), [cp.abs(b) <= 1])
    assert np.all(np.isfinite(solution[Theta]))
    assert np.all(np.abs(solution[b]) <= 1)
    assert "nearest probability vector" in " ".join(solution.assumptions)


def test_two_classes_are_logistic_regression():
    """k = 2 is the GLM form: the same noise as logistic(·) on θ₁ − θ₂, whose rows are √2 longer."""
    Z2 = np.eye(2)[(LABELS == 0).astype(int)]
    two = cp.Variable((P, 2))
    t = X @ two
    loss = cp.sum(cp.log_sum_exp(t, axis=1)) - cp.sum(cp.multiply(Z2, t))
    options = {
        "epsilon": 1.0,
        "delta": 1e-6,
        "perturbation": cvxqop.Wishart(40),
        "radius": 1.0,
    }
    plan = cvxqop.plan(
        cp.Problem(cp.Minimize(loss)),
        private=[X, Z2],
        bounds=cvxqop.Bounds(row_norm=1.0),
        **options,
    )
    w = cp.Variable(2 * P)
    rows = np.hstack([X, -X])
    other = cvxqop.plan(
        cp.Problem(cp.Minimize(cp.sum(cp.logistic(rows @ w)))),
        private=[rows], bounds=cvxqop.Bounds(row_norm=np.sqrt(2.0)), **options,
    )  # fmt: skip
    assert plan.mechanism.sigma2 == pytest.approx(other.mechanism.sigma2, rel=1e-12)
    assert plan.mechanism.guard_scale == pytest.approx(other.mechanism.guard_scale, rel=1e-12)


REFUSED = {
    "gaussian on a multinomial loss": (LOGISTIC, {"perturbation": "gaussian"}, "."),
    "common minimiser": (
        LOGISTIC,
        {"anchor": cvxqop.CommonMinimizer({Theta: np.zeros((P, K)), b: np.zeros(K)}, error=0.1)},
        "no minimiser that all records share",
    ),
    "solver that is not there": (LOGISTIC, {"solver": "NONE"}, "not installed"),
    "no bound on the targets": (SQUARED, {"bounds": cvxqop.Bounds(row_norm=1.0)}, "offset"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_before_anything_is_spent(name):
    loss, options, words = REFUSED[name]
    budget = cvxqop.Budget(epsilon=2.0, delta=1e-5)
    with pytest.raises(cvxqop.CvxqopError, match=words):
        pay(loss, 1.0, budget=budget, **options)
    assert not budget.history


def test_explain_shows_it():
    problem = cp.Problem(cp.Minimize(SQUARED + cp.normNuc(Theta)))
    text = str(cvxqop.explain(problem, private=[X, Y]))
    assert "Θ of shape (5, 3)" in text
    assert "in each of 3 outputs" in text
    text = str(cvxqop.explain(cp.Problem(cp.Minimize(LOGISTIC)), private=[X, Z]))
    assert "multinomial logistic" in text
    assert "rank ≤ 2" in text
    with pytest.raises(OptionError):
        pay(SQUARED, 1.0, solver="NO SUCH SOLVER")
