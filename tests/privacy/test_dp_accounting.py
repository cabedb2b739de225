"""Every Gaussian number against dp-accounting: profile, calibration, stages, release, budget.

Its numerical composition gives an interval (rounded down and rounded up) that must hold ours; its
closed forms are exact up to rounding, and ours may differ from them in the safe direction only.
"""

import functools
import math

import pytest

from cvxqop.privacy.accounting.profile import gaussian_mu, gaussian_profile
from cvxqop.privacy.budget import Budget
from cvxqop.privacy.gaussian.options import Gaussian
from cvxqop.privacy.grid import ENLARGED
from cvxqop.privacy.mechanism import Sensitivity
from cvxqop.privacy.release import GaussianRelease

dp_accounting = pytest.importorskip(
    "dp_accounting", reason="dp-accounting is not installed: pip install 'cvxqop[accounting]'"
)
pld = pytest.importorskip("dp_accounting.pld", reason="dp-accounting is not installed")

ROUNDING = 1e-9
"""Relative, of quantities that both sides compute in closed form."""


def exact(epsilon, mu):
    """dp-accounting's δ_G(ε; μ), closed form."""
    loss = pld.privacy_loss_mechanism.GaussianPrivacyLoss(1.0 / mu)
    return loss.get_delta_for_epsilon(epsilon)


def composed(multipliers, pessimistic, step=3e-4):
    """dp-accounting's numerical composition of Gaussian mechanisms of these noise multipliers."""
    parts = [
        pld.privacy_loss_distribution.from_gaussian_mechanism(
            multiplier,
            pessimistic_estimate=pessimistic,
            value_discretization_interval=step,
            use_connect_dots=pessimistic,
        )
        for multiplier in multipliers
    ]
    return functools.reduce(lambda one, other: one.compose(other), parts)


def agrees(value, multipliers, epsilon):
    """Whether δ is inside their interval and, where it tells, within 1e-4 of its tight upper end.

    2e-12 allows for the tail mass that their composition drops upwards.
    """
    low = composed(multipliers, False).get_delta_for_epsilon(epsilon)
    high = composed(multipliers, True).get_delta_for_epsilon(epsilon)
    assert low <= value <= high * (1.0 + 1e-9) + 2e-12
    return value == pytest.approx(high, rel=1e-4, abs=2e-12)


def sensitivity(**changes):
    base = {
        "dimension": 6,
        "smoothness": 1.0,
        "anchor_gradient": 0.7,
        "quadratic": True,
        "adjacency": "add_remove",
        "offset": 0.7,
    }
    return Sensitivity(**{**base, **changes})


@pytest.mark.parametrize("mu", [1e-3, 0.05, 0.24, 1.0, 4.0, 20.0])
def test_profile(mu):
    for epsilon in (0.0, 0.1 * mu, mu, 0.5 * mu**2, 0.5 * mu**2 + 2.0 * mu, 0.5 * mu**2 + 4.0 * mu):
        theirs = exact(epsilon, mu)
        assert float(gaussian_profile(epsilon, mu)) == pytest.approx(theirs, rel=1e-7, abs=1e-15)


@pytest.mark.parametrize("epsilon", [1e-2, 0.1, 0.5, 1.0, 2.0, 4.0, 8.0, 50.0])
@pytest.mark.parametrize("delta", [1e-2, 1e-5, 1e-6, 1e-10, 1e-15])
def test_calibration(epsilon, delta):
    """No more than their noise but for rounding, and never less than what δ needs."""
    sigma = dp_accounting.get_sigma_gaussian(epsilon, delta, tol=1e-13)
    mu = gaussian_mu(epsilon, delta)
    assert mu == pytest.approx(1.0 / sigma, rel=1e-7)
    assert float(gaussian_profile(epsilon, mu)) <= delta
    assert dp_accounting.get_epsilon_gaussian(1.0 / mu, delta) <= epsilon * (1.0 + 1e-8) + 1e-11


