"""Losses with declared constants, through the front."""

import json
import math

import cvxpy as cp
import numpy as np
import pytest
from scipy.optimize import minimize

import cvxqop
from cvxqop.case import _sensitivity
from cvxqop.privacy.noise import Randomness
from cvxqop.problem.reading.declared_reading import read_declared
from cvxqop.settings import Settings

PAY = {"epsilon": 1.0, "delta": 1e-6}
ROOT = 1.0  # ‖x‖ ≤ 1 and ‖θ‖ ≤ 1, so that exp(x'θ) ≤ e
EXP = cvxqop.Declared(math.e, hessian_rank=1, anchor_gradient=2.0, gradient=math.e + 1.0)


def rows(n=400, d=3, seed=0):
    X = np.random.default_rng(seed).standard_normal((n, d))
    return X / np.maximum(1.0, np.linalg.norm(X, axis=1))[:, None]


def poisson(n=400):
    """Counts y ≤ 1 with the mean exp(x'θ)/2: exp(x'θ) − y x'θ."""
    X = rows(n)
    y = np.random.default_rng(1).uniform(size=n)
    theta = cp.Variable(3, name="theta")
    loss = cp.sum(cp.exp(X @ theta)) - y @ (X @ theta)
    return X, y, theta, cp.Problem(cp.Minimize(loss), [cp.norm(theta, 2) <= ROOT])


def exact_poisson(X, y, S, a):
    """By another solver: the minimiser is inside of the ball."""

    def objective(w):
        t = X @ w
        value = np.exp(t).sum() - y @ t + 0.5 * w @ S @ w + a @ w
        return value, X.T @ (np.exp(t) - y) + S @ w + a

    found = minimize(objective, np.zeros(X.shape[1]), jac=True, method="BFGS", tol=1e-10)
    assert np.linalg.norm(found.x) < ROOT
    return found.x


@pytest.mark.parametrize("solver", [None, "CLARABEL"])
@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
def test_release(adjacency, solver):
    """Within a few σ_rel of the minimiser of the same perturbed objective (false alarm 1e-11)."""
    X, y, theta, problem = poisson()
    options = {**PAY, "epsilon": 20.0, "adjacency": adjacency, "solver": solver, "seed": 7}
    options["perturbation"] = "wishart"
    plan = cvxqop.plan(problem, private=[X, y], declared=EXP, **options)
    assert float(plan.profile(20.0)) <= 1e-6
    assert plan.mechanism.describe()["calibration"] == "spectral"
    assert plan.solver == (solver or "STOTOS")
    solution = plan.run()
    draw = plan.mechanism.draw(Randomness(7).fresh()[0])
    exact = exact_poisson(X, y, draw.curvature, draw.guard)
    release = plan.mechanism.release
    distance = np.abs(solution[theta] - exact).max()
    assert 0.01 * release.scale < distance < 7.0 * release.scale
    assert solution.certificate == pytest.approx(1e-6 * 2 / np.e, rel=1e-12)  # D0 = G0/L
    assert solution.private_loss is None
    assert np.array_equal(theta.value, solution[theta])
    for sentence in ("declared by the user", "no record is clipped", "rank ∇²ℓ ≤ 1"):
        assert any(sentence in text for text in solution.assumptions)
    counted = any("computed from the number of records" in text for text in solution.assumptions)
    assert counted == (adjacency == "add_remove")
    json.loads(solution.to_json())


def test_large_and_small_epsilon():
    X, y, theta, problem = poisson(n=20_000)
    solution = cvxqop.privatize(
        problem, private=[X, y], declared=EXP, epsilon=1e6, delta=1e-6, adjacency="add_remove",
        perturbation="wishart",
    )  # fmt: skip
    exact = exact_poisson(X, y, np.zeros((3, 3)), np.zeros(3))
    assert np.linalg.norm(solution[theta] - exact) < 5e-3
    X, y, theta, problem = poisson()
    cvxqop.privatize(problem, private=[X, y], declared=EXP, epsilon=1e-3, delta=1e-6)
    assert np.linalg.norm(theta.value) <= ROOT * (1 + 1e-12)


