"""The joint test: exact where it claims to be, conservative where r has kinks."""

import cvxpy as cp
import numpy as np
import pytest
from releases import Case
from scipy.stats import kstest

import cvxqop
from cvxqop.inference import joint_test
from cvxqop.inference.joint_test import _covariance
from cvxqop.inference.solving import PublicRest

SMOOTH = {
    "nothing": lambda v: (None, []),
    "ridge": lambda v: (5 * cp.sum_squares(v - 0.1), []),
    "exponentials": lambda v: (cp.sum(cp.exp(v)), []),
}
KINKED = {
    "lasso": lambda v: (30 * cp.norm1(v), []),
    "box": lambda v: (None, [cp.abs(v) <= 0.2]),
    "simplex": lambda v: (None, [v >= 0, cp.sum(v) == 0.7]),
    "group": lambda v: (20 * (cp.norm(v[:2]) + cp.norm(v[2:])), []),
}


@pytest.mark.parametrize("name", SMOOTH)
def test_a_smooth_rest_has_uniform_p_values(name):
    """Kolmogorov-Smirnov with a false-alarm rate of 1e-6, at a seed that is fixed."""
    case = Case(d=4)
    r, C = SMOOTH[name](case.theta)
    exact = case.exact(r, C)
    count = 40 if name == "exponentials" else 300
    found = [loss.p_value(exact, r, C) for loss in case.releases(count)]
    assert kstest(found, "uniform").pvalue > 1e-6


def test_the_wishart_ensemble_is_simulated():
    case = Case(d=3, perturbation=cvxqop.Wishart())
    exact = case.exact()
    found = [loss.p_value(exact, seed=5) for loss in case.releases(60)]
    assert kstest(found, "uniform").pvalue > 1e-6
    assert min(found) > 0.0


@pytest.mark.parametrize("name", KINKED)
def test_with_kinks_it_is_conservative(name):
    """P(p ≤ .2) ≤ .2: of 60, more than 25 have a probability below 1e-4."""
    case = Case(d=4)
    r, C = KINKED[name](case.theta)
    exact = case.exact(r, C)
    count = 60 if name in ("lasso", "box") else 12
    found = np.array([loss.p_value(exact, r, C) for loss in case.releases(count)])
    assert np.mean(found <= 0.2) <= 25 / 60
    assert found.max() > 0.5


@pytest.mark.parametrize("name", ["lasso", "box", "simplex"])
def test_far_from_the_solution_it_rejects(name):
    case = Case(d=4)
    r, C = KINKED[name](case.theta)
    wrong = np.array([-0.1, 0.1, 0.1, 0.1]) if name != "simplex" else np.array([0, 0.3, 0.3, 0.1])
    assert case.loss.p_value(wrong, r, C) < 1e-4


def test_a_point_outside_of_the_constraints_has_none():
    case = Case(d=4)
    v = case.theta
    assert case.loss.p_value(np.ones(4), None, [v <= 0.5]) == 0.0
    assert case.loss.p_value(np.ones(4), None, [cp.norm(v) <= 0.5]) == 0.0
    assert case.loss.p_value(np.ones(4), None, [cp.sum(v) == 0.5]) == 0.0


@pytest.mark.parametrize("name", ["lasso", "box"])
def test_two_ways_to_minimise_over_subgradients_agree(name):
    case = Case(d=4)
    r, C = KINKED[name](case.theta)
    exact = case.exact(r, C)
    rest = PublicRest.of(case.loss, r, C)
    point = joint_test._snapped(exact, rest.rest)
    residual = case.loss.raw_hessian @ point + case.loss.first_gradient
    root = np.linalg.cholesky(_covariance(3.0, 5.0, point, np.arange(4)[:, None]))
    split = joint_test._statistic(residual, root, point, rest)
    cones = joint_test._over_cones(residual, root, point, rest)
    np.testing.assert_allclose(cones, split, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("k", [1, 2])
def test_covariance_is_that_of_simulated_noise(k):
    rng = np.random.default_rng(0)
    U, s, sigma, d, count = rng.standard_normal((3, k)), 2.0, 0.5, 3, 200_000
    Z = rng.standard_normal((count, d, d))
    noise = 0.5 * s * (Z + Z.swapaxes(1, 2)) @ U + sigma * rng.standard_normal((count, d, k))
    layout = np.arange(d * k).reshape(k, d).T
    flat = np.empty((count, d * k))
    flat[:, layout] = noise
    expected = np.cov(flat, rowvar=False)
    found = _covariance(sigma, s, U.ravel(order="F"), layout)
    np.testing.assert_allclose(found, expected, atol=0.03 * np.abs(expected).max())


def test_values_of_other_shapes_are_refused():
    case = Case(d=4)
    for wrong in (np.zeros(3), np.zeros((4, 1)), {}):
        with pytest.raises(cvxqop.OptionError, match="theta"):
            case.loss.p_value(wrong)
    given = case.loss.p_value({case.theta: np.zeros(4)})
    assert given == case.loss.p_value(np.zeros(4))


def test_at_the_anchor_of_a_loss_without_targets_nothing_is_random():
    """Σ (a'θ)² has the gradient 0 at 0, which needs no noise: 0 is the solution, or it is not."""
    case = Case(d=4)
    loss = cvxqop.private_loss(
        cp.sum_squares(case.X @ case.theta),
        private=[case.X],
        bounds=cvxqop.Bounds(row_norm=1.0),
        perturbation=cvxqop.Gaussian(),
        epsilon=1.0,
        delta=1e-6,
    )
    assert loss.noise.gradient_scale == 0.0
    assert loss.p_value(np.zeros(4)) == 1.0
    assert loss.p_value(np.zeros(4), cp.sum(case.theta)) == 0.0
    assert loss.p_value(np.zeros(4), cp.norm1(case.theta)) == 1.0
    assert loss.p_value(np.full(4, 0.5)) < 1e-6
