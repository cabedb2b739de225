"""Eight threads at once: every answer right, one release in the variables, stdout where it was."""

import os
import subprocess
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import cvxpy as cp
import numpy as np
import pytest
from scipy.optimize import minimize

import cvxqop
from cvxqop.privacy.noise import Randomness

THREADS = 8
PAY = {"bounds": cvxqop.Bounds(row_norm=1.0, offset=1.0), "delta": 1e-6}
SOLVERS = [name for name in ("CLARABEL", "OSQP", "SCS", "HIGHS") if name in cp.installed_solvers()]


@pytest.fixture(autouse=True)
def often():
    """Switches threads a thousand times as often as usual."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(5e-6)
    yield
    sys.setswitchinterval(usual)


def at_once(job, count=THREADS):
    """Results of job(0), job(1), … started together."""
    barrier = threading.Barrier(count)

    def wait(k):
        barrier.wait()
        return job(k)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(wait, range(count)))


def records(k, n=2000):
    rng = np.random.default_rng(k)
    X = rng.uniform(-0.5, 0.5, (n, 3))
    truth = np.array([0.5, -0.3, k / 40])
    return X, X @ truth, truth


@pytest.mark.parametrize("solver", [*SOLVERS, "STOTOS"])
def test_every_thread_has_its_own_right_answer(solver):
    def job(k):
        errors = []
        for repeat in range(4):
            X, y, truth = records(THREADS * repeat + k)
            w, level = cp.Variable(3), cp.Parameter(value=2.0)
            problem = cp.Problem(cp.Minimize(cp.sum_squares(X @ w - y)), [cp.abs(w) <= level])
            cvxqop.privatize(problem, private=[X, y], solver=solver, epsilon=1e6, **PAY)
            errors.append(np.abs(w.value - truth).max())
        return max(errors)

    filters = list(warnings.filters)
    before = os.fstat(1)
    assert max(at_once(job)) < 5e-3
    assert os.fstat(1) == before
    assert warnings.filters == filters


def test_certified_losses():
    def job(k):
        X, y, _ = records(k, n=300)
        w = cp.Variable(3)
        labels = np.where(y > 0, 1.0, -1.0)
        loss = cp.sum(cp.logistic(-cp.multiply(labels, X @ w))) + 5 * cp.sum_squares(w)
        problem = cp.Problem(cp.Minimize(loss), [cp.norm2(w) <= 5])
        bounds = cvxqop.Bounds(row_norm=1.0)
        cvxqop.privatize(problem, private=[X, labels], bounds=bounds, epsilon=1e5, delta=1e-6)

        def objective(w):
            return np.sum(np.logaddexp(0.0, -(labels[:, None] * X) @ w)) + 5 * w @ w

        return w.value, minimize(objective, np.zeros(3)).x

    for found, exact in at_once(job):
        np.testing.assert_allclose(found, exact, atol=1e-2)


@pytest.mark.parametrize("seed", [None, 3])
def test_one_plan_draws_anew_in_every_thread(seed):
    X, y, _ = records(0)
    w, b = cp.Variable(3), cp.Variable()
    problem = cp.Problem(cp.Minimize(cp.sum_squares(X @ w + b - y)), [cp.norm1(w) <= 2])
    plan = cvxqop.plan(problem, private=[X, y], epsilon=1.0, seed=seed, **PAY)
    solutions = at_once(lambda k: plan.run())
    assert len({solution[w].tobytes() for solution in solutions}) == THREADS
    assert len({solution.private_loss.gradient.tobytes() for solution in solutions}) == THREADS
    # One release, whole.
    held = (w.value.tolist(), float(b.value))
    assert held in [(solution[w].tolist(), float(solution[b])) for solution in solutions]
    assert (problem.status, problem.value) == ("optimal", None)


def test_one_problem_in_every_thread():
    X, y, truth = records(1)
    w, u = cp.Variable(3), cp.Variable(3)
    problem = cp.Problem(
        cp.Minimize(cp.sum_squares(X @ w - y) + 0.01 * cp.sum(u)), [cp.abs(w) <= u, u <= 3]
    )
    solutions = at_once(
        lambda k: cvxqop.privatize(
            problem, private=[X, y], epsilon=1e6, solver=SOLVERS[k % len(SOLVERS)], **PAY
        )
    )
    for solution in solutions:
        np.testing.assert_allclose(solution[w], truth, atol=5e-3)
        np.testing.assert_allclose(solution[u], np.abs(solution[w]), atol=1e-4)
    pairs = [(solution[w].tolist(), solution[u].tolist()) for solution in solutions]
    assert (w.value.tolist(), u.value.tolist()) in pairs


def test_one_private_loss_in_every_thread():
    X, y, truth = records(2)
    w = cp.Variable(3)
    expression = cp.sum_squares(X @ w - y)
    losses = at_once(lambda k: cvxqop.private_loss(expression, private=[X, y], epsilon=1e6, **PAY))
    assert len({loss.hessian.tobytes() for loss in losses}) == THREADS
    for loss in losses:
        minimiser = loss.anchor - np.linalg.solve(loss.hessian, loss.gradient)
        np.testing.assert_allclose(minimiser, truth, atol=5e-3)


def test_one_budget_is_never_overspent():
    """Room for five releases of ε = 1 by basic composition, for as many as fit by exact one."""
    X, y, _ = records(3, n=50)
    budget = cvxqop.Budget(epsilon=2.0, delta=1e-5)

    def job(k):
        w = cp.Variable(3)
        paid = 0
        for _ in range(3):
            try:
                cvxqop.privatize(
                    cp.Problem(cp.Minimize(cp.sum_squares(X @ w - y))),
                    private=[X, y],
                    perturbation="gaussian",
                    budget=budget,
                    epsilon=0.6,
                    **PAY,
                )
                paid += 1
            except cvxqop.BudgetError:
                pass
        return paid

    paid = sum(at_once(job))
    assert 3 <= paid < 3 * THREADS
    assert len(budget.history) == paid
    assert budget.profile(2.0) <= 1e-5
    with pytest.raises(cvxqop.BudgetError):
        budget.spend(epsilon=0.6, delta=1e-6, mechanism=None)


def test_streams_of_one_seed_are_never_given_twice():
    randomness = Randomness(5)
    found = at_once(lambda k: [randomness.fresh()[0].standard_normal(1).item() for _ in range(50)])
    assert len({number for numbers in found for number in numbers}) == 50 * THREADS


STDOUT = """
import os, sys, threading
import cvxpy as cp, numpy as np, cvxqop
{prelude}
def work(k):
    rng = np.random.default_rng(k)
    X, y = rng.uniform(-0.5, 0.5, (200, 3)), rng.uniform(-1, 1, 200)
    for solver in {solvers!r}:
        w = cp.Variable(3)
        cvxqop.privatize(
            cp.Problem(cp.Minimize(cp.sum_squares(X @ w - y) + cp.norm1(w))), private=[X, y],
            bounds=cvxqop.Bounds(row_norm=1.0, offset=1.0), epsilon=1.0, delta=1e-6, solver=solver,
        )
before = os.fstat(1)
threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
[t.start() for t in threads]
[t.join() for t in threads]
assert os.fstat(1) == before
os.write(1, b"heard")
"""


@pytest.mark.parametrize("prelude", ["", "sys.stdout = None", "sys.stdout.close()"])
def test_stdout_is_left_alone(prelude):
    code = STDOUT.format(prelude=prelude, solvers=SOLVERS)
    if "close" in prelude:
        code = code.replace('os.write(1, b"heard")', "").replace("before = os.fstat(1)", "")
        code = code.replace("assert os.fstat(1) == before", "")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    expected = "" if "close" in prelude else "heard"
    assert (done.returncode, done.stdout, done.stderr) == (0, expected, "")
