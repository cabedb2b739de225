"""Once the noise is drawn: the answer is checked, and the problem shows this run only."""

import copy

import cvxpy as cp
import numpy as np
import pytest
from cvxpy.error import SolverError
from cvxpy.reductions.solvers.conic_solvers.clarabel_conif import CLARABEL

import cvxqop
from cvxqop.errors import AccuracyError
from cvxqop.solve.answer import Answer
from cvxqop.solve.cones import engine as cone_engine
from cvxqop.solve.engines import conic, stotos
from cvxqop.spending import feasible_release

PAY = {"bounds": cvxqop.Bounds(row_norm=1.0, offset=1.0), "epsilon": 1.0, "delta": 1e-6}
# exp(x'w) of rows and variables of norm 1 at most: nothing that the library would recognise.
TRUST = {
    "declared": cvxqop.Declared(np.e, hessian_rank=1, anchor_gradient=1.0, gradient=np.e),
    "epsilon": 1.0,
    "delta": 1e-6,
}
MIX = np.array([[1.0, 2.0], [3.0, 4.0]])


def records(n=400, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-0.5, 0.5, (n, 2))
    return X, np.clip(X @ [0.6, -0.4] + 0.1 * rng.standard_normal(n), -1, 1)


class Lying:
    """A solver's own result with another x."""

    def __init__(self, inner, change):
        self.inner, self.change = inner, change

    def __getattr__(self, name):
        value = getattr(self.inner, name)
        return self.change(np.array(value)).tolist() if name == "x" else value


@pytest.fixture
def lies(monkeypatch):
    """Has CLARABEL return another point with its honest status, after the checks of a plan."""

    def install(change):
        honest = CLARABEL.solve_via_data
        monkeypatch.setattr(
            CLARABEL, "solve_via_data", lambda s, *a, **k: Lying(honest(s, *a, **k), change)
        )

    return install


