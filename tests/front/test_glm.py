"""Losses that are not quadratic, through the front."""

import cvxpy as cp
import numpy as np
import pytest
from scipy.optimize import minimize

import cvxqop
from cvxqop.privacy.noise import Randomness

pytestmark = pytest.mark.blas

PAY = {"bounds": cvxqop.Bounds(row_norm=1.0), "epsilon": 1.0, "delta": 1e-6}


def people(n=3000, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    X /= np.maximum(1.0, np.linalg.norm(X, axis=1))[:, None]
    w = np.array([3.0, -2.0, 0.0, 1.0])
    y = np.where(rng.uniform(size=n) < 1.0 / (1.0 + np.exp(-2.0 * X @ w)), 1.0, -1.0)
    return X, y


def logistic(X, y, theta):
    return cp.sum(cp.logistic(-cp.multiply(y, X @ theta)))


@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
def test_logistic_release(adjacency):
    """The release is within a few σ_rel of the minimiser of the same perturbed objective."""
    X, y = people()
    theta = cp.Variable(4)
    problem = cp.Problem(cp.Minimize(logistic(X, y, theta)))
    plan = cvxqop.plan(problem, private=[X, y], seed=7, adjacency=adjacency, **PAY)
    assert plan.solver == "STOTOS"
    assert float(plan.profile(1.0)) <= 1e-6
    assert plan.mechanism.guard_scale > 0.0  # |φ'(0)| = ½ at the anchor
    assert plan.mechanism.sensitivity.anchor_gradient == pytest.approx(0.5)
    solution = plan.run()
    draw = plan.mechanism.draw(Randomness(7).fresh()[0])

    def objective(w):
        t = -y * (X @ w)
        p = 1.0 / (1.0 + np.exp(-t))
        value = np.logaddexp(0.0, t).sum() + 0.5 * w @ draw.curvature @ w + draw.guard @ w
        return value, -X.T @ (y * p) + draw.curvature @ w + draw.guard

    exact = minimize(objective, np.zeros(4), jac=True, method="BFGS", options={"gtol": 1e-8}).x
    release = plan.mechanism.release
    assert np.abs(solution[theta] - exact).max() < 7.0 * release.scale
    assert np.abs(solution[theta] - exact).max() > 0.01 * release.scale  # the noise is there
    assert solution.private_loss is None
    assert plan.radius == 4.0  # 2√D/R
    assert solution.certificate == 4e-6  # accuracy times the radius


def test_spellings_agree():
    X, y = people(n=500)
    theta = cp.Variable(4)
    zero_one = (1 + y) / 2
    spellings = [
        (logistic(X, y, theta), [X, y]),
        (cp.sum(cp.logistic(X @ theta) - cp.multiply(zero_one, X @ theta)), [X, zero_one]),
        (cp.sum(cp.logistic(X @ theta)) - zero_one @ (X @ theta), [X, zero_one]),
        (cvxqop.glm_loss("logistic", X, y, theta), []),
    ]
    released = []
    for loss, private in spellings:
        plan = cvxqop.plan(cp.Problem(cp.Minimize(loss)), private=private, seed=3, **PAY)
        released.append(plan.run()[theta])
    for other in released[1:]:
        np.testing.assert_allclose(other, released[0], atol=1e-5)


@pytest.mark.parametrize("spelling", ["huber", "squared hinge"])
def test_other_losses(spelling):
    X, y = people()
    theta = cp.Variable(4)
    if spelling == "huber":
        loss, kappa = cp.sum(cp.huber(X @ theta - y, 0.5)), 2.0
    else:
        loss, kappa = cp.sum(cp.square(cp.pos(1 - cp.multiply(y, X @ theta)))), 2.0
    problem = cp.Problem(cp.Minimize(loss + 5 * cp.norm1(theta)), [cp.norm(theta, 2) <= 3])
    bounds = cvxqop.Bounds(row_norm=1.0, offset=1.0)
    plan = cvxqop.plan(problem, private=[X, y], **{**PAY, "bounds": bounds})
    assert plan.mechanism.sensitivity.smoothness == pytest.approx(kappa)
    solution = plan.run()
    assert np.linalg.norm(solution[theta]) <= 3.0 * (1 + 1e-12)  # projected back onto C
    assert "certified within 1e-06" in str(solution)


def test_large_epsilon_gives_the_minimiser():
    X, y = people(n=50_000)
    theta = cp.Variable(4)
    problem = cp.Problem(cp.Minimize(logistic(X, y, theta)))
    solution = cvxqop.privatize(
        problem, private=[X, y], **{**PAY, "epsilon": 1e6}, adjacency="add_remove"
    )

    def objective(w):
        t = -y * (X @ w)
        return np.logaddexp(0.0, t).sum(), -X.T @ (y / (1.0 + np.exp(-t)))

    exact = minimize(objective, np.zeros(4), jac=True, method="BFGS").x
    assert np.linalg.norm(solution[theta] - exact) < 3e-3 * np.linalg.norm(exact)


def test_separable_data_without_regulariser():
    """No minimiser without S; with it the problem is well-posed."""
    X, _ = people(n=300)
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    theta = cp.Variable(4)
    solution = cvxqop.privatize(
        cp.Problem(cp.Minimize(logistic(X, y, theta))), private=[X, y], **PAY
    )
    assert np.all(np.isfinite(solution[theta]))


@pytest.mark.parametrize("labels", ["constant", "other", "zero"])
def test_odd_labels_are_clipped_like_any_record(labels):
    X, y = people(n=300)
    y = {"constant": np.ones(300), "other": 7.0 * y, "zero": np.zeros(300)}[labels]
    theta = cp.Variable(4)
    solution = cvxqop.privatize(
        cp.Problem(cp.Minimize(logistic(X, y, theta))), private=[X, y], **PAY
    )
    assert np.all(np.isfinite(solution[theta]))


@pytest.mark.parametrize("n", [0, 1, 2])
def test_few_records(n):
    X, y = people(n=3)
    theta = cp.Variable(4)
    problem = cp.Problem(cp.Minimize(logistic(X[:n], y[:n], theta) + cp.norm1(theta)))
    solution = cvxqop.privatize(problem, private=[X[:n], y[:n]], **PAY)
    assert np.all(np.isfinite(solution[theta]))


@pytest.mark.parametrize("variant", ["newton", "svrg", "plain"])
def test_squared_loss_by_stotos(variant):
    """On the quadratic form nothing is added; an engine on the records takes the release."""
    X, y = people(n=2000)
    theta = cp.Variable(4)
    problem = cp.Problem(cp.Minimize(cp.sum_squares(X @ theta - y) + 300 * cp.norm1(theta)))
    bounds = cvxqop.Bounds(row_norm=1.0, offset=1.0)
    options = {**PAY, "bounds": bounds, "seed": 2, "private": [X, y], "perturbation": "wishart"}
    plan = cvxqop.plan(
        problem,
        solver="STOTOS",
        solver_options={"variant": variant, "max_iter": 300 if variant == "newton" else 3000},
        **options,
    )
    assert (plan.mechanism.release is None) == (variant == "newton")
    solution = plan.run()
    conic = cvxqop.privatize(problem, solver="CLARABEL", **options)
    distance = np.abs(solution[theta] - conic[theta]).max()
    assert distance < (1e-6 if variant == "newton" else 0.05)
    assert np.any(solution[theta] == 0.0) == (variant == "newton")


def test_a_limit_set_by_the_caller_ends_with_an_error_without_numbers():
    X, y = people()
    theta = cp.Variable(4)
    problem = cp.Problem(cp.Minimize(logistic(X, y, theta)))
    with pytest.raises(cvxqop.AccuracyError, match="charge") as caught:
        cvxqop.privatize(
            problem, private=[X, y], solver_options={"max_iter": 1}, accuracy=1e-9, **PAY
        )
    assert not any(character.isdigit() for character in str(caught.value))
    assert theta.value is None
    assert caught.value.__context__ is None


def test_unfinished_points_are_released_only_if_certified():
    X, y = people(n=1000)
    theta = cp.Variable(4)
    problem = cp.Problem(cp.Minimize(logistic(X, y, theta)))
    raw = {"variant": "plain", "finish": False, "max_iter": 50}
    with pytest.raises(cvxqop.AccuracyError, match="not certified"):
        cvxqop.privatize(problem, private=[X, y], solver_options=raw, **PAY)
    assert theta.value is None
    enough = {"variant": "svrg", "finish": False, "max_iter": 20_000}
    solution = cvxqop.privatize(problem, private=[X, y], solver_options=enough, **PAY)
    assert np.all(np.isfinite(solution[theta]))


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"accuracy": 0.0}, "accuracy"),
        ({"accuracy": -1.0}, "accuracy"),
        ({"accuracy": 1e-13}, "accuracy"),
        ({"accuracy": 1e-13, "radius": 100.0}, "accuracy"),
        ({"accuracy": 1e-13, "radius": 1e-9}, "accuracy"),
        ({"accuracy": np.inf}, "accuracy"),
        ({"accuracy": "fine"}, "accuracy"),
        ({"solver": "NONE"}, "installed are .*CLARABEL"),
        ({"solver_options": {"tolerance": 1}}, "no option 'tolerance'"),
        ({"solver_options": {"variant": "adam"}}, "variant"),
        ({"solver_options": {"max_iter": 0}}, "max_iter"),
        ({"solver_options": {"time_limit": -1}}, "time_limit"),
    ],
)
def test_refusals(changes, match):
    X, y = people(n=50)
    theta = cp.Variable(4)
    problem = cp.Problem(cp.Minimize(logistic(X, y, theta)))
    with pytest.raises(cvxqop.OptionError, match=match):
        cvxqop.plan(problem, private=[X, y], **{**PAY, **changes})


