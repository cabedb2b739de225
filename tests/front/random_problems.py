"""Random private problems for the whole pipeline, and what every outcome must satisfy.

A trial is made of its seed alone. `benchmarks/fuzz.py` runs hundreds, `test_fuzz_pipeline.py` some.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np
from random_declared import FAMILIES, declared, family
from random_terms import public_set, public_term

import cvxqop
from cvxqop import CommonMinimizer, Gaussian, Linear, Wishart

__all__ = ["Outcome", "trial"]

EPSILON_LARGE = 1e6
MECHANISMS: dict[str, Any] = {
    "wishart": "wishart",
    "wishart, m given": Wishart(degrees_of_freedom=40.5),
    "wishart, floor": Wishart(curvature="floor"),
    "wishart, paper": Wishart(calibration="paper"),
    "gaussian": "gaussian",
    "gaussian, ridge": Gaussian(curvature="ridge"),
    "gaussian, 2 stages": Gaussian(stages=2),
    "gaussian, adaptive": Gaussian(stages="adaptive"),
    "linear": "linear",
    "linear, clip": Linear(clip=0.7),
    "linear, classic": Linear(calibration="classic"),
    "auto": "auto",
}
LOSSES = (
    *("squared", "squared", "squared", "mean", "weights", "logistic", "labels", "huber"),
    *("hinge", "two terms", "glm", "outputs", "multinomial"),
    *(f"declared, {name}" for name in FAMILIES),
)
QUADRATIC = ("squared", "mean", "weights", "outputs", "declared, private weights")
FOR_DECLARED = ("wishart", "wishart, m given", "linear", "auto")
ONLY_QUADRATIC = (
    *("wishart, floor", "wishart, paper", "gaussian, ridge", "gaussian, 2 stages"),
    "gaussian, adaptive",
)
SOLVERS = (None, None, "CLARABEL", "OSQP", "SCS", "HIGHS", "ECOS", "STOTOS", "STOTOS")
CERTIFIED = (None, "STOTOS")
CONIC_FIRST = (None, "STOTOS", "CLARABEL", "SCS")


@dataclass(frozen=True)
class Outcome:
    """What came of a trial: "released", or the name of the error and its first words."""

    mechanism: str
    loss: str
    solver: str
    kind: str
    reason: str = ""


@dataclass(frozen=True, eq=False)
class Problem:
    """A problem with its data and the largest norms in it."""

    problem: cp.Problem
    theta: cp.Variable
    private: list[Any]
    arrays: list[Any]
    row_norm: float
    offset: float
    declared: cvxqop.Declared | None = None


def trial(seed: int) -> Outcome:
    """Run the problem of a seed.

    Raises
    ------
    AssertionError
        On a wrong outcome; any other error than those of cvxqop is a wrong outcome, too.
    """
    rng = np.random.default_rng(seed)
    loss, mechanism = str(rng.choice(LOSSES)), str(rng.choice(list(MECHANISMS)))
    quadratic = loss in QUADRATIC and not mechanism.startswith(("linear", "auto"))
    fitting = rng.random() < 0.8  # a mechanism and a solver that can take the loss
    if fitting and loss not in QUADRATIC and mechanism in ONLY_QUADRATIC:
        mechanism = "wishart"
    if fitting and loss == "multinomial" and mechanism != "linear":
        mechanism = "wishart"
    if fitting and loss.startswith("declared"):
        more = ("gaussian", "gaussian, ridge", "wishart, floor") if loss in QUADRATIC else ()
        mechanism = str(rng.choice(FOR_DECLARED + more))
        quadratic = loss in QUADRATIC and not mechanism.startswith(("linear", "auto"))
    made = _problem(rng, loss, simple=fitting and not quadratic)
    certified = CERTIFIED if made.declared is None else CONIC_FIRST
    solvers = SOLVERS if quadratic or not fitting else certified
    name = solvers[int(rng.integers(len(solvers)))]
    options = _options(rng, made, mechanism, name)
    copies = [array.copy() for array in made.arrays]
    objective, constraints = made.problem.objective, list(made.problem.constraints)
    budget = cvxqop.Budget(epsilon=EPSILON_LARGE, delta=0.3)
    poor = rng.random() < 0.05
    if poor:
        budget = cvxqop.Budget(epsilon=1e-3, delta=1e-12)
    outcome = Outcome(mechanism, loss, name or "default", "released")
    caught: list[Any]
    with warnings.catch_warnings(record=True) as caught, silence() as printed:
        warnings.simplefilter("always")
        try:
            plan = cvxqop.plan(made.problem, private=made.private, budget=budget, **options)
            assert float(plan.profile(options["epsilon"])) <= options["delta"]
            solution = plan.run()
        except cvxqop.CvxqopError as error:
            solution = None
            outcome = _refused(outcome, error, made, budget, poor)
    assert not caught, [str(one.message) for one in caught]
    assert not printed, printed
    assert made.problem.objective is objective
    assert made.problem.constraints == constraints
    assert made.problem.value is None
    for array, copy in zip(made.arrays, copies, strict=True):
        np.testing.assert_array_equal(array, copy)
    if solution is not None:
        assert not poor
        _check_release(made, solution, options, budget)
        if options["epsilon"] == EPSILON_LARGE and loss != "glm":  # CVXPY cannot solve that
            _check_optimum(made, plan, solution, options)
    return outcome


def _refused(outcome: Outcome, error: Exception, made: Problem, budget: Any, poor: bool) -> Outcome:
    """Nothing was written, no entry is told; only a failure after the draw was charged."""
    kind, text = type(error).__name__, str(error)
    after = isinstance(error, (cvxqop.AccuracyError, cvxqop.PrivateSolverError))
    assert len(budget.history) == int(after), text
    assert kind == "BudgetError" or not after or not poor, text
    assert all(variable.value is None for variable in made.problem.variables())
    for array in made.arrays:
        for entry in np.abs(np.ravel(array))[:200]:
            digits = f"{entry:.10f}"[:7].rstrip("0")
            assert len(digits) < 7 or digits not in text, text
    words = text.split(": ", 1)[-1] if kind == "OptionError" else text
    return Outcome(outcome.mechanism, outcome.loss, outcome.solver, kind, words)


def _check_release(made: Problem, solution: Any, options: Any, budget: Any) -> None:
    """Finite, feasible, within the profile, charged once, and written into the variables."""
    (charge,) = budget.history
    assert (charge.epsilon, charge.delta) == (options["epsilon"], options["delta"])
    assert float(solution.profile(options["epsilon"])) <= options["delta"]
    assert isinstance(solution.to_dict(), dict)
    assert str(solution)
    for variable in made.problem.variables():
        assert np.all(np.isfinite(variable.value)), variable.name()
        np.testing.assert_array_equal(variable.value, solution[variable])
    size = 1.0 + float(np.max(np.abs(made.theta.value)))
    for constraint in made.problem.constraints:
        assert np.max(constraint.violation()) <= 1e-6 * size, constraint


def _check_optimum(made: Problem, plan: Any, solution: Any, options: Any) -> None:
    """With next to no noise the objective is within the stated bound of the optimum.

    The bound is on the mean; at ε = 10⁶ the perturbation is close to it, so that ten times the
    bound is not exceeded by chance.
    """
    values = {variable: variable.value for variable in made.problem.variables()}
    released = float(made.problem.objective.value)
    with warnings.catch_warnings(), silence():
        warnings.simplefilter("ignore")
        try:
            best = float(made.problem.solve(solver="CLARABEL"))
        except cp.error.SolverError:
            return
    assert made.problem.status in ("optimal", "optimal_inaccurate")
    # Without a minimiser (separable records) this is large, and the bound says little.
    radius = max(1e-3, float(np.linalg.norm([np.linalg.norm(v.value) for v in _own(made)])))
    for variable, value in values.items():
        variable.save_value(value)
    bound = plan.excess_risk_bound(radius)
    assert np.isnan(best) or released >= best - 1e-5 * (1 + abs(best))
    if options.get("anchor") is None and not solution.mechanism.title.startswith("linear"):
        assert np.isnan(bound) or released - best <= 10 * bound + 1e-5 * (1 + abs(best))


def _options(rng: Any, made: Problem, mechanism: str, name: str | None) -> dict[str, Any]:
    large = rng.random() < 0.15
    tight = 1.0 if large else 10 ** rng.uniform(-1, 1)
    options: dict[str, Any] = {
        "epsilon": EPSILON_LARGE if large else float(10 ** rng.uniform(-1, 1)),
        "delta": float(10 ** rng.uniform(-9, -3)),
        "adjacency": str(rng.choice(["replace_one", "add_remove"])),
        "perturbation": MECHANISMS[mechanism],
        "solver": name,
        "seed": int(rng.integers(10**6)),
    }
    if made.declared is None or rng.random() < 0.03:  # it is refused beside a declaration
        options["bounds"] = cvxqop.Bounds(
            row_norm=tight * made.row_norm, offset=tight * made.offset
        )
    if made.declared is not None:
        options["declared"] = made.declared
        options["accept_solver_accuracy"] = bool(rng.random() < 0.1)
    if name == "STOTOS" and (made.declared is None or rng.random() < 0.05):
        variant = [None, "newton", "plain", "svrg"][int(rng.integers(4))]
        options["solver_options"] = {} if variant is None else {"variant": variant}
    common = 0.1 if made.declared is None else 0.03  # it is refused beside a declaration
    if mechanism == "wishart, paper" or rng.random() < common:
        error = float(rng.choice([0.0, 0.1]))
        origin = {variable: np.zeros(variable.shape) for variable in _own(made)}
        options["anchor"] = CommonMinimizer(origin, error=error)
    elif rng.random() < 0.15:
        options["anchor"] = {v: np.full(v.shape, 0.1) for v in _own(made)}
    if rng.random() < 0.2:
        options["radius"] = float(10 ** rng.uniform(-1, 1))
    if rng.random() < 0.2:
        options["accuracy"] = float(10 ** rng.uniform(-8, -3))
    return options


def _own(made: Problem) -> list[cp.Variable]:
    """The variables of the loss: theta, and the intercept."""
    return [v for v in made.problem.variables() if v.name() in ("theta", "intercept")]


def _problem(rng: Any, loss: str, simple: bool) -> Problem:
    n, d = int(rng.choice([0, 1, 2, 5, 30, 300, 1500])), int(rng.integers(1, 9))
    X = rng.standard_normal((n, d)) * 10 ** rng.uniform(-1.5, 1.5)
    y = rng.standard_normal(n) * 10 ** rng.uniform(-1, 1)
    if rng.random() < 0.1:
        X[:, 0] = 0.0
    k = int(rng.integers(2, 4))
    several = ("outputs", "multinomial", "declared, huber outputs")
    shape = (d, k) if loss in several else (d,)
    attributes = [{}, {}, {}, {"nonneg": True}, {"bounds": [-1.0, 1.0]}][int(rng.integers(5))]
    theta = cp.Variable(shape, name="theta", **attributes)
    b: Any = cp.Variable(name="intercept") if rng.random() < 0.3 and len(shape) == 1 else 0
    signs = np.where(y < 0, -1.0, 1.0)
    chance = (signs + 1) / 2
    Y = rng.standard_normal((n, k))
    T = np.eye(k)[rng.integers(k, size=n)]
    weights = np.round(rng.uniform(0.5, 2, n), 2)
    scale = float(rng.choice([0.5, 1, 2]))
    glm = str(rng.choice(["squared", "logistic", "huber", "squared_hinge"]))
    e = (X @ theta + b) if n or len(shape) == 2 else cp.Constant(X) @ theta + b
    recipes: dict[str, Any] = {
        "squared": lambda: (scale * cp.sum_squares(e - y), [X, y]),
        "mean": lambda: (cp.mean(cp.square(e - y)), [X, y]),
        "weights": lambda: (cp.sum(cp.multiply(weights, cp.square(e - y))), [X, y]),
        "logistic": lambda: (cp.sum(cp.logistic(-cp.multiply(signs, e))), [X, signs]),
        "labels": lambda: (cp.sum(cp.logistic(e)) - chance @ e, [X, chance]),
        "huber": lambda: (cp.sum(cp.huber(e - y, float(10 ** rng.uniform(-1, 1)))), [X, y]),
        "hinge": lambda: (cp.sum(cp.square(cp.pos(1 - cp.multiply(signs, e)))), [X, signs]),
        "two terms": lambda: (cp.sum_squares(e - y) + cp.sum(cp.huber(e)), [X, y]),
        "outputs": lambda: (scale * cp.sum_squares(X @ theta - Y), [X, Y]),
        "multinomial": lambda: (
            cp.sum(cp.log_sum_exp(X @ theta, axis=1)) - cp.sum(cp.multiply(T, X @ theta)),
            [X, T],
        ),
        "glm": lambda: (
            cvxqop.glm_loss(glm, X, signs, theta, intercept=None if isinstance(b, int) else b),
            [],
        ),
    }
    needed: list[Any] = []
    constants = None
    arrays = [X, y, signs, chance, Y, T, weights]
    if loss.startswith("declared"):
        found = family(rng, loss.removeprefix("declared, "), theta, X, 0.1 * theta.size**0.5)
        term, private, needed = found.loss, found.private, found.constraints
        arrays, constants = found.arrays, declared(found.constants)
    else:
        term, private = recipes[loss]()
    flat = cp.vec(theta, order="F")
    lam, r = float(10 ** rng.uniform(-2, 1)), float(10 ** rng.uniform(-1, 1))
    if attributes:
        r = max(r, 0.5)
    problem = cp.Problem(
        cp.Minimize(term + public_term(rng, flat, lam, simple)),
        needed or public_set(rng, flat, r, simple),
    )
    norms = np.linalg.norm(X, axis=1)
    offsets = np.linalg.norm(Y, axis=1) if loss == "outputs" else np.maximum(np.abs(y), 1.0)
    return Problem(
        problem,
        theta,
        private,
        arrays,
        1.001 * max(1e-2, float(np.max(norms, initial=0.0))),
        1.001 * float(np.max(offsets, initial=1.0)),
        constants,
    )


@contextlib.contextmanager
def silence() -> Iterator[list[str]]:
    """Collects what is written to the standard output and error, also by compiled solvers."""
    printed: list[str] = []
    with tempfile.TemporaryFile() as file:
        saved = [os.dup(1), os.dup(2)]
        try:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
            yield printed
        finally:
            for number, descriptor in zip((1, 2), saved, strict=True):
                os.dup2(descriptor, number)
                os.close(descriptor)
            file.seek(0)
            text = file.read().decode(errors="replace")
            if text:
                printed.append(text)
