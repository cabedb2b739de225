"""Private weights and weights of classes: how they are read, bounded and cut, record by record."""

import re
from dataclasses import replace
from types import SimpleNamespace

import cvxpy as cp
import numpy as np
import pytest
from scipy.special import expit

from cvxqop.errors import OptionError, ProblemError
from cvxqop.problem.bounds import Bounds
from cvxqop.problem.glm import glm_loss
from cvxqop.problem.losses.class_weights import weighed
from cvxqop.problem.losses.open_loss import settle
from cvxqop.problem.private.persons import Persons
from cvxqop.problem.reading.analysis import read
from cvxqop.problem.records.beside import Labels

pytestmark = pytest.mark.blas

rng = np.random.default_rng(3)
N, D = 30, 3
X = rng.uniform(-0.5, 0.5, (N, D))
Y = rng.uniform(-1, 1, N)
SIGNS = np.where(Y > 0, 1.0, -1.0)
HITS = (SIGNS + 1.0) / 2.0
W = rng.uniform(0.0, 2.0, N)
M = rng.integers(1, 6, N).astype(float)
K = rng.binomial(M.astype(int), 0.4).astype(float)
w, b = cp.Variable(D, name="w"), cp.Variable(name="b")
CX, CW, CM, CK, CY = map(cp.Constant, (X, W, M, K, Y))
COLUMN, PART = cp.reshape(w, (D, 1), order="F"), X[:9].copy()
BOUNDS = Bounds(row_norm=1.0, offset=1.0, weight=2.0)
THETA = np.array([0.3, -1.0, 2.0])
T = X @ THETA


def refuse(lacks, number):
    raise AssertionError(lacks)


def settled(loss, private, bounds=BOUNDS, classes=None, **options):
    """The private loss with public bounds on everything."""
    erm = weighed(read(cp.Problem(cp.Minimize(loss)), private, losses="any", **options), classes)
    return settle(erm.loss, bounds, np.zeros(erm.dimension), None, 4.0, 4.0, 0.5, refuse)[0]


def gradient(loss, bounds=BOUNDS, theta=THETA, nonfinite="raise"):
    """∇Σℓ(θ) of the clipped records, from what the solver and the releases sum."""
    sums = loss.sums(bounds, np.zeros(loss.dimension), None, nonfinite, None, False)
    return sum(part.gradient(theta) for part in sums.parts) + sums.linear


# name: (loss, private, bounds, gradient at THETA by hand)
READ = {
    "squared": (cp.sum(cp.multiply(W, cp.square(X @ w - Y))), [X, Y, W], 2 * X.T @ (W * (T - Y))),
    "vector": (W @ cp.huber(CX @ w - Y, 0.3), [CX, Y, W],
               X.T @ (W * 2 * np.clip(T - Y, -0.3, 0.3))),
    "quadratic form": (cp.quad_form(CX @ w - Y, cp.diag(CW)), [CX, Y, CW],
                       2 * X.T @ (W * (T - Y))),
    "columns": (
        cp.sum(cp.multiply(W[:, None], cp.square(CX @ COLUMN - Y[:, None]))),
        [CX, Y, W], 2 * X.T @ (W * (T - Y)),
    ),
    "factor": (cp.sum(cp.multiply(3 * CW, cp.square(X @ w - Y))), [X, Y, CW],
               6 * X.T @ (W * (T - Y))),
    "mean": (cp.mean(cp.multiply(W, cp.square(X @ w - Y))), [X, Y, W],
             2 * X.T @ (W * (T - Y)) / N),
    "logistic": (cp.sum(cp.multiply(W, cp.logistic(-cp.multiply(SIGNS, X @ w)))), [X, SIGNS, W],
                 -X.T @ (W * SIGNS * expit(-SIGNS * T))),
    "zero and one": (
        cp.sum(cp.multiply(W, cp.logistic(CX @ w) - cp.multiply(HITS, CX @ w))), [CX, HITS, W],
        X.T @ (W * (expit(T) - HITS)),
    ),
    "its own column": (cp.sum(cp.multiply(CX[:, 0], cp.square(X @ w - Y))), [CX, X, Y],
                       2 * X.T @ (np.maximum(X[:, 0], 0) * (T - Y))),
}  # fmt: skip


