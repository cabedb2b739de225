"""Losses with a clipped gradient, weights and labels: closed forms, integrals, bounds."""

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import expit, xlog1py, xlogy

from cvxqop.problem.bounds import Bounds
from cvxqop.problem.losses.cut_loss import CutLoss
from cvxqop.problem.losses.scalar import ScalarLoss, huber, logistic, squared, squared_hinge
from cvxqop.problem.reading.analysis import read
from cvxqop.problem.records.clipping import ClippedRows
from cvxqop.problem.records.cut_rows import CutRows
from cvxqop.problem.records.rows import ArrayRows

pytestmark = pytest.mark.blas

LOG_COSH = ScalarLoss(
    "log-cosh",
    value=lambda t: np.logaddexp(t, -t) - np.log(2.0),
    derivative=np.tanh,
    second_derivative=lambda t: 1 / np.cosh(np.clip(t, -300, 300)) ** 2,
    curvature=1.0,
    slope=1.0,
    even=True,
)
RISING = ScalarLoss(  # slopes between 1 and 2: never down to a small cut
    "softplus plus t",
    value=lambda t: np.logaddexp(0.0, t) + t,
    derivative=lambda t: expit(t) + 1.0,
    second_derivative=lambda t: expit(t) * expit(-t),
    curvature=0.25,
    slope=2.0,
)
CASES = {
    "squared": ((squared,), 0.0),
    "huber": ((huber(1.3),), 0.0),
    "logistic": ((logistic,), 0.0),
    "logistic, mirrored": ((logistic.scaled(-2.0),), 0.0),
    "labels": ((logistic,), -0.6),
    "squared hinge": ((squared_hinge,), 0.0),
    "log-cosh": ((LOG_COSH,), 0.0),
    "rising": ((RISING,), 0.0),
    "several": ((squared, huber(0.4), logistic), 0.0),
}
CUTS = (1e-3, 0.3, 0.99, 5.0, np.inf)


def numbers(count, J, s, q=0.0, seed=0):
    rng = np.random.default_rng(seed)
    c, w = rng.uniform(-1, 1, (1, J)), rng.uniform(0.5, 2.0, (1, J))
    return np.repeat(np.hstack([c, w, [[q, s]]]), count, axis=0)


def loss_of(name):
    losses, q = CASES[name]
    return CutLoss(losses, sum(2.0 * loss.curvature for loss in losses)), q


def test_squared_is_huber_with_a_threshold_a_record():
    """w t² with its slope cut to ±s is w times CVXPY's huber with M = s/(2w)."""
    rng = np.random.default_rng(1)
    t, c = rng.normal(0, 30, 400), rng.normal(0, 3, 400)
    w, s = rng.uniform(0.1, 3.0, 400), rng.uniform(0.01, 40.0, 400)
    M = s / (2 * w)
    expected = w * M**2 * cp.huber((t + c) / M, 1).value
    loss = CutLoss((squared,), 6.0)
    value, slope = loss.values(t, np.column_stack([c, w, np.zeros(400), s]))
    np.testing.assert_allclose(value, expected, rtol=1e-12)
    np.testing.assert_allclose(slope, np.clip(2 * w * (t + c), -s, s), rtol=1e-15)


@pytest.mark.parametrize("s", [1e-8, 0.2, 0.9])
def test_logistic_in_closed_form(s):
    """Beyond τ = logit s the loss is the line s t − φ*(s), φ* the negative entropy."""
    t = np.linspace(-40, 400, 1001)
    loss = CutLoss((logistic,), 0.25)
    value, _ = loss.values(t, np.repeat([[0.0, 1.0, 0.0, s]], len(t), axis=0))
    line = s * t - (xlogy(s, s) + xlog1py(1 - s, -s))
    expected = np.where(expit(t) > s, line, np.logaddexp(0, t))
    np.testing.assert_allclose(value, expected, rtol=1e-12, atol=1e-20)


@pytest.mark.parametrize("s", CUTS)
@pytest.mark.parametrize("name", CASES)
def test_value_is_the_integral_of_the_slope(name, s):
    loss, q = loss_of(name)
    J = len(loss.losses)
    t = np.linspace(-60, 60, 1201)
    points, weights = np.polynomial.legendre.leggauss(20)
    value, slope = loss.values(t, numbers(len(t), J, s, q))
    assert np.abs(slope).max() <= s
    assert np.array_equal(slope, loss.values(t, numbers(len(t), J, s, q))[1])
    assert np.all(np.diff(slope) >= -1e-15)
    half = 0.5 * (t[1] - t[0])
    inner = (t[:-1, None] + half * (1 + points)).ravel()
    slopes = loss.values(inner, numbers(len(inner), J, s, q))[1].reshape(-1, 20)
    # Gauss-Legendre over a kink of the slope is off by its jump times the squared spacing.
    np.testing.assert_allclose(
        np.diff(value), half * slopes @ weights, rtol=1e-9, atol=2e-4 * loss.curvature * half
    )
    smooth = np.ptp(slopes, axis=1) < 1e-12
    np.testing.assert_allclose(
        np.diff(value)[smooth], (half * slopes @ weights)[smooth], rtol=1e-11, atol=1e-11
    )


