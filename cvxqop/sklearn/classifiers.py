"""Two classes: a loss of margins each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import cvxpy as cp
import numpy as np
from scipy.special import expit, log_expit
from sklearn.base import ClassifierMixin

from cvxqop.errors import OptionError
from cvxqop.sklearn.base import Private
from cvxqop.sklearn.checking import checked_target
from cvxqop.sklearn.units import Units
from cvxqop.tables.categories import Category

__all__ = ["LinearSVC", "LogisticRegression"]


@dataclass(kw_only=True, eq=False, repr=False)
class Classifier(ClassifierMixin, Private):  # type: ignore[misc]
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
        return cp.sum_squares(coef) / (2.0 * self.C)

    def _levels(self) -> Any:
        classes = self.classes if self.schema is None else self.schema._classes
        levels = classes.tolist() if isinstance(classes, np.ndarray) else list(classes)
        if len(levels) != 2:
            raise OptionError(
                f"{type(self).__name__}: there must be two classes, such as classes=[0, 1]."
            )
        return levels

    def _target_units(self) -> Units:
        self._levels()
        return Units(-1.0, 1.0, 0.0, 1.0)

    def _target(self, y: Any, count: int, units: Units) -> Any:
        place = Category(self._levels()).read(checked_target(y, count, numeric=False).tolist())
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
    """C Σ_i log(1 + exp(−y_i (x_i'w + b))) + ½ ‖w‖²."""

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
    """C Σ_i (1 − y_i (x_i'w + b))₊ + ½ ‖w‖²."""

    smoothing: Any = "auto"

    def _options(self, unit: float) -> dict[str, Any]:
        return {"smoothing": self.smoothing}

    def _loss(self, t: Any, y: Any, unit: float) -> cp.Expression:
        return cp.sum(cp.pos(1.0 - cp.multiply(y, t)))
