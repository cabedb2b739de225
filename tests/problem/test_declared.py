"""Losses with declared constants: what counts as a sum over records, and what is refused."""

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp

from cvxqop.errors import OptionError, ProblemError
from cvxqop.problem.losses.declared import Declared
from cvxqop.problem.reading.declared_reading import read_declared

from .listed import public_of

N, K = 30, 4
RNG = np.random.default_rng(0)
X, Z = RNG.standard_normal((N, 3)), RNG.standard_normal((N, 3))
y, c = RNG.standard_normal(N), RNG.uniform(0.1, 2.0, N)
Y, PUBLIC = np.eye(K)[RNG.integers(0, K, N)], RNG.standard_normal((N, 2))
S = sp.csr_array(X)
weights = cp.Parameter(N, nonneg=True, value=c)
w, b, W, v = cp.Variable(3, name="w"), cp.Variable(), cp.Variable((3, K)), cp.Variable(2)
bias, slack = cp.Variable((1, K)), cp.Variable(N)
BOUNDS = Declared(1.0, anchor_gradient=1.0)


def read(loss, private, adjacency="replace_one", constraints=(), declared=BOUNDS):
    problem = cp.Problem(cp.Minimize(loss), list(constraints))
    listed = public_of(problem, private)
    return read_declared(problem, private, declared, public=listed, adjacency=adjacency)


EXP = cp.sum(cp.exp(X @ w))  # what makes a loss one that is not recognised

SUMS = {
    "exp": (cp.sum(cp.exp(X @ w)) - y @ (X @ w), [X, y]),
    "softmax": (
        EXP + cp.sum(cp.log_sum_exp(X @ W, axis=1) - cp.sum(cp.multiply(Y, X @ W), 1)),
        [X, Y],
    ),
    "softmax with intercepts": (EXP + cp.sum(cp.log_sum_exp(X @ W + bias, axis=1)), [X]),
    "softmax, transposed": (EXP + cp.sum(cp.log_sum_exp(W.T @ X.T, axis=0)), [X]),
    "two rows": (cp.sum(cp.square(cp.pos(X @ w - y)) + cp.exp(Z @ w)), [X, y, Z]),
    "private weights": (
        cp.sum(cp.exp(X @ w) + cp.multiply(weights, cp.square(Z @ w))),
        [X, weights, Z],
    ),
    "huber of norms": (cp.sum(cp.huber(cp.norm(X @ W, axis=1), 0.7)), [X]),
    "pseudo-Huber": (cp.sum(cp.norm(cp.vstack([X @ w - y, np.ones(N)]), axis=0)), [X, y]),
    "squared norms": (EXP + cp.sum(cp.square(cp.norm(X @ W - Y, axis=1))), [X, Y]),
    "squared norm": (cp.norm(X @ w - y) ** 2 + EXP, [X, y]),
    "perspective": (cp.quad_over_lin(X @ w - y, 3 + b), [X, y]),
    "Poisson": (cp.sum(cp.kl_div(c, X @ w + 20)), [X, c]),
    "several outputs": (EXP + cp.sum_squares(X @ W - Y), [X, Y]),
    "sparse": (cp.sum(cp.exp(S @ w)), [S]),
    "moments": ((cp.Constant(y) @ X) @ w + EXP, [X, y]),
    "columns": (cp.sum(cp.exp(X @ W[:, 1])) + cp.sum(cp.exp((X @ W)[:, 0])), [X]),
    "factor": (3 * (cp.sum(cp.exp(X @ w + b)) + b**2), [X]),
    "column of ones": (cp.sum(cp.exp(X @ w + np.ones((N, 1)) @ v[:1])), [X]),
}


@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
@pytest.mark.parametrize("name", SUMS)
def test_sums_over_records(name, adjacency):
    """The gradient agrees with differences of the value, and records add up."""
    loss, private = SUMS[name]
    erm = read(loss + cp.norm1(w), private, adjacency)
    assert erm.n == N
    assert all("array" not in name for name in erm.public_data)
    assert all(variable.value is None for variable in erm.variables)
    function = erm.loss.function()
    theta = 0.1 * np.random.default_rng(1).standard_normal(erm.dimension)
    gradient = function(theta)[1]
    steps = 1e-5 * np.eye(erm.dimension)
    ahead = [(function(theta + h)[0] - function(theta - h)[0]) / 2e-5 for h in steps]
    np.testing.assert_allclose(gradient, ahead, atol=1e-6 * (1 + np.abs(gradient).max()))


