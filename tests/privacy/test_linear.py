"""Linear objective perturbation: reference values, closed forms, densities in one and two dims."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cvxqop.errors import CalibrationError, OptionError
from cvxqop.privacy.linear.options import CalibratedLinear, Linear
from cvxqop.privacy.linear.profile import largest_shift, linear_profile
from cvxqop.privacy.mechanism import Sensitivity
from cvxqop.privacy.noise import SeededNoise


def sensitivity(**changes):
    base = {
        "dimension": 10,
        "smoothness": 1.0,
        "anchor_gradient": 1.0,
        "quadratic": False,
        "adjacency": "add_remove",
        "gradient": 1.0,
    }
    return Sensitivity(**{**base, **changes})


def test_reference(reference):
    for case in reference["lop_add_remove"]:
        s = sensitivity(smoothness=case["L"])
        value = float(CalibratedLinear(s, case["G"], case["mu"], case["s"]).profile(case["eps"]))
        true = float(case["delta"])
        assert true * (1 - 1e-10) <= value <= true * (1 + 1e-8)


def chi_form(epsilon, v, freedom, mu_release=0.0):
    """E[δ_G(ε − vX − v²/2; μ_rel)], X ~ χ_f, by 25-digit quadrature."""
    with mpmath.workdps(25):
        e, v, m, f = map(mpmath.mpf, (epsilon, v, mu_release, freedom))

        def delta(x):
            if m == 0:
                return max(-mpmath.expm1(x), 0)
            return mpmath.ncdf(m / 2 - x / m) - mpmath.exp(x) * mpmath.ncdf(-m / 2 - x / m)

        def integrand(x):
            log_p = (1 - f / 2) * mpmath.log(2) - mpmath.loggamma(f / 2) - x * x / 2
            return mpmath.exp(log_p) * x ** (f - 1) * delta(e - v * x - v * v / 2)

        kink = e / v - v / 2
        points = {mpmath.mpf(0), mpmath.sqrt(f), mpmath.sqrt(f) + 12, mpmath.sqrt(f) + 30}
        points |= {kink + s * m / v for s in (-12, -3, 0, 3, 12)}
        return mpmath.quad(integrand, sorted(p for p in points if p >= 0))


@pytest.mark.parametrize("freedom", [1, 2, 3, 7, 40])
@pytest.mark.parametrize("mu_release", [0.0, 0.05, 0.4])
@pytest.mark.parametrize(("epsilon", "v"), [(0.5, 0.1), (2.0, 0.5), (0.1, 1.5), (-0.3, 0.7)])
def test_chi_form(freedom, mu_release, epsilon, v):
    true = float(chi_form(epsilon, v, freedom, mu_release))
    value = float(linear_profile(epsilon, v, freedom, mu_release=mu_release))
    assert true * (1 - 1e-10) <= value <= true * (1 + 1e-8) + 1e-14


@given(st.floats(-3.0, 5.0).map(lambda t: 10.0**t), st.floats(-1.0, 25.0), st.sampled_from([1, 2]))
@settings(max_examples=60, deadline=None)
def test_closed_forms_never_below(epsilon, distance, freedom):
    """Far into the tail, against 50 digits."""
    v = -distance + math.sqrt(distance**2 + 2.0 * epsilon)
    with mpmath.workdps(50):
        e, w = mpmath.mpf(epsilon), mpmath.mpf(v)
        x0 = e / w - w / 2
        if freedom == 1 and x0 >= 0:
            true = 2 * (mpmath.ncdf(-x0) - mpmath.exp(e) * mpmath.ncdf(-x0 - w))
        elif freedom == 1:
            true = 1 - 2 * mpmath.exp(e) * mpmath.ncdf(-w)
        elif x0 >= 0:
            gap = mpmath.exp(e) * w * mpmath.sqrt(2 * mpmath.pi) * mpmath.ncdf(-x0 - w)
            true = mpmath.exp(-x0 * x0 / 2) - mpmath.exp(e - (x0 + w) ** 2 / 2) + gap
        else:
            true = 1 - mpmath.exp(e - w * w / 2)
            true += mpmath.exp(e) * w * mpmath.sqrt(2 * mpmath.pi) * mpmath.ncdf(-w)
    value = float(linear_profile(epsilon, v, freedom))
    assert value >= true * (1 - mpmath.mpf(10) ** -13)
    assert value <= true * (1 + 1e-7) + 1e-14


def output_density(points, rows, offsets, tilt, ridge, scale):
    """p(u) for Σ log cosh(a'u + c) + tilt'u + ½ μ|u|² + b'u, b ~ N(0, s²I): b is one to one."""
    A, c = np.asarray(rows, dtype=float), np.asarray(offsets, dtype=float)
    t = np.tanh(points @ A.T + c)
    b = -(t @ A + tilt + ridge * points)
    H = np.einsum("nk,ki,kj->nij", 1.0 - t**2, A, A) + ridge * np.eye(A.shape[1])
    p = np.exp(-0.5 * (b**2).sum(axis=1) / scale**2)
    return p * np.linalg.det(H) / (2.0 * np.pi * scale**2) ** (A.shape[1] / 2)


def grid(dimension, reach):
    t = np.linspace(-reach, reach, 4001 if dimension == 1 else 801)
    axes = np.meshgrid(*[t] * dimension, indexing="ij")
    return np.stack([a.ravel() for a in axes], axis=1), (t[1] - t[0]) ** dimension


PAIRS = [
    # adjacency, rows and offsets of the two data sets
    ("add_remove", ([[0.0]], [0.0]), ([[1.0]], [0.3])),
    ("add_remove", ([[0.5]], [1.0]), ([[0.5], [-1.0]], [1.0, 2.0])),
    ("replace_one", ([[1.0], [0.5]], [3.0, 0.0]), ([[-1.0], [0.5]], [3.0, 0.0])),
    ("replace_one", ([[1.0]], [-0.5]), ([[0.7]], [2.0])),
    ("add_remove", ([[0.0, 0.0]], [0.0]), ([[0.6, 0.8]], [0.3])),
    ("replace_one", ([[1.0, 0.0], [0.5, 0.5]], [1.0, 0.0]), ([[0.0, 1.0], [0.5, 0.5]], [-1, 0.0])),
    ("replace_one", ([[1.0, 0.0]], [2.0]), ([[-0.6, 0.8]], [2.0])),
]


@pytest.mark.parametrize(("adjacency", "first", "second"), PAIRS)
@pytest.mark.parametrize("tilt", [0.0, 1.3])
def test_density_never_exceeds_the_profile(adjacency, first, second, tilt):
    """log cosh: κ = 1, slope ≤ 1; rows of norm ≤ 1, so that L = G = 1."""
    d, ridge, scale = len(first[0][0]), 1.5, 2.5
    points, area = grid(d, 14.0)
    p, q = (output_density(points, *data, tilt, ridge, scale) for data in (first, second))
    assert area * p.sum() == pytest.approx(1.0, abs=1e-5)
    claim = CalibratedLinear(sensitivity(dimension=d, adjacency=adjacency), 1.0, ridge, scale)
    for epsilon in (0.1, 0.5, 1.0, 2.0):
        measured = [
            area * np.maximum(x - np.exp(epsilon) * y, 0.0).sum() for x, y in ((p, q), (q, p))
        ]
        assert max(measured) <= float(claim.profile(epsilon)) + 1e-7


def test_half_the_noise_is_caught_by_the_density():
    """The same comparison refutes a claim that is made for twice the noise."""
    points, area = grid(1, 14.0)
    p = output_density(points, [[1.0]], [3.0], 0.0, 1.5, 1.0)
    q = output_density(points, [[-1.0]], [3.0], 0.0, 1.5, 1.0)
    claim = CalibratedLinear(sensitivity(dimension=1, adjacency="replace_one"), 1.0, 1.5, 2.0)
    measured = area * np.maximum(p - np.exp(2.0) * q, 0.0).sum()
    assert measured > 1.2 * float(claim.profile(2.0))


@given(
    st.floats(-3.0, 6.0).map(lambda t: 10.0**t),
    st.floats(-40.0, -0.31).map(lambda t: 10.0**t),
    st.integers(1, 2000),
    st.sampled_from(["replace_one", "add_remove"]),
    st.sampled_from([1, 3]),
    st.sampled_from([None, 1e-4]),
)
@settings(max_examples=15, deadline=None)
def test_own_profile_is_delta_from_below(epsilon, delta, d, adjacency, rank, accuracy):
    s = sensitivity(dimension=d, adjacency=adjacency, hessian_rank=rank)
    mechanism = Linear().calibrate(epsilon, delta, s, accuracy=accuracy)
    assert delta * (1.0 - 1e-4) <= mechanism.profile(epsilon) <= delta


@given(
    st.floats(-3.0, 1.5).map(lambda t: 10.0**t),
    st.floats(-40.0, -0.5).map(lambda t: 10.0**t),
    st.sampled_from(["replace_one", "add_remove"]),
)
@settings(max_examples=60, deadline=None)
def test_classic_is_private_and_never_better_than_exact(epsilon, delta, adjacency):
    s = sensitivity(adjacency=adjacency)
    classic = Linear(calibration="classic").calibrate(epsilon, delta, s)
    size = 2.0 if adjacency == "replace_one" else 1.0
    closed = size * math.sqrt(8.0 * math.log(2.0 / delta) + 4.0 * epsilon) / epsilon
    assert classic.ridge == pytest.approx(2.0 / epsilon)
    assert classic.guard_scale == pytest.approx(closed, rel=1e-12)
    assert classic.profile(epsilon) <= delta
    exact = Linear().calibrate(epsilon, delta, s)
    assert exact.excess_risk_bound(1.0) <= classic.excess_risk_bound(1.0) * (1.0 + 1e-6)


def test_classic_with_a_release():
    s = sensitivity()
    mechanism = Linear(calibration="classic").calibrate(1.0, 1e-6, s, accuracy=1e-6)
    assert mechanism.profile(1.0) <= 1e-6


def test_choice_is_near_the_best_of_a_grid():
    s = sensitivity(dimension=20)
    chosen = Linear().calibrate(1.0, 1e-6, s).excess_risk_bound(1.0)
    best = math.inf
    for part in np.linspace(0.02, 0.98, 200):
        ridge = 1.0 / math.expm1(part)
        v = largest_shift(1.0 - part, 1e-6, 1)
        best = min(best, CalibratedLinear(s, 1.0, ridge, 1.0 / v).excess_risk_bound(1.0))
    assert chosen <= 1.01 * best


def test_clip_takes_the_place_of_the_gradient():
    free = sensitivity(gradient=None)
    clipped = Linear(clip=0.25).calibrate(1.0, 1e-6, free, accuracy=1e-6)
    bounded = Linear().calibrate(1.0, 1e-6, sensitivity(gradient=0.25), accuracy=1e-6)
    assert clipped.guard_scale == bounded.guard_scale
    with pytest.raises(CalibrationError, match="only needs a bound at the anchor"):
        Linear().calibrate(1.0, 1e-6, free)


def test_clip_at_the_anchor():
    """ζ = G0 (κRB for a squared loss), half of G for a logistic loss at 0."""
    s = sensitivity(gradient=1.0, anchor_gradient=0.5)
    named, number = (Linear(clip=clip).calibrate(1.0, 1e-6, s) for clip in ("anchor", 0.5))
    assert named == number
    assert (named.clip, named.gradient) == (0.5, 0.5)
    assert named.guard_scale < 0.6 * Linear().calibrate(1.0, 1e-6, s).guard_scale
    with pytest.raises(CalibrationError, match="Pass clip a number"):
        Linear(clip="anchor").calibrate(1.0, 1e-6, sensitivity(anchor_gradient=0.0))


def test_draw():
    mechanism = Linear().calibrate(1.0, 1e-6, sensitivity(dimension=200))
    draw = mechanism.draw(SeededNoise(np.random.default_rng(0)))
    assert np.array_equal(draw.curvature, draw.curvature[0, 0] * np.eye(200))
    assert mechanism.ridge <= draw.curvature[0, 0] <= mechanism.ridge * (1 + 1e-15)
    assert draw.guard.std() == pytest.approx(mechanism.guard_scale, rel=0.35)
    assert mechanism.describe()["ridge"] == mechanism.ridge
    assert all(len(pair) == 2 for pair in mechanism.summary())


def test_refusals():
    for clip in (0.0, -1.0, math.inf, True, "much"):
        with pytest.raises(OptionError, match="clip"):
            Linear(clip=clip)
    with pytest.raises(OptionError, match="calibration"):
        Linear(calibration="guess")
    for mechanism in (Linear(calibration="classic"), Linear(clip=1.0)):
        with pytest.raises(CalibrationError, match="GLM"):
            mechanism.calibrate(1.0, 1e-6, sensitivity(hessian_rank=2))


@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
def test_gradients_that_are_cut_row_by_row_add_up(adjacency):
    one = sensitivity(gradient=None, adjacency=adjacency)
    three = sensitivity(
        gradient=None, adjacency=adjacency, smoothness=3.0, anchor_gradient=1.5, hessian_rank=3,
        hessian_range=3, gradient_range=3, trace=3.0, frobenius=3.0, cuts=3,
    )  # fmt: skip
    row, person = (Linear(clip=0.5).calibrate(1.0, 1e-6, s) for s in (one, three))
    assert (person.clip, person.gradient) == (0.5, 1.5)
    assert person.shift == 3.0 * row.shift
    assert Linear(clip="anchor").calibrate(1.0, 1e-6, three) == person
    assert float(person.profile(1.0)) <= 1e-6


def test_a_bound_that_is_smaller_than_the_clip_stays():
    assert Linear(clip=3.0).calibrate(1.0, 1e-6, sensitivity(gradient=2.0)).gradient == 2.0


@pytest.mark.parametrize("epsilon", [0.5, 1.0])
def test_multinomial_density_stays_below_the_chi_of_its_gradients(epsilon):
    """No record against one, three classes, one feature: the log-ratio of the outputs is explicit.

    With no record θ = −a/μ; with one, a = −∇ℓ(θ) − μθ and the density gains det(I + ∇²ℓ/μ). 200,000
    draws of the first; a false alarm needs six standard errors.
    """
    s = sensitivity(
        dimension=3, smoothness=0.5, hessian_rank=2, gradient_range=2, gradient=math.sqrt(2.0)
    )
    mechanism = Linear().calibrate(epsilon, 1e-2, s)
    mu, scale = mechanism.ridge, mechanism.guard_scale
    a = scale * np.random.default_rng(6).standard_normal((200_000, 3))
    theta = -a / mu
    p = np.exp(theta - theta.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    shifted = a - (p - np.array([1.0, 0.0, 0.0]))
    hessian = p[:, :, None] * np.eye(3) - p[:, :, None] * p[:, None, :]
    gain = np.linalg.slogdet(np.eye(3) + hessian / mu)[1]
    ratio = np.exp((np.sum(a**2, axis=1) - np.sum(shifted**2, axis=1)) / (2 * scale**2) + gain)
    claim = float(mechanism.profile(epsilon))
    for loss in (
        np.maximum(ratio - math.exp(epsilon), 0),
        np.maximum(1 - math.exp(epsilon) * ratio, 0),
    ):
        error = loss.std() / math.sqrt(len(loss))
        assert loss.mean() <= claim + 6 * error
    free = Linear().calibrate(epsilon, 1e-2, sensitivity(
        dimension=3, smoothness=0.5, hessian_rank=2, gradient=math.sqrt(2.0)
    ))  # fmt: skip
    assert mechanism.guard_scale < free.guard_scale
    assert mechanism.freedom == 2