CHANGES = {
    "nan": lambda x: x * np.nan,
    "infinite": lambda x: np.where(np.arange(len(x)) % 2, x, np.inf),
    "far outside": lambda x: x - 100.0,
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("rest", ["splits", "general", "auxiliary"])
def test_an_answer_that_cannot_be_is_not_released(lies, change, rest):
    X, y = records()
    w, u = cp.Variable(2), cp.Variable(2)
    regulariser, constraints = {
        "splits": (cp.norm1(w), [w >= -3]),
        "general": (cp.norm1(MIX @ w), [cp.norm2(MIX @ w) <= 3]),
        "auxiliary": (cp.sum(u), [cp.abs(w) <= u]),
    }[rest]
    problem = cp.Problem(cp.Minimize(cp.sum_squares(X @ w - y) + regulariser), constraints)
    w.value = np.array([8.0, 9.0])
    budget = cvxqop.Budget(epsilon=9.0, delta=1e-3)
    plan = cvxqop.plan(problem, private=[X, y], budget=budget, solver="CLARABEL", **PAY)
    lies(CHANGES[change])
    if rest == "splits" and change == "far outside":
        assert np.all(plan.run()[w] >= -3)  # repaired by the projection
        return
    with pytest.raises(cvxqop.PrivateSolverError) as caught:
        plan.run()
    assert w.value.tolist() == [8.0, 9.0]
    assert u.value is None
    assert (problem.status, problem.value) == (None, None)
    assert len(budget.history) == 1
    message = str(caught.value)
    assert "is not finite" in message or "violates a constraint" in message
    assert not any(c.isdigit() for c in message)
    assert caught.value.__cause__ is None
    # What was paid for can be solved again, by another solver.
    loss = caught.value.private_loss
    again = cp.Problem(cp.Minimize(loss.expression + regulariser), constraints)
    again.solve(solver="SCS")
    assert np.all(np.isfinite(w.value))


def test_a_stage_that_is_not_finite_is_replaced_by_the_closed_form(lies):
    """The last stage is solved by CVXPY's user here, so that only the first can go wrong."""
    X, y = records()
    w = cp.Variable(2)
    lies(CHANGES["nan"])
    loss = cvxqop.private_loss(
        cp.sum_squares(X @ w - y),
        private=[X, y],
        constraints=[cp.norm2(MIX @ w) <= 3],
        perturbation=cvxqop.Gaussian(stages=2, residual_bound=0.5),
        **{**PAY, "epsilon": 1e6},
    )
    exact = np.linalg.lstsq(X, y)[0]
    np.testing.assert_allclose(loss.anchor, exact, atol=1e-2)
    found = loss.anchor - np.linalg.solve(loss.hessian, loss.gradient)
    np.testing.assert_allclose(found, exact, atol=1e-2)


@pytest.mark.parametrize("wrong", [np.array([np.nan, 0.0]), np.array([50.0, 0.0]), np.zeros(3)])
def test_stotos_is_checked_too(monkeypatch, wrong):
    X, y = records()
    w = cp.Variable(2)
    problem = cp.Problem(cp.Minimize(cp.sum_squares(X @ w - y)), [cp.abs(w) <= 1])
    plan = cvxqop.plan(problem, private=[X, y], solver="STOTOS", **PAY)
    monkeypatch.setattr(stotos, "solve_stotos", lambda *a, **k: Answer(wrong, distance=0.0))
    with pytest.raises(cvxqop.PrivateSolverError, match="STOTOS") as caught:
        plan.run()
    assert caught.value.private_loss.hessian.shape == (2, 2)
    assert w.value is None


@pytest.mark.parametrize("wrong", [np.array([np.nan, 0.0]), np.array([np.inf, 0.0])])
@pytest.mark.parametrize("kind", ["logistic", "declared"])
def test_a_certified_point_is_checked_too(monkeypatch, wrong, kind):
    X, _ = records()
    w = cp.Variable(2)
    loss = {"logistic": cp.logistic, "declared": cp.exp}[kind](X @ w)
    pay = {**PAY, "bounds": cvxqop.Bounds(row_norm=1.0)} if kind == "logistic" else TRUST
    problem = cp.Problem(cp.Minimize(cp.sum(loss)), [cp.norm2(w) <= 1])
    plan = cvxqop.plan(problem, private=[X], **pay)
    monkeypatch.setattr(stotos, "solve_stotos", lambda *a, **k: Answer(wrong, distance=0.0))
    with pytest.raises(cvxqop.AccuracyError) as caught:
        plan.run()
    assert w.value is None
    assert (problem.status, problem.value) == (None, None)
    assert not any(c.isdigit() for c in str(caught.value))


@pytest.mark.parametrize("change", CHANGES)
def test_a_trusted_solver_is_checked_too(lies, change):
    """Declared, with constraints that do not split: nothing but the solver's word."""
    X, _ = records()
    w = cp.Variable(2)
    problem = cp.Problem(cp.Minimize(cp.sum(cp.exp(X @ w))), [cp.norm2(MIX @ w) <= 1])
    plan = cvxqop.plan(problem, private=[X], accept_solver_accuracy=True, **TRUST)
    lies(CHANGES[change])
    with pytest.raises(cvxqop.AccuracyError, match="no finite and feasible answer") as caught:
        plan.run()
    assert w.value is None
    assert "other solver_options" in str(caught.value)


OVER_CONES = {
    "not finite": ("solve_over_cones", Answer(np.array([np.nan, 0.0]), distance=0.0)),
    "of another shape": ("nearest", Answer(np.zeros(3))),
    "outside": ("nearest", Answer(np.array([50.0, 0.0]))),
    "an auxiliary variable is not finite": ("nearest", Answer(np.zeros(2), {0: np.nan})),
    "an auxiliary variable is outside": ("nearest", Answer(np.zeros(2), {0: np.array(-7.0)})),
    "an error with numbers": ("nearest", ValueError("0.123")),
    "a refusal with numbers": ("solve_over_cones", cvxqop.OptionError("0.123")),
    "an error of the solver": ("solve_over_cones", SolverError("0.123")),
}


@pytest.mark.parametrize("wrong", OVER_CONES)
@pytest.mark.parametrize("kind", ["logistic", "declared"])
def test_the_answer_of_the_cone_engine_is_checked_too(monkeypatch, wrong, kind):
    X, _ = records()
    w, u = cp.Variable(2), cp.Variable()
    loss = {"logistic": cp.logistic, "declared": cp.exp}[kind](X @ w)
    pay = {**PAY, "bounds": cvxqop.Bounds(row_norm=1.0)} if kind == "logistic" else TRUST
    problem = cp.Problem(cp.Minimize(cp.sum(loss) + u), [cp.norm2(w) <= u, u <= 1])
    budget = cvxqop.Budget(epsilon=9.0, delta=1e-3)
    plan = cvxqop.plan(problem, private=[X], budget=budget, **pay)
    assert plan.solver == "CLARABEL"
    name, outcome = OVER_CONES[wrong]
    if isinstance(outcome, Answer):
        values = list(outcome.auxiliary.values())
        outcome = Answer(outcome.theta, dict(zip([u], values, strict=False)), 0.0)

    def lie(*arguments, **options):
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    place = cone_engine if name == "solve_over_cones" else feasible_release
    monkeypatch.setattr(place, name, lie)
    with pytest.raises(cvxqop.AccuracyError) as caught:
        plan.run()
    assert w.value is None
    assert u.value is None
    assert (problem.status, problem.value) == (None, None)
    assert len(budget.history) == 1
    assert not any(c.isdigit() for c in str(caught.value))
    assert caught.value.__cause__ is None


def test_a_point_that_could_not_be_projected_is_not_released(monkeypatch):
    X, _ = records()
    w = cp.Variable(2)
    problem = cp.Problem(cp.Minimize(cp.sum(cp.exp(X @ w))), [cp.norm2(MIX @ w) <= 1e-3])
    plan = cvxqop.plan(problem, private=[X], accept_solver_accuracy=True, accuracy=1.0, **TRUST)
    honest, calls = conic.solve_conic, []

    def first_succeeds(*arguments, **options):
        calls.append(1)
        if len(calls) > 1:
            raise SolverError("no 7")
        return honest(*arguments, **options)

    def fails(*arguments, **options):
        raise AccuracyError("no 7")

    monkeypatch.setattr(conic, "solve_conic", first_succeeds)
    monkeypatch.setattr(cone_engine, "solve_over_cones", fails)
    with pytest.raises(cvxqop.AccuracyError, match="could not be put back") as caught:
        plan.run()
    assert len(calls) > 1
    assert w.value is None
    assert not any(c.isdigit() for c in str(caught.value))


WAYS = {
    "privatize": lambda problem, **k: cvxqop.privatize(problem, **k),
    "plan.run": lambda problem, **k: cvxqop.plan(problem, **k).run(),
    "solve": lambda problem, **k: problem.solve(method="QOP", **k),
}


def duals(problem):
    return [dual.value for c in problem.constraints for dual in c.dual_variables]


def remains(problem):
    """What CVXPY keeps of a solve."""
    return [problem.value, problem.solution, problem.solver_stats, problem._solver_cache]


@pytest.mark.parametrize("way", WAYS)
def test_nothing_of_an_earlier_solve_remains(way):
    X, y = records()
    w = cp.Variable(2)
    problem = cp.Problem(cp.Minimize(cp.sum_squares(X @ w - y)), [w <= 0.3, cp.norm2(w) <= 1])
    problem.solve()
    assert problem.value is not None
    assert all(dual is not None for dual in duals(problem))
    solution = WAYS[way](problem, private=[X, y], **PAY)
    assert problem.status == "optimal"
    assert remains(problem) == [None, None, None, {}]
    assert duals(problem) == [None] * 2
    assert np.array_equal(w.value, solution[w])
    copy.deepcopy(problem)


@pytest.mark.parametrize("way", WAYS)
def test_a_failure_leaves_no_status_and_the_variables_as_they_were(lies, way):
    X, y = records()
    w = cp.Variable(2)
    problem = cp.Problem(cp.Minimize(cp.sum_squares(X @ w - y)), [cp.norm2(MIX @ w) <= 1])
    problem.solve()
    w.value = np.array([5.0, 6.0])
    budget = cvxqop.Budget(epsilon=0.5, delta=1e-6)
    with pytest.raises(cvxqop.BudgetError):
        WAYS[way](problem, private=[X, y], budget=budget, **PAY)
    assert (problem.status, *remains(problem)) == (None, None, None, None, {})
    assert duals(problem) == [None]
    problem.solve(solver="SCS")
    w.value = np.array([5.0, 6.0])
    lies(CHANGES["nan"])
    with pytest.raises(cvxqop.PrivateSolverError):
        WAYS[way](problem, private=[X, y], **PAY)
    assert (problem.status, *remains(problem)) == (None, None, None, None, {})
    assert duals(problem) == [None]
    assert w.value.tolist() == [5.0, 6.0]


def test_a_plan_touches_nothing():
    X, y = records()
    w = cp.Variable(2)
    problem = cp.Problem(cp.Minimize(cp.sum_squares(X @ w - y)), [w <= 0.3])
    problem.solve()
    before = (problem.value, problem.status, w.value.tolist(), duals(problem)[0].tolist())
    cvxqop.plan(problem, private=[X, y], **PAY)
    with pytest.raises(cvxqop.OptionError):
        cvxqop.privatize(problem, private=[X, y], solver="NONE", **PAY)
    after = (problem.value, problem.status, w.value.tolist(), duals(problem)[0].tolist())
    assert before == after


class Slices:
    """Rows in a file, say; whoever reads them calls ``before`` first."""

    def __init__(self, array, before):
        self._array, self.before, self.shape, self.dtype = array, before, array.shape, array.dtype

    def __getitem__(self, key):
        self.before()
        return self._array[key]


CHANGED = {
    "a radius": lambda w, R, c: [cp.norm(w) <= R],
    "a bound": lambda w, R, c: [],
    "an array": lambda w, R, c: [cp.norm(w) <= 1, w <= c],
}


@pytest.mark.parametrize("what", CHANGED)
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_what_changes_while_a_plan_runs_is_not_released(what, loss):
    """As from another thread: the noise is for a ball of radius 0.01, the solver sees one of 1."""
    X, y = records()
    R, c = cp.Parameter(nonneg=True, name="R", value=0.01), cp.Parameter(2, name="c")
    c.value = np.full(2, 0.01)
    w = cp.Variable(2, bounds=[-R, R]) if what == "a bound" else cp.Variable(2)

    def change():
        R.value = 1.0
        c.value = np.ones(2)

    rows = Slices(X, lambda: None)
    term = cvxqop.glm_loss(loss, rows, y, w)
    problem = cp.Problem(cp.Minimize(term), CHANGED[what](w, R, c))
    budget = cvxqop.Budget(epsilon=1.0, delta=1e-6)
    mechanism = "linear" if loss == "logistic" else "gaussian"
    options = {**PAY, "budget": budget, "perturbation": mechanism}
    plan = cvxqop.plan(problem, private=[], **options)
    rows.before = change
    with pytest.raises(cvxqop.PrivateSolverError, match="has changed while the plan was run") as e:
        plan.run()
    assert w.value is None
    assert (e.value.private_loss is None) == (loss == "logistic")
    assert e.value.__context__ is None
    assert len(budget.history) == 1
