"""What is no sum over records is refused by name, and every remedy is code that runs."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

import cvxqop
from cvxqop.problem.spelling.impossible import IMPOSSIBLE, IN_A_CONSTRAINT

rng = np.random.default_rng(0)
N, D = 60, 3
X = rng.uniform(-0.5, 0.5, (N, D))
Y = np.sign(X @ [1.0, -1.0, 0.5])
F = np.exp(-((X[:, :1] - np.linspace(-0.5, 0.5, 4)) ** 2))
C = rng.uniform(0.5, 1.5, N)
GRAM, KERNEL = X.T @ X, np.exp(-((X[:, None] - X[None]) ** 2).sum(-1))
w, v, a, th = cp.Variable(D), cp.Variable(4), cp.Variable(), cp.Variable(N)
t = cp.Variable()
PAY = {"bounds": cvxqop.Bounds(row_norm=2.0, offset=1.5), "epsilon": 1.0, "delta": 1e-6}
NAMES = {
    "cp": cp, "np": np, "X": X, "y": Y, "F": F, "c": C, "k": 6, "N": N, "lam": 0.1,
    "w": w, "v": v, "a": a, "t": np.zeros(D),
}  # fmt: skip

TABLES = {"term": IMPOSSIBLE, "constraint": IN_A_CONSTRAINT}


@pytest.mark.parametrize(
    ("table", "name"), [(table, name) for table, own in TABLES.items() for name in own]
)
def test_every_remedy_runs(table, name):
    found = TABLES[table][name]
    objective = eval(found.objective, dict(NAMES))
    constraints = eval(found.constraints or "[]", dict(NAMES))
    options = eval(f"dict({found.options})", dict(NAMES))
    private = [array for array in (X, Y, F) if f"{_name(array)} " in f"{found.objective} "]
    problem = cp.Problem(cp.Minimize(objective), constraints)
    solution = cvxqop.privatize(problem, private=_occurring(problem, private), **options, **PAY)
    assert all(np.all(np.isfinite(value)) for value in solution.values.values())


def _name(array):
    return next(name for name, value in NAMES.items() if value is array)


def _occurring(problem, private):
    """The arrays that a remedy holds."""
    held = [leaf.value for leaf in problem.constants()]
    return [one for one in (X, Y, F) if any(np.array_equal(one, other) for other in held)]


def hard_margin():
    return cp.Problem(cp.Maximize(t), [cp.multiply(Y, X @ w) >= t, cp.norm(w, 2) <= 1])


def dual():
    Q = (Y[:, None] * X) @ (Y[:, None] * X).T
    return cp.Problem(
        cp.Maximize(cp.sum(th) - 0.5 * cp.quad_form(th, cp.psd_wrap(Q))),
        [th >= 0, th <= 1, Y @ th == 0],
    ), [Q, Y]


def minimise(objective, constraints=()):
    return cp.Problem(cp.Minimize(objective), list(constraints))


# name: (problem, private, why, remedy)
REFUSED = {
    "square-root lasso": (
        minimise(cp.norm(X @ w - Y, 2) / 8.0 + cp.norm1(w)),
        [X, Y],
        IMPOSSIBLE["norm"],
    ),
    "Chebyshev": (minimise(cp.norm_inf(X @ w - Y)), [X, Y], IMPOSSIBLE["norm_inf"]),
    "largest": (minimise(cp.max(cp.square(X @ w - Y))), [X, Y], IMPOSSIBLE["max"]),
    "trimmed": (
        minimise(cp.sum_largest(cp.square(X @ w - Y), 5)), [X, Y], IMPOSSIBLE["sum_largest"]
    ),
    "soft maximum": (minimise(cp.log_sum_exp(X @ w - Y)), [X, Y], IMPOSSIBLE["log_sum_exp"]),
    "generalised least squares": (
        minimise(cp.quad_form(X @ w - Y, np.eye(N) + 0.1)), [X, Y], IMPOSSIBLE["quad_form"]
    ),
    "Gram matrix": (minimise(cp.quad_form(w, GRAM) - X.sum(0) @ w), [GRAM], IMPOSSIBLE["matrix"]),
    "kernel ridge": (
        minimise(cp.sum_squares(KERNEL @ th - Y) + cp.quad_form(th, cp.psd_wrap(KERNEL))),
        [KERNEL, Y],
        IMPOSSIBLE["matrix"],
    ),
    "trend filter": (
        minimise(cp.sum_squares(Y - th) + cp.norm1(cp.diff(th, 2))), [Y], IMPOSSIBLE["per record"]
    ),
    "two data sets": (
        minimise(cp.sum_squares(X @ w - Y) + cp.sum_squares(F[:20, :3] @ w - C[:20])),
        [X, Y, F[:20, :3], C[:20]],
        IMPOSSIBLE["different records"],
    ),
    "positives apart": (
        minimise(cp.sum(cp.logistic(X @ w)) - cp.sum(X[Y > 0] @ w)),
        [X, X[Y > 0]],
        IMPOSSIBLE["different records"],
    ),
    "basis pursuit": (
        minimise(cp.norm1(w), [cp.norm(X @ w - Y) <= 2.5]), [X, Y], IN_A_CONSTRAINT["norm"]
    ),
    "hard margin": (hard_margin(), [X, Y], IN_A_CONSTRAINT["row"]),
    "dual": (*dual(), IN_A_CONSTRAINT["dual"]),
    "raking": (
        minimise(cp.sum(cp.kl_div(th, np.full(N, 2.0))), [X.T @ th == np.zeros(D)]),
        [X],
        IN_A_CONSTRAINT["equation"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_impossible_is_refused_with_its_reason(name):
    problem, private, why = REFUSED[name]
    with pytest.raises(cvxqop.ProblemError) as caught:
        cvxqop.plan(problem, private=private, **PAY)
    assert why.text in str(caught.value)


@pytest.mark.parametrize(
    ("objective", "private"),
    [
        (cp.quad_form(w, GRAM) - 2 * (X.T @ Y) @ w, [X, Y]),
        (cp.sum(cp.logistic(cp.multiply(2.0, (X.sum(0) / N) @ w))), [X]),
        (cp.quad_form(w, np.cov(X.T)) - X.mean(0) @ w, [X]),
    ],
)
def test_what_numpy_computed_is_named(objective, private):
    with pytest.raises(cvxqop.ProblemError, match=r"What NumPy computes .*cp.sum_squares"):
        cvxqop.plan(minimise(objective), private=private, **PAY)


def test_a_negative_of_numpy_is_listed_itself():
    negX = -X
    loss = cp.sum(cp.logistic(negX @ w))
    with pytest.raises(cvxqop.ProblemError, match="list the very array"):
        cvxqop.plan(minimise(loss), private=[X], **PAY)
    cvxqop.privatize(minimise(loss), private=[negX], **PAY)


@pytest.mark.parametrize(
    "objective",
    [
        sum(cp.square(X[i] @ w - Y[i]) for i in reversed(range(N))),
        sum(cp.square((Y[i] * X[i]) @ w - 1) for i in range(N)),
        sum(cp.square(X[i] @ w - Y[i] - 0.5 * C[i]) for i in range(N)),
    ],
)
def test_a_loop_over_other_numbers_is_refused(objective):
    with pytest.raises(cvxqop.ProblemError, match="as many alike parts as there are records"):
        cvxqop.plan(minimise(objective), private=[X, Y], **PAY)


def test_a_loop_does_not_tell_how_many_records_there_are():
    told = set()
    for n in (2, 5, 7):
        loss = cp.sum(cp.hstack([cp.square(X[i] @ w - C[i]) for i in range(n)]))
        with pytest.raises(cvxqop.ProblemError) as caught:
            cvxqop.plan(
                minimise(loss),
                private=[X[:n], C[:n]],
                adjacency="add_remove",
                **PAY,
            )
        told.add(str(caught.value))
    assert len(told) == 1
