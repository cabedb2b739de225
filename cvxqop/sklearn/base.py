"""What the estimators share: public statements in, one private release, coefficients out."""

from __future__ import annotations

import math
import numbers
import warnings
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import cvxpy as cp
import numpy as np
from sklearn.utils.validation import check_is_fitted

import cvxqop
from cvxqop.errors import OptionError, PrivacyWarning, sealed
from cvxqop.sklearn.checking import checked_features
from cvxqop.sklearn.table import read_table
from cvxqop.sklearn.units import Units, features_within

__all__ = ["Private"]

_TINY, _INFINITE = 1e-70, math.inf
_RANGES = {
    "alpha": (0.0, _INFINITE),
    "C": (_TINY, _INFINITE),
    "l1_ratio": (0.0, 1.0),
    "quantile": (_TINY, 1.0 - 1e-12),
    "threshold": (_TINY, _INFINITE),
    "tube": (0.0, _INFINITE),
}
"""Where the numbers of a loss and its penalty lie."""


@dataclass(kw_only=True, eq=False, repr=False)
class Private:
    """A linear model whose coefficients are one private release, of records within public bounds.

    What sets the noise is stated, never read from the data: epsilon, delta, bounds, and classes of
    a classification. Penalties are beside the *sum* of the losses of all records, not their mean:
    where scikit-learn divides by the number of records (Lasso, ElasticNet, QuantileRegressor),
    multiply its alpha by a public number of that size.

    Parameters
    ----------
    epsilon, delta : float
        The privacy of a fit; required.
    bounds_X : float, Bounds or pair (low, high)
        Public: a bound on the Euclidean norm of a row of X, or the ranges of its columns (numbers,
        or arrays with one a column; ``Bounds.from_box``), which are mapped to [−1, 1]. What lies
        beyond is cut. Required where there is no schema.
    schema : Schema, optional
        In the place of all bounds and classes: X of ``fit`` and ``predict`` is then a table. Its
        target is a column of the table, or y. Penalties are of the coded columns.
    fit_intercept : bool
        Whether the model has an intercept, which is not penalised.
    adjacency, perturbation, nonfinite, rows_per_person
        As in `cvxqop.privatize`.
    budget : Budget, optional
        A ledger that each fit is charged to. Clones share it.
    random_state : None, int or numpy.random.Generator
        As ``seed`` in `cvxqop.privatize`: anything but None makes a release that is not private.

    Attributes
    ----------
    coef_, intercept_ : array, float
        In the units of the data; with a schema as in `cvxqop.Schema.coefficients`. Shapes (d,) and
        () of a regression, (1, d) and (1,) of a classification.
    release_ : PrivateSolution
        What is guaranteed, of the coefficients ``w`` and ``b`` in units of the bounds.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Raises
    ------
    OptionError
        In ``fit``: something public was not stated, or is no option.
    """

    epsilon: float | None = None
    delta: float | None = None
    bounds_X: Any = None
    schema: cvxqop.Schema | None = None
    fit_intercept: bool = True
    adjacency: Any = "replace_one"
    perturbation: Any = "auto"
    nonfinite: str = "raise"
    rows_per_person: int | str | None = None
    budget: cvxqop.Budget | None = None
    random_state: Any = None

    _stated: ClassVar[dict[str, str]] = {
        "epsilon": "1.0",
        "delta": "1e-6",
        "bounds_X": "(0.0, 1.0)",
    }
    """What must be stated, as a line would write it."""

    def _loss(self, t: Any, y: Any, unit: float) -> cp.Expression:
        """Σ φ of margins t and targets y, both in units of ``unit``, over `_factor`."""
        raise NotImplementedError

    def _penalty(self, coef: cp.Expression) -> Any:
        """Of the coefficients in the units of the data."""
        return 0.0

    def _factor(self, unit: float) -> float:
        """What φ gains by its units."""
        return 1.0

    def _options(self, unit: float) -> dict[str, Any]:
        """More options of `cvxqop.privatize`."""
        return {}

    def _target_units(self) -> Units:
        """Units of y, from what was stated."""
        raise NotImplementedError

    def _target(self, y: Any, count: int, units: Units) -> Any:
        """y in these units, one number a record."""
        raise NotImplementedError

    def _publish(self, coef: Any, intercept: float) -> None:
        """Set what scikit-learn's users look for."""
        raise NotImplementedError

    @sealed
    def fit(self, X: Any, y: Any = None, *, persons: Any = None) -> Self:
        """Release the coefficients. Every call is a release of its own, and costs (ε, δ).

        Parameters
        ----------
        X : array or data frame, shape (n, d)
            One row a record; a table beside ``schema``. Names of columns are public.
        y : array, shape (n,)
            Targets or labels. Beside ``schema`` None, or the cells of the column of the target.
        persons : array, optional
            An id a row, beside ``rows_per_person``.

        Raises
        ------
        OptionError
            Something public was not stated, or is no option. Nothing was charged.
        ProblemError
            X and y cannot be used. Nothing was charged.
        """
        self._check_stated()
        units_y = self._target_units()
        unit, public = float(units_y.half), []
        if self.schema is None:
            X = checked_features(self, X, reset=True, least=int(self.adjacency != "add_remove"))
            units_X, bounds = features_within(self.bounds_X, X.shape[1], self.fit_intercept)
            half = units_X.half
            if np.ndim(half):
                public = [half := cp.Constant(half)]
            rows = cvxqop.Records(
                X=cp.Constant(units_X(X)),
                y=cp.Constant(self._target(y, len(X), units_y)),
                bounds=replace(bounds, offset=1.0),
                nonfinite=self.nonfinite,
                persons=persons,
                rows_per_person=self.rows_per_person,
            )
        else:
            if persons is not None or self.rows_per_person is not None:
                raise OptionError("persons: beside a schema, it names them: Schema(…, person=…).")
            rows, half = read_table(self.schema, X, y), 1.0
        d = rows.X.shape[1]
        w = cp.Variable(d, name="w")
        b = cp.Variable(name="b") if self.fit_intercept else None
        loss = self._loss(rows.X @ w if b is None else rows.X @ w + b, rows.y, unit)
        penalty = self._penalty(unit * w / half) / self._factor(unit)
        self.release_ = cvxqop.privatize(
            cp.Problem(cp.Minimize(loss + penalty)),
            private=rows,
            public=public,
            epsilon=self.epsilon,  # type: ignore[arg-type]
            delta=self.delta,  # type: ignore[arg-type]
            adjacency=self.adjacency,
            perturbation=self.perturbation,
            budget=self.budget,
            seed=self.random_state,
            **self._options(unit),
        )
        self._coded = self.release_[w], 0.0 if b is None else float(self.release_[b])
        theta, shift = self._coded
        if self.schema is None:
            coef = unit * theta / units_X.half
            self._publish(
                coef, units_y.middle + unit * shift - float(np.sum(coef * units_X.middle))
            )
        else:
            found = self.schema.coefficients(theta, shift)
            self.n_features_in_ = len(self.schema.names)
            self.feature_names_in_ = np.array(self.schema.names, dtype=object)
            self._publish(found.values, float(found.intercept))
        return self

    def _check_stated(self) -> None:
        """Nothing that sets the noise is missing.

        Raises
        ------
        OptionError
            With a line to write.
        """
        needed = dict(self._stated)
        if self.schema is not None:
            if not self.fit_intercept:
                raise OptionError("fit_intercept=False: a schema moves what is 0. Leave it out.")
            for name in ("bounds_X", "bounds_y", "classes"):
                needed.pop(name, None)
                if getattr(self, name, None) is not None:
                    raise OptionError(f"{name} is stated in the schema; leave it out.")
        missing = [name for name in needed if getattr(self, name) is None]
        if missing:
            name = type(self).__name__
            line = ", ".join(f"{one}={example}" for one, example in needed.items())
            raise OptionError(
                f"{name}: {' and '.join(missing)} must be stated. They are public, and nothing is "
                f"read from the data in their place. Write {name}({line}), with your own numbers."
            )
        for name, (low, high) in _RANGES.items():
            value = getattr(self, name, low)
            if not isinstance(value, numbers.Real) or not low <= float(value) <= high:
                raise OptionError(f"{name} must be a number from {low:g} to {high:g}.")

    def _margins(self, X: Any) -> Any:
        """x'coef_ + intercept_ of each row."""
        check_is_fitted(self, "release_")
        if self.schema is not None:
            middle, half = self.schema._scale
            return middle + half * self.schema.margins(X, *self._coded)
        X = checked_features(self, X, reset=False)
        fitted: Any = self
        return X @ np.ravel(fitted.coef_) + np.ravel(fitted.intercept_)[0]

    @sealed
    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """As in scikit-learn: R² of regression, accuracy of classification. It is NOT private.

        Warns
        -----
        PrivacyWarning
            Always: it compares records with predictions, without noise.
        """
        warnings.warn(
            f"{type(self).__name__}.score compares predictions with y: it is computed from these "
            "records without noise, and is NOT private, nor is what is chosen by it, as in "
            "GridSearchCV. Each fit was charged by itself. A path of penalties from one release is "
            "solution.private_loss.path(…).",
            PrivacyWarning,
            stacklevel=3,
        )
        return float(super().score(X, y, sample_weight))  # type: ignore[misc]

    def __getstate__(self) -> Any:
        """What a pickle holds.

        Raises
        ------
        TypeError
            In a block ``with budget:``, of which another process would know nothing.
        """
        if cvxqop.Budget.current() is not None:
            raise TypeError(
                "An estimator does not pickle in a block `with budget:`: a fit in another process "
                "would be charged to nobody. Use n_jobs=None, or pickle it after the block."
            )
        return super().__getstate__()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.target_tags.required = self.schema is None
        tags.non_deterministic = self.random_state is None
        return tags
