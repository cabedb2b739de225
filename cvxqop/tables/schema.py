"""A schema: what the columns of a table may hold, stated in public, and the rows that follow."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cvxqop.errors import OptionError, PrivacyWarning, sealed
from cvxqop.problem.bounds import Bounds
from cvxqop.settings import check_persons
from cvxqop.tables.categories import Category
from cvxqop.tables.cells import id_in
from cvxqop.tables.coding import Coding
from cvxqop.tables.coefficients import Coefficients, together
from cvxqop.tables.columns import Array, check_rule
from cvxqop.tables.declared import declared, pairs_of, target_of
from cvxqop.tables.ranges import Number
from cvxqop.tables.reading import columns_of
from cvxqop.tables.rows import Rows

__all__ = ["Schema"]


class Schema:
    """The columns of a table: public ranges and levels, by which records become rows.

    Numbers and dates are mapped from their range to [−1, 1]; of a category the entries of a record
    have norm 1, however many levels there are. So a row has norm at most √(number of columns).
    Every cell is read by itself, from its declaration alone: the number of entries, what they mean
    and the bounds do not depend on the data, and nothing that a cell holds raises an error.

    Parameters
    ----------
    columns : dict {name: declaration}
        ``(low, high)`` for numbers, or for dates if both are dates or texts such as "2020-01-31"; a
        list of levels for a category; ``bool``; or a `Number`, `Date` or `Category`, which have
        more options.
    target : dict {name: declaration}, optional
        One column to predict: numbers, or the classes of a category. A record without it is
        dropped, unless the declaration says otherwise.
    missing, unknown : {"drop", "own"}
        What becomes of missing cells, and of words that are no level, where the declaration of a
        feature does not say: the record is dropped (complete-case analysis), or they have an entry
        of their own. A dropped record is a row of zeros that still counts.
    interactions : list of pairs of names
        Columns whose products are features, too: of two numbers, of a number with each level, of
        the levels of two categories, or a number with itself. Together they have norm 1 at most.
    person : str, optional
        Column with the id of the person of each row, where somebody may have several. Rows without
        an id are dropped, and count as those of one person.
    rows_per_person : int or "mean", optional
        Beside ``person``, as in `cvxqop.privatize`.

    Raises
    ------
    OptionError
        A declaration is not understood, or a rule is not known.

    Examples
    --------
    >>> import cvxpy as cp, cvxqop, numpy as np
    >>> schema = cvxqop.Schema(
    ...     {"age": (16, 90), "region": ["N", "E", "S"]}, target={"spend": (0, 5_000)}
    ... )
    >>> rng = np.random.default_rng(0)
    >>> table = {
    ...     "age": rng.integers(16, 90, 4000), "region": rng.choice(["N", "E", "S"], 4000),
    ...     "spend": [f"${x:,.0f}" for x in rng.uniform(1000, 3000, 4000)],
    ... }
    >>> rows = schema.read(table)
    >>> rows.names
    ('age', 'region = N', 'region = E', 'region = S')
    >>> w, b = cp.Variable(4), cp.Variable()
    >>> problem = cp.Problem(cp.Minimize(cp.sum_squares(rows.X @ w + b - rows.y)))
    >>> solution = cvxqop.privatize(problem, private=rows, epsilon=1.0, delta=1e-6)
    >>> found = schema.coefficients(w.value, b.value)
    >>> there = schema.predict({"age": [30], "region": ["S"]}, w.value, b.value)
    >>> bool(abs(found.intercept + 30 * found["age"] + found["region = S"] - there[0]) < 1e-6)
    True
    """

    def __init__(
        self,
        columns: Mapping[str, Any],
        *,
        target: Mapping[str, Any] | None = None,
        missing: str = "drop",
        unknown: str = "drop",
        interactions: Sequence[tuple[str, str]] = (),
        person: str | None = None,
        rows_per_person: int | str | None = None,
    ) -> None:
        check_rule("Schema: missing", missing, False)
        check_rule("Schema: unknown", unknown, False)
        check_persons(person, rows_per_person, None)
        declarations = declared(columns, missing, unknown)
        self._coding = Coding(declarations, pairs_of(interactions, declarations))
        self._target = Coding({} if target is None else target_of(target))
        self._person, self._rows_per_person = person, rows_per_person
        named = [*self._coding.columns, *self._target.columns, *self._ids]
        if len(set(named)) < len(named):
            raise OptionError(
                "Schema: the target and the column of persons must be other columns than the "
                "features."
            )
        called = ["intercept", *self.names]
        for name in called:
            if called.count(name) > 1:
                raise OptionError(f"Schema: two coefficients would be called {name!r}; rename one.")

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns of X."""
        return tuple(feature.name for feature in self._coding.features)

    @property
    def bounds(self) -> Bounds:
        """row_norm = √(columns + interactions), rounded up; offset = 1 where there is a target."""
        offset = 1.0 if self._target.columns else None
        return Bounds(row_norm=self._coding.row_norm, offset=offset)

    @property
    def _ids(self) -> list[str]:
        return [] if self._person is None else [self._person]

    @sealed
    def read(self, table: Any, **options: str) -> Rows:
        """Rows of a table, each from its record alone.

        Parameters
        ----------
        table : str, path, data frame or dict
            A CSV or Parquet file (.parquet, .pq), a frame of pandas or polars, a table of pyarrow,
            or a dict {name: cells}. Columns that are not declared are left alone. The records are
            the lines of a CSV file as Python's csv module reads them, empty ones left out; all
            cells are texts. A frame that was read by ``pandas.read_csv`` has types that depend on
            all records: pass the path of the file.
        **options
            Of a CSV file: ``encoding="utf-8-sig"`` and ``delimiter=","``. Bytes that are no text in
            the encoding are replaced.

        Returns
        -------
        Rows

        Raises
        ------
        ProblemError
            A declared column is missing or there twice, or the table cannot be read. Names of
            declared columns are told, and no cell.
        """
        named = [*self._coding.columns, *self._target.columns, *self._ids]
        cells, n = columns_of(table, named, **options)
        X, y = self._coding.code(cells, n), self._target.code(cells, n)
        lost = np.isnan(X).any(axis=1) | np.isnan(y).any(axis=1)
        stated: dict[str, Any] = {}
        for name in self._ids:
            persons = [id_in(cell) for cell in cells[name]]
            lost |= np.array([not person for person in persons], dtype=bool)
            stated = {"persons": persons, "rows_per_person": self._rows_per_person}
        X[lost], y[lost] = np.nan, np.nan
        arrays = {"X": X}
        if self._target.columns:
            arrays["y"] = {1: y[:, 0], 2: y[:, -1] - y[:, 0]}.get(y.shape[1], y)
        return Rows(self.names, self.bounds, arrays, **stated)

    def unit_map(self) -> tuple[Array, Array]:
        """(T, t): T (θ, b) + t are the coefficients and the intercept in the units of the columns.

        The covariance matrix Σ of (θ, b) becomes TΣT'.
        """
        T = self._coding.to_units()
        middle, half = self._scale
        return half * T, np.append(np.zeros(len(T) - 1), middle)

    @property
    def _scale(self) -> tuple[float, float]:
        """Middle and half-width of the range of the target; 0 and 1 of classes."""
        for column in self._target.columns.values():
            if isinstance(column, Number):
                return column.middle, column.half
        return 0.0, 1.0

    @property
    def _classes(self) -> tuple[str, ...]:
        """The classes of the target, if it has some."""
        for column in self._target.columns.values():
            if isinstance(column, Category):
                return column.classes
        return ()

    def coefficients(self, theta: Any, intercept: Any = 0.0) -> Coefficients:
        """Released coefficients in the units of the columns.

        Parameters
        ----------
        theta : array, shape (d,) or (d, k)
            Coefficients of the columns of X.
        intercept : float or array, shape (k,)
            b of X @ theta + b.

        Raises
        ------
        OptionError
            The shape is another one.
        """
        both = together(theta, intercept, len(self.names))
        T, t = self.unit_map()
        found = T @ both + (t if both.ndim == 1 else t[:, None])
        return Coefficients(
            self._coding.features,
            found[:-1],
            found[-1],
            "".join(self._target.columns),
            self._classes,
        )

    @sealed
    def margins(self, table: Any, theta: Any, intercept: Any = 0.0, **options: str) -> Array:
        """X @ theta + intercept for the records of a table, NaN where a rule drops the record.

        The parameters are those of `predict`.
        """
        both = together(theta, intercept, len(self.names))
        cells, n = columns_of(table, [*self._coding.columns], **options)
        return np.asarray(self._coding.code(cells, n) @ both[:-1] + both[-1])

    def predict(self, table: Any, theta: Any, intercept: Any = 0.0, **options: str) -> Any:
        """Predictions for the records of a table.

        Parameters
        ----------
        table, **options
            As in `read`; the target need not be in the table.
        theta, intercept
            As in `coefficients`.

        Returns
        -------
        array
            Numbers in the units of the target, NaN where a rule drops the record; or the class of
            the largest margin, None likewise. Each depends on its record and on the release, and is
            as private as that record.
        """
        margins, classes = self.margins(table, theta, intercept, **options), self._classes
        if not classes:
            middle, half = self._scale
            return middle + half * margins
        best = (margins > 0).astype(int) if margins.ndim == 1 else margins.argmax(axis=1)
        lost = np.isnan(margins.reshape(len(margins), -1)).any(axis=1)
        return np.where(lost, None, np.array(classes, dtype=object)[best])

    @sealed
    def unsafe_counts(self, table: Any, **options: str) -> dict[str, dict[str, int]]:
        """How many cells of a column are read, missing, unknown, beyond the range: NOT private.

        For the holder of the data, to see that formats and levels are declared as they are written:
        else all records might be dropped, and nothing that is released would say so. The parameters
        are those of `read`.

        Warns
        -----
        PrivacyWarning
            Always.
        """
        warnings.warn(
            "Schema.unsafe_counts counts cells of the records: for your eyes only. Change the way "
            "things are written in the schema because of it, and no range and no rule.",
            PrivacyWarning,
            stacklevel=3,
        )
        named = [*self._coding.columns, *self._target.columns]
        cells, _ = columns_of(table, named, **options)
        return {**self._coding.counts(cells), **self._target.counts(cells)}

    def __str__(self) -> str:
        rows = self._coding.describe()
        rows += [(f"{n} (target)", what, rule) for n, what, rule in self._target.describe()]
        rows += [
            (n, "id of a person", f"rows_per_person: {self._rows_per_person}") for n in self._ids
        ]
        wide = [max(len(row[i]) for row in rows) for i in (0, 1)]
        count, entries = len(self._coding.columns), len(self.names)
        head = f"Schema: {count} columns, {entries} entries, row norm at most √{self._coding.count}"
        lines = (f"  {a.ljust(wide[0])}  {b.ljust(wide[1])}  {c}".rstrip() for a, b, c in rows)
        return "\n".join([head, *lines])

    __repr__ = __str__
