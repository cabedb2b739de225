"""The certificate is never below the truth, over random problems of every kind.

The full size is 2,400 problems (``CVXQOP_FULL=1``), the usual one 240. The truth is the same
problem solved to a far smaller certified distance; a share of them is checked against CLARABEL.
"""

import os

import cvxpy as cp
import numpy as np
import pytest
from instances import HUBER, LOGISTIC, SQUARED, SQUARED_HINGE, finite_sum, wishart

from cvxqop.problem.records.rows import ArrayRows
from cvxqop.solve.certificate import Curvature, certify, localised
from cvxqop.solve.engines.monitor import Goal, Monitor
from cvxqop.solve.engines.newton import judge, minimise_sum
from cvxqop.solve.rest.prox import split
from cvxqop.solve.smooth.quadratic import Quadratic

pytestmark = pytest.mark.blas

SIZE = 240
CHUNKS = 10 if "CVXQOP_FULL" in os.environ else 1
LOSSES = [SQUARED, LOGISTIC, HUBER, SQUARED_HINGE]


def random_problem(seed):
    """Rows, loss, perturbation and rest, some of them badly scaled."""
    rng = np.random.default_rng(seed)
    loss = LOSSES[seed % 4]
    d = int(rng.integers(2, 13))
    n = int(rng.integers(0, d)) if rng.random() < 0.3 else int(rng.integers(d, 12 * d))
    A = rng.standard_normal((n, d))
    if rng.random() < 0.3:
        A = A * np.logspace(0, -rng.uniform(1, 3), d)
    if rng.random() < 0.3:
        A = A + rng.standard_normal(d)
    C = rng.standard_normal((n, 1))
    S = wishart(rng, d, 10 ** rng.uniform(-1, 1))
    f = finite_sum(ArrayRows(A, C), (loss,), S, rng.standard_normal(d) * 3, np.zeros(d))
    v = cp.Variable(d)
    level = 10 ** rng.uniform(-1, 0.5) * (1 + np.sqrt(n))
    half = d // 2
    # The largest square that fits, for the nuclear norm.
    side = int(np.sqrt(d))
    square = cp.reshape(v[: side * side], (side, side), order="F")
    regulariser = [
        None,
        level * cp.norm1(v),
        level * (cp.norm(v[:half]) + cp.norm(v[half:])),
        level * cp.normNuc(square),
    ][int(rng.integers(4))]
    size = 10 ** rng.uniform(-1.5, 0.5)
    constraints = [
        [],
        [cp.norm_inf(v) <= size],
        [cp.norm(v) <= size],
        [v >= 0, cp.sum(v) == size],
    ][int(rng.integers(4))]
    return f, split([v], regulariser, constraints), v, regulariser, constraints


def objective(f, rest, z):
    return f.evaluate(z).value + rest.value(z)


def solve(f, rest, goal, seed=0, limit=None):
    return minimise_sum(
        f, rest, f.anchor, goal, Monitor(max_iter=limit), np.random.default_rng(seed)
    )


def early_candidates(f, rest, rng):
    """Points of C with a subgradient, at several distances from the minimiser."""
    curvature = Curvature(f.lower_curvature())
    top = float(np.linalg.eigvalsh(f.hessian(f.anchor))[-1]) * 4
    t = 1.0 / top
    x = rng.standard_normal(f.dimension)
    for k in range(40):
        if rest.fused:
            found = rest.candidate(x - t * f.evaluate(x).gradient, t)
            x = found.point
        else:
            theta, u_g = rest.prox_penalty(x, t)
            y = 2 * theta - x - t * f.evaluate(theta).gradient
            projection = rest.project(y)
            found = rest.split_candidate(u_g, projection, t)
            x = x + projection.point - theta
        if k in (3, 12, 39):
            yield found, curvature


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_bounds_are_never_below_the_truth(chunk):
    ratios, checks, against_clarabel = [], 0, 0
    for seed in range(SIZE * chunk, SIZE * (chunk + 1)):
        f, rest, v, regulariser, constraints = random_problem(seed)
        rng = np.random.default_rng(10_000 + seed)
        truth = solve(f, rest, Goal(distance=1e-7), seed)
        p = truth.candidate.point
        best = objective(f, rest, p)
        for candidate, curvature in early_candidates(f, rest, rng):
            evaluation = f.evaluate(candidate.point)
            plain = certify(evaluation, candidate, curvature)
            judged = judge(evaluation, candidate, rest, curvature).certificate
            tight = localised(f, candidate, evaluation, judged)
            gap = objective(f, rest, candidate.point) - best
            distance = float(np.linalg.norm(candidate.point - p))
            # The truth itself is known up to its own certificate and the rounding of Φ.
            doubt = truth.certificate.gap + 1e-13 * (1 + abs(best))
            for bound in (plain, judged, tight):
                assert bound.gap >= gap - doubt
                assert bound.distance >= distance - truth.certificate.distance
                checks += 1
            if gap > 1e3 * doubt:
                ratios.append(tight.gap / gap)
        if seed % 24 == 0 and f.quadratic:
            H = f.gram_form()
            problem = cp.Problem(
                cp.Minimize(
                    0.5 * cp.quad_form(v, cp.psd_wrap(H.H))
                    + H.g @ v
                    + (0 if regulariser is None else regulariser)
                ),
                constraints,
            )
            problem.solve(solver="CLARABEL")
            np.testing.assert_allclose(p, v.value, atol=2e-3 * (1 + np.abs(p).max()))
            against_clarabel += 1
    assert checks == 9 * SIZE
    assert against_clarabel >= SIZE // 24
    assert np.median(ratios) <= 3.0


def test_unconstrained_quadratic_is_exact():
    """Without g and C the gap is ½ ∇f'H⁻¹∇f, and the certificate is that."""
    rng = np.random.default_rng(1)
    H = wishart(rng, 5)
    f = Quadratic(H, rng.standard_normal(5), np.zeros(5))
    rest = split([cp.Variable(5)], None, [])
    z = rng.standard_normal(5)
    candidate = rest.candidate(z, 1.0)
    certificate = certify(f.evaluate(z), candidate, Curvature(H))
    gradient = f.gradient(z)
    np.testing.assert_allclose(
        certificate.gap, 0.5 * gradient @ np.linalg.solve(H, gradient), rtol=1e-9
    )


@pytest.mark.parametrize("d", [3, 50, 300])
def test_least_eigenvalue_is_rounded_down(d):
    rng = np.random.default_rng(2)
    M = wishart(rng, d)
    truth = float(np.linalg.eigvalsh(M)[0])
    assert 0.4 * truth <= Curvature(M).least <= truth * (1 + 1e-12)


def test_a_singular_matrix_certifies_nothing():
    f = Quadratic(np.ones((2, 2)), np.ones(2), np.zeros(2))
    rest = split([cp.Variable(2)], None, [])
    certificate = certify(f.evaluate(np.zeros(2)), rest.candidate(np.zeros(2), 1.0), Curvature(f.H))
    assert certificate.gap == np.inf
    assert certificate.distance == np.inf


def test_not_a_number_certifies_nothing():
    f = Quadratic(np.eye(2), np.array([np.nan, 0.0]), np.zeros(2))
    rest = split([cp.Variable(2)], None, [])
    found = certify(f.evaluate(np.zeros(2)), rest.candidate(np.zeros(2), 1.0), Curvature(f.H))
    assert found.distance == np.inf
