"""The engine for any convex rest against CVXPY on the whole problem, and its certificate.

At full size (``CVXQOP_FULL=1``) the certificates of 3,000 candidates are compared with the truth,
as many for each rest; those that are infeasible or have an infinite one do not count. In CI it is 6
for each.
"""

import os
from itertools import count

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from cone_rests import rests
from instances import HUBER, LOGISTIC, SQUARED_HINGE, finite_sum, wishart

from cvxqop.errors import OptionError
from cvxqop.problem.losses.multinomial import Softmax
from cvxqop.problem.records.rows import ArrayRows
from cvxqop.solve.certificate import Curvature, certify, localised
from cvxqop.solve.cones.checks import check_cone_engine
from cvxqop.solve.cones.engine import nearest, solve_over_cones
from cvxqop.solve.cones.program import Program
from cvxqop.solve.cones.refinement import refine
from cvxqop.solve.cones.solvers import run_clarabel
from cvxqop.solve.cones.standard_form import standard_form
from cvxqop.solve.engines.conic import stacked
from cvxqop.solve.engines.monitor import Monitor
from cvxqop.solve.engines.proximal_newton import _Engine
from cvxqop.solve.rest.quadratic_terms import quadratic_terms
from cvxqop.solve.smooth.function import PerturbedFunction

# CVXPY's own solves at tight tolerances, and its towers of cones for p = π.
pytestmark = [
    pytest.mark.filterwarnings("ignore:Solution may be inaccurate"),
    pytest.mark.filterwarnings("ignore:pnorm with p="),
]

