"""The ledger through the front: charged before the noise, refused before the noise."""

import cvxpy as cp
import numpy as np
import pytest

import cvxqop

X = np.random.default_rng(0).uniform(-0.5, 0.5, (400, 3))
Y = np.clip(X @ [1.0, -0.5, 0.2], -1, 1)
PAY = {
    "private": [X, Y],
    "bounds": cvxqop.Bounds(row_norm=1.0, offset=1.0),
    "epsilon": 1.0,
    "delta": 1e-6,
}


def problem():
    theta = cp.Variable(3, name="theta")
    return cp.Problem(cp.Minimize(cp.sum_squares(X @ theta - Y))), theta


def test_charges_and_refuses(monkeypatch):
    budget = cvxqop.Budget(epsilon=2.0, delta=2e-6)
    task, theta = problem()
    for _ in range(2):
        cvxqop.privatize(task, budget=budget, **PAY)
    assert len(budget.history) == 2
    assert "theta" in budget.history[0].label
    assert budget.profile(2.0) <= 2e-6
    while len(budget.history) < 20:  # composition by profiles leaves room for more than two
        try:
            cvxqop.privatize(task, budget=budget, **PAY)
        except cvxqop.BudgetError:
            break
    spent, left = budget.history, theta.value.copy()
    assert 2 <= len(spent) < 20

    def drawn(self):
        raise AssertionError("noise was drawn")

    monkeypatch.setattr("cvxqop.privacy.noise.Randomness.fresh", drawn)
    with pytest.raises(cvxqop.BudgetError, match="left"):
        cvxqop.privatize(task, budget=budget, **PAY)
    assert budget.history == spent
    assert np.array_equal(theta.value, left)


def test_gaussian_releases_compose_exactly():
    """Two μ-GDP releases are sqrt(2) μ-GDP: more than basic composition would allow."""
    from cvxqop.privacy.accounting.profile import gaussian_profile

    budget = cvxqop.Budget(epsilon=2.0, delta=1e-5)
    task, _ = problem()
    pay = {**PAY, "perturbation": "gaussian"}
    plans = [cvxqop.plan(task, budget=budget, **pay) for _ in range(2)]
    for plan in plans:
        plan.run()
    mu = np.hypot(*(plan.mechanism.gdp_mu for plan in plans))
    assert budget.profile(2.0) == pytest.approx(float(gaussian_profile(2.0, mu)), rel=1e-9)


def test_bad_data_cost_nothing():
    budget = cvxqop.Budget(epsilon=1.0, delta=1e-6)
    dirty = X.copy()
    dirty[3, 0] = np.nan
    theta = cp.Variable(3)
    task = cp.Problem(cp.Minimize(cp.sum_squares(dirty @ theta - Y)))
    with pytest.raises(cvxqop.ProblemError):
        cvxqop.privatize(task, budget=budget, **{**PAY, "private": [dirty, Y]})
    assert budget.history == ()


def test_a_failed_solve_is_charged():
    budget = cvxqop.Budget(epsilon=1.0, delta=1e-6)
    task, _ = problem()
    with pytest.raises(cvxqop.PrivateSolverError):
        cvxqop.privatize(task, budget=budget, solver="OSQP", solver_options={"max_iter": 1}, **PAY)
    assert len(budget.history) == 1


def test_a_failure_on_records_is_charged_and_says_nothing(monkeypatch):
    """What a numerical library has to say of a matrix was computed from records."""

    def fails(*_, **__):
        raise np.linalg.LinAlgError("3-th leading minor not positive definite")

    monkeypatch.setattr("cvxqop.solve.engines.stotos.solve_stotos", fails)
    budget, theta = cvxqop.Budget(epsilon=1.0, delta=1e-6), cp.Variable(3)
    task = cp.Problem(cp.Minimize(cp.sum(cp.huber(X @ theta - Y))))
    with pytest.raises(cvxqop.AccuracyError, match="the solver failed") as caught:
        cvxqop.privatize(task, budget=budget, **PAY)
    assert "minor" not in str(caught.value)
    assert caught.value.__context__ is None
    assert len(budget.history) == 1