def test_a_rest_that_cannot_be_split_is_named():
    X, y = people(n=50)
    theta = cp.Variable(4, name="theta")
    rest = cp.sum(cp.exp(theta))
    problem = cp.Problem(cp.Minimize(logistic(X, y, theta) + rest))
    with pytest.raises(cvxqop.OptionError, match="exp"):
        cvxqop.plan(problem, private=[X, y], solver="STOTOS", **PAY)
    with pytest.raises(cvxqop.OptionError, match=r"of the installed solvers .*CLARABEL"):
        cvxqop.plan(problem, private=[X, y], solver="OSQP", **PAY)
    assert cvxqop.plan(problem, private=[X, y], **PAY).solver == "CLARABEL"


ANY_REST = {
    "exp": lambda w: (cp.sum(cp.exp(w)), []),
    "overlapping groups": lambda w: (5 * cp.norm(w[:3]) + 5 * cp.norm(w[1:]), []),
    "cone of a map": lambda w: (0, [cp.norm(np.eye(4)[:3] @ w + 0.1) <= 0.5 + w[0]]),
    "matrix inequality": lambda w: (0, [cp.bmat([[2 + w[0], w[1]], [w[1], 1 + w[2]]]) >> 0]),
    "other variables": lambda w: (lambda u: (cp.sum(u), [w <= u, -w <= u]))(cp.Variable(4)),
    "square of pos": lambda w: (20 * cp.sum_squares(cp.pos(-w)), []),
}


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
@pytest.mark.parametrize("name", ANY_REST)
def test_any_rest_with_any_solver(name):
    """Without noise to speak of, the answer is that of CVXPY, in C, alike for every solver."""
    X, y = people(n=20_000)
    theta = cp.Variable(4)
    r, C = ANY_REST[name](theta)
    problem = cp.Problem(cp.Minimize(logistic(X, y, theta) + r), C)
    pay = {**PAY, "epsilon": 1e6, "seed": 3}
    found = []
    for solver in (None, "CLARABEL", "SCS"):
        solution = cvxqop.privatize(problem, private=[X, y], solver=solver, **pay)
        assert all(np.max(c.violation()) <= 1e-6 for c in C)
        assert all(v.value is not None for v in problem.variables())
        found.append(solution[theta])
    problem.solve(solver="CLARABEL")
    np.testing.assert_allclose(found[0], theta.value, atol=0.05)
    for other in found[1:]:
        # Two certificates of 1e-6, and two projections of the same noise.
        assert np.linalg.norm(found[0] - other) <= 4e-6


