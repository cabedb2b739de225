"""One call makes a CVXPY problem private: what it releases, and what it leaves alone."""

import json

import cvxpy as cp
import numpy as np
import pytest

import cvxqop

pytestmark = pytest.mark.blas

BOUNDS = cvxqop.Bounds(row_norm=1.0, offset=1.0)
PAY = {"bounds": BOUNDS, "epsilon": 1.0, "delta": 1e-6}


def records(n=4000, d=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (n, d)) / np.sqrt(d)
    theta = np.zeros(d)
    theta[:2] = 1.0, -0.7
    return X, np.clip(X @ theta + 0.05 * rng.standard_normal(n), -1.0, 1.0)


def lasso(X, y, lam=30.0):
    theta = cp.Variable(X.shape[1], name="theta")
    loss = 0.5 * cp.sum_squares(X @ theta - y)
    return cp.Problem(cp.Minimize(loss + lam * cp.norm1(theta)), [cp.norm_inf(theta) <= 5]), theta


@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
def test_release_is_written_and_nothing_else(adjacency):
    X, y = records()
    problem, theta = lasso(X, y)
    solution = cvxqop.privatize(problem, private=[X, y], adjacency=adjacency, **PAY)
    assert np.array_equal(theta.value, solution[theta])
    assert problem.status == "optimal"
    assert problem._value is None
    assert all(dual.value is None for c in problem.constraints for dual in c.dual_variables)
    assert solution.adjacency == adjacency
    assert solution.guarantee.private
    assert not solution.reproducible
    assert float(solution.profile(1.0)) <= 1e-6


def test_solvers_agree_and_zeros_are_exact():
    X, y = records()
    problem, theta = lasso(X, y)
    answers = []
    for solver in ("CLARABEL", "OSQP", "SCS"):
        cvxqop.privatize(problem, private=[X, y], seed=5, solver=solver, **PAY)
        answers.append(theta.value.copy())
        assert np.sum(theta.value == 0.0) >= 1
    assert np.abs(answers[0] - answers[1]).max() < 1e-5
    assert np.abs(answers[0] - answers[2]).max() < 1e-5


def test_streams_are_fresh():
    X, y = records()
    problem, theta = lasso(X, y)
    plan = cvxqop.plan(problem, private=[X, y], seed=5, **PAY)
    first, second = plan.run()[theta], plan.run()[theta]
    assert not np.array_equal(first, second)
    again = cvxqop.privatize(problem, private=[X, y], seed=5, **PAY)
    np.testing.assert_allclose(again[theta], first, rtol=1e-9)
    assert again.reproducible
    assert "NOT PRIVATE" in str(again)
    one = cvxqop.privatize(problem, private=[X, y], **PAY)[theta]
    assert not np.array_equal(one, cvxqop.privatize(problem, private=[X, y], **PAY)[theta])


def test_large_epsilon_gives_the_lasso():
    """n = 10⁵, d = 5, isotropic, ε = 10⁶: within 1e-3 of CVXPY's answer on the Gram form."""
    X, y = records(n=100_000)
    X /= np.maximum(1.0, np.linalg.norm(X, axis=1))[:, None]
    problem, theta = lasso(X, y)
    options = {**PAY, "epsilon": 1e6, "perturbation": "wishart"}
    plan = cvxqop.plan(problem, private=[X, y], **options)
    assert any("never falls below" in text for text in plan.warnings)
    released = plan.run()[theta]
    w = cp.Variable(5)
    gram = 0.5 * cp.quad_form(w, cp.psd_wrap(X.T @ X)) - (X.T @ y) @ w + 30.0 * cp.norm1(w)
    cp.Problem(cp.Minimize(gram), [cp.norm_inf(w) <= 5]).solve(solver="CLARABEL")
    assert np.abs(released - w.value).max() < 1e-3


def test_method_of_the_problem():
    X, y = records()
    problem, theta = lasso(X, y)
    problem.solve(solver="CLARABEL")
    solution = problem.solve(method="QOP", private=[X, y], **PAY)
    assert problem.status == "optimal"
    assert problem._value is None
    assert all(dual.value is None for c in problem.constraints for dual in c.dual_variables)
    assert np.array_equal(theta.value, solution[theta])


