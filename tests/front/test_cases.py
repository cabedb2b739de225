"""Inputs that broke other tools, from public bug reports, each with its right outcome.

The rest of the collection stands where it belongs: units, regulariser and spelling, not-a-number,
seeds, few records, degenerate columns and misspelt options in test_privatize.py and
test_refusals.py; extremes of ε and δ in tests/privacy.
"""

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import cvxqop

PAY = {"bounds": cvxqop.Bounds(row_norm=1.0, offset=1.0), "epsilon": 1.0, "delta": 1e-6}


def records(n=300, d=4):
    rng = np.random.default_rng(0)
    X = rng.uniform(-0.5, 0.5, (n, d))
    return X, np.clip(X @ np.arange(1.0, d + 1) / d, -1, 1)


def released(loss, variable, private, **changes):
    problem = cp.Problem(cp.Minimize(loss))
    return cvxqop.privatize(problem, private=private, seed=1, **{**PAY, **changes})[variable]


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_intercept_is_inside_the_perturbation(order):
    """Logistic regression with an unregularised intercept on {(1,1),(0,0)} and {(1,1),(1,0)}."""
    data = [
        (np.array([[1.0], [0.0]]), np.array([1.0, -1.0])),
        (np.array([[1.0], [1.0]]), np.array([1.0, -1.0])),
    ]
    intercepts = []
    for X, y in (data[i] for i in order):
        w, b = cp.Variable(1), cp.Variable()
        problem = cp.Problem(cp.Minimize(cp.sum(cp.logistic(-cp.multiply(y, X @ w + b)))))
        plan = cvxqop.plan(
            problem, private=[X, y], seed=3, **{**PAY, "bounds": cvxqop.Bounds(row_norm=np.sqrt(2))}
        )
        assert plan.dimension == 2
        intercepts.append(np.array([plan.run()[b] for _ in range(150)]))
    # A threshold between the two clouds: Clopper-Pearson at 1e-7 stays under the claim.
    from scipy.stats import beta

    threshold = np.median(np.concatenate(intercepts))
    hits = [int(np.sum(cloud > threshold)) for cloud in intercepts]
    for first, second in (hits, hits[::-1]):
        low = beta.ppf(1e-7, first, 151 - first) if first else 0.0
        high = beta.ppf(1 - 1e-7, second + 1, 150 - second) if second < 150 else 1.0
        assert np.log(max(low - PAY["delta"], 1e-12) / high) <= PAY["epsilon"]


def test_column_vectors_and_flat_vectors_agree():
    X, y = records()
    flat, column = cp.Variable(4), cp.Variable((4, 1))
    one = released(cp.sum_squares(X @ flat - y), flat, [X, y])
    target = y[:, None]
    two = released(cp.sum_squares(X @ column - target), column, [X, target])
    assert two.shape == (4, 1)
    np.testing.assert_allclose(two[:, 0], one, atol=1e-8)
    with pytest.raises(cvxqop.ProblemError, match="broadcast"):
        released(cp.sum_squares(X @ flat - target), flat, [X, target])


@pytest.mark.parametrize("form", ["csc", "csr", "parameter"])
def test_sparse_equals_dense(form):
    X, y = records()
    X[np.abs(X) < 0.3] = 0.0
    theta = cp.Variable(4)
    dense = released(cp.sum_squares(X @ theta - y), theta, [X, y])
    if form == "parameter":
        rows, cols = np.nonzero(X)
        P = cp.Parameter(X.shape, sparsity=(rows, cols))
        P.value_sparse = sp.coo_array((X[rows, cols], (rows, cols)), shape=X.shape)
        private = [P, y]
    else:
        P = getattr(sp, f"{form}_array")(X)
        private = [P, y]
    np.testing.assert_allclose(
        released(cp.sum_squares(P @ theta - y), theta, private), dense, atol=1e-8
    )


def test_data_frames_with_an_index_of_their_own():
    X, y = records()
    frame = pd.DataFrame(X, index=np.arange(300)[::-1] + 7)
    series = pd.Series(y, index=frame.index)
    theta = cp.Variable(4)
    plain = released(cp.sum_squares(X @ theta - y), theta, [X, y])
    tabular = released(cp.sum_squares(cp.Constant(frame) @ theta - series), theta, [frame, series])
    np.testing.assert_allclose(tabular, plain, atol=1e-9)


def test_large_wishart_matrices_pass_every_solver_quickly():
    rng = np.random.default_rng(2)
    X = rng.standard_normal((300, 200)) / 20
    y = rng.uniform(-1, 1, 300)
    theta = cp.Variable(200)
    answers = [
        released(cp.sum_squares(X @ theta - y), theta, [X, y], solver=solver)
        for solver in ("CLARABEL", "OSQP", "SCS", "STOTOS")
    ]
    for answer in answers[1:]:
        assert np.abs(answer - answers[0]).max() < 1e-6


def test_scalar_and_complex_variables():
    X, y = records(d=1)
    theta = cp.Variable()
    column = X[:, 0]
    assert released(cp.sum_squares(column * theta - y), theta, [column, y]).shape == ()
    z = cp.Variable(1, complex=True)
    with pytest.raises(cvxqop.ProblemError, match="complex"):
        released(cp.sum_squares(X @ z - y), z, [X, y])
