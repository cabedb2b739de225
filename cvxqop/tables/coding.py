"""Declared columns together: from cells to entries of X, and from coefficients back to units."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from cvxqop.tables.columns import Array, Column, Feature

__all__ = ["Coding"]


@dataclass(frozen=True, eq=False)
class Coding:
    """Columns by name, in the order of their entries in X.

    Examples
    --------
    >>> from cvxqop.tables.categories import Category
    >>> from cvxqop.tables.ranges import Number
    >>> coding = Coding({"age": Number(0, 100), "sex": Category(["F", "M"])})
    >>> coding.code({"age": [75, "NA"], "sex": ["F", "M"]}, 2).tolist()
    [[0.5, -1.0], [nan, 1.0]]
    """

    columns: Mapping[str, Column]

    @property
    def features(self) -> tuple[Feature, ...]:
        """What the entries are."""
        return tuple(f for name, column in self.columns.items() for f in column.features(name))

    @property
    def row_norm(self) -> float:
        """√(number of columns), rounded up: the entries of a column have norm 1 at most."""
        root = math.sqrt(len(self.columns))
        exact = Fraction(root) ** 2 >= len(self.columns)
        return root if exact else math.nextafter(root, math.inf)

    def code(self, cells: Mapping[str, Any], n: int) -> Array:
        """X (n, number of entries), with NaN where a rule drops the record."""
        X, start = np.empty((n, len(self.features))), 0
        for name, column in self.columns.items():
            entries = column.code(column.read(cells[name]))
            X[:, start : start + entries.shape[1]] = entries
            start += entries.shape[1]
        return X

    def to_units(self) -> Array:
        """T with T (θ, b) the slopes and the intercept in the units of the columns."""
        d = len(self.features)
        T, start = np.eye(d + 1), 0
        for column in self.columns.values():
            block, shift = column.to_units()
            stop = start + len(shift)
            T[start:stop, start:stop], T[d, start:stop] = block, shift
            start = stop
        return T

    def counts(self, cells: Mapping[str, Any]) -> dict[str, dict[str, int]]:
        """How many cells of each column were read as what; NOT private."""
        return {
            name: column.counts(column.read(cells[name])) for name, column in self.columns.items()
        }
