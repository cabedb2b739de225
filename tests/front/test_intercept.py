"""Intercepts at a size of their own: same answers, noise as claimed, slopes that are cut."""

import cvxpy as cp
import numpy as np
import pytest
from scipy.special import expit

import cvxqop
from cvxqop.preparing import prepare
from cvxqop.privacy.noise import Randomness
from tests.front.test_clip import stationary

N, D, T = 400, 16, 0.25
RNG = np.random.default_rng(1)
X = RNG.uniform(-0.25, 0.25, (N, D))
LABELS = np.sign(X @ np.linspace(-1, 1, D) + 0.2 + 0.2 * RNG.standard_normal(N))
Y = np.clip(X @ np.linspace(-1, 1, D) + 0.4, -1, 1)
BOUNDS = cvxqop.Bounds(row_norm=1.0, offset=1.0)
PAY = {"bounds": BOUNDS, "epsilon": 1.0, "delta": 1e-6, "seed": 3}
PRECISE = {**PAY, "epsilon": 1e6}


def model():
    return cp.Variable(D, name="w"), cp.Variable(name="b")


def squared(w, b):
    return cp.sum_squares(X @ w + b - Y)


def logistic(w, b):
    return cvxqop.glm_loss("logistic", X, LABELS, w, intercept=b)


def written_out(w, b):
    return cp.sum(cp.logistic(-cp.multiply(LABELS, X @ w + b)))


@pytest.mark.parametrize(
    ("r", "C"),
    [
        (lambda w, b: 2 * cp.sum_squares(w), lambda w, b: []),
        (lambda w, b: cp.sum_squares(w) + 5 * cp.square(b), lambda w, b: []),
        (lambda w, b: 2 * cp.norm1(cp.hstack([w, b])), lambda w, b: []),
        (lambda w, b: cp.sum_squares(w), lambda w, b: [cp.abs(b) <= 0.1, w >= -0.5]),
        (lambda w, b: cp.sum_squares(w), lambda w, b: [cp.norm(cp.hstack([w, b])) <= 0.4]),
    ],
    ids=["free", "ridge", "lasso", "box", "ball"],
)
@pytest.mark.parametrize(
    ("loss", "exactly", "perturbation"),
    [
        (squared, squared, "auto"),
        (squared, squared, "gaussian"),
        (logistic, written_out, "linear"),
    ],
    ids=["adaptive", "gaussian", "logistic"],
)
def test_the_answer_is_that_of_the_problem_as_written(loss, exactly, perturbation, r, C):
    w, b = model()
    cp.Problem(cp.Minimize(exactly(w, b) + r(w, b)), C(w, b)).solve(solver="CLARABEL")
    expected = np.append(w.value, b.value)
    near = {"rtol": 0.0, "atol": 1e-3 * (1.0 + np.max(np.abs(expected)))}
    problem = cp.Problem(cp.Minimize(loss(w, b) + r(w, b)), C(w, b))
    private = [X, Y] if loss is squared else []
    found = cvxqop.privatize(problem, private=private, perturbation=perturbation, **PRECISE)
    np.testing.assert_allclose(np.append(found[w], found[b]), expected, **near)
    assert b.value == found[b]
    if found.private_loss is not None:
        again = cp.Problem(cp.Minimize(found.private_loss.expression + r(w, b)), C(w, b))
        again.solve(solver="CLARABEL")
        np.testing.assert_allclose(np.append(w.value, b.value), expected, **near)


