"""What is refused, by which words; and that no message holds an entry of an array."""

from __future__ import annotations

import re

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from cvxpy.transforms.partial_optimize import partial_optimize

from cvxqop.errors import ProblemError
from cvxqop.problem.reading.analysis import read

from .listed import public_of

rng = np.random.default_rng(0)
N, D = 11, 3
X = rng.standard_normal((N, D))
X2 = rng.standard_normal((N, 2))
Y = rng.standard_normal(N)
S = rng.uniform(0.1, 2.0, N)
A = rng.standard_normal((N, N))
GRAM = X.T @ X
K = rng.standard_normal((N, 2))
w = cp.Variable(D, name="w")
v = cp.Variable(2, name="v")
u = cp.Variable(N, name="u")
b = cp.Variable(name="b")
W2 = cp.Variable((D, 2), name="W2")
S1 = cp.Variable(nonneg=True)
CX, CY = cp.Constant(X), cp.Constant(Y)
LS = cp.sum_squares(X @ w - Y)


def minimise(loss, constraints=()):
    return cp.Problem(cp.Minimize(loss), list(constraints))


# name: (problem, private, options, words of the message)
REFUSED = {
    "absolute value": (
        minimise(cp.norm1(X @ w - Y)),
        [X, Y],
        {},
        r"norm1\(private\[0\]\(11,3\) @ w - private\[1\]\(11,\)\) is a loss that is not smooth",
    ),
    "sum of absolute values": (
        minimise(cp.sum(cp.abs(X @ w - Y))),
        [X, Y],
        {},
        r"sum\(abs\(.*not smooth.*huber",
    ),
    "norm": (
        minimise(cp.norm(X @ w - Y)),
        [X, Y],
        {},
        r"norm\(.*, 2\) is a loss that is not smooth",
    ),
    "norm inf": (minimise(cp.norm_inf(X @ w - Y)), [X, Y], {}, r"norm_?inf\(.*not smooth"),
    "hinge": (
        minimise(cp.sum(cp.pos(1 - cp.multiply(Y, X @ w)))),
        [X, Y],
        {},
        r"sum\(pos\(.*not smooth.*square\(pos\(…\)\) in place of a hinge",
    ),
    "quantile": (
        minimise(cp.sum(cp.maximum(0.3 * (X @ w - Y), 0.7 * (Y - X @ w)))),
        [X, Y],
        {},
        r"sum\(maximum\(const .*not smooth",
    ),
    "square of a maximum": (
        minimise(cp.sum(cp.square(cp.maximum(X @ w, Y)))),
        [X, Y],
        {},
        r"maximum\(private\[0\]\(11,3\) @ w, private\[1\]\(11,\)\).*not smooth",
    ),
    "exponential": (
        minimise(cp.sum(cp.exp(X @ w))),
        [X],
        {},
        r"sum\(exp\(.*without a bound on its curvature",
    ),
    "Poisson": (
        minimise(cp.sum(cp.exp(X @ w) - cp.multiply(Y, X @ w))),
        [X, Y],
        {},
        r"without a bound on its curvature",
    ),
    "fourth power": (minimise(cp.sum((X @ w - Y) ** 4)), [X, Y], {}, r"power\(.*, 4\).*curvature"),
    "square of a square": (
        minimise(cp.square(cp.sum_squares(X @ w - Y))),
        [X, Y],
        {},
        r"square\(sum_squares\(",
    ),
    "log sum exp": (minimise(cp.log_sum_exp(X @ w)), [X], {}, r"log_sum_exp\(.*curvature"),
    "unknown atom": (minimise(cp.sum_largest(X @ w, 2)), [X], {}, r"sum_largest\("),
    "linear in a sum of records": (
        minimise(cp.sum(X, axis=0) @ w),
        [X],
        {},
        r"w in the term sum\(private\[0\].*has one entry a record although no record occurs",
    ),
    "concave": (minimise(-LS), [X, Y], {}, r"has a negative weight, so it is not convex"),
    "weight zero": (minimise(0 * LS), [X, Y], {}, r"has weight zero"),
    "private constraint": (
        minimise(LS, [X @ w <= 1]),
        [X, Y],
        {},
        r"constraint private\[0\]\(11,3\) @ w <= .*holds private data \(private\[0\] \(11, 3\)\)",
    ),
    "private in the rest": (
        minimise(LS + cp.norm1(cp.multiply(X[0], w))),
        [X, Y, X[0]],
        {},
        r"norm1\(multiply\(private\[2\]\(3,\), w\)\) is a loss that is not smooth",
    ),
    "private inside a perspective": (
        minimise(LS + cp.perspective(LS, S1)),
        [X, Y],
        {},
        r"perspective\(.*keeps private data \(private\[0\] .* and private\[1\] .*\) beside",
    ),
    "private inside an indicator": (
        minimise(LS + cp.transforms.indicator([X @ w <= 1])),
        [X, Y],
        {},
        r"indicator\(.*is not a loss that is known",
    ),
    "private inside a partial minimum": (
        minimise(LS + partial_optimize(minimise(LS + cp.norm1(w)), [w], [])),
        [X, Y],
        {},
        r"partial_optimize holds a problem inside the problem",
    ),
    "a public partial minimum": (
        minimise(LS + partial_optimize(minimise(cp.norm1(w[:2] - v) + cp.norm1(v)), [v], [w])),
        [X, Y],
        {},
        r"partial_optimize holds a problem inside the problem",
    ),
    "private array alone": (
        minimise(LS + cp.sum_squares(CY)),
        [X, Y],
        {},
        r"sum_squares\(private\[1\]\(11,\)\) does not depend on a variable",
    ),
    "changed copy": (
        minimise(LS),
        [X + 1, Y],
        {"public": ()},
        r"private term sum_squares\(const.*\) holds an array of shape \(11,3\) that is listed ne"
        r"ither in private nor in public.*list the very array in private=.*list it in public=",
    ),
    "nothing private": (minimise(LS), [], {}, r"The objective holds no private data"),
    "private only in a constraint": (
        minimise(cp.norm1(w), [X @ w <= 1]),
        [X],
        {},
        r"The constraint .* holds private data",
    ),
    "no variable": (
        minimise(cp.sum_squares(CX @ np.ones(D) - Y) + cp.norm1(w)),
        [X, Y],
        {},
        r"does not depend on a variable",
    ),
    "broadcast": (
        minimise(cp.sum_squares(X @ w - Y[:, None])),
        [X, Y],
        {},
        r"combines arrays of shapes \(11, 1\) and \(11,\), which broadcast to \(11, 11\)",
    ),
    "broadcast under a sum": (
        minimise(cp.sum(cp.multiply(S[:, None], cp.square(X @ w - Y)))),
        [X, Y],
        {},
        r"broadcasts square\(.*\) from shape \(11,\) to \(11, 11\)",
    ),
    "different counts": (
        minimise(LS + cp.sum_squares(X[:5] @ w)),
        [X, Y, X[:5]],
        {},
        r"run over different numbers of records",
    ),
    "mixing matrix": (
        minimise(cp.sum_squares(A @ (X @ w) - Y)),
        [X, Y],
        {},
        r"const\(11,11\) @ \(private\[0\]\(11,3\) @ w\) in the term .* combines several records",
    ),
    "private mixing matrix": (
        minimise(cp.sum_squares(A @ (X @ w) - Y)),
        [X, Y, A],
        {},
        r"combines several records",
    ),
    "mixing product": (
        minimise(cp.sum_squares((cp.Constant(A) @ CX) @ w - Y)),
        [X, Y],
        {},
        r"combines several records",
    ),
    "cumulated": (
        minimise(cp.sum_squares(cp.cumsum(X @ w) - Y)),
        [X, Y],
        {},
        r"cumsum\(.*may combine several records",
    ),
    "gram": (
        minimise(cp.sum_squares(CX.T @ (X @ w - Y))),
        [X, Y],
        {},
        r"combines several records",
    ),
    "centred": (
        minimise(cp.sum_squares(X @ w - Y - cp.sum(X @ w) / N)),
        [X, Y],
        {},
        r"combines several records into one number",
    ),
    "quadratic form": (
        minimise(cp.quad_form(w, GRAM)),
        [GRAM],
        {},
        r"quad_form\(w, private\[0\]\(3,3\)\) has a private matrix that was computed from all",
    ),
    "some records": (
        minimise(cp.sum_squares(CX[::-1] @ w)),
        [X],
        {},
        r"\[\.\.\.\] in the term .* selects some of the records",
    ),
    "transposed use": (
        minimise(cp.sum_squares(CX.T @ u)),
        [X],
        {},
        r"records along the wrong axis.*combines several records",
    ),
    "transpose listed": (
        minimise(cp.sum_squares(w @ X.T - Y)),
        [cp.Constant(X.T), Y],
        {},
        r"records along the wrong axis.*list the transpose in private",
    ),
    "row vector listed": (
        minimise(cp.sum_squares(X @ w - CY)),
        [X, Y[None, :]],
        {},
        r"records along the wrong axis.*\(n,\) or \(n, 1\)",
    ),
    "vector as a row": (
        minimise(cp.sum_squares(CY @ u - cp.Constant([1.0]))),
        [Y],
        {},
        r"vector of records in the place of one row|combines several records",
    ),
    "one effect a record": (
        minimise(cp.sum_squares(X @ w + u - Y)),
        [X, Y],
        {},
        r"\+ u - private.* in the term .* has one entry a record although no record occurs in it",
    ),
    "not affine": (
        minimise(cp.sum_squares(cp.abs(X @ w) - Y)),
        [X, Y],
        {},
        r"abs\(.*is not affine in the variables",
    ),
    "product of variables": (
        minimise(cp.sum_squares(cp.multiply(X @ w, X2 @ v))),
        [X, X2],
        {},
        r"is not affine in the variables",
    ),
    "private weights": (
        minimise(cp.sum(cp.multiply(S, cp.square(X @ w - Y)))),
        [X, Y, S],
        {},
        r"is weighted by private data, without a public bound: state Bounds\(row_norm=…, weight=2",
    ),
    "private divisor": (
        minimise(cp.sum_squares((X @ w - Y) / S)),
        [X, Y, S],
        {},
        r"divides by private data",
    ),
    "negative weights": (
        minimise(cp.sum(cp.multiply(Y, cp.square(X @ w)))),
        [X],
        {},
        r"has a negative weight",
    ),
    "mean under add_remove": (
        minimise(cp.mean(cp.square(X @ w - Y))),
        [X, Y],
        {"adjacency": "add_remove"},
        r"is divided by the number of records.*Write the sum and multiply the regulariser",
    ),
    "mean of labels under add_remove": (
        minimise(cp.mean(cp.logistic(CX @ w) - cp.multiply(CY, CX @ w))),
        [X, Y],
        {"adjacency": "add_remove"},
        r"is divided by the number of records",
    ),
    "scaled mean under add_remove": (
        minimise(0.5 * cp.mean(cp.square(X @ w - Y))),
        [X, Y],
        {"adjacency": "add_remove"},
        r"is divided by the number of records",
    ),
    "sum over another number under add_remove": (
        minimise(cp.sum(cp.square(X @ w - Y)) / (N + 1)),
        [X, Y],
        {"adjacency": "add_remove"},
        r"is a sum that is divided by a number",
    ),
    "sum of squares over a number under add_remove": (
        minimise(cp.sum_squares(X @ w - Y) / N),
        [X, Y],
        {"adjacency": "add_remove"},
        r"is a sum that is divided by a number",
    ),
    "public number as an array under add_remove": (
        minimise(cp.sum_squares(X @ w + np.array([2.7]) - Y)),
        [X, Y],
        {"adjacency": "add_remove"},
        r"write one number for all records as a number and not as an array",
    ),
    "public weights under add_remove": (
        minimise(cp.sum(cp.multiply(S, cp.square(X @ w - Y)))),
        [X, Y],
        {"adjacency": "add_remove"},
        r"has public weights, one a record",
    ),
    "public rows under add_remove": (
        minimise(LS),
        [Y],
        {"adjacency": "add_remove"},
        r"uses a public array of shape \(n,3\), with one row a record.*List it in private",
    ),
    "public target under add_remove": (
        minimise(LS),
        [X],
        {"adjacency": "add_remove"},
        r"uses a public array of shape \(n,1\)",
    ),
    "non-convex rest": (
        minimise(LS - cp.norm1(w)),
        [X, Y],
        {},
        r"The public term .* is not convex",
    ),
    "non-convex constraint": (
        minimise(LS, [cp.norm1(w) >= 1]),
        [X, Y],
        {},
        r"The constraint 1 <= norm1\(w\) is not convex",
    ),
    "complex variable": (
        minimise(cp.sum_squares(X @ cp.Variable(D, complex=True, name="z") - Y)),
        [X, Y],
        {},
        r"The variable z is complex",
    ),
    "integer variable": (
        minimise(cp.sum_squares(X @ cp.Variable(D, integer=True, name="z") - Y)),
        [X, Y],
        {},
        r"The variable z is integer",
    ),
    "boolean variable of the rest": (
        minimise(LS + cp.Variable(boolean=True, name="z")),
        [X, Y],
        {},
        r"The variable z is boolean",
    ),
    "complex data": (
        minimise(cp.sum(cp.abs(X * 1j @ w)) + LS),
        [X, Y],
        {"public": ()},
        r"complex constant",
    ),
    "complex private": (minimise(LS), [X * 1j], {}, r"private\[0\] must hold real numbers"),
    "symmetric variable": (
        minimise(
            cp.sum(cp.huber(X @ cp.Variable((D, D), symmetric=True, name="Q") @ np.ones(D) - Y))
        ),
        [X, Y],
        {},
        r"The variable Q of the private loss has the attribute symmetric",
    ),
    "parameter without value": (
        minimise(LS + cp.Parameter(name="lam", nonneg=True) * cp.norm1(w)),
        [X, Y],
        {},
        r"The parameter lam has no value",
    ),
    "private parameter without value": (
        minimise(LS),
        [X, cp.Parameter(N, name="q")],
        {},
        r"private\[1\], the parameter q, has no value",
    ),
    "array instead of list": (minimise(LS), X, {}, r"write private=\[X\], not private=X"),
    "text": (minimise(LS), "X", {}, r"private must be a list of arrays.*not str"),
    "set entry": (
        minimise(LS),
        [X, set(Y.tolist())],
        {},
        r"private\[1\] must be a NumPy array.*list of numbers.*not set",
    ),
    "text entry": (minimise(LS), [np.array(["a"])], {}, r"private\[0\] must hold real numbers"),
    "three axes": (minimise(LS), [np.ones((2, 2, 2))], {}, r"one or two axes, not 3"),
    "public infinity": (
        minimise(cp.sum_squares(cp.multiply(np.r_[np.inf, np.ones(N - 1)], X @ w))),
        [X],
        {},
        r"holds a public array with NaN or infinite entries",
    ),
    "divided by zero": (
        minimise(cp.sum_squares((X @ w) / np.zeros(N))),
        [X],
        {},
        r"zero or not finite",
    ),
    "variable divisor": (
        minimise(cp.sum_squares(X @ w / b)),
        [X],
        {},
        r"is not affine in the variables|divides by a variable",
    ),
    "scaled array": (
        minimise(cp.sum_squares(cp.multiply(CX, K[:, :1]) @ w)),
        [X],
        {},
        r"scales an array of records entry by entry",
    ),
}


