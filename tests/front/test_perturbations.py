"""Every mechanism behind the same call."""

import cvxpy as cp
import numpy as np
import pytest

import cvxqop
from cvxqop.privacy.noise import Randomness

PAY = {"bounds": cvxqop.Bounds(row_norm=1.0, offset=1.0), "epsilon": 1.0, "delta": 1e-6}


def people(n=20_000, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    X /= np.maximum(1.0, np.linalg.norm(X, axis=1))[:, None]
    return X, np.clip(0.5 * X @ [1.0, -0.8, 0.0, 0.3] + 0.05 * rng.standard_normal(n), -1, 1)


def problem(loss, X, y, theta):
    if loss == "squared":
        terms = 0.5 * cp.sum_squares(X @ theta - y)
    elif loss == "logistic":
        terms = cp.sum(cp.logistic(-cp.multiply(np.sign(y), X @ theta)))
    else:
        terms = cp.sum(cp.huber(X @ theta - y, 0.2))
    return cp.Problem(cp.Minimize(terms), [cp.norm(theta, 2) <= 2])


@pytest.mark.parametrize("loss", ["squared", "logistic", "huber"])
@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
@pytest.mark.parametrize("perturbation", ["wishart", "gaussian", "linear"])
def test_release_is_close_and_calibrated(perturbation, adjacency, loss):
    X, y = people()
    target = np.sign(y) if loss == "logistic" else y
    theta = cp.Variable(4)
    private = [X, target]
    plan = cvxqop.plan(
        problem(loss, X, y, theta),
        private=private,
        adjacency=adjacency,
        perturbation=perturbation,
        **PAY,
    )
    assert float(plan.profile(1.0)) <= 1e-6
    assert plan.mechanism.describe()["ensemble"] == perturbation
    assert "mechanism" in str(plan)
    exact = problem(loss, X, y, theta)
    big = {**PAY, "epsilon": 1e5, "delta": 1e-3}
    solution = plan.run()
    near = cvxqop.privatize(exact, private=private, adjacency="add_remove", **big)[theta]
    assert np.linalg.norm(solution[theta]) <= 2 * (1 + 1e-12)
    assert np.linalg.norm(solution[theta] - near) < 0.25 * np.linalg.norm(near)


def test_gaussian_repairs_the_curvature():
    """H̃ = H + S with its eigenvalues at the noise edge or above; S redrawn from the seed."""
    X, y = people(n=50)
    theta = cp.Variable(4)
    for curvature in ("floor", "ridge"):
        loss = cvxqop.private_loss(
            0.5 * cp.sum_squares(X @ theta - y),
            private=[X, y],
            seed=3,
            perturbation=cvxqop.Gaussian(curvature=curvature),
            **PAY,
        )
        mechanism = loss.guarantee.mechanism
        raw = X.T @ X + mechanism.draw(Randomness(3).fresh()[0]).curvature
        values = np.linalg.eigvalsh(loss.hessian)
        assert values[0] >= mechanism.noise_edge * (1 - 1e-9)
        if curvature == "floor":
            expected = np.maximum(np.linalg.eigvalsh(raw), mechanism.noise_edge)
            rounding = 4 * mechanism.grids[0].spacing  # raw is not on the public grid
            np.testing.assert_allclose(values, expected, rtol=1e-9, atol=rounding)


def test_stages_reanchor_and_cut_residuals():
    """Two stages rebuilt by hand from the same draw."""
    X, y = people(n=3000)
    theta = cp.Variable(4)
    loss = cvxqop.private_loss(
        0.5 * cp.sum_squares(X @ theta - y),
        private=[X, y],
        seed=8,
        perturbation=cvxqop.Gaussian(stages=2, residual_bound=0.3),
        **PAY,
    )
    mechanism = loss.guarantee.mechanism
    draw = mechanism.draw(Randomness(8).fresh()[0])
    grid, *grids = mechanism.grids
    gradient = grids[0].add(-X.T @ y, draw.guards[0])
    H = mechanism.repair(grid.add(X.T @ X, draw.curvature), [gradient])
    first = -np.linalg.solve(H, gradient)
    np.testing.assert_allclose(loss.anchor, first, rtol=1e-7)
    cut = np.clip(X @ first - y, -0.3, 0.3)
    np.testing.assert_allclose(
        loss.gradient, X.T @ cut + draw.guards[1], rtol=1e-7, atol=2 * grids[1].spacing
    )


def test_linear_takes_the_gradient_bound_from_the_constraints():
    X, y = people(n=50)
    theta = cp.Variable(4)
    plan = cvxqop.plan(
        problem("squared", X, y, theta), private=[X, y], perturbation="linear", **PAY
    )
    assert plan.mechanism.sensitivity.gradient == pytest.approx(1.0 + 2.0)  # B + R·radius
    free = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(X @ theta - y)))
    with pytest.raises(cvxqop.CalibrationError, match="Bound the variable"):
        cvxqop.plan(free, private=[X, y], perturbation="linear", **PAY)


