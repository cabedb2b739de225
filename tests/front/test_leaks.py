"""Nothing that a user can reach holds a number computed from records, except the release."""

import logging
import types
import warnings

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp

import cvxqop
from cvxqop.privacy.noise import Randomness

PAY = {
    "bounds": cvxqop.Bounds(row_norm=1.0, offset=1.0),
    "epsilon": 1.0,
    "delta": 1e-6,
    "perturbation": "wishart",
}
SKIP = (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType, types.CodeType)


def reachable(*roots):
    """Every object reachable through attributes, slots, containers, closures and tracebacks."""
    seen, queue = {}, list(roots)
    while queue:
        item = queue.pop()
        if id(item) in seen or item is None or isinstance(item, str | bytes | int | bool):
            continue
        seen[id(item)] = item
        if isinstance(item, types.FunctionType):
            queue += [cell.cell_contents for cell in item.__closure__ or ()]
        elif isinstance(item, types.MethodType):
            queue += [item.__self__, item.__func__]
        elif isinstance(item, BaseException):
            queue += [item.__dict__, item.__cause__, item.__context__, *item.args]
            trace = item.__traceback__
            while trace is not None:
                module = trace.tb_frame.f_globals.get("__name__", "")
                if module.startswith("cvxqop"):
                    queue.append(dict(trace.tb_frame.f_locals))
                trace = trace.tb_next
        elif isinstance(item, (*SKIP, np.ndarray, float)):
            continue
        elif isinstance(item, dict):
            queue += [*item.keys(), *item.values()]
        elif isinstance(item, list | tuple | set | frozenset):
            queue += list(item)
        else:
            queue += list(getattr(item, "__dict__", {}).values())
            for cls in type(item).__mro__:
                for name in getattr(cls, "__slots__", ()):
                    queue.append(getattr(item, name, None))
    return list(seen.values())


def numbers(objects):
    found = set()
    for item in objects:
        if sp.issparse(item):
            item = item.data
        if isinstance(item, float):
            found.add(item)
        elif isinstance(item, np.ndarray) and item.dtype.kind == "f":
            found.update(item.ravel().tolist())
    return found


@pytest.fixture
def case():
    rng = np.random.default_rng(1)
    X = rng.uniform(-0.5, 0.5, (300, 4))
    y = 0.4 * X @ [1.0, -1.0, 0.0, 0.3] + rng.uniform(-0.3, 0.3, 300)
    theta = cp.Variable(4, name="theta")
    problem = cp.Problem(
        cp.Minimize(0.5 * cp.sum_squares(X @ theta - y) + cp.norm1(theta)), [cp.abs(theta) <= 3]
    )
    return problem, theta, X, y


def forbidden(X, y, mechanism, seed):
    """The draw, the unperturbed sums, and the non-private minimiser."""
    draw = mechanism.draw(Randomness(seed).fresh()[0])
    H, g = X.T @ X, -X.T @ y
    arrays = (draw.curvature, draw.factor, draw.guard, H, g, np.linalg.solve(H, g))
    return np.concatenate([array.ravel() for array in arrays])


def assert_absent(secrets, found):
    public = np.array(sorted(found))
    public = public[np.isfinite(public)]
    for secret in secrets[np.abs(secrets) > 1e-12]:
        near = public[np.searchsorted(public, secret - 1e-9 * abs(secret)) :][:1]
        if near.size:
            assert abs(near[0] - secret) > 1e-9 * abs(secret), "an unreleased number is reachable"


@pytest.mark.parametrize("solver", ["CLARABEL", "OSQP", "SCS"])
def test_after_a_release(case, solver, caplog, capfd):
    problem, theta, X, y = case
    with caplog.at_level(logging.DEBUG), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        solution = cvxqop.privatize(problem, private=[X, y], seed=4, solver=solver, **PAY)
        texts = [str(solution), solution._repr_html_(), solution.to_json()]
    objects = reachable(problem, theta, solution, problem.constraints, *[w.message for w in caught])
    user = {id(leaf) for leaf in (X, y, *problem.constants())}
    user |= {id(leaf.value) for leaf in problem.constants()}
    found = numbers([item for item in objects if id(item) not in user])
    assert_absent(forbidden(X, y, solution.mechanism, 4), found)
    assert not found & set(X.ravel().tolist())
    assert not found & set(y.tolist())
    value = problem.objective.value  # evaluated lazily by the holder of the data
    assert not any(np.isclose(number, value, rtol=1e-10) for number in found if number)
    out, err = capfd.readouterr()
    cvxqop_logs = [r for r in caplog.records if r.name.startswith("cvxqop")]
    assert (out, err, cvxqop_logs, caught) == ("", "", [], [])
    for text in texts:
        assert repr(float(X[0, 0])) not in text
        assert f"{value:.5g}" not in text


def test_after_a_failed_solve(case):
    problem, theta, X, y = case
    plan = cvxqop.plan(
        problem, private=[X, y], seed=4, solver="OSQP", solver_options={"max_iter": 1}, **PAY
    )
    with pytest.raises(cvxqop.PrivateSolverError, match="private_loss") as caught:
        plan.run()
    assert isinstance(caught.value, cp.SolverError)
    assert theta.value is None
    assert problem.status is None
    loss = caught.value.private_loss
    user = {id(leaf.value) for leaf in problem.constants()} | {id(X), id(y)}
    objects = [item for item in reachable(caught.value) if id(item) not in user]
    assert_absent(forbidden(X, y, loss.guarantee.mechanism, 4), numbers(objects))
    # What was paid for can be used: another solver, no further noise.
    again = cp.Problem(cp.Minimize(loss.expression + cp.norm1(theta)), [cp.abs(theta) <= 3])
    again.solve(solver="CLARABEL")
    direct = cvxqop.privatize(problem, private=[X, y], seed=4, solver="CLARABEL", **PAY)
    np.testing.assert_allclose(theta.value, direct[theta], atol=1e-6)


