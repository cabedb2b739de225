"""LOP-Clip and public weights through the front: the records route with a loss of its own."""

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import root
from scipy.special import expit

import cvxqop
from cvxqop.privacy.noise import Randomness
from cvxqop.problem.losses.scalar import ScalarLoss

pytestmark = pytest.mark.blas

PAY = {"bounds": cvxqop.Bounds(row_norm=1.0, offset=1.0), "epsilon": 1.0, "delta": 1e-6}
FINE = {**PAY, "accuracy": 1e-9, "seed": 5}
LOG_COSH = ScalarLoss(
    "log-cosh",
    value=lambda t: np.logaddexp(t, -t) - np.log(2.0),
    derivative=np.tanh,
    second_derivative=lambda t: 1 / np.cosh(np.clip(t, -300, 300)) ** 2,
    curvature=1.0,
    slope=1.0,
    even=True,
)


def people(n=3000, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    X /= np.maximum(1.0, np.linalg.norm(X, axis=1) / rng.uniform(0.3, 1.0, n))[:, None]
    y = X @ np.array([0.9, -0.5, 0.0, 0.3])[:d] + 0.3 * rng.standard_normal(n)
    return X, np.clip(y, -1, 1)


def perturbed(plan):
    """S and a of the first run of a seeded plan, and a bound on the release's noise."""
    draw = plan.mechanism.draw(Randomness(FINE["seed"]).fresh()[0])
    d = plan.dimension
    return draw.curvature, draw.guard, 7.0 * np.sqrt(d) * plan.mechanism.release.scale


def stationary(rows, slope, zeta, S, a):
    """The root of Σ_i cut(h_i', ζ/‖a_i‖) a_i + S θ + a, with no value of the loss in use."""
    norms = np.linalg.norm(rows, axis=1)

    def gradient(theta):
        return rows.T @ np.clip(slope(rows @ theta), -zeta / norms, zeta / norms) + S @ theta + a

    found = root(gradient, np.zeros(rows.shape[1]), tol=1e-13)
    assert np.linalg.norm(gradient(found.x)) < 1e-9 * len(rows)
    return found.x


def huber_by_record(residual, weights, thresholds):
    """Σ w huber(r, M) with one M a record: M² huber(r/M, 1)."""
    factor = weights * thresholds**2
    return cp.sum(cp.multiply(factor, cp.huber(cp.multiply(1 / thresholds, residual), 1)))


@pytest.mark.parametrize("zeta", [0.05, 0.5])
@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
def test_squared_loss_is_huber_with_a_threshold_a_record(adjacency, zeta):
    X, y = people()
    theta = cp.Variable(4)
    rest, sets = 20 * cp.norm1(theta), [cp.norm(theta, 2) <= 0.8]
    problem = cp.Problem(cp.Minimize(cp.sum_squares(X @ theta - y) + rest), sets)
    plan = cvxqop.plan(
        problem, private=[X, y], adjacency=adjacency, perturbation=cvxqop.Linear(clip=zeta), **FINE
    )
    assert float(plan.profile(1.0)) <= 1e-6
    assert plan.mechanism.gradient == zeta
    assert plan.mechanism.sensitivity.smoothness == pytest.approx(2.0)  # κ R² as before
    released = plan.run()[theta]
    S, a, noise = perturbed(plan)
    residual = X @ theta - y
    M = zeta / np.linalg.norm(X, axis=1) / 2
    assert np.mean(np.abs(y) > M) > 0.1
    smooth = huber_by_record(residual, np.ones(len(y)), M)
    smooth += 0.5 * cp.quad_form(theta, cp.psd_wrap(S)) + a @ theta
    cp.Problem(cp.Minimize(smooth + rest), sets).solve(solver="CLARABEL")
    assert np.linalg.norm(released - theta.value) < noise + 2e-5


def test_weights_and_an_intercept():
    """Clipped is the gradient of the whole weighted loss, by the whole row with its 1,
    which three features of norm 1 take at 1/2."""
    X, y = people(n=800, d=3)
    weights = np.linspace(0.1, 2.0, 800)
    w, b = cp.Variable(3), cp.Variable()
    loss = cp.sum(cp.multiply(weights, cp.square(X @ w + b - y)))
    plan = cvxqop.plan(
        cp.Problem(cp.Minimize(loss)),
        private=[X, y],
        public=[weights],
        perturbation=cvxqop.Linear(clip=0.4),
        **FINE,
    )
    assert plan.mechanism.sensitivity.smoothness == pytest.approx(2.0 * 2.0 * 1.25)
    solution = plan.run()
    S, a, noise = perturbed(plan)
    rows = np.hstack([X, np.full((800, 1), 0.5)])
    exact = stationary(rows, lambda t: 2 * weights * (t - y), 0.4, S, a)
    released = np.append(solution[w], solution[b] / 0.5)
    assert np.linalg.norm(released - exact) < noise + 1e-8


@pytest.mark.parametrize("spelling", ["margin", "labels", "sparse", "log-cosh", "several"])
def test_other_losses(spelling):
    X, y = people(n=600)
    sign, zero_one = np.sign(y), (1.0 + np.sign(y)) / 2
    theta = cp.Variable(4)
    rows, private = X, [X, sign]
    slope = lambda t: expit(t) - zero_one  # noqa: E731
    if spelling == "margin":
        loss = cp.sum(cp.logistic(-cp.multiply(sign, X @ theta)))
    elif spelling == "labels":
        loss = cp.sum(cp.logistic(X @ theta) - cp.multiply(zero_one, X @ theta))
        private = [X, zero_one]
    elif spelling == "sparse":
        matrix = sp.csr_array(X)
        loss = cp.sum(cp.logistic(-cp.multiply(sign, matrix @ theta)))
        private = [matrix, sign]
    elif spelling == "log-cosh":
        loss = 3 * cvxqop.glm_loss(LOG_COSH, X, y, theta)
        private, slope = [], lambda t: 3 * np.tanh(t - y)
    else:
        loss = cp.sum_squares(X @ theta - y) + 2 * cp.sum(cp.huber(X @ theta + y, 0.5))
        private = [X, y]
        slope = lambda t: 2 * (t - y) + 4 * np.clip(t + y, -0.5, 0.5)  # noqa: E731
    plan = cvxqop.plan(
        cp.Problem(cp.Minimize(loss)),
        private=private,
        perturbation=cvxqop.Linear(clip=0.3),
        **FINE,
    )
    released = plan.run()[theta]
    S, a, noise = perturbed(plan)
    assert np.linalg.norm(released - stationary(rows, slope, 0.3, S, a)) < noise + 1e-8


@pytest.mark.parametrize("variant", ["newton", "svrg", "plain"])
def test_every_variant(variant):
    X, y = people(n=500)
    theta = cp.Variable(4)
    plan = cvxqop.plan(
        cp.Problem(cp.Minimize(cp.sum_squares(X @ theta - y)), [cp.abs(theta) <= 1]),
        private=[X, y],
        perturbation=cvxqop.Linear(clip=0.3),
        solver="STOTOS",
        solver_options={"variant": variant, "max_iter": 500},
        seed=5,
        **PAY,
    )
    released = plan.run()[theta]
    S, a, noise = perturbed(plan)
    M = 0.3 / np.linalg.norm(X, axis=1) / 2
    objective = huber_by_record(X @ theta - y, np.ones(500), M) + a @ theta
    objective += 0.5 * cp.quad_form(theta, cp.psd_wrap(S))
    cp.Problem(cp.Minimize(objective), [cp.abs(theta) <= 1]).solve(solver="CLARABEL")
    assert np.linalg.norm(released - theta.value) < noise + 1e-5


@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
def test_a_clip_that_never_acts_is_no_clip(adjacency):
    """Where G is known it stays the smaller bound, so that only rounding differs."""
    X, y = people(n=500)
    theta = cp.Variable(4)
    problem = cp.Problem(cp.Minimize(cp.sum_squares(X @ theta - y)), [cp.abs(theta) <= 1])
    released = []
    for perturbation in (cvxqop.Linear(), cvxqop.Linear(clip=1e9)):
        plan = cvxqop.plan(
            problem, private=[X, y], perturbation=perturbation, adjacency=adjacency, **FINE
        )
        assert plan.mechanism.gradient == pytest.approx(2.0 * (1.0 + 2.0))  # 2R(B + R reach)
        released.append(plan.run()[theta])
    np.testing.assert_allclose(released[0], released[1], atol=2.1e-9)


def test_large_epsilon_gives_the_minimiser():
    X, y = people(n=40_000)
    theta = cp.Variable(4)
    solution = cvxqop.privatize(
        cp.Problem(cp.Minimize(cp.sum_squares(X @ theta - y))),
        private=[X, y],
        perturbation=cvxqop.Linear(clip=5.0),
        **{**PAY, "epsilon": 1e6},
    )
    exact = np.linalg.lstsq(X, y, rcond=None)[0]
    assert np.linalg.norm(solution[theta] - exact) < 1e-3 * np.linalg.norm(exact)


@pytest.mark.parametrize("epsilon", [1e-3, 1e6])
@pytest.mark.parametrize("zeta", [1e-6, 1e6])
def test_extremes_are_finite(epsilon, zeta):
    X, y = people(n=50)
    theta = cp.Variable(4)
    solution = cvxqop.privatize(
        cp.Problem(cp.Minimize(cp.sum_squares(X @ theta - y))),
        private=[X, y],
        perturbation=cvxqop.Linear(clip=zeta),
        **{**PAY, "epsilon": epsilon},
    )
    assert np.all(np.isfinite(solution[theta]))


@pytest.mark.parametrize("n", [0, 1, 2])
def test_few_and_empty_records(n):
    X, y = people(n=3)
    X[1] = 0.0
    theta = cp.Variable(4)
    problem = cp.Problem(cp.Minimize(cp.sum_squares(X[:n] @ theta - y[:n])))
    solution = cvxqop.privatize(
        problem, private=[X[:n], y[:n]], perturbation=cvxqop.Linear(clip=1.0), **PAY
    )
    assert np.all(np.isfinite(solution[theta]))


def test_the_solution_says_that_another_loss_was_minimised():
    X, y = people(n=50)
    theta = cp.Variable(4)
    problem = cp.Problem(cp.Minimize(cp.sum_squares(X @ theta - y)))
    plan = cvxqop.plan(problem, private=[X, y], perturbation=cvxqop.Linear(clip=0.25), **PAY)
    solution = plan.run()
    for text in (str(plan), str(solution)):
        flat = " ".join(text.split())
        assert "clipped to norm ζ = 0.25" in flat
        assert "not the loss as written" in flat
        assert "bias" in flat
    assert solution.to_dict()["mechanism"]["clip"] == 0.25


@pytest.mark.parametrize(("loss", "zeta"), [("squared", 1.2), ("logistic", 0.5), ("weighted", 1.0)])
def test_clip_at_the_anchor(loss, zeta):
    """ζ is the bound at the anchor, κRB or R/2 times the largest weight, whatever the records."""
    X, y = people(n=400)
    theta = cp.Variable(4)
    target = y if loss == "squared" else np.sign(y)
    term = cp.sum_squares(X @ theta - y)
    if loss != "squared":
        losses = cp.logistic(-cp.multiply(target, X @ theta))
        weights = np.linspace(0.5, 2.0, 400) if loss == "weighted" else np.ones(400)
        term = cp.sum(cp.multiply(weights, losses))
    options = dict(private=[X, target], **FINE)
    options["public"] = [weights] if loss == "weighted" else []
    options["bounds"] = cvxqop.Bounds(row_norm=1.0, offset=0.6)
    answers = []
    for clip in ("anchor", zeta):
        plan = cvxqop.plan(
            cp.Problem(cp.Minimize(term)), perturbation=cvxqop.Linear(clip=clip), **options
        )
        solution = plan.run()
        assert plan.mechanism.clip == pytest.approx(zeta)
        assert plan.mechanism.gradient == pytest.approx(zeta)
        assert f"clipped to norm ζ = {zeta:g}" in " ".join(str(solution).split())
        answers.append(solution[theta])
    assert answers[0] == pytest.approx(answers[1], abs=1e-8)


@pytest.mark.parametrize("calibration", ["exact", "classic"])
@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
@pytest.mark.parametrize("loss", ["squared", "logistic", "clip"])
def test_calibrations(loss, adjacency, calibration):
    """Linear as a whole: both calibrations keep their promise by the exact profile, and run."""
    X, y = people(n=2000)
    theta = cp.Variable(4)
    sets = [] if loss == "clip" else [cp.norm(theta, 2) <= 1]
    term = cp.sum_squares(X @ theta - y)
    if loss == "logistic":
        term = cp.sum(cp.logistic(-cp.multiply(np.sign(y), X @ theta)))
    plan = cvxqop.plan(
        cp.Problem(cp.Minimize(term), sets),
        private=[X, np.sign(y) if loss == "logistic" else y],
        adjacency=adjacency,
        perturbation=cvxqop.Linear(clip=0.5 if loss == "clip" else None, calibration=calibration),
        **PAY,
    )
    # |a'θ| ≤ 1 on the ball, so that the slope of the logistic loss is at most σ(1).
    G = {"squared": 4.0, "logistic": 1.0 / (1.0 + np.exp(-1.0)), "clip": 0.5}[loss]
    mechanism = plan.mechanism
    assert mechanism.gradient == pytest.approx(G)
    assert mechanism.release is not None
    assert float(plan.profile(1.0)) <= 1e-6
    if calibration == "classic":
        size = 2.0 if adjacency == "replace_one" else 1.0
        closed = size * G * np.sqrt(8.0 * np.log(2.0 / 1e-6) + 4.0)
        assert mechanism.ridge == pytest.approx(2.0 * mechanism.sensitivity.smoothness)
        assert closed * (1 - 1e-12) <= mechanism.guard_scale <= 1.05 * closed
    solution = plan.run()
    assert np.all(np.isfinite(solution[theta]))


def test_refusals_before_anything_is_spent(monkeypatch):
    X, y = people(n=50)
    theta = cp.Variable(4)
    problem = cp.Problem(cp.Minimize(cp.sum_squares(X @ theta - y)))
    clipped = {"private": [X, y], "perturbation": cvxqop.Linear(clip=1.0), **PAY}

    def drawn(self):
        raise AssertionError("noise was drawn")

    monkeypatch.setattr("cvxqop.privacy.noise.Randomness.fresh", drawn)
    budget = cvxqop.Budget(epsilon=1.0, delta=1e-6)
    with pytest.raises(cvxqop.OptionError, match="not installed"):
        cvxqop.privatize(problem, solver="NONE", budget=budget, **clipped)
    with pytest.raises(cvxqop.OptionError, match="linear mechanism"):
        cvxqop.private_loss(cp.sum_squares(X @ theta - y), budget=budget, **clipped)
    unbounded = {**clipped, "perturbation": "linear"}
    with pytest.raises(cvxqop.CalibrationError, match=r"Linear\(clip=…\).*quadratic perturbation"):
        cvxqop.privatize(problem, budget=budget, **unbounded)
    dirty = X.copy()
    dirty[3, 0] = np.nan
    with pytest.raises(cvxqop.ProblemError, match="NaN"):
        cvxqop.privatize(
            cp.Problem(cp.Minimize(cp.sum_squares(dirty @ theta - y))),
            budget=budget,
            **{**clipped, "private": [dirty, y]},
        )
    with pytest.raises(cvxqop.CalibrationError, match="Pass clip a number"):
        cvxqop.privatize(
            cp.Problem(cp.Minimize(cp.sum_squares(X @ theta))),
            budget=budget,
            **{**clipped, "private": [X], "perturbation": cvxqop.Linear(clip="anchor")},
        )
    assert budget.history == ()
    for clip in (np.nan, np.inf, -1.0, 0, "1"):
        with pytest.raises(cvxqop.OptionError, match="largest norm that the gradient"):
            cvxqop.Linear(clip=clip)


@pytest.mark.parametrize("perturbation", ["wishart", "gaussian", "linear"])
def test_public_weights_without_a_clip(perturbation):
    """One public weight a record, for a loss that is solved on the records."""
    X, y = people(n=600)
    weights = np.linspace(0.0, 2.0, 600)
    theta = cp.Variable(4)
    loss = cp.sum(cp.multiply(weights, cp.huber(X @ theta - y, 0.2)))
    plan = cvxqop.plan(
        cp.Problem(cp.Minimize(loss)),
        private=[X, y],
        public=[weights],
        perturbation=perturbation,
        **FINE,
    )
    assert plan.mechanism.sensitivity.smoothness == pytest.approx(4.0)
    released = plan.run()[theta]
    S, a, noise = perturbed(plan)
    slope = lambda t: weights * 2 * np.clip(t - y, -0.2, 0.2)  # noqa: E731
    assert np.linalg.norm(released - stationary(X, slope, 1e9, S, a)) < noise + 1e-8
