"""Calibration "paper" as a mechanism: shares, release, refusals; exact is never above it."""

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cvxqop.errors import CalibrationError, OptionError
from cvxqop.privacy.accounting.profile import gaussian_profile
from cvxqop.privacy.budget import Budget
from cvxqop.privacy.curves import curves_of
from cvxqop.privacy.mechanism import Sensitivity
from cvxqop.privacy.noise import SeededNoise
from cvxqop.privacy.paper import profile as paper
from cvxqop.privacy.paper.calibrated import CalibratedPaper
from cvxqop.privacy.wishart import ensemble as wishart
from cvxqop.privacy.wishart import spectral
from cvxqop.privacy.wishart.options import Wishart


def bounds(d=10, eta=0.0, **changes):
    base = {
        "dimension": d,
        "smoothness": 1.0,
        "anchor_gradient": eta,
        "quadratic": True,
        "adjacency": "replace_one",
        "anchor_error": eta,
    }
    return Sensitivity(**{**base, **changes})


def paper_of(epsilon, delta, sensitivity, accuracy=None, **options):
    mechanism = Wishart(calibration="paper", **options)
    return mechanism.calibrate(epsilon, delta, sensitivity, accuracy=accuracy)


@given(
    st.integers(1, 300),
    st.floats(0.05, 4.0),
    st.floats(-3.0, 3.0).map(lambda t: 10.0**t),
    st.floats(-12.0, -1.0).map(lambda t: 10.0**t),
    st.booleans(),
    st.sampled_from(["replace_one", "add_remove"]),
    st.floats(0.01, 0.99),
)
@settings(max_examples=20, deadline=None)
def test_exact_is_never_above_the_paper(d, width, epsilon, delta, quadratic, adjacency, split):
    s = bounds(d, quadratic=quadratic, adjacency=adjacency)
    m = d + 2.0 + width * d
    shares = (split, 0.0, 1.0 - split)
    found = paper_of(epsilon, delta, s, degrees_of_freedom=m, delta_shares=shares)
    assert float(found.profile(epsilon)) <= delta
    try:
        exact = wishart.calibrate(
            epsilon, delta, m - d + 1, adjacency=adjacency, quadratic=quadratic
        )
    except CalibrationError:
        assert found.sigma2 > 1e6  # σ² above 10⁶ L is refused by "exact"
        return
    assert exact <= found.sigma2


def test_exact_is_never_above_the_paper_in_three_hundred_dimensions():
    for quadratic in (True, False):
        s = bounds(300, quadratic=quadratic)
        found = paper_of(1.0, 1e-6, s)
        exact = Wishart(degrees_of_freedom=found.degrees_of_freedom).calibrate(1.0, 1e-6, s)
        assert 10.0 * exact.sigma2 < found.sigma2


@given(
    st.sampled_from([1, 7, 300, 2000]),
    st.sampled_from([1e-3, 0.5, 8.0, 1e6]),
    st.sampled_from([1e-300, 1e-6, 0.49]),
    st.sampled_from([0.0, 1e-3]),
    st.integers(1, 3),
)
@settings(max_examples=8, deadline=None)
def test_calibrated_at_the_extremes(d, epsilon, delta, eta, rank):
    """Finite everywhere; the profile meets δ; the constants are those of paper.calibrate."""
    s = bounds(d, eta, hessian_rank=min(rank, d), quadratic=False)
    found = paper_of(epsilon, delta, s, 1e-6)
    assert float(found.profile(epsilon)) <= delta
    assert found.perturbation_epsilon <= found.epsilons[0]
    assert math.fsum(found.epsilons) <= epsilon
    assert math.fsum(found.deltas) <= delta
    assert found.epsilons[1] <= 1.0
    assert float(gaussian_profile(found.epsilons[1], found.mu)) <= found.deltas[1]
    (e1, e2), (d1, d2, d3, d4) = found.epsilons, found.deltas
    direct = paper.calibrate(
        smoothness=1.0, hessian_rank=min(rank, d), d=d, m=found.degrees_of_freedom, epsilon1=e1,
        epsilon2=e2, delta1=d1, delta2=d2, delta3=d3, delta4=d4, tau=found.tau, eta=eta,
    )  # fmt: skip
    assert found.sigma2 == pytest.approx(direct.sigma2, rel=1e-12)
    assert found.release.scale >= direct.sigma_tilde
    if direct.beta == found.constants.beta:
        assert found.release.scale == pytest.approx(direct.sigma_tilde, rel=1e-9)
    assert json.dumps(found.describe(), allow_nan=False)


