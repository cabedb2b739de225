"""Outcome and words are the same for neighbours and, where n is private, for every n."""

from __future__ import annotations

import re

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp

from cvxqop.errors import ProblemError
from cvxqop.problem.bounds import Bounds
from cvxqop.problem.losses.declared import Declared
from cvxqop.problem.reading.analysis import read
from cvxqop.problem.reading.declared_reading import read_declared

D, GROUPS = 3, 4
ADJACENCIES = ("replace_one", "add_remove")
pytestmark = [
    pytest.mark.filterwarnings("ignore:This use of:UserWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore:conv is deprecated"),
]


def outcome(loss, constraints, private, declared=None, **options):
    """What a reading says to others than the holder of the data; numbers of names left out."""
    problem = cp.Problem(cp.Minimize(loss), constraints)
    try:
        if declared is None:
            erm = read(problem, private, **options)
        else:
            erm = read_declared(problem, private, declared, **options)
    except ProblemError as error:
        return re.sub(r"var\d+", "var", str(error))
    constants = None
    if declared is None:
        try:
            constants = erm.loss.constants(Bounds(row_norm=1.0, offset=1.0))
        except ProblemError as error:
            constants = str(error)
    words = (
        erm.texts,
        erm.public_data,
        erm.private_names,
        erm.loss.terms[0].row_parts,
        erm.loss.has_offset,
    )
    return re.sub(r"var\d+", "var", repr((words, constants)))


def ones(y):
    return np.ones(len(y))


def per_record(y, *more):
    return cp.Variable((len(y), *more), name="u")


# Expressions of rows X, targets y, public groups g of records, w (D,) and t (GROUPS,).
COUNTED = {
    "an intercept a group": lambda X, y, g, w, t: cp.sum_squares(X @ w + t[g] - y),
    "a group alone": lambda X, y, g, w, t: cp.sum_squares(t[g] - y),
    "a factor a group": lambda X, y, g, w, t: cp.sum_squares(cp.multiply(y, t[g]) - 1),
    "a factor a group on rows": lambda X, y, g, w, t: cp.sum_squares(
        cp.multiply(t[g], X @ np.ones(D)) - y
    ),
    "one-hot groups": lambda X, y, g, w, t: cp.sum_squares(np.eye(GROUPS)[g] @ t + X @ w - y),
    "groups in the rest": lambda X, y, g, w, t: cp.sum_squares(X @ w - y) + cp.norm1(t[g]),
    "groups in labels": lambda X, y, g, w, t: cp.sum(
        cp.logistic(X @ w + t[g]) - cp.multiply(y, X @ w + t[g])
    ),
    "a number a record": lambda X, y, g, w, t: cp.sum_squares(X @ w + per_record(y) - y),
    "numbers a record": lambda X, y, g, w, t: cp.sum_squares(
        cp.sum(cp.multiply(X, per_record(y, D)), axis=1) - y
    ),
    "a combination of rows": lambda X, y, g, w, t: cp.sum_squares(per_record(y) @ X),
    "a combination and a target": lambda X, y, g, w, t: (
        cp.sum_squares(per_record(y) @ X) + cp.sum_squares(X @ w - y)
    ),
    "outputs as many as records": lambda X, y, g, w, t: cp.sum_squares(
        X @ cp.Variable((D, len(y))) @ ones(y) - y
    ),
    "outputs and the target": lambda X, y, g, w, t: cp.sum_squares(
        X @ cp.Variable((D, len(y))) @ y
    ),
    "sums over records first": lambda X, y, g, w, t: cp.sum_squares(y @ X @ w),
    "sums beside a loss": lambda X, y, g, w, t: (
        cp.sum_squares(X @ w - y) + cp.square((y @ cp.Constant(X)) @ w)
    ),
    "the square of a sum": lambda X, y, g, w, t: cp.square(cp.sum(X @ w - y)),
    "normal equations": lambda X, y, g, w, t: cp.sum_squares(cp.Constant(X).T @ (X @ w - y)),
    "a mean": lambda X, y, g, w, t: cp.mean(cp.square(X @ w - y)),
    "stacked": lambda X, y, g, w, t: cp.sum_squares(cp.hstack([X @ w, y])),
    "the largest": lambda X, y, g, w, t: cp.square(cp.max(X @ w - y)),
    "the largest size": lambda X, y, g, w, t: cp.square(cp.norm_inf(X @ w - y)),
    "a quadratic form": lambda X, y, g, w, t: cp.quad_form(X @ w - y, np.eye(len(y))),
    "cumulated": lambda X, y, g, w, t: cp.sum_squares(cp.cumsum(X @ w) - y),
    "folded": lambda X, y, g, w, t: cp.sum_squares(
        cp.convolve(np.ones(2), X @ w)[: len(y)] - y
    ),
    "on a diagonal": lambda X, y, g, w, t: cp.sum_squares(cp.diag(cp.Constant(y)) @ X @ w),
    "a Kronecker product": lambda X, y, g, w, t: cp.sum_squares(cp.kron(np.eye(1), X) @ w - y),
    "public numbers": lambda X, y, g, w, t: cp.sum_squares(
        X @ w - y - np.linspace(0.1, 0.2, len(y))
    ),
    "one public number": lambda X, y, g, w, t: cp.sum_squares(X @ w - y - np.full(len(y), 0.3)),
    "a variable a record in the rest": lambda X, y, g, w, t: (
        cp.sum_squares(X @ w - y) + cp.sum_squares(per_record(y))
    ),
}  # fmt: skip


