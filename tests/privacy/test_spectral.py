"""Smallest Wishart eigenvalue, and the spectral bound for records of rank above one."""

import itertools
import math

import mpmath
import numpy as np
import pytest
from densities import density_2d, grid_2d, hockey_stick
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import gammainc

from cvxqop.errors import CalibrationError
from cvxqop.privacy.accounting.smallest_eigenvalue import (
    edelman_log_constant,
    log_eigenvalue_density,
    log_lower_gamma,
    smallest_eigenvalue_quantile,
    smallest_eigenvalue_tail,
)
from cvxqop.privacy.mechanism import Sensitivity
from cvxqop.privacy.wishart import ensemble as wishart
from cvxqop.privacy.wishart import spectral
from cvxqop.privacy.wishart.options import Wishart
from cvxqop.privacy.wishart.spectral_mechanism import CalibratedSpectral


def sensitivity(**changes):
    base = {
        "dimension": 6,
        "smoothness": 1.0,
        "anchor_gradient": 1.0,
        "quadratic": False,
        "adjacency": "replace_one",
        "hessian_rank": 3,
    }
    return Sensitivity(**{**base, **changes})


def test_published_example():
    """d = 100, m = 200, δ = 0.01: the bound gives 10.1, the truth is 14.8 (issue 4)."""
    assert smallest_eigenvalue_quantile(0.01, 100, 200, edelman=True) == pytest.approx(
        10.1, abs=0.05
    )
    assert smallest_eigenvalue_quantile(0.01, 100, 200) == pytest.approx(14.8, abs=0.05)


@pytest.mark.parametrize(
    ("q", "x"), [(1.2, 1e-8), (50.5, 3.0), (50.5, 51.0), (7.0, 30.0), (900.0, 200.0)]
)
def test_incomplete_gamma(q, x):
    with mpmath.workdps(40):
        exact = float(mpmath.log(mpmath.gammainc(q, 0, x, regularized=True)))
    assert log_lower_gamma(q, x) == pytest.approx(exact, rel=1e-13, abs=1e-13)


def joint_probability(x, d, m):
    """P(λ_min ≤ x) for d = 2 by the joint density in 20 digits: 1 − P(both above x)."""
    assert d == 2
    k = mpmath.mpf(m - d - 1) / 2

    def inner(low):
        # ∫_{λ2 > λ1} (λ2 − λ1) λ2^k e^{−λ2/2} dλ2 by incomplete gamma functions
        first = mpmath.gammainc(k + 2, low / 2) * mpmath.mpf(2) ** (k + 2)
        second = mpmath.gammainc(k + 1, low / 2) * mpmath.mpf(2) ** (k + 1)
        return first - low * second

    def part(low):
        points = [low, low + 2, low + m, low + 4 * m + 60]
        return mpmath.quad(lambda t: t**k * mpmath.exp(-t / 2) * inner(t), points)

    with mpmath.workdps(20):
        return 1 - part(mpmath.mpf(x)) / part(mpmath.mpf(0))


@pytest.mark.parametrize(("m", "x"), [(4, 0.01), (4, 0.2), (6.5, 0.1), (12, 0.5), (30, 9.0)])
def test_two_dimensions(m, x):
    exact = float(joint_probability(x, 2, m))
    bound = math.exp(smallest_eigenvalue_tail(x, 2, m))
    assert exact * (1 - 1e-9) <= bound <= exact * 1.05
    edelman = math.exp(edelman_log_constant(2, m) + log_lower_gamma((m - 1) / 2, x / 2))
    assert exact * (1 - 1e-9) <= edelman


def test_one_dimension_is_exact():
    for m, x in ((3.0, 0.2), (9.5, 4.0)):
        bound = math.exp(smallest_eigenvalue_tail(x, 1, m))
        assert gammainc(m / 2, x / 2) <= bound <= gammainc(m / 2, x / 2) * (1 + 1e-9)