def test_infeasible_constraints_are_found_before_spending():
    X, y = people(n=50)
    theta = cp.Variable(4)
    problem = cp.Problem(cp.Minimize(logistic(X, y, theta)), [theta >= 1, cp.sum(theta) <= 0])
    with pytest.raises(cvxqop.ProblemError, match=r"no point|infeasible"):
        cvxqop.plan(problem, private=[X, y], **PAY)


def test_private_loss_is_for_quadratics():
    X, y = people(n=50)
    theta = cp.Variable(4)
    with pytest.raises(cvxqop.ProblemError, match="quadratic"):
        cvxqop.private_loss(logistic(X, y, theta), private=[X, y], **PAY)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_memory_map(tmp_path, loss):
    """Rows stay in the file: the same answer as from arrays."""
    X, y = people(n=5000)
    file = tmp_path / "rows.dat"
    X.tofile(file)
    mapped = np.memmap(file, dtype=np.float64, mode="r", shape=X.shape)
    theta = cp.Variable(4)
    bounds = cvxqop.Bounds(row_norm=1.0, offset=1.0)
    options = {**PAY, "bounds": bounds, "private": [], "seed": 3}
    released = []
    for rows in (X, mapped):
        term = cvxqop.glm_loss(loss, rows, y, theta)
        problem = cp.Problem(cp.Minimize(term + 5 * cp.norm1(theta)), [cp.abs(theta) <= 2])
        released.append(cvxqop.privatize(problem, **options)[theta])
    np.testing.assert_allclose(released[0], released[1], atol=1e-9)


def test_nan_in_a_late_block_is_refused_before_the_draw(monkeypatch):
    X, y = people(n=60_000)
    X[59_990, 2] = np.nan
    theta = cp.Variable(4)
    term = cvxqop.glm_loss("logistic", X, y, theta)

    def drawn(self):
        raise AssertionError("noise was drawn")

    monkeypatch.setattr("cvxqop.privacy.noise.Randomness.fresh", drawn)
    with pytest.raises(cvxqop.ProblemError, match="nonfinite"):
        cvxqop.privatize(cp.Problem(cp.Minimize(term)), private=[], **PAY)
