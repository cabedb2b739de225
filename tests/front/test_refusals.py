"""Bad input through the front: a clear error by name, and nothing spent, written or leaked."""

import cvxpy as cp
import numpy as np
import pytest

import cvxqop

X = np.linspace(-0.5371, 0.5113, 60).reshape(20, 3)
Y = np.linspace(-0.9137, 0.8731, 20)
THETA = cp.Variable(3, name="theta")
LOSS = cp.sum_squares(X @ THETA - Y)
PAY = {"bounds": cvxqop.Bounds(row_norm=1.0, offset=1.0), "epsilon": 1.0, "delta": 1e-6}


@pytest.fixture(autouse=True)
def no_noise(monkeypatch):
    """Fail the test if any noise is drawn, or a variable is written."""

    def drawn(self):
        raise AssertionError("noise was drawn")

    monkeypatch.setattr("cvxqop.privacy.noise.Randomness.fresh", drawn)
    yield
    assert THETA.value is None


def refuse(error, match, problem=None, **changes):
    problem = cp.Problem(cp.Minimize(LOSS)) if problem is None else problem
    with pytest.raises(error, match=match) as caught:
        cvxqop.privatize(problem, **{"private": [X, Y], **PAY, **changes})
    assert isinstance(caught.value, cvxqop.CvxqopError)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    for number in (*X.ravel()[:5], *Y[:5]):
        assert f"{number:.4}" not in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"epsilon": 0.0}, "epsilon"),
        ({"epsilon": -1.0}, "epsilon"),
        ({"epsilon": np.inf}, "epsilon"),
        ({"epsilon": 2e6}, "epsilon"),
        ({"delta": 0.0}, "delta"),
        ({"delta": 0.5}, "delta"),
        ({"delta": 0.7}, "delta"),
    ],
)
def test_privacy_out_of_range(changes, match):
    refuse(cvxqop.CalibrationError, match, **changes)


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"epsilon": "1"}, "epsilon must be a number"),
        ({"epsilon": np.nan}, "epsilon must not be NaN"),
        ({"epsilon": True}, "epsilon must be a number"),
        ({"delta": None}, "delta must be a number"),
        ({"radius": -1.0}, "radius"),
        ({"radius": np.inf}, "radius"),
        ({"adjacency": "swap"}, "adjacency must be one of 'replace_one', 'add_remove'"),
        ({"nonfinite": "drop"}, "nonfinite"),
        ({"perturbation": "laplace"}, "perturbation must be one of 'wishart'"),
        ({"perturbation": 3}, "perturbation"),
        ({"bounds": None}, "never read from data"),
        ({"bounds": (1.0, 1.0)}, "bounds must be a cvxqop.Bounds"),
        ({"private": X}, "private must be a list"),
        ({"private": "X"}, "private must be a list"),
        ({"solver": 3}, "solver"),
        ({"solver": "NOSUCH"}, "not installed"),
        ({"solver_options": 3}, "solver_options"),
        ({"solver": "CLARABEL", "solver_options": {"no_such": 1}}, "refuses solver_options"),
        ({"solver": "OSQP", "solver_options": {"no_such": 1}}, "refuses solver_options"),
        ({"solver": "SCS", "solver_options": {"no_such": 1}}, "refuses solver_options"),
        ({"solver": "STOTOS", "solver_options": {"no_such": 1}}, "no option"),
        ({"solver": "CLARABEL", "solver_options": {"verbose": True}}, "would print"),
        ({"seed": -1}, "seed"),
        ({"seed": "x"}, "seed"),
        ({"verbose": 1}, "verbose"),
        ({"budget": 1.0}, "budget"),
        ({"anchor": np.zeros(4)}, "shape"),
        ({"anchor": [np.nan, 0, 0]}, "anchor"),
        ({"anchor": "origin"}, "anchor"),
        ({"anchor": THETA}, "not a CVXPY expression"),
        ({"anchor": {}}, "theta"),
    ],
)
def test_options(changes, match):
    refuse(cvxqop.OptionError, match, **changes)


