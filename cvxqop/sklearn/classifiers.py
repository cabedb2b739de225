"""Two classes: a loss of margins each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import cvxpy as cp
import numpy as np
from scipy.special import expit, log_expit
from sklearn.base import BaseEstimator, ClassifierMixin

from cvxqop.errors import OptionError
from cvxqop.sklearn.base import Private
from cvxqop.sklearn.checking import checked_target
from cvxqop.sklearn.units import Units
from cvxqop.tables.categories import Category
from cvxqop.tables.cells import word_in

__all__ = ["LinearSVC", "LogisticRegression"]

_ALIKE = {"0": ["False"], "1": ["True"], "False": ["0"], "True": ["1"]}
"""Labels that are equal to a class in Python, and are other words."""


@dataclass(kw_only=True, eq=False, repr=False)
class Classifier(Private, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A `Private` model of two classes.

    Parameters
    ----------
    classes : pair
        Public: the two classes; the second is that of positive margins. A record of any other
        label counts, and contributes nothing. Required where there is no schema.
    C : float
        Weight of the sum of losses beside ½‖w‖²; infinite for no penalty.
    """

    classes: Any = None
    C: float = 1.0

    _stated: ClassVar[dict[str, str]] = {**Private._stated, "classes": "[0, 1]"}

    def _penalty(self, coef: cp.Expression) -> Any:
        return 0.5 / self.C * cp.sum_squares(coef)

    def _levels(self) -> Any:
        classes = self.classes if self.schema is None else self.schema._classes
        levels = classes.tolist() if isinstance(classes, np.ndarray) else classes
        if not isinstance(levels, list | tuple) or len(levels) != 2:
            raise OptionError(
                f"{type(self).__name__}: there must be two classes, such as classes=[0, 1]. For "
                "more, state a multinomial problem in CVXPY."
            )
        return list(levels)

    def _target_units(self) -> Units:
        self._levels()
        return Units(-1.0, 1.0, 0.0, 1.0)

    def _target(self, y: Any, count: int, units: Units) -> Any:
        levels = {level: _ALIKE.get(str(word_in(level)), []) for level in self._levels()}
        place = Category(levels).read(checked_target(y, count, numeric=False).tolist())
        return np.where(place == 0, -1.0, np.where(place == 1, 1.0, 0.0))

    def _publish(self, coef: Any, intercept: float) -> None:
        self.coef_, self.intercept_ = coef[None, :], np.array([intercept])
        self.classes_ = np.array(self._levels())

    def decision_function(self, X: Any) -> Any:
        """x'w + b of each row: positive for the second class."""
        return self._margins(X)

    def predict(self, X: Any) -> Any:
        """The class of each row."""
        margins = self._margins(X)
        found = self.classes_[(margins > 0).astype(int)]
        return np.where(np.isnan(margins), None, found) if np.isnan(margins).any() else found

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


@dataclass(kw_only=True, eq=False, repr=False)
class LogisticRegression(Classifier):
    """Logistic regression:  minimise C Σ_i log(1 + exp(−y_i (x_i'w + b))) + ½ ‖w‖².

    y_i is −1 of the first class, 1 of the second. The parameters are those of `Private` and
    `Classifier`; C is as in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (4000, 2))
    >>> y = np.where(X[:, 0] > X[:, 1], "yes", "no")
    >>> model = LogisticRegression(epsilon=1.0, delta=1e-6, bounds_X=(-1, 1), classes=["no", "yes"])
    >>> model.fit(X, y).predict([[0.9, -0.9]]).tolist()
    ['yes']
    """

    def _loss(self, t: Any, y: Any, unit: float) -> cp.Expression:
        return cp.sum(cp.logistic(-cp.multiply(y, t)))

    def predict_proba(self, X: Any) -> Any:
        """Probabilities of the two classes, shape (n, 2)."""
        margins = self._margins(X)
        return np.column_stack([expit(-margins), expit(margins)])

    def predict_log_proba(self, X: Any) -> Any:
        """Their logarithms."""
        margins = self._margins(X)
        return np.column_stack([log_expit(-margins), log_expit(margins)])


@dataclass(kw_only=True, eq=False, repr=False)
class LinearSVC(Classifier):
    """Support vector machine:  minimise C Σ_i max(1 − y_i (x_i'w + b), 0) + ½ ‖w‖², smoothed.

    y_i is −1 of the first class, 1 of the second. The parameters are those of `Private` and
    `Classifier`; b is not penalised, and C is as in scikit-learn's ``SVC(kernel="linear")``.

    Parameters
    ----------
    smoothing : float or "auto"
        Width of the Moreau envelope of the hinge, as in `cvxqop.privatize`.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (4000, 2))
    >>> model = LinearSVC(epsilon=1.0, delta=1e-6, bounds_X=(-1, 1), classes=[0, 1])
    >>> model.fit(X, X[:, 0] > X[:, 1]).predict([[0.9, -0.9]]).tolist()
    [1]
    """

    smoothing: Any = "auto"

    def _options(self, unit: float) -> dict[str, Any]:
        return {"smoothing": self.smoothing}

    def _loss(self, t: Any, y: Any, unit: float) -> cp.Expression:
        return cp.sum(cp.pos(1.0 - cp.multiply(y, t)))