LOSSES = {
    "pseudo-Huber": (
        lambda X, Z, w: cp.sum(cp.norm(cp.vstack([X @ w, Z @ w - 1, np.ones(len(X))]), axis=0)),
        {"smoothness": 2.0, "gradient": 2.0},
    ),
    "two rows": (
        lambda X, Z, w: cp.sum(cp.square(cp.pos(X @ w - 1)) + cp.exp(Z @ w)),
        {"smoothness": 2 + math.exp(2), "hessian_rank": 2, "anchor_gradient": 1.0},
    ),
    "softmax": (
        lambda X, Z, w: cp.sum(cp.log_sum_exp(cp.vstack([X @ w, Z @ w, cp.square(X @ w)]), axis=0)),
        {"smoothness": 40.0, "hessian_rank": 3, "anchor_gradient": 1.0},
    ),
}


@pytest.mark.parametrize("name", LOSSES)
def test_other_losses(name):
    """With a penalty and a box, against CVXPY's own solution at a large ε."""
    write, constants = LOSSES[name]
    X, Z, w = rows(), rows(seed=1), cp.Variable(3)
    loss = write(X, Z, w) + 2 * cp.norm1(w)
    problem = cp.Problem(cp.Minimize(loss), [w >= -1, w <= 2])
    declared = cvxqop.Declared(**constants)
    options = {"private": [X, Z], "declared": declared, "delta": 1e-6, "adjacency": "add_remove"}
    solution = cvxqop.privatize(problem, epsilon=1e6, **options)
    released = solution[w]
    problem.solve(solver="CLARABEL")
    ridge = solution.mechanism.mean_curvature * 4.0
    assert problem.value <= loss.value + 1e-6
    w.value = released
    assert loss.value <= problem.value + ridge
    for epsilon in (1e-3, 1.0):
        cvxqop.privatize(problem, epsilon=epsilon, **options)
        assert np.all((w.value >= -1) & (w.value <= 2))


@pytest.mark.parametrize("perturbation", ["wishart", "gaussian", "auto"])
def test_quadratic(perturbation):
    """(H + S, g + a) is released: no certificate, no release noise, and any solver after it."""
    X, Y, W = rows(), rows(d=2, seed=3), cp.Variable((3, 2))
    c = np.random.default_rng(2).uniform(size=(400, 1))
    C = cp.Parameter((400, 2), nonneg=True, value=c @ np.ones((1, 2)))
    loss = cp.sum(cp.multiply(C, cp.square(X @ W - Y)))
    declared = cvxqop.Declared(2.0, hessian_rank=2, anchor_gradient=2.0, quadratic=True)
    plan = cvxqop.plan(
        cp.Problem(cp.Minimize(loss + cp.norm1(W))),
        private=[X, Y, C], declared=declared, perturbation=perturbation, seed=3, **PAY,
    )  # fmt: skip
    assert plan.mechanism.release is None
    solution = plan.run()
    if perturbation == "gaussian":
        F = 2.0 * math.sqrt(2.0)
        assert plan.mechanism.sensitivity.frobenius_bound == pytest.approx(F)
    H = np.kron(np.eye(2), 2.0 * (X * c).T @ X)
    g = -2.0 * ((X * c).T @ Y).ravel(order="F")
    draw = plan.mechanism.draw(Randomness(3).fresh()[0])
    paid = solution.private_loss
    expected = plan.mechanism.repair(H + draw.curvature, [g + draw.guard])
    np.testing.assert_allclose(paid.hessian, expected, atol=1e-10)
    np.testing.assert_allclose(paid.gradient, g + draw.guard, atol=1e-10)
    assert solution.certificate is None


@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
def test_linear(adjacency):
    X, y, theta, problem = poisson()
    solution = cvxqop.privatize(
        problem, private=[X, y], declared=EXP, perturbation="linear", adjacency=adjacency, **PAY
    )
    assert solution.mechanism.gradient == pytest.approx(math.e + 1.0)
    assert solution.mechanism.freedom == 3  # the direction of the shift is free
    assert np.linalg.norm(theta.value) <= ROOT * (1 + 1e-12)


