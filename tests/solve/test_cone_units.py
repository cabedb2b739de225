"""The engine for any convex rest in other units of θ: the same answer, and CVXPY's own."""

import cvxpy as cp
import numpy as np
import pytest
from cvxpy.transforms.indicator import indicator
from instances import LOGISTIC, finite_sum

from cvxqop.problem.records.rows import ArrayRows
from cvxqop.solve.cones.engine import nearest, solve_over_cones
from cvxqop.solve.smooth.quadratic import Quadratic

# CVXPY's own solves at tight tolerances.
pytestmark = pytest.mark.filterwarnings("ignore:Solution may be inaccurate")

D = 4
RNG = np.random.default_rng(7)
X = RNG.uniform(-0.5, 0.5, (400, D))
Y = np.where(X @ [2.0, -2.0, 1.0, 0.0] + 0.3 * RNG.standard_normal(400) > 0, 1.0, -1.0)
S, A = 4.0 * np.eye(D), 3.0 * RNG.standard_normal(D)


def rests(k):
    """r(θ/k) over kC: variables, r, C. Those of `ASIDE` keep variables aside, out of reach."""
    w, z, t = cp.Variable(D, name="w"), cp.Variable(D), cp.Variable(D)
    s = cp.Variable(nonneg=True, name="s")
    return {
        "groups": ([w], 5 / k * (cp.norm(w[:3]) + cp.norm(w[1:])), [cp.diff(w, 2) >= -0.5 * k]),
        "squares": ([w], 30 / k**2 * cp.sum_squares(cp.pos(w - 0.2 * k)), []),
        "quotient": ([w], 30 * cp.sum_squares(cp.pos(w - 0.2 * k)) / k**2, []),
        "epigraph": ([w], 8 / k * cp.sum(t), [t >= w, t >= -w, cp.norm(t) <= k]),
        "exponentials": ([w], cp.sum(cp.exp(w / k)), [cp.log_sum_exp(w / k) <= 1.6]),
        "perspective": ([w], 6 / k * (cp.perspective(cp.square(w[0]), s) + s), [s >= 1e-3 * k]),
        "support": ([w], 6 / k * cp.suppfunc(z, [cp.norm(z) <= 1, z <= 0.7])(w), []),
        "indicator": ([w], indicator([w >= 0.1 * k]), []),
    }


ASIDE = {"perspective", "support", "indicator"}


def logistic(k):
    """Σ log(1 + exp(−y x'θ/k)) with noise: the loss of data in units k times as large."""
    rows = ArrayRows(-Y[:, None] * X / k, np.zeros((len(Y), 1)))
    return finite_sum(rows, (LOGISTIC,), S / k**2, A / k, np.zeros(D))


def solved(name, k):
    variables, r, C = rests(k)[name]
    accuracy = (1e-6 if name == "exponentials" else 1e-7) * k
    answer = solve_over_cones(logistic(k), variables, r, C, accuracy=accuracy, size=k)
    assert answer.distance <= accuracy
    return answer.theta / k


@pytest.mark.parametrize("name", rests(1.0))
def test_units_are_no_matter(name):
    (w,), r, C = rests(1.0)[name]
    loss = cp.sum(cp.logistic(-cp.multiply(Y, X @ w))) + A @ w + 2 * cp.sum_squares(w)
    tight = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), 1e-11)
    cp.Problem(cp.Minimize(loss + r), C).solve(solver="CLARABEL", **tight)
    expected = w.value
    one = solved(name, 1.0)
    np.testing.assert_allclose(one, expected, atol=1e-5)
    for k in (1e6, 1e-6):
        np.testing.assert_allclose(solved(name, k), one, atol=2e-7)


@pytest.mark.parametrize("name", sorted(set(rests(1.0)) - ASIDE - {"exponentials"}))
def test_powers_of_two_change_no_bit(name):
    one = solved(name, 1.0)
    for k in (2.0**30, 2.0**-30):
        assert np.array_equal(solved(name, k), one)


@pytest.mark.parametrize("k", [1.0, 1e6, 1e-6])
def test_back_into_the_domain_of_the_regulariser(k):
    """A release beside dom r is put back onto it, in any units."""
    w = cp.Variable(3)
    r, C = -cp.sum(cp.entr(w)), [cp.sum(w) <= k]
    back = nearest([w], r, C, k * np.array([0.9, 0.7, -0.2]))
    np.testing.assert_allclose(back.theta / k, [0.6, 0.4, 0.0], atol=1e-6)
    assert not back.fault([w], r, C)


def test_a_form_far_out_of_its_constraints():
    """f alone has its minimiser 10^4 times farther away than C reaches."""
    w, u = cp.Variable(3), cp.Variable(3)
    f = Quadratic(np.eye(3), -1e4 * np.array([3.0, 2.0, -1.0]), np.zeros(3))
    C = [cp.abs(w) <= u, cp.sum(u) <= 1]
    found = solve_over_cones(f, [w], None, C, accuracy=1e-5, size=1.0)
    np.testing.assert_allclose(found.theta, [1.0, 0.0, 0.0], atol=1e-5)
