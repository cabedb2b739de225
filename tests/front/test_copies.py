"""Copies, pickles and names of what a release leaves behind."""

import copy
import gc
import pickle
import types

import cvxpy as cp
import numpy as np
import pytest
from cvxpy.lin_ops import lin_utils

import cvxqop

PAY = {"bounds": cvxqop.Bounds(row_norm=1.0, offset=1.0), "epsilon": 1.0, "delta": 1e-6}


def records(n=300, d=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-0.5, 0.5, (n, d))
    return X, np.clip(X @ np.linspace(1.0, -0.5, d) + 0.01 * rng.standard_normal(n), -1, 1)


def least_squares(X, y, **attributes):
    w = cp.Variable(X.shape[1], name="w", **attributes)
    return cp.Problem(cp.Minimize(cp.sum_squares(X @ w - y)), [w <= 5]), w


@pytest.fixture
def case():
    X, y = records()
    problem, w = least_squares(X, y)
    return X, y, problem, w, cvxqop.privatize(problem, private=[X, y], **PAY)


def test_a_plan_says_why_it_does_not_pickle_and_copies_to_itself():
    X, y = records()
    problem, _ = least_squares(X, y)
    plan = cvxqop.plan(problem, private=[X, y], **PAY)
    with pytest.raises(TypeError, match=r"records.*cvxqop\.plan"):
        pickle.dumps(plan)
    assert copy.copy(plan) is plan
    assert copy.deepcopy([plan])[0] is plan


def test_a_budget_says_why_it_does_not_pickle_and_copies_to_itself(tmp_path):
    budget = cvxqop.Budget(epsilon=1.0, delta=1e-6)
    with pytest.raises(TypeError, match=r"twice.*save.*load"):
        pickle.dumps({"b": budget})
    assert copy.copy(budget) is budget
    assert copy.deepcopy({"b": budget})["b"] is budget
    copy.deepcopy(budget).spend(epsilon=0.75, delta=5e-7)
    with pytest.raises(cvxqop.BudgetError):
        budget.spend(epsilon=0.75, delta=1e-8)
    budget.save(tmp_path / "ledger")
    assert len(cvxqop.Budget.load(tmp_path / "ledger").history) == 1


def instances(root):
    """What is reachable from an object, without classes, functions and modules."""
    skipped = (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType)
    seen, stack = {}, [root]
    while stack:
        item = stack.pop()
        if id(item) in seen or isinstance(item, skipped):
            continue
        seen[id(item)] = item
        stack.extend(gc.get_referents(item))
    return seen.values()


@pytest.mark.parametrize("what", ["solution", "loss", "guarantee"])
def test_pickles_and_copies_hold_no_record_and_no_other_value(case, what):
    X, y, problem, w, solution = case
    problem.solve()  # without privacy: w.value must not travel
    secret = w.value
    assert not np.array_equal(secret, solution[w])
    thing = {
        "solution": solution,
        "loss": solution.private_loss,
        "guarantee": solution.guarantee,
    }[what]
    written = pickle.dumps(thing)
    for array in (X, X[:2], y[:2], secret):
        assert array.tobytes()[:16] not in written
    for found in (thing, pickle.loads(written)):
        arrays = [item for item in instances(found) if isinstance(item, np.ndarray)]
        for array in arrays:
            assert array.size < X.size
            assert not np.shares_memory(array, X)
            assert not np.shares_memory(array, y)
    for array in (item for item in instances(pickle.loads(written)) if type(item) is np.ndarray):
        assert not np.array_equal(array, secret)


