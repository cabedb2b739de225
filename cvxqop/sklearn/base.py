"""What the estimators share: public statements in, one private release, coefficients out."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import cvxpy as cp
import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

import cvxqop
from cvxqop.errors import OptionError, PrivacyWarning, sealed
from cvxqop.sklearn.checking import checked_features
from cvxqop.sklearn.units import Units, features_within

__all__ = ["Private"]


@dataclass(kw_only=True, eq=False, repr=False)
class Private(BaseEstimator):  # type: ignore[misc]
    """A linear model whose coefficients are one private release.

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
        "epsilon": "epsilon=1.0",
        "delta": "delta=1e-6",
        "bounds_X": "bounds_X=(0.0, 1.0)",
    }
    """What must be stated, as an example writes it; the bounds not beside a schema."""

    def _loss(self, t: Any, y: Any, unit: float) -> cp.Expression:
        """Σ φ on margins and targets in units of ``unit``, up to the factor of `_factor`."""
        raise NotImplementedError

    def _penalty(self, w: cp.Expression) -> Any:
        """Of the coefficients in the units of the data."""
        return 0.0

    def _factor(self, unit: float) -> float:
        """What the loss in these units is multiplied by to be that in the units of the data."""
        return 1.0

    def _target(self, y: Any, count: int) -> tuple[Any, Units]:
        """y in units of size 1."""
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
        if self.schema is None:
            rows, units_X, units_y = self._rows(X, y, persons)
        else:
            rows, units_X, units_y = self._table(X, y, persons), None, self._schema_units()
        d = rows.X.shape[1]
        w = cp.Variable(d, name="coef")
        b = cp.Variable(name="intercept") if self.fit_intercept else 0.0
        unit = float(units_y.half)
        ratio, public = self._ratio(units_X, unit)
        penalty = self._penalty(cp.multiply(ratio, w)) / self._factor(unit)
        problem = cp.Problem(cp.Minimize(self._loss(rows.X @ w + b, rows.y, unit) + penalty))
        self.release_ = cvxqop.privatize(
            problem,
            private=rows,
            public=public,
            epsilon=self.epsilon,  # type: ignore[typeddict-item]
            delta=self.delta,  # type: ignore[typeddict-item]
            adjacency=self.adjacency,
            perturbation=self.perturbation,
            budget=self.budget,
            seed=self.random_state,
            **self._options(unit),
        )
        theta = np.array(self.release_[w], dtype=np.float64).reshape(d)
        shift = float(self.release_[b]) if self.fit_intercept else 0.0
        self._publish(theta, shift, units_X, units_y)
        return self