def test_rank_one_is_not_glm_form():
    """A Hessian of rank one may turn with θ: only quadratic losses use the rank-one formulas."""
    X, y, _, problem = poisson(n=9)

    def bounds(declared=EXP, **options):
        settings = Settings.of(
            {"private": [X, y], "declared": declared, "perturbation": "wishart", **PAY, **options}
        )
        erm = read_declared(problem, [X, y], declared)
        constants = erm.loss.constants(None, np.zeros(3), None)
        return _sensitivity(erm, settings, constants, np.zeros(3), None)

    one = bounds()
    assert (one.hessian_rank, one.trace_bound, one.frobenius_bound) == (2, math.e, math.e)
    full = bounds(cvxqop.Declared(2.0, anchor_gradient=0))
    assert (full.hessian_rank, full.trace_bound, full.anchor_gradient) == (3, 6.0, 0.0)
    thin = bounds(cvxqop.Declared(2.0, trace=1.5, anchor_gradient=0))
    assert (thin.smoothness, thin.trace_bound) == (1.5, 1.5)


def test_no_guard_at_a_declared_common_minimiser():
    X, y, _, problem = poisson()
    declared = cvxqop.Declared(math.e, anchor_gradient=0)
    assert cvxqop.plan(problem, private=[X, y], declared=declared, **PAY).mechanism.guard_scale == 0


@pytest.mark.parametrize("n", [0, 1, 2])
def test_few_records(n):
    X, theta = rows()[:n], cp.Variable(3)
    problem = cp.Problem(cp.Minimize(cp.sum(cp.exp(X @ theta)) + cp.norm1(theta)))
    solution = cvxqop.privatize(problem, private=[X], declared=EXP, **PAY)
    assert np.all(np.isfinite(solution[theta]))


def unsplittable():
    X, y, theta, problem = poisson()
    objective = problem.objective.args[0] - cp.sum(cp.entr(theta + 2))
    return X, y, theta, cp.Problem(cp.Minimize(objective), problem.constraints)


def test_a_solver_is_trusted_only_if_the_caller_says_so():
    X, y, theta, problem = unsplittable()
    options = {"private": [X, y], "declared": EXP, **PAY}
    budget = cvxqop.Budget(epsilon=5.0, delta=1e-5)
    certified = cvxqop.privatize(problem, budget=budget, **options)
    assert certified.solver == "CLARABEL"
    assert "certified within" in str(certified)
    assert not any("trusted, not certified" in text for text in certified.assumptions)
    assert len(budget.history) == 1
    with pytest.raises(cvxqop.OptionError, match=r"entr\("):
        cvxqop.privatize(problem, budget=budget, solver="STOTOS", **options)
    assert len(budget.history) == 1
    solution = cvxqop.privatize(problem, accept_solver_accuracy=True, seed=0, **options)
    assert solution.solver == "CLARABEL"
    assert solution.certificate is None
    assert any("trusted, not certified" in text for text in solution.assumptions)
    assert "trusted to be within 7.35759e-07" in str(solution)  # 1e-6 times G0/L = 2/e
    assert "certified within" not in str(solution)
    assert np.linalg.norm(theta.value) <= ROOT * (1 + 1e-12)


def test_a_limit_ends_with_an_error_without_numbers_and_the_charge_stands():
    X, y, theta, problem = poisson()
    budget = cvxqop.Budget(epsilon=5.0, delta=1e-5)
    with pytest.raises(cvxqop.AccuracyError, match="charge") as caught:
        cvxqop.privatize(
            problem, private=[X, y], declared=EXP, budget=budget, accuracy=1e-9,
            solver_options={"max_iter": 1}, **PAY,
        )  # fmt: skip
    assert not any(character.isdigit() for character in str(caught.value))
    assert caught.value.__context__ is None
    assert theta.value is None
    assert len(budget.history) == 1
    cvxqop.privatize(problem, private=[X, y], declared=EXP, budget=budget, **PAY)
    assert len(budget.history) == 2


