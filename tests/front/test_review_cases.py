"""What a second look found, from the calls of a user: refused, before the charge and the draw.

| found | tested in |
| --- | --- |
| a solver's answer with NaN is released | front/test_after_the_draw.py: an answer that cannot be |
| stdout is lost after fits in threads | front/test_threads.py: stdout is left alone |
| one of two variables of one name is lost | front/test_copies.py: variables of one name |
| other units: "accuracy must lie between …" | front/test_units.py |
| mixed and nullable columns of a frame | problem/test_data_forms.py: frames |
| numbers under a mask are used | problem/test_data_forms.py: missing is not finite, masked arrays |
| boolean labels give another model | problem/test_zero_one_labels.py |
| plans do not pickle, a copy ends the process | front/test_copies.py |
| the value of an earlier solve remains | front/test_after_the_draw.py |
| a remedy that goes in a circle | front/test_remedies.py |
| accepted at n = 1, refused at n = 2; values decide | problem/test_alike.py |
| a parameter changes after the plan | front/test_stale_plans.py, and below |
| the rest | below |
"""

from __future__ import annotations

import gc

import cvxpy as cp
import numpy as np
import pytest

import cvxqop
from cvxqop.privacy import noise

N, D = 50, 3
ADJACENCIES = ("replace_one", "add_remove")
PAY = {"bounds": cvxqop.Bounds(row_norm=1.0, offset=1.0), "epsilon": 1.0, "delta": 1e-6}
RNG = np.random.default_rng(0)
X, Y = RNG.uniform(-0.5, 0.5, (N, D)), RNG.uniform(0.1, 0.5, N)
LABELS = np.where(Y > 0.3, 1.0, -1.0)


@pytest.fixture(autouse=True)
def draws(monkeypatch):
    """The number of streams of noise that were begun."""
    begun = []
    honest = noise.Randomness.fresh
    monkeypatch.setattr(noise.Randomness, "fresh", lambda self: (begun.append(1), honest(self))[1])
    return begun


def refused(problem, private, draws, **options):
    """The words of the refusal; nothing was charged, drawn or written."""
    budget = cvxqop.Budget(epsilon=9.0, delta=1e-3)
    with pytest.raises((cvxqop.ProblemError, cvxqop.OptionError)) as caught:
        cvxqop.privatize(problem, private=private, budget=budget, **{**PAY, **options})
    assert (budget.history, draws) == ((), [])
    assert all(variable.value is None for variable in problem.variables())
    assert caught.value.__cause__ is None
    return str(caught.value)


@pytest.mark.parametrize("terms", [0, 1, 2, 3, 5])
def test_no_answer_about_a_node_outlives_the_node(terms):
    """Nodes that the reader makes for itself have addresses of nodes that are gone."""
    for attempt in range(60):
        W, V = cp.Variable((D, 2)), cp.Variable((D, N))
        argument = (X @ V) @ Y
        for j in range(terms):
            argument = argument + (X @ W) @ np.full(2, j + 1.0)
        argument = argument if attempt % 2 else (X @ W) @ np.full(2, 2.0) + argument
        with pytest.raises(cvxqop.ProblemError):
            cvxqop.explain(cp.Problem(cp.Minimize(cp.sum_squares(argument))), [X, Y])
        if attempt % 20 == 0:
            gc.collect()


CONSTANT, PARAMETER = cp.Constant(Y), cp.Parameter(N, name="q", value=Y)
BOUNDED = {
    "an array": (Y, lambda: cp.Variable(N, bounds=[Y, np.full(N, np.inf)])),
    "a constant": (CONSTANT, lambda: cp.Variable(N, bounds=[CONSTANT, None])),
    "a parameter": (PARAMETER, lambda: cp.Variable(N, bounds=[PARAMETER, None])),
    "an expression": (CONSTANT, lambda: cp.Variable(bounds=[cp.sum(CONSTANT), None])),
    "a scaled parameter": (PARAMETER, lambda: cp.Variable(N, bounds=[None, 2 * PARAMETER + 1])),
}


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("form", BOUNDED)
def test_bounds_of_a_variable_are_looked_at(form, adjacency, draws):
    held, variable = BOUNDED[form]
    w, u = cp.Variable(D), variable()
    problem = cp.Problem(cp.Minimize(cp.sum_squares(X @ w - held) + cp.sum(u)))
    words = refused(problem, [X, held], draws, adjacency=adjacency, public=[u])
    assert "The bounds or attributes of the variable" in words
    assert "use public bounds" in words


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_bounds_of_the_variable_of_the_loss_are_looked_at(adjacency, draws):
    w = cp.Variable(D, bounds=[cp.sum(CONSTANT), cp.sum(CONSTANT)])
    problem = cp.Problem(cp.Minimize(cp.sum_squares(X @ w - CONSTANT)))
    assert "of the variable" in refused(problem, [X, CONSTANT], draws, adjacency=adjacency)


