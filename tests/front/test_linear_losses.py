"""Linear losses, squares that a linear term completes, outputs of any loss: end to end."""

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp

import cvxqop
from cvxqop.errors import OptionError, PrivateSolverError, ProblemError
from cvxqop.problem.reading.analysis import read

pytestmark = pytest.mark.blas

rng = np.random.default_rng(0)
N, P, K = 2000, 4, 3
X = rng.uniform(-0.5, 0.5, (N, P))
y = X @ [1.0, -1.0, 0.0, 0.5] + 0.05 * rng.uniform(-1, 1, N)
Y = np.column_stack([y, -y / 2, y / 3])
M = (rng.uniform(size=(N, K)) < 0.7).astype(float)
SIGNS = np.where(Y + 0.3 * rng.uniform(-1, 1, Y.shape) > 0, 1.0, -1.0)
ONE_ZERO = (SIGNS > 0) * 1.0
T = np.abs(X)
BOUNDS = cvxqop.Bounds(row_norm=1.0, offset=1.5)
w, v, W = cp.Variable(P, name="w"), cp.Variable(P, name="v"), cp.Variable((P, K), name="W")
S = cp.Variable((P, P), name="S", symmetric=True)
EYE = np.eye(P)
SIMPLEX = [w >= 0, cp.sum(w) == 1]
FANTOPE = [S >> 0, S << EYE, cp.trace(S) == 2]
BALL = [cp.norm(W, "fro") <= 3]

FORMS = {
    "y'Xw": (cp.sum_squares(X @ w) - 2 * (y @ (X @ w)), [], [X, y]),
    "multiply": (cp.sum_squares(X @ w) - 2 * cp.sum(cp.multiply(y, X @ w)), [], [X, y]),
    "brackets": (cp.sum_squares(X @ w) - 2 * (y @ X) @ w, [], [X, y]),
    "a factor inside": (cp.sum_squares(10 * (X @ w)) - 20 * (y @ (X @ w)), [], [X, y]),
    "other units": (0.25 * cp.sum_squares(X @ w) - 4 * (y @ (X @ w)), [], [X, y]),
    "a target too": (cp.sum_squares(X @ w - y) - y @ (X @ w) + cp.norm1(w), [], [X, y]),
    "outputs": (cp.sum_squares(X @ W) - 2 * cp.sum(cp.multiply(Y, X @ W)), [], [X, Y]),
    "mean and variance": ((2 * cp.sum_squares(X @ w) - cp.sum(X @ w)) / N, SIMPLEX, [X]),
    "linear": (-cp.sum(X @ w) + 3 * cp.sum_squares(w), [], [X]),
    "linear on a simplex": (-cp.sum(X @ w), SIMPLEX, [X]),
    "products": (-cp.sum(cp.multiply(Y, X @ W)), [cp.norm(W, "nuc") <= 1], [X, Y]),
    "maximum entropy": (
        N * cp.log_sum_exp(np.eye(P)[:3] @ w) - cp.sum(T @ w) + cp.sum_squares(w),
        [],
        [T],
    ),
    "graphical lasso": (
        -cp.log_det(S) + cp.sum(cp.multiply(X, X @ S)) / N + 0.01 * cp.sum(cp.abs(S)),
        [],
        [X],
    ),
    "huber": (cp.sum(cp.huber(X @ W - Y, 0.2)), [], [X, Y]),
    "logistic": (
        cp.sum(cp.logistic(-cp.multiply(SIGNS, X @ W))) + cp.sum_squares(W),
        [],
        [X, SIGNS],
    ),
    "labels of every output": (
        cp.sum(cp.logistic(X @ W)) - cp.sum(cp.multiply(ONE_ZERO, X @ W)) + cp.sum_squares(W),
        [],
        [X, ONE_ZERO],
    ),
    "exponential": (cp.sum(cp.exp(X @ W)) - cp.sum(cp.multiply(Y, X @ W)), BALL, [X, Y]),
    "masked": (cp.sum_squares(cp.multiply(M, Y - X @ W)), [], [X, Y, M]),
    "masked huber": (cp.sum(cp.huber(cp.multiply(M, Y - X @ W), 0.3)), [], [X, Y, M]),
    "beside another loss": (
        cp.sum(cp.huber(X @ w - y)) - cp.sum(T @ v) + N * cp.sum_squares(v),
        [],
        [X, y, T],
    ),
}


def pay(name, epsilon=1e6, **options):
    loss, constraints, private = FORMS[name]
    problem = cp.Problem(cp.Minimize(loss), constraints)
    stated = {"bounds": BOUNDS, "delta": 1e-6, "seed": 1, "public": [EYE, np.eye(P)[:3]]}
    stated |= {"private": private, "epsilon": epsilon, **options}
    return problem, cvxqop.privatize(problem, **stated)


@pytest.mark.parametrize("name", FORMS)
def test_with_little_noise_the_answer_is_that_without_privacy(name):
    problem, solution = pay(name)
    found = {variable: solution[variable] for variable in problem.variables()}
    problem.solve(solver="CLARABEL")
    for variable, value in found.items():
        error = np.linalg.norm(value - variable.value)
        assert error <= 3e-3 * np.linalg.norm(variable.value)


