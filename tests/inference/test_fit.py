"""Fit on the training records, and population intervals, with the sum of squares released."""

from dataclasses import replace

import cvxpy as cp
import numpy as np
import pytest
from releases import PAY, Case, records

import cvxqop
from cvxqop import _cvxpy
from cvxqop.preparing import prepare_loss
from cvxqop.settings import Settings

FREE = cvxqop.Gaussian(sum_of_squares=True)


def test_the_sum_of_squares_is_that_of_clipped_records():
    """At ε = 1e6 the noise is small: Σ c² of targets cut to ±1, on the public grid."""
    X, y = records(200)
    y[0] = 50.0
    theta = cp.Variable(5)
    pay = {**PAY, "epsilon": 1e6, "perturbation": FREE}
    loss = cvxqop.private_loss(cp.sum_squares(X @ theta - y), private=[X, y], **pay)
    law = loss.noise
    cut = np.clip(y, -1.0, 1.0)
    assert abs(loss.first_value - cut @ cut) < 8 * law.value_scale
    assert law.value_scale < 0.1
    spacing = loss.guarantee.mechanism.value_grid.spacing
    assert spacing > 0.0
    assert loss.first_value % spacing == 0.0
    assert (loss.records, loss.squares) == (200, 2.0)
    assert "the sum of squares at the anchor" in str(loss)


def test_nothing_is_released_that_was_not_asked_for():
    loss = Case().loss
    assert loss.first_value is None
    with pytest.raises(cvxqop.OptionError, match=r"Gaussian\(sum_of_squares=True\)"):
        loss.fit()
    with pytest.raises(cvxqop.OptionError, match="sum_of_squares"):
        loss.error_bars(population=True)


def test_n_is_not_told_where_it_is_private():
    paid = cvxqop.Gaussian(sum_of_squares=0.05)
    loss = Case(perturbation=paid, adjacency="add_remove").loss
    assert loss.records is None
    found = loss.fit(seed=0)
    assert found.residual_sd is None
    assert 0.2 < found.r_squared < 1.0
    with pytest.raises(cvxqop.OptionError, match="public number of records"):
        loss.error_bars(population=True)


@pytest.mark.parametrize("epsilon", [0.3, 4.0])
def test_r_squared_is_without_bias_and_its_error_is_right(epsilon):
    case = Case(epsilon=epsilon, perturbation=FREE)
    rng, law = np.random.default_rng(8), case.loss.noise
    zero = 0.5 * case.y @ case.y
    scores = []
    for k, loss in enumerate(case.releases(60)):
        loss = replace(loss, first_value=zero + law.value_scale * rng.standard_normal())
        values, V = np.linalg.eigh(loss.raw_hessian)
        theta = -(V / np.maximum(values, law.edge)) @ (V.T @ loss.first_gradient)
        rest = 0.5 * np.sum((case.X @ theta - case.y) ** 2)
        fit = loss.fit(seed=k, draws=100)
        scores.append(
            [
                (fit.r_squared - 1 + rest / zero) / fit.r_squared_error,
                (fit.residual_sd - np.sqrt(2 * rest / 3000)) / fit.residual_sd_error,
            ]
        )
    assert np.all(np.abs(np.mean(scores, axis=0)) < 5 / np.sqrt(60))
    assert np.all(np.abs(np.std(scores, axis=0) - 0.9) < 0.4)


def test_population_intervals_are_wider_and_cover():
    """Of 5 × 30 intervals of 95% for the coefficients of the population .88 or more cover them."""
    X, y = records(200_000, seed=99)
    truth = np.linalg.lstsq(X, y, rcond=None)[0]
    covered = []
    for seed in range(30):
        case = Case(n=3000, seed=seed, epsilon=4.0, perturbation=FREE)
        bars = case.loss.error_bars(population=True, draws=200, seed=seed)
        lower, upper = bars.lower[case.theta], bars.upper[case.theta]
        covered.append((lower <= truth) & (truth <= upper))
    assert np.mean(covered) >= 0.88
    own = case.loss.error_bars(draws=200, seed=0)
    assert np.all(upper - lower > (own.upper[case.theta] - own.lower[case.theta]))
    assert "a population of clipped records" in " ".join(str(bars).split())


