"""A refusal that names a solver or an option names one that this very problem takes."""

import re

import cvxpy as cp
import numpy as np
import pytest
from cvxpy.expressions.constants.constant import eig_util
from scipy.sparse.linalg import ArpackNoConvergence

import cvxqop

RNG = np.random.default_rng(0)
X = RNG.uniform(-0.5, 0.5, (500, 3))
Y = np.sign(X @ [4.0, -2.0, 1.0])
PAY = {"bounds": cvxqop.Bounds(row_norm=1.0, offset=1.0), "epsilon": 1.0, "delta": 1e-6}
W, T = cp.Variable(3, name="w"), cp.Variable(3, name="t")
GRAPH = np.array([[1, -1, 0], [0, 1, -1], [1, 0, -1.0]])

HARD = {
    "overlapping groups": (3 * (cp.norm(W[:2], 2) + cp.norm(W[1:], 2)), []),
    "trend filter": (2 * cp.norm1(cp.diff(W, k=2)), []),
    "graph-fused": (2 * cp.norm1(GRAPH @ W), []),
    "epigraph": (2 * cp.sum(T), [W <= T, -W <= T]),
    "exponential": (cp.sum(cp.exp(W)), []),
}


def logistic():
    return cp.sum(cp.logistic(-cp.multiply(Y, X @ W)))


def squared():
    return cp.sum_squares(X @ W - Y)


def released(loss, rest=(0, []), **options):
    problem = cp.Problem(cp.Minimize(loss + rest[0]), rest[1])
    return cvxqop.privatize(problem, **{"private": [X, Y], **PAY, **options})


def refusal(loss, rest=(0, []), **options):
    problem = cp.Problem(cp.Minimize(loss + rest[0]), rest[1])
    with pytest.raises(cvxqop.CvxqopError) as caught:
        cvxqop.plan(problem, **{"private": [X, Y], **PAY, **options})
    return str(caught.value)


PAPER = {
    "perturbation": cvxqop.Wishart(calibration="paper"),
    "anchor": cvxqop.CommonMinimizer(np.zeros(3), error=0.1),
}
LOSSES = {"logistic": logistic, "squared": squared}


@pytest.mark.parametrize("name", HARD)
@pytest.mark.parametrize("loss", LOSSES)
def test_what_stotos_cannot_split(loss, name):
    """STOTOS by name is refused; left out, the same call runs, beside any loss."""
    r, C = HARD[name]
    bounded = (r, [*C, cp.norm(W) <= 2])
    for options in (
        {"solver": "STOTOS"},
        {"solver": "STOTOS", "solver_options": {"variant": "svrg"}},
        {"solver": "STOTOS", "perturbation": "linear"},
    ):
        text = refusal(LOSSES[loss](), bounded, **options)
        assert "STOTOS" in text
        assert "Leave solver and solver_options out: the default for this problem takes" in text
    for perturbation, rest in (("gaussian", (r, C)), ("wishart", (r, C)), ("linear", bounded)):
        solution = released(LOSSES[loss](), rest, perturbation=perturbation)
        assert np.all(np.isfinite(solution[W]))


def test_what_no_solver_takes_is_not_advised():
    """The remedy of one solver is tried before it is named."""
    inexact = (cp.norm1(W) + cp.pnorm(W, np.pi), [])
    text = refusal(logistic(), inexact, solver="STOTOS")
    assert "Leave solver" not in text
    assert "only approximated by the cones" in text
    fine = {"accuracy": 1e-9}
    text = refusal(logistic(), HARD["exponential"], solver="STOTOS", **fine)
    assert "Leave solver" not in text
    assert "pass a larger accuracy" in text
    released(logistic(), HARD["exponential"], accuracy=1e-6)


def test_a_solver_of_cvxpy_for_a_loss_that_stotos_takes():
    rest = (cp.norm1(W), [cp.abs(W) <= 2])
    for loss, options in (
        (logistic(), {}),
        (squared(), {"perturbation": "linear"}),
        (squared(), {**PAPER, "epsilon": 3.0}),
    ):
        own = released(loss, rest, seed=1, **options)
        assert own.solver == "STOTOS"
        for solver in ("CLARABEL", "SCS"):
            other = released(loss, rest, seed=1, solver=solver, **options)
            assert other.solver == solver
            # Two certificates of 1e-6 · radius, the same noise.
            np.testing.assert_allclose(own[W], other[W], atol=3e-6)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_matrix_that_cvxpy_cannot_judge(loss, monkeypatch):
    """The test of definiteness does not converge, wherever the matrix stands."""

    def undecided(*arguments):
        raise ArpackNoConvergence("no", np.zeros(0), np.zeros((0, 0)))

    monkeypatch.setattr(eig_util, "is_psd_within_tol", undecided)
    P = np.eye(3) + 0.3
    rests = [
        (lambda P: (cp.quad_form(W, P), [])),
        (lambda P: (cp.sum(cp.exp(W)) + cp.quad_form(W, P), [])),
        (lambda P: (cp.norm1(W), [cp.quad_form(W, P) <= 1])),
    ]
    for rest in rests:
        for solver in (None, "STOTOS", "CLARABEL"):
            assert "cp.psd_wrap(P)" in refusal(LOSSES[loss](), rest(P), solver=solver)
        released(LOSSES[loss](), rest(cp.psd_wrap(P)))