def test_tau_stands_for_the_certified_distance():
    found = paper_of(1.0, 1e-6, bounds(quadratic=False), 1e-4)
    alpha = found.constants.alpha
    assert math.sqrt(2.0 * found.tau / (alpha * found.sigma2)) == pytest.approx(1e-4, rel=1e-12)
    assert found.distance == 1e-4
    assert found.release.accuracy == 1e-4


def test_without_a_release_its_parts_are_zero():
    found = paper_of(
        1.0, 1e-6, bounds(), epsilon_shares=(0.5, 0.5), delta_shares=(0.2, 0.3, 0.2, 0.3)
    )
    assert found.epsilons == (math.nextafter(1.0, 0.0), 0.0)
    assert found.deltas[1] == found.deltas[3] == found.guard_scale == found.mu == 0.0
    assert found.deltas[0] == found.deltas[2] == pytest.approx(5e-7, rel=1e-12)
    assert found.release is None
    absent = paper_of(1.0, 1e-6, bounds(), epsilon_shares=(1.0,), delta_shares=(0.5, 0.0, 0.5))
    assert absent.sigma2 == pytest.approx(found.sigma2, rel=1e-9)


def test_shares_as_given():
    found = paper_of(
        1.0, 1e-6, bounds(eta=0.01, quadratic=False), 1e-6,
        epsilon_shares=(0.7, 0.3), delta_shares=(0.4, 0.3, 0.2, 0.1),
    )  # fmt: skip
    assert found.epsilons == pytest.approx((0.7, 0.3), rel=1e-12)
    assert found.deltas == pytest.approx((4e-7, 3e-7, 2e-7, 1e-7), rel=1e-12)
    assert "η" in dict(found.summary())["anchor"]


@pytest.mark.parametrize(("eta", "accuracy"), [(0.0, None), (0.0, 1e-6), (1e-3, 1e-6)])
def test_choice_is_near_the_best_of_random_ones(eta, accuracy):
    """½σ²m(D0² + dσ̃²) at the chosen m and shares is within 10% of the best of 300 others."""
    s = bounds(eta=eta, quadratic=False)

    def risk(found):
        noise = found.release.scale if found.release else 0.0
        return found.mean_curvature * (1.0 + 10 * noise**2)

    chosen = risk(paper_of(2.0, 1e-6, s, accuracy))
    rng = np.random.default_rng(0)
    for _ in range(300):
        e2 = rng.uniform(0.01, 0.5)
        shares = rng.dirichlet(np.ones(4)) * 0.96 + 0.01
        other = paper_of(
            2.0, 1e-6, s, accuracy, degrees_of_freedom=11.0 + 10.0 ** rng.uniform(0.5, 3.0),
            epsilon_shares=(1 - e2, e2), delta_shares=tuple(shares),
        )  # fmt: skip
        assert chosen <= 1.1 * risk(other)


def test_profile_follows_from_the_spectral_bound():
    """The formula ε_M is that of theory §3 for T = L and rank one, at λ_δ = α + c, or above."""
    found = paper_of(1.0, 1e-6, bounds(quadratic=False, adjacency="replace_one"))
    k = 0.5 * (found.degrees_of_freedom - 11.0)
    with_alpha = spectral.spectral_epsilon(
        found.constants.alpha, k, 1.0 / found.sigma2, adjacency="replace_one", quadratic=False
    )
    assert with_alpha <= found.perturbation_epsilon * (1.0 + 1e-12)