@pytest.mark.filterwarnings("ignore:This use of:UserWarning")
@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    problem, private, options, words = REFUSED[name]
    if "public" not in options:
        options = {**options, "public": public_of(problem, private)}
    with pytest.raises(ProblemError, match=words) as caught:
        read(problem, private, **options)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    _holds_no_entry(str(caught.value))


def _holds_no_entry(message):
    """Shapes and the plain factor 0.5 are the only numbers; entries are random reals."""
    assert set(re.findall(r"\d+\.\d+", message)) <= {"0.5"}


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_small_n_does_not_decide_under_add_remove(n):
    """Factors ½, 1 and 2 are no means, whatever n."""
    for factor in (0.5, 1.0, 2.0):
        loss = factor * cp.sum_squares(X[:n] @ w - Y[:n])
        read(minimise(loss), [X[:n], Y[:n]], adjacency="add_remove")


def test_public_arrays_are_reported():
    erm = read(minimise(cp.sum(cp.multiply(S, cp.square(X @ w - Y)))), [Y], public=[X, S])
    assert set(erm.public_data) == {"public[0], shape (n,3)", "public[1], shape (n,)"}


def test_equal_public_weights_and_constants_work_under_add_remove():
    loss = cp.sum(cp.multiply(np.full(N, 2.0), cp.square(X @ w - np.ones(N))))
    erm = read(minimise(loss), [X], adjacency="add_remove")
    assert erm.public_data == ()
    assert erm.loss.terms[0].losses[0][1] == 2.0


def test_private_csc_found_in_a_constraint():
    matrix = sp.csc_array(X)
    with pytest.raises(ProblemError, match="holds private data"):
        read(minimise(LS, [sp.csr_array(X) @ w <= 1]), [matrix, X, Y])


def test_attributes_that_are_constraints_are_kept():
    for attribute in ({"nonneg": True}, {"nonpos": True}, {"bounds": [-1, 1]}):
        z = cp.Variable(D, **attribute)
        assert read(minimise(cp.sum_squares(X @ z - Y)), [X, Y]).variables == (z,)
