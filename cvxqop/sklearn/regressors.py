"""Regression: a loss of residuals and a penalty each, in the units of y."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import cvxpy as cp
from sklearn.base import BaseEstimator, RegressorMixin

from cvxqop.errors import OptionError
from cvxqop.sklearn.base import Private
from cvxqop.sklearn.checking import checked_target
from cvxqop.sklearn.units import Units, target_within

__all__ = [
    "ElasticNet",
    "HuberRegressor",
    "Lasso",
    "LinearRegression",
    "LinearSVR",
    "QuantileRegressor",
    "Ridge",
]


@dataclass(kw_only=True, eq=False, repr=False)
class Regressor(Private, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """A `Private` model of numbers.

    Parameters
    ----------
    bounds_y : pair (low, high) or float
        Public: the range of y, or a bound on its size. What lies beyond is cut. Required where
        there is no schema.
    """

    bounds_y: Any = None

    _stated: ClassVar[dict[str, str]] = {**Private._stated, "bounds_y": "(0.0, 100.0)"}
    _degree: ClassVar[int] = 1
    """φ(s t) = s^degree φ(t), with its thresholds in the units of t."""

    def _factor(self, unit: float) -> float:
        return unit**self._degree

    def _target_units(self) -> Units:
        if self.schema is None:
            return target_within(self.bounds_y, self.fit_intercept)
        if self.schema._classes:
            raise OptionError("schema: the target of a regression must be numbers.")
        middle, half = self.schema._scale
        return Units(middle - half, middle + half, middle, half)

    def _target(self, y: Any, count: int, units: Units) -> Any:
        return units(checked_target(y, count, numeric=True))

    def _publish(self, coef: Any, intercept: float) -> None:
        self.coef_, self.intercept_ = coef, intercept

    def predict(self, X: Any) -> Any:
        """Predictions in the units of y, as private as the records that they are for."""
        return self._margins(X)


@dataclass(kw_only=True, eq=False, repr=False)
class LinearRegression(Regressor):
    """Least squares:  minimise ½ Σ_i (x_i'w + b − y_i)².

    The parameters are those of `Private` and `Regressor`.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).uniform(0, 10, (4000, 1))
    >>> public = dict(epsilon=1.0, delta=1e-6, bounds_X=(0, 10), bounds_y=(0, 40))
    >>> model = LinearRegression(**public).fit(X, 3 * X[:, 0] + 5)
    >>> bool(abs(model.predict([[4.0]])[0] - 17) < 3)
    True
    """

    _degree = 2

    def _loss(self, t: Any, y: Any, unit: float) -> cp.Expression:
        return 0.5 * cp.sum_squares(t - y)


@dataclass(kw_only=True, eq=False, repr=False)
class Ridge(LinearRegression):
    """Least squares with a ridge:  minimise ½ Σ_i (x_i'w + b − y_i)² + ½ alpha ‖w‖².

    The parameters are those of `Private` and `Regressor`, and these.

    Parameters
    ----------
    alpha : float
        Weight of the penalty beside the sum over records, ≥ 0; as in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).uniform(0, 10, (4000, 1))
    >>> public = dict(epsilon=1.0, delta=1e-6, bounds_X=(0, 10), bounds_y=(0, 40))
    >>> model = Ridge(**public).fit(X, 3 * X[:, 0] + 5)
    >>> bool(abs(model.predict([[4.0]])[0] - 17) < 3)
    True
    """

    alpha: float = 1.0

    def _penalty(self, coef: cp.Expression) -> Any:
        return 0.5 * self.alpha * cp.sum_squares(coef)


@dataclass(kw_only=True, eq=False, repr=False)
class ElasticNet(LinearRegression):
    """Minimise ½ Σ_i (x_i'w + b − y_i)² + alpha (l1_ratio ‖w‖₁ + ½ (1 − l1_ratio) ‖w‖²).

    The parameters are those of `Private` and `Regressor`, and these.

    Parameters
    ----------
    alpha : float
        Weight of the penalty beside the sum over records, ≥ 0: that of scikit-learn times n.
    l1_ratio : float
        From 0 to 1.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).uniform(0, 10, (4000, 1))
    >>> public = dict(epsilon=1.0, delta=1e-6, bounds_X=(0, 10), bounds_y=(0, 40))
    >>> model = ElasticNet(**public).fit(X, 3 * X[:, 0] + 5)
    >>> bool(abs(model.predict([[4.0]])[0] - 17) < 3)
    True
    """

    alpha: float = 1.0
    l1_ratio: float = 0.5

    def _penalty(self, coef: cp.Expression) -> Any:
        smooth = 0.5 * (1.0 - self.l1_ratio) * cp.sum_squares(coef)
        return self.alpha * (self.l1_ratio * cp.norm1(coef) + smooth)


@dataclass(kw_only=True, eq=False, repr=False)
class Lasso(LinearRegression):
    """LASSO:  minimise ½ Σ_i (x_i'w + b − y_i)² + alpha ‖w‖₁.

    The parameters are those of `Private` and `Regressor`, and these.

    Parameters
    ----------
    alpha : float
        Weight of the penalty beside the sum over records, ≥ 0: that of scikit-learn times n.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).uniform(0, 10, (4000, 1))
    >>> public = dict(epsilon=1.0, delta=1e-6, bounds_X=(0, 10), bounds_y=(0, 40))
    >>> model = Lasso(**public).fit(X, 3 * X[:, 0] + 5)
    >>> bool(abs(model.predict([[4.0]])[0] - 17) < 3)
    True
    """

    alpha: float = 1.0

    def _penalty(self, coef: cp.Expression) -> Any:
        return self.alpha * cp.norm1(coef)


@dataclass(kw_only=True, eq=False, repr=False)
class HuberRegressor(Ridge):
    """Minimise ½ Σ_i h(x_i'w + b − y_i) + ½ alpha ‖w‖².

    h(r) = r² where |r| is at most M, and 2M|r| − M² beyond.

    The parameters are those of `Private` and `Regressor`, and these.

    Parameters
    ----------
    alpha : float
        Weight of the penalty beside the sum over records, ≥ 0.
    threshold : float
        M, in the units of y; required. scikit-learn estimates it together with a scale.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).uniform(0, 10, (4000, 1))
    >>> public = dict(epsilon=1.0, delta=1e-6, bounds_X=(0, 10), bounds_y=(0, 40))
    >>> model = HuberRegressor(threshold=5.0, **public).fit(X, 3 * X[:, 0] + 5)
    >>> bool(abs(model.predict([[4.0]])[0] - 17) < 3)
    True
    """

    alpha: float = 1e-4
    threshold: Any = None

    _stated: ClassVar[dict[str, str]] = {**Regressor._stated, "threshold": "10.0"}

    def _loss(self, t: Any, y: Any, unit: float) -> cp.Expression:
        return 0.5 * cp.sum(cp.huber(t - y, self.threshold / unit))


@dataclass(kw_only=True, eq=False, repr=False)
class Smoothed(Regressor):
    """A regressor whose loss has kinks."""

    smoothing: Any = "auto"

    def _options(self, unit: float) -> dict[str, Any]:
        width = self.smoothing
        return {"smoothing": width / unit if isinstance(width, int | float) else width}


@dataclass(kw_only=True, eq=False, repr=False)
class QuantileRegressor(Smoothed):
    """Quantiles:  minimise Σ_i max(q (y_i − t_i), (q − 1)(y_i − t_i)) + alpha ‖w‖₁, smoothed.

    t_i = x_i'w + b.

    The parameters are those of `Private` and `Regressor`, and these.

    Parameters
    ----------
    quantile : float
        q, between 0 and 1.
    alpha : float
        Weight of the penalty beside the sum over records, ≥ 0: that of scikit-learn times n.
    smoothing : float or "auto"
        Width of the Moreau envelope, in the units of y, as in `cvxqop.privatize`.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).uniform(0, 10, (4000, 1))
    >>> public = dict(epsilon=1.0, delta=1e-6, bounds_X=(0, 10), bounds_y=(0, 40))
    >>> model = QuantileRegressor(**public).fit(X, 3 * X[:, 0] + 5)
    >>> bool(abs(model.predict([[4.0]])[0] - 17) < 3)
    True
    """

    quantile: float = 0.5
    alpha: float = 1.0

    def _loss(self, t: Any, y: Any, unit: float) -> cp.Expression:
        return cp.sum(cp.maximum(self.quantile * (y - t), (self.quantile - 1.0) * (y - t)))

    def _penalty(self, coef: cp.Expression) -> Any:
        return self.alpha * cp.norm1(coef)


@dataclass(kw_only=True, eq=False, repr=False)
class LinearSVR(Smoothed):
    """Minimise C Σ_i max(|x_i'w + b − y_i| − tube, 0) + ½ ‖w‖², smoothed.

    The parameters are those of `Private` and `Regressor`, and these.

    Parameters
    ----------
    C : float
        Weight of the sum over records; infinite for no penalty. b is not penalised.
    tube : float
        Half-width of what costs nothing, in the units of y; ``epsilon`` of scikit-learn.
    smoothing : float or "auto"
        Width of the Moreau envelope, in the units of y, as in `cvxqop.privatize`.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).uniform(0, 10, (4000, 1))
    >>> public = dict(epsilon=1.0, delta=1e-6, bounds_X=(0, 10), bounds_y=(0, 40))
    >>> model = LinearSVR(**public).fit(X, 3 * X[:, 0] + 5)
    >>> bool(abs(model.predict([[4.0]])[0] - 17) < 3)
    True
    """

    C: float = 1.0
    tube: float = 0.0

    def _loss(self, t: Any, y: Any, unit: float) -> cp.Expression:
        return cp.sum(cp.pos(cp.abs(t - y) - self.tube / unit))

    def _penalty(self, coef: cp.Expression) -> Any:
        return 0.5 / self.C * cp.sum_squares(coef)