@pytest.mark.parametrize("trusting", [False, True])
def test_a_solver_that_fails(trusting):
    X, y, theta, problem = unsplittable() if trusting else poisson()
    options = {"solver": "CLARABEL", "solver_options": {"max_iter": 1}}
    call = {"private": [X, y], "declared": EXP, "accept_solver_accuracy": trusting, **PAY}
    if trusting:
        with pytest.raises(cvxqop.AccuracyError, match="charge stands"):
            cvxqop.privatize(problem, **options, **call)
        assert theta.value is None
    else:  # the same draw, finished and certified without the solver
        cvxqop.privatize(problem, **options, **call)
        assert theta.value is not None


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"bounds": cvxqop.Bounds(row_norm=1.0)}, "bounds: a declared loss is not clipped"),
        ({"declared": 1.0}, "must be a cvxqop.Declared, not float"),
        (
            {"declared": None, "bounds": cvxqop.Bounds(row_norm=1.0)},
            r"no public bound on them: state Bounds\(row_norm=…, offset=…\)",
        ),
        ({"nonfinite": "zero"}, "nonfinite"),
        ({"accept_solver_accuracy": 1}, "accept_solver_accuracy must be"),
        ({"perturbation": "gaussian"}, "quadratic only"),
        ({"perturbation": cvxqop.Linear(clip=1.0)}, "clip"),
        ({"anchor": cvxqop.CommonMinimizer(np.zeros(3))}, "CommonMinimizer cuts"),
        ({"anchor": np.zeros(2)}, "shape"),
        ({"solver": "OSQP"}, "OSQP"),
        ({"solver": "NONE"}, "not installed"),
        ({"solver_options": {"variant": "svrg"}}, "no option 'variant'"),
        ({"solver_options": {"max_iter": 0}}, "max_iter"),
        (
            {"declared": cvxqop.Declared(1.0, anchor_gradient=1.0), "perturbation": "linear"},
            "gradient=…",
        ),
        (
            {"declared": cvxqop.Declared(1.0, hessian_rank=4, anchor_gradient=1.0)},
            "hessian_rank = 4",
        ),
    ],
)
def test_refusals(changes, match):
    X, y, theta, problem = poisson(n=50)
    budget = cvxqop.Budget(epsilon=5.0, delta=1e-5)
    options = {"declared": EXP, "budget": budget, **PAY, **changes}
    with pytest.raises(cvxqop.CvxqopError, match=match):
        cvxqop.privatize(problem, private=[X, y], **options)
    assert theta.value is None
    assert not budget.history


def test_more_refusals():
    X, y, theta, problem = poisson(n=50)
    with pytest.raises(cvxqop.OptionError, match="others are certified"):
        cvxqop.plan(
            problem,
            private=[X, y],
            bounds=cvxqop.Bounds(row_norm=1.0),
            accept_solver_accuracy=True,
            **PAY,
        )
    slack = cp.Variable(name="slack")
    other = cp.Problem(problem.objective, [theta[0] <= slack, slack <= 1])
    cvxqop.privatize(other, private=[X, y], declared=EXP, **PAY)
    assert theta.value[0] <= slack.value + 1e-7 <= 1 + 2e-7
    with pytest.raises(cvxqop.OptionError, match="whole problem"):
        cvxqop.private_loss(problem.objective.args[0], private=[X, y], declared=EXP, **PAY)
    X[3, 1] = np.nan
    dirty = cp.Problem(cp.Minimize(cp.sum(cp.exp(X @ theta))))
    plan = cvxqop.plan(dirty, private=[X], declared=EXP, **PAY)
    with pytest.raises(cvxqop.ProblemError, match="NaN"):
        plan.run()


def test_an_array_of_zeros_leaves_no_trace_in_a_plan():
    """CVXPY reads e + 0 as e, so that the loss as it stands there tells of the records."""
    X, _, theta, _ = poisson(n=50)
    plans = set()
    for shift in (0.0, 1.0):
        y = np.zeros(50)
        y[0] = shift
        problem = cp.Problem(cp.Minimize(cp.sum(cp.exp(X @ theta + y))))
        plans.add(str(cvxqop.plan(problem, private=[X, y], declared=EXP, **PAY)))
    assert len(plans) == 1


def test_explained():
    X, y, _, problem = poisson(n=50)
    text = str(cvxqop.explain(problem, [X, y], declared=EXP))
    assert "declared and not recognised" in text
    assert "‖∇²ℓ‖ ≤ 2.71828" in text
    assert "sum(exp(private[0](n,3) @ theta))" in text
    assert "declared" not in str(cvxqop.explain(problem, [X, y]))
