"""The same problem in other spellings is the same release, with the same seed."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

import cvxqop

rng = np.random.default_rng(0)
N, D = 40, 3
X = rng.uniform(-0.5, 0.5, (N, D))
Y = X @ [1.0, -1.0, 0.5] + 0.1 * rng.uniform(-1, 1, N)
S = np.sign(X @ [1.0, -1.0, 0.5] + 0.1 * rng.standard_normal(N))
S01 = (S + 1) / 2
COLUMN, SIGNS = Y[:, None].copy(), S[:, None].copy()
II, JJ, G = rng.integers(4, size=N), rng.integers(3, size=N), rng.integers(5, size=N)
ENTRIES = np.zeros((N, 12))
ENTRIES[np.arange(N), II + 4 * JJ] = 1.0
GROUPS = np.eye(5)[G]
CX, PX, PY = cp.Constant(X), cp.Parameter((N, D), value=X), cp.Parameter(N, value=Y)
HEAD, HEAD_Y = X[:25].copy(), Y[:25].copy()
FOLD = np.flatnonzero(np.arange(N) % 5)
TWO, OUT = np.column_stack([Y, -Y]), cp.Variable((D, 2), name="OUT")
P2, XF, YF = cp.Parameter((N, 2), value=TWO), X[FOLD], TWO[FOLD]
WEIGHTS = rng.uniform(0.5, 1.5, N)
DIAGONAL = np.diag(WEIGHTS)
w, b, W = cp.Variable(D, name="w"), cp.Variable(name="b"), cp.Variable((D, 1), name="W")
M, levels = cp.Variable((4, 3), name="M"), cp.Variable(5, name="levels")
r, t, z = (cp.Variable(N, name=name) for name in "rtz")
u, v = cp.Variable(N, name="u", nonneg=True), cp.Variable(N, name="v")
PAY = {
    "bounds": cvxqop.Bounds(row_norm=1.0, offset=1.5),
    "epsilon": 2.0,
    "delta": 1e-6,
    "smoothing": "auto",
    "seed": 3,
    "public": [FOLD, DIAGONAL, WEIGHTS],
}

LS, LAD = cp.sum_squares(X @ w - Y), cp.sum(cp.abs(X @ w - Y))
MARGIN = cp.multiply(S, X @ w + b)
HINGE = 0.5 * cp.sum_squares(w) + 0.1 * cp.sum(cp.pos(1 - MARGIN))
SOFT = 0.5 * cp.sum_squares(w) + 0.1 * cp.sum(v)
PINBALL = cp.sum(0.3 * cp.pos(Y - X @ w) + 0.7 * cp.neg(Y - X @ w))
EACH = range(N)

# name: (objective, constraints, private), and what it is in plain spelling, with its private list.
SPELLINGS = {
    "a sum of terms": (
        (sum(cp.square(X[i] @ w - Y[i]) for i in EACH) + cp.norm1(w), [], [X, Y]),
        (LS + cp.norm1(w), [X, Y]),
    ),
    "a mean of a list": (
        (sum([cp.sum_squares(w @ X[i] - Y[i]) for i in EACH]) / N, [], [X, Y]),
        (LS / N, [X, Y]),
    ),
    "a stack of terms": (
        (cp.sum(cp.hstack([cp.norm(X[i] @ w - Y[i]) ** 2 for i in EACH])), [], [X, Y]),
        (LS, [X, Y]),
    ),
    "a stack of residuals": (
        (cp.sum_squares(cp.hstack([X[i] @ w - Y[i] for i in EACH])), [], [X, Y]),
        (LS, [X, Y]),
    ),
    "a loop over entries": (
        (
            sum(cp.square(X[i, 0] * w[0] + X[i, 1] * w[1] + X[i, 2] * w[2] - Y[i]) for i in EACH),
            [],
            [X, Y],
        ),
        (cp.sum_squares(CX[:, 0] * w[0] + CX[:, 1] * w[1] + CX[:, 2] * w[2] - Y), [CX, Y]),
    ),
    "a loop over parameters": (
        (sum(cp.square(PX[i] @ w - PY[i]) for i in EACH), [], [PX, PY]),
        (LS, [X, Y]),
    ),
    "a loop with columns": (
        (cp.sum([cp.square(X[i] @ W - COLUMN[i]) for i in EACH]), [], [X, COLUMN]),
        (cp.sum_squares(X @ W - COLUMN), [X, COLUMN]),
    ),
    "a loop of logistic losses": (
        (sum(cp.logistic(-S[i] * (X[i] @ w + b)) for i in EACH), [], [X, S]),
        (cp.sum(cp.logistic(-MARGIN)), [X, S]),
    ),
    "a loop of hinges": (
        (
            0.5 * cp.sum_squares(w)
            + 0.1 * sum(cp.maximum(0, 1 - S[i] * (X[i] @ w + b)) for i in EACH),
            [],
            [X, S],
        ),
        (HINGE, [X, S]),
    ),
    "a residual": ((cp.sum_squares(r), [r == Y - X @ w], [X, Y]), (LS, [X, Y])),
    "a residual on the left": ((cp.sum_squares(r), [X @ w + 2 * r == Y], [X, Y]), (LS / 4, [X, Y])),
    "a residual of huber": (
        (cp.sum(cp.huber(r)), [X @ w - r == Y], [X, Y]),
        (cp.sum(cp.huber(X @ w - Y)), [X, Y]),
    ),
    "absolute values": ((cp.sum(t), [t >= X @ w - Y, t >= Y - X @ w], [X, Y]), (LAD, [X, Y])),
    "absolute values, two sides": (
        (cp.sum(t) / N, [-t <= X @ w - Y, X @ w - Y <= t], [X, Y]),
        (LAD / N, [X, Y]),
    ),
    "absolute values of a residual": (
        (cp.sum(t), [z == X @ w - Y, t >= z, t >= -z], [X, Y]),
        (LAD, [X, Y]),
    ),
    "an epigraph": ((cp.sum(t), [cp.abs(X @ w - Y) <= t], [X, Y]), (LAD, [X, Y])),
    "a linear program": (
        (0.3 * cp.sum(u) + 0.7 * cp.sum(v), [v >= 0, Y - X @ w == u - v], [X, Y]),
        (PINBALL, [X, Y]),
    ),
    "support vectors": ((SOFT, [v >= 0, 1 - v <= MARGIN], [X, S]), (HINGE, [X, S])),
    "support vectors, nonneg": (
        (0.5 * cp.sum_squares(w) + 0.1 * cp.sum(u), [u >= 1 - MARGIN], [X, S]),
        (HINGE, [X, S]),
    ),
    "support vectors, squared": (
        (0.5 * cp.sum_squares(w) + 0.1 * cp.sum_squares(u), [u >= 1 - MARGIN], [X, S]),
        (0.5 * cp.sum_squares(w) + 0.1 * cp.sum_squares(cp.pos(1 - MARGIN)), [X, S]),
    ),
    "support vectors, a constraint a record": (
        (
            0.5 * cp.sum_squares(w) + 0.1 * sum(v[i] for i in EACH),
            [v[i] >= 0 for i in EACH] + [S[i] * (X[i] @ w + b) >= 1 - v[i] for i in EACH],
            [X, S],
        ),
        (HINGE, [X, S]),
    ),
    "support vector regression": (
        (
            0.5 * cp.sum_squares(w) + cp.sum(u + v),
            [v >= 0, Y - X @ w <= 0.05 + u, X @ w - Y <= 0.05 + v],
            [X, Y],
        ),
        (0.5 * cp.sum_squares(w) + cp.sum(cp.pos(cp.abs(Y - X @ w) - 0.05)), [X, Y]),
    ),
    "normal equations": (
        (cp.quad_form(w, CX.T @ CX / N, assume_PSD=True) + cp.sum(w), [], [CX]),
        (cp.sum_squares(CX @ w) / N + cp.sum(w), [CX]),
    ),
    "a column of ones": (
        (
            cp.sum_squares(cp.hstack([np.ones((N, 1)), X]) @ cp.hstack([b, w]) - Y),
            [],
            [X, Y],
        ),
        (cp.sum_squares(b + X @ w - Y), [X, Y]),
    ),
    "entries at positions": (
        (cp.sum_squares(M[II, JJ] - Y) + cp.normNuc(M), [], [II, JJ, Y]),
        (cp.sum_squares(ENTRIES @ cp.vec(M, order="F") - Y) + cp.normNuc(M), [ENTRIES, Y]),
    ),
    "an intercept a group": (
        (cp.sum_squares(X @ w + levels[G] - Y), [], [X, G, Y]),
        (cp.sum_squares(X @ w + GROUPS @ levels - Y), [X, GROUPS, Y]),
    ),
    "logistic by log_sum_exp": (
        (
            cp.sum(cp.log_sum_exp(cp.vstack([np.zeros(N), -cp.multiply(S, X @ w)]), axis=0)),
            [],
            [X, S],
        ),
        (cp.sum(cp.logistic(-cp.multiply(S, X @ w))), [X, S]),
    ),
    "logistic by columns": (
        (
            cp.sum(
                cp.log_sum_exp(cp.hstack([-cp.multiply(SIGNS, X @ W), np.zeros((N, 1))]), axis=1)
            ),
            [],
            [X, SIGNS],
        ),
        (cp.sum(cp.logistic(-cp.multiply(SIGNS, X @ W))), [X, SIGNS]),
    ),
    "the first records": (
        (cp.sum_squares(CX[:25] @ w - PY[:25]), [], [CX, PY]),
        (cp.sum_squares(HEAD @ w - HEAD_Y), [HEAD, HEAD_Y]),
    ),
    "a fold, several outputs": (
        (cp.sum_squares(PX[FOLD] @ OUT - P2[FOLD]), [], [PX, P2]),
        (cp.sum_squares(XF @ OUT - YF), [XF, YF]),
    ),
    "a diagonal matrix": (
        (cp.quad_form(X @ w - Y, DIAGONAL), [], [X, Y]),
        (cp.sum(cp.multiply(WEIGHTS, cp.square(X @ w - Y))), [X, Y]),
    ),
    "labels in brackets": (
        (cp.sum(cp.logistic(CX @ w)) - S01 @ CX @ w, [], [CX, S01]),
        (cp.sum(cp.logistic(CX @ w)) - cp.sum(cp.multiply(S01, CX @ w)), [CX, S01]),
    ),
}
ELIMINATED = [name for name, (own, _) in SPELLINGS.items() if own[1]]


def problem(objective, constraints=()):
    return cp.Problem(cp.Minimize(objective), list(constraints))


@pytest.mark.parametrize("name", SPELLINGS)
def test_the_release_is_that_of_the_plain_spelling(name):
    (objective, constraints, private), (plain, listed) = SPELLINGS[name]
    own = cvxqop.privatize(problem(objective, constraints), private=private, **PAY)
    found = {variable: own[variable].copy() for variable in own.values}
    other = cvxqop.privatize(problem(plain), private=listed, **PAY)
    assert set(found) == set(other.values)
    for variable, value in found.items():
        np.testing.assert_allclose(value, other[variable], atol=1e-9, rtol=0)


@pytest.mark.parametrize("name", ELIMINATED)
def test_the_problem_is_the_same_to_cvxpy(name):
    """What is read has the optimal value of what was written."""
    (objective, constraints, _), (plain, _) = SPELLINGS[name]
    values = [problem(*p).solve(solver=cp.CLARABEL) for p in ((objective, constraints), (plain,))]
    np.testing.assert_allclose(*values, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("name", ELIMINATED)
def test_neither_values_nor_lines_of_what_was_eliminated_are_left(name):
    (objective, constraints, private), _ = SPELLINGS[name]
    own = problem(objective, constraints)
    for variable in (r, t, z, u, v):
        variable.value = np.abs(rng.standard_normal(N))
    solution = cvxqop.privatize(own, private=private, **PAY)
    gone = [one for one in own.variables() if one not in solution.values]
    assert gone
    assert all(one.value is None for one in gone)
    text = str(cvxqop.explain(own, private=private, public=PAY["public"]))
    for one in gone:
        assert f"  {one.name()}: " in text.split("Read as:")[1]


@pytest.mark.parametrize("name", ["absolute values", "support vectors", "a residual"])
def test_where_the_number_of_records_is_private(name):
    (objective, constraints, private), (plain, listed) = SPELLINGS[name]
    pay = {**PAY, "adjacency": "add_remove", "smoothing": 0.5}
    own = cvxqop.privatize(problem(objective, constraints), private=private, **pay)
    found = own[w].copy()
    other = cvxqop.privatize(problem(plain), private=listed, **pay)
    np.testing.assert_allclose(found, other[w], atol=1e-9, rtol=0)


def test_a_loop_is_shown_as_what_it_is_read_as():
    (objective, constraints, private), _ = SPELLINGS["a sum of terms"]
    text = str(cvxqop.explain(problem(objective, constraints), private=private))
    assert "  40 terms, one a record: sum(square(private[0](n,3) @ w - private[1](n,)))" in text


def test_records_that_are_chosen_twice_or_otherwise():
    lagged = cp.sum_squares(PX[1:] @ w - PY[:-1])
    twice = np.arange(N) // 2
    double = cp.sum_squares(PX[twice] @ w - PY[twice])
    for objective, public in ((lagged, []), (double, [twice])):
        with pytest.raises(cvxqop.ProblemError, match="choose in NumPy and list what is chosen"):
            cvxqop.plan(problem(objective), **{**PAY, "private": [PX, PY], "public": public})


@pytest.mark.parametrize("listed", ["nowhere", "private"])
def test_records_that_are_chosen_by_records(listed):
    """Which records are chosen must be public: of private positions a record moves others."""
    chosen = np.flatnonzero(S > 0)
    private = [PX, PY] + ([chosen] if listed == "private" else [])
    with pytest.raises(cvxqop.ProblemError, match=r"listed neither|beside its"):
        cvxqop.plan(
            problem(cp.sum_squares(PX[chosen] @ w - PY[chosen])),
            **{**PAY, "private": private, "public": []},
        )


def test_positions_have_no_meaning_where_the_number_of_records_is_private():
    with pytest.raises(cvxqop.ProblemError, match=r"combines|selects"):
        cvxqop.plan(
            problem(cp.sum_squares(CX[:25] @ w - PY[:25])),
            **{**PAY, "private": [CX, PY], "public": [], "adjacency": "add_remove"},
        )


# Constraints with private data that no elimination takes: refused as any other.
KEPT = {
    "decreasing": (LS - 0.1 * cp.sum(v), [v >= X @ w - Y]),
    "two sides": (LS + cp.sum(v), [v >= X @ w - Y, v <= 1]),
    "a sum of slacks": (LS + cp.sum(v), [v >= X @ w - Y, cp.sum(v) <= 3]),
    "private weights": (LS + cp.sum(cp.multiply(Y, v)), [v >= X @ w - Y]),
    "nowhere else": (LS, [r == Y]),
    "one number for all": (LS + cp.square(b), [b >= X @ w - Y]),
    "a level": (LS + cp.square(b), [b == cp.sum(Y)]),
    "not convex": (LS + cp.sum(v), [v >= -cp.abs(X @ w - Y)]),
    "squares of free slacks": (LS + cp.sum_squares(v), [v >= X @ w - Y]),
    "free parts": (LS + cp.sum(v) + cp.sum(u), [v - u == X @ w - Y]),
    "bounded residuals": (LS + cp.sum_squares(r), [r == X @ w - Y, r >= -1]),
}


@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
@pytest.mark.parametrize("name", KEPT)
def test_a_private_constraint_that_is_not_eliminated_is_refused(name, adjacency):
    objective, constraints = KEPT[name]
    with pytest.raises(cvxqop.ProblemError, match="holds private data"):
        cvxqop.plan(
            problem(objective, constraints),
            **{**PAY, "private": [X, Y], "public": [u, v, r], "adjacency": adjacency},
        )


def test_a_public_term_is_counted_once_beside_losses_that_are_read_together():
    together = cp.sum_squares(X @ w - Y) + cp.sum(cp.abs(X @ w - Y)) + 3 * cp.norm1(w)
    one = cp.sum(cp.square(X @ w - Y) + cp.abs(X @ w - Y)) + 3 * cp.norm1(w)
    found = []
    for objective in (together, one):
        text = str(cvxqop.explain(problem(objective), private=[X, Y]))
        assert text.count("norm1(w)") == 1
        found.append(cvxqop.privatize(problem(objective), private=[X, Y], **PAY)[w].copy())
    np.testing.assert_allclose(*found, atol=1e-9, rtol=0)


def test_as_many_terms_as_records_are_no_loop():
    """Two terms over all of two records, each with arrays of its own."""
    A, B = np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([[0.5, 0.5], [1.0, 0.0]])
    u, z = np.array([1.0, -1.0]), np.array([0.5, 0.0])
    x = cp.Variable(2)
    loss = cp.sum_squares(A @ x - u) + cp.sum_squares(B @ x - z)
    text = str(cvxqop.explain(cp.Problem(cp.Minimize(loss)), private=[A, B, u, z]))
    assert "n = 2 records" in text
    loss = cp.sum_squares(A @ x - u) + cp.sum_squares(B @ x - z)
    with pytest.raises(cvxqop.ProblemError):
        cvxqop.explain(cp.Problem(cp.Minimize(loss)), private=[A, u])