def test_unknown_and_missing_options_are_named():
    problem = cp.Problem(cp.Minimize(LOSS))
    with pytest.raises(cvxqop.OptionError, match="Did you mean 'epsilon'"):
        cvxqop.plan(problem, private=[X, Y], **PAY, epsilonn=1.0)
    with pytest.raises(cvxqop.OptionError, match="'bounds' is missing"):
        cvxqop.plan(problem, private=[X, Y], epsilon=1.0, delta=1e-6)
    with pytest.raises(cvxqop.OptionError, match="Unknown option 'sigma'"):
        problem.solve(method="QOP", private=[X, Y], **PAY, sigma=1.0)
    with pytest.raises(cvxqop.OptionError, match=r"Unknown option 'stated'.*Options are"):
        cvxqop.privatize(problem, private=[X, Y], **PAY, stated=1.0)
    with pytest.raises(cvxqop.OptionError, match="never read from data"):
        cvxqop.privatize(problem, private=[X, Y], epsilon=1.0, delta=1e-6)
    with pytest.raises(cvxqop.OptionError, match="'epsilon' is missing"):
        cvxqop.privatize(problem, private=[X, Y], bounds=PAY["bounds"], delta=1e-6)


@pytest.mark.parametrize(
    ("problem", "match"),
    [
        (cp.Problem(cp.Minimize(cp.sum_squares(THETA))), "does not occur|no private data"),
        (cp.Problem(cp.Minimize(LOSS), [X @ THETA <= 1]), "constraint"),
        (cp.Problem(cp.Minimize(LOSS + cp.sum(Y) * cp.sum(THETA))), "private"),
        (cp.Problem(cp.Minimize(cp.norm1(X @ THETA - Y))), "huber"),
        (cp.Problem(cp.Minimize(cp.sum(cp.exp(X @ THETA - Y)))), "curvature"),
        (cp.Problem(cp.Minimize(LOSS + cp.sqrt(THETA[0]))), "not convex"),
        (cp.Problem(cp.Minimize(cp.sum_squares(X @ THETA - Y[:, None]))), "broadcast"),
    ],
)
def test_problems(problem, match):
    refuse(cvxqop.ProblemError, match, problem)


def test_missing_offset_bound():
    refuse(cvxqop.ProblemError, "offset", bounds=cvxqop.Bounds(row_norm=1.0))


def test_array_that_is_not_there():
    refuse(cvxqop.ProblemError, "neither in private nor in public", private=[X + 1.0, Y])


def test_no_private_array():
    refuse(cvxqop.ProblemError, "private", private=[])


def test_infeasible_constraints_are_found_before_spending():
    problem = cp.Problem(cp.Minimize(LOSS), [THETA >= 1, THETA <= 0])
    refuse(cvxqop.ProblemError, "no point satisfies", problem)


def test_empty_domain_of_the_regulariser():
    problem = cp.Problem(cp.Minimize(LOSS - cp.log(THETA[0])), [THETA[0] <= -1])
    refuse(cvxqop.ProblemError, "no point satisfies", problem)


def test_solver_that_cannot_take_the_problem():
    problem = cp.Problem(cp.Minimize(LOSS), [cp.norm(THETA, 2) <= 1])
    refuse(cvxqop.OptionError, "cannot take", problem, solver="OSQP")


def test_mean_under_add_remove():
    problem = cp.Problem(cp.Minimize(cp.mean(cp.square(X @ THETA - Y))))
    refuse(cvxqop.ProblemError, "replace_one", problem, adjacency="add_remove")


def test_private_loss_takes_the_loss_alone():
    with pytest.raises(cvxqop.ProblemError, match="public terms"):
        cvxqop.private_loss(LOSS + cp.norm1(THETA), private=[X, Y], **PAY)


def test_a_large_delta_warns():
    problem = cp.Problem(cp.Minimize(LOSS))
    with pytest.warns(cvxqop.PrivacyWarning, match="delta = 0.05"):
        cvxqop.plan(problem, private=[X, Y], **{**PAY, "delta": 0.05})
