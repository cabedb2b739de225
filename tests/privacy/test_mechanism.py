"""The calibrated mechanism: its own profile, its utility bound, its draws."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cvxqop.errors import CalibrationError, OptionError
from cvxqop.privacy.gaussian.options import Gaussian
from cvxqop.privacy.linear.options import Linear
from cvxqop.privacy.mechanism import Sensitivity
from cvxqop.privacy.noise import SeededNoise
from cvxqop.privacy.utility import choose_wishart
from cvxqop.privacy.wishart.options import Wishart


def sensitivity(**changes):
    base = {
        "dimension": 10,
        "smoothness": 1.0,
        "anchor_gradient": 1.0,
        "quadratic": True,
        "adjacency": "add_remove",
    }
    return Sensitivity(**{**base, **changes})


@given(
    st.floats(-3.0, 3.0).map(lambda t: 10.0**t),
    st.floats(-30.0, -0.5).map(lambda t: 10.0**t),
    st.integers(1, 400),
    st.sampled_from(["replace_one", "add_remove"]),
    st.floats(-3, 3).map(lambda t: 10.0**t),
    st.sampled_from([0.0, 0.1, 7.0]),
)
@settings(max_examples=40, deadline=None)
def test_own_profile_is_at_most_delta(epsilon, delta, dimension, adjacency, L, gradient):
    s = sensitivity(
        dimension=dimension, adjacency=adjacency, smoothness=L, anchor_gradient=gradient
    )
    mechanism = Wishart().calibrate(epsilon, delta, s)
    assert mechanism.profile(epsilon) <= delta
    assert (mechanism.guard_scale > 0.0) == (gradient > 0.0)
    assert mechanism.degrees_of_freedom > dimension + 1


def test_published_example():
    """d = 100, m = 200, ε = 0.5, δ = 0.01, no guard: σ² = 0.26094 L."""
    s = sensitivity(dimension=100, anchor_gradient=0.0, smoothness=3.0)
    mechanism = Wishart(degrees_of_freedom=200).calibrate(0.5, 0.01, s)
    assert mechanism.sigma2 == pytest.approx(3.0 * 0.260935435299778, rel=1e-8)


def test_units():
    """Data times 100: σ² times 10⁴, guard times 10⁴ (G0 = κRB)."""
    one = Wishart().calibrate(2.0, 1e-6, sensitivity())
    many = Wishart().calibrate(2.0, 1e-6, sensitivity(smoothness=1e4, anchor_gradient=1e4))
    assert many.degrees_of_freedom == one.degrees_of_freedom
    assert many.sigma2 == pytest.approx(1e4 * one.sigma2, rel=1e-12)
    assert many.guard_scale == pytest.approx(1e4 * one.guard_scale, rel=1e-12)


@pytest.mark.parametrize("gradient", [0.0, 1.0])
@pytest.mark.parametrize(("epsilon", "dimension"), [(0.1, 33), (1.0, 10), (8.0, 3)])
def test_choice_is_near_the_best_of_a_grid(epsilon, dimension, gradient):
    """The utility bound at the chosen (m, share) is within 2% of the best of a wide grid."""
    s = sensitivity(dimension=dimension, anchor_gradient=gradient)
    chosen = Wishart().calibrate(epsilon, 1e-6, s)
    best = np.inf
    for factor in (0.5, 0.75, 1.0, 1.4, 2.0):
        m = dimension + 1 + (chosen.degrees_of_freedom - dimension - 1) * factor
        best = min(
            best,
            Wishart(degrees_of_freedom=m).calibrate(epsilon, 1e-6, s).excess_risk_bound(1.0),
        )
    assert chosen.excess_risk_bound(1.0) <= 1.02 * best


@pytest.mark.parametrize("quadratic", [True, False])
@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
@pytest.mark.parametrize(("epsilon", "delta", "d"), [(1e-3, 1e-300, 5000), (1e6, 0.49, 1)])
def test_choice_at_the_extremes(epsilon, delta, d, adjacency, quadratic):
    shares = choose_wishart(
        epsilon, delta, d, guard_ratio=1.0, adjacency=adjacency, quadratic=quadratic
    )
    assert shares.degrees_of_freedom > d + 1
    assert shares.guard_mu > 0.0


@pytest.mark.blas
def test_draw():
    s = sensitivity(dimension=3)
    mechanism = Wishart().calibrate(1.0, 1e-6, s)
    draws = [mechanism.draw(SeededNoise(np.random.default_rng(i))) for i in range(2000)]
    mean = np.mean([draw.curvature for draw in draws], axis=0)
    spread = mechanism.sigma2 * np.sqrt(2.0 * mechanism.degrees_of_freedom / 2000)
    assert np.abs(mean - mechanism.mean_curvature * np.eye(3)).max() < 6.0 * spread
    guards = np.array([draw.guard for draw in draws])
    assert guards.std() == pytest.approx(mechanism.guard_scale, rel=0.08)
    assert np.array_equal(draws[0].curvature, draws[0].curvature.T)


def test_refusals():
    with pytest.raises(OptionError, match="calibration"):
        Wishart(calibration="guess")
    with pytest.raises(OptionError, match="degrees_of_freedom"):
        Wishart(degrees_of_freedom="many")
    with pytest.raises(CalibrationError, match="d \\+ 1 = 11"):
        Wishart(degrees_of_freedom=11).calibrate(1.0, 1e-6, sensitivity())


@pytest.mark.parametrize(
    "chosen", [Wishart(), Gaussian(), Linear()], ids=lambda r: type(r).__name__
)
@pytest.mark.parametrize("quadratic", [True, False])
def test_predicted_risk_is_the_mean_excess_risk_of_an_isotropic_quadratic(chosen, quadratic):
    """J(θ) = ½h‖θ − u‖², minimised with the noise added: Monte Carlo within 10%."""
    d = 6
    s = sensitivity(dimension=d, quadratic=quadratic, gradient=1.0)
    mechanism = chosen.calibrate(2.0, 1e-6, s)
    h = 30.0 * max(mechanism.mean_curvature, getattr(mechanism, "noise_edge", 0.0))
    u, noise = np.ones(d) / np.sqrt(d), SeededNoise(np.random.default_rng(5))
    gaps = []
    for _ in range(1500):
        draw = mechanism.draw(noise)
        slope = draw.guard - h * u
        curvature = mechanism.repair(h * np.eye(d) + draw.curvature, [slope])
        error = -np.linalg.solve(curvature, slope) - u
        gaps.append(0.5 * h * error @ error)
    assert np.mean(gaps) == pytest.approx(mechanism.predicted_risk(1.0, h), rel=0.1)