def test_errors_about_data_hold_no_rows(case):
    _, _, X, y = case
    dirty = X.copy()
    dirty[17, 2] = np.nan
    theta = cp.Variable(4)
    problem = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(dirty @ theta - y)))
    plan = cvxqop.plan(problem, private=[dirty, y], **PAY)
    with pytest.raises(cvxqop.ProblemError) as caught:
        plan.run()
    user = [dirty, y, *(leaf.value for leaf in problem.constants())]
    found = numbers(
        item
        for item in reachable(caught.value)
        if not (isinstance(item, np.ndarray) and any(np.shares_memory(item, u) for u in user))
    )
    assert not found & set(X.ravel().tolist())
    assert not found & set(y.tolist())


def test_the_plan_reads_no_record(case):
    """Same bounds, other values: the same plan to the last digit."""
    problem, theta, X, y = case
    rows, target = X[::-1] * 0.3, np.ones(300)
    other = cp.Problem(
        cp.Minimize(0.5 * cp.sum_squares(rows @ theta - target) + cp.norm1(theta)),
        [cp.abs(theta) <= 3],
    )
    one = cvxqop.plan(problem, private=[X, y], **PAY)
    two = cvxqop.plan(other, private=[rows, target], **PAY)
    assert one.mechanism == two.mechanism
    assert str(one) == str(two)


@pytest.mark.parametrize("labelled", [False, True])
def test_several_outputs(labelled):
    rng = np.random.default_rng(2)
    X = rng.uniform(-0.5, 0.5, (200, 3))
    Y = np.eye(2)[rng.integers(2, size=200)] if labelled else rng.uniform(-0.5, 0.5, (200, 2))
    theta = cp.Variable((3, 2))
    t = X @ theta
    loss = cp.sum_squares(t - Y)
    if labelled:
        loss = cp.sum(cp.log_sum_exp(t, axis=1)) - cp.sum(cp.multiply(Y, t))
    problem = cp.Problem(cp.Minimize(loss + cp.sum_squares(theta)))
    solution = cvxqop.privatize(problem, private=[X, Y], seed=4, **PAY)
    draw = solution.mechanism.draw(Randomness(4).fresh()[0])
    secrets = [draw.curvature, draw.factor, draw.guard, X.T @ X, 2 * X.T @ X, X.T @ Y, 2 * X.T @ Y]
    user = {id(leaf) for leaf in (X, Y, *problem.constants())}
    user |= {id(leaf.value) for leaf in problem.constants()}
    found = numbers(item for item in reachable(problem, theta, solution) if id(item) not in user)
    assert_absent(np.concatenate([array.ravel() for array in secrets]), found)
    assert not found & set(X.ravel().tolist())


def test_a_declared_loss_leaks_nothing(caplog, capfd):
    """After a release, and after a failure: no draw, no record, no unreleased minimiser."""
    rng = np.random.default_rng(1)
    X = rng.uniform(-0.5, 0.5, (300, 4))
    y = rng.uniform(0.0, 1.0, 300)
    theta = cp.Variable(4, name="theta")
    loss = cp.sum(cp.exp(X @ theta)) - y @ (X @ theta)
    problem = cp.Problem(cp.Minimize(loss + cp.norm1(theta)), [cp.norm(theta, 2) <= 1])
    declared = cvxqop.Declared(np.exp(1.0), anchor_gradient=2.0)
    pay = {"private": [X, y], "declared": declared, "epsilon": 1.0, "delta": 1e-6, "seed": 4}
    pay["perturbation"] = "wishart"
    with pytest.raises(cvxqop.AccuracyError) as caught:
        cvxqop.privatize(problem, solver_options={"max_iter": 1}, **pay)
    with caplog.at_level(logging.DEBUG):
        solution = cvxqop.privatize(problem, **pay)
        other = cvxqop.privatize(problem, solver="CLARABEL", **pay)
    theta.value = np.zeros(4)
    H, g = X.T @ X, X.T @ (1.0 - y)
    draw = solution.mechanism.draw(Randomness(4).fresh()[0])
    arrays = (draw.curvature, draw.factor, draw.guard, draw.guard + g, draw.curvature + H, g)
    objects = reachable(problem, theta, solution, other, problem.constraints, caught.value)
    user = {id(leaf) for leaf in (X, y, *problem.constants())}
    user |= {id(leaf.value) for leaf in problem.constants()}
    found = numbers([item for item in objects if id(item) not in user])
    assert_absent(np.concatenate([array.ravel() for array in arrays]), found)
    assert not found & set(X.ravel().tolist())
    assert not found & set(y.tolist())
    out, err = capfd.readouterr()
    assert (out, err) == ("", "")
    assert not [record for record in caplog.records if record.name.startswith("cvxqop")]
    for text in (str(caught.value), str(solution), solution.to_json()):
        assert repr(float(X[0, 0])) not in text
    assert problem.status == "optimal"