@pytest.mark.parametrize("form", COUNTED)
def test_every_number_of_records_is_refused_or_read_in_the_same_words(form):
    found = {}
    for n in (1, 2, D, GROUPS, 50):
        rng = np.random.default_rng(n)
        X, y, g = rng.uniform(-1, 1, (n, D)), rng.uniform(-1, 1, n), rng.integers(0, GROUPS, n)
        w, t = cp.Variable(D, name="w"), cp.Variable(GROUPS, name="t")
        loss = COUNTED[form](X, y, g, w, t)
        found[n] = outcome(loss, [], [X, y], adjacency="add_remove")
    assert len(set(found.values())) == 1, found


DECLARED = {
    "a group": lambda X, y, g, w, t: cp.sum(cp.exp(X @ w + t[g])),
    "a group and a target": lambda X, y, g, w, t: (
        cp.sum(cp.exp(X @ w)) + cp.sum(cp.exp(cp.multiply(y, t[g])))
    ),
    "a number a record": lambda X, y, g, w, t: cp.sum(cp.exp(X @ w + per_record(y))),
    "numbers a record": lambda X, y, g, w, t: cp.sum(
        cp.exp(cp.sum(cp.multiply(X, per_record(y, D)), axis=1))
    ),
    "over all records": lambda X, y, g, w, t: cp.log_sum_exp(X @ w),
    "over all records, a column": lambda X, y, g, w, t: cp.sum(
        cp.log_sum_exp(cp.reshape(X @ w, (len(y), 1), order="F"), axis=0)
    ),
    "the square of a sum": lambda X, y, g, w, t: cp.square(cp.sum(X @ w)) + cp.sum(cp.exp(X @ w)),
    "a geometric mean": lambda X, y, g, w, t: cp.sum(cp.exp(X @ w)) - cp.geo_mean(X @ w + 5),
    "a linear group": lambda X, y, g, w, t: cp.sum(cp.exp(X @ w)) - y @ t[g],
    "outputs and a target": lambda X, y, g, w, t: cp.sum(cp.exp(X @ cp.Variable((D, len(y))) @ y)),
    "a matrix of ones": lambda X, y, g, w, t: (
        cp.sum(cp.exp(np.ones((len(y), len(y))) @ (X @ w))) + y @ (X @ w)
    ),
    "public numbers": lambda X, y, g, w, t: cp.sum(cp.exp(X @ w + np.linspace(0.1, 0.2, len(y)))),
    "one public number": lambda X, y, g, w, t: cp.sum(cp.exp(X @ w + np.full(len(y), 0.3))),
}