def test_profile_is_the_smallest_valid_bound():
    s = bounds(quadratic=False, adjacency="add_remove")
    found = paper_of(1.0, 1e-6, s, 1e-6)
    eps = np.array([0.0, 0.05, 0.3, 1.0, 4.0])
    exact = wishart.profile(
        eps, 1.0 / found.sigma2, found.degrees_of_freedom - 9.0,
        adjacency="add_remove", quadratic=False, mu=found.mu,
    )  # fmt: skip
    profile = found.profile(eps)
    assert np.all(profile <= exact)
    assert np.all(np.diff(profile) <= 0.0)
    off = paper_of(1.0, 1e-6, bounds(eta=1e-3, quadratic=False), 1e-6)
    values = off.profile(eps)
    assert np.all((values <= 1.0) & (values >= 0.0))
    assert values[0] > values[3]
    assert values[3] <= 1e-6
    assert float(off.profile(math.nextafter(1.0, 0.0))) <= 1e-6


def test_it_enters_a_budget():
    for eta in (0.0, 1e-3):
        found = paper_of(0.5, 1e-7, bounds(eta=eta), 1e-6)
        curves = curves_of(found, 0.5)
        assert all(np.isfinite(curve.delta).all() for curve in curves)
        budget = Budget(epsilon=2.0, delta=1e-5)
        for _ in range(2):
            budget.spend(epsilon=0.5, delta=1e-7, label="paper", mechanism=found)
    assert len(budget.history) == 2


def test_draw_has_no_guard():
    found = paper_of(1.0, 1e-6, bounds(3))
    draw = found.draw(SeededNoise(np.random.default_rng(0)))
    assert not draw.guard.any()
    assert np.linalg.eigvalsh(draw.curvature)[0] > 0.0
    assert found.excess_risk_bound(2.0) == pytest.approx(2.0 * found.mean_curvature)


def test_published_constants_are_refused():
    found = paper_of(1.0, 1e-6, bounds(3))
    published = paper.calibrate(
        smoothness=1.0, hessian_rank=1, d=3, m=10, epsilon1=1.0, epsilon2=0.0, delta1=5e-7,
        delta2=0.0, delta3=5e-7, delta4=0.0, tau=0.0, eta=0.0, as_published=True,
    )  # fmt: skip
    fields = {name: getattr(found, name) for name in found.__dataclass_fields__}
    CalibratedPaper(**fields)
    with pytest.raises(CalibrationError, match="published code"):
        CalibratedPaper(**{**fields, "constants": published})


@pytest.mark.parametrize(
    ("options", "sensitivity", "words"),
    [
        ({"degrees_of_freedom": 11}, bounds(), "d \\+ 1 = 11"),
        ({"epsilon_shares": (0.5, 0.5)}, bounds(quadratic=False), "epsilon2"),
        ({"epsilon_shares": (1.0,)}, bounds(quadratic=False), "part 2"),
        ({"delta_shares": (0.5, 0.1, 0.4)}, bounds(eta=0.1, quadratic=False), "part 4"),
        ({"delta_shares": (1.0,)}, bounds(quadratic=False), "part 2"),
        ({}, bounds(hessian_rank=11, quadratic=False), "hessian_rank"),
        ({}, bounds(anchor_gradient=1.0, anchor_error=None), "CommonMinimizer"),
        ({}, bounds(eta=-1.0, quadratic=False), "eta"),
    ],
)
def test_refusals(options, sensitivity, words):
    with pytest.raises(CalibrationError, match=words):
        paper_of(4.0, 1e-6, sensitivity, 1e-6, **options)


@pytest.mark.parametrize("sensitivity", [bounds(eta=0.1), bounds(hessian_rank=2)])
def test_a_quadratic_form_that_the_theorem_does_not_cover(sensitivity):
    with pytest.raises(CalibrationError, match="quadratic form"):
        paper_of(1.0, 1e-6, sensitivity)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"delta_shares": (0.5, 0.4)}, "add up to 1"),
        ({"delta_shares": (0.5, 0.5, 0.5, -0.5)}, "between 0 and 1"),
        ({"delta_shares": (0.2,) * 5}, "up to 4"),
        ({"epsilon_shares": "half"}, "between 0 and 1"),
        ({"epsilon_shares": (math.nan, 1.0)}, "between 0 and 1"),
        ({"calibration": "exact", "epsilon_shares": (1.0,)}, "belongs to"),
        ({"curvature": "floor"}, "floor"),
        ({"curvature": "roof"}, "curvature"),
    ],
)
def test_options_are_checked_at_once(options, words):
    with pytest.raises(OptionError, match=words):
        Wishart(**{"calibration": "paper", **options})
