"""The low-order bits of a released quadratic form (theory §9)."""

import cvxpy as cp
import numpy as np
import pytest

import cvxqop

pytestmark = pytest.mark.blas

RNG = np.random.default_rng(8)
X = RNG.uniform(-0.5, 0.5, (300, 3))
Y = np.clip(X @ [1.0, -0.5, 0.2], -1, 1)


def release(x, y, perturbation, adjacency):
    theta = cp.Variable(3)
    return cvxqop.private_loss(
        cp.sum_squares(x @ theta - y), private=[x, y],
        bounds=cvxqop.Bounds(row_norm=1.0, offset=1.0),
        epsilon=1.0, delta=1e-6, adjacency=adjacency, perturbation=perturbation, seed=4,
    )  # fmt: skip


@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
@pytest.mark.parametrize("name", ["wishart", "gaussian", "floor", "stages"])
def test_low_bits_are_the_same_whatever_the_data(name, adjacency):
    """Every released number is a multiple of the public spacing, on either of two neighbours."""
    perturbation = {
        "floor": cvxqop.Wishart(curvature="floor"),
        "stages": cvxqop.Gaussian(stages=2),
    }.get(name, name)
    for x, y in ((X, Y), (X[1:], Y[1:]), (X * 0.731, -Y)):
        loss = release(x, y, perturbation, adjacency)
        grids = loss.guarantee.mechanism.grids
        np.testing.assert_array_equal(np.remainder(loss.gradient, grids[-1].spacing), 0.0)
        if name == "wishart":  # the others repair the curvature after it was released
            np.testing.assert_array_equal(np.remainder(loss.hessian, grids[0].spacing), 0.0)
        assert np.all(np.linalg.eigvalsh(loss.hessian) > 0.0)
        assert any("public grid" in text for text in loss.guarantee.assumptions)


def test_without_the_grid_low_bits_would_differ():
    """What the test above would catch: sums of floats are no multiples of the spacing."""
    spacing = release(X, Y, "gaussian", "add_remove").guarantee.mechanism.grids[0].spacing
    assert np.any(np.remainder(2 * X.T @ X, spacing) != 0.0)


def test_other_losses_say_that_low_bits_are_not_covered():
    theta = cp.Variable(3)
    plan = cvxqop.plan(
        cp.Problem(cp.Minimize(cp.sum(cp.logistic(X @ theta)))), private=[X],
        bounds=cvxqop.Bounds(row_norm=1.0), epsilon=1.0, delta=1e-6,
    )  # fmt: skip
    assert any("outside the guarantee" in text for text in plan.guarantee.assumptions)
    assert not any("public grid" in text for text in plan.guarantee.assumptions)
