"""What counts as public: what is listed, and what cannot be one row a record.

Outcome and words are the same for neighbouring data and, under add_remove, for every n.
"""

from __future__ import annotations

import re

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp

import cvxqop
from cvxqop.errors import ProblemError
from cvxqop.problem.bounds import Bounds
from cvxqop.problem.reading.analysis import read

D = 3
ADJACENCIES = ("replace_one", "add_remove")
PAY = {"bounds": cvxqop.Bounds(row_norm=1.0, offset=1.0), "epsilon": 1.0, "delta": 1e-6}
pytestmark = [
    pytest.mark.filterwarnings("ignore:This use of:UserWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]


def records(n, seed=0):
    rng = np.random.default_rng(seed)
    return rng.uniform(-0.5, 0.5, (n, D)), rng.uniform(0.1, 0.9, n)


def outcome(problem, private, **options):
    """What a reading says to others than the holder of the data; numbers of names left out."""
    try:
        erm = read(problem, private, **options)
    except ProblemError as error:
        found = str(error)
    else:
        constants = erm.loss.constants(Bounds(row_norm=1.0, offset=1.0))
        found = repr(
            (
                erm.texts,
                erm.public_data,
                constants,
                erm.loss.terms[0].row_parts,
                erm.loss.has_offset,
            )
        )
    return re.sub(r"var\d+", "var", found)


def class_weights(y):
    """As people write them, from the counts of two classes."""
    return np.where(y > np.mean(y), len(y) / (2 * np.sum(y > np.mean(y)) + 0.3), 1.3)


# One record's own number in a place where it is not listed: a loss and what is listed.
FORGOTTEN = {
    "the target": lambda X, y, w: (cp.sum_squares(X @ w - y), [X]),
    "the target, doubled": lambda X, y, w: (cp.sum_squares(X @ w - 2 * y), [X, y]),
    "the target, ravelled": lambda X, y, w: (
        cp.sum_squares(X @ w - y) + cp.norm1(cp.multiply(y.ravel(), cp.Variable(len(y)))), [X],
    ),
    "weights": lambda X, y, w: (cp.sum(cp.multiply(y, cp.square(X @ w))), [X]),
    "weights by a product": lambda X, y, w: (y @ cp.square(X @ w), [X]),
    "class weights": lambda X, y, w: (
        cp.sum(cp.multiply(class_weights(y), cp.square(X @ w - y))), [X, y],
    ),
    "private weights and class weights": lambda X, y, w: (
        cp.sum(cp.logistic(cp.multiply(np.where(y > np.mean(y), 1.7, 0.3), X @ w))), [X],
    ),
    "weights, a ravelled target": lambda X, y, w: (
        cp.sum(cp.multiply(y.ravel() + 0, cp.square(X @ w))), [X],
    ),
    "rows": lambda X, y, w: (cp.sum_squares(X @ w - y), [y]),
    "a column": lambda X, y, w: (cp.sum_squares(X @ w - 2 * X[:, 0]), [X]),
    "a bound": lambda X, y, w: (
        cp.sum_squares(X @ w) + cp.sum(cp.Variable(len(y), bounds=[y, None])), [X],
    ),
    "a distance": lambda X, y, w: (
        cp.sum_squares(X @ w) + cp.sum(cp.pos(y - cp.Variable(len(y)))), [X],
    ),
    "an index": lambda X, y, w: (cp.sum_squares(X @ w + w[(9 * y).astype(int) % D]), [X]),
    "an index in the rest": lambda X, y, w: (
        cp.sum_squares(X @ w) + cp.sum(w[(9 * y).astype(int) % D]), [X],
    ),
}  # fmt: skip


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("n", [2, 3, 8])
@pytest.mark.parametrize("form", FORGOTTEN)
def test_what_is_forgotten_is_refused_with_both_remedies(form, n, adjacency):
    X, y = records(n)
    loss, private = FORGOTTEN[form](X, y, cp.Variable(D, name="w"))
    variables = cp.Problem(cp.Minimize(loss)).variables()
    with pytest.raises(ProblemError) as caught:
        read(cp.Problem(cp.Minimize(loss)), private, public=variables, adjacency=adjacency)
    message = str(caught.value)
    if "neither" in message:
        assert "in private=[…]" in message
        assert "in public=[…]" in message
    else:  # the numbers of another spelling of a listed array are seen
        assert "private" in message
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


SPELLINGS = {
    "ravel": lambda a: a.ravel(),
    "flatten": lambda a: a.flatten(),
    "slice": lambda a: a[:],
    "copy": lambda a: a.copy(),
    "turned twice": lambda a: a.T.T,
    "asarray": lambda a: np.asarray(a, order="F"),
    "array": np.array,
}


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("n", [2, 3, 8])
@pytest.mark.parametrize("place", ["weights", "columns", "constraint", "rest"])
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_another_spelling_beside_the_array_is_never_public(spelling, place, n, adjacency):
    other, (X, y) = SPELLINGS[spelling], records(n)
    w, v, u = cp.Variable(D, name="w"), cp.Variable(D, name="v"), cp.Variable(n, name="u")
    base = cp.sum_squares(X @ w - y)
    problem = {
        "weights": cp.Problem(cp.Minimize(cp.sum(cp.multiply(other(y), cp.square(X @ w - y))))),
        "columns": cp.Problem(
            cp.Minimize(cp.sum_squares(X @ w + np.reshape(other(X), X.shape) @ v - y))
        ),
        "constraint": cp.Problem(cp.Minimize(base + cp.sum(u)), [u >= other(y)]),
        "rest": cp.Problem(cp.Minimize(base + cp.norm1(cp.multiply(other(y), u)))),
    }[place]
    try:
        erm = read(problem, [X, y], public=[w, v, u], adjacency=adjacency)
    except ProblemError:
        return
    assert place == "columns"  # which are read as the private array's
    assert (
        erm.public_data,
        erm.loss.terms[0].row_parts.private,
        erm.loss.terms[0].row_parts.public_norm,
    ) == (
        (),
        True,
        0.0,
    )


def test_class_weights_are_accepted_where_they_are_listed_as_public():
    X, y = records(8)
    weights = np.where(y > 0.5, 1.7, 0.3)
    w = cp.Variable(D)
    loss = cp.sum(cp.multiply(weights, cp.square(X @ w - y)))
    erm = read(cp.Problem(cp.Minimize(loss)), [X, y], public=[weights])
    assert erm.public_data == ("public[0], shape (n,)",)
    assert (
        erm.loss.terms[0].losses[0][1].tolist() == (2 * weights).tolist()
        or erm.loss.terms[0].losses[0][0].curvature == 2.0
    )


@pytest.mark.parametrize("given", ["array", "constant", "parameter", "list"])
def test_what_is_public_is_named_everywhere(given):
    X, y = records(8)
    G, w = np.array([[1.3, 0.0, 2.7], [0.2, 1.0, 0.3]]), cp.Variable(D)
    item = {
        "array": G, "constant": cp.Constant(G, name="G"), "list": G.tolist(),
        "parameter": cp.Parameter(G.shape, value=G, name="G"),
    }[given]  # fmt: skip
    inside = np.array(G) if given == "list" else item
    problem = cp.Problem(cp.Minimize(cp.sum_squares(X @ w - y) + cp.norm1(inside @ w)))
    for adjacency in ADJACENCIES:
        options = {"private": [X, y], "public": [item], "adjacency": adjacency}
        name = "G, shape (2,3)" if given in ("constant", "parameter") else "public[0], shape (2,3)"
        text = cvxqop.explain(problem, **options)
        plan = cvxqop.plan(problem, **options, **PAY)
        solution = plan.run()
        sentence = f"Known to everyone: {name}."
        assert name in text
        assert sentence in plan.guarantee.assumptions
        assert sentence in solution.assumptions
        assert name in str(plan)
        assert name in str(solution)
        assert name in repr(solution.to_dict())


def test_what_is_not_listed_and_taken_for_public_is_named_too():
    X, y = records(8)
    w, G = cp.Variable(D), np.array([[1.3, 0.0, 2.7], [0.2, 1.0, 0.3]])
    problem = cp.Problem(cp.Minimize(cp.sum_squares(X @ w - y) + cp.norm1(G @ w)), [w <= [1, 2, 3]])
    plan = cvxqop.plan(problem, private=[X, y], **PAY)
    known = next(text for text in plan.guarantee.assumptions if "Known to everyone" in text)
    assert "an array of shape (2,3), not listed" in known
    assert "an array of shape (3,), not listed" in known


@pytest.mark.parametrize("n", [1, 2, D, 8])
@pytest.mark.parametrize("place", ["weights", "offset", "rows", "diagonal", "matrix"])
def test_public_on_the_axis_of_records_has_no_meaning_under_add_remove(place, n):
    """The same refusal at every n; public weights and rows are taken where n is public."""
    X, y = records(n)
    w, v = cp.Variable(D, name="w"), cp.Variable(2, name="v")
    q, P = np.linspace(0.3, 0.7, n), np.linspace(0.3, 0.7, 2 * n).reshape(n, 2)
    A = np.linspace(0.3, 0.7, n * n).reshape(n, n)
    loss, public = {
        "weights": (cp.sum(cp.multiply(q, cp.square(X @ w - y))), [q]),
        "offset": (cp.sum_squares(X @ w - y - q), [q]),
        "rows": (cp.sum_squares(X @ w + P @ v - y), [P]),
        "diagonal": (cp.sum_squares(sp.diags_array(q) @ (X @ w - y)), [sp.diags_array(q)]),
        "matrix": (cp.sum_squares(A @ (X @ w - y)), [A]),
    }[place]
    problem = cp.Problem(cp.Minimize(loss))
    with pytest.raises(ProblemError) as caught:
        read(problem, [X, y], public=public, adjacency="add_remove")
    first = re.sub(r"\d+", "", str(caught.value))
    assert "add_remove" in first or "more of them" in first
    words = WORDS.setdefault(place, first)
    assert first == words
    if place in ("weights", "offset", "rows"):
        assert read(problem, [X, y], public=public).public_data != ()


WORDS: dict[str, str] = {}


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_nothing_is_listed_as_both(adjacency):
    X, y = records(8)
    w = cp.Variable(D)
    constant, problem = cp.Constant(y), cp.Problem(cp.Minimize(cp.sum_squares(X @ w - y)))
    both = {
        "the array": ([X, y], [y]),
        "a view": ([X, y], [y[:]]),
        "a ravel": ([X, y], [X.ravel()]),
        "a column": ([X, y], [X[:, 1]]),
        "a part": ([X, y], [y[:3]]),
        "the base": ([X[:, :2], y], [X]),
        "turned": ([X, y], [X.T]),
    }
    for private, public in both.values():
        with pytest.raises(ProblemError, match="what is private cannot be listed as public"):
            read(problem, private, public=public, adjacency=adjacency)
    problem = cp.Problem(cp.Minimize(cp.sum_squares(X @ w - constant)))
    with pytest.raises(ProblemError, match="what is private cannot be listed as public"):
        read(problem, [X, constant], public=[constant], adjacency=adjacency)
    loss = cvxqop.glm_loss("squared", X, y, w)
    with pytest.raises(ProblemError, match="what is private cannot be listed as public"):
        read(cp.Problem(cp.Minimize(loss)), [], public=[y], adjacency=adjacency)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_equal_numbers_listed_as_public_stay_private_without_a_source(adjacency):
    """Whole numbers leave no trace: what holds those of both lists is private, u ≥ y as well, from
    which u would be y."""
    X, _ = records(8)
    y, w, u = np.arange(8), cp.Variable(D), cp.Variable(8)
    shown = np.arange(8)
    problem = cp.Problem(cp.Minimize(cp.sum_squares(X @ w - y) + cp.sum(u)), [u >= shown])
    with pytest.raises(ProblemError, match=r"The private term sum\(private\[1\]"):
        read(problem, [X, y], public=[shown, u], adjacency=adjacency)


@pytest.mark.parametrize("n", [1, 2, D, 8])
def test_variables_beside_the_loss_are_listed_under_add_remove(n):
    """Their shape is released; that of the loss' own cannot be n."""
    X, y = records(n)
    w, u = cp.Variable(D, name="w"), cp.Variable(n, name="u")
    s = cp.Variable(name="s")
    problem = cp.Problem(cp.Minimize(cp.sum_squares(X @ w - y) + cp.sum_squares(u) + s), [s >= 1])
    with pytest.raises(ProblemError, match=r"The variable u occurs in no private term.*\[u\]\."):
        read(problem, [X, y], adjacency="add_remove")
    read(problem, [X, y], public=[u], adjacency="add_remove")
    read(problem, [X, y])
    hidden = cp.Problem(cp.Minimize(cp.sum_squares(X @ w - y) + cp.norm1(w)), [w <= cp.Variable(D)])
    with pytest.raises(ProblemError, match="occurs in no private term"):
        read(hidden, [X, y], adjacency="add_remove")


def test_public_must_be_a_list_of_arrays():
    X, y = records(4)
    w = cp.Variable(D)
    problem = cp.Problem(cp.Minimize(cp.sum_squares(X @ w - y)))
    for public in (y, "y", 3.0, cp.Constant(y)):
        with pytest.raises((ProblemError, cvxqop.OptionError), match="public must be a list"):
            read(problem, [X, y], public=public)
    with pytest.raises(ProblemError, match=r"public\[0\] must"):
        read(problem, [X, y], public=[object()])