def test_regulariser_is_split_off():
    erm = read(3 * (cp.sum(cp.exp(X @ w + b)) + b**2) - cp.sum(w), [X])
    theta = np.arange(4.0)
    value, _ = erm.loss.function()(theta)
    parts = erm.unstack(theta)
    assert value == pytest.approx(3 * np.exp(X @ parts[w] + parts[b]).sum())
    for variable, part in parts.items():
        variable.value = part
    assert erm.regulariser.value == pytest.approx(3 * parts[b] ** 2 - parts[w].sum())
    for variable in parts:
        variable.value = None


PUBLIC_ROWS = {
    "weights": (cp.sum(cp.multiply(PUBLIC[:, 0] ** 2, cp.exp(X @ w))), "(n,)"),
    "product": ((PUBLIC[:, 0] ** 2) @ cp.exp(X @ w), "(n,)"),
    "columns": (cp.sum(cp.exp(X @ w + PUBLIC @ v)), "(n,2)"),
}


@pytest.mark.parametrize("name", PUBLIC_ROWS)
def test_public_arrays_with_one_row_a_record(name):
    loss, shape = PUBLIC_ROWS[name]
    assert read(loss, [X]).public_data == (f"public[0], shape {shape}",)
    with pytest.raises(ProblemError, match="add_remove") as caught:
        read(loss, [X], "add_remove")
    assert str(N) not in str(caught.value)