def test_intercept_and_several_variables():
    X, y = records()
    w, b = cp.Variable(5, name="w"), cp.Variable(name="b")
    problem = cp.Problem(cp.Minimize(cp.sum_squares(X @ w + b - y)), [w >= -2, w <= 2])
    plan = cvxqop.plan(problem, private=[X, y], **PAY)
    assert plan.dimension == 6
    assert plan.mechanism.sensitivity.smoothness == pytest.approx(2.0 * (1.0 + 0.5**2))
    solution = plan.run()
    assert solution[b].shape == ()
    assert solution[w].shape == (5,)
    assert np.all(np.abs(w.value) <= 2.0)


def test_auxiliary_variables_get_values():
    X, y = records()
    w, t = cp.Variable(5, name="w"), cp.Variable(5, name="t")
    problem = cp.Problem(cp.Minimize(cp.sum_squares(X @ w - y) + 20 * cp.sum(t)), [w <= t, -w <= t])
    solution = cvxqop.privatize(problem, private=[X, y], **PAY)
    assert np.abs(np.abs(solution[w]) - solution[t]).max() < 1e-6


def test_nonnegative_variable():
    X, y = records()
    w = cp.Variable(5, nonneg=True)
    problem = cp.Problem(cp.Minimize(cp.sum_squares(X @ w - y)))
    solution = cvxqop.privatize(problem, private=[X, y], **PAY)
    assert np.all(solution[w] >= 0.0)
    assert np.array_equal(w.value, solution[w])


@pytest.mark.parametrize("n", [0, 1, 3])
def test_few_records(n):
    """Whatever n is, the same path: no error that depends on it."""
    X, y = records(n=max(n, 1), d=4)
    X, y = X[:n], y[:n]
    theta = cp.Variable(4)
    problem = cp.Problem(cp.Minimize(cp.sum_squares(X @ theta - y)))
    for adjacency in ("replace_one", "add_remove"):
        solution = cvxqop.privatize(problem, private=[X, y], adjacency=adjacency, **PAY)
        assert np.all(np.isfinite(solution[theta]))


@pytest.mark.parametrize(
    "kind", ["zero X", "constant y", "zero column", "huge record", "float32", "int"]
)
def test_degenerate_data_are_not_bad_input(kind):
    X, y = records(n=300)
    if kind == "zero X":
        X = np.zeros_like(X)
    elif kind == "constant y":
        y = np.ones_like(y)
    elif kind == "zero column":
        X[:, 2] = 0.0
    elif kind == "huge record":
        X[7] = 1e200
    elif kind == "float32":
        X, y = X.astype(np.float32), y.astype(np.float32)
    else:
        X, y = np.sign(X).astype(int), np.sign(y).astype(int)
    problem, theta = lasso(X, y)
    solution = cvxqop.privatize(problem, private=[X, y], **PAY)
    assert np.all(np.isfinite(solution[theta]))


def test_path_from_one_private_loss():
    X, y = records()
    theta = cp.Variable(5)
    loss = cvxqop.private_loss(0.5 * cp.sum_squares(X @ theta - y), private=[X, y], **PAY)
    sizes = []
    lam = cp.Parameter(nonneg=True)
    problem = cp.Problem(cp.Minimize(loss.expression + lam * cp.norm1(theta)), [theta <= 3])
    for value in np.geomspace(1.0, 1e4, 50):
        lam.value = value
        problem.solve(solver="CLARABEL")
        sizes.append(np.abs(theta.value).sum())
    assert np.all(np.diff(sizes) <= 1e-6)
    assert sizes[-1] < 1e-6 < sizes[0]
    step = np.ones(5)
    theta.value = step
    f = loss.gradient @ (step - loss.anchor)
    f += 0.5 * (step - loss.anchor) @ loss.hessian @ (step - loss.anchor)
    assert loss.expression.value == pytest.approx(f, rel=1e-12)


