"""The engines against each other, conic solvers, and a transcription of the published steps."""

import itertools

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from instances import HUBER, LOGISTIC, SQUARED, SQUARED_HINGE, finite_sum, wishart

from cvxqop.errors import AccuracyError, OptionError
from cvxqop.problem.records.rows import ArrayRows
from cvxqop.solve.engines.conic import solve_conic
from cvxqop.solve.engines.stochastic import PlainSteps, plain_step_length
from cvxqop.solve.engines.stotos import check_stotos, solve_stotos
from cvxqop.solve.rest.prox import split

pytestmark = pytest.mark.blas


def problem(n, d, loss, seed=0, sparse=False):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, d))
    if sparse:
        A = sp.csr_array(A * (rng.random((n, d)) < 0.1))
    f = finite_sum(
        ArrayRows(A, rng.standard_normal((n, 1))),
        (loss,),
        wishart(rng, d),
        rng.standard_normal(d),
        rng.standard_normal(d) * 0.1,
    )
    return f, cp.Variable(d)


@pytest.mark.parametrize("loss", [SQUARED, LOGISTIC, HUBER, SQUARED_HINGE], ids=lambda x: x.name)
def test_gradient_is_the_derivative(loss):
    f, _ = problem(300, 5, loss)
    theta, h = np.linspace(-1, 1, 5), 1e-6
    numeric = [
        (f.evaluate(theta + h * e).value - f.evaluate(theta - h * e).value) / (2 * h)
        for e in np.eye(5)
    ]
    np.testing.assert_allclose(f.evaluate(theta).gradient, numeric, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("loss", [LOGISTIC, HUBER], ids=lambda x: x.name)
def test_local_hessian_is_below_every_hessian_nearby(loss):
    f, _ = problem(200, 4, loss)
    rng = np.random.default_rng(1)
    theta, radius = rng.standard_normal(4) * 0.2, 0.1
    low = f.hessian(theta, radius)
    for _ in range(50):
        step = rng.standard_normal(4)
        near = theta + radius * rng.random() * step / np.linalg.norm(step)
        assert np.linalg.eigvalsh(f.hessian(near) - low)[0] >= -1e-9


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("n", [0, 1, 7, 3000])
@pytest.mark.parametrize("loss", [SQUARED, LOGISTIC, HUBER, SQUARED_HINGE], ids=lambda x: x.name)
def test_newton_certifies_whatever_the_number_of_rows(loss, n, sparse):
    f, v = problem(n, 30, loss, sparse=sparse)
    r, C = 3 * cp.norm1(v), [cp.norm_inf(v) <= 0.4]
    answer = solve_stotos(f, [v], r, C, accuracy=1e-7, seed=np.random.default_rng(0))
    assert answer.distance <= 1e-7
    again = solve_stotos(f, [v], r, C, accuracy=1e-9, seed=np.random.default_rng(1))
    assert np.linalg.norm(answer.theta - again.theta) <= 1.01e-7


def test_logistic_regression_agrees_with_clarabel():
    f, v = problem(60, 4, LOGISTIC)
    A, c = f.parts[0].records._A, f.parts[0].records._C[:, 0]
    step = v - f.anchor
    objective = (
        cp.sum(cp.logistic(A @ v + c))
        + 0.5 * cp.quad_form(step, cp.psd_wrap(f.S))
        + f.a @ step
        + 2 * cp.norm1(v)
    )
    answer = solve_stotos(f, [v], 2 * cp.norm1(v), [cp.norm(v) <= 0.5], accuracy=1e-8)
    cp.Problem(cp.Minimize(objective), [cp.norm(v) <= 0.5]).solve(solver="CLARABEL")
    np.testing.assert_allclose(answer.theta, v.value, atol=1e-5)


def test_sorted_rows_and_a_few_with_high_leverage():
    rng = np.random.default_rng(3)
    A = rng.standard_normal((20_000, 10))
    A[:5] *= 100
    A = A[np.argsort(-A[:, 0])]
    f = finite_sum(
        ArrayRows(A, np.zeros((20_000, 1))),
        (LOGISTIC,),
        wishart(rng, 10),
        50 * np.ones(10),
        np.zeros(10),
    )
    v = cp.Variable(10)
    answer = solve_stotos(f, [v], None, [], accuracy=1e-8, seed=np.random.default_rng(0))
    gradient = f.evaluate(answer.theta).gradient
    assert np.linalg.norm(gradient) <= 1e-3
    assert answer.distance <= 1e-8


def test_quadratic_form_and_records_agree_with_a_conic_solver():
    f, v = problem(500, 20, SQUARED)
    r, C = 5 * cp.norm1(v), [v >= -0.3, cp.sum(v) <= 1]
    by_form = solve_stotos(f.gram_form(), [v], r, C, accuracy=1e-8)
    by_rows = solve_stotos(f, [v], r, C, accuracy=1e-8)
    conic = solve_conic(f.gram_form(), [v], r, C)
    np.testing.assert_allclose(by_form.theta, by_rows.theta, atol=2e-8)
    np.testing.assert_allclose(by_form.theta, conic.theta, atol=1e-5)


@pytest.mark.parametrize("loss", [SQUARED, LOGISTIC], ids=lambda x: x.name)
@pytest.mark.parametrize("split_sets", [False, True])
def test_variance_reduction_converges_by_itself(loss, split_sets):
    f, v = problem(2000, 5, loss)
    r, C = 2 * cp.norm1(v), [cp.norm_inf(v) <= 0.3]
    if split_sets:
        C = [*C, cp.sum(v) == 0.1]
    answer = solve_stotos(
        f,
        [v],
        r,
        C,
        accuracy=1e-5,
        variant="svrg",
        max_iter=20_000,
        finish=False,
        seed=np.random.default_rng(0),
    )
    exact = solve_stotos(f, [v], r, C, accuracy=1e-8)
    assert answer.distance <= 1e-5
    assert np.linalg.norm(answer.theta - exact.theta) <= 1.01e-5


def published_steps(f, lam, radius, x, step, indices):
    """CC26, Algorithm StoTOS, written out: soft threshold, one record, box, damped update."""
    A, c, n = f.parts[0].records._A, f.parts[0].records._C[:, 0], f.n
    points = []
    for k, i in enumerate(indices):
        theta = np.sign(x) * np.maximum(np.abs(x) - step * lam, 0)
        t = A[i] @ theta + c[i]
        gradient = n * f.parts[0].loss.losses[0].derivative(np.array([t]))[0] * A[i]
        gradient = gradient + f.S @ (theta - f.anchor) + f.a
        z = np.clip(2 * theta - x - step * gradient, -radius, radius)
        x = x + (k + 1) ** (-0.5 - 0.002) * (z - theta)
        points.append(z)
    return np.array(points)


@pytest.mark.parametrize("loss", [SQUARED, LOGISTIC], ids=lambda x: x.name)
def test_plain_follows_the_published_recursion(loss):
    f, v = problem(50, 4, loss)
    rest = split([v], 2 * cp.norm1(v), [cp.norm_inf(v) <= 0.2])
    step = plain_step_length(f)
    largest = max(np.sum(f.parts[0].records._A ** 2, axis=1)) * loss.curvature
    assert step == pytest.approx(1 / (50 * largest + np.linalg.eigvalsh(f.S)[-1]), rel=1e-12)
    start = np.full(4, 0.3)
    steps = iter(PlainSteps(f, rest, start.copy(), step, np.random.default_rng(7)))
    ours = np.array([next(steps).point for _ in range(200)])
    draw = np.random.default_rng(7)
    indices = [int(draw.integers(50)) for _ in range(200)]
    expected = published_steps(f, 2.0, 0.2, start, step, indices)
    np.testing.assert_allclose(ours, expected, rtol=1e-12, atol=1e-14)


def test_plain_settles_on_a_plateau_where_a_box_is_active():
    """More steps do not help: the fixed point of the mean operator is not the minimiser."""
    rng = np.random.default_rng(2)
    n, d = 200, 5
    A = rng.standard_normal((n, d))
    c = -(A @ np.ones(d)) + 2 * rng.standard_normal(n)
    f = finite_sum(
        ArrayRows(A, c[:, None]), (SQUARED,), 0.1 * wishart(rng, d), np.zeros(d), np.zeros(d)
    )
    v = cp.Variable(d)
    C = [cp.norm_inf(v) <= 0.5]
    exact = solve_stotos(f, [v], None, C, accuracy=1e-9).theta
    gaps = []
    for steps in (1_000, 20_000):
        answer = solve_stotos(
            f,
            [v],
            None,
            C,
            accuracy=1e-6,
            variant="plain",
            max_iter=steps,
            finish=False,
            seed=np.random.default_rng(0),
        )
        gap = f.evaluate(answer.theta).value - f.evaluate(exact).value
        assert answer.gap >= gap
        assert answer.distance > 1e-6
        gaps.append(gap)
    # The height: fixed point x of E_i P_C(x − ω ĝ_i(x)), iterated over all records at once.
    step = plain_step_length(f)
    x = np.zeros(d)
    for _ in range(4_000):
        slopes = 2.0 * (A @ x + c)
        moves = x - step * (n * slopes[:, None] * A + f.S @ x)
        x = np.clip(moves, -0.5, 0.5).mean(axis=0)
    plateau = f.evaluate(np.clip(x, -0.5, 0.5)).value - f.evaluate(exact).value
    assert plateau > 1e-6 * abs(f.evaluate(exact).value)
    assert 0.5 * plateau < gaps[1] < 2.0 * plateau
    finished = solve_stotos(
        f,
        [v],
        None,
        C,
        accuracy=1e-6,
        variant="plain",
        max_iter=1_000,
        seed=np.random.default_rng(0),
    )
    assert np.linalg.norm(finished.theta - exact) <= 1e-6


def test_limits_of_the_caller_end_the_work_without_a_number():
    f, v = problem(3000, 30, LOGISTIC)
    for limits in ({"max_iter": 1}, {"time_limit": 1e-9}):
        with pytest.raises(AccuracyError, match="was reached") as caught:
            solve_stotos(f, [v], cp.norm1(v), [], accuracy=1e-9, **limits)
        assert not any(ch.isdigit() for ch in str(caught.value))
        assert "charge" in str(caught.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"variant": "magic"}, "variant"),
        ({"max_iter": 0}, "max_iter"),
        ({"max_iter": 2.5}, "max_iter"),
        ({"time_limit": -1.0}, "time_limit"),
        ({"finish": 1}, "finish"),
    ],
)
def test_bad_options_are_refused(options, message):
    v = cp.Variable(2)
    with pytest.raises(OptionError, match=message):
        check_stotos([v], None, [], **options)


def test_progress_reports_to_the_holder_of_the_data():
    f, v = problem(3000, 30, LOGISTIC)
    seen = []
    solve_stotos(f, [v], cp.norm1(v), [], accuracy=1e-8, progress=lambda *row: seen.append(row))
    iterations, passes, gaps, distances = zip(*seen, strict=True)
    assert list(iterations) == list(range(1, len(seen) + 1))
    assert all(later >= earlier for earlier, later in itertools.pairwise(passes))
    assert gaps[-1] < gaps[0]
    assert distances[-1] <= 1e-8


@pytest.mark.parametrize("loss", [SQUARED, LOGISTIC], ids=lambda x: x.name)
def test_a_block_with_not_a_number_ends_in_an_error(loss):
    f, v = problem(100, 3, loss)
    f.parts[0].records._A[17, 1] = np.nan
    with pytest.raises(AccuracyError):
        solve_stotos(f, [v], None, [], accuracy=1e-6)