@pytest.mark.parametrize("way", [copy.deepcopy, lambda s: pickle.loads(pickle.dumps(s))])
def test_a_copy_of_a_solution_is_asked_with_the_same_variable(case, way):
    _, _, _, w, solution = case
    twin = way(solution)
    (own,) = twin.values
    assert own is not w
    assert own.id != w.id
    assert np.array_equal(twin[w], solution[w])
    assert np.array_equal(twin[own], solution[w])
    assert twin.private_loss.variables == (own,)
    assert str(twin) == str(solution)
    assert twin.to_json() == solution.to_json()
    assert np.array_equal(way(twin)[w], solution[w])
    for other in (cp.Variable(2, name="w"), cp.Variable(2), "w"):
        with pytest.raises(KeyError, match=r"holds w of shape \(2,\)"):
            twin[other]
    assert copy.copy(solution) is solution
    assert not twin[w].flags.writeable


@pytest.mark.parametrize("way", [copy.deepcopy, lambda s: pickle.loads(pickle.dumps(s))])
def test_a_copy_of_a_loss_solves(case, way):
    """Its minimiser over the simplex is that of the original: another solve of the same numbers."""
    _, _, _, w, solution = case
    loss = solution.private_loss
    twin = way(loss)
    (own,) = twin.variables
    answers = []
    for found, variable in ((loss, w), (twin, own), (way(way(twin)), None)):
        variable = found.variables[0] if variable is None else variable
        rest = [variable >= 0, cp.sum(variable) == 1]
        cp.Problem(cp.Minimize(found.expression), rest).solve()
        answers.append(variable.value)
    assert len({own.id, w.id, variable.id}) == 3
    np.testing.assert_allclose(answers[1:], [answers[0]] * 2, rtol=1e-9)
    H, g = loss.hessian, loss.gradient
    direction = np.array([1.0, -1.0])
    t = -(g + H @ ([0.5, 0.5] - loss.anchor)) @ direction / (direction @ H @ direction)
    expected = np.array([0.5, 0.5]) + np.clip(t, -0.5, 0.5) * direction
    np.testing.assert_allclose(answers[0], expected, atol=1e-6)


def test_attributes_travel():
    X, y = records()
    problem, _ = least_squares(X, y, bounds=[-0.25, 0.75])
    solution = pickle.loads(pickle.dumps(cvxqop.privatize(problem, private=[X, y], **PAY)))
    (own,) = solution.private_loss.variables
    cp.Problem(cp.Minimize(-cp.sum(own))).solve()
    np.testing.assert_allclose(own.value, 0.75, atol=1e-6)


@pytest.mark.parametrize("solver", cp.installed_solvers())
def test_a_deep_copy_of_a_problem_that_was_solved_privately_is_solved_too(solver):
    if solver == "SCIPY":
        pytest.skip("takes no quadratic form")
    X, y = records()
    problem, w = least_squares(X, y)
    level = cp.Parameter(value=0.5)
    problem = cp.Problem(problem.objective, [cp.sum(w) <= level, cp.abs(w) <= 3])
    pay = {**PAY, "epsilon": 1e6, "solver": solver}
    first = cvxqop.privatize(problem, private=[X, y], **pay)
    twin = copy.deepcopy(copy.deepcopy(problem))
    second = cvxqop.privatize(twin, private=[X, y], **pay)
    (own,) = second.values
    np.testing.assert_allclose(second[own], first[w], atol=5e-3)
    assert np.array_equal(own.value, second[own])
    assert np.array_equal(w.value, first[w])


def test_a_problem_that_cvxpy_solved_is_copied_and_solved_privately():
    """CVXPY leaves the ids of the original in the copy, where its compiled code looks them up."""
    X, y = records()
    problem, w = least_squares(X, y)
    cp.Problem(problem.objective, problem.constraints).solve()
    exact = w.value
    twin = copy.deepcopy(problem)
    cvxqop.privatize(twin, private=[X, y], **{**PAY, "epsilon": 1e6})
    np.testing.assert_allclose(twin.variables()[0].value, exact, atol=5e-3)