def test_principal_components_are_a_linear_loss():
    Z = X * [1.0, 0.8, 0.3, 0.1]
    problem = cp.Problem(cp.Maximize(cp.sum(cp.multiply(Z @ S, Z))), FANTOPE)
    options = {"private": [Z], "public": [EYE], "delta": 1e-6, "seed": 1}
    solution = cvxqop.privatize(problem, bounds=cvxqop.Bounds(row_norm=1.0), epsilon=1e6, **options)
    _, vectors = np.linalg.eigh(Z.T @ Z)
    np.testing.assert_allclose(solution[S], vectors[:, 2:] @ vectors[:, 2:].T, atol=1e-3)


@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
def test_all_of_a_linear_loss_goes_to_its_gradient(adjacency):
    """One Gaussian mechanism: s_a = Δ/μ, and no noise on the zero curvature."""
    hops = 2.0 if adjacency == "replace_one" else 1.0
    for name, bound in {"linear": 1.0, "products": 1.5}.items():
        _, solution = pay(name, 1.0, adjacency=adjacency)
        mechanism = solution.guarantee.mechanism
        assert mechanism.guard_scale == pytest.approx(hops * bound / 0.236704, rel=1e-5)
        assert not solution.private_loss.hessian.any()
        assert not np.signbit(solution.private_loss.hessian).any()
    squares = cvxqop.Bounds(row_norm=0.5)
    loss = cp.sum(cp.multiply(X, X @ S))
    released = cvxqop.private_loss(loss, private=[X], bounds=squares, epsilon=1.0, delta=1e-6)
    assert released.guarantee.mechanism.guard_scale == pytest.approx(2 * 0.25 / 0.236704, rel=1e-5)


def test_a_released_linear_term_goes_with_any_rest():
    released = cvxqop.private_loss(
        -cp.sum(X @ w), private=[X], bounds=cvxqop.Bounds(row_norm=1.0), epsilon=1e6, delta=1e-6
    )
    assert released.expression.is_affine()
    assert str(released).startswith("Private linear loss of w")
    for lam in (1.0, 10.0):
        cp.Problem(cp.Minimize(released.expression + lam * cp.sum_squares(w))).solve()
        np.testing.assert_allclose(w.value, X.sum(axis=0) / (2 * lam), atol=2e-2)


def test_records_beyond_the_bounds_are_clipped():
    """The products as a whole: y_i x_i at norm row_norm · offset, z z' at row_norm²."""
    tight = cvxqop.Bounds(row_norm=0.3, offset=0.2)
    rows = y[:, None] * X
    factor = np.minimum(1.0, 0.06 / np.linalg.norm(rows, axis=1))
    assert factor.min() < 0.5
    released = cvxqop.private_loss(
        -(y @ (X @ w)), private=[X, y], bounds=tight, epsilon=1e6, delta=1e-6
    )
    np.testing.assert_allclose(released.gradient, -(factor @ rows), atol=2e-3)
    released = cvxqop.private_loss(
        cp.sum(cp.multiply(X, X @ S)), private=[X], bounds=tight, epsilon=1e6, delta=1e-6
    )
    clipped = X * np.minimum(1.0, 0.3 / np.linalg.norm(X, axis=1))[:, None]
    np.testing.assert_allclose(released.gradient.reshape(P, P), clipped.T @ clipped, atol=2e-3)


def test_a_completed_square_is_that_square():
    """The same constants, the same clipping, the same noise as of the square written out."""
    tight = cvxqop.Bounds(row_norm=0.6, offset=0.5)
    found = [
        cvxqop.private_loss(
            loss, private=[X, y], bounds=tight, epsilon=1.0, delta=1e-6, seed=3, perturbation=how
        )
        for how in ("gaussian", "wishart")
        for loss in (cp.sum_squares(X @ w - y), FORMS["y'Xw"][0], FORMS["multiply"][0])
    ]
    for written, *others in (found[:3], found[3:]):
        for other in others:
            np.testing.assert_allclose(other.hessian, written.hessian)
            np.testing.assert_allclose(other.gradient, written.gradient)


def test_units_are_those_of_the_listed_arrays():
    """A factor around the linear term is applied by the library: c = 8 y here."""
    (term,) = read(cp.Problem(cp.Minimize(FORMS["other units"][0])), [X, y]).loss.terms
    assert term.offset(BOUNDS) == pytest.approx(8 * 1.5)
    assert term.constants(BOUNDS).anchor_gradient == pytest.approx(0.25 * 2 * 8 * 1.5)