def test_of_a_solution():
    X, y = records()
    theta = cp.Variable(5)
    problem = cp.Problem(cp.Minimize(cp.sum_squares(X @ theta - y) + cp.norm1(theta)))
    solution = cvxqop.privatize(problem, private=[X, y], perturbation=FREE, **PAY)
    loss = solution.private_loss
    found = [solution.fit(seed=1), loss.fit(solution, seed=1), loss.fit(cp.norm1(theta), seed=1)]
    assert found[0] == found[1] == found[2]
    assert "R²" in str(found[0])
    assert "residual sd" in str(found[0])


def test_weighted_records_have_a_sum_but_no_common_variance():
    X, y = records(50)
    w, theta = np.linspace(1, 2, 50), cp.Variable(5)
    weighted = cp.sum(cp.multiply(w, cp.square(X @ theta - y)))
    pay = {**PAY, "epsilon": 1e6, "perturbation": FREE}
    loss = cvxqop.private_loss(weighted, private=[X, y], public=[w], **pay)
    assert abs(loss.first_value - w @ y**2) < 8 * loss.noise.value_scale
    assert loss.squares is None
    assert loss.fit(draws=5).residual_sd is None
    with pytest.raises(cvxqop.OptionError, match="same weight"):
        loss.error_bars(population=True)


def test_a_sum_of_squares_is_refused_for_other_losses():
    X, _ = records(50)
    theta = cp.Variable(5)
    problem = cp.Problem(cp.Minimize(cp.sum(cp.logistic(X @ theta))), [cp.abs(theta) <= 1])
    with pytest.raises(cvxqop.CalibrationError, match="sum_of_squares"):
        cvxqop.plan(problem, private=[X], perturbation=FREE, **PAY)


def sums_of(X, y, **options):
    theta = cp.Variable(X.shape[1])
    settings = Settings.of({**PAY, "private": [X, y], "perturbation": FREE, **options})
    with _cvxpy.reading():
        case, _ = prepare_loss(0.5 * cp.sum_squares(X @ theta - y), None, None, settings)
    return case.sums.quadratic_form(), case.sums.value(), case.mechanism


@pytest.mark.parametrize("paid", [True, 0.05])
@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
def test_what_one_record_moves_is_accounted_for(adjacency, paid):
    """‖ΔH/s‖² + ‖Δg/σ‖² + (Δf/s_f)² ≤ μ² for records far beyond the bounds, on each axis of a pair
    of rows; some pair takes more than half of it."""
    if paid is True and adjacency == "add_remove":
        with pytest.raises(cvxqop.CalibrationError, match=r"sum_of_squares=0\.05"):
            sums_of(*records(5), adjacency=adjacency)
        return
    options = {"adjacency": adjacency, "perturbation": cvxqop.Gaussian(sum_of_squares=paid)}
    rng, largest = np.random.default_rng(4), 0.0
    X, y = rng.standard_normal((4, 2)), rng.standard_normal(4)
    for trial in range(40):
        X[0], y[0] = 3.0 * rng.standard_normal(2), 9.0 * (-1) ** trial
        other, target = X.copy(), y.copy()
        other[0] = X[0] * rng.choice([1, -1, 0.01]) + (trial % 3) * rng.standard_normal(2)
        target[0] = rng.choice([-9.0, 0.0, 9.0])
        if adjacency == "add_remove":
            other, target = other[1:], target[1:]
        (H, g), f, m = sums_of(X, y, **options)
        (H2, g2), f2, _ = sums_of(other, target, **options)
        moved = np.sum((H - H2) ** 2) / m.scale**2 + np.sum((g - g2) ** 2) / m.guard_scale**2
        moved += (f - f2) ** 2 / m.sum_of_squares_scale**2
        largest = max(largest, moved)
    assert 0.5 * m.gdp_mu**2 < largest <= m.gdp_mu**2