@pytest.mark.parametrize(("d", "m"), [(4, 9), (5, 9), (12, 24), (13, 24)])
def test_tail_by_sampling(d, m):
    """40,000 seeded spectra; six standard errors (false alarm 2e-9). Even d: within 20%."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((40_000, d, m))
    least = np.linalg.eigvalsh(X @ X.transpose(0, 2, 1))[:, 0]
    for probability in (0.1, 0.01):
        x = float(np.quantile(least, probability))
        bound = math.exp(smallest_eigenvalue_tail(x, d, m))
        error = 6.0 * math.sqrt(probability / 40_000)
        assert bound >= probability - error
        assert bound <= 1.2 * probability + error or d % 2 == 1
        assert bound <= 1.8 * probability + error


def test_density_of_a_large_matrix_against_high_precision():
    """d = 60, m = 110 at x = 4, the same sum in 60 digits with explicit Laguerre polynomials."""
    d, m, x = 60, 110, 4
    with mpmath.workdps(60):
        a, x = mpmath.mpf(m - d), mpmath.mpf(x)
        kernel = sum(
            mpmath.laguerre(j, a, x) ** 2 * mpmath.factorial(j) / mpmath.gamma(j + a + 1)
            for j in range(d - 1)
        )
        kernel *= x**a * mpmath.exp(-x)

        def w(t):
            return t ** ((a - 1) / 2) * mpmath.exp(-t / 2)

        def monic(n, t):
            return (-1) ** n * mpmath.factorial(n) * mpmath.laguerre(n, a, t)

        n = d - 2
        h = mpmath.factorial(n) * mpmath.gamma(n + a + 1)
        ends = [0, x, 20, 60, 120, 200, 300, 400, 700]
        signed = mpmath.quad(lambda t: mpmath.sign(x - t) * monic(n, t) * w(t), ends)
        exact = float(mpmath.log(kernel + monic(d - 1, x) * w(x) * signed / (4 * h)))
    bound = float(log_eigenvalue_density(np.array([float(x)]), d, m)[0])
    assert exact - 1e-9 <= bound <= exact + 0.05


@given(
    st.integers(1, 300),
    st.floats(0.02, 4.0),
    st.floats(-60.0, -0.4).map(lambda t: 10.0**t),
)
@settings(max_examples=30, deadline=None)
def test_quantile(d, width, delta):
    m = d + 1.01 + width * d
    level = smallest_eigenvalue_quantile(delta, d, m)
    assert smallest_eigenvalue_tail(level, d, m) <= math.log(delta)
    assert level >= smallest_eigenvalue_quantile(delta, d, m, edelman=True)
    assert level < m


def test_formulas_of_theory():
    """Theory §3's table, typed in again."""
    alpha, k, t = 3.0, 5.0, 0.4
    table = {
        ("add_remove", True): max((k / alpha - 0.5) * t, t / 2),
        ("replace_one", True): t * max(0.5, k / alpha),
        ("add_remove", False): max(((k + 1) / alpha - 0.5) * t, t * (0.5 + 1 / alpha)),
        ("replace_one", False): t * (max(0.5, k / alpha) + 2 / alpha),
    }
    for (adjacency, quadratic), value in table.items():
        found = spectral.spectral_epsilon(alpha, k, t, adjacency=adjacency, quadratic=quadratic)
        assert found == pytest.approx(value, rel=1e-14)
    assert spectral.spectral_epsilon(0, k, t, adjacency="add_remove", quadratic=True) == math.inf


RANK_TWO = {
    "add": ([], [[0.8, 0.0], [0.0, 1.0]]),
    "replace": ([[1.0, 0.0], [0.0, 0.5]], [[0.6, 0.8], [0.8, -0.6]]),
    "replace by nothing": ([[0.8, 0.6], [-0.6, 0.8]], []),
}


