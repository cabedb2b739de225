"""Persons with several rows: which rows count, what they count, and what is refused."""

import datetime

import cvxpy as cp
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp

from cvxqop import Bounds, glm_loss
from cvxqop.errors import ProblemError
from cvxqop.problem.losses.margin_term import MarginTerm
from cvxqop.problem.parts import Constants
from cvxqop.problem.private.persons import Persons
from cvxqop.problem.reading.analysis import read

IDS = [7, 3, 7, 7, 3, 9, 7]
FIRST_TWO = [1.0, 1.0, 1.0, 0.0, 1.0, 1.0, 0.0]
MEAN = [0.25, 0.5, 0.25, 0.25, 0.5, 1.0, 0.25]
N = len(IDS)
RNG = np.random.default_rng(5)
X = RNG.uniform(-1.0, 1.0, (N, 3))
Y = RNG.uniform(-1.0, 1.0, N)
BOUNDS = Bounds(row_norm=1.0, offset=0.5)
ZERO = np.zeros(3)

FORMS = {
    "list": IDS,
    "tuple": tuple(IDS),
    "ints": np.array(IDS),
    "small ints": np.array(IDS, dtype=np.uint8),
    "a column (n, 1)": np.array(IDS)[:, None],
    "floats": np.array(IDS, dtype=float),
    "strings": np.array([f"p{i}" for i in IDS]),
    "objects": np.array([f"p{i}" for i in IDS], dtype=object),
    "tuples": [("home", i) for i in IDS],
    "dates": np.array(IDS).astype("datetime64[D]"),
    "python dates": [datetime.date(2020, 1, i) for i in IDS],
    "booleans are two persons": None,
    "pandas": pd.Series(IDS, index=range(10, 10 + N)),
    "pandas strings": pd.Series([f"p{i}" for i in IDS]),
    "pandas nullable": pd.Series(IDS, dtype="Int64"),
    "pandas categories": pd.Series([f"p{i}" for i in IDS], dtype="category"),
    "polars": pl.Series("who", IDS),
    "polars strings": pl.Series("who", [f"p{i}" for i in IDS]),
    "unmasked": np.ma.masked_array(IDS, mask=False),
}
del FORMS["booleans are two persons"]


def shares(ids, rows):
    return Persons.of(ids, rows).shares.take(0, len(ids))[:, 0].tolist()


@pytest.mark.parametrize("ids", FORMS.values(), ids=FORMS)
def test_ids_of_any_form_make_the_same_persons(ids):
    assert Persons.of(ids, 2).count == 3
    assert shares(ids, 2) == FIRST_TWO
    assert shares(ids, "mean") == MEAN
    assert shares(ids, 1) == [1.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0]
    assert shares(ids, 100) == [1.0] * N


def test_no_rows_are_no_persons():
    for ids in ([], np.zeros(0)):
        assert Persons.of(ids, 2).count == 0
        assert Persons.of(ids, "mean").n == 0


SECRET = "Zaphod"
MISSING = {
    "None": [SECRET, None],
    "NaN in a list": [1.0, float("nan")],
    "NaN": np.array([1.0, np.nan]),
    "NaN among objects": np.array([SECRET, np.nan], dtype=object),
    "NaT": np.array(["2020-01-01", "NaT"], dtype="datetime64[D]"),
    "pd.NA": pd.Series([1, None], dtype="Int64"),
    "pd.NA among objects": [SECRET, pd.NA],
    "pandas": pd.Series([SECRET, None]),
    "polars": pl.Series([SECRET, None]),
    "polars NaN": pl.Series([1.0, float("nan")]),
    "masked": np.ma.masked_array([4, 5], mask=[False, True]),
}
WRONG = {
    "mixed": [SECRET, 42],
    "mixed objects": np.array([SECRET, 42], dtype=object),
    "no hash": [[SECRET], [SECRET]],
    "two columns": np.ones((4, 2)),
    "a frame": pd.DataFrame({"who": [1, 2]}),
    "a polars frame": pl.DataFrame({"who": [1, 2]}),
    "a name": SECRET,
    "a number": 4,
    "lazy": pl.LazyFrame({"who": [1, 2]}),
}


@pytest.mark.parametrize("ids", MISSING.values(), ids=MISSING)
def test_missing_ids_are_refused_without_a_number(ids):
    with pytest.raises(ProblemError, match="some ids are missing") as caught:
        Persons.of(ids, 2)
    assert SECRET not in str(caught.value)
    assert not any(c.isdigit() for c in str(caught.value))
    assert caught.value.__context__ is None


