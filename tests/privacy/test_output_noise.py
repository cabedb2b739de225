"""Several outputs share one S: the accounting of one output, against densities for d = 1, k = 2."""

import numpy as np
import pytest
from scipy.stats import chi2, norm

from cvxqop.errors import CalibrationError
from cvxqop.privacy.gaussian.options import Gaussian
from cvxqop.privacy.mechanism import Sensitivity
from cvxqop.privacy.noise import SeededNoise
from cvxqop.privacy.wishart.options import Wishart

KAPPA, R, B = 2.0, 1.5, 0.4


def bounds(adjacency, d=1, outputs=2):
    return Sensitivity(
        dimension=d,
        smoothness=KAPPA * R**2,
        anchor_gradient=KAPPA * R * B,
        quadratic=True,
        adjacency=adjacency,
        offset=B,
        outputs=outputs,
    )


def pairs(adjacency):
    """Records (x, r) of a loss κ/2 ‖θ x − r‖² and their neighbours; None where there is none."""
    local = np.random.default_rng(0)
    worst = (R, np.array([0.6 * B, 0.8 * B]))
    yield None, worst
    yield worst, None
    if adjacency == "replace_one":
        yield (R, np.array([B, 0.0])), (R, np.array([-B, 0.0]))
        yield (0.0, np.zeros(2)), worst
        for _ in range(4):
            turns = local.uniform(0, 2 * np.pi, 2)
            sizes = local.uniform(0, R, 2)
            yield tuple(
                (x, B * np.array([np.cos(t), np.sin(t)])) for x, t in zip(sizes, turns, strict=True)
            )


def shift(one, other):
    """What exchanging the records moves the curvature and the gradient (2,) by."""
    parts = [(0.0, np.zeros(2)) if z is None else (z[0] ** 2, -z[0] * z[1]) for z in (one, other)]
    return KAPPA * (parts[1][0] - parts[0][0]), KAPPA * (parts[1][1] - parts[0][1])


def hockey_stick(epsilon, curvature, gradient, w, guard_scale):
    """∫∫ (p − e^ε q)₊ over the released curvature and gradient; ``w`` is the law of S.

    The gradient is turned so that its shift lies along the first axis; the second axis, on which
    both laws agree, integrates to one.
    """
    low, high = w.ppf(1e-13), w.isf(1e-13)
    pad = abs(curvature)
    s = np.linspace(low - pad, high + pad, 1501)[:, None]
    length = np.linalg.norm(gradient)
    g = np.linspace(-8 * guard_scale, 8 * guard_scale + length, 751)[None, :]
    p = w.pdf(s) * norm.pdf(g, scale=guard_scale)
    q = w.pdf(s - curvature) * norm.pdf(g - length, scale=guard_scale)
    positive = np.maximum(p - np.exp(epsilon) * q, 0.0)
    return float(positive.sum() * (s[1, 0] - s[0, 0]) * (g[0, 1] - g[0, 0]))


@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
@pytest.mark.parametrize("kind", [Wishart, Gaussian])
def test_the_released_pair_meets_its_profile(kind, adjacency):
    mechanism = kind().calibrate(1.0, 1e-2, bounds(adjacency))
    if kind is Wishart:
        w = chi2(mechanism.degrees_of_freedom, scale=mechanism.sigma2)
    else:
        w = norm(scale=mechanism.scale)
    for epsilon in (0.3, 1.0, 2.0):
        claimed = float(mechanism.profile(epsilon))
        found = [
            hockey_stick(epsilon, *shift(one, other), w, mechanism.guard_scale)
            for one, other in pairs(adjacency)
        ]
        assert max(found) <= claimed * (1 + 1e-3)
        if adjacency == "add_remove":  # attained: half the noise would be seen
            assert max(found) >= claimed * (1 - 1e-3)


def test_half_the_noise_is_caught():
    mechanism = Wishart().calibrate(1.0, 1e-2, bounds("add_remove"))
    w = chi2(mechanism.degrees_of_freedom, scale=0.5 * mechanism.sigma2)
    found = [
        hockey_stick(1.0, *shift(one, other), w, mechanism.guard_scale)
        for one, other in pairs("add_remove")
    ]
    assert max(found) > 1.5e-2


@pytest.mark.parametrize("kind", [Wishart, Gaussian])
def test_noise_of_one_block_and_a_guard_for_all(kind):
    noise = SeededNoise(np.random.default_rng(0))
    mechanism = kind().calibrate(1.0, 1e-6, bounds("add_remove", d=3, outputs=4))
    draw = mechanism.draw(noise)
    assert draw.curvature.shape == (3, 3)
    assert draw.guard.shape == (12,)
    one = kind().calibrate(1.0, 1e-6, bounds("add_remove", d=3, outputs=1))
    assert float(mechanism.profile(1.0)) <= 1e-6
    # A longer guard costs more, so that a larger share of the privacy goes to it.
    assert mechanism.guard_scale < one.guard_scale
    assert mechanism.excess_risk_bound(1.0) > one.excess_risk_bound(1.0)


def test_gaussian_scale_does_not_grow_with_outputs():
    shares = (0.5, 0.5)
    one, many = (
        Gaussian(shares=shares).calibrate(1.0, 1e-6, bounds("replace_one", 3, k)) for k in (1, 25)
    )
    assert many.scale == one.scale
    assert many.guard_scale == one.guard_scale


def test_risk_bound_counts_every_output():
    mechanism = Wishart().calibrate(1.0, 1e-6, bounds("add_remove", d=3, outputs=4))
    nu = mechanism.degrees_of_freedom - 2
    expected = 0.5 * mechanism.mean_curvature * 0.7**2
    expected += 12 * mechanism.guard_scale**2 / (2 * mechanism.sigma2 * (nu - 2))
    assert mechanism.excess_risk_bound(0.7) == pytest.approx(expected)


def test_other_losses_do_not_share():
    with pytest.raises(CalibrationError, match="quadratic losses only"):
        Sensitivity(
            dimension=2,
            smoothness=1.0,
            anchor_gradient=1.0,
            quadratic=False,
            adjacency="add_remove",
            outputs=2,
        )