@pytest.mark.parametrize("name", RANK_TWO)
@pytest.mark.parametrize("tilt", [0.0, 0.8])
def test_density_of_rank_two_records(name, tilt):
    """Two rows a record, d = 2: L = 1, T = 2, G0 = 0.4; the measured divergence stays below."""
    sigma2, m, guard = 3.0, 14.0, 4.0
    common = np.array([[0.6, 0.3]])

    def data(rows):
        A = np.vstack([common, np.array(rows).reshape(-1, 2)])
        c = np.array([0.2] + [0.4 / math.sqrt(2.0)] * len(rows))
        return A.T @ A, A.T @ c + tilt * np.array([0.6, 0.8])

    u, weight = grid_2d()
    p, q = (
        density_2d(
            u, u @ H + g, np.broadcast_to(H, (len(u), 2, 2)), sigma2=sigma2, m=m, guard=guard
        )
        for H, g in map(data, RANK_TWO[name])
    )
    assert weight @ p == pytest.approx(1.0, abs=2e-3)
    replaced = name != "add"
    for epsilon in (0.5, 1.0, 2.0):
        claim = float(
            spectral.profile(
                epsilon,
                smoothness_ratio=1.0 / sigma2,
                trace_ratio=2.0 / sigma2,
                dimension=2,
                degrees_of_freedom=m,
                adjacency="replace_one" if replaced else "add_remove",
                quadratic=True,
                mu=(2.0 if replaced else 1.0) * 0.4 / guard,
            )
        )
        assert claim < 1.0
        measured = max(hockey_stick(p, q, weight, epsilon), hockey_stick(q, p, weight, epsilon))
        assert measured <= claim * (1.0 + 1e-3) + 1e-7


@given(
    st.floats(-2.0, 3.0).map(lambda t: 10.0**t),
    st.floats(-30.0, -0.5).map(lambda t: 10.0**t),
    st.integers(2, 80),
    st.sampled_from(["replace_one", "add_remove"]),
    st.booleans(),
    st.sampled_from([0.0, 1.0]),
    st.sampled_from([None, 1e-5]),
)
@settings(max_examples=25, deadline=None)
def test_own_profile_is_at_most_delta(epsilon, delta, d, adjacency, quadratic, gradient, accuracy):
    s = sensitivity(
        dimension=d, adjacency=adjacency, quadratic=quadratic, anchor_gradient=gradient,
        hessian_rank=2,
    )  # fmt: skip
    mechanism = Wishart().calibrate(epsilon, delta, s, accuracy=accuracy)
    assert isinstance(mechanism, CalibratedSpectral)
    assert mechanism.profile(epsilon) <= delta
    assert np.all(mechanism.profile(np.array([epsilon])) <= delta)
    assert (mechanism.guard_scale > 0.0) == (gradient > 0.0)


def test_never_better_than_the_exact_accountant():
    """Rank one, T = L: the spectral σ² is above the exact one."""
    for adjacency, quadratic in itertools.product(("add_remove", "replace_one"), (True, False)):
        shares = spectral.calibrate(
            1.0, 1e-6, smoothness=1.0, trace=1.0, dimension=10, degrees_of_freedom=60,
            adjacency=adjacency, quadratic=quadratic,
        )  # fmt: skip
        exact = wishart.calibrate(1.0, 1e-6, 51, adjacency=adjacency, quadratic=quadratic)
        assert shares.sigma2 > exact


def test_both_rows_of_a_replacement_count_in_the_guard():
    s = sensitivity()
    assert s.guard_sensitivity == 2.0
    mechanism = Wishart(degrees_of_freedom=40).calibrate(1.0, 1e-6, s)
    assert mechanism.mu == pytest.approx(2.0 / mechanism.guard_scale)
    assert mechanism.describe()["calibration"] == "spectral"


def test_refusals():
    with pytest.raises(CalibrationError, match="hessian_rank"):
        Wishart().calibrate(1.0, 1e-6, sensitivity(hessian_rank=7))
    with pytest.raises(CalibrationError, match="exceed"):
        Wishart(degrees_of_freedom=7).calibrate(1.0, 1e-6, sensitivity())