def test_perturbed_quadratic_is_the_sum_plus_the_draw():
    """(H̃, g̃) = (κ A'A + S, κ A'c + a), S and a redrawn here from the same seed."""
    from cvxqop.privacy.noise import Randomness

    X, y = records()
    theta = cp.Variable(5)
    anchor = np.full(5, 0.1)
    loss = cvxqop.private_loss(
        cp.sum_squares(X @ theta - y), private=[X, y], seed=9, anchor=anchor,
        perturbation="wishart", **PAY,
    )  # fmt: skip
    mechanism = loss.guarantee.mechanism
    draw = mechanism.draw(Randomness(9).fresh()[0])
    grid, slope_grid = (grid.spacing for grid in mechanism.grids)
    expected = 2 * X.T @ X + draw.curvature + 5 * grid * np.eye(5)  # what rounding may take
    np.testing.assert_allclose(loss.hessian, expected, rtol=1e-12, atol=0.5001 * grid)
    residual = np.clip(X @ anchor - y, -1.0, 1.0)
    np.testing.assert_allclose(
        loss.gradient, 2 * X.T @ residual + draw.guard, rtol=1e-12, atol=0.5001 * slope_grid
    )


def test_common_minimiser_needs_no_guard():
    X, y = records()
    problem, _ = lasso(X, y)
    anchor = cvxqop.CommonMinimizer(np.zeros(5))
    plan = cvxqop.plan(problem, private=[X, y], anchor=anchor, **PAY)
    assert plan.mechanism.guard_scale == 0.0
    assert any("enforced, not assumed" in text for text in plan.guarantee.assumptions)
    near = cvxqop.CommonMinimizer(np.zeros(5), error=0.1)
    plan = cvxqop.plan(problem, private=[X, y], anchor=near, **PAY)
    assert plan.mechanism.sensitivity.anchor_gradient == pytest.approx(0.1)  # L η, L = R² = 1


def test_mean_equals_scaled_sum():
    X, y = records(n=500)
    theta = cp.Variable(5)
    mean = cp.Problem(cp.Minimize(cp.mean(cp.square(X @ theta - y))))
    total = cp.Problem(cp.Minimize(cp.sum_squares(X @ theta - y) / 500))
    one = cvxqop.privatize(mean, private=[X, y], seed=2, **PAY)[theta]
    two = cvxqop.privatize(total, private=[X, y], seed=2, **PAY)[theta]
    np.testing.assert_allclose(one, two, rtol=1e-7, atol=1e-9)


def test_public_record_weights():
    X, y = records(n=200)
    weights = np.linspace(0.5, 2.0, 200)
    theta = cp.Variable(5)
    loss = cp.sum(cp.multiply(weights, cp.square(X @ theta - y)))
    private = cvxqop.private_loss(
        loss, private=[X, y], public=[weights], seed=1, perturbation="wishart", **PAY
    )
    assert private.guarantee.mechanism.sensitivity.smoothness == pytest.approx(2.0 * 2.0)
    from cvxqop.privacy.noise import Randomness

    S = private.guarantee.mechanism.draw(Randomness(1).fresh()[0]).curvature
    rounding = 6 * private.guarantee.mechanism.grids[0].spacing
    np.testing.assert_allclose(
        private.hessian - S, 2 * X.T @ (weights[:, None] * X), rtol=1e-9, atol=rounding
    )


def test_units_of_the_data():
    """Data times 100 with bounds times 100: σ² and the guard exactly 10⁴ times as large."""
    X, y = records(n=200)
    theta = cp.Variable(5)

    def mechanism(scale):
        rows, target = scale * X, scale * y
        problem = cp.Problem(cp.Minimize(cp.sum_squares(rows @ theta - target)))
        bounds = cvxqop.Bounds(row_norm=scale, offset=scale)
        return cvxqop.plan(
            problem, private=[rows, target], bounds=bounds, epsilon=2.0, delta=1e-6,
            perturbation="wishart",
        ).mechanism  # fmt: skip

    one, many = mechanism(1.0), mechanism(100.0)
    assert many.sigma2 == pytest.approx(1e4 * one.sigma2, rel=1e-12)
    assert many.guard_scale == pytest.approx(1e4 * one.guard_scale, rel=1e-12)