REFUSED = {
    "over the records": (cp.log_sum_exp(X @ w), [X], "over the records"),
    "other axis": (cp.sum(cp.log_sum_exp(X @ W, axis=0)), [X], "over the records"),
    "square of a sum": (cp.square(cp.sum(cp.exp(X @ w))), [X], "combines records"),
    "function of a moment": (cp.exp((cp.Constant(y) @ X) @ w), [X, y], "combines records"),
    "quadratic of a moment": (cp.sum_squares((X.T @ cp.Constant(X)) @ w), [X], "combines records"),
    "abs": (cp.sum(cp.abs(X @ w)), [X], "not smooth"),
    "hinge": (cp.sum(cp.pos(X @ w)), [X], "not smooth"),
    "quantile": (cp.sum(cp.maximum(0.3 * (X @ w - y), -(X @ w))), [X, y], "not smooth"),
    "shifted hinge": (cp.sum(cp.square(cp.maximum(X @ w, 1))), [X], "not smooth"),
    "norm": (cp.sum(cp.norm(X @ W, axis=1)), [X], "not smooth"),
    "largest": (cp.sum(cp.square(cp.max(X @ W, axis=1))), [X], "not smooth"),
    "chosen records": (cp.sum(cp.exp((X @ w)[2:5])), [X], "by their position"),
    "neighbours": (cp.sum(cp.exp(cp.diff(X @ w))), [X], "by their position"),
    "running sum": (cp.sum(cp.exp(cp.cumsum(X @ W, axis=0))), [X], "combines records in cumsum"),
    "running sum of columns": (
        cp.sum(cp.log_sum_exp(cp.cumsum(W.T @ X.T, axis=0), axis=1)),
        [X],
        "combines records in cumsum",
    ),
    "slack": (cp.sum(cp.exp(X @ w - slack)), [X], "one entry a record"),
    "side by side": (cp.sum(cp.exp(cp.hstack([X @ w, Z @ w]))), [X, Z], "a stack"),
    "divided by a sum": (EXP + cp.sum(cp.square(w) / cp.sum(c)), [X, c], "a divisor"),
    "threshold": (EXP + cp.sum(cp.huber(X @ w, cp.sum(c))), [X, c], "the shape of huber"),
    "every record with every other": (
        cp.sum(cp.kl_div(X @ w, c[:, None])),
        [X, c[:, None]],
        "a broadcast in kl_div",
    ),
    "concave": (-cp.sum(cp.exp(X @ w)), [X], "not convex"),
    "without variable": (cp.sum(cp.exp(X @ w)) + cp.sum(X), [X], "depend on a variable"),
    "lengths": (cp.sum(cp.exp(X @ w)) + cp.sum(cp.exp(y[:9] * b)), [X, y[:9]], "number"),
    "absent": (cp.sum(cp.exp(X @ w)), [Z], "holds no private data"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    loss, private, match = REFUSED[name]
    with pytest.raises(ProblemError, match=match) as caught:
        read(loss, private)
    assert caught.value.__cause__ is None
    for entry in (X[0, 0], y[0]):
        assert f"{abs(entry):.4g}" not in str(caught.value)


def test_the_hessian_of_short_rows_with_large_targets():
    """κ aa' is 1e-10 times the gradient of a record: it must not drown in rounding."""
    A, C = 1e-5 * X, 1e5 * Y[:, :1] + 1e5
    v = cp.Variable((3, 1))
    declared = Declared(1e-9, anchor_gradient=10.0, quadratic=True)
    terms = cp.sum_squares(cp.hstack([A @ v - C, 1e-5 * Z @ v]))
    erm = read(terms, [A, C, 1e-5 * Z], declared=declared)
    H, _ = erm.loss.sums(None, np.zeros(3), None, "raise", None, False).quadratic_form()
    np.testing.assert_allclose(H, 2e-10 * (X.T @ X + Z.T @ Z), rtol=1e-12, atol=1e-21)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_the_signs_of_records_decide_nothing(sign):
    """Whether a factor of a convex function is negative would say something of the records."""
    c_signed, Z_signed = sign * c, sign * abs(Z)
    for factor, loss in (
        (c_signed, cp.sum(cp.multiply(c_signed, cp.exp(X @ w)))),
        (Z_signed, cp.sum(cp.exp(Z_signed @ cp.square(w)))),
    ):
        with pytest.raises(ProblemError, match=r"whatever the signs .* nonneg=True"):
            read(loss, [X, factor] if factor.ndim == 1 else [factor])


def test_refused_elsewhere():
    loss = cp.sum(cp.exp(X @ w))
    with pytest.raises(ProblemError, match="constraint"):
        read(loss, [X, y], constraints=[w <= y[:3].max(), y @ slack <= 1])
    with pytest.raises(ProblemError, match="divided by a number"):
        read(loss / N, [X], "add_remove")
    with pytest.raises(ProblemError, match="divided by a number"):
        read(cp.sum(cp.exp(X @ w) / N), [X], "add_remove")
    assert read(loss / N, [X]).n == N
    assert "1/100" in read(0.01 * loss, [X], "add_remove").scale_statement
    with pytest.raises(OptionError, match="recognised"):
        read(cp.sum_squares(X @ w - y), [X, y])
    with pytest.raises(OptionError, match="quadratic=True"):
        read(loss, [X], declared=Declared(1.0, anchor_gradient=1.0, quadratic=True))
    with pytest.raises(OptionError, match="hessian_rank = 4 exceeds"):
        read(loss, [X], declared=Declared(1.0, hessian_rank=4, anchor_gradient=1.0))
    infinite = X.copy()
    infinite[3, 1] = np.inf
    with pytest.raises(ProblemError, match="NaN or infinity"):
        read(cp.sum(cp.exp(infinite @ w)), [infinite]).loss.check_finite()


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"smoothness": 0.0}, "smoothness must be positive"),
        ({"smoothness": np.inf}, "smoothness must be finite"),
        ({"smoothness": "1"}, "smoothness must be a number"),
        ({"smoothness": None}, "smoothness must be a number"),
        ({"smoothness": 1e-200}, "rescale"),
        ({"hessian_rank": 0}, "hessian_rank"),
        ({"hessian_rank": 1.5}, "hessian_rank"),
        ({"hessian_rank": True}, "hessian_rank"),
        ({"trace": -1.0}, "trace must be positive"),
        ({"anchor_gradient": -1.0}, "anchor_gradient must be at least 0"),
        ({"gradient": np.nan}, "gradient must be finite"),
        ({"quadratic": 1}, "quadratic"),
        ({"anchor_gradient": None}, "anchor_gradient=0 says"),
    ],
)
def test_declaration_refused(options, match):
    with pytest.raises(OptionError, match=match):
        Declared(**{"smoothness": 1.0, "anchor_gradient": 1.0, **options})


def test_declaration():
    bounds = Declared(2.0, gradient=3)
    assert (bounds.anchor_bound, bounds.rank(5), bounds.trace_bound(5)) == (3.0, 5, 10.0)
    bounds = Declared(2.0, 2, 3.0, anchor_gradient=0, gradient=3)
    assert (bounds.anchor_bound, bounds.rank(5), bounds.trace_bound(5)) == (0.0, 2, 3.0)
