"""Records with several rows, end to end: constants, mechanisms, answers."""

import cvxpy as cp
import numpy as np
import pytest

import cvxqop

RNG = np.random.default_rng(0)
N = 3000
X, Z = RNG.uniform(-0.5, 0.5, (2, N, 3))
y = X @ [0.5, 0.0, -0.5]
s = np.where(Z @ [3.0, -3.0, 0.0] + RNG.logistic(size=N) > 0, 1.0, -1.0)
w, v = cp.Variable(3, name="w"), cp.Variable(3, name="v")
SQUARES = cp.sum_squares(X @ w - y)
BOUNDS = cvxqop.Bounds(row_norm=1.0, offset=1.0)


def plan(loss, private, **options):
    box = [cp.norm_inf(variable) <= 4 for variable in loss.variables()]
    problem = cp.Problem(cp.Minimize(loss), box)
    stated = {"bounds": BOUNDS, "epsilon": 1.0, "delta": 1e-6, **options}
    return cvxqop.plan(problem, private=private, **stated)


def test_constants_add_up():
    """κ = 2 and ¼, R = 1, slopes 2B = 2 and ½ at the origin. w and v have no entry in common: the
    larger L, and the root of the sum of squares for G0 and F."""
    loss = SQUARES + cp.sum(cp.logistic(-cp.multiply(s, Z @ v)))
    found = plan(loss, [X, Z, y, s]).mechanism.sensitivity
    assert (found.smoothness, found.trace_bound) == (2.0, 2.25)
    assert found.anchor_gradient == pytest.approx(4.25**0.5, rel=1e-12)
    assert found.frobenius_bound == pytest.approx((4.0 + 0.25**2) ** 0.5, rel=1e-12)
    assert (found.hessian_rank, found.gradient_range) == (2, 2)
    assert found.dimension == 6


@pytest.mark.parametrize("perturbation", ["wishart", "gaussian", "linear"])
def test_much_privacy_budget_comes_close_to_no_privacy(perturbation):
    loss = SQUARES + 0.5 * cp.sum_squares(Z @ w - y)
    problem = cp.Problem(cp.Minimize(loss), [cp.norm(w, 2) <= 3])
    solution = cvxqop.privatize(
        problem, private=[X, Z, y], bounds=BOUNDS, epsilon=1e6, delta=1e-6,
        perturbation=perturbation, seed=0,
    )  # fmt: skip
    found = solution[w].copy()
    A, b = np.vstack([np.sqrt(2.0) * X, Z]), np.concatenate([np.sqrt(2.0) * y, y])
    np.testing.assert_allclose(found, np.linalg.lstsq(A, b, rcond=None)[0], atol=2e-2)


def test_a_cut_at_a_common_minimiser_is_that_of_each_row():
    """G0 = Σ κ_j R_j · R_j η, with rows of norm 10 and 1."""
    loss = cp.sum_squares(10.0 * (X @ w - y)) + cp.sum_squares(Z @ w - y)
    anchor = cvxqop.CommonMinimizer(np.zeros(3), error=0.5)
    found = plan(loss, [X, Z, y], anchor=anchor, perturbation="wishart").mechanism.sensitivity
    assert found.anchor_gradient == pytest.approx(2 * 100 * 0.5 + 2 * 0.5, rel=1e-12)


def test_what_needs_one_row_is_refused():
    loss = SQUARES + cp.sum_squares(Z @ w)
    with pytest.raises(cvxqop.OptionError, match="use stages=1"):
        plan(loss, [X, Z, y], perturbation=cvxqop.Gaussian(stages=2))
    with pytest.raises(cvxqop.OptionError, match="perturbation='wishart'"):
        plan(loss, [X, Z, y], perturbation=cvxqop.Linear(clip=1.0))