D = 9
FULL = bool(os.environ.get("CVXQOP_FULL"))
NAMES = list(rests(D))
VALID = -(-3000 // len(NAMES)) if FULL else 6
"""Candidates of each rest that count."""


def data(n=800, seed=0, mu=10.0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-0.5, 0.5, (n, D))
    truth = np.concatenate([[1, -1, 0, 0.5], np.zeros(D - 4)])
    y = np.where(rng.uniform(size=n) < 1 / (1 + np.exp(-4 * X @ truth)), 1.0, -1.0)
    return X, y, mu * np.eye(D), 3.0 * rng.standard_normal(D)


def logistic(X, y, S, a):
    rows = ArrayRows(-y[:, None] * X, np.zeros((len(y), 1)))
    return finite_sum(rows, (LOGISTIC,), S, a, np.zeros(D))


def whole(loss, S, a, variables, r, C):
    """CVXPY's own solution with all rows; θ in the order of the variables."""
    theta = stacked(variables)
    objective = loss(theta) + 0.5 * cp.quad_form(theta, cp.psd_wrap(S)) + a @ theta
    problem = cp.Problem(cp.Minimize(objective if r is None else objective + r), C)
    problem.solve(solver="CLARABEL", tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-12)
    return np.concatenate([np.asarray(v.value).reshape(-1, order="F") for v in variables])


@pytest.mark.parametrize("name", NAMES)
def test_the_answer_is_that_of_the_whole_problem(name):
    X, y, S, a = data()
    variables, r, C = rests(D)[name]
    answer = solve_over_cones(logistic(X, y, S, a), variables, r, C)
    assert answer.distance <= 1e-6
    assert all(v.value is None for v in variables)
    found = whole(lambda t: cp.sum(cp.logistic(-cp.multiply(y, X @ t))), S, a, variables, r, C)
    np.testing.assert_allclose(answer.theta, found, atol=2e-5)


@pytest.mark.parametrize("name", NAMES)
def test_no_certificate_is_below_the_truth(name, record_property):
    """Points and duals from solvers that stop early, with noise on top, and wrong Hessians."""
    X, y, S, a = data(n=300, mu=3.0)
    variables, r, C = rests(D)[name]
    Q, q, remainder = quadratic_terms(variables, r)
    f = logistic(X, y, S, a).plus(Q, q)
    program = Program.of(standard_form(variables, remainder, C))
    answer = solve_over_cones(logistic(X, y, S, a), variables, r, C)
    bound = Curvature(f.lower_curvature())
    engine = _Engine(f, program, lambda *_: None, Monitor(), bound)
    rng = np.random.default_rng(NAMES.index(name))
    form, judged = program.form, 0
    for k in count():
        assert k < 20 * VALID, f"{judged} of {k} candidates of {name} are feasible"
        z = answer.theta + 10.0 ** rng.uniform(-7, 0) * rng.standard_normal(D)
        H = f.hessian(z) * (1.0 if k % 2 else rng.uniform(0.5, 2.0))
        q_model = form.c.copy()
        q_model[:D] += f.evaluate(z).gradient
        b = form.b - form.A[:, :D] @ z
        P = np.zeros((len(q_model), len(q_model)))
        P[:D, :D] = H
        tolerance = 10.0 ** rng.uniform(-12, -1)
        options = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), tolerance)
        options["max_iter"] = int(rng.integers(4, 40))
        found = run_clarabel(sp.csc_array(P), q_model, form.A, b, program.cones, options)
        if not all(np.all(np.isfinite(part)) for part in (found.x, found.s, found.y)):
            continue
        refined = refine(H, q_model, form.A, b, program.cones, found) if k % 3 == 0 else None
        x, dual = (
            np.array(part, dtype=float)
            for part in ((found.x, found.y) if refined is None else (refined.x, refined.y))
        )
        if k % 4 == 1:
            dual *= 1.0 + 10.0 ** rng.uniform(-8, -1) * rng.standard_normal(len(dual))
        if k % 5 == 1:
            x += 10.0 ** rng.uniform(-8, -1) * rng.standard_normal(len(x))
        x[:D] += z
        at = program.feasible(x)
        if at is None:
            continue
        point = engine._point(at)
        truth = np.linalg.norm(point.theta - answer.theta) - answer.distance
        for candidate in engine._candidates(point, [dual]):
            certificate = certify(point.evaluation, candidate, bound)
            assert truth <= certificate.distance
            if certificate.distance < 1e3:
                tight = localised(f, candidate, point.evaluation, certificate)
                assert truth <= tight.distance
            judged += np.isfinite(certificate.distance)
        if judged >= VALID:
            break
    record_property("valid candidates", int(judged))
    print(f"{name}: {judged} valid candidates")


@pytest.mark.parametrize("solver", ["CLARABEL", "SCS", "OSQP"])
def test_solvers_agree_within_their_certificates(solver):
    X, y, S, a = data()
    w = cp.Variable(D)
    r, C = 5 * cp.sum_largest(cp.abs(w), 2), [cp.diff(w, 2) >= -0.5]
    f = logistic(X, y, S, a)
    first = solve_over_cones(f, [w], r, C)
    other = solve_over_cones(f, [w], r, C, solver=solver)
    assert np.linalg.norm(first.theta - other.theta) <= first.distance + other.distance


@pytest.mark.parametrize("loss", [HUBER, SQUARED_HINGE], ids=["huber", "squared hinge"])
def test_losses_with_kinks_in_their_slopes(loss):
    rng = np.random.default_rng(2)
    A, c = rng.uniform(-0.5, 0.5, (500, D)), rng.standard_normal((500, 1))
    S, a = wishart(rng, D), rng.standard_normal(D)
    w = cp.Variable(D)
    r, C = 3 * cp.log_sum_exp(w), [cp.norm(w[:3]) + cp.norm1(w[3:]) <= 0.7]
    answer = solve_over_cones(finite_sum(ArrayRows(A, c), (loss,), S, a, np.zeros(D)), [w], r, C)
    terms = {
        "huber": lambda t: cp.sum(cp.huber(A @ t + c[:, 0])),
        "squared hinge": lambda t: cp.sum(cp.square(cp.pos(A @ t + c[:, 0]))),
    }
    found = whole(terms[loss.name], S, a, [w], r, C)
    np.testing.assert_allclose(answer.theta, found, atol=2e-5)


