"""Random affine expressions: entry by entry, the rows have the values that CVXPY computes."""

from __future__ import annotations

import random

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp

from cvxqop.problem.reading.analysis import read_expression

from .listed import public_of


class Grammar:
    """Expressions with one entry a record, over private X, y and public P, q."""

    def __init__(self, seed: int) -> None:
        self.pick, rng = random.Random(seed), np.random.default_rng(seed)
        self.n, self.d = self.pick.choice([1, 2, 4, 7]), self.pick.choice([1, 2, 3])
        X, self.y = rng.standard_normal((self.n, self.d)), cp.Constant(rng.standard_normal(self.n))
        self.X = self.pick.choice(
            [
                lambda: cp.Constant(X),
                lambda: cp.Constant(sp.csr_array(X)),
                lambda: cp.Parameter(X.shape, value=X),
            ]
        )()
        self.P = cp.Constant(rng.standard_normal((self.n, self.d)))
        self.q = cp.Constant(rng.uniform(0.5, 2, self.n))
        self.M = rng.standard_normal((self.d, self.d))
        self.w, self.W, self.b = cp.Variable(self.d), cp.Variable((self.d, 1)), cp.Variable()

    def constant(self, depth: int) -> cp.Expression:
        options = [lambda: self.y, lambda: self.q]
        if depth > 0:
            inner = lambda: self.constant(depth - 1)  # noqa: E731
            options += [
                lambda: 1 - inner(),
                lambda: 2 * inner(),
                lambda: inner() + inner(),
                lambda: cp.multiply(inner(), inner()),
                lambda: self.X[:, self.pick.randrange(self.d)],
                lambda: self.X @ np.ones(self.d),
            ]
        return self.pick.choice(options)()

    def affine(self, depth: int) -> cp.Expression:
        options = [
            lambda: self.X @ self.w,
            lambda: self.w @ self.X.T,
            lambda: self.P @ self.w,
            lambda: self.X @ (self.M @ self.w),
            lambda: (self.X @ self.M) @ self.w,
            lambda: cp.vec(self.X @ self.W, order="F"),
            lambda: self.X[:, :1] @ self.w[:1],
            lambda: self.constant(0),
        ]
        if depth > 0:
            inner = lambda: self.affine(depth - 1)  # noqa: E731
            options = [
                lambda: self.X @ self.w,
                lambda: inner() + inner(),
                lambda: inner() - inner(),
                lambda: -inner(),
                lambda: inner() * self.pick.choice([0.5, -3.0]),
                lambda: inner() / self.pick.choice([0.5, -3.0]),
                lambda: inner() + self.b,
                lambda: inner() - cp.sum(self.w),
                lambda: inner() / self.q,
                lambda: cp.multiply(self.constant(2), inner()),
                lambda: cp.diag(self.constant(1)) @ inner(),
                lambda: sp.diags_array(self.q.value) @ inner(),
                lambda: cp.reshape(
                    cp.reshape(inner(), (self.n, 1), order="C"), (self.n,), order="F"
                ),
            ]
        return self.pick.choice(options)()


@pytest.mark.parametrize("seed", range(300))
def test_entries(seed):
    grammar = Grammar(seed)
    argument = cp.multiply(grammar.y, grammar.X @ grammar.w) + grammar.affine(3)
    loss, private = cp.sum(cp.logistic(argument)), [grammar.X, grammar.y]
    erm = read_expression(loss, private, public=public_of(loss, private))
    rng = np.random.default_rng(seed)
    values = {variable: rng.standard_normal(variable.shape) for variable in erm.variables}
    for variable, value in values.items():
        variable.value = value
    expected = argument.value
    expected = np.ravel(expected.toarray() if sp.issparse(expected) else expected)
    theta = erm.stack(values)
    found = np.concatenate([A @ theta + C[:, 0] for A, C in erm.loss.terms[0].rows.blocks(3)])
    np.testing.assert_allclose(found, expected, atol=1e-9 * max(1.0, np.abs(expected).max()))
