"""IBM's diffprivlib: least squares by perturbed polynomial coefficients, logistic regression.

Both are purely ε-differentially private (δ = 0), a stronger promise than that of the others. Bounds
are given as the public scales of the data say; a fresh ledger goes with each fit, since the
library's own grows with every call.
"""

from __future__ import annotations

import warnings
from functools import partial

from method import Array, Draw, Fit, Method, Task


def least_squares(
    task: Task, X: Array, y: Array, seed: int, *, intercept: bool, tight: bool
) -> Draw:
    """Linear regression in the box [-c, c]^d × [-1, 1], c = 1 or the public bound on a feature."""
    from diffprivlib import BudgetAccountant
    from diffprivlib.models import LinearRegression
    from numpy.random import RandomState

    bound = task.column_bound if tight else 1.0
    rng = RandomState(seed)

    def draw() -> Fit:
        model = LinearRegression(
            epsilon=task.epsilon,
            bounds_X=(-bound, bound),
            bounds_y=(-1.0, 1.0),
            fit_intercept=intercept,
            random_state=rng,
            accountant=BudgetAccountant(),
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X, y)
        return Fit(model.coef_.ravel(), float(model.intercept_))

    return draw


def logistic(task: Task, X: Array, y: Array, seed: int, *, intercept: bool) -> Draw:
    """Logistic regression with the library's own regulariser, C = 1."""
    from diffprivlib import BudgetAccountant
    from diffprivlib.models import LogisticRegression
    from numpy.random import RandomState

    rng = RandomState(seed)

    def draw() -> Fit:
        model = LogisticRegression(
            epsilon=task.epsilon,
            data_norm=1.0,
            fit_intercept=intercept,
            max_iter=1000,
            random_state=rng,
            accountant=BudgetAccountant(),
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X, y)
        return Fit(model.coef_.ravel(), float(model.intercept_[0]) if intercept else 0.0)

    return draw


REGRESSION = (
    Method("diffprivlib, intercept", partial(least_squares, intercept=True, tight=False), draws=5),
    Method(
        "diffprivlib, no intercept",
        partial(least_squares, intercept=False, tight=False),
        draws=5,
    ),
    Method(
        "diffprivlib, no intercept, tight box",
        partial(least_squares, intercept=False, tight=True),
        draws=5,
    ),
)
CLASSIFICATION = (
    Method("diffprivlib, intercept (not private)", partial(logistic, intercept=True)),
    Method("diffprivlib, no intercept", partial(logistic, intercept=False)),
)
