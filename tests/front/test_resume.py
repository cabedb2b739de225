"""A failure after the charge keeps the draw, and ends in one release at most."""

import copy
import os
import pickle
import warnings

import cvxpy as cp
import numpy as np
import pytest

import cvxqop
from cvxqop.errors import AccuracyError, OptionError, PlanError, PrivateSolverError
from cvxqop.solve.engines import conic

RNG = np.random.default_rng(0)
N = 400
X = RNG.uniform(-0.5, 0.5, (N, 3))
Y = np.where(X @ [2.0, -1.0, 0.0] + RNG.logistic(size=N) > 0, 1.0, -1.0)
BOUNDS = cvxqop.Bounds(row_norm=1.0, offset=1.0)
PAY = {"epsilon": 1.0, "delta": 1e-6, "bounds": BOUNDS, "seed": 7}
R = cp.Parameter(nonneg=True, value=3.0)


def logistic(data=X):
    w = cp.Variable(3, name="w")
    loss = cp.sum(cp.logistic(-cp.multiply(Y, data @ w)))
    return w, cp.Problem(cp.Minimize(loss + 0.1 * cp.norm1(w)), [cp.abs(w) <= R])


def failing(problem, budget=None, **options):
    with pytest.raises(AccuracyError) as caught:
        cvxqop.privatize(
            problem,
            private=[X, Y],
            budget=budget,
            solver_options={"max_iter": 1},
            accuracy=1e-7,
            **PAY,
            **options,
        )
    return caught.value


def test_the_release_of_the_same_draw_at_no_further_cost():
    w, problem = logistic()
    budget = cvxqop.Budget(epsilon=1.5, delta=1e-5)
    error = failing(problem, budget)
    assert w.value is None
    spent = str(budget)
    solution = error.resume(solver_options={})
    assert str(budget) == spent
    v, other = logistic()
    expected = cvxqop.privatize(other, private=[X, Y], accuracy=1e-7, **PAY)[v]
    np.testing.assert_allclose(solution[w], expected, atol=1e-8)
    assert np.array_equal(w.value, solution[w])
    assert problem.status == "optimal"


def test_one_draw_is_released_once():
    _, problem = logistic()
    first = failing(problem)
    with pytest.raises(AccuracyError) as caught:
        first.resume()  # the same limit fails again, and is resumed likewise
    second = caught.value
    second.resume(solver_options={"max_iter": 500})
    for error in (first, second):
        with pytest.raises(PlanError, match="has been released"):
            error.resume(solver_options={"max_iter": 500})


def test_a_wrong_option_loses_nothing():
    _, problem = logistic()
    error = failing(problem)
    with pytest.raises(OptionError, match="no option 'max_iterations'"):
        error.resume(solver_options={"max_iterations": 5})
    with pytest.raises(OptionError, match="not installed"):
        error.resume(solver="NONE")
    assert error.resume(solver="CLARABEL").solver == "CLARABEL"


@pytest.mark.parametrize("options", [{"solver_options": {"max_iter": 1}}, {"solver": "NONE"}])
def test_nothing_is_reachable_from_an_error_of_resume(options):
    _, problem = logistic()
    error = failing(problem)
    with pytest.raises(cvxqop.CvxqopError) as caught:
        error.resume(**options)
    trace, frames = caught.value.__traceback__, []
    while trace is not None:
        frames.append(trace.tb_frame)
        trace = trace.tb_next
    ours = [f for f in frames if f.f_globals["__name__"].startswith("cvxqop")]
    held = [name for f in ours for name in f.f_locals if name not in ("args", "kwargs", "error")]
    assert set(held) <= {"function", "caught"}, held
    assert caught.value.__context__ is None


def test_a_problem_that_changed_is_not_written():
    w, problem = logistic()
    error = failing(problem)
    R.value = 2.0
    try:
        with pytest.raises(PlanError, match=r"The parameter .* has changed.*Set it back"):
            error.resume(solver_options={})
    finally:
        R.value = 3.0
    assert w.value is None
    assert error.resume(solver_options={})[w].shape == (3,)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform has no fork")
def test_another_process_has_no_draw():
    _, problem = logistic()
    error = failing(problem)
    read, write = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of threads; the child has none
        child = os.fork()
    if not child:  # pragma: no cover
        try:
            error.resume(solver_options={})
            os.write(write, b"released")
        except PlanError:
            os.write(write, b"refused")
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(read, 20) == b"refused"
    error.resume(solver_options={})


def test_copies_keep_nothing():
    _, problem = logistic()
    error = failing(problem)
    for other in (copy.copy(error), pickle.loads(pickle.dumps(error))):
        with pytest.raises(PlanError, match="Nothing is kept"):
            other.resume()


@pytest.mark.parametrize("stages", [1, 3])
def test_squared_losses_go_on_with_another_solver(monkeypatch, stages):
    w = cp.Variable(3, name="w")
    problem = cp.Problem(cp.Minimize(cp.sum_squares(X @ w - Y) + cp.norm1(w)))
    options = {"perturbation": cvxqop.Gaussian(stages=stages), "solver": "OSQP"}

    def fails(*args, **options):
        raise cp.error.SolverError("not today")

    sound = conic.solve_conic
    monkeypatch.setattr(conic, "solve_conic", fails)
    with pytest.raises(PrivateSolverError, match="resume") as caught:
        cvxqop.privatize(problem, private=[X, Y], **options, **PAY)
    monkeypatch.setattr(conic, "solve_conic", sound)
    solution = caught.value.resume(solver="CLARABEL")
    assert solution.private_loss is caught.value.private_loss
    assert np.array_equal(w.value, solution[w])
    loss = solution.private_loss
    by_hand = cp.Problem(cp.Minimize(loss.expression + cp.norm1(loss.variables[0])))
    by_hand.solve(solver="CLARABEL")
    np.testing.assert_allclose(solution[w], loss.variables[0].value, atol=1e-5)


def test_a_reader_that_fails_in_a_later_stage_is_resumed():
    """The second pass over the records fails once; the same three gradients are released."""

    class Flaky:
        """An array whose reads fail from the n-th on, until it is repaired."""

        shape, dtype, ndim = X.shape, X.dtype, 2
        left = 10**9

        def __getitem__(self, key):
            Flaky.left -= 1
            if Flaky.left < 0:
                raise OSError(f"record {X[0, 0]} is gone")
            return X[key]

    def problem_of(data):
        w = cp.Variable(3)
        return w, cp.Problem(cp.Minimize(cvxqop.glm_loss("squared", data, Y, w)))

    options = {"private": [], "perturbation": cvxqop.Gaussian(stages=3), **PAY}
    v, other = problem_of(X)
    expected = cvxqop.privatize(other, **options)[v]
    w, problem = problem_of(Flaky())
    Flaky.left = 1
    with pytest.raises(AccuracyError, match="charge stands") as caught:
        cvxqop.privatize(problem, **options)
    assert str(X[0, 0]) not in str(caught.value)
    assert caught.value.__context__ is None
    Flaky.left = 10**9
    assert np.array_equal(caught.value.resume()[w], expected)