@pytest.mark.parametrize("s", CUTS)
@pytest.mark.parametrize("name", CASES)
def test_second_derivative_and_its_lower_bound(name, s):
    loss, q = loss_of(name)
    J, rng = len(loss.losses), np.random.default_rng(0)
    t = rng.uniform(-6, 6, 2000)
    columns = numbers(2000, J, s, q)
    second, h = loss.second_derivative(t, columns), 1e-6
    assert second.min() >= 0.0
    assert second.max() <= loss.curvature
    numeric = (loss.values(t + h, columns)[1] - loss.values(t - h, columns)[1]) / (2 * h)
    near = np.abs(second - numeric) < 1e-5
    assert near.mean() > 0.995  # but for kinks
    reach = rng.uniform(0, 2, 2000)
    least = loss.second_derivative(t, columns, reach)
    for share in np.linspace(-1, 1, 21):
        assert np.all(least <= loss.second_derivative(t + share * reach, columns) + 1e-15)


def test_far_arguments_end_quickly_and_stay_finite():
    for name in CASES:
        loss, q = loss_of(name)
        t = np.array([-1e12, -1e5, 0.0, 1e5, 1e12])
        with np.errstate(over="ignore"):
            value, slope = loss.values(t, numbers(5, len(loss.losses), 1e-3, q))
        assert np.all(np.isfinite(value))
        assert np.abs(slope).max() <= 1e-3


@pytest.mark.parametrize("sparse", [False, True])
def test_no_record_has_a_gradient_beyond_the_clip(sparse):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((500, 6)) * 10.0 ** rng.uniform(-170, 3, (500, 1))
    A[rng.uniform(size=A.shape) < 0.3] = 0.0
    A[7] = 0.0
    C = rng.normal(0, 5, (500, 1))
    rows = ClippedRows(ArrayRows(sp.csr_array(A) if sparse else A, C), 2.0, None, 3.0)
    loss = CutLoss((squared,), 4.0)
    active = 0
    for clip in (1e-6, 0.3, 1e3):
        cut = CutRows(rows, [np.linspace(0.0, 2.0, 500)], clip)
        for scale in (0.0, 1.0, 1e6):
            theta = scale * rng.standard_normal(6)
            for block, columns in cut.blocks(64):
                slope = loss.values(block @ theta, columns)[1]
                dense = block.toarray() if sparse else block
                norms = np.array([np.linalg.norm(r.astype(np.longdouble)) for r in dense])
                assert np.all(norms * np.abs(slope.astype(np.longdouble)) <= clip)
                active += np.sum(norms * np.abs(slope) > 0.99 * clip)
    assert active > 100


def test_the_whole_row_and_the_whole_weighted_loss_are_clipped():
    """Weights, labels and an intercept through the reading of a problem, against plain formulas."""
    rng = np.random.default_rng(3)
    X, y = rng.uniform(-1, 1, (40, 3)), (rng.uniform(size=40) < 0.5).astype(float)
    w, b = cp.Variable(3), cp.Variable()
    margin = X @ w + b
    loss = 2 * cp.sum(cp.logistic(margin) - cp.multiply(y, margin))
    erm = read(cp.Problem(cp.Minimize(loss)), [X, y])
    losses, weights = zip(*erm.loss.terms[0].losses, strict=True)
    cut = CutRows(erm.loss.terms[0].clipped(Bounds(row_norm=1.0)), weights, 0.7)
    theta = rng.standard_normal(4)
    A, columns = cut.take(5, 25)
    rows = np.hstack([X, np.ones((40, 1))])[5:25]
    rows *= np.minimum(1.0, np.sqrt(2.0) / np.linalg.norm(rows, axis=1))[:, None]
    full = 2 * (expit(rows @ theta) - y[5:25])[:, None] * rows
    norms = np.linalg.norm(full, axis=1)
    assert np.any(norms > 0.7)
    expected = full * np.minimum(1.0, 0.7 / norms)[:, None]
    gradients = CutLoss(losses, 0.5).values(A @ theta, columns)[1][:, None] * A
    np.testing.assert_allclose(gradients, expected, rtol=1e-9, atol=1e-12)
