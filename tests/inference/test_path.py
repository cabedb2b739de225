"""The guarded path: an estimate without bias, a choice that stays where it should."""

from dataclasses import replace

import cvxpy as cp
import numpy as np
import pytest
from releases import Case

import cvxqop

GRID = [0.0, 20.0, 60.0, 200.0]


def test_the_estimate_has_no_bias_and_its_error_is_right():
    """The mean over releases of (estimate − truth)/s.e. is below 5/√80, and their spread near 1."""
    case = Case(epsilon=4.0)
    v, lam = case.theta, cp.Parameter(nonneg=True, value=7.0)
    scores = []
    for k, loss in enumerate(case.releases(80)):
        path = loss.path(lam * cp.norm1(v), lam, GRID, seed=k)
        thetas = path.solutions[v]
        true = thetas @ case.g + 0.5 * np.einsum("li,ij,lj->l", thetas, case.H, thetas)
        scores.append((path.gain - true + true[0])[1:] / path.standard_error[1:])
    assert np.all(np.abs(np.mean(scores, axis=0)) < 5 / np.sqrt(80))
    assert 0.5 < np.std(scores) < 1.3
    assert lam.value == 7.0


def test_solutions_are_those_of_the_released_form():
    case = Case()
    v, lam = case.theta, cp.Parameter(nonneg=True)
    path = case.loss.path(lam * cp.norm1(v), lam, [60.0, 5.0], [v <= 0.4], draws=5)
    assert path.values.tolist() == [5.0, 60.0]
    for value, theta in zip(path.values, path.solutions[v], strict=True):
        cp.Problem(cp.Minimize(case.loss.expression + value * cp.norm1(v)), [v <= 0.4]).solve()
        np.testing.assert_allclose(theta, v.value, atol=1e-5)
    assert lam.value is None


def test_it_stays_where_nothing_is_gained_and_moves_where_much_is():
    lam = cp.Parameter(nonneg=True)
    case = Case()
    dense = case.loss.path(lam * cp.norm1(case.theta), lam, [0.0, 1.0, 300.0], seed=0)
    assert dense.chosen == 0.0
    assert "is not a substitute for cross-validation" in " ".join(str(dense).split())
    sparse = Case(d=40, n=20_000, epsilon=1.0)
    truth = sparse.loss.first_gradient.copy()
    truth[1:] -= sparse.g[1:]  # only the first coefficient has a signal
    loss = replace(sparse.loss, first_gradient=truth)
    moved = loss.path(
        lam * cp.norm1(sparse.theta), lam, np.r_[0.0, np.geomspace(1, 300, 8)], seed=0
    )
    assert moved.chosen > 0.0
    assert moved.nonzero[moved.index] < 40
    assert len(moved.plot().axes) == 2


def test_several_outputs_and_a_penalty_that_does_not_split():
    case = Case()
    theta = cp.Variable((5, 2), name="theta")
    loss = cvxqop.private_loss(
        cp.sum_squares(case.X @ theta - np.stack([case.y, -case.y], axis=1)),
        private=[case.X, np.stack([case.y, -case.y], axis=1)],
        perturbation=cvxqop.Gaussian(),
        bounds=cvxqop.Bounds(row_norm=1.0, offset=2.0),
        epsilon=1.0,
        delta=1e-6,
    )
    lam = cp.Parameter(nonneg=True)
    path = loss.path(lam * cp.normNuc(theta), lam, [1.0, 30.0], draws=3)
    assert path.solutions[theta].shape == (2, 5, 2)
    assert np.all(np.isfinite(path.standard_error))


def test_refusals():
    case = Case(perturbation=cvxqop.Wishart())
    v, lam = case.theta, cp.Parameter(nonneg=True)
    with pytest.raises(cvxqop.OptionError, match="Gaussian noise"):
        case.loss.path(lam * cp.norm1(v), lam, GRID)
    loss = Case().loss
    with pytest.raises(cvxqop.OptionError, match="does not occur"):
        loss.path(cp.norm1(v), lam, GRID)
    with pytest.raises(cvxqop.OptionError, match="lam: a scalar"):
        loss.path(lam * cp.norm1(v), 1.0, GRID)
    for values in ([1.0], [-1.0, 1.0], [0.0, np.inf]):
        with pytest.raises(cvxqop.OptionError, match="values"):
            loss.path(lam * cp.norm1(v), lam, values)
