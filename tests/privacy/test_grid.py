"""The public grid: spacing, exact sums, and what the calibration pays for rounding."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cvxqop.privacy.accounting.profile import gaussian_profile
from cvxqop.privacy.gaussian.options import Gaussian
from cvxqop.privacy.grid import ENLARGED, Grid, spacing
from cvxqop.privacy.mechanism import Sensitivity
from cvxqop.privacy.wishart.options import Wishart


@given(
    st.floats(-8, 8).map(lambda t: 10.0**t),
    st.floats(-8, 8).map(lambda t: 10.0**t),
    st.integers(1, 10**6),
)
@settings(max_examples=200, deadline=None)
def test_spacing_is_a_power_of_two_below_noise_and_sensitivity(noise, sensitivity, entries):
    q = spacing(noise, sensitivity, entries)
    assert np.frexp(q)[0] == 0.5
    assert q <= noise / 1024
    assert q * np.sqrt(entries) <= (ENLARGED - 1) * sensitivity


def test_rounding_both_parts_moves_neighbours_by_no_more_than_the_enlarged_sensitivity():
    """‖round(H) − round(H')‖ against ENLARGED ‖H − H'‖, and exact sums on the grid."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        d = int(rng.integers(1, 20))
        H, a = rng.standard_normal((d, d)) * 1e4, rng.standard_normal(d)
        H = H + H.T
        E = np.outer(a, a)
        grid = Grid(spacing(3.0, np.linalg.norm(E), d * d))
        zero = np.zeros((d, d))
        moved = np.linalg.norm(grid.add(H + E, zero) - grid.add(H, zero))
        assert moved <= ENLARGED * np.linalg.norm(E) * (1 + 1e-9)
        S = rng.standard_normal((d, d))
        total = grid.add(H, S + S.T)
        assert np.array_equal(total, total.T)
        np.testing.assert_array_equal(np.remainder(total, grid.spacing), 0.0)
        np.testing.assert_array_equal(total - grid.add(H, zero), grid.add(zero, S + S.T))


@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
@pytest.mark.parametrize("mechanism", [Gaussian(), Gaussian(stages=3), Wishart()], ids=repr)
def test_every_released_array_has_a_grid(mechanism, adjacency):
    s = Sensitivity(
        dimension=7, smoothness=2.0, anchor_gradient=3.0, quadratic=True, adjacency=adjacency,
        offset=1.5,
    )  # fmt: skip
    calibrated = mechanism.calibrate(1.0, 1e-6, s)
    stages = getattr(calibrated, "stages", 1)
    assert len(calibrated.grids) == 1 + stages
    assert all(grid.spacing > 0.0 for grid in calibrated.grids)
    none = Sensitivity(
        dimension=7, smoothness=2.0, anchor_gradient=0.0, quadratic=True, adjacency=adjacency
    )
    assert mechanism.calibrate(1.0, 1e-6, none).grids[1].spacing == 0.0


def test_the_gaussian_ensemble_pays_for_rounding():
    """μ² = (ENLARGED Δ_E)²/s² + (ENLARGED Δ_b)²/s_a², from the constants."""
    s = Sensitivity(
        dimension=4, smoothness=1.0, anchor_gradient=1.0, quadratic=True, adjacency="add_remove"
    )
    m = Gaussian().calibrate(1.0, 1e-6, s)
    mu = ENLARGED * np.hypot(1.0 / m.scale, 1.0 / m.guard_scale)
    assert m.gdp_mu == pytest.approx(mu, rel=1e-12)
    assert float(gaussian_profile(1.0, mu)) <= 1e-6