def test_noise_ignores_the_regulariser_and_follows_the_loss():
    X, y = records(n=200)
    theta = cp.Variable(5)

    def sigma2(objective):
        problem = cp.Problem(cp.Minimize(objective))
        return cvxqop.plan(problem, private=[X, y], perturbation="wishart", **PAY).mechanism

    half = sigma2(0.5 * cp.sum_squares(X @ theta - y) + 0.5 * cp.sum_squares(theta))
    other = sigma2(0.5 * cp.sum_squares(X @ theta - y) + 7.0 * cp.sum_squares(theta))
    whole = sigma2(cp.sum_squares(X @ theta - y) + cp.sum_squares(theta))
    assert half.sigma2 == other.sigma2
    assert whole.sigma2 == pytest.approx(2.0 * half.sigma2, rel=1e-12)


def test_nonfinite_records():
    X, y = records(n=200)
    dirty, target = X.copy(), y.copy()
    dirty[3, 1], target[9] = np.nan, np.inf
    problem, theta = lasso(dirty, target)
    with pytest.raises(cvxqop.ProblemError, match='nonfinite="zero"') as caught:
        cvxqop.privatize(problem, private=[dirty, target], **PAY)
    assert "3" not in str(caught.value)
    assert theta.value is None
    loss = {"private": [dirty, target], "nonfinite": "zero", "seed": 1, **PAY}
    zeroed = cvxqop.private_loss(0.5 * cp.sum_squares(dirty @ theta - target), **loss)
    clean, clean_y = X.copy(), y.copy()
    clean[[3, 9]], clean_y[[3, 9]] = 0.0, 0.0
    expected = cvxqop.private_loss(
        0.5 * cp.sum_squares(clean @ theta - clean_y), private=[clean, clean_y], seed=1, **PAY
    )
    np.testing.assert_allclose(zeroed.hessian, expected.hessian, rtol=1e-12)
    np.testing.assert_allclose(zeroed.gradient, expected.gradient, rtol=1e-9)


def test_unsafe_bounds_are_marked():
    X, y = records()
    problem, _ = lasso(X, y)
    with pytest.warns(cvxqop.PrivacyWarning):
        bounds = cvxqop.Bounds.unsafe_from_data(X, y)
    solution = cvxqop.privatize(problem, private=[X, y], bounds=bounds, epsilon=1.0, delta=1e-6)
    assert not solution.guarantee.private
    assert "read from the data" in str(solution)


def test_json_and_html():
    X, y = records()
    problem, _ = lasso(X, y)
    solution = cvxqop.privatize(problem, private=[X, y], **PAY)
    data = json.loads(solution.to_json())
    assert data["epsilon"] == 1.0
    assert len(data["values"]["theta"]) == 5
    assert "Gaussian quadratic" in solution._repr_html_()


def test_plan_prints_and_warns():
    X, y = records(n=20)
    problem, _ = lasso(X, y)
    plan = cvxqop.plan(problem, private=[X, y], perturbation="wishart", **PAY)
    text = str(plan)
    assert "nothing has been spent" in text
    assert "expect an answer close to the anchor" in text
    assert plan.records == 20
    assert 0.5 < plan.shrinkage < 1.0
    assert plan.excess_risk_bound(2.0) > plan.excess_risk_bound(1.0)
    hidden = cvxqop.plan(problem, private=[X, y], adjacency="add_remove", **PAY)
    assert hidden.records is None
    assert hidden.shrinkage is None


def test_a_public_factor_is_stated_under_add_remove():
    X, y = records(n=50)
    theta = cp.Variable(5)
    problem = cp.Problem(cp.Minimize(0.01 * cp.sum_squares(X @ theta - y)))
    plan = cvxqop.plan(problem, private=[X, y], adjacency="add_remove", **PAY)
    assert any("1/100" in text and "public" in text for text in plan.guarantee.assumptions)
    assert not any("50" in text for text in plan.guarantee.assumptions)
