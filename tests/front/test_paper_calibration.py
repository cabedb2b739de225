"""Wishart(calibration="paper") and Wishart(curvature="floor") behind the call."""

import cvxpy as cp
import numpy as np
import pytest

import cvxqop
from cvxqop.privacy.noise import Randomness
from cvxqop.privacy.release import GaussianRelease

PAY = {"bounds": cvxqop.Bounds(row_norm=1.0, offset=1.0), "epsilon": 1.0, "delta": 1e-6}
PAPER = cvxqop.Wishart(calibration="paper")
FLOOR = cvxqop.Wishart(curvature="floor")
TRUTH = np.array([0.5, -0.4, 0.1])


def people(n=2000, seed=0):
    """Noiseless records: TRUTH minimises every loss."""
    X = np.random.default_rng(seed).uniform(-0.5, 0.5, (n, 3))
    return X, X @ TRUTH


def stated(loss, X, y, theta):
    residual = X @ theta - y
    if loss == "squared":
        terms = 0.5 * cp.sum_squares(residual)
    elif loss == "logistic":
        terms = cp.sum(cp.logistic(residual))
    else:
        terms = cp.sum(cp.huber(residual, 0.2))
    return cp.Problem(cp.Minimize(terms), [cp.norm(theta, 2) <= 2])


def planned(loss="squared", *, X=None, y=None, perturbation=PAPER, **options):
    if X is None:
        X, y = people()
    theta = cp.Variable(3)
    problem = stated(loss, X, y, theta)
    plan = cvxqop.plan(problem, private=[X, y], perturbation=perturbation, **{**PAY, **options})
    return plan, theta


@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
@pytest.mark.parametrize("loss", ["squared", "huber"])
@pytest.mark.parametrize("error", [0.0, 1e-3])
def test_release(error, loss, adjacency):
    """At the common minimiser itself the answer is close, and the plan says what it rests on."""
    anchor = cvxqop.CommonMinimizer(TRUTH, error=error)
    plan, theta = planned(loss, anchor=anchor, adjacency=adjacency)
    m = plan.mechanism
    assert float(plan.profile(1.0)) <= 1e-6
    assert m.guard_scale == 0.0
    assert m.describe()["calibration"] == "paper"
    assert m.eta == error
    assert (m.release is None) == (error == 0.0 and loss == "squared")
    text = " ".join(plan.guarantee.assumptions)
    assert ("assumed, not enforced" in text) == (error > 0.0)
    assert ("the clipping enforces it" in text) == (error == 0.0)
    assert "enforced, not assumed" not in text or error == 0.0
    assert "constants of Cortild and Cartis" in " ".join(str(plan).split())
    solution = plan.run()
    assert (solution.private_loss is None) == (error > 0.0 or loss == "huber")
    noise = m.release.scale if m.release else 0.0
    # TRUTH minimises data and perturbation; false alarms below 1e-9 (six standard deviations).
    assert np.linalg.norm(solution[theta] - TRUTH) <= 6.0 * np.sqrt(3) * noise + 0.1


def test_no_offset_needs_no_common_minimiser_to_be_stated():
    X, _ = people()
    theta = cp.Variable(3)
    loss = 0.5 * cp.sum_squares(X @ theta) - 3.0 * theta[0]
    plan = cvxqop.plan(
        cp.Problem(cp.Minimize(loss), [cp.norm(theta, 2) <= 2]),
        private=[X],
        perturbation=PAPER,
        **PAY,
    )
    assert plan.mechanism.eta == 0.0
    assert "the clipping enforces it" in " ".join(plan.guarantee.assumptions)


def test_the_release_adds_sigma_tilde():
    """The same draw rebuilt: certified point plus σ̃ times the stream's next normals."""
    anchor = cvxqop.CommonMinimizer(TRUTH, error=1e-3)
    plan, theta = planned(anchor=anchor, seed=5)
    m = plan.mechanism
    assert isinstance(m.release, GaussianRelease)
    assert m.release.scale >= m.constants.beta * 1e-3 / m.constants.alpha
    noise, _ = Randomness(5).fresh()
    S = m.draw(noise).curvature
    X, y = people()
    y = X @ TRUTH + np.clip(y - X @ TRUTH, -1e-3, 1e-3)
    exact = TRUTH + np.linalg.solve(X.T @ X + S, X.T @ (y - X @ TRUTH))
    expected = exact + m.release.scale * noise.standard_normal(3)
    expected *= min(1.0, 2.0 / np.linalg.norm(expected))
    np.testing.assert_allclose(plan.run()[theta], expected, atol=1e-4)


