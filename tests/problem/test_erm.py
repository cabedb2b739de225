"""Constants by hand, stacking, and the offset that must be stated."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

from cvxqop.errors import OptionError, ProblemError
from cvxqop.problem.bounds import Bounds
from cvxqop.problem.reading.analysis import read

from .listed import public_of

rng = np.random.default_rng(0)
N, D = 9, 3
X, Y = rng.standard_normal((N, D)), rng.standard_normal(N)
w, b = cp.Variable(D, name="w"), cp.Variable(name="b")


def constants(loss, private, bounds, **options):
    problem = cp.Problem(cp.Minimize(loss))
    erm = read(problem, private, public=public_of(problem, private))
    return erm.loss.constants(bounds, **options)


def test_least_squares():
    """0.5 (x'w − y)²: κ w = 1, so L = R², G0 = R B."""
    found = constants(0.5 * cp.sum_squares(X @ w - Y), [X, Y], Bounds(row_norm=3.0, offset=2.0))
    assert (found.row_norm, found.smoothness, found.anchor_gradient) == (3.0, 9.0, 6.0)
    assert found.quadratic


def test_sum_squares_is_twice_half_of_it():
    found = constants(cp.sum_squares(X @ w - Y), [X, Y], Bounds(row_norm=3.0, offset=2.0))
    assert (found.smoothness, found.anchor_gradient) == (18.0, 12.0)


def test_regulariser_does_not_enter():
    bounds = Bounds(row_norm=1.0, offset=1.0)
    one = constants(cp.sum_squares(X @ w - Y) + cp.sum_squares(w), [X, Y], bounds)
    two = constants(cp.sum_squares(X @ w - Y) + 5 * cp.norm1(w), [X, Y], bounds)
    assert one == two


def test_intercept_counts():
    found = constants(cp.sum_squares(X @ w + b - Y), [X, Y], Bounds(row_norm=2.0, offset=1.0))
    assert found.row_norm == pytest.approx(np.sqrt(5))
    assert found.smoothness == pytest.approx(2 * 5)


def test_an_intercept_times_a_label_counts_as_an_intercept():
    """y is cut to ±1, so that ‖y(x, 1)‖² ≤ 2² + 1."""
    loss = cp.sum(cp.logistic(-cp.multiply(Y, X @ w + b)))
    found = constants(loss, [X, Y], Bounds(row_norm=2.0))
    assert found.row_norm == pytest.approx(np.sqrt(5))
    assert found.smoothness == pytest.approx(0.25 * 5)
    assert found.anchor_gradient == pytest.approx(0.5 * np.sqrt(5))  # R φ'(0)


def test_public_rows_give_the_norm():
    found = constants(cp.sum_squares(X @ w - Y), [Y], Bounds(row_norm=77.0, offset=1.0))
    assert found.row_norm == pytest.approx(np.linalg.norm(X, axis=1).max())


def test_public_and_private_parts_on_the_same_entries_add():
    P = rng.standard_normal((N, D))
    found = constants(cp.sum_squares(X @ w + P @ w - Y), [X, Y], Bounds(row_norm=2.0, offset=1.0))
    assert found.row_norm == pytest.approx(2.0 + np.linalg.norm(P, axis=1).max())


def test_terms_add_and_scale():
    """(t − y)² + 3·(2t)²: Σ κ w = 2 + 3·4·2; slope 2B + 3·2·(2·2B)."""
    loss = cp.sum_squares(X @ w - Y) + 3 * cp.sum_squares(2 * (X @ w))
    found = constants(loss, [X, Y], Bounds(row_norm=1.0, offset=0.5))
    assert found.smoothness == pytest.approx(26.0)
    assert found.anchor_gradient == pytest.approx(1.0 + 12.0)


def test_weights_enter_by_their_maximum():
    weights = np.linspace(0, 4, N)
    loss = cp.sum(cp.multiply(weights, cp.square(X @ w - Y)))
    found = constants(loss, [X, Y], Bounds(row_norm=1.0, offset=0.5))
    assert (found.smoothness, found.anchor_gradient) == (8.0, 4.0)


def test_mean_is_scaled_by_n():
    found = constants(cp.mean(cp.square(X @ w - Y)), [X, Y], Bounds(row_norm=1.0, offset=1.0))
    assert found.smoothness == pytest.approx(2 / N)


def test_huber_slope():
    loss = cp.sum(cp.huber(X @ w - Y, 0.25))
    found = constants(loss, [X, Y], Bounds(row_norm=2.0, offset=9.0))
    assert (found.smoothness, found.anchor_gradient) == (8.0, 1.0)
    assert not found.quadratic


def test_texts_do_not_say_how_many_records_there_are():
    loss = cp.sum(cp.multiply(np.full(N, 2.0), cp.square(X @ w - Y + np.ones(N))))
    erm = read(cp.Problem(cp.Minimize(loss)), [X, Y], adjacency="add_remove")
    words = [*erm.terms, *erm.private_names, *erm.public_data, erm.texts.rows[0]]
    assert not any(str(N) in text for text in words)
    assert erm.terms == ("sum(const * square(private[0](n,3) @ w - private[1](n,) + const))",)


def test_row_of_zeros_is_refused():
    with pytest.raises(ProblemError, match="does not depend on a variable"):
        read(cp.Problem(cp.Minimize(cp.sum_squares(np.zeros((N, D)) @ w - Y))), [Y])


def test_offset_is_required_when_it_matters():
    with pytest.raises(
        ProblemError, match=r"Bounds\(offset=…\) is missing: the loss has an offset"
    ):
        constants(cp.sum_squares(X @ w - Y), [X, Y], Bounds(row_norm=1.0))
    erm = read(cp.Problem(cp.Minimize(cp.sum_squares(X @ w))), [X])
    assert erm.loss.constants(Bounds(row_norm=1.0)).anchor_gradient == 0.0
    assert erm.loss.constants(Bounds(row_norm=1.0), np.zeros(D)).anchor_gradient == 0.0
    with pytest.raises(ProblemError, match="the anchor is not zero"):
        erm.loss.constants(Bounds(row_norm=1.0), np.ones(D))
    with pytest.raises(ProblemError, match="the anchor is not zero"):
        erm.loss.terms[0].clipped(Bounds(row_norm=1.0), np.ones(D))
    assert erm.loss.constants(Bounds(row_norm=1.0), np.ones(D), offset=0.5).anchor_gradient == 1.0


def test_override_of_the_offset():
    erm = read(cp.Problem(cp.Minimize(cp.sum_squares(X @ w - Y))), [X, Y])
    assert erm.loss.constants(Bounds(row_norm=2.0), None, 0.25).anchor_gradient == 1.0
    _, C = erm.loss.terms[0].clipped(Bounds(row_norm=2.0), offset=0.25).take(0, N)
    assert np.abs(C).max() == 0.25


def test_constants_do_not_depend_on_the_data():
    bounds = Bounds(row_norm=1.0, offset=1.0)
    one = constants(cp.sum_squares(X @ w - Y), [X, Y], bounds)
    A, t = 100 * X[:2], np.zeros(2)
    assert constants(cp.sum_squares(A @ w - t), [A, t], bounds) == one


def test_clipped_rows_are_within_the_bounds():
    erm = read(cp.Problem(cp.Minimize(cp.sum_squares(X @ w + b - Y))), [X, Y])
    bounds, anchor = Bounds(row_norm=0.5, offset=0.3), np.array([1.0, 2.0, 0.0, -1.0])
    for A, C in erm.loss.terms[0].clipped(bounds, anchor).blocks(4):
        assert np.linalg.norm(A, axis=1).max() <= np.sqrt(1.25)
        assert np.abs(A @ anchor + C[:, 0]).max() <= 0.3


def test_scaling_the_data_scales_the_constants():
    """Data × 100 with bounds × 100: L is 10^4 times as large, and so is G0."""
    small = constants(cp.sum_squares(X @ w - Y), [X, Y], Bounds(row_norm=1.0, offset=1.0))
    A, t = 100 * X, 100 * Y
    large = constants(cp.sum_squares(A @ w - t), [A, t], Bounds(row_norm=100.0, offset=100.0))
    assert large.smoothness == 1e4 * small.smoothness
    assert large.anchor_gradient == 1e4 * small.anchor_gradient


def test_stack_and_unstack():
    W, Q = cp.Variable((D, 1), name="W"), cp.Variable((2, 2), name="Q")
    loss = cp.sum_squares(X @ W + cp.sum(Q[0]) - Y[:, None])
    erm = read(cp.Problem(cp.Minimize(loss)), [X, Y])
    theta = np.arange(7.0)
    values = erm.unstack(theta)
    np.testing.assert_array_equal(values[W], [[0], [1], [2]])
    np.testing.assert_array_equal(values[Q], [[3, 5], [4, 6]])
    np.testing.assert_array_equal(erm.stack(values), theta)
    with pytest.raises(OptionError, match="No value was given for the variable Q"):
        erm.stack({W: values[W]})
    with pytest.raises(OptionError, match=r"variable Q has shape \(4,\); the variable has"):
        erm.stack({W: values[W], Q: np.zeros(4)})


def test_bad_anchor():
    erm = read(cp.Problem(cp.Minimize(cp.sum_squares(X @ w))), [X])
    with pytest.raises(OptionError, match=r"anchor has shape \(2,\)"):
        erm.loss.constants(Bounds(row_norm=1.0, offset=1.0), np.ones(2))
    with pytest.raises(OptionError, match="anchor must be finite"):
        erm.loss.terms[0].clipped(Bounds(row_norm=1.0, offset=1.0), np.full(D, np.nan))


@pytest.mark.parametrize(
    ("factor", "words"),
    [
        (lambda loss: loss, None),
        (lambda loss: 0.25 * (0.25 * loss) * 2, None),
        (lambda loss: 0.01 * loss, "The factor 1/100 of the loss is a public number"),
        (lambda loss: 0.3 * loss, "The factor 0.3 of the loss is a public number"),
        (
            lambda loss: (1 / 7) * ((1 / 3) * loss),
            "The factors 1/7 and 1/3 of the loss are public numbers",
        ),
    ],
)
def test_scale_statement(factor, words):
    problem = cp.Problem(cp.Minimize(factor(cp.sum_squares(X @ w - Y)) + 0.1 * cp.norm1(w)))
    found = read(problem, [X, Y], adjacency="add_remove").scale_statement
    assert found == (words and f"{words} and not the number of records.")
    assert read(problem, [X, Y]).scale_statement is None
