"""Gaussian(stages="adaptive") end to end: by hand, with little noise, with r and C, resumed."""

import cvxpy as cp
import numpy as np
import pytest

import cvxqop
from cvxqop.privacy.gaussian.cut_rules import CUTS, chosen_cut, shrunk
from cvxqop.privacy.noise import Randomness
from cvxqop.solve.engines import conic

pytestmark = pytest.mark.blas

ADAPTIVE = cvxqop.Gaussian(stages="adaptive")
RNG = np.random.default_rng(0)
N, D = 3000, 4
X = RNG.uniform(-0.5, 0.5, (N, D))
Y = np.clip(X @ [0.8, -0.4, 0.0, 0.3] + 0.1 * RNG.standard_normal(N), -1, 1)
PAY = {
    "epsilon": 1.0,
    "delta": 1e-6,
    "bounds": cvxqop.Bounds(row_norm=1.0, offset=1.0),
    "perturbation": ADAPTIVE,
    "seed": 3,
}
SURE = {**PAY, "epsilon": 1e6}


def squares(theta, x=X, y=Y):
    return 0.5 * cp.sum_squares(x @ theta - y)


def least_squares(loss, rest=0, constraints=()):
    """The answer without privacy, by another solver."""
    problem = cp.Problem(cp.Minimize(loss + rest), list(constraints))
    problem.solve(solver="CLARABEL", canon_backend="SCIPY")
    return [v.value for v in loss.variables()]


def by_hand(x, y, kappa, theta0, mechanism, draw, G):
    """All stages in plain numpy, one output, no r and no C."""
    H = kappa * x.T @ x + draw.curvature
    first = kappa * x.T @ (x @ theta0 - y) + draw.guards[0]
    w, V = np.linalg.eigh(H)

    def step(theta, gradient, level):
        return theta - V @ ((V.T @ gradient) / np.maximum(w, level))

    norms = np.linalg.norm(x, axis=1)
    edges = np.array([0.01, 0.02, 0.035, 0.05, 0.07, 0.1, 0.14, 0.2, 0.28, 0.4, 0.56, 0.8])
    theta, total, looks, path, cuts = step(theta0, first, mechanism.level(0)), 0, 0, [], []
    for stage in range(1, 24):
        r = kappa * (x @ theta - y)
        if stage % 4 == 1:
            bins = np.searchsorted(edges * G, np.abs(r) * norms, side="right")
            total = total + np.bincount(bins, minlength=13) + draw.counts[looks]
            looks += 1
            noise = 2.0 * mechanism.guard_scales[stage]  # √D = 2
            scale = mechanism.count_scale / looks**0.5
            zeta = G * CUTS[chosen_cut(total / looks, scale, noise, rest=False)]
        cut = x.T @ np.clip(r, -zeta / norms, zeta / norms)
        theta = step(theta, cut + zeta * draw.guards[stage], mechanism.level(stage))
        path.append(theta)
        cuts.append(zeta)
    end = np.mean(path[-6:], axis=0)
    u = end - theta0
    variance = mechanism.guard_scales[0] ** 2 + 0.5 * mechanism.scale**2 * (u @ u + (V.T @ u) ** 2)
    gradient = V @ shrunk(V.T @ (first + H @ u), variance)
    edge = mechanism.scale * np.sqrt(2 * len(u))
    return (V * np.maximum(w, edge / 2)) @ V.T, gradient, end, cuts


