"""Public arrays that happen to hold the numbers of a private one stay public."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from cvxqop.errors import ProblemError
from cvxqop.problem.bounds import Bounds
from cvxqop.problem.reading.analysis import read

N = 3
t = cp.Variable(N, name="t")
rng = np.random.default_rng(1)
OTHER = rng.standard_normal((N, N)), rng.standard_normal(N)


def minimise(loss, *constraints):
    return cp.Problem(cp.Minimize(loss), list(constraints))


def same(build, *data):
    """The readings of ``build`` on data that coincide with a public array, and on others."""
    found = []
    for X, y in data:
        problem, private, public = build(X, y)
        erm = read(problem, private, public=public)
        words = (erm.terms, erm.texts.rest, erm.texts.constraints, erm.public_data)
        found.append(
            (
                erm.loss.constants(Bounds(row_norm=1.0, offset=1.0)),
                erm.loss.terms[0].row_parts,
                words,
            )
        )
    return all(one == found[0] for one in found)


GIVEN = {
    "arrays": lambda X, y: (X, y, [X, y]),
    "constants": lambda X, y: (lambda a, b: (a, b, [a, b]))(cp.Constant(X), cp.Constant(y)),
    "parameters": lambda X, y: (lambda a, b: (a, b, [a, b]))(
        cp.Parameter(X.shape, name="X", value=X), cp.Parameter(y.shape, name="y", value=y)
    ),
    "pandas": lambda X, y: (lambda a, b: (cp.Constant(a), cp.Constant(b), [a, b]))(
        pd.DataFrame(X), pd.Series(y)
    ),
}


@pytest.mark.parametrize("given", GIVEN)
def test_a_public_array_in_the_rest(given):
    G = np.eye(N)

    def build(X, y):
        X, y, private = GIVEN[given](X, y)
        return minimise(cp.sum_squares(X @ t - y) + cp.sum_squares(G @ t)), private, [G]

    assert same(build, (np.eye(N), OTHER[1]), OTHER)


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("given", GIVEN)
def test_a_public_array_in_a_constraint(given, first):
    low = np.array([1.0, 2.0, 3.0])

    def build(X, y):
        X, y, private = GIVEN[given](X, y)
        return minimise(cp.sum_squares(X @ t - y), t >= low if first else low <= t), private, [low]

    assert same(build, (OTHER[0], low.copy()), (OTHER[0], np.array([1.5, 2.0, 3.0])))


@pytest.mark.parametrize("given", GIVEN)
def test_public_weights(given):
    w = np.array([1.0, 2.0, 3.0])

    def build(X, y):
        X, y, private = GIVEN[given](X, y)
        return minimise(w @ cp.square(X @ t - y)), private, [w]

    assert same(build, (OTHER[0], w.copy()), OTHER)


def test_the_same_array_is_private_wherever_it_stands():
    X, y = OTHER
    for private in ([X, y], [cp.Constant(X), cp.Constant(y)], [cp.Constant(X), y]):
        rows = private[0] if isinstance(private[0], cp.Constant) else X
        target = private[1] if isinstance(private[1], cp.Constant) else y
        loss = cp.sum_squares(rows @ t - target)
        for constraint in (
            X @ t <= 1,
            X.T @ t <= 1,
            t <= y,
            cp.reshape(t, (3, 1), "F") <= y[:, None],
        ):
            with pytest.raises(ProblemError, match="holds private data"):
                read(minimise(loss, constraint), private)


@pytest.mark.parametrize("kind", [sp.csr_array, np.float32, lambda a: (9 * a).astype(int)])
def test_without_a_source_values_decide(kind):
    """CVXPY does not remember where these came from, so that equal numbers are refused."""
    X, y = kind(OTHER[0]), OTHER[1]
    with pytest.raises(ProblemError, match="holds private data"):
        read(minimise(cp.sum_squares(X @ t - y), X @ t <= 1), [X, y])


def test_views_and_nameless_arrays_prove_nothing():
    """Their id may be that of an array that is gone: all uses stay private, run after run."""
    base = np.column_stack(OTHER)
    frame = pd.DataFrame(base)
    for _ in range(200):
        X, y = base[:, :3], base[:, 3]
        loss = cp.sum_squares(base[:, :3] @ t - 2 * y) + cp.sum_squares(base[:, :3] @ t)
        keep = [np.empty(1) for _ in range(rng.integers(3))]
        for private in ([X, 2 * y], (base[:, :3], 2 * y), [frame.iloc[:, :3], 2 * y]):
            erm = read(minimise(loss), private)
            assert len(erm.loss.terms[0].losses) == 2
            assert erm.regulariser is None
        loss = cp.sum_squares((X * 2) @ t - y) + cp.sum_squares((X * 2) @ t)
        del keep
        for private in ([X * 2, y], (X * 2, y)):
            assert len(read(minimise(loss), private).loss.terms[0].losses) == 2
