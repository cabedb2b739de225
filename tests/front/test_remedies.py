"""A refusal that names a solver or an option names one that this very problem takes."""

import cvxpy as cp
import numpy as np
import pytest

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


@pytest.mark.parametrize("name", HARD)
@pytest.mark.parametrize("solver", [None, "STOTOS", "CLARABEL"])
def test_what_stotos_cannot_split_beside_a_loss_that_needs_it(name, solver):
    """No solver is named; the squared loss that is works, as do the norms that it splits."""
    text = refusal(logistic(), HARD[name], solver=solver)
    assert "by STOTOS alone" in text
    assert "take a squared loss" in text
    for untrue in ("use a conic solver", "STOTOS, the default", "Use solver", "Leave solver"):
        assert untrue not in text
    assert np.all(np.isfinite(released(squared(), HARD[name])[W]))
    assert np.all(np.isfinite(released(logistic(), (cp.norm1(W), []))[W]))


@pytest.mark.parametrize("name", HARD)
def test_what_stotos_cannot_split_beside_a_squared_loss(name):
    for options in (
        {"solver": "STOTOS"},
        {"solver": "STOTOS", "solver_options": {"variant": "svrg"}},
        {"perturbation": "linear"},
        {"perturbation": "linear", "solver": "CLARABEL"},
    ):
        text = refusal(squared(), HARD[name], **options)
        assert "Leave solver and solver_options out, with perturbation='gaussian'" in text
    for perturbation in ("gaussian", "wishart"):
        released(squared(), HARD[name], perturbation=perturbation)


def test_a_conic_solver_for_a_loss_that_stotos_takes():
    rest = (cp.norm1(W), [cp.abs(W) <= 2])
    for loss, options in (
        (logistic(), {}),
        (squared(), {"perturbation": "linear"}),
    ):
        conic = {"solver": "CLARABEL", "solver_options": {"max_iter": 9}}
        text = refusal(loss, rest, **conic, **options)
        assert "Leave solver and solver_options out" in text
        released(loss, rest, **options)


def test_paper_anchors():
    options = {
        "perturbation": cvxqop.Wishart(calibration="paper"),
        "anchor": cvxqop.CommonMinimizer(np.zeros(3), error=0.1),
        "epsilon": 3.0,
    }
    text = refusal(squared(), solver="CLARABEL", **options)
    assert "corrects the anchor" in text
    assert "Leave solver" in text
    released(squared(), **options)


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
    text = refusal(loss, private=[X, Y2], perturbation="wishart", **stochastic)
    assert "leave the variant out" in text
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
    with pytest.raises(cvxqop.OptionError, match="accept_solver_accuracy=True"):
        declared(rest)
    with pytest.raises(cvxqop.OptionError, match="Leave solver and solver_options out"):
        declared(rest, solver="STOTOS", accept_solver_accuracy=True)
    assert declared(rest, accept_solver_accuracy=True).run()
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
