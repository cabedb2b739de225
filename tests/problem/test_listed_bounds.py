"""Bounds that are listed as public stay public when records happen to hold the same numbers."""

import cvxpy as cp
import numpy as np
import pytest

from cvxqop.errors import ProblemError
from cvxqop.problem.reading.analysis import read

ADJACENCIES = ("add_remove", "replace_one")


def problem(X, y, ends):
    theta = cp.Variable(2, name="theta", bounds=ends)
    return cp.Problem(cp.Minimize(cp.sum_squares(X @ theta - y)))


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("y", [[1.0, 1.0], [1.0, 0.5], [-1.0, -1.0]])
def test_neighbouring_targets_are_read_alike(adjacency, y):
    ends = [np.full(2, -1.0), np.full(2, 1.0)]
    X, y = np.eye(2), np.array(y)
    erm = read(problem(X, y, ends), [X, y], public=ends, adjacency=adjacency)
    assert erm.loss.terms[0].rows.n == 2
    assert erm.loss.terms[0].rows.has_offset


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("bound", [lambda y: y, lambda y: y[:], lambda y: y.copy()])
def test_targets_in_the_place_of_bounds_are_private_whatever_is_listed(adjacency, bound):
    X, y, top = np.eye(2), np.array([0.25, 0.5]), np.full(2, 1.0)
    public = [top, np.array([0.25, 0.5])]  # equal numbers of another array do not make it public
    with pytest.raises(ProblemError, match="bounds or attributes"):
        read(problem(X, y, [bound(y), top]), [X, y], public=public, adjacency=adjacency)
