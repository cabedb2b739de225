"""Constant columns are taken at R_x/√d to the nearest power of two, and nothing else is."""

import cvxpy as cp
import numpy as np
import pytest

import cvxqop
from cvxqop.problem.constant_columns import scaled
from cvxqop.problem.reading import analysis

N, D = 40, 16
RNG = np.random.default_rng(0)
X = RNG.integers(-4, 5, (N, D)) / 64.0
Y = RNG.integers(-8, 9, N) / 8.0
ONES = np.ones((N, 1))
UNIT = cvxqop.Bounds(row_norm=1.0, offset=1.0)


def read(objective, constraints=(), bounds=UNIT, private=(X, Y), public=(ONES,)):
    problem = cp.Problem(cp.Minimize(objective), list(constraints))
    erm = analysis.read(problem, list(private), public=list(public), losses="any")
    return scaled(erm, bounds)


def plain():
    return cp.Variable(D, name="w"), cp.Variable(name="b")


def test_an_intercept_is_taken_at_the_size_of_a_feature():
    """d = 16 and R_x = 1: τ = 1/4, R² = 1 + 1/16, L = 2R², G0 = 2R."""
    w, b = plain()
    erm = read(cp.sum_squares(X @ w + b - Y))
    assert np.array_equal(erm.scale, [1.0] * D + [0.25])
    constants = erm.loss.constants(UNIT)
    assert constants.row_norm == pytest.approx(np.sqrt(17 / 16), rel=1e-15)
    assert constants.smoothness == pytest.approx(2 * 17 / 16, rel=1e-15)
    assert constants.anchor_gradient == pytest.approx(2 * np.sqrt(17 / 16), rel=1e-15)
    assert constants.one_row
    assert any("counts 0.25 times" in sentence and " b," in sentence for sentence in erm.replaced)


@pytest.mark.parametrize(
    ("state", "T"),
    [
        (lambda w, b: X @ w + 2 * b - Y, 0.125),
        (lambda w, b: cp.hstack([X, ONES]) @ cp.hstack([w, b]) - Y, 0.25),
        (lambda w, b: X @ w - 0.5 * (b - Y) + 1, 0.5),
        (lambda w, b: 4 * (X @ w + b - Y), 0.25),
    ],
)
def test_every_spelling(state, T):
    erm = read(cp.sum_squares(state(*plain())))
    assert erm.scale[-1] == T
    assert np.all(erm.scale[:-1] == 1.0)


def test_the_size_goes_with_the_bound():
    w, b = plain()
    bounds = cvxqop.Bounds(row_norm=64.0, offset=1.0)
    erm = read(cp.sum_squares(X @ w + b - Y), bounds=bounds)
    assert erm.scale[-1] == 16.0
    assert erm.loss.row_norm(bounds) == pytest.approx(np.sqrt(64**2 + 16**2))


def test_labels_of_glm_loss():
    w, b = plain()
    loss = cvxqop.glm_loss("logistic", X, np.sign(Y + 0.01), w, intercept=b)
    erm = read(loss, private=())
    assert erm.scale[-1] == 0.25
    assert erm.loss.constants(UNIT).anchor_gradient == pytest.approx(0.5 * np.sqrt(17 / 16))


def test_labels_that_multiply_the_row():
    """In a margin loss they are ±1, and the 1 of the intercept is ±1; elsewhere it is private."""
    w, b = plain()
    erm = read(cp.sum(cp.logistic(-cp.multiply(Y, X @ w + b))))
    assert erm.scale[-1] == 0.25
    assert erm.loss.constants(UNIT).row_norm == pytest.approx(np.sqrt(17 / 16))


def test_one_row_of_several_outputs():
    W, b = cp.Variable((D, 2)), cp.Variable((1, 2))
    Z = np.stack([Y, -Y], axis=1)
    erm = read(cp.sum_squares(X @ W + ONES @ b - Z), private=(X, Z))
    assert np.array_equal(erm.scale, [1.0] * (2 * D) + [0.25] * 2)
    assert erm.loss.row_norm(UNIT) == pytest.approx(np.sqrt(17 / 16))


@pytest.mark.parametrize("stays", [0, 1])
def test_outputs_whose_coefficient_stays_as_it_is_share_that(stays):
    """Outputs have one row: an attribute on the coefficient of one of them is on all."""
    W, own = cp.Variable((D, 2)), [cp.Variable((1, 1)), cp.Variable((1, 1))]
    own[stays] = cp.Variable((1, 1), bounds=[-1, 1])
    Z = np.stack([Y, -Y], axis=1)
    erm = read(cp.sum_squares(X @ W + ONES @ cp.hstack(own) - Z), private=(X, Z))
    assert np.all(erm.scale == 1.0)


def test_two_losses_share_the_smaller_size():
    w, b = plain()
    erm = read(cp.sum_squares(X @ w + b - Y) + cp.sum_squares(X @ w + 4 * b))
    assert erm.scale[-1] == 1 / 16


def test_rows_and_coefficients_change_together():
    """H' = THT, g' = Tg and θ' = T⁻¹θ, exactly: T is a power of two."""
    w, b = plain()
    problem = cp.Problem(cp.Minimize(cp.sum_squares(X @ w + b - Y)))
    before = analysis.read(problem, [X, Y], losses="any")
    after = scaled(before, UNIT)
    T, anchor = after.scale, np.zeros(D + 1)
    (H, g), (H2, g2) = (
        erm.loss.sums(UNIT, anchor, None, "raise", None, False).quadratic_form()
        for erm in (before, after)
    )
    np.testing.assert_allclose(H2, H * np.outer(T, T), rtol=1e-13)
    np.testing.assert_allclose(g2, g * T, rtol=1e-13)
    theta = RNG.standard_normal(D + 1)
    parts = after.unstack(theta)
    assert np.array_equal(after.stack(parts), theta / T)


@pytest.mark.parametrize(
    "state",
    [
        lambda w, b: X @ w + w[0] - Y,  # a feature meets the same coefficient
        lambda w, b: b - Y,  # no feature
        lambda w, b: cp.multiply(Y, X @ w + b),  # a private number takes the 1 along
        lambda w, b: X @ w + np.arange(N) * b - Y,  # public, and not constant
        lambda w, b: X @ w + cp.Variable(bounds=[-1, 1]) - Y,
    ],
)
def test_what_stays_as_it_is(state):
    w, b = plain()
    problem = cp.Problem(cp.Minimize(cp.sum_squares(state(w, b))))
    erm = analysis.read(problem, [X, Y], public=[np.arange(N)], losses="any")
    assert scaled(erm, UNIT) is erm


def test_the_rest_is_written_for_what_the_variable_stands_for():
    w, b = plain()
    erm = read(cp.sum_squares(X @ w + b - Y) + cp.norm1(w) + 3 * cp.square(b), [cp.abs(b) <= 2])
    w.value, b.value = np.zeros(D), 4.0  # θ' = 4 is θ = 1
    assert float(erm.regulariser.value) == 3.0
    assert [float(side.value) for side in erm.constraints[0].args] == [1.0, 2.0]