@pytest.mark.parametrize("name", READ)
def test_the_gradient_is_that_of_the_weighted_loss(name):
    loss, private, expected = READ[name]
    np.testing.assert_allclose(gradient(settled(loss, private)), expected, rtol=1e-9, atol=1e-9)


TWO = {
    "binomial": (
        cp.sum(cp.multiply(CM, cp.logistic(CX @ w)) - cp.multiply(CK, CX @ w)), [CX, CM, CK],
        Bounds(row_norm=1.0, weight=5.0), X.T @ (M * expit(T) - K), 0.25 * 5.0, 0.5 * 5.0,
    ),
    "negative binomial": (
        cp.sum(cp.multiply(CK + 2, cp.logistic(CX @ w - np.log(2))) - cp.multiply(CK, CX @ w)),
        [CX, CK], Bounds(row_norm=1.0, offset=5.0),
        X.T @ ((K + 2) * expit(T - np.log(2)) - K), 0.25 * 7.0, None,
    ),
    "survival": (
        cp.sum(cp.multiply(W, cp.exp(CX @ w)) - cp.multiply(HITS, CX @ w)), [CX, W, HITS],
        Bounds(row_norm=1.0, offset=1.0, weight=2.0, argument=3.0),
        X.T @ (W * np.exp(T) - HITS), 2.0 * np.exp(3.0), 2.0 + 1.0,
    ),
    "counts": (
        -cp.sum(cp.multiply(CK, cp.log(CX @ w + 3)) - CX @ w), [CX, CK],
        Bounds(row_norm=1.0, weight=5.0, argument=(1.0, 6.0)),
        X.T @ (1.0 - K / (T + 3.0)), 5.0, 5.0 / 3.0 + 1.0,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TWO)
def test_two_weights_on_one_row_are_one_number_a_record(name):
    """κ, slope at zero and rank by hand: two losses of one argument are one function of it."""
    loss, private, bounds, expected, curvature, slope = TWO[name]
    own = settled(loss, private, bounds)
    found = own.constants(bounds)
    assert (found.hessian_rank, found.gradient_range) == (1, 1)
    assert found.smoothness == pytest.approx(curvature, rel=1e-6)
    if slope is not None:
        assert found.anchor_gradient == pytest.approx(slope, rel=1e-6)
    np.testing.assert_allclose(gradient(own, bounds), expected, rtol=1e-6, atol=1e-9)


def test_where_records_with_weights_are_rows_with_one_curvature():
    """√w (a, c) is one where all that a record adds vanishes with its weight (theory §10)."""
    both = cp.sum_squares(CX @ w) + cp.sum(cp.multiply(CW, cp.square(CX @ w - CY)))
    for loss, private in (
        READ["squared"][:2],
        (cp.sum(cp.multiply(1 + CW, cp.square(CX @ w - CY))), [CX, CY, CW]),
        (both, [CX, CY, CW]),
    ):
        own = settled(loss, private)
        assert own.constants(BOUNDS).one_row
    term = own.terms[0]
    labels = Labels(term.rows.beside.weights[1].pieces, -1.0, 1.0, 1.0)
    tilted = replace(term, rows=term.rows.with_beside(replace(term.rows.beside, labels=labels)))
    assert tilted.quadratic
    assert not tilted.constants(BOUNDS).one_row


def test_constants_count_the_weight():
    for name, plain in (
        ("squared", cp.sum_squares(X @ w - Y)),
        ("vector", cp.sum(cp.huber(X @ w - Y, 0.3))),
        ("logistic", cp.sum(cp.logistic(-cp.multiply(SIGNS, X @ w)))),
    ):
        loss, private, _ = READ[name]
        one = read(cp.Problem(cp.Minimize(plain)), [X, Y, SIGNS]).loss
        one = read(cp.Problem(cp.Minimize(plain)), private[:2]).loss
        weighted, unweighted = settled(loss, private), one
        for key in ("smoothness", "anchor_gradient"):
            found, expected = (getattr(o.constants(BOUNDS), key) for o in (weighted, unweighted))
            assert found == pytest.approx(2.0 * expected), (name, key)
        G, G1 = (o.gradient_bound(BOUNDS, np.zeros(D), None, 3.0) for o in (weighted, unweighted))
        assert pytest.approx(2.0 * G1) == G
        assert weighted.smoothness(BOUNDS) == pytest.approx(2.0 * unweighted.smoothness(BOUNDS))


WILD = W.copy()
WILD[:4] = [-3.0, 1e9, 1e300, 5.0]
TAME = np.clip(WILD, 0.0, 2.0)
SPREAD = {
    "squared": lambda c: cp.sum(cp.multiply(c, cp.square(CX @ w - CY))),
    "logistic": lambda c: cp.sum(cp.multiply(c, cp.logistic(CX @ w))),
}


@pytest.mark.parametrize("name", SPREAD)
@pytest.mark.parametrize("clip", [None, 0.4])
def test_no_sum_sees_a_weight_that_is_not_cut(name, clip):
    """Quadratic form, gradient, histogram, Hessians, their lower bounds and roots, values."""
    private = [CX, CY] if name == "squared" else [CX]
    parts = []
    for weights in (WILD, TAME):
        own = settled(SPREAD[name](weights), [*private, weights])
        sums = own.sums(BOUNDS, np.zeros(D), None, "raise", clip, False)
        sums.check()
        parts.append(sums.parts[0])
    wild, tame = parts
    edges = np.linspace(0.0, 10.0, 40)
    cuts = np.array([0.5, 5.0])
    (g, counts), (g2, counts2) = (one.cut_gradients(THETA, cuts, edges) for one in parts)
    assert np.array_equal(counts, counts2)
    assert counts.sum() == N - 1  # the weight −3 is zero, and so is the gradient
    np.testing.assert_allclose(g, g2, rtol=1e-12)
    np.testing.assert_allclose(wild.gradient(THETA), tame.gradient(THETA), rtol=1e-12)
    if name == "squared" and clip is None:
        for one, two in zip(
            wild.quadratic_form(np.zeros(D)), tame.quadratic_form(np.zeros(D)), strict=True
        ):
            np.testing.assert_allclose(one, two, rtol=1e-12)
    (A, C), (A2, C2) = wild.records.take(0, N), tame.records.take(0, N)
    assert np.array_equal(C, C2)
    t = (A @ THETA)[:, None]
    reach = np.full(N, 0.1)
    for one, two in (
        (wild.loss.evaluate(t, C)[0], tame.loss.evaluate(t, C2)[0]),
        (wild.loss.hessian(A, t, C, reach), tame.loss.hessian(A2, t, C2, reach)),
        (wild.loss.root(A, t, C), tame.loss.root(A2, t, C2)),
    ):
        np.testing.assert_allclose(one, two, rtol=1e-12)
    slopes = wild.loss.evaluate(t, C)[1][:, 0]
    assert wild.loss.curvature >= (2.0 * 2.0 if name == "squared" else 0.25 * 2.0)
    if clip is not None:
        assert np.max(np.abs(slopes) * np.linalg.norm(A, axis=1)) <= clip


def test_labels_are_cut_to_the_weight_of_their_record():
    """k of m successes: k below 0 counts as none, above m as all."""
    wild = K.copy()
    wild[:2] = [-4.0, 50.0]
    loss = cp.sum(cp.multiply(CM, cp.logistic(CX @ w)) - cp.multiply(wild, CX @ w))
    bounds = Bounds(row_norm=1.0, weight=5.0)
    expected = X.T @ (M * expit(T) - np.clip(wild, 0.0, M))
    np.testing.assert_allclose(gradient(settled(loss, [CX, CM, wild], bounds), bounds), expected)


def test_an_array_of_zeros_that_cvxpy_leaves_out_decides_nothing():
    """Nor does a listed array that does not occur, or one that holds the numbers of another."""
    found = []
    for other in (M, np.zeros(N)):
        loss = cp.sum(cp.multiply(CW + cp.Constant(other), cp.square(CX @ w - CY)))
        own = settled(loss, [CX, CY, CW, other])
        found.append(own.constants(BOUNDS))
    loss = cp.sum(cp.multiply(CW, cp.square(CX @ w - CY)))
    found.append(settled(loss, [CX, CY, CW, W.copy()]).constants(BOUNDS))
    found.append(settled(loss, [CX, CY, CW, M]).constants(BOUNDS))
    assert all(one == found[0] for one in found)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_weight_that_is_not_finite(bad):
    weights = W.copy()
    weights[4] = bad
    own = settled(cp.sum(cp.multiply(weights, cp.square(CX @ w - CY))), [CX, CY, weights])
    with pytest.raises(ProblemError, match="NaN or infinite"):
        own.sums(BOUNDS, np.zeros(D), None, "raise", None, False).check()
    keep = np.arange(N) != 4
    expected = 2 * X[keep].T @ (W * (T - Y))[keep]
    np.testing.assert_allclose(gradient(own, nonfinite="zero"), expected)


def test_rows_that_do_not_count_may_hold_anything():
    """The second row of each person is left out, whatever its weight."""
    weights = W.copy()
    weights[1::2] = np.nan
    people = Persons.of(np.arange(N) // 2, 1)
    loss = cp.sum(cp.multiply(weights, cp.square(CX @ w - CY)))
    own = settled(loss, [CX, CY, weights], persons=people)
    np.testing.assert_allclose(gradient(own), 2 * X[::2].T @ (W * (T - Y))[::2])


REFUSED = {
    "no bound": (cp.sum(cp.multiply(W, cp.square(X @ w - Y))), [X, Y, W], {}, "weight=2"),
    "a divisor": (cp.sum(cp.square(X @ w - Y) / W), [X, Y, W], {}, "reciprocals"),
    "negative": (
        cp.sum(cp.multiply(-CW, cp.square(X @ w - Y))), [X, Y, CW], {}, "negative weight",
    ),
    "a sum of two": (
        cp.sum(cp.multiply(2 * CW + CM, cp.square(X @ w - Y))), [X, Y, CW, CM], {}, "in NumPy",
    ),
    "a function": (
        cp.sum(cp.multiply(cp.exp(CW), cp.square(X @ w - Y))), [X, Y, CW], {}, "may combine",
    ),
    "one for all": (
        cp.sum(cp.multiply(cp.sum(CW), cp.square(X @ w - Y))), [X, Y, CW], {}, "private",
    ),
    "another order": (
        cp.sum(cp.multiply(CW[::-1], cp.square(X @ w - Y))), [X, Y, CW], {}, "selects some",
    ),
    "a table by an index": (
        cp.sum(cp.multiply(CW[np.argsort(Y)], cp.square(X @ w - Y))), [X, Y, CW],
        {}, "selects some|listed neither",
    ),
    "subsets": (
        cp.sum(cp.logistic(X @ w)) + 2 * cp.sum(cp.logistic(PART @ -w)), [X, PART],
        {}, "different numbers of records.*class_weight",
    ),
    "several outputs": (
        cp.sum(cp.multiply(W[:, None] * np.ones(2), cp.square(X @ cp.Variable((D, 2)) - 1))),
        [X, W], {}, ".",
    ),
}  # fmt: skip


@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
@pytest.mark.parametrize("name", REFUSED)
def test_refused(name, adjacency):
    loss, private, options, words = REFUSED[name]
    with pytest.raises(ProblemError) as caught:
        read(cp.Problem(cp.Minimize(loss)), private, adjacency=adjacency, **options)
    if adjacency == "replace_one":
        assert caught.match(words)


CLASSES = {-1: 1.0, 1: 2.5}
OWN = np.where(SIGNS > 0, 2.5, 1.0)
ONE_HOT = np.eye(3)[rng.integers(3, size=N)]

LABELLED = {
    "signs": (cp.sum(cp.logistic(-cp.multiply(SIGNS, X @ w))), [X, SIGNS], CLASSES),
    "zero and one": (
        cp.sum(cp.logistic(CX @ w) - cp.multiply(HITS, CX @ w)), [CX, HITS], {0: 1.0, 1: 2.5},
    ),
    "glm_loss": (glm_loss("logistic", X, SIGNS, w), [], CLASSES),
    "booleans": (glm_loss("logistic", X, SIGNS > 0, w), [], {0: 1.0, 1: 2.5}),
    "by number": (glm_loss("logistic", X, HITS, w, labels="01"), [], {False: 1.0, True: 2.5}),
}  # fmt: skip


@pytest.mark.parametrize("name", LABELLED)
def test_the_loss_of_each_record_has_the_weight_of_its_class(name):
    loss, private, classes = LABELLED[name]
    own = settled(loss, private, classes=classes)
    expected = -X.T @ (OWN * SIGNS * expit(-SIGNS * T))
    np.testing.assert_allclose(gradient(own), expected, rtol=1e-9, atol=1e-12)
    found, plain = own.constants(BOUNDS), settled(loss, private).constants(BOUNDS)
    assert found.smoothness == pytest.approx(2.5 * plain.smoothness)
    assert found.anchor_gradient == pytest.approx(2.5 * plain.anchor_gradient)


def test_several_classes():
    Theta = cp.Variable((D, 3))
    scores = CX @ Theta
    loss = cp.sum(cp.log_sum_exp(scores, axis=1)) - cp.sum(cp.multiply(ONE_HOT, scores))
    classes = {0: 1.0, 1: 3.0, 2: 0.5}
    own, plain = (settled(loss, [CX, ONE_HOT], classes=c) for c in (classes, None))
    theta = rng.standard_normal(3 * D)
    P = np.exp(X @ theta.reshape(D, 3, order="F"))
    P /= P.sum(axis=1, keepdims=True)
    weights = np.array([1.0, 3.0, 0.5])[ONE_HOT.argmax(axis=1)]
    expected = (X.T @ (weights[:, None] * (P - ONE_HOT))).reshape(-1, order="F")
    np.testing.assert_allclose(gradient(own, theta=theta), expected, rtol=1e-9, atol=1e-12)
    for key in ("smoothness", "anchor_gradient", "trace", "frobenius"):
        found, other = (getattr(o.constants(BOUNDS), key) for o in (own, plain))
        assert found == pytest.approx(3.0 * other)
    part = own.sums(BOUNDS, np.zeros(3 * D), None, "raise", None, False).parts[0]
    assert part.loss.curvature == pytest.approx(1.5)


@pytest.mark.parametrize(
    ("loss", "private", "classes", "words"),
    [
        (cp.sum_squares(X @ w - HITS), [X, HITS], {0: 1.0, 1: 2.0}, "no labels of classes"),
        (LABELLED["signs"][0], [X, SIGNS], {0: 1.0, 1: 2.0}, "classes {-1: …, 1: …}"),
        (LABELLED["booleans"][0], [], CLASSES, "classes {0: …, 1: …}"),
    ],
)
def test_classes_that_are_not_known(loss, private, classes, words):
    with pytest.raises(OptionError, match=words):
        settled(loss, private, classes=classes)


def test_an_array_that_multiplies_a_row_with_an_intercept_is_cut_where_it_is_a_label():
    """‖y(x, 1)‖² ≤ R² + 1 is enforced; a weight inside a square, which may be 3, is not touched."""
    y = 3.0 * SIGNS
    bounds = Bounds(row_norm=1.0, offset=1.0)
    for loss, cut in (
        (cp.sum(cp.logistic(-cp.multiply(y, X @ w + b))), True),
        (cp.sum(cp.square(cp.pos(1 - cp.multiply(y, X @ w + b)))), True),
        (cp.sum(cp.logistic(-cp.multiply(y, X @ w))), False),
        (cp.sum_squares(cp.multiply(y, X @ w + b - Y)), False),
        (cp.sum_squares(cp.multiply(y, X @ w + b)), False),
        (cp.sum(cp.pos(cp.multiply(y, X @ w + b - Y))), False),
    ):
        erm = read(cp.Problem(cp.Minimize(loss)), [X, y, Y], losses="any")
        erm = read(
            cp.Problem(cp.Minimize(loss)),
            [X, y, Y] if erm.loss.terms[0].rows.has_offset and not cut else [X, y],
            losses="any",
        )
        (term,) = erm.loss.terms
        assert (term.sign is not None) == cut
        A, _ = term.clipped(bounds).take(0, N)
        R = np.sqrt(2.0) if cut else 1.0
        assert term.row_norm(bounds) == pytest.approx(R)
        assert np.linalg.norm(A, axis=1).max() <= R
        if cut:
            expected = np.column_stack([X, np.ones(N)])
            np.testing.assert_allclose(np.abs(A), np.abs(expected))
            assert ", and its label to [−1, 1]" in term.enforced


def test_a_target_that_labels_multiply_is_refused_where_it_may_be_a_scale():
    t, y = cp.Constant(Y), cp.Constant(2.0 * SIGNS)
    scaled = cp.multiply(y, CX @ w + b - t)
    with pytest.raises(ProblemError, match="may be a scale and not a label"):
        read(cp.Problem(cp.Minimize(cp.sum(cp.exp(scaled)))), [CX, t, y], losses="any")
    for loss in (cp.sum(cp.logistic(scaled)), cp.sum_squares(scaled)):
        read(cp.Problem(cp.Minimize(loss)), [CX, t, y])


COUNTED = {
    "losses": lambda o: cp.sum(cp.multiply(o.c, cp.huber(o.t))),
    "product": lambda o: o.c @ cp.huber(o.t),
    "quadratic form": lambda o: cp.quad_form(o.t, cp.diag(o.c)),
    "plus one": lambda o: cp.sum(cp.multiply(o.c + 1, cp.huber(o.t))),
    "an intercept alone": lambda o: cp.sum(cp.multiply(o.c, cp.square(o.b - o.y))),
    "a column": lambda o: cp.sum(cp.multiply(cp.reshape(o.c, (o.n, 1), order="F"), cp.huber(o.t))),
    "a variable": lambda o: cp.sum(cp.multiply(o.c, cp.square(cp.Variable(o.n)))),
    "a scalar": lambda o: cp.sum(cp.multiply(o.c, cp.square(o.b))),
    "its sum": lambda o: cp.sum(cp.multiply(cp.sum(o.c), cp.huber(o.t))),
    "its sum outside": lambda o: cp.sum(o.c) * cp.sum(cp.huber(o.t)),
    "its first": lambda o: o.c[0] * cp.sum(cp.huber(o.t)),
    "its norm": lambda o: cp.sum(cp.multiply(cp.norm(o.c) * np.ones(o.n), cp.huber(o.t))),
    "its square": lambda o: cp.sum(cp.multiply(cp.square(o.c), cp.huber(o.t))),
    "a glm_loss": lambda o: cp.sum(cp.multiply(o.c, glm_loss("squared", o.X.value, None, o.w))),
}


@pytest.mark.parametrize("form", COUNTED)
def test_every_number_of_records_is_read_or_refused_alike(form):
    """Where n is private; with one record a weight of a record and one for all look the same."""
    found = set()
    for n in (1, 2, 5):
        own = np.random.default_rng(n)
        o = SimpleNamespace(n=n, w=cp.Variable(2), b=cp.Variable())
        o.X, o.y, o.c = map(cp.Constant, (own.random((n, 2)), own.random(n), own.random(n)))
        o.t = o.X @ o.w - o.y
        try:
            erm = read(
                cp.Problem(cp.Minimize(COUNTED[form](o))), [o.X, o.y, o.c],
                adjacency="add_remove", losses="any",
            )  # fmt: skip
            (term,) = erm.loss.terms
            words = repr((term.row_parts, [w.shift for w in term.rows.beside.weights], erm.texts))
        except ProblemError as error:
            words = str(error)
        found.add(re.sub(r"var\d+", "var", words))
    assert len(found) == 1, found


ORDER = np.random.default_rng(5).permutation(N)


@pytest.mark.parametrize(
    ("loss", "private"),
    [
        (cp.sum(cp.multiply(CW[ORDER], cp.square(CX @ w - CY))), [CX, CY, CW]),
        (cp.sum_squares(CX[ORDER] @ w - CY), [CX, CY]),
        (cp.sum_squares(CX[::-1] @ w - CY[::-1]), [CX, CY]),
    ],
)
def test_records_in_another_order_are_refused(loss, private):
    """Beside arrays in their own order, a record would be in two rows of the loss."""
    with pytest.raises(ProblemError, match=r"may combine several records|selects some"):
        read(cp.Problem(cp.Minimize(loss)), private, public=[ORDER])


THETAS = cp.Variable((D, 2))
OUTPUTS = CX @ THETAS
WEIGHTS = cp.reshape(CW, (N, 1), order="F") @ np.ones((1, 2))


@pytest.mark.parametrize(
    "loss",
    [
        cp.sum(cp.multiply(CW, cp.huber(cp.norm(OUTPUTS, 2, axis=1)))),
        cp.sum(cp.multiply(CW, cp.log_sum_exp(OUTPUTS, axis=1))),
        cp.sum(cp.multiply(WEIGHTS, cp.square(OUTPUTS))),
        cp.sum(cp.multiply(WEIGHTS, cp.huber(OUTPUTS))),
    ],
)
def test_private_weights_of_several_outputs_are_refused(loss):
    with pytest.raises(ProblemError, match="The private term"):
        read(cp.Problem(cp.Minimize(loss)), [CX, CW], losses="any")


def test_a_weighted_square_is_not_completed():
    """Its linear term would be divided by the weight: it stays a row of its own, with its bound."""
    loss = cp.sum(cp.multiply(CW, cp.square(CX @ w))) - 2 * cp.sum(cp.multiply(CY, CX @ w))
    own = settled(loss, [CX, CY, CW])
    _square, tilt = own.terms
    found = own.constants(BOUNDS)
    assert not found.one_row
    assert found.anchor_gradient == pytest.approx(2.0)  # of the tilt, 2 offset row_norm
    assert tilt.constants(BOUNDS).smoothness == 0.0
    assert not own.one_residual
    np.testing.assert_allclose(gradient(own), 2 * X.T @ (W * T - Y), rtol=1e-9)


def test_a_linear_loss_has_no_classes():
    loss = cp.sum(cp.multiply(CY, CX @ w))
    with pytest.raises(OptionError, match="no labels of classes"):
        settled(loss, [CX, CY], classes={-1: 1.0, 1: 2.0})


def test_a_single_feature_is_no_label():
    feature, slope = X[:, :1].copy(), cp.Variable(1)
    (term,) = settled(cp.sum(cp.logistic(feature @ slope)), [feature]).terms
    assert term.sign is None
    assert term.row_norm(Bounds(row_norm=2.0)) == 2.0
