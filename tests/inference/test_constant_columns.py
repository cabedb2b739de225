"""An intercept that is scaled inside is one that is scaled by hand: release, intervals, tests."""

import cvxpy as cp
import numpy as np
import pytest

import cvxqop

N, D, T = 500, 16, 0.25
RNG = np.random.default_rng(4)
X = RNG.uniform(-0.25, 0.25, (N, D))
Y = np.clip(X @ np.linspace(-1, 1, D) + 0.4, -1, 1)
PAY = {"bounds": cvxqop.Bounds(row_norm=1.0, offset=1.0), "epsilon": 2.0, "delta": 1e-6, "seed": 3}
LAM = cp.Parameter(nonneg=True, value=0.5)


def released(inside, perturbation, rest):
    """w, b and the solution; by hand the column is 1/4 and so needs no scale of its own."""
    w, v = cp.Variable(D), cp.Variable()
    b = v if inside else T * v
    r, C = rest(w, b)
    problem = cp.Problem(cp.Minimize(cp.sum_squares(X @ w + b - Y) + r), C)
    return w, v, r, C, cvxqop.privatize(problem, private=[X, Y], perturbation=perturbation, **PAY)


RESTS = {
    "free": lambda w, b: (0.0, []),
    "lasso": lambda w, b: (LAM * cp.norm1(cp.hstack([w, b])), []),
    "box": lambda w, b: (cp.sum_squares(w), [b <= 0.3, w >= -1]),
    "ball": lambda w, b: (cp.sum_squares(w), [cp.norm(w) <= 0.5]),
}


@pytest.mark.parametrize("rest", RESTS)
@pytest.mark.parametrize("perturbation", ["auto", "gaussian", "wishart"])
def test_release_and_intervals(perturbation, rest):
    w, b, r, C, inside = released(True, perturbation, RESTS[rest])
    w2, v, r2, C2, by_hand = released(False, perturbation, RESTS[rest])
    assert inside.mechanism.sensitivity == by_hand.mechanism.sensitivity
    near = {"rtol": 1e-4, "atol": 1e-5}
    np.testing.assert_allclose(inside[w], by_hand[w2], **near)
    np.testing.assert_allclose(inside[b], T * by_hand[v], **near)
    assert np.array_equal(inside.private_loss.scale[-1:], [T])
    bars, others = (own.error_bars(draws=100, seed=1) for own in (inside, by_hand))
    for end, other in ((bars.lower, others.lower), (bars.upper, others.upper)):
        np.testing.assert_allclose(end[w], other[w2], **near)
        np.testing.assert_allclose(end[b], T * other[v], **near)
    p, q = (
        own.private_loss.p_value(point, own_r, own_C, seed=5)
        for own, point, own_r, own_C in (
            (inside, {w: inside[w], b: inside[b]}, r, C),
            (by_hand, {w2: by_hand[w2], v: by_hand[v]}, r2, C2),
        )
    )
    assert p == pytest.approx(q, abs=1e-3)


def test_path_and_fit():
    gaussian = cvxqop.Gaussian(sum_of_squares=True)
    _, b, r, _, inside = released(True, gaussian, RESTS["lasso"])
    _, v, r2, _, by_hand = released(False, gaussian, RESTS["lasso"])
    values = [0.0, 1.0, 10.0]
    path, other = (
        own.private_loss.path(penalty, LAM, values, seed=2)
        for own, penalty in ((inside, r), (by_hand, r2))
    )
    np.testing.assert_allclose(path.gain, other.gain, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(path.standard_error, other.standard_error, rtol=1e-4)
    np.testing.assert_allclose(path.solutions[b], T * other.solutions[v], rtol=1e-4, atol=1e-5)
    fits = [own.private_loss.fit(seed=2) for own in (inside, by_hand)]
    assert fits[0].r_squared == pytest.approx(fits[1].r_squared, rel=1e-6)
    text = inside.private_loss.to_json()
    assert np.array_equal(cvxqop.PrivateLoss.from_json(text).scale, inside.private_loss.scale)
