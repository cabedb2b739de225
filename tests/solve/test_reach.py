"""The reach of a constraint set against the farthest of many points of it."""

import cvxpy as cp
import numpy as np
import pytest

from cvxqop.solve.rest.prox import split
from cvxqop.solve.rest.reach import reach

pytestmark = pytest.mark.blas

THETA = cp.Variable(3)


@pytest.mark.parametrize(
    ("constraints", "exact"),
    [
        ([cp.norm_inf(THETA) <= 2], 2 * np.sqrt(3)),
        ([THETA >= -1, THETA <= [1, 2, 3]], np.sqrt(14)),
        ([cp.norm(THETA, 2) <= 2], 2.0),
        ([cp.norm1(THETA) <= 2], 2.0),
        ([cp.norm(2 * THETA - 2, 2) <= 2], np.sqrt(3) + 1),
        ([cp.norm(THETA[:2], 2) <= 2, cp.abs(THETA[2]) <= 1], np.sqrt(5)),
        ([THETA >= 0], np.inf),
        ([], np.inf),
    ],
)
def test_from_the_origin(constraints, exact):
    assert reach(split([THETA], None, constraints), np.zeros(3)) == pytest.approx(exact)


def test_covers_the_set_from_any_anchor():
    rng = np.random.default_rng(0)
    anchor = np.array([0.3, -0.2, 0.5])
    points = rng.standard_normal((20_000, 3))
    ball = points / np.linalg.norm(points, axis=1)[:, None] * 1.5
    bound = reach(split([THETA], None, [cp.norm(THETA, 2) <= 1.5]), anchor)
    farthest = np.linalg.norm(ball - anchor, axis=1).max()
    assert farthest <= bound <= farthest * 1.02