@pytest.mark.parametrize(
    ("loss", "options", "match"),
    [
        ("squared", {}, "common|CommonMinimizer"),
        ("huber", {}, "CommonMinimizer"),
        ("logistic", {"anchor": cvxqop.CommonMinimizer(TRUTH, error=0.1)}, "CommonMinimizer"),
        (
            "squared",
            {
                "anchor": cvxqop.CommonMinimizer(TRUTH, error=0.1),
                "perturbation": cvxqop.Wishart(4, calibration="paper"),
            },
            "d \\+ 1",
        ),
        (
            "huber",
            {
                "anchor": cvxqop.CommonMinimizer(TRUTH),
                "perturbation": cvxqop.Wishart(calibration="paper", epsilon_shares=(0.5, 0.5)),
                "epsilon": 4.0,
            },
            "epsilon2",
        ),
        ("huber", {"perturbation": FLOOR}, "squared losses"),
        (
            "squared",
            {"perturbation": FLOOR, "solver": "STOTOS", "solver_options": {"variant": "plain"}},
            "works on the records",
        ),
    ],
)
def test_refused_before_anything_is_spent(loss, options, match):
    budget = cvxqop.Budget(epsilon=10.0, delta=1e-3)
    with pytest.raises(cvxqop.CalibrationError, match=match):
        planned(loss, budget=budget, **options)
    assert not budget.history


def test_an_anchor_that_is_off_leaves_no_private_loss():
    X, y = people()
    theta = cp.Variable(3)
    loss = 0.5 * cp.sum_squares(X @ theta - y)
    options = {"private": [X, y], "perturbation": PAPER, **PAY}
    anchor = cvxqop.CommonMinimizer(TRUTH, error=1e-3)
    with pytest.raises(cvxqop.CalibrationError, match="not the perturbed quadratic form"):
        cvxqop.private_loss(loss, anchor=anchor, **options)
    problem = cp.Problem(cp.Minimize(loss))
    answers = [
        cvxqop.privatize(problem, anchor=anchor, solver=solver, seed=1, **options)[theta]
        for solver in ("STOTOS", "CLARABEL")
    ]
    np.testing.assert_allclose(answers[0], answers[1], atol=2e-6)
    exact = cvxqop.private_loss(loss, anchor=cvxqop.CommonMinimizer(TRUTH), **options)
    np.testing.assert_array_equal(exact.gradient, np.zeros(3))


def test_exact_takes_the_same_anchor_with_a_guard():
    anchor = cvxqop.CommonMinimizer(TRUTH, error=1e-3)
    plan, _ = planned(anchor=anchor, perturbation="wishart")
    assert plan.mechanism.guard_scale > 0.0
    assert "enforced, not assumed" in " ".join(plan.guarantee.assumptions)
    paper, _ = planned(anchor=anchor)
    assert plan.mechanism.sigma2 < paper.mechanism.sigma2


def test_floor_subtracts_the_mean():
    """H̃ rebuilt from the same draw; the plan has no shrinkage to report."""
    X, y = people(n=50)
    theta = cp.Variable(3)
    loss = cvxqop.private_loss(
        0.5 * cp.sum_squares(X @ theta - y), private=[X, y], seed=3, perturbation=FLOOR, **PAY
    )
    m = loss.guarantee.mechanism
    S = m.draw(Randomness(3).fresh()[0]).curvature
    mean = m.sigma2 * m.degrees_of_freedom
    values = np.linalg.eigvalsh(X.T @ X + S) - mean
    np.testing.assert_allclose(
        np.linalg.eigvalsh(loss.hessian), np.maximum(values, m.noise_edge), rtol=1e-8
    )
    plan, _ = planned(perturbation=FLOOR)
    assert plan.shrinkage is None
    assert "subtracted" in str(plan)
    few, _ = planned(perturbation=FLOOR, X=X[:20], y=y[:20])
    assert any("close to the anchor" in warning for warning in few.warnings)
    generous, _ = planned(perturbation=FLOOR, epsilon=1000.0)
    assert not any("never falls below" in warning for warning in generous.warnings)
