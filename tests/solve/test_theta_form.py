"""The theta form of the certificate: never below the truth, and the third of the three bounds."""

import numpy as np
import pytest
from test_certificate import random_problem

from cvxqop.solve.certificate import Curvature, smallest, theta_form
from cvxqop.solve.engines.stochastic import certified_point
from cvxqop.solve.engines.stotos import solve_stotos

pytestmark = pytest.mark.blas


def moved(f, rest):
    return f.plus(rest.Q, rest.q) if rest.Q is not None or np.any(rest.q) else f


@pytest.mark.parametrize("seed", range(60))
def test_never_below_the_truth(seed):
    f, rest, v, regulariser, constraints = random_problem(seed)
    exact = solve_stotos(f, [v], regulariser, constraints, accuracy=1e-7).theta
    f = moved(f, rest)
    truth = f.evaluate(exact).value + rest.value(exact)
    curvature = Curvature(f.lower_curvature())
    rng = np.random.default_rng(seed)
    step = 1.0 / np.linalg.norm(f.hessian(np.zeros(f.dimension)), 2)
    for scale in (1.0, 1e-2, 1e-4):
        x = exact + scale * rng.standard_normal(f.dimension)
        theta, u_g = rest.prox_penalty(x, step)
        z = rest.project(theta).point
        at_z = f.evaluate(z)
        projection = rest.project(2.0 * theta - x - step * at_z.gradient)
        found = theta_form(
            (at_z, rest.value(z)),
            (f.evaluate(theta), rest.value(theta)),
            projection.point,
            theta,
            u_g,
            projection.normal / step,
            curvature,
        )
        # The truth itself is known to the square of its certified distance.
        slack = 1e-9 * (1.0 + abs(truth))
        if projection.slack == 0.0 and projection.violation == 0.0:
            assert found.gap >= at_z.value + rest.value(z) - truth - slack
            assert found.distance >= np.linalg.norm(z - exact) - 1e-6
        point = certified_point(f, rest, z, x, step, curvature)
        if not rest.fused:
            both = smallest(point.certificate, found)
            assert point.certificate.gap <= both.gap * (1.0 + 1e-9)
        assert point.certificate.gap >= at_z.value + rest.value(z) - truth - slack