@pytest.mark.parametrize("ids", WRONG.values(), ids=WRONG)
def test_what_is_no_column_of_ids_is_refused(ids):
    with pytest.raises(ProblemError, match=r"^persons") as caught:
        Persons.of(ids, 2)
    assert SECRET not in str(caught.value)
    assert "42" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_no_id_is_shown():
    shown = repr(Persons.of([SECRET, "Trillian"], 2)) + str(Persons.of([SECRET], "mean"))
    assert SECRET not in shown
    assert "Trillian" not in shown


@pytest.mark.parametrize("rows", [1, 2, 5])
def test_constants_count_the_rows_of_a_person(rows):
    one = Constants(2.0, 3.0, False, row_norm=1.5, gradient_range=1)
    found = one.of_person(rows, 4)
    assert found.smoothness == 2.0 * rows
    assert found.anchor_gradient == 3.0 * rows
    assert found.trace_bound == found.frobenius_bound == 2.0 * rows
    assert found.hessian_rank == found.gradient_range == min(rows, 4)
    assert found.row_norm == 1.5
    if rows == 1:
        assert found is one
    else:
        assert found.hessian_range == min(rows, 4)


def test_constants_of_several_outputs_are_those_of_one_of_them():
    one = Constants(2.0, 3.0, True, outputs=3)
    three = one.of_person(2, 12)
    assert (three.outputs, three.hessian_rank, three.smoothness) == (3, 2, 4.0)
    whole = three.whole
    assert (whole.hessian_rank, whole.gradient_range) == (6, 6)
    assert whole.trace_bound == 3 * 4.0
    assert whole.frobenius_bound == pytest.approx(3**0.5 * 4.0)
    assert one.of_person(None, 12).hessian_rank == 4  # of the matrix that each output has


