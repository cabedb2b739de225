"""A plan runs the problem that it was made for, or is refused before the charge and the draw."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp

import cvxqop
from cvxqop.privacy import noise

# CVXPY says so of any sparse parameter that something asks for its value.
pytestmark = pytest.mark.filterwarnings("ignore:Reading from a sparse:RuntimeWarning")

N = 60
PAY = {"bounds": cvxqop.Bounds(row_norm=1.0, offset=1.0), "epsilon": 1.0, "delta": 1e-6}


@pytest.fixture(autouse=True)
def draws(monkeypatch):
    """The number of streams of noise that were begun."""
    begun = []
    honest = noise.Randomness.fresh
    monkeypatch.setattr(noise.Randomness, "fresh", lambda self: (begun.append(1), honest(self))[1])
    return begun


def diagonal(*entries):
    """A sparse diagonal matrix."""
    where = np.arange(len(entries))
    return sp.coo_array((np.array(entries), (where, where)))


class Problem:
    """A problem with one of each thing that may change, its objects by name."""

    def __init__(self, loss="squared"):
        rng = np.random.default_rng(3)
        self.X = rng.uniform(-0.5, 0.5, (N, 2))
        self.y = np.clip(self.X @ [0.6, -0.4], -1, 1)
        self.w, self.v = cp.Variable(2, name="w", bounds=[-5, np.array([5.0, 6.0])]), cp.Variable(2)
        self.R = cp.Parameter(name="R", nonneg=True, value=1.0)
        self.c = cp.Parameter(2, name="c", value=np.array([1.0, 2.0]))
        self.low = cp.Parameter(name="low", value=-4.0)
        self.A = cp.Parameter((2, 2), name="A", sparsity=((0, 1), (0, 1)))
        self.A.value_sparse = diagonal(1.0, 2.0)
        self.M = cp.Constant(np.array([[1.0, 2.0], [3.0, 4.0]]))
        self.S = cp.Constant(sp.csc_array(np.diag([1.0, 3.0])))
        self.u = cp.Variable(name="u", bounds=[self.low, 9])
        self.Xp = cp.Parameter((N, 2), name="Xp", value=self.X)
        self.yp = cp.Parameter(N, name="yp", value=self.y)
        residual = self.Xp @ self.w - self.yp
        self.term = cp.huber(cp.sum(self.w), cp.Parameter(name="T", nonneg=True, value=1.0))
        self.power = cp.power(cp.norm(self.w), 2)
        rest = self.R * cp.norm1(self.w) + self.term + self.power + cp.square(self.u)
        rest += cp.sum_squares(self.S @ self.v) + cp.sum_largest(self.w, 1)
        self.problem = cp.Problem(
            cp.Minimize(cp.sum_squares(residual) + rest),
            [
                cp.norm(self.w, 2) <= 30 * self.R,
                self.M @ self.w <= 40,
                self.c @ self.w <= 50,
                cp.norm1(self.A @ self.v) <= 60,
                self.v == self.w,
            ],
        )
        self.budget = cvxqop.Budget(epsilon=9.0, delta=1e-3)

    def plan(self, **options):
        return cvxqop.plan(
            self.problem, private=[self.Xp, self.yp], budget=self.budget, **{**PAY, **options}
        )


def assign(**values):
    """Assignments to the values of parameters."""

    def change(o):
        for name, value in values.items():
            getattr(o, name).value = value

    return change


def call(way):
    """A change by a function that returns something."""

    def change(o):
        way(o)

    return change


# What changes, and the words that name it.
CHANGES = {
    "a number": (assign(R=2.0), "The parameter R"),
    "a number, a little": (assign(R=np.nextafter(1.0, 2.0)), "The parameter R"),
    "a vector": (assign(c=np.array([1.0, 2.5])), "The parameter c"),
    "a vector in place": (call(lambda o: o.c.value.__setitem__(0, 9.0)), "The parameter c"),
    "a parameter inside bounds": (assign(low=-40.0), "The parameter low"),
    "a parameter without value": (assign(R=None), "The parameter R"),
    "a sparse parameter": (
        call(lambda o: setattr(o.A, "value_sparse", diagonal(1.0, 9.0))),
        "The parameter A",
    ),
    "a threshold": (call(lambda o: o.term.M.save_value(np.array(2.0))), "The parameter T"),
    "a constant in place": (call(lambda o: o.M.value.__setitem__((0, 0), 9.0)), "A constant"),
    "a sparse constant in place": (
        call(lambda o: o.S.value.data.__setitem__(0, 9.0)),
        "A constant",
    ),
    "bounds in place": (
        call(lambda o: o.w.attributes["bounds"][1].__setitem__(0, 50.0)),
        "bounds of the variable w",
    ),
    "a number as a bound": (
        call(lambda o: o.w.attributes["bounds"].__setitem__(0, np.array(-50.0))),
        "The variable w",
    ),
    "bounds": (
        call(lambda o: o.w.attributes.__setitem__("bounds", [np.array(-9.0), np.full(2, 9.0)])),
        "variable w",
    ),
    "an attribute": (call(lambda o: o.w.attributes.__setitem__("nonneg", True)), "The variable w"),
    "a constraint more": (
        call(lambda o: o.problem._constraints.append(o.w >= 0)),
        "The list of constraints",
    ),
    "a constraint less": (call(lambda o: o.problem._constraints.pop()), "The list of constraints"),
    "another constraint": (
        call(lambda o: o.problem._constraints.__setitem__(0, o.w >= 0)),
        "The list of constraints",
    ),
    "constraints in another order": (
        call(lambda o: o.problem._constraints.reverse()),
        "The list of constraints",
    ),
    "a side of a constraint": (
        call(lambda o: o.problem.constraints[0].args.__setitem__(1, cp.Constant(300.0))),
        "of the problem",
    ),
    "a term": (
        call(lambda o: o.problem.objective.args.__setitem__(0, cp.sum_squares(o.Xp @ o.w - o.yp))),
        "of the problem",
    ),
    "the objective": (
        call(lambda o: setattr(o.problem, "_objective", cp.Minimize(cp.sum_squares(o.w)))),
        "The objective",
    ),
    "an exponent": (call(lambda o: setattr(o.power, "p", cp.Constant(3.0))), "of the problem"),
    "an argument of an atom": (
        call(lambda o: o.term.args.__setitem__(0, o.w[0])),
        "of the problem",
    ),
    "private data": (call(lambda o: setattr(o.yp, "value", 0.5 * o.y)), "The parameter yp"),
    "private rows": (call(lambda o: setattr(o.Xp, "value", 0.5 * o.X)), "The parameter Xp"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_has_changed_is_refused_by_name(name, draws):
    change, words = CHANGES[name]
    o = Problem()
    plan = o.plan()
    change(o)
    with pytest.raises(cvxqop.PlanError, match=r"Nothing was charged\. Plan again") as caught:
        plan.run()
    assert words in str(caught.value)
    assert not any(c.isdigit() for c in str(caught.value))
    assert caught.value.__cause__ is None
    assert (draws, o.budget.history) == ([], ())
    assert o.w.value is None
    if o.R.value is not None and "objective" not in name and "bounds" not in name:
        o.plan().run()  # the remedy
        assert (len(draws), len(o.budget.history)) == (1, 1)


def test_a_change_that_is_taken_back_is_none(draws):
    o = Problem()
    plan = o.plan()
    o.R.value, o.c.value = 2.0, np.zeros(2)
    o.R.value, o.c.value = 1.0, np.array([1.0, 2.0])
    plan.run()
    assert len(draws) == 1


def test_what_a_problem_is_not_made_of_may_change(draws):
    """Values of variables, duals, an ordinary solve of the same problem, another plan."""
    o = Problem()
    plan = o.plan()
    o.problem.solve(solver="CLARABEL")
    o.w.value = np.array([3.0, 3.0])
    o.plan()
    plan.run()
    plan.run()
    assert len(draws) == 2


def test_records_that_change_in_place_are_what_runs():
    """With as many rows as before; the constants do not depend on them."""
    rng = np.random.default_rng(5)
    X = rng.uniform(-0.5, 0.5, (4000, 2))
    w, Xp = cp.Variable(2), cp.Parameter((4000, 2), value=X.copy())
    yp = cp.Parameter(4000, value=X @ [0.6, -0.4])
    problem = cp.Problem(cp.Minimize(cp.sum_squares(Xp @ w - yp)))
    plan = cvxqop.plan(problem, private=[Xp, yp], **{**PAY, "epsilon": 1e6})
    np.testing.assert_allclose(plan.run()[w], [0.6, -0.4], atol=1e-2)
    yp.value[:] = X @ [-0.2, 0.9]
    np.testing.assert_allclose(plan.run()[w], [-0.2, 0.9], atol=1e-2)


def test_what_the_caller_gave_may_change_for_the_plan_has_its_own():
    """Lists, dicts and arrays of options after the plan: the same answer to the bit."""
    X = np.random.default_rng(4).uniform(-0.5, 0.5, (N, 2))
    y = X @ [0.6, -0.4]

    def run(change):
        w, box = cp.Variable(2), [np.full(2, -0.3), np.full(2, 0.3)]
        v = cp.Variable(2, bounds=box)
        private, public = [X.copy(), y.copy()], [np.full(N, 0.7)]
        anchor, options = np.array([0.1, 0.2]), {"max_iter": 200}
        loss = cp.sum_squares(cp.multiply(public[0], private[0] @ w - private[1]))
        constraints = [v == w]
        plan = cvxqop.plan(
            cp.Problem(cp.Minimize(loss), constraints), private=private, public=public,
            anchor=anchor, solver="CLARABEL", solver_options=options, seed=3, **PAY,
        )  # fmt: skip
        if change:
            anchor[:], public[0][:] = 9.0, 9.0
            options["max_iter"] = 1
            private.clear(), public.clear(), box.clear(), constraints.clear()
        return plan.run()[w]

    assert run(True).tolist() == run(False).tolist()


def test_an_anchor_in_a_dict_and_a_common_minimiser_are_copied():
    X = np.random.default_rng(4).uniform(-0.5, 0.5, (N, 2))
    y = X @ [0.6, -0.4]

    def run(change, kind):
        w, point = cp.Variable(2), np.array([0.1, 0.2])
        anchor = {"dict": {w: point}, "common": cvxqop.CommonMinimizer(point, error=0.1)}[kind]
        problem = cp.Problem(cp.Minimize(cp.sum_squares(X @ w - y)))
        plan = cvxqop.plan(problem, private=[X, y], anchor=anchor, seed=3, **PAY)
        if change:
            point[:] = 9.0
            if kind == "dict":
                anchor.clear()
        return plan.run()[w]

    for kind in ("dict", "common"):
        assert run(True, kind).tolist() == run(False, kind).tolist()


def test_labels_that_were_changed_in_place_are_what_runs():
    """Each run reads labels and rows together: the second one is that of a new plan."""
    rng = np.random.default_rng(0)
    X, w = rng.uniform(-0.5, 0.5, (400, 2)), cp.Variable(2)
    y = cp.Parameter(400, value=(X[:, 0] > 0).astype(float))
    t = X @ w
    loss = cp.sum(cp.logistic(t)) - y @ t
    problem = cp.Problem(cp.Minimize(loss), [cp.norm(w) <= 5])
    options = {
        "private": [X, y], "bounds": cvxqop.Bounds(row_norm=1.0), "epsilon": 1e6, "delta": 1e-6,
    }  # fmt: skip
    plan = cvxqop.plan(problem, **options)
    before = plan.run()[w][0]
    y.value[:] = 1.0 - y.value
    after = plan.run()[w][0]
    assert before > 1.0
    assert after < -1.0
