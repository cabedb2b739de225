"""Noise under joint accounting: shares, what is free, densities, and replayed extreme records."""

import itertools
import math
from dataclasses import replace

import cvxpy as cp
import numpy as np
import pytest
from scipy.optimize import minimize_scalar

import cvxqop
from cvxqop.audit import Call
from cvxqop.errors import CalibrationError, OptionError
from cvxqop.privacy.gaussian.joint import joint_mu
from cvxqop.privacy.gaussian.options import Gaussian
from cvxqop.privacy.grid import ENLARGED
from cvxqop.privacy.mechanism import Sensitivity
from cvxqop.problem.parts import Constants

SENSITIVITY = Sensitivity(
    dimension=2, smoothness=4.0, anchor_gradient=2.0, quadratic=True, adjacency="replace_one",
    offset=1.0, one_row=True, anchor_value=0.5,
)  # fmt: skip


def parts(m, bounds=(), F=4.0, G0=2.0):
    """(a, b_0, b_r) from the noise, by hand."""
    first, *later = (G0 / np.array(m.guard_scales)) ** 2
    return (F / m.scale) ** 2, first, sum(b * x for b, x in zip(later, bounds, strict=True))


@pytest.mark.parametrize("radius", [0.1, 1.0, 30.0])
@pytest.mark.parametrize("d", [1, 10, 300])
def test_shares_minimise_the_predicted_error(d, radius):
    """Against a search over b/a; and all noise of the sum's shares shrinks by its factor."""
    s = replace(SENSITIVITY, dimension=d)
    m = Gaussian().calibrate(1.0, 1e-6, s, radius=radius)
    A = 0.25 * (d + 1) * radius**2

    def error(log_ratio):
        b = math.exp(log_ratio)
        return (A * 16.0 + d * 4.0 / b) * joint_mu(1.0, b) ** 2

    found = minimize_scalar(error, bounds=(-25.0, 5.0), method="bounded", options={"xatol": 1e-10})
    mu = m.gdp_mu / ENLARGED
    assert (A * m.scale**2 + d * m.guard_scale**2) * mu**2 == pytest.approx(found.fun, rel=1e-9)
    a, b, _ = parts(m)
    assert joint_mu(a, b) == pytest.approx(mu)
    summed = Gaussian().calibrate(1.0, 1e-6, replace(s, one_row=False), radius=radius)
    assert summed.gdp_mu == pytest.approx(m.gdp_mu)
    assert A * m.scale**2 + d * m.guard_scale**2 < (0.8 if radius == 1.0 else 1.0) * (
        A * summed.scale**2 + d * summed.guard_scale**2
    )


def test_noise_that_is_saved():
    """a = b: √(4.5/6) of the noise of the sum; six stages: .93 with the shares of the sum."""
    plain = replace(SENSITIVITY, one_row=False)
    shares = (1 / 3, 2 / 3)
    one = Gaussian(shares=shares).calibrate(1.0, 1e-6, SENSITIVITY)
    summed = Gaussian(shares=shares).calibrate(1.0, 1e-6, plain)
    assert one.scale / summed.scale == pytest.approx(math.sqrt(0.75), rel=1e-6)
    assert one.guard_scale / summed.guard_scale == pytest.approx(math.sqrt(0.75), rel=1e-6)


@pytest.mark.parametrize("changes", [{"one_row": False}, {"adjacency": "add_remove"}])
def test_others_keep_the_sum(changes):
    s = replace(SENSITIVITY, **changes)
    hops = 2.0 if s.adjacency == "replace_one" else 1.0
    m = Gaussian(stages=2).calibrate(1.0, 1e-6, s)
    a, b_0, b_r = parts(m, bounds=(0.25**2,))
    assert (m.gdp_mu / ENLARGED) ** 2 == pytest.approx(hops * a + hops**2 * (b_0 + b_r))


def test_one_row_is_denied_by_default():
    assert not Sensitivity(2, 1.0, 1.0, True, "replace_one").joint
    assert not Constants(1.0, 1.0, True).one_row
    one = Constants(1.0, 1.0, True, one_row=True)
    assert not Constants.total([one, one]).one_row
    assert Constants.total([one]).one_row
    assert not one.of_person(2, 5).one_row
    assert not one.of_person(None, 5).one_row
    assert not replace(one, outputs=2).whole.one_row


@pytest.mark.parametrize("stages", [1, 6])
def test_the_sum_of_squares_is_free_for_an_exchange(stages):
    plain = Gaussian(stages=stages).calibrate(1.0, 1e-6, SENSITIVITY)
    free = Gaussian(stages=stages, sum_of_squares=True).calibrate(1.0, 1e-6, SENSITIVITY)
    assert (free.scale, free.guard_scales) == (plain.scale, plain.guard_scales)
    assert 0.0 < free.sum_of_squares_scale < math.inf
    assert free.gdp_mu == plain.gdp_mu
    half = replace(free, sum_of_squares_scale=0.5 * free.sum_of_squares_scale)
    assert half.gdp_mu > plain.gdp_mu
    assert free.describe()["sum_of_squares_scale"] == free.sum_of_squares_scale
    assert plain.sum_of_squares_scale is None