@pytest.mark.parametrize("form", DECLARED)
def test_declared_losses_of_every_number_of_records(form):
    found = {}
    for n in (1, 2, D, GROUPS, 50):
        rng = np.random.default_rng(n)
        X, y, g = rng.uniform(-1, 1, (n, D)), rng.uniform(-1, 1, n), rng.integers(0, GROUPS, n)
        w, t = cp.Variable(D, name="w"), cp.Variable(GROUPS, name="t")
        loss = DECLARED[form](X, y, g, w, t)
        bounds = Declared(smoothness=10, anchor_gradient=10, gradient=10)
        found[n] = outcome(loss, [cp.norm(w, 2) <= 1], [X, y], bounds, adjacency="add_remove")
    assert len(set(found.values())) == 1, found


N = 4
SYMMETRIC = np.eye(N)
SKEW = np.array([[1.0, 0.5, 0.0, 0.0], *np.eye(N)[1:]])
TARGET = np.array([0.1, 0.2, 0.3, 0.4])
ZEROS, ONES, HALF = np.zeros(N), np.ones(N), np.array([0.5, 1.0, 1.0, 1.0])
NONZERO = np.array([1.0, 0.0, 0.0, 0.0])
THIRD = TARGET.astype(np.longdouble)
THIRD[0] = np.longdouble(1) / 3
SPARSE = sp.csr_array(SKEW * NONZERO[:, None])
MISSING = np.array([np.nan, 0.2, 0.3, 0.4])
PLAIN = np.full(N, 0.7)

# Two data sets that differ in record 0.
TURNED = (SYMMETRIC, TARGET), (SKEW, TARGET)
ZERO = (SKEW, ZEROS), (SKEW, NONZERO)
ONE = (SKEW, ONES), (SKEW, HALF)


def least_squares(X, y, w):
    return cp.sum_squares(X @ w - y)


def labels(X, y, w):
    return cp.sum(cp.logistic(X @ w)) - y @ (X @ w)


# Losses of X (n, n), y (n,) and w (n,), and the data.
NEIGHBOURS = {
    "rows turned": (TURNED, lambda X, y, w: cp.sum_squares(cp.Constant(X).T @ w - y)),
    "rows turned by NumPy": (TURNED, lambda X, y, w: cp.sum_squares(X.T @ w - y)),
    "rows from the left": (TURNED, lambda X, y, w: cp.sum_squares(w @ X - y)),
    "a column of zeros": (ZERO, lambda X, y, w: cp.sum_squares(X @ w - y.reshape(-1, 1))),
    "listed and unused": (ZERO, lambda X, y, w: cp.sum_squares(X @ w)),
    "a target of zeros": (ZERO, least_squares),
    "margins of zeros": (ZERO, lambda X, y, w: cp.sum_squares(cp.multiply(y, X @ w) - y)),
    "rows of zeros": (((0 * SKEW, TARGET), (SKEW * NONZERO[:, None], TARGET)), least_squares),
    "labels of zeros": (ZERO, labels),
    "huber of zeros": (ZERO, lambda X, y, w: cp.sum(cp.huber(X @ w - y))),
    "ones beside ones": (ONE, lambda X, y, w: cp.sum_squares(X @ w - y - np.ones(N))),
    "numbers beside listed ones": (
        ((SKEW, PLAIN.copy()), (SKEW, HALF)),
        lambda X, y, w: cp.sum_squares(X @ w - y - PLAIN),
    ),
    "an intercept of ones": (
        ONE,
        lambda X, y, w: cp.sum_squares(X @ w + np.ones((N, 1)) @ cp.Variable((1,)) - y),
    ),
    "a regulariser of ones": (
        ONE,
        lambda X, y, w: least_squares(X, y, w) + cp.norm1(cp.multiply(np.ones(N), w)),
    ),
    "a row of ones": (
        ONE,
        lambda X, y, w: (
            least_squares(X, y, w)
            + cp.norm1(cp.multiply(np.ones((1, N)), cp.reshape(w, (1, N), order="F")))
        ),
    ),
    "a bound of ones": (
        ONE,
        lambda X, y, w: least_squares(X, y, w) + cp.norm1(w - cp.Variable(N, bounds=[-1, 1])),
    ),
    "sparse zeros": (((sp.csr_array((N, N)), TARGET), (SPARSE, TARGET)), least_squares),
    "long doubles": (((SKEW, TARGET.astype(np.longdouble)), (SKEW, THIRD)), least_squares),
    "missing": (((SKEW, TARGET), (SKEW, MISSING)), least_squares),
    "signs": (((SKEW, TARGET), (SKEW, TARGET * [-1, 1, 1, 1])), labels),
}