def test_what_lacks_a_minimiser_is_refused_or_warned_of():
    bounds = cvxqop.Bounds(row_norm=1.0)
    options = {"private": [X], "bounds": bounds, "epsilon": 1.0, "delta": 1e-6, "seed": 1}
    budget = cvxqop.Budget(epsilon=10.0, delta=1e-3)
    with pytest.raises(ProblemError, match=r"no minimiser.*sum_squares"):
        cvxqop.privatize(cp.Problem(cp.Minimize(-cp.sum(X @ w))), budget=budget, **options)
    assert not budget.history
    doubtful = cvxqop.plan(cp.Problem(cp.Minimize(-cp.sum(X @ w)), [w >= 0]), **options)
    assert any("may leave no minimiser" in warning for warning in doubtful.warnings)
    with pytest.raises(PrivateSolverError, match="private_loss") as caught:
        doubtful.run()
    again = caught.value.private_loss.expression + cp.sum_squares(w)
    cp.Problem(cp.Minimize(again), [w >= 0]).solve()
    for rest, constraints in ((cp.sum_squares(w), []), (0, [cp.norm(w, 2) <= 1]), (0, SIMPLEX)):
        problem = cp.Problem(cp.Minimize(-cp.sum(X @ w) + rest), constraints)
        assert not cvxqop.plan(problem, **options).warnings


def test_refusals():
    options = {"epsilon": 1.0, "delta": 1e-6}
    unbounded = cvxqop.Bounds(row_norm=1.0)
    loss = cp.Problem(cp.Minimize(cp.sum_squares(w) - y @ (X @ w)))
    with pytest.raises(ProblemError, match=r"Bounds\(offset=…\) is missing"):
        cvxqop.privatize(loss, private=[X, y], bounds=unbounded, **options)
    for perturbation in ("wishart", "linear", cvxqop.Linear(clip=1.0)):
        with pytest.raises(OptionError, match="use perturbation='gaussian'"):
            pay("linear", perturbation=perturbation)
    with pytest.raises(OptionError, match="use stages=1"):
        pay("linear", perturbation=cvxqop.Gaussian(stages=2))
    tilted = cp.Problem(cp.Minimize(cp.sum_squares(X @ w - y) - cp.sum(X @ w)))
    with pytest.raises(OptionError, match="a gradient beside that of its residual"):
        cvxqop.privatize(
            tilted,
            private=[X, y],
            bounds=BOUNDS,
            perturbation=cvxqop.Gaussian(stages=2),
            **options,
        )
    with pytest.raises(OptionError, match="leave solver out"):
        pay("linear", solver="STOTOS")
    with pytest.raises(OptionError, match="no minimiser that all records share"):
        pay("linear", anchor=cvxqop.CommonMinimizer(np.zeros(P)))


def test_constants_of_outputs_apart():
    """Blocks of their own: the largest norm, and squares of lengths add up."""
    bounds = cvxqop.Bounds(row_norm=2.0, offset=1.0)
    loss = read(cp.Problem(cp.Minimize(cp.sum(cp.huber(X @ W - Y, 0.5)))), [X, Y]).loss
    found = loss.constants(bounds, np.zeros(P * K), None)
    assert (found.smoothness, found.hessian_rank, found.trace) == (8.0, K, 24.0)
    assert found.frobenius == pytest.approx(8.0 * np.sqrt(K))
    assert found.anchor_gradient == pytest.approx(2.0 * np.sqrt(K))
    G = loss.gradient_bound(bounds, np.zeros(P * K), None, np.inf)
    assert pytest.approx(found.anchor_gradient) == G
    # Columns that share a variable add up.
    b = cp.Variable(name="b")
    loss = read(cp.Problem(cp.Minimize(cp.sum(cp.huber(X @ W + b - Y, 0.5)))), [X, Y]).loss
    shared = loss.constants(bounds, np.zeros(P * K + 1), None)
    assert shared.smoothness == pytest.approx(K * 2.0 * 5.0)


def test_a_loop_over_outputs_is_the_matrix_form():
    columns = [Y[:, j].copy() for j in range(K)]
    loop = sum(cp.sum(cp.huber(X @ W[:, j] - columns[j], 0.2)) for j in range(K))
    problem = cp.Problem(cp.Minimize(loop))
    options = {"bounds": BOUNDS, "epsilon": 1e6, "delta": 1e-6, "seed": 1}
    one = cvxqop.privatize(problem, private=[X, *columns], **options)
    _, other = pay("huber")
    np.testing.assert_allclose(one[W], other[W], atol=1e-6)


def test_tasks_with_data_of_their_own_are_block_rows():
    X2 = rng.uniform(-0.5, 0.5, (500, P))
    y2 = X2 @ [0.0, 1.0, 1.0, -1.0]
    rows, targets = sp.block_diag([X, X2]).tocsr(), np.concatenate([y, y2])
    V = cp.Variable((P, 2))
    loss = cp.sum_squares(rows @ cp.vec(V, order="F") - targets) + 2 * cp.mixed_norm(V, 2, 1)
    problem = cp.Problem(cp.Minimize(loss))
    cvxqop.privatize(
        problem, private=[rows, targets], bounds=BOUNDS, epsilon=1e6, delta=1e-6, seed=1
    )
    found = V.value
    problem.solve(solver="CLARABEL")
    np.testing.assert_allclose(found, V.value, atol=1e-3)