@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
def test_a_share_for_the_sum_of_squares(adjacency):
    """add_remove: s_f = V/(μ√p), and all other noise times 1/√(1 − p)."""
    s = replace(SENSITIVITY, adjacency=adjacency, one_row=adjacency == "replace_one")
    m = Gaussian(sum_of_squares=0.05).calibrate(1.0, 1e-6, s)
    assert float(m.profile(1.0)) <= 1e-6
    assert float(m.profile(1.0)) >= 1e-6 * (1 - 1e-6)
    if adjacency == "add_remove":
        plain = Gaussian().calibrate(1.0, 1e-6, s)
        mu = plain.gdp_mu / ENLARGED
        assert m.sum_of_squares_scale == pytest.approx(0.5 / (mu * math.sqrt(0.05)))
        assert m.scale / plain.scale == pytest.approx(1 / math.sqrt(0.95))


def test_refusals_of_the_sum_of_squares():
    for wrong in (0.0, 1.0, "free", math.nan):
        with pytest.raises(OptionError, match="sum_of_squares"):
            Gaussian(sum_of_squares=wrong)
    free, share = Gaussian(sum_of_squares=True), Gaussian(sum_of_squares=0.1)
    for changes in ({"one_row": False}, {"adjacency": "add_remove"}):
        with pytest.raises(CalibrationError, match=r"sum_of_squares=0\.05"):
            free.calibrate(1.0, 1e-6, replace(SENSITIVITY, **changes))
    with pytest.raises(CalibrationError, match="leave sum_of_squares out"):
        share.calibrate(1.0, 1e-6, replace(SENSITIVITY, anchor_value=None))
    nothing = replace(SENSITIVITY, anchor_value=0.0, anchor_gradient=0.0)
    assert free.calibrate(1.0, 1e-6, nothing).sum_of_squares_scale == 0.0


def test_density_of_the_released_pair_in_one_dimension():
    """d = 1: rows are parallel; ∫(p − e^ε q)₊ on a grid never exceeds the claim, and attains it
    where b ≥ 2a."""
    s = replace(SENSITIVITY, dimension=1)
    axis = np.linspace(-9, 9, 901)
    h, g = np.meshgrid(axis, axis, indexing="ij")
    p = np.exp(-0.5 * (h**2 + g**2)) / (2 * np.pi) * (18.0 / 900) ** 2
    for shares, tight in (((0.5, 0.5), False), ((0.15, 0.85), True)):
        m = Gaussian(shares=shares).calibrate(0.7, 1e-3, s)
        claim, worst = float(m.profile(0.7)), 0.0
        for x, y, r, t in itertools.product((2.0, 1.0, -2.0), (2.0, 0.0, -2.0), (1, -1), (1, -1)):
            u, v = (x * x - y * y) / m.scale, (r * x - t * y) / m.guard_scale
            q = np.exp(h * u + g * v - 0.5 * (u * u + v * v))
            worst = max(worst, (p * np.maximum(1.0 - np.exp(0.7) * q, 0.0)).sum())
        assert worst <= claim * (1 + 1e-3)
        assert (worst >= claim * (1 - 1e-3)) == tight


def rows_at(cosine, R=2.0):
    """Two rows of length R with this cosine between them."""
    return R * np.array([[1.0, 0.0], [cosine, math.sqrt(1.0 - cosine**2)]])


def stated(data):
    X, y = data
    theta = cp.Variable(2)
    return cp.Problem(cp.Minimize(0.5 * cp.sum_squares(X @ theta - y))), [X, y]


def case_of(X, mechanism):
    """Rows X, targets −1, as the library reads and calibrates them."""
    bounds = cvxqop.Bounds(row_norm=2.0, offset=1.0)
    call = Call(stated, bounds=bounds, epsilon=1.0, delta=1e-4, perturbation=mechanism)
    return call.prepare((X, -np.ones(len(X))))[0]


@pytest.mark.parametrize("stages", [1, 2, 6])
def test_replayed_extreme_records_attain_what_is_accounted_for(stages):
    """The library's own sums of two data sets, along a path where every residual is full:
    the squared shifts over the noise add up to μ² in d = 2, and never to more."""
    rng = np.random.default_rng(5)
    mechanism = Gaussian(stages=stages)
    noise = case_of(rows_at(0.5), mechanism).mechanism
    F, G0 = 4.0, 2.0
    a, b_0, b_r = parts(noise, [b * b for b in noise.residual_bounds], F, G0)
    worst = min(1.0, (b_0 + b_r) / (2 * a))
    for cosine in (-worst, *rng.uniform(-1, 1, 4)):
        X = rows_at(cosine)
        cases = [case_of(X[[i, i]], mechanism) for i in (0, 1)]
        (H, g), (H2, g2) = (case.sums.quadratic_form() for case in cases)
        total = (np.linalg.norm(H - H2) / 2 / noise.scale) ** 2
        total += (np.linalg.norm(g - g2) / 2 / noise.guard_scale) ** 2
        for bound, scale in zip(noise.residual_bounds, noise.guard_scales[1:], strict=True):
            point = 50.0 * X.sum(axis=0) + (0.0 if cosine == -worst else rng.standard_normal(2))
            later = [case.reanchored(point, bound).sums.gradient() for case in cases]
            total += (np.linalg.norm(later[0] - later[1]) / 2 / scale) ** 2
        assert total <= (noise.gdp_mu / ENLARGED) ** 2 * (1 + 1e-9)
        if cosine == -worst:
            assert total == pytest.approx((noise.gdp_mu / ENLARGED) ** 2, rel=1e-9)