def test_multinomial():
    rng = np.random.default_rng(3)
    X = rng.uniform(-0.5, 0.5, (400, 3))
    labels = np.eye(3)[rng.integers(3, size=400)]
    S, a = wishart(rng, 9) * 0.2, rng.standard_normal(9)
    W = cp.Variable((3, 3))
    r, C = 2 * cp.sigma_max(W) + cp.norm1(W), [cp.sum(W) == 0.5]
    layout = np.arange(9).reshape(3, 3, order="F")
    f = finite_sum(ArrayRows(X, labels), Softmax(3, 1.0), S, a, np.zeros(9), layout=layout)
    answer = solve_over_cones(f, [W], r, C)

    def loss(t):
        T = X @ cp.reshape(t, (3, 3), order="F")
        return cp.sum(cp.log_sum_exp(T, axis=1)) - cp.sum(cp.multiply(labels, T))

    np.testing.assert_allclose(answer.theta, whole(loss, S, a, [W], r, C), atol=2e-5)


def test_a_function_known_by_its_gradients():
    X, y, S, a = data()
    bare = logistic(X, y, 0 * S, 0 * a)

    def function(theta):
        found = bare.evaluate(theta)
        return found.value, found.gradient

    smooth = PerturbedFunction(function, S, a, np.zeros(D), len(y), 0.6, 1.0, 20.0)
    w = cp.Variable(D)
    r, C = 5 * cp.sum_largest(cp.abs(w), 2), [cp.exp(w) <= 1.5]
    answer = solve_over_cones(smooth, [w], r, C)
    direct = solve_over_cones(logistic(X, y, S, a), [w], r, C)
    assert np.linalg.norm(answer.theta - direct.theta) <= answer.distance + direct.distance


def check(solver, r, C, w, **more):
    return check_cone_engine(solver, {}, [w], r, C, **{"accuracy": 1e-6, **more})


def test_checks_name_what_does():
    w = cp.Variable(4)
    assert check(None, cp.norm(w[:3]) + cp.norm(w[1:]), [], w) == "CLARABEL"
    assert check("OSQP", cp.sum_largest(w, 2), [cp.sum(w) == 1], w) == "OSQP"
    with pytest.raises(OptionError, match=r"of the installed solvers .*CLARABEL.*SCS"):
        check("OSQP", cp.norm(w[:3]) + cp.norm(w[1:]), [], w)
    with pytest.raises(OptionError, match="pass a larger accuracy"):
        check(None, cp.log_sum_exp(w), [], w, accuracy=1e-9)
    with pytest.raises(OptionError, match="only approximated"):
        check(None, cp.pnorm(w, np.pi), [], w)
    with pytest.raises(OptionError, match="no interior"):
        check(None, cp.norm_inf(w), [cp.norm(w) <= 1, w[0] >= 1], w)


def test_back_onto_the_constraints_with_other_variables():
    w, t = cp.Variable(3), cp.Variable(3)
    C = [t >= w, t >= -w, cp.sum(t) <= 1]
    answer = nearest([w], cp.sum(t), C, np.array([2.0, 0.0, -0.5]))
    np.testing.assert_allclose(answer.theta, [1.0, 0.0, 0.0], atol=1e-6)
    np.testing.assert_allclose(answer.auxiliary[t], [1.0, 0.0, 0.0], atol=1e-5)
    free = nearest([w], cp.sum(t), [t >= w, t >= -w], np.array([2.0, 0.0, -0.5]))
    np.testing.assert_allclose(free.theta, [2.0, 0.0, -0.5], atol=1e-8)
    np.testing.assert_allclose(free.auxiliary[t], [2.0, 0.0, 0.5], atol=1e-5)