def test_two_objects_with_one_id_are_refused_before_the_charge():
    X, y = records()
    w = cp.Variable(2, name="w")
    u = cp.Variable(2, name="u", var_id=w.id)
    budget = cvxqop.Budget(epsilon=9.0, delta=1e-3)
    problem = cp.Problem(cp.Minimize(cp.sum_squares(X @ w - y)), [u >= 0])
    with pytest.raises(cvxqop.ProblemError, match="two objects with the id of"):
        cvxqop.privatize(problem, private=[X, y], budget=budget, **PAY)
    with pytest.raises(cvxqop.ProblemError):
        cvxqop.privatize(
            cp.Problem(cp.Minimize(cp.sum_squares(X @ w - y) + cp.norm1(u))),
            private=[X, y],
            budget=budget,
            **PAY,
        )
    assert budget.history == ()


@pytest.mark.parametrize("ahead", [0, 10, 100, 10_000])
def test_a_problem_from_another_process_meets_no_id_of_ours(ahead):
    """CVXPY counts from 1 in every process: auxiliary variables must not get ids that came in."""
    X, y = records()
    w = cp.Variable(2)
    w.id = lin_utils.ID_COUNTER.count + ahead
    problem = cp.Problem(cp.Minimize(cp.sum_squares(X @ w - y) + cp.norm1(w)), [cp.norm2(w) <= 3])
    cvxqop.privatize(problem, private=[X, y], **{**PAY, "epsilon": 1e6})
    assert cp.Variable().id > w.id
    problem.solve()
    exact = w.value
    cvxqop.privatize(problem, private=[X, y], **{**PAY, "epsilon": 1e6})
    np.testing.assert_allclose(w.value, exact, atol=5e-3)


def test_variables_of_one_name_are_all_there():
    rng = np.random.default_rng(0)
    X, Z = rng.uniform(-0.5, 0.5, (500, 2)), rng.uniform(-0.5, 0.5, (500, 1))
    y = np.clip(X @ [0.5, -0.5] + 0.9 * Z[:, 0], -1, 1)
    a, b, c = cp.Variable(2, name="beta"), cp.Variable(1, name="beta"), cp.Variable(name="beta#2")
    solution = cvxqop.privatize(
        cp.Problem(cp.Minimize(cp.sum_squares(X @ a + Z @ b - y + c))), private=[X, Z, y], **PAY
    )
    values = solution.to_dict()["values"]
    assert values == {
        "beta": solution[a].tolist(),
        "beta#3": solution[b].tolist(),
        "beta#2": solution[c].tolist(),
    }
    for text in (str(solution), solution._repr_html_(), str(solution.private_loss)):
        for name in values:
            assert name in text


def test_nothing_shares_memory(case):
    _, _, _, w, solution = case
    before = solution[w].tolist()
    w.value[0] = 99.0
    assert solution[w].tolist() == before
    loss = solution.private_loss
    for array in (solution[w], loss.hessian, loss.gradient, loss.anchor):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1.0
    with pytest.raises(TypeError):
        solution.values[w] = np.zeros(2)
    given = np.eye(2)
    own = cvxqop.PrivateLoss(given, np.zeros(2), np.zeros(2), (w,), solution.guarantee)
    given[0, 0] = 7.0
    assert own.hessian[0, 0] == 1.0


@pytest.mark.parametrize("attribute", ["nonneg", "PSD", "diag", "symmetric"])
def test_a_release_has_the_attributes_of_its_variable(attribute):
    X, y = records()
    w = cp.Variable(2)
    shape = 3 if attribute == "nonneg" else (3, 3)
    u = cp.Variable(shape, **{attribute: True})
    rest = cp.sum_squares(u - (np.ones(3) - np.eye(3) if shape != 3 else -np.ones(3)))
    solution = cvxqop.privatize(
        cp.Problem(cp.Minimize(cp.sum_squares(X @ w - y) + rest)), private=[X, y], **PAY
    )
    value = u.value.toarray() if attribute == "diag" else u.value
    assert np.array_equal(solution[u], value)
    assert solution[u].shape == u.shape
    assert isinstance(solution.to_json(), str)