def test_options_of_the_cone_engine():
    text = refusal(logistic(), HARD["trend filter"], solver_options={"variant": "svrg"})
    assert "it takes max_iter, time_limit" in text
    limits = {"max_iter": 100, "time_limit": 100.0}
    released(logistic(), HARD["trend filter"], solver_options=limits)


def test_variants_and_stages():
    stochastic = {"solver": "STOTOS", "solver_options": {"variant": "svrg"}}
    assert "Leave the variant out" in refusal(squared(), perturbation="gaussian", **stochastic)
    released(squared(), perturbation="gaussian", solver="STOTOS")
    text = refusal(logistic(), perturbation=cvxqop.Gaussian(stages=2))
    assert "use stages=1" in text
    released(logistic(), perturbation=cvxqop.Gaussian(stages=1))
    floor = cvxqop.Wishart(curvature="floor")
    text = refusal(squared(), perturbation=floor, **stochastic)
    assert "leave the variant out" in text
    assert "curvature='ridge'" in text
    released(squared(), perturbation=floor, solver="STOTOS")
    released(squared(), perturbation=cvxqop.Wishart(curvature="ridge"), **stochastic)


def test_several_outputs():
    theta = cp.Variable((3, 2))
    Y2 = 0.5 * np.column_stack([Y, -Y])
    loss = cp.sum_squares(X @ theta - Y2)
    stochastic = {"solver": "STOTOS", "solver_options": {"variant": "svrg"}}
    released(loss, private=[X, Y2], perturbation="wishart", **stochastic)
    released(loss, private=[X, Y2], perturbation="wishart", solver="STOTOS")
    Z = np.eye(3)[RNG.integers(3, size=500)]
    scores = X @ cp.Variable((3, 3))
    classes = cp.sum(cp.log_sum_exp(scores, axis=1)) - cp.sum(cp.multiply(Z, scores))
    text = refusal(classes, private=[X, Z], perturbation=cvxqop.Linear(clip=0.5))
    assert "perturbation='wishart'" in text
    released(classes, private=[X, Z], perturbation="wishart")


def declared(rest, **options):
    loss = cp.sum(cp.exp(X @ W)) - Y @ (X @ W)
    problem = cp.Problem(cp.Minimize(loss + rest[0]), [cp.abs(W) <= 0.5, *rest[1]])
    constants = cvxqop.Declared(smoothness=np.e, hessian_rank=1, anchor_gradient=2)
    return cvxqop.plan(
        problem, private=[X, Y], declared=constants, epsilon=1.0, delta=1e-6, **options
    )


def test_declared_losses():
    rest = (cp.norm1(GRAPH @ W), [])
    for trust in (False, True):
        with pytest.raises(cvxqop.OptionError, match="Leave solver and solver_options out"):
            declared(rest, solver="STOTOS", accept_solver_accuracy=trust)
        assert declared(rest, accept_solver_accuracy=trust).run()
    with pytest.raises(cvxqop.OptionError, match="use 'CLARABEL' or 'SCS'"):
        declared((0, []), solver="OSQP").run()
    for solver in ("CLARABEL", "SCS"):
        assert declared((0, []), solver=solver).run()


@pytest.mark.parametrize(
    ("given", "name"),
    [("clarabel", "CLARABEL"), ("Osqp", "OSQP"), ("scs", "SCS"), (cp.CLARABEL, "CLARABEL"),
     ("stotos", "STOTOS"), ("StoTOS", "STOTOS")],
)  # fmt: skip
def test_capitals_of_a_solver_are_no_matter(given, name):
    solution = released(squared(), solver=given, seed=1)
    assert solution.solver == name
    again = released(squared(), solver=name, seed=1)
    assert np.array_equal(solution[W], again[W])


@pytest.mark.parametrize("loss", [squared, logistic])
@pytest.mark.parametrize("solver", ["claribel", "MOSEK_", ""])
def test_unknown_solvers_are_told_those_that_are_installed(loss, solver):
    text = refusal(loss(), solver=solver)
    assert "is not installed; installed are STOTOS" in text
    assert all(name in text for name in cp.installed_solvers())


def test_a_softmax_without_curvature_along_shifts():
    """At ε = 10⁶ hardly any ridge is left: refused before the charge, and both remedies run."""
    rng = np.random.default_rng(1)
    scores = X @ np.array([[3, -1, 0], [0, 2, -2], [1, 0, 1.0]])
    Z = np.eye(3)[np.argmax(scores + rng.gumbel(size=scores.shape), axis=1)]
    V = cp.Variable((3, 3))
    loss = cp.sum(cp.log_sum_exp(X @ V, axis=1)) - cp.sum(cp.multiply(Z, X @ V))
    rest = (5 * cp.log_sum_exp(cp.vec(V, order="F")), [])
    options = {"private": [X, Z], "bounds": cvxqop.Bounds(row_norm=1.0), "epsilon": 1e6, "seed": 3}
    text = refusal(loss, rest, **options)
    assert "only the ridge" in text
    named = float(re.search(r"Pass accuracy=([0-9.e-]+)", text)[1])
    assert released(loss, rest, accuracy=named, **options)
    assert released(loss, (rest[0] + cp.sum_squares(V), []), **options)
    assert released(loss, rest, **{**options, "epsilon": 1.0})