@pytest.mark.parametrize(
    ("perturbation", "error", "match"),
    [
        (cvxqop.Gaussian(stages=2), cvxqop.OptionError, "stages"),
    ],
)
def test_refusals(perturbation, error, match):
    X, y = people(n=50)
    theta = cp.Variable(4)
    with pytest.raises(error, match=match):
        cvxqop.plan(problem("huber", X, y, theta), private=[X, y], perturbation=perturbation, **PAY)


def test_private_loss_needs_a_random_curvature():
    X, y = people(n=50)
    theta = cp.Variable(4)
    with pytest.raises(cvxqop.OptionError, match="linear mechanism"):
        cvxqop.private_loss(
            cp.sum_squares(X @ theta - y), private=[X, y], perturbation="linear", **PAY
        )


def test_an_accuracy_that_double_precision_may_not_certify_is_warned_of():
    """The noise moves θ by hundreds of radii: a billionth of one is not to be told apart there."""
    X, y = np.full((40, 5), 1e-4), np.tile([-1.0, 1.0], 20)
    theta = cp.Variable(5)
    problem = cp.Problem(cp.Minimize(cp.sum(cp.logistic(-cp.multiply(y, X @ theta)))))
    bounds = cvxqop.Bounds(row_norm=2e-3)
    options = {"private": [X, y], "bounds": bounds, "epsilon": 0.3, "delta": 1e-6}
    plan = cvxqop.plan(problem, perturbation="linear", accuracy=1e-9, **options)
    (warning,) = [text for text in plan.warnings if "double precision" in text]
    advised = float(warning.split("accuracy=")[1].split()[0])
    for accuracy in (advised, 10 * advised):
        better = cvxqop.plan(problem, perturbation="linear", accuracy=accuracy, **options)
        assert not [text for text in better.warnings if "double precision" in text]
    # What it costs: the release noise is far below that of the mechanism.
    displacement = better.mechanism.guard_scale * np.sqrt(5) / better.mechanism.ridge
    assert better.mechanism.release.scale < 1e-3 * displacement
    for row_norm in (2e-3, 1.0, 1e6):
        usual = {**options, "bounds": cvxqop.Bounds(row_norm=row_norm)}
        for perturbation in ("linear", "wishart", "gaussian"):
            plan = cvxqop.plan(problem, perturbation=perturbation, **usual)
            assert not [text for text in plan.warnings if "double precision" in text]


def test_an_accuracy_that_costs_more_than_the_perturbation_is_warned_of():
    """Bounds far beyond the threshold of a Huber loss make the radius, and Δ with it, large."""
    X, y = people(n=50)
    theta = cp.Variable(4)
    problem = cp.Problem(cp.Minimize(cp.sum(cp.huber(X @ theta - y, 1e-3))))
    bounds = cvxqop.Bounds(row_norm=1.0, offset=1e3)
    options = {"private": [X, y], "bounds": bounds, "epsilon": 1.0, "delta": 1e-6}
    for perturbation in ("linear", "gaussian", "wishart"):
        plan = cvxqop.plan(problem, perturbation=perturbation, **options)
        (warning,) = [text for text in plan.warnings if "the release adds noise" in text]
        advised = float(warning.split("accuracy=")[1].split()[0])
        assert 1e-12 <= advised < 1e-6
        better = cvxqop.plan(problem, perturbation=perturbation, accuracy=advised, **options)
        assert not [text for text in better.warnings if "accuracy" in text]
        assert better.mechanism.release.scale < 0.1 * plan.mechanism.release.scale
