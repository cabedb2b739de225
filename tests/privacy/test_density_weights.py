"""Private weights and weights of classes: the constants that the library states of a loss, in the
claimed profile, against integrated output densities of losses written out by hand."""

import cvxpy as cp
import numpy as np
import pytest
from densities import density_1d, density_2d, grid_1d, grid_2d, hockey_stick
from scipy.special import expit

from cvxqop.privacy.wishart import ensemble as wishart
from cvxqop.problem.bounds import Bounds
from cvxqop.problem.losses.class_weights import weighed
from cvxqop.problem.losses.open_loss import settle
from cvxqop.problem.reading.analysis import read

EPSILONS = (0.25, 0.5, 1.0, 2.0)
NOISE = {"sigma2": 2.0, "guard": 2.5}
W = 3.0
BOUNDS = Bounds(row_norm=1.0, weight=W)
M = 8.0

# A record is a row and two numbers: of a binomial loss m log(1 + exp t) − k t, of the others the
# weight and the label of w log(1 + exp(−y t)).
PAIRS = {
    "add": ([((0.6, 0.3), 1.0, 1.0)], [((0.6, 0.3), 1.0, 1.0), ((0.6, 0.8), W, 1.0)]),
    "add alone": ([], [((0.6, 0.8), W, 1.0)]),
    "replace": (
        [((0.5, 0.1), 1.0, 0.0), ((1.0, 0.0), W, W)],
        [((0.5, 0.1), 1.0, 0.0), ((1.0, 0.0), W, 0.0)],
    ),
    "another weight": (
        [((0.5, 0.1), 1.0, 0.0), ((1.0, 0.0), W, 0.0)],
        [((0.5, 0.1), 1.0, 0.0), ((1.0, 0.0), 0.0, 0.0)],
    ),
}


def binomial(t, weight, label):
    """Slope and curvature."""
    k = min(label, weight)
    return weight * expit(t) - k, weight * expit(t) * expit(-t)


def weighted(t, weight, label):
    y = 1.0 if label > 0.0 else -1.0
    return -weight * y * expit(-y * t), weight * expit(t) * expit(-t)


def of_class(t, weight, label):
    return weighted(t, W if label > 0.0 else 1.0, label)


def stated(name):
    """The constants of the library."""
    X, m, w = np.array([[0.1, 0.2], [0.3, 0.1]]), np.array([1.0, 2.0]), cp.Variable(2)
    y, row = np.array([1.0, -1.0]), cp.Constant(X) @ w
    loss, private = {
        "binomial": (cp.multiply(m, cp.logistic(row)) - cp.multiply(y, row), [m, y]),
        "weighted": (cp.multiply(m, cp.logistic(-cp.multiply(y, row))), [m, y]),
        "classes": (cp.logistic(-cp.multiply(y, row)), [y]),
    }[name]
    erm = read(cp.Problem(cp.Minimize(cp.sum(loss))), [X, *private], losses="any")
    erm = weighed(erm, {-1: 1.0, 1: W} if name == "classes" else None)
    fail = pytest.fail
    own = settle(erm.loss, BOUNDS, np.zeros(2), None, 1.0, 1.0, None, lambda *w: fail(w))
    return own[0].constants(BOUNDS)


LOSSES = {"binomial": binomial, "weighted": weighted, "classes": of_class}


def densities(loss, pair, dimension):
    u, weight = grid_1d() if dimension == 1 else grid_2d()
    density = density_1d if dimension == 1 else density_2d
    found = []
    for records in pair:
        points = u[:, None] if dimension == 1 else u
        gradient, hessian = np.zeros_like(points), np.zeros((*points.shape, dimension))
        for row, *numbers in records:
            a = np.array(row[:dimension])
            slope, bend = loss(points @ a, *numbers)
            gradient += slope[:, None] * a
            hessian += bend[:, None, None] * np.outer(a, a)
        if dimension == 1:
            gradient, hessian = gradient[:, 0], hessian[:, 0, 0]
        found.append(density(u, gradient, hessian, m=M + dimension - 1, **NOISE))
    return *found, weight


def claim(epsilon, constants, *, replaced, factor=1.0):
    return float(
        wishart.profile(
            epsilon,
            factor * constants.smoothness / NOISE["sigma2"],
            M,
            adjacency="replace_one" if replaced else "add_remove",
            quadratic=False,
            mu=factor * constants.anchor_gradient / NOISE["guard"],
        )
    )


@pytest.mark.parametrize("dimension", [1, 2])
@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("name", LOSSES)
def test_never_exceeds_the_profile(name, pair, dimension):
    constants = stated(name)
    p, q, weight = densities(LOSSES[name], PAIRS[pair], dimension)
    for one in (p, q):
        assert weight @ one == pytest.approx(1.0, abs=2e-3)
    for epsilon in EPSILONS:
        bound = claim(epsilon, constants, replaced=not pair.startswith("add"))
        for one, other in ((p, q), (q, p)):
            assert hockey_stick(one, other, weight, epsilon) <= bound * (1.0 + 1e-3) + 1e-7


@pytest.mark.parametrize("name", LOSSES)
def test_constants_without_the_weight_are_caught(name):
    p, q, weight = densities(LOSSES[name], ([], [((1.0, 0.0), W, 1.0)]), 1)
    wrong = claim(0.5, stated(name), replaced=False, factor=1.0 / W)
    found = max(hockey_stick(p, q, weight, 0.5), hockey_stick(q, p, weight, 0.5))
    assert found > 1.05 * wrong
