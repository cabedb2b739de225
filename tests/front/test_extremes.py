"""Both ends of the range of ε, for every mechanism: the exact answer, and finite numbers."""

import cvxpy as cp
import numpy as np
import pytest

import cvxqop

RNG = np.random.default_rng(12)
N, D = 100_000, 5
X = RNG.standard_normal((N, D))
X /= np.linalg.norm(X, axis=1, keepdims=True)
TRUTH = np.array([0.5, -0.3, 0.0, 0.2, 0.1])
Y = np.clip(X @ TRUTH + 0.1 * RNG.standard_normal(N), -1, 1)
LABELS = np.where(RNG.random(N) < 1 / (1 + np.exp(-4.0 * X @ TRUTH)), 1.0, -1.0)

SQUARED = [
    cvxqop.Wishart(),
    cvxqop.Wishart(curvature="floor"),
    cvxqop.Gaussian(),
    cvxqop.Gaussian(curvature="ridge"),
    cvxqop.Gaussian(stages=2),
    cvxqop.Gaussian(stages=3, residual_bound=0.5),
    cvxqop.Gaussian(stages="adaptive"),
    cvxqop.Linear(),
    cvxqop.Linear(clip=10.0),
    "auto",
]
LOGISTIC = [cvxqop.Wishart(), cvxqop.Gaussian(), cvxqop.Linear(), cvxqop.Linear(clip=2.0), "auto"]


def squares(theta, n):
    """On a box, so that gradients are bounded and the linear mechanism exists."""
    loss = 0.5 * cp.sum_squares(X[:n] @ theta - Y[:n])
    return cp.Problem(cp.Minimize(loss), [cp.abs(theta) <= 2]), [X[:n], Y[:n]]


def logistic(theta, n):
    loss = cp.sum(cp.logistic(-cp.multiply(LABELS[:n], X[:n] @ theta)))
    return cp.Problem(cp.Minimize(loss)), [X[:n], LABELS[:n]]


@pytest.fixture(scope="module")
def exact():
    """The non-private answers: normal equations, and Newton's method."""
    theta = np.zeros(D)
    for _ in range(30):
        p = 1 / (1 + np.exp(LABELS * (X @ theta)))
        H = X.T @ (X * (p * (1 - p))[:, None])
        theta = theta + np.linalg.solve(H, X.T @ (LABELS * p))
    return {squares: np.linalg.solve(X.T @ X, X.T @ Y), logistic: theta}


def release(build, perturbation, epsilon, adjacency, n=N):
    theta = cp.Variable(D)
    problem, data = build(theta, n)
    plan = cvxqop.plan(
        problem, private=data,
        bounds=cvxqop.Bounds(row_norm=1.0, offset=1.0), epsilon=epsilon, delta=1e-6,
        adjacency=adjacency, perturbation=perturbation,
    )  # fmt: skip
    assert plan.profile(epsilon) <= 1e-6
    return plan, plan.run()[theta]


def named(x):
    return getattr(x, "__name__", str(x)[:48])


CASES = [(squares, p) for p in SQUARED] + [(logistic, p) for p in LOGISTIC]


@pytest.mark.parametrize(("build", "perturbation"), CASES, ids=named)
def test_a_large_epsilon_gives_the_exact_answer(build, perturbation, exact):
    for adjacency in ("add_remove", "replace_one"):
        _, theta = release(build, perturbation, 1e6, adjacency)
        assert np.abs(theta - exact[build]).max() <= 1e-3 * max(1.0, np.abs(exact[build]).max())


@pytest.mark.parametrize(("build", "perturbation"), CASES, ids=named)
def test_a_small_epsilon_stays_near_the_anchor_and_says_so(build, perturbation):
    """2,000 records: the plan warns of the anchor where n is public."""
    for adjacency in ("add_remove", "replace_one"):
        plan, theta = release(build, perturbation, 1e-3, adjacency, n=2000)
        assert np.all(np.isfinite(theta))
        assert np.linalg.norm(theta) <= 12.0 * plan.radius
        assert adjacency == "add_remove" or any("anchor" in text for text in plan.warnings)


@pytest.mark.parametrize("perturbation", ["auto", "wishart", "gaussian", "linear"])
def test_the_ends_of_the_range_of_bounds(perturbation):
    """The same release in its units where rows are of the size of the smallest and largest bound;
    beyond them a bound is refused."""
    found = []
    for unit in (1e-70, 1.0, 1e70):
        theta, A = cp.Variable(D), unit * X[:200]
        problem = cp.Problem(
            cp.Minimize(cp.sum_squares(A @ theta - Y[:200])), [cp.norm(theta) <= 1 / unit]
        )
        released = cvxqop.privatize(
            problem, private=[A, Y[:200]], bounds=cvxqop.Bounds(row_norm=unit, offset=1.0),
            epsilon=1.0, delta=1e-6, perturbation=perturbation, seed=0,
        )  # fmt: skip
        found.append(unit * released[theta])
    np.testing.assert_allclose(found[0], found[1], atol=1e-6)
    np.testing.assert_allclose(found[2], found[1], atol=1e-6)
    for row_norm in (1e-71, 1e71):
        with pytest.raises(cvxqop.errors.OptionError, match="must lie between"):
            cvxqop.Bounds(row_norm=row_norm)
