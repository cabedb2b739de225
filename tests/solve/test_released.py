"""The quickest solver for a released quadratic: against CVXPY on the problem as it stands."""

import cvxpy as cp
import numpy as np
import pytest

from cvxqop.solve.engines.conic import quickest, solve_conic
from cvxqop.solve.engines.stotos import solve_stotos
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
    assert quickest([THETA], r, C) == expected
    if expected == "STOTOS":
        answer = solve_stotos(f, [THETA], r, C, accuracy=1e-8)
    else:
        answer = solve_conic(f, [THETA], r, C, solver=expected)
    step = THETA - f.anchor
    objective = f.g @ step + 0.5 * cp.quad_form(step, cp.psd_wrap(f.H)) + (0 if r is None else r)
    cp.Problem(cp.Minimize(objective), C).solve(solver="CLARABEL")
    np.testing.assert_allclose(answer.theta, THETA.value, atol=1e-5)