@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
@pytest.mark.parametrize("anchored", [False, True])
def test_all_stages_by_hand(adjacency, anchored):
    """From the same draw, for ½·3(a'θ − y)² with rows in [−1, 1]⁴ and targets in ±2."""
    theta = cp.Variable(D)
    theta0 = np.array([0.3, 0.0, -0.2, 0.1]) if anchored else np.zeros(D)
    x, y = 2.0 * X, 2.0 * Y
    loss = cvxqop.private_loss(
        1.5 * cp.sum_squares(x @ theta - y),
        private=[x, y],
        adjacency=adjacency,
        anchor=theta0 if anchored else None,
        **{**PAY, "bounds": cvxqop.Bounds(row_norm=2.0, offset=4.0), "epsilon": 3.0},
    )
    mechanism = loss.guarantee.mechanism
    assert mechanism.unit == 3.0 * 2.0 * 4.0
    draw = mechanism.draw(Randomness(3).fresh()[0])
    hessian, gradient, anchor, cuts = by_hand(x, y, 3.0, theta0, mechanism, draw, 24.0)
    assert len(set(cuts)) > 1 or cuts[0] < 24.0
    np.testing.assert_allclose(loss.hessian, hessian, rtol=1e-6)
    np.testing.assert_allclose(loss.anchor, anchor, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(loss.gradient, gradient, rtol=1e-4, atol=1e-2)


w, b = cp.Variable(D, name="w"), cp.Variable(name="b")
RESTS = {
    "none": (lambda: 0, list),
    "lasso": (lambda: 5.0 * cp.norm1(w), list),
    "ridge": (lambda: 20.0 * cp.sum_squares(w), list),
    "box": (lambda: 0, lambda: [cp.abs(w) <= 0.25]),
    "ball": (lambda: cp.norm1(w), lambda: [cp.norm1(w) <= 0.9]),
    "conic only": (lambda: cp.norm(w[:2] - w[2:], 1.5), lambda: [cp.norm(w, 3) <= 0.5]),
}


@pytest.mark.parametrize("name", RESTS)
def test_any_public_rest_with_little_noise(name):
    rest, constraints = RESTS[name][0](), RESTS[name][1]()
    loss = 0.5 * cp.sum_squares(X @ w + b - Y)
    expected = least_squares(loss, rest, constraints)
    solution = cvxqop.privatize(
        cp.Problem(cp.Minimize(loss + rest), constraints), private=[X, Y], **SURE
    )
    for variable, value in zip(loss.variables(), expected, strict=True):
        np.testing.assert_allclose(solution[variable], value, atol=2e-4)


@pytest.mark.parametrize("name", ["none", "lasso", "box", "ball"])
def test_the_rest_is_applied_once(name):
    """At a moderate ε the answer stays close to the minimiser of the user's own problem."""
    rest, constraints = RESTS[name][0](), RESTS[name][1]()
    loss = 0.5 * cp.sum_squares(X @ w + b - Y)
    problem = cp.Problem(cp.Minimize(loss + rest), constraints)
    least_squares(loss, rest, constraints)
    best = problem.objective.value
    gaps = {}
    for perturbation in (ADAPTIVE, cvxqop.Gaussian()):
        found = []
        for seed in range(5):
            options = {**PAY, "perturbation": perturbation, "seed": seed}
            cvxqop.privatize(problem, private=[X, Y], **options)
            found.append(problem.objective.value - best)
        gaps[perturbation] = np.median(found)
    assert -1e-6 < gaps[ADAPTIVE] < 0.5 * gaps[cvxqop.Gaussian()]


def test_a_path_and_other_constraints_from_one_loss():
    theta = cp.Variable(D)
    loss = cvxqop.private_loss(squares(theta), private=[X, Y], **SURE)
    for lam in (0.1, 3.0, 30.0):
        rest, constraints = lam * cp.norm1(theta), [theta >= -0.2]
        (expected,) = least_squares(squares(theta), rest, constraints)
        cp.Problem(cp.Minimize(loss.expression + rest), constraints).solve(solver="CLARABEL")
        np.testing.assert_allclose(theta.value, expected, atol=2e-4)
    assert np.all(np.linalg.eigvalsh(loss.hessian) > 0.0)


@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
def test_several_outputs(adjacency):
    rng = np.random.default_rng(4)
    Theta, c = cp.Variable((D, 3)), cp.Variable(3)
    targets = 0.3 * X @ rng.standard_normal((D, 3)) + 0.05 * rng.standard_normal((N, 3))
    E = X @ Theta + c - targets
    problem = cp.Problem(cp.Minimize(cp.sum_squares(E)), [cp.abs(Theta) <= 0.3])
    options = {**SURE, "adjacency": adjacency}
    expected = least_squares(cp.sum_squares(E), 0, problem.constraints)
    solution = cvxqop.privatize(problem, private=[X, targets], **options)
    assert solution.mechanism.sensitivity.outputs == 3
    for variable, value in zip(cp.sum_squares(E).variables(), expected, strict=True):
        np.testing.assert_allclose(solution[variable], value, atol=2e-4)
    free = cp.Problem(cp.Minimize(cp.sum_squares(E)))
    moderate = cvxqop.privatize(free, private=[X, targets], **{**options, "epsilon": 1.0})
    A = np.c_[X, np.ones(N)]
    exact = np.linalg.lstsq(A, targets, rcond=None)[0]
    assert np.linalg.norm(moderate[Theta] - exact[:D]) < 0.3 * np.linalg.norm(exact[:D])


def test_public_weights_and_persons():
    weights = RNG.uniform(0.2, 1.0, N)
    theta = cp.Variable(D)
    loss = cp.sum(cp.multiply(weights, cp.square(X @ theta - Y)))
    expected = np.linalg.solve(X.T @ (weights[:, None] * X), X.T @ (weights * Y))
    found = cvxqop.privatize(
        cp.Problem(cp.Minimize(loss)), private=[X, Y], public=[weights], **SURE
    )
    np.testing.assert_allclose(found[theta], expected, atol=2e-4)
    ids = np.arange(N) // 3
    kept = np.arange(N) % 3 < 2
    expected = np.linalg.lstsq(X[kept], Y[kept], rcond=None)[0]
    people = {"persons": ids, "rows_per_person": 2}
    problem = cp.Problem(cp.Minimize(squares(theta)))
    found = cvxqop.privatize(problem, private=[X, Y], **people, **SURE)
    np.testing.assert_allclose(found[theta], expected, atol=2e-4)
    assert found.mechanism.unit == 1.0
    # Rows that do not count are in no histogram, whatever they hold.
    x, y = X.copy(), Y.copy()
    x[~kept], y[~kept] = 9.0, -9.0
    other = cvxqop.privatize(
        cp.Problem(cp.Minimize(squares(theta, x, y))), private=[x, y], **people, **PAY
    )[theta]
    same = cvxqop.privatize(problem, private=[X, Y], **people, **PAY)[theta]
    np.testing.assert_array_equal(other, same)


def test_what_cannot_be_done_says_what_can():
    theta = cp.Variable(D)
    problem = cp.Problem(cp.Minimize(squares(theta)))
    people = {"persons": np.arange(N) // 3, "rows_per_person": "mean"}
    with pytest.raises(cvxqop.OptionError, match=r"rows_per_person=k.*stages=1"):
        cvxqop.plan(problem, private=[X, Y], **people, **PAY)
    cvxqop.plan(problem, private=[X, Y], **people, **{**PAY, "perturbation": cvxqop.Gaussian()})
    two = cp.Problem(cp.Minimize(squares(theta) + squares(theta, X[:, ::-1])))
    with pytest.raises(cvxqop.OptionError, match="stages=1"):
        cvxqop.plan(two, private=[X, X[:, ::-1], Y], **PAY)
    labels = np.sign(Y)
    logistic = cp.sum(cp.logistic(-cp.multiply(labels, X @ theta)))
    with pytest.raises(cvxqop.CvxqopError, match="stages=1"):
        cvxqop.plan(cp.Problem(cp.Minimize(logistic)), private=[X, labels], **PAY)


def test_the_predicted_error_is_of_the_right_size():
    """Features that fall like 1/j, residuals with exponential tails: within a factor of three."""
    x = X * np.array([1.0, 0.7, 0.6, 0.5])
    noise = np.random.default_rng(9).laplace(size=N)
    y = np.clip(x @ [1.0, -1.0, 0.5, 0.0] + 0.15 * noise, -1.0, 1.0)
    exact = np.linalg.lstsq(x, y, rcond=None)[0]
    for epsilon in (0.3, 1.0, 4.0):
        theta = cp.Variable(D)
        problem = cp.Problem(cp.Minimize(squares(theta, x, y)))
        plan = cvxqop.plan(problem, private=[x, y], **{**PAY, "epsilon": epsilon})
        errors = [np.sqrt(np.mean((x @ (plan.run()[theta] - exact)) ** 2)) for _ in range(9)]
        assert 1.0 / 3.0 < plan.predicted_error(N) / np.median(errors) < 3.0


def test_the_solution_says_what_it_minimises():
    theta = cp.Variable(D)
    solution = cvxqop.privatize(cp.Problem(cp.Minimize(squares(theta))), private=[X, Y], **PAY)
    (said,) = [text for text in solution.assumptions if "linear term" in text]
    assert "vanishes as records are added" in said
    assert "unbiased" not in str(solution)
    assert "six" not in str(solution)
    assert solution.private_loss is not None
    again = cvxqop.privatize(cp.Problem(cp.Minimize(squares(theta))), private=[X, Y], **PAY)
    np.testing.assert_array_equal(again[theta], solution[theta])


def test_a_solver_that_fails_is_passed_over_and_resumed(monkeypatch):
    """Stages fall back on steps without r and C; the last solve is for error.resume()."""
    theta = cp.Variable(D)
    problem = cp.Problem(cp.Minimize(squares(theta) + cp.norm(theta, 1.5)))

    def fails(*args, **options):
        raise cp.error.SolverError("not today")

    sound = conic.solve_conic
    monkeypatch.setattr(conic, "solve_conic", fails)
    with pytest.raises(cvxqop.PrivateSolverError, match="resume") as caught:
        cvxqop.privatize(problem, private=[X, Y], **PAY)
    monkeypatch.setattr(conic, "solve_conic", sound)
    solution = caught.value.resume(solver="CLARABEL")
    assert solution.private_loss is caught.value.private_loss


def test_a_reader_that_fails_on_the_way_is_resumed():
    """The pass of a late stage fails once; the same numbers are released."""

    class Flaky:
        """An array whose reads fail from the n-th on, until it is repaired."""

        shape, dtype, ndim = X.shape, X.dtype, 2
        left = 10**9

        def __getitem__(self, key):
            Flaky.left -= 1
            if Flaky.left < 0:
                raise OSError(f"record {X[0, 0]} is gone")
            return X[key]

    def release(data):
        theta = cp.Variable(D)
        problem = cp.Problem(cp.Minimize(cvxqop.glm_loss("squared", data, Y, theta)))
        return cvxqop.privatize(problem, private=[], **PAY)[theta]

    expected = release(X)
    Flaky.left = 12
    with pytest.raises(cvxqop.AccuracyError, match="charge stands") as caught:
        release(Flaky())
    assert str(X[0, 0]) not in str(caught.value)
    Flaky.left = 10**9
    (value,) = caught.value.resume().values.values()
    assert np.array_equal(value, expected)


def test_one_pass_a_stage():
    class Counting:
        shape, dtype, ndim = X.shape, X.dtype, 2
        reads = 0

        def __getitem__(self, key):
            Counting.reads += 1
            return X[key]

    theta = cp.Variable(D)
    loss = cvxqop.glm_loss("squared", Counting(), Y, theta)
    plan = cvxqop.plan(cp.Problem(cp.Minimize(loss)), private=[], **PAY)
    Counting.reads = 0
    plan.run()
    assert Counting.reads == 24  # a block holds all records here