@pytest.mark.parametrize("shown", [False, True])
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("form", NEIGHBOURS)
def test_neighbours_are_read_alike(form, adjacency, shown):
    data, build = NEIGHBOURS[form]
    for constraint in (None, ONES.copy()):
        found = []
        for X, y in data:
            w = cp.Variable(N, name="w")
            constraints = [] if constraint is None else [w <= constraint]
            options = {"adjacency": adjacency, "public": [PLAIN, w] if shown else []}
            found.append(outcome(build(X, y, w), constraints, [X, y], **options))
        assert found[0] == found[1]


DROPPED = {
    "a shift": lambda X, y, w: cp.sum(cp.logistic(X @ w + y)),
    "a target first": lambda X, y, w: cp.sum_squares(y - X @ w),
    "a target added": lambda X, y, w: cp.sum(cp.huber(X @ w + y)),
}


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("form", DROPPED)
def test_zeros_that_cvxpy_drops_set_the_same_noise(form, adjacency):
    """It writes e + 0 as e, so that only the words of the term can differ."""
    found = []
    for y in (ZEROS.copy(), NONZERO.copy()):
        w = cp.Variable(N, name="w")
        problem = cp.Problem(cp.Minimize(DROPPED[form](SKEW, y, w)))
        erm = read(problem, [SKEW, y], adjacency=adjacency)
        bounds = Bounds(row_norm=1.0, offset=1.0)
        found.append(
            (
                erm.loss.constants(bounds),
                erm.loss.terms[0].row_parts,
                erm.loss.has_offset,
                erm.public_data,
            )
        )
    assert found[0] == found[1]
    assert found[0][2:] == (True, ())


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_a_target_that_is_subtracted_twice_is_never_public(adjacency):
    """CVXPY drops it when it is zero; the second spelling of it is an array listed nowhere."""
    for y in (ZEROS.copy(), NONZERO.copy()):
        w = cp.Variable(N, name="w")
        loss = cp.sum_squares(SKEW @ w - y - y.reshape(-1))
        found = outcome(loss, [], [SKEW, y], adjacency=adjacency)
        assert "public[" not in found
        assert "not listed" not in found


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("y", [ONES.astype(int), (2 * HALF).astype(int)])
def test_whole_numbers_in_a_constraint_are_refused(y, adjacency):
    """They leave no trace, so that ones may be the target's; other numbers are listed nowhere."""
    w = cp.Variable(N, name="w")
    loss = cp.sum_squares(SKEW @ w - y)
    found = outcome(loss, [w <= np.ones(N, dtype=int)], [SKEW, y], adjacency=adjacency)
    assert "The constraint" in found
    assert "holds private data" in found or "neither in private nor in public" in found