@pytest.mark.parametrize("count", [1, 2, 7])
def test_the_bounds_hold_of_random_persons_and_are_attained_by_alike_rows(count):
    rng = np.random.default_rng(count)
    person = Constants(1.0, 1.0, True, gradient_range=1).of_person(count, 4)
    for alike in (False, True):
        A = rng.standard_normal((1 if alike else count, 4))
        A /= np.linalg.norm(A, axis=1, keepdims=True)
        A = np.repeat(A, count // len(A), axis=0)
        H, g = A.T @ A, A.sum(axis=0)
        found = (np.linalg.norm(H, 2), np.trace(H), np.linalg.norm(H), np.linalg.norm(g))
        limits = (person.smoothness, person.trace_bound, person.frobenius_bound,
                  person.anchor_gradient)  # fmt: skip
        assert all(f <= m * (1 + 1e-12) for f, m in zip(found, limits, strict=True))
        assert np.linalg.matrix_rank(H) <= person.hessian_rank
        if alike:
            assert found == pytest.approx(limits)


def squared(A, y, theta):
    return 0.5 * cp.sum_squares(A @ theta - y)


def logistic(A, y, theta):
    return cp.sum(cp.logistic(cp.multiply(y, A @ theta)))


def labelled(A, y, theta):
    return cp.sum(cp.logistic(A @ theta)) - cp.sum(cp.multiply(y, A @ theta))


def two_terms(A, y, theta):
    return squared(A, y, theta) + cp.sum(cp.huber(A @ theta[::-1], 0.3))


def outputs(A, y, theta):
    Theta = cp.Variable((3, 2))
    return 0.5 * cp.sum_squares(A @ Theta - np.column_stack([y, -y]))


LOSSES = {f.__name__: f for f in (squared, logistic, labelled, two_terms)}


def reading(loss, A, y, rows=None, ids=IDS, private=None, **options):
    persons = None if rows is None else Persons.of(ids, rows)
    problem = cp.Problem(cp.Minimize(loss(A, y, cp.Variable(3, name="theta"))))
    return read(problem, private or [A, y], persons=persons, **options)


def at_points(erm, clip=None):
    """Gradients and Hessians of the sum at some points, by the kernels that solvers use."""
    sums = erm.loss.sums(BOUNDS, ZERO, None, "raise", clip, False)
    sums.check()
    found = []
    for theta in (ZERO, np.array([0.3, -0.2, 0.9])):
        gradient, hessian = sums.linear.copy(), np.zeros((3, 3))
        for part in sums.parts:
            A, C = part.records.take(0, part.records.n)
            A = A.toarray() if sp.issparse(A) else A
            T = A @ theta[part.layout]
            gradient += part.spread(A.T @ part.loss.evaluate(T, C)[1])
            hessian += part.embedded(part.loss.hessian(A, T, C))
        found += [gradient, hessian]
    return found


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
@pytest.mark.parametrize("clip", [None, 0.3])
@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
def test_k_rows_are_those_that_one_would_keep_by_hand(loss, clip, adjacency):
    if clip and loss is two_terms:
        return
    kept = np.array(FIRST_TWO) == 1.0
    found = at_points(reading(loss, X, Y, 2, adjacency=adjacency), clip)
    by_hand = at_points(reading(loss, X[kept], Y[kept], adjacency=adjacency), clip)
    for one, other in zip(found, by_hand, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
@pytest.mark.parametrize("clip", [None, 0.3])
def test_the_mean_is_the_sum_of_the_means_of_persons(loss, clip):
    if clip and loss is two_terms:
        return
    found = at_points(reading(loss, X, Y, "mean"), clip)
    by_hand = [np.zeros_like(part) for part in found]
    for person in sorted(set(IDS)):
        own = np.array(IDS) == person
        for total, part in zip(
            by_hand, at_points(reading(loss, X[own], Y[own]), clip), strict=True
        ):
            total += part / own.sum()
    for one, other in zip(found, by_hand, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("rows", [2, "mean"])
def test_several_outputs(rows):
    erm = reading(outputs, X, Y, rows, private=[X, np.column_stack([Y, -Y])])
    H, g = erm.loss.sums(BOUNDS, np.zeros(6), None, "raise", None, True).quadratic_form()
    weights = np.array(FIRST_TWO if rows == 2 else MEAN)
    A = X * np.minimum(1.0, 1.0 / np.linalg.norm(X, axis=1))[:, None]
    C = -np.column_stack([Y, -Y]) * np.minimum(1.0, 1.0 / np.linalg.norm(X, axis=1))[:, None]
    C *= np.minimum(1.0, 0.5 / np.linalg.norm(C, axis=1))[:, None]
    np.testing.assert_allclose(H, A.T @ (weights[:, None] * A), rtol=1e-12)
    np.testing.assert_allclose(g, (A.T @ (weights[:, None] * C)).ravel(order="F"), atol=1e-13)


@pytest.mark.parametrize("rows", [2, "mean"])
def test_multinomial(rows):
    Z = np.eye(3)[[0, 1, 2, 0, 1, 2, 0]]
    Theta = cp.Variable((3, 3))
    loss = cp.sum(cp.log_sum_exp(X @ Theta, axis=1)) - cp.sum(cp.multiply(Z, X @ Theta))
    erm = read(cp.Problem(cp.Minimize(loss)), [X, Z], persons=Persons.of(IDS, rows))
    sums = erm.loss.sums(Bounds(row_norm=9.0), np.zeros(9), None, "raise", None, False)
    (part,) = sums.parts
    A, C = part.records.take(0, N)
    theta = np.linspace(-1.0, 1.0, 9).reshape(3, 3)
    T, weights = A @ theta, np.array(FIRST_TWO if rows == 2 else MEAN)
    slopes = part.loss.evaluate(T, C)[1]
    P = np.exp(X @ theta) / np.exp(X @ theta).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(A.T @ slopes, X.T @ (weights[:, None] * (P - Z)), atol=1e-13)
    H = sum(
        w * np.kron(np.diag(p) - np.outer(p, p), np.outer(x, x))
        for w, p, x in zip(weights, P, X, strict=True)
    )
    np.testing.assert_allclose(part.loss.hessian(A, T, C), H, atol=1e-13)
    root = part.loss.root(A, T, C)
    np.testing.assert_allclose(root.T @ root, H, atol=1e-13)


def test_rows_beyond_k_may_hold_anything():
    lost = np.array(FIRST_TWO) == 0.0
    A, y = X.copy(), Y.copy()
    A[lost], y[lost] = np.nan, np.inf
    for loss in (squared, logistic, labelled):
        clean, dirty = at_points(reading(loss, X, Y, 2)), at_points(reading(loss, A, y, 2))
        for one, other in zip(clean, dirty, strict=True):
            np.testing.assert_array_equal(one, other)
        with pytest.raises(ProblemError, match="NaN or infinite"):
            at_points(reading(loss, A, y, 3))


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("rows", [1, 2, "mean"])
@pytest.mark.parametrize("kind", ["residual", "logistic"])
def test_records_outside_cvxpy(form, rows, kind):
    A, y = X.copy(), np.sign(Y)
    theta = cp.Variable(3)
    if rows != "mean":
        A[[3, 6]] = np.nan
    loss = "squared" if kind == "residual" else kind
    erm = read(
        cp.Problem(cp.Minimize(glm_loss(loss, form(A), y, theta))),
        [],
        persons=Persons.of(IDS, rows),
    )
    plain = (
        squared
        if kind == "residual"
        else lambda A, y, t: cp.sum(cp.logistic(-cp.multiply(y, A @ t)))
    )
    same = reading(
        (lambda A, y, t: 2.0 * squared(A, y, t)) if kind == "residual" else plain, X, y, rows
    )
    for one, other in zip(at_points(erm), at_points(same), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-13)


def test_other_names_of_the_persons_are_no_matter():
    renamed = [{7: "x", 3: "a", 9: "m"}[i] for i in IDS]
    for rows in (1, 2, "mean"):
        one, other = (at_points(reading(squared, X, Y, rows, ids)) for ids in (IDS, renamed))
        for a, b in zip(one, other, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("rows", [1, 2, "mean"])
@pytest.mark.parametrize("loss", [squared, logistic, labelled, two_terms])
def test_a_person_moves_the_sums_by_no_more_than_the_constants_say(rows, loss):
    rng = np.random.default_rng(3)
    for trial in range(20):
        scale = 10.0 ** rng.integers(-1, 3)
        own = np.array(IDS) == 7
        A, y = X.copy(), Y.copy()
        A[own] = np.ones(3) if trial % 2 else scale * rng.standard_normal((own.sum(), 3))
        y[own] = scale if trial % 2 else scale * rng.standard_normal(own.sum())
        erm = reading(loss, A, y, rows)
        c = erm.loss.constants(BOUNDS, ZERO, None)
        G = erm.loss.gradient_bound(BOUNDS, ZERO, None, 2.0)
        with_, without = (
            at_points(one) for one in (erm, reading(loss, A[~own], y[~own], rows,
                                                    [i for i in IDS if i != 7]))
        )  # fmt: skip
        g0, H0, g1, H1 = (a - b for a, b in zip(with_, without, strict=True))
        up = 1.0 + 1e-9
        assert np.linalg.norm(g0) <= c.anchor_gradient * up
        assert np.linalg.norm(g1) <= G * up
        for H in (H0, H1):
            assert np.linalg.norm(H, 2) <= c.smoothness * up
            assert np.trace(H) <= c.trace_bound * up
            assert np.linalg.norm(H) <= c.frobenius_bound * up


@pytest.mark.parametrize("form", [np.array, list, pd.Series, lambda ids: np.array(ids, float)])
def test_ids_that_occur_in_the_problem_are_private(form):
    ids = form(IDS)
    theta = cp.Variable(3)
    problem = cp.Problem(
        cp.Minimize(cp.sum_squares(X @ theta - Y)),
        [theta[0] <= cp.sum(cp.Constant(np.array(IDS, dtype=float)))],
    )
    with pytest.raises(ProblemError, match=r"holds private data .persons"):
        read(problem, [X, Y], persons=Persons.of(ids, 2))
    if form is list:  # another array is made of a list each time
        return
    with pytest.raises(ProblemError, match="persons"):
        read(
            cp.Problem(cp.Minimize(cp.sum_squares(X @ theta - Y))),
            [X, Y],
            public=[ids],
            persons=Persons.of(ids, 2),
        )


@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
def test_the_number_of_rows_is_private(adjacency):
    theta, persons = cp.Variable(3, name="theta"), Persons.of(IDS, 2)
    erm = reading(squared, X, Y, 2, adjacency=adjacency)
    assert erm.public_count == (3 if adjacency == "replace_one" else None)
    words = [*erm.terms, *erm.private_names, *erm.public_data, *erm.texts.rows]
    assert not any(str(N) in text for text in words)
    for loss, reason in (
        (cp.sum_squares(X @ theta - Y) / N, "private under add_remove and with persons"),
        (cp.mean(cp.square(X @ theta - Y)), "Write the sum"),
        (cp.sum(cp.multiply(np.arange(N) + 1.0, cp.square(X @ theta - Y))), "persons"),
    ):
        with pytest.raises(ProblemError, match=reason) as caught:
            read(cp.Problem(cp.Minimize(loss)), [X, Y], adjacency=adjacency, persons=persons)
        assert str(N) not in str(caught.value)


def test_a_length_that_does_not_fit_is_refused():
    for ids in (IDS[:-1], [*IDS, 3]):
        with pytest.raises(ProblemError, match="not one id a row") as caught:
            reading(squared, X, Y, 2, ids)
        assert not any(c.isdigit() for c in str(caught.value))


def test_one_row_a_person_has_the_constants_of_today():
    one, plain = reading(squared, X, Y, 1), reading(squared, X, Y)
    assert one.loss.constants(BOUNDS) == plain.loss.constants(BOUNDS)
    assert isinstance(one.loss.terms[0], MarginTerm)
