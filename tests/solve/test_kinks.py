"""Losses whose curvature vanishes, on hardly any ridge: a flat model oversteps."""

import cvxpy as cp
import numpy as np
import pytest
from instances import Loss, finite_sum

from cvxqop.problem.records.rows import ArrayRows
from cvxqop.solve.engines.stotos import solve_stotos

pytestmark = pytest.mark.blas


def huber(m):
    return Loss(
        "huber",
        lambda t: np.where(np.abs(t) <= m, t * t, 2 * m * np.abs(t) - m * m),
        lambda t: 2 * np.clip(t, -m, m),
        lambda t: np.where(np.abs(t) <= m, 2.0, 0.0),
        2.0,
    )


@pytest.mark.parametrize("ridge", [1e-6, 1e-3])
@pytest.mark.parametrize("threshold", [1e-4, 1e-3, 1e-2])
def test_narrow_huber_losses_are_certified(threshold, ridge):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((50, 4))
    y = np.clip(A @ [0.9, -0.5, 0.0, 0.3] + 0.3 * rng.standard_normal(50), -1, 1)
    rows = ArrayRows(A, -y[:, None])
    f = finite_sum(rows, (huber(threshold),), ridge * np.eye(4), 1e-9 * np.ones(4), np.zeros(4))
    v = cp.Variable(4)
    for r, C in ((None, []), (threshold * cp.norm1(v), [cp.norm_inf(v) <= 0.4])):
        answer = solve_stotos(f, [v], r, C, accuracy=1e-5, seed=np.random.default_rng(1))
        assert answer.distance <= 1e-5
        fits = cp.sum(cp.huber((A @ v - y) / threshold, 1)) * threshold
        penalty = 0.5 * ridge / threshold * cp.sum_squares(v) + 1e-9 / threshold * cp.sum(v)
        rest = 0.0 if r is None else r / threshold
        exact = cp.Problem(cp.Minimize(fits + penalty + rest), C)
        exact.solve(solver="CLARABEL")
        scaled = f.evaluate(answer.theta).value / threshold
        scaled += 0.0 if r is None else float(np.abs(answer.theta).sum())
        assert scaled <= exact.value * (1.0 + 1e-7)
