"""The quickest solver for a released quadratic: against CVXPY on the problem as it stands."""

import cvxpy as cp
import numpy as np
import pytest

from cvxqop.errors import AccuracyError
from cvxqop.solve.engines import stotos
from cvxqop.solve.engines.released import quickest, solve_quickly
from cvxqop.solve.smooth.quadratic import Quadratic

D = 12
THETA = cp.Variable(D)
RESTS = {
    "lasso": ("STOTOS", 2.0 * cp.norm1(THETA), [cp.norm_inf(THETA) <= 0.5]),
    "ridge": ("STOTOS", cp.sum_squares(THETA), []),
    "nothing": ("STOTOS", None, []),
    "box": ("STOTOS", None, [THETA >= 0.1, THETA <= 0.4]),
    "ball": ("CLARABEL", cp.norm1(THETA), [cp.norm(THETA) <= 0.7]),
    "entropy": ("CLARABEL", -cp.sum(cp.entr(THETA)), []),
}


def quadratic():
    rng = np.random.default_rng(4)
    A = rng.standard_normal((30, D))
    return Quadratic(A.T @ A + np.eye(D), 10.0 * rng.standard_normal(D), rng.standard_normal(D))


@pytest.mark.parametrize("name", RESTS)
def test_quickest_is_right(name):
    expected, r, C = RESTS[name]
    f = quadratic()
    answer, solver = solve_quickly(f, [THETA], r, C, accuracy=1e-8)
    assert solver == quickest([THETA], r, C) == expected
    step = THETA - f.anchor
    objective = f.g @ step + 0.5 * cp.quad_form(step, cp.psd_wrap(f.H)) + (0 if r is None else r)
    cp.Problem(cp.Minimize(objective), C).solve(solver="CLARABEL")
    np.testing.assert_allclose(answer.theta, THETA.value, atol=1e-5)


def test_a_failure_is_made_good_by_another_solver(monkeypatch):
    def failing(*_, **__):
        raise AccuracyError("working precision was reached")

    _, r, C = RESTS["lasso"]
    right, _ = solve_quickly(quadratic(), [THETA], r, C, accuracy=1e-9)
    monkeypatch.setattr(stotos, "solve_stotos", failing)
    answer, solver = solve_quickly(quadratic(), [THETA], r, C)
    assert solver == "CLARABEL"
    np.testing.assert_allclose(answer.theta, right.theta, atol=1e-7)