SPELLED = {
    "weights": lambda w, v: cp.sum(cp.multiply(Y, cp.square(X @ w - Y))),
    "weights, ravelled": lambda w, v: cp.sum(cp.multiply(Y.ravel(), cp.square(X @ w - Y))),
    "weights, flattened": lambda w, v: cp.sum(cp.multiply(Y.flatten(), cp.square(X @ w - Y))),
    "columns, a slice": lambda w, v: cp.sum_squares(X @ w + X[:] @ v - Y),
    "columns, a copy": lambda w, v: cp.sum_squares(X @ w + X.copy() @ v - Y),
}


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("form", SPELLED)
def test_views_and_copies_are_no_public_arrays(form, adjacency, draws):
    w, v = cp.Variable(D), cp.Variable(D)
    words = refused(
        cp.Problem(cp.Minimize(SPELLED[form](w, v))), [X, Y], draws, adjacency=adjacency
    )
    assert "weighted by private data" in words or "neither in private nor in public" in words


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("listed", [[], [X, Y], [Y]])
def test_the_arrays_of_glm_loss_are_private_everywhere(listed, adjacency, draws):
    w, u = cp.Variable(D), cp.Variable(N)
    loss = cvxqop.glm_loss("squared", X, Y, w)
    problems = [
        cp.Problem(cp.Minimize(loss + cp.sum(u)), [u >= Y]),
        cp.Problem(cp.Minimize(loss + cp.sum(cp.Variable(N, bounds=[Y, None])))),
        cp.Problem(cp.Minimize(loss), [cp.norm_inf(X @ w) <= 0.01]),
        cp.Problem(cp.Minimize(loss + cp.norm1(X @ w))),
        cp.Problem(cp.Minimize(loss + cp.norm1(X[:] @ w))),
    ]
    for problem in problems:
        refused(problem, listed, draws, adjacency=adjacency, public=[u])


@pytest.mark.parametrize("listed", [False, True])
def test_class_weights_computed_from_labels_are_refused(listed, draws):
    positive = np.sum(LABELS > 0)
    weights = np.where(LABELS > 0, N / (2 * positive), N / (2 * (N - positive)))
    w = cp.Variable(D)
    loss = cp.sum(cp.multiply(weights, cp.logistic(-cp.multiply(LABELS, X @ w))))
    private = [X, LABELS, weights] if listed else [X, LABELS]
    words = refused(cp.Problem(cp.Minimize(loss)), private, draws)
    assert ("is weighted by private data" if listed else "in private=[…]") in words


def test_new_constraints_never_meet_old_noise(draws):
    """The slope over C, which the noise of linear perturbation is for, grows with R."""
    w, R = cp.Variable(1), cp.Parameter(nonneg=True, value=1.0, name="R")
    x, y = np.array([[1.0]]), np.array([-1.0])
    loss = cp.sum_squares(x @ w - y) + 50 * cp.sum_squares(w - 300)
    problem = cp.Problem(cp.Minimize(loss), [cp.norm(w, 2) <= R])
    budget = cvxqop.Budget(epsilon=9.0, delta=1e-3)
    options = {"private": [x, y], "perturbation": "linear", "budget": budget, **PAY}
    plan = cvxqop.plan(problem, **options)
    R.value = 1000.0
    with pytest.raises(cvxqop.PlanError, match="The parameter R has changed"):
        plan.run()
    assert (budget.history, draws, w.value) == ((), [], None)
    wider = cvxqop.plan(problem, **options)
    assert wider.guarantee.mechanism.guard_scale > 100 * plan.guarantee.mechanism.guard_scale


def test_the_data_of_the_next_batch_are_never_ignored():
    rng = np.random.default_rng(0)
    first, second = rng.uniform(-0.5, 0.5, (2, 2000, 2))
    v = cp.Variable(2)
    rows, target = cp.Parameter((2000, 2), value=first), cp.Parameter(2000, name="target")
    target.value = first @ [0.6, -0.4]
    problem = cp.Problem(cp.Minimize(cp.sum_squares(rows @ v - target)))
    options = {"private": [rows, target], **PAY, "epsilon": 1e6}
    plan = cvxqop.plan(problem, **options)
    np.testing.assert_allclose(plan.run()[v], [0.6, -0.4], atol=0.02)
    rows.value, target.value = second, second @ [-0.2, 0.9]
    with pytest.raises(cvxqop.PlanError):
        plan.run()
    np.testing.assert_allclose(cvxqop.plan(problem, **options).run()[v], [-0.2, 0.9], atol=0.02)


def test_a_quantile_loss_is_refused_by_name(draws):
    w, b = cp.Variable(D), cp.Variable()
    e = Y - X @ w - b
    loss = cp.sum(cp.maximum(0.9 * e, -0.1 * e))
    assert "is a loss that is not smooth" in refused(cp.Problem(cp.Minimize(loss)), [X, Y], draws)
