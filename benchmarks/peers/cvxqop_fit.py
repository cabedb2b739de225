"""cvxqop through its public interface; the plan is made once and run for each draw."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import cvxpy as cp
from method import Array, Draw, Fit, Method, Task

import cvxqop


def plan(problem: cp.Problem, task: Task, X: Array, y: Array, seed: int, **options: Any) -> Any:
    return cvxqop.plan(
        problem,
        private=[X, y],
        epsilon=task.epsilon,
        delta=task.delta,
        adjacency="add_remove",
        seed=seed,
        **options,
    )


def least_squares(
    task: Task, X: Array, y: Array, seed: int, *, perturbation: Any, huber: bool = False
) -> Draw:
    """½ Σ (x_i'θ − y_i)², or the Huber loss that equals it up to residuals of 1."""
    theta = cp.Variable(task.d)
    residual = X @ theta - y
    loss = cp.sum(cp.huber(residual, 1.0)) if huber else cp.sum_squares(residual)
    problem = cp.Problem(cp.Minimize(0.5 * loss))
    bounds = cvxqop.Bounds(row_norm=1.0, offset=1.0)
    made = plan(problem, task, X, y, seed, bounds=bounds, perturbation=perturbation)
    return lambda: Fit(made.run()[theta])


def logistic(
    task: Task, X: Array, y: Array, seed: int, *, perturbation: Any, intercept: bool
) -> Draw:
    """Σ log(1 + exp(−y_i (x_i'w + b))), without regulariser."""
    w, b = cp.Variable(task.d), cp.Variable()
    score = X @ w + b if intercept else X @ w
    problem = cp.Problem(cp.Minimize(cp.sum(cp.logistic(-cp.multiply(y, score)))))
    bounds = cvxqop.Bounds(row_norm=math.sqrt(2.0) if intercept else 1.0)
    made = plan(problem, task, X, y, seed, bounds=bounds, perturbation=perturbation)

    def draw() -> Fit:
        solution = made.run()
        return Fit(solution[w], float(solution[b]) if intercept else 0.0)

    return draw


REGRESSION = (
    *(
        Method(
            f"cvxqop, Gaussian, {title}",
            partial(least_squares, perturbation=cvxqop.Gaussian(stages=stages)),
        )
        for title, stages in (("1 stage", 1), ("2 stages", 2), ("6 stages", 6))
    ),
    Method(
        "cvxqop, Linear, clipped at a quarter",
        partial(least_squares, perturbation=cvxqop.Linear(clip=0.25)),
    ),
    Method("cvxqop, Wishart", partial(least_squares, perturbation="wishart")),
    Method(
        "cvxqop, Linear, Huber loss",
        partial(least_squares, perturbation="linear", huber=True),
    ),
)
CLASSIFICATION = tuple(
    Method(
        f"cvxqop, {title}, {'intercept' if intercept else 'no intercept'}",
        partial(logistic, perturbation=perturbation, intercept=intercept),
    )
    for title, perturbation in (
        ("Linear, clipped", cvxqop.Linear(clip="anchor")),
        ("Linear", "linear"),
        ("Wishart", "wishart"),
    )
    for intercept in (True, False)
)