def test_what_is_released_maps_back_exactly():
    """(H̃, g̃) = T⁻¹(H' + S, g' + a)T⁻¹ for the draws of the seed, and the anchor is the user's."""
    w, b = model()
    anchor = {w: np.full(D, 0.125), b: 0.75}
    options = {**PAY, "perturbation": "wishart", "anchor": anchor, "private": [X, Y]}
    loss = cvxqop.private_loss(squared(w, b), **options)
    case, *_ = prepare(cp.Problem(cp.Minimize(squared(w, b))), options)
    assert np.array_equal(loss.anchor, np.append(anchor[w], anchor[b]))
    assert np.array_equal(case.anchor, np.append(anchor[w], anchor[b] / T))
    draw = case.mechanism.draw(Randomness(PAY["seed"]).fresh()[0])
    scale = np.append(np.ones(D), T)
    A = np.hstack([X, np.ones((N, 1))])
    H = 2 * A.T @ A * np.outer(scale, scale) + draw.curvature
    g = 2 * A.T @ np.clip(A @ loss.anchor - Y, -1, 1) * scale + draw.guard
    for released, expected, grid in zip(
        (loss.hessian * np.outer(scale, scale), loss.gradient * scale),
        (H, g),
        case.mechanism.grids,
        strict=True,
    ):
        np.testing.assert_allclose(released, expected, atol=grid.spacing)
        assert np.array_equal(released, np.rint(released / grid.spacing) * grid.spacing)


def test_a_clipped_logistic_loss_is_stationary_in_the_scaled_row():
    w, b = model()
    options = {**PAY, "keep_loss": False, "accuracy": 1e-9, "private": []}
    plan = cvxqop.plan(cp.Problem(cp.Minimize(logistic(w, b))), **options)
    R = np.sqrt(1 + T**2)
    assert plan.mechanism.clip == pytest.approx(R / 4)
    assert plan.mechanism.sensitivity.smoothness == pytest.approx(R**2 / 4)
    found = plan.run()
    draw = plan.mechanism.draw(Randomness(PAY["seed"]).fresh()[0])
    S, a = draw.curvature, draw.guard
    rows = -LABELS[:, None] * np.hstack([X, np.full((N, 1), T)])
    expected = stationary(rows, expit, plan.mechanism.clip, S, a)
    spread = 7.0 * np.sqrt(D + 1) * plan.mechanism.release.scale
    assert np.linalg.norm(np.append(found[w], found[b] / T) - expected) < spread


def test_a_common_minimiser_is_one_of_the_coefficients_as_they_are():
    w, b = model()
    anchor = cvxqop.CommonMinimizer({w: np.linspace(-1, 1, D), b: np.array(0.4)}, error=0.1)
    options = {**PAY, "bounds": cvxqop.Bounds(row_norm=1.0), "anchor": anchor}
    plan = cvxqop.plan(cp.Problem(cp.Minimize(squared(w, b))), private=[X, Y], **options)
    assert plan.mechanism.sensitivity.smoothness == pytest.approx(4.0)


def test_a_rest_that_would_not_split_leaves_the_column():
    w, b = model()
    theta = cp.hstack([w, b])
    problem = cp.Problem(cp.Minimize(squared(w, b) + cp.norm(theta)))
    plan = cvxqop.plan(problem, private=[X, Y], perturbation="gaussian", **PAY)
    assert plan.mechanism.sensitivity.smoothness == pytest.approx(4.0)


@pytest.mark.parametrize("keep", [True, False])
def test_what_auto_takes(keep):
    w, b = model()
    slopes = cvxqop.plan(cp.Problem(cp.Minimize(logistic(w, b))), private=[], keep_loss=keep, **PAY)
    assert (getattr(slopes.mechanism, "clip", None) is None) is keep
    squares = cvxqop.plan(
        cp.Problem(cp.Minimize(squared(w, b))), private=[X, Y], keep_loss=keep, **PAY
    )
    assert "adaptive" in str(squares.candidates[0].text)
    assert any("clipped to norm" in s for s in slopes.guarantee.assumptions) is not keep


def test_keep_loss_is_a_boolean():
    w, b = model()
    with pytest.raises(cvxqop.OptionError, match="keep_loss must be True or False"):
        cvxqop.plan(cp.Problem(cp.Minimize(logistic(w, b))), private=[], keep_loss=1, **PAY)
