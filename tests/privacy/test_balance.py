"""What is spent and left, ε at a δ, and the budget of a block."""

import math
import threading

import cvxpy as cp
import numpy as np
import pytest

import cvxqop
from cvxqop.errors import BudgetError, CalibrationError, OptionError
from cvxqop.privacy.accounting.profile import epsilon_at, gaussian_mu, gaussian_profile
from cvxqop.privacy.budget import Budget

X = np.linspace(-0.5, 0.5, 300).reshape(100, 3)
W = cp.Variable(3, name="w")
PROBLEM = cp.Problem(cp.Minimize(cp.sum_squares(X @ W - X[:, 0])))
STATED = {"private": [X], "bounds": cvxqop.Bounds(row_norm=1.0, offset=1.0), "delta": 1e-6,
          "perturbation": "gaussian"}  # fmt: skip


def release(epsilon=0.25, **options):
    term = cvxqop.glm_loss("squared", X, X[:, 0], W)
    problem = cp.Problem(cp.Minimize(term))
    return cvxqop.privatize(problem, epsilon=epsilon, **{**STATED, "private": [], **options})


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(0.1, 1e-3), (1.0, 1e-6), (3.0, 1e-12), (40.0, 0.1)]
)
def test_epsilon_at_is_the_inverse_of_the_profile(epsilon, delta):
    mu = gaussian_mu(epsilon, delta)

    def profile(e):
        return float(gaussian_profile(e, mu))

    found = epsilon_at(profile, delta)
    assert profile(found) <= delta
    assert found == pytest.approx(epsilon, rel=1e-8)
    assert profile(found * (1 - 1e-7)) > delta
    assert epsilon_at(profile, delta, largest=epsilon / 2) == math.inf
    assert epsilon_at(profile, 0.9999999) == 0.0


@pytest.mark.parametrize("delta", [0.0, 1.0, -1.0, float("nan"), True, "x"])
def test_a_delta_that_is_none_is_refused(delta):
    with pytest.raises(CalibrationError, match="delta must lie in"):
        epsilon_at(lambda e: 0.5, delta)


def test_plans_and_solutions_say_epsilon_at_a_delta():
    solution = release()
    for one in (solution, solution.private_loss):
        assert one.epsilon_at(1e-6) == pytest.approx(0.25, rel=1e-8)
        assert float(one.profile(one.epsilon_at(1e-9))) <= 1e-9


@pytest.mark.parametrize("k", [1, 2, 7])
def test_k_equal_gaussian_releases_fit_and_no_more(k):
    budget = Budget(epsilon=1.0, delta=1e-5)
    each = budget.remaining(releases=k)
    assert each.mu == pytest.approx(gaussian_mu(1.0, 1e-5) / math.sqrt(k), rel=1e-9)
    epsilon = each.epsilon_at(1e-6)
    for _ in range(k):
        release(epsilon, budget=budget)
    assert budget.spent.epsilon == pytest.approx(1.0, rel=1e-5)
    assert budget.spent.mu == pytest.approx(gaussian_mu(1.0, 1e-5), rel=1e-6)
    assert budget.spent.rho == pytest.approx(gaussian_mu(1.0, 1e-5) ** 2 / 2, rel=1e-6)
    with pytest.raises(BudgetError):
        release(epsilon / 10, budget=budget)


@pytest.mark.parametrize("k", [1, 3, 7, 10, 49])
@pytest.mark.parametrize("before", [None, (0.1, 3e-7)])
def test_k_releases_of_any_kind_fit(k, before):
    budget = Budget(epsilon=0.7, delta=1e-6)
    if before is not None:
        budget.spend(epsilon=before[0], delta=before[1])
    each = budget.remaining(releases=k)
    for _ in range(k):
        budget.spend(epsilon=each.epsilon, delta=each.delta)
    assert budget.spent.epsilon == pytest.approx(0.7)
    assert (budget.spent.mu, budget.spent.rho) == (None, None)
    assert budget.remaining().epsilon_at(1e-6) is None
    with pytest.raises(BudgetError):
        budget.spend(epsilon=1e-3, delta=0.0)


def test_an_empty_budget_and_wrong_counts():
    budget = Budget(epsilon=1.0, delta=1e-6)
    assert budget.spent.epsilon == 0.0
    assert budget.spent.mu == 0.0
    assert str(budget).splitlines()[0] == "Budget (1, 1e-06), 0 release(s)"
    for wrong in (0, -1, 1.5, True, "2"):
        with pytest.raises(OptionError, match="releases must be"):
            budget.remaining(releases=wrong)


def test_the_ledger_says_why_the_sum_may_be_more():
    budget = Budget(epsilon=1.0, delta=1e-5)
    release(1.0, budget=budget)
    assert "would make" not in str(budget)
    release(0.5, budget=budget)  # 1 + 0.5 in a budget of 1: δ is that of both together
    assert "as their μ² add up; ε and δ alone would make (1.5, 2e-06)" in str(budget)
    assert "μ = 0.236704  Gaussian quadratic perturbation" in str(budget)
    assert budget.spent.epsilon < 1.0
    assert budget.epsilon_at(1e-12) == math.inf


def test_calls_inside_a_block_are_charged_to_its_budget():
    outer, inner, own = (Budget(epsilon=2.0, delta=1e-4) for _ in range(3))
    before = cvxqop.plan(PROBLEM, epsilon=0.25, **{**STATED, "private": [X, X[:, 0]]})
    with outer as entered:
        assert entered is outer
        release()
        with inner:
            release()
            made = cvxqop.plan(PROBLEM, epsilon=0.25, **{**STATED, "private": [X, X[:, 0]]})
            with pytest.raises(RuntimeError, match="left"), inner:
                raise RuntimeError("left")
            release()
        release(budget=own)
        before.run()  # it named none, and is run here
    made.run()  # it was made there
    release()
    assert [len(b.history) for b in (outer, inner, own)] == [2, 3, 1]
    assert Budget.current() is None


def test_a_block_refuses_what_it_does_not_cover():
    with Budget(epsilon=0.1, delta=1e-6) as budget, pytest.raises(BudgetError, match="exceed"):
        release()
    assert budget.history == ()


def test_another_thread_is_not_left_out_of_the_ledger():
    """A call there is refused unless it says which budget is meant."""
    outer, own = Budget(epsilon=2.0, delta=1e-4), Budget(epsilon=2.0, delta=1e-4)
    told = []

    def work():
        try:
            Budget.current()
        except BudgetError as error:
            told.append(str(error))
        release(budget=own)
        with own:
            release()

    with outer:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert "Another thread is in a block" in told[0]
    assert (len(outer.history), len(own.history)) == (0, 2)
