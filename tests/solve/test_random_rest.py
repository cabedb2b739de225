"""Random public terms and sets of all atoms: no answer is worse than CVXPY's own."""

import contextlib
import os
import warnings

import cvxpy as cp
import numpy as np
import pytest
from instances import wishart
from random_rest import rest

from cvxqop.errors import CvxqopError
from cvxqop.solve.engines.conic import solve_conic
from cvxqop.solve.engines.stotos import solve_stotos
from cvxqop.solve.rest.agreement import Public, agrees
from cvxqop.solve.rest.prox import NotSplittable, split
from cvxqop.solve.smooth.quadratic import Quadratic

TERMS = 2000 if os.environ.get("CVXQOP_FULL") else 150


def quadratic(rng, d):
    """A released quadratic with its minimiser near the origin."""
    H = wishart(rng, d) * float(10.0 ** rng.uniform(-1, 1))
    return Quadratic(H, -H @ rng.standard_normal(d), np.zeros(d))


def reference(f, w, r, C):
    """CVXPY's own solution of the problem, None where its solver does not reach one."""
    objective = 0.5 * cp.quad_form(w, cp.psd_wrap(f.H)) + f.g @ w
    problem = cp.Problem(cp.Minimize(objective if r is None else objective + r), C)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            problem.solve(solver="CLARABEL")
        except (cp.SolverError, NotImplementedError):
            return None
    found = None if problem.status != "optimal" else np.array(w.value)
    w.value = None
    return found


def measured(f, w, r, C, theta):
    """Φ, the size of its parts, and the largest violation, as CVXPY says."""
    w.value = theta
    own = 0.0 if r is None else float(r.value)
    violation = max((float(np.max(c.violation())) for c in C), default=0.0)
    w.value = None
    return f.value(theta) + own, abs(f.value(theta)) + abs(own), violation


def answers(f, w, r, C):
    """By each way that takes the problem."""
    ways = {
        "conic": lambda: solve_conic(f, [w], r, C).theta,
        "STOTOS": lambda: solve_stotos(f, [w], r, C, accuracy=1e-6).theta,
    }
    try:
        split([w], r, C)
    except NotSplittable:
        del ways["STOTOS"]
    for way, solve in ways.items():
        found = None
        with warnings.catch_warnings(), contextlib.suppress(CvxqopError, cp.SolverError):
            warnings.simplefilter("ignore", UserWarning)
            found = solve()
        if found is not None:
            yield way, found


@pytest.mark.parametrize("part", range(5))
def test_no_answer_is_worse_than_that_of_cvxpy(part):
    solved = 0
    for k in range(TERMS // 5):
        rng = np.random.default_rng([part, k])
        w = cp.Variable(4, name="w")
        name, r, C = rest(rng, w)
        f = quadratic(rng, 4)
        best = reference(f, w, r, C)
        if best is None:
            continue
        least, size, own = measured(f, w, r, C, best)
        for way, theta in answers(f, w, r, C):
            assert w.value is None
            solved += 1
            value, _, violation = measured(f, w, r, C, theta)
            assert value <= least + 1e-6 * size, (part, k, way, name)
            assert violation <= max(1e-6, 2.0 * own), (part, k, way, name)
    assert solved > TERMS // 6


SQUARES = {
    "sum_squares(pos)": lambda w: cp.sum_squares(cp.pos(-w)),
    "sum of squares of pos": lambda w: cp.sum(cp.square(cp.pos(w - 0.5))),
    "sum_squares(abs)": lambda w: cp.sum_squares(cp.abs(w)),
    "sum_squares(norm)": lambda w: cp.sum_squares(cp.norm(w, 2)),
    "sum_squares(exp)": lambda w: cp.sum_squares(cp.exp(w)),
    "squared norm of pos": lambda w: cp.norm(cp.pos(w), 2) ** 2,
    "quad_over_lin": lambda w: cp.quad_over_lin(cp.pos(w), 2),
    "sum of maximum squared": lambda w: cp.sum(cp.square(cp.maximum(w, 0.3))),
}


@pytest.mark.parametrize("name", SQUARES)
def test_a_square_of_what_is_not_affine_is_not_split(name):
    w = cp.Variable(4)
    with pytest.raises(NotSplittable):
        split([w], SQUARES[name](w), [])
    with pytest.raises(NotSplittable):
        split([w], None, [SQUARES[name](w) <= 1.0])


def test_a_wrong_reading_is_seen():
    """The values of CVXPY, not the spelling, decide: planted misreadings do not pass."""
    w = cp.Variable(4)
    ridge = split([w], 5.0 * cp.sum_squares(w), [])
    assert agrees(ridge, Public([w], 5.0 * cp.sum_squares(w) + 3.0, [])) == ""
    assert agrees(ridge, Public([w], 5.0 * cp.sum_squares(cp.pos(w)), [])) == "regulariser"
    assert agrees(ridge, Public([w], 5.0001 * cp.sum_squares(w), [])) == "regulariser"
    assert agrees(ridge, Public([w], 5.0 * cp.sum_squares(w) - cp.log(w[0]), [])) == "regulariser"
    ball = split([w], None, [cp.norm(w) <= 0.8])
    assert agrees(ball, Public([w], None, [cp.sum_squares(w) <= 0.64])) == ""
    assert agrees(ball, Public([w], None, [cp.norm(cp.pos(w)) <= 0.8])) == "constraints"
    assert agrees(ball, Public([w], None, [cp.norm1(w) <= 0.8])) == "constraints"
    assert agrees(ball, Public([w], None, [])) == "constraints"
    bounded = cp.Variable(4, nonneg=True)
    orthant = split([bounded], None, [])
    assert agrees(orthant, Public([bounded], None, [])) == ""
    assert agrees(orthant, Public([w], None, [])) == "constraints"