def test_calibration_by_the_numerical_accountant():
    """The noise that their bisection over composed privacy losses settles on."""
    sigma = dp_accounting.calibrate_dp_mechanism(
        lambda: pld.PLDAccountant(value_discretization_interval=1e-3),
        lambda s: dp_accounting.SelfComposedDpEvent(dp_accounting.GaussianDpEvent(s), 3),
        1.0,
        1e-6,
        dp_accounting.LowerEndpointAndGuess(1.0, 8.0),
        tol=1e-3,
    )
    assert math.sqrt(3.0) / gaussian_mu(1.0, 1e-6) == pytest.approx(sigma, rel=1e-3)


@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
@pytest.mark.parametrize(
    ("stages", "accuracy"), [(1, None), (2, None), (4, None), (1, 1e-4), (3, 1e-4)]
)
def test_calibrated_mechanism(adjacency, stages, accuracy):
    """Curvature, every stage's gradient and the release as separate Gaussian mechanisms."""
    s = sensitivity(adjacency=adjacency)
    mechanism = Gaussian(stages=stages).calibrate(1.0, 1e-5, s, accuracy=accuracy)
    pair = adjacency == "replace_one"
    # κR = G0/B = 1; a pair of records moves the Hessian by √2 F and gradients by twice their bound
    shifts = [s.anchor_gradient, *mechanism.residual_bounds]
    multipliers = [mechanism.scale / (math.sqrt(2.0) if pair else 1.0)]
    multipliers += [
        scale / (2.0 * shift if pair else shift)
        for scale, shift in zip(mechanism.guard_scales, shifts, strict=True)
    ]
    multipliers = [m / ENLARGED for m in multipliers]  # statistics are rounded to a grid
    if accuracy is not None:
        multipliers.append(mechanism.release.scale / (2.0 * accuracy))
    assert mechanism.gdp_mu == pytest.approx(
        math.sqrt(sum(m**-2 for m in multipliers)), rel=ROUNDING
    )
    for epsilon in (0.5, 1.0):
        assert agrees(float(mechanism.profile(epsilon)), multipliers, epsilon)
    assert composed(multipliers, True).get_delta_for_epsilon(1.0) <= 1e-5 * (1.0 + 1e-4)


def test_release():
    release = GaussianRelease.of(accuracy=1e-6, mu=0.03)
    sigma = dp_accounting.get_sigma_gaussian(0.1, exact(0.1, 0.03))
    assert release.scale >= 2e-6 / 0.03
    assert release.scale / 2e-6 == pytest.approx(sigma, rel=1e-7)


def test_budget_of_gaussian_releases():
    """μ² add up, as in their composition of the three."""
    budget, multipliers = Budget(epsilon=4.0, delta=1e-4), []
    for epsilon in (0.5, 1.0, 1.5):
        mechanism = Gaussian().calibrate(epsilon, 1e-6, sensitivity())
        budget.spend(epsilon=epsilon, delta=1e-6, mechanism=mechanism)
        multipliers.append(1.0 / mechanism.gdp_mu)
        for total in (1.0, 2.0):
            assert agrees(budget.profile(total), multipliers, total)
    left = budget.remaining().mu
    whole = pld.privacy_loss_mechanism.GaussianPrivacyLoss.from_privacy_guarantee(
        pld.common.DifferentialPrivacyParameters(4.0, 1e-4)
    )
    spent = sum(m**-2 for m in multipliers)
    expected = math.sqrt(whole.standard_deviation**-2 - spent)
    assert left == pytest.approx(expected, rel=1e-6)


def test_budget_with_a_plain_release():
    """One (ε, δ) release beside a Gaussian: not below the best that their composition allows."""
    budget = Budget(epsilon=3.0, delta=1e-4)
    mechanism = Gaussian().calibrate(1.0, 1e-6, sensitivity())
    budget.spend(epsilon=1.0, delta=1e-6, mechanism=mechanism)
    budget.spend(epsilon=0.5, delta=1e-7)
    plain = pld.privacy_loss_distribution.from_privacy_parameters(
        pld.common.DifferentialPrivacyParameters(0.5, 1e-7), value_discretization_interval=3e-4
    )
    both = plain.compose(composed([1.0 / mechanism.gdp_mu], True))
    for epsilon in (1.0, 1.5, 2.0):
        theirs = both.get_delta_for_epsilon(epsilon)
        assert budget.profile(epsilon) >= theirs * (1.0 - 1e-4) - 2e-12
