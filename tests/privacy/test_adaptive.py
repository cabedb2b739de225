"""Adaptive stages: accounting, the rule for the cut, the check, draws, grids."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cvxqop.errors import CalibrationError, OptionError
from cvxqop.privacy.accounting.profile import gaussian_mu
from cvxqop.privacy.gaussian.adaptive import CalibratedAdaptive
from cvxqop.privacy.gaussian.cut_rules import CUTS, EDGES, chosen_cut, shrunk
from cvxqop.privacy.gaussian.options import Gaussian
from cvxqop.privacy.mechanism import Sensitivity
from cvxqop.privacy.noise import SeededNoise

ADAPTIVE = Gaussian(stages="adaptive")


def sensitivity(**changes):
    base = {
        "dimension": 10,
        "smoothness": 1.0,
        "anchor_gradient": 1.0,
        "quadratic": True,
        "adjacency": "add_remove",
        "offset": 1.0,
        "one_row": True,
    }
    return Sensitivity(**{**base, **changes})


@given(
    st.floats(-3.0, 6.0).map(lambda t: 10.0**t),
    st.floats(-40.0, -0.31).map(lambda t: 10.0**t),
    st.integers(1, 3000),
    st.sampled_from(["replace_one", "add_remove"]),
    st.floats(-6.0, 6.0).map(lambda t: 10.0**t),
    st.sampled_from(
        [{}, {"outputs": 3}, {"cuts": 4, "hessian_rank": 4, "frobenius": 4.0, "one_row": False}]
    ),
    st.sampled_from([None, 1e-4]),
)
@settings(max_examples=60, deadline=None)
def test_own_profile_is_delta_from_below(epsilon, delta, d, adjacency, radius, more, accuracy):
    s = sensitivity(dimension=d, adjacency=adjacency, anchor_gradient=7.0, offset=2.0, **more)
    mechanism = ADAPTIVE.calibrate(epsilon, delta, s, radius=radius, accuracy=accuracy)
    assert mechanism.profile(epsilon) <= delta
    assert mechanism.profile(epsilon) >= delta * (1.0 - 1e-6)
    assert isinstance(mechanism, CalibratedAdaptive)
    assert mechanism.stages == 24
    assert mechanism.looks == (1, 5, 9, 13, 17, 21)
    assert all(scale > 0.0 for scale in (*mechanism.guard_scales, mechanism.count_scale))


def ratios(mechanism, adjacency):
    """Squared shift over noise of every release, by the public bounds: H, g̃, counts, gradients."""
    most = 1.0 if adjacency == "add_remove" else 2.0
    s = mechanism.sensitivity
    curvature = (s.frobenius_bound / mechanism.scale) ** 2 * most
    first = (most * s.anchor_gradient / mechanism.guard_scale) ** 2
    counts = [most / mechanism.count_scale**2] * len(mechanism.looks)
    return curvature, first, sum(counts), sum((most / q) ** 2 for q in mechanism.guard_scales[1:])


def test_the_shares_of_one_record_add_up_to_all_of_it():
    mechanism = ADAPTIVE.calibrate(1.0, 1e-6, sensitivity())
    mu = gaussian_mu(1.0, 1e-6)
    parts = np.array(ratios(mechanism, "add_remove")) / mu**2
    assert parts.sum() == pytest.approx(1.0, abs=1e-5)  # of what is rounded to the grid
    q = 0.5 * math.sqrt(11.0)
    share = 0.78 * q / (q + math.sqrt(240.0))
    np.testing.assert_allclose(parts, [share, 0.2, 0.02, 0.78 - share], rtol=1e-5)
    twice = ADAPTIVE.calibrate(1.0, 1e-6, sensitivity(adjacency="replace_one", one_row=False))
    assert sum(ratios(twice, "replace_one")) == pytest.approx(mu**2, rel=1e-5)
    row = ADAPTIVE.calibrate(1.0, 1e-6, sensitivity(adjacency="replace_one"))
    curvature, first, counts, cut = np.array(ratios(row, "replace_one")) / mu**2
    assert first + counts + cut == pytest.approx(1.0, abs=1e-5)  # the curvature is free
    assert curvature == pytest.approx(0.5 * first)
    assert row.guard_scales[1] < 0.96 * twice.guard_scales[1]


def test_rows_of_a_person_count_as_often_as_they_are_used():
    one = ADAPTIVE.calibrate(1.0, 1e-6, sensitivity())
    many = sensitivity(
        smoothness=3.0, anchor_gradient=3.0, frobenius=3.0, hessian_rank=3, cuts=3, one_row=False
    )
    three = ADAPTIVE.calibrate(1.0, 1e-6, many)
    assert three.scale == pytest.approx(3.0 * one.scale)
    assert three.count_scale == pytest.approx(3.0 * one.count_scale)
    np.testing.assert_allclose(three.guard_scales, 3.0 * np.array(one.guard_scales))
    assert three.unit == one.unit == 1.0  # cuts and edges are of rows
    np.testing.assert_allclose(
        [three.level(j) for j in range(24)], [3.0 * one.level(j) for j in range(24)]
    )


def test_units():
    """κ → κt, rows × u, targets × v: every noise is in the units of what it hides."""
    kappa, u, v = 3.0, 7.0, 0.2
    plain = ADAPTIVE.calibrate(1.0, 1e-6, sensitivity(), radius=2.0)
    s = sensitivity(smoothness=kappa * u**2, anchor_gradient=kappa * u * v, offset=v)
    scaled = ADAPTIVE.calibrate(1.0, 1e-6, s, radius=2.0 * v / u)
    assert scaled.scale == pytest.approx(kappa * u**2 * plain.scale)
    assert scaled.guard_scale == pytest.approx(kappa * u * v * plain.guard_scale)
    np.testing.assert_allclose(scaled.guard_scales[1:], plain.guard_scales[1:])
    assert scaled.count_scale == pytest.approx(plain.count_scale)
    for stage in (0, 1, 23):
        assert scaled.level(stage) == pytest.approx(kappa * u**2 * plain.level(stage))
    assert scaled.predicted_risk(2.0 * v / u, 100.0 * kappa * u**2) == pytest.approx(
        kappa * v**2 * plain.predicted_risk(2.0, 100.0)
    )


def by_hand(c, scale, noise, beta):
    """The rule, cut by cut, from the words of its docstring."""
    edges = np.array([0, 0.01, 0.02, 0.035, 0.05, 0.07, 0.1, 0.14, 0.2, 0.28, 0.4, 0.56, 0.8, 1.1])
    m = (edges[:-1] + edges[1:]) / 2
    for number, zeta in enumerate(CUTS):
        lost = sum(c[b] * max(m[b] - zeta, 0.0) for b in range(13))
        t = scale * math.sqrt(sum(max(m[b] - zeta, 0.0) ** 2 for b in range(13)))
        allowed = 0.4 * max(sum(c * m), 0.0)
        small = zeta >= 0.08 or lost + t <= allowed
        if lost - t <= allowed and lost - 2 * t <= beta * zeta * noise and small:
            return number
    return len(CUTS) - 1


def test_the_rule_for_the_cut():
    rng = np.random.default_rng(1)
    found = set()
    for size, scale, noise, rest in itertools.product(
        (0.0, 10.0, 1e3, 1e5), (1e-3, 1.0, 30.0, 1e3), (0.1, 10.0, 1e3), (False, True)
    ):
        for _ in range(8):
            weights = rng.dirichlet(np.full(13, 0.4))
            c = size * weights + scale * rng.standard_normal(13)
            number = chosen_cut(c, scale, noise, rest=rest)
            assert number == by_hand(c, scale, noise, 1.0 if rest else 5.0)
            found.add(number)
    assert len(found) > 10
    assert CUTS[0] == 0.02
    assert CUTS[-1] == 1.1
    assert len(EDGES) == 14


def test_the_check_takes_no_more_than_the_noise_explains():
    rng = np.random.default_rng(0)
    x, variance = rng.standard_cauchy(5000), rng.exponential(size=5000)
    found = shrunk(x, variance)
    assert np.all(np.abs(x - found) <= 2.5 * np.sqrt(variance) * (1 + 1e-12))
    assert np.all(found * x >= 0.0)
    assert np.array_equal(found == 0.0, np.abs(x) <= 2.5 * np.sqrt(variance))
    np.testing.assert_array_equal(shrunk(x, np.zeros(5000)), x)
    assert np.array_equal(shrunk(np.zeros(2), np.ones(2)), np.zeros(2))
    big = shrunk(1e3 * np.ones(1), np.ones(1))
    np.testing.assert_allclose(big, 1e3 - 6.25e-3)


def test_draws_have_the_right_moments():
    mechanism = ADAPTIVE.calibrate(1.0, 1e-6, sensitivity(dimension=3, outputs=2))
    noise = SeededNoise(np.random.default_rng(1))
    draws = [mechanism.draw(noise) for _ in range(500)]
    assert draws[0].counts.shape == (6, 13)
    assert [guard.shape for guard in draws[0].guards] == [(6,)] * 24
    assert draws[0].curvature.shape == (3, 3)
    for stage in (0, 1, 23):
        z = np.array([draw.guards[stage] for draw in draws]) / mechanism.guard_scales[stage]
        assert abs(z.var() - 1.0) < 6.0 * math.sqrt(2.0 / z.size)
    z = np.array([draw.counts for draw in draws]) / mechanism.count_scale
    assert abs(z.var() - 1.0) < 6.0 * math.sqrt(2.0 / z.size)
    assert abs(z.mean()) < 6.0 / math.sqrt(z.size)


@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
def test_grids_are_fine_beside_noise_and_sensitivity(adjacency):
    s = sensitivity(adjacency=adjacency, anchor_gradient=3.0, offset=3.0)
    mechanism = ADAPTIVE.calibrate(0.3, 1e-8, s)
    sides = (100, 10, 13)
    scales = (math.sqrt(0.5) * mechanism.scale, mechanism.guard_scale, mechanism.count_scale)
    every = list(zip(mechanism.grids, scales, (1.0, 3.0, 1.0), sides, strict=True))
    for stage, cut in itertools.product((1, 2, 23), 3.0 * CUTS):
        scale = cut * mechanism.guard_scales[stage]
        every.append((mechanism.cut_grid(stage, cut), scale, cut, 10))
    for grid, scale, most, entries in every:
        assert grid.before
        assert math.frexp(grid.spacing)[0] == 0.5  # a power of two
        assert grid.spacing <= scale * 2.0**-10
        assert grid.spacing * math.sqrt(entries) <= most * 2.0**-21


@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
def test_predicted_risk_falls_with_records_and_with_epsilon(adjacency):
    curvatures = 10.0 ** np.linspace(0.0, 7.0, 15)
    for d in (1, 5, 30):
        s = sensitivity(dimension=d, adjacency=adjacency)
        made = [ADAPTIVE.calibrate(e, 1e-6, s) for e in (0.1, 0.3, 1.0, 3.0, 10.0)]
        errors = np.array([[m.predicted_risk(1.0, h) / h for h in curvatures] for m in made])
        assert np.all(errors[1:] < errors[:-1])
        assert np.all(errors[:, 1:] < errors[:, :-1])
    assert made[0].excess_risk_bound(1.0) == math.inf


def test_refusals_and_what_needs_no_stages():
    for wrong in (
        {"residual_bound": 1.0},
        {"shares": (0.5, 0.5)},
        {"curvature": "ridge"},
        {"sum_of_squares": 0.1},
    ):
        with pytest.raises(OptionError, match="state a number of stages"):
            Gaussian(stages="adaptive", **wrong)
    for wrong in ("many", "Adaptive", 0, True, 1.5):
        with pytest.raises(OptionError, match="or 'adaptive'"):
            Gaussian(stages=wrong)
    with pytest.raises(CalibrationError, match="stages=1"):
        ADAPTIVE.calibrate(1.0, 1e-6, sensitivity(offset=None))
    with pytest.raises(CalibrationError, match="stages=1"):
        ADAPTIVE.calibrate(1.0, 1e-6, sensitivity(quadratic=False))
    plain = ADAPTIVE.calibrate(1.0, 1e-6, sensitivity(anchor_gradient=0.0, offset=0.0))
    assert plain == Gaussian().calibrate(1.0, 1e-6, sensitivity(anchor_gradient=0.0, offset=0.0))


def test_descriptions_hold_public_numbers_only():
    mechanism = ADAPTIVE.calibrate(1.0, 1e-6, sensitivity(), accuracy=1e-6)
    described = mechanism.describe()
    assert described["mu"] == mechanism.gdp_mu
    assert described["stages"] == "adaptive"
    assert described["count_scale"] == mechanism.count_scale
    assert dict(mechanism.summary())["stages"].startswith("24, gradients cut to norms")


def test_the_law_of_a_path_in_one_dimension():
    """The likelihood ratio of all releases along simulated paths, d = 1: its profile never exceeds
    the one that is claimed, and attains it for the record that is cut at every stage."""
    mechanism = ADAPTIVE.calibrate(2.0, 1e-2, sensitivity(dimension=1))
    rng = np.random.default_rng(3)
    paths = 200_000
    q = np.array(mechanism.guard_scales[1:])
    for length in (1.0, 0.5):  # what the record moves a gradient by, over the cut
        # log p/p' of N(v, σ²) against N(0, σ²) at v + σz is vz/σ + v²/2σ², given the past
        Z = np.zeros(paths)
        for ratio in (1.0 / mechanism.scale, 1.0 / mechanism.guard_scale):
            Z += ratio * rng.standard_normal(paths) + 0.5 * ratio**2
        state = np.zeros(paths)
        for j, noise in enumerate(q, 1):
            cut = np.where(state > 0.0, 0.2, 1.0)  # a rule that looks at what was released
            z = rng.standard_normal(paths)
            state = state + cut * (length + noise * z)
            Z += length / noise * z + 0.5 * (length / noise) ** 2
            if j in mechanism.looks:
                count = 1.0 / mechanism.count_scale
                Z += count * rng.standard_normal(paths) + 0.5 * count**2
        for epsilon in (0.5, 1.0, 2.0):
            values = np.maximum(1.0 - np.exp(epsilon - Z), 0.0)
            delta, error = values.mean(), 6.0 * values.std() / math.sqrt(paths)
            claimed = float(mechanism.profile(epsilon))
            assert delta <= claimed + error
            if length == 1.0:
                assert delta >= claimed - error


def test_less_noise_on_counts_is_less_privacy():
    mechanism = ADAPTIVE.calibrate(1.0, 1e-6, sensitivity())
    louder = replace(mechanism, count_scale=0.5 * mechanism.count_scale)
    assert louder.gdp_mu > mechanism.gdp_mu
