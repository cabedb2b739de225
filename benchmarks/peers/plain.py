"""What can be had without privacy, and without data."""

from __future__ import annotations

import numpy as np
from method import Array, Draw, Fit, Method, Task


def least_squares(task: Task, X: Array, y: Array, seed: int) -> Draw:
    return lambda: Fit(np.linalg.lstsq(X, y, rcond=None)[0])


def logistic(task: Task, X: Array, y: Array, seed: int) -> Draw:
    from sklearn.linear_model import LogisticRegression

    def draw() -> Fit:
        model = LogisticRegression(C=1.0, max_iter=5000).fit(X, y)
        return Fit(model.coef_.ravel(), float(model.intercept_[0]))

    return draw


def majority(task: Task, X: Array, y: Array, seed: int) -> Draw:
    return lambda: Fit(np.zeros(task.d), 1.0 if np.mean(y > 0) > 0.5 else -1.0)


REGRESSION = (Method("not private: least squares", least_squares, private=False, draws=1),)
CLASSIFICATION = (
    Method("not private: scikit-learn, C = 1", logistic, private=False, draws=1),
    Method("not private: the larger class", majority, private=False, draws=1),
)
