"""Records where no one looks for them: beside a glm_loss, folded, in borrowed memory, as anchor."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest

from cvxqop import Bounds, CommonMinimizer, Declared, glm_loss, plan
from cvxqop.errors import OptionError, ProblemError
from cvxqop.problem.reading.analysis import read

rng = np.random.default_rng(3)
N, D = 12, 3
X, y = rng.uniform(-0.5, 0.5, (N, D)), rng.uniform(-1.0, 1.0, N)
w, u, b = cp.Variable(D, name="w"), cp.Variable(N, name="u"), cp.Variable(name="b")
LOSS = cp.sum_squares(X @ w - y)


class Slices:
    """An array that is only read by slices of rows, as one in a file is."""

    def __init__(self, array):
        self._array, self.shape, self.dtype = array, array.shape, array.dtype

    def __getitem__(self, key):
        return self._array[key]


HELD = {
    "arrays": (X, y),
    "blocks": ([X[:5], X[5:]], [y[:5], y[5:]]),
    "lists": (X.tolist(), y.tolist()),
    "slices": (Slices(X), Slices(y)),
    "pandas": (pd.DataFrame(X), pd.Series(y)),
    "no target": (Slices(X), None),
}


@pytest.mark.parametrize("held", HELD)
@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
def test_records_of_a_glm_loss_in_a_constraint(held, adjacency):
    """In whatever form the loss has them, u == y would publish the targets."""
    problem = cp.Problem(cp.Minimize(glm_loss("squared", *HELD[held], w)), [u == y])
    with pytest.raises(ProblemError, match=r"listed neither in private|holds private data"):
        read(problem, [], adjacency=adjacency, public=[u])


def test_rows_of_a_list_are_not_records():
    """A list of rows is one array: a public array of D numbers beside it stays public."""
    term = glm_loss("squared", X.tolist(), y.tolist(), w)
    assert (
        read(cp.Problem(cp.Minimize(term), [w <= np.arange(1.0, D + 1)]), []).loss.terms[0].rows.n
        == N
    )


@pytest.mark.parametrize("listed", [[], [y]])
@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
def test_records_in_the_arguments_of_a_glm_loss(adjacency, listed):
    """Theta and intercept are public maps of the variables: their numbers are not clipped."""
    for term in (
        glm_loss("squared", X, y, w, intercept=b + y @ u),
        glm_loss("squared", X, y, X.T @ u),
        glm_loss("logistic", X, y, cp.multiply(w, X[0]), intercept=cp.Constant(y) @ u),
    ):
        with pytest.raises(ProblemError, match="in theta or intercept"):
            read(cp.Problem(cp.Minimize(term)), listed, adjacency=adjacency, public=[X[0].copy()])


@pytest.mark.parametrize("array", [X.ravel(), X.reshape(-1, 2), y.reshape(3, 4)])
def test_a_folded_array(array):
    """Under another shape a listed array is as private, whatever its axes are."""
    v = cp.Variable(array.shape, name="v")
    with pytest.raises(ProblemError, match="as many entries as a private array"):
        read(cp.Problem(cp.Minimize(LOSS), [v == array]), [X, y])
    read(cp.Problem(cp.Minimize(LOSS), [v == array]), [X, y], public=[array.copy()])


@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
@pytest.mark.parametrize("view", [X[0], X[:5], X[2:4, 1], X.ravel(), X[::-1], X[3, 1:]])
def test_a_parameter_in_borrowed_memory(view, adjacency):
    """A parameter does not copy: one that lies in a private array holds records."""
    P, v = cp.Parameter(view.shape, name="P", value=view), cp.Variable(view.shape, name="v")
    assert np.shares_memory(P.value, X)
    with pytest.raises(ProblemError, match=r"holds private data \(private\[0\]"):
        read(cp.Problem(cp.Minimize(LOSS), [v == P]), [X, y], adjacency=adjacency, public=[v])


def test_columns_of_one_table_are_apart():
    """Records and public numbers may be columns of one array, which overlap as intervals only."""
    table = rng.uniform(-0.5, 0.5, (N, D + 2))
    A, c, shared = table[:, :D], table[:, D], table[:, D + 1]
    P = cp.Parameter(N, name="P", value=shared)
    problem = cp.Problem(cp.Minimize(cp.sum_squares(A @ w - c)), [u >= P])
    assert read(problem, [A, c], public=[P]).public_data == ("P, shape (n,)",)


@pytest.mark.parametrize(
    "anchor",
    [
        X[0],
        X[0:1],
        X[:, 0][:D],
        {w: X[0]},
        CommonMinimizer(X[1], error=0.1),
        pd.Series(X[2], copy=False),
    ],
)
def test_records_as_an_anchor(anchor):
    options = {"epsilon": 1.0, "delta": 1e-6, "anchor": anchor}
    bounds = Bounds(row_norm=1.0, offset=1.0)
    with pytest.raises(OptionError, match="anchor: the array lies in the memory"):
        plan(cp.Problem(cp.Minimize(LOSS)), private=[X, y], bounds=bounds, **options)
    term = glm_loss("squared", X, y, w)
    with pytest.raises(OptionError, match="anchor: the array lies in the memory"):
        plan(cp.Problem(cp.Minimize(term)), private=[], bounds=bounds, **options)


def test_records_as_the_anchor_of_a_declared_loss():
    loss = cp.sum(cp.power(X @ w - y, 4))
    declared = Declared(smoothness=1.0, anchor_gradient=1.0)
    with pytest.raises(OptionError, match="anchor: the array lies in the memory"):
        plan(
            cp.Problem(cp.Minimize(loss), [cp.norm(w) <= 1]),
            private=[X, y],
            declared=declared,
            anchor=X[0],
            epsilon=1.0,
            delta=1e-6,
        )


def test_the_numbers_of_a_record_may_be_public():
    """Memory decides, and not values: whether a plan is made must not depend on records."""
    bounds = Bounds(row_norm=1.0, offset=1.0)
    problem = cp.Problem(cp.Minimize(LOSS))
    options = {"private": [X, y], "bounds": bounds, "epsilon": 1.0, "delta": 1e-6}
    assert plan(problem, anchor=X[0].copy(), **options).dimension == D
