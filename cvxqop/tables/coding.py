"""Declared columns together: from cells to entries of X, and from coefficients back to units."""

from __future__ import annotations

import itertools
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
    """Columns by name, in the order of their entries in X, and then products of pairs of them.

    The entries of a column have norm 1 at most, and so have the products of all entries of one
    column with all of another.

    Examples
    --------
    >>> from cvxqop.tables.categories import Category
    >>> from cvxqop.tables.ranges import Number
    >>> age, sex = Number(0, 100), Category(["F", "M"])
    >>> coding = Coding({"age": age, "sex": sex}, (("age", "sex"),))
    >>> coding.code({"age": [75, "NA"], "sex": ["F", "M"]}, 2).tolist()
    [[0.5, 1.0, 0.0, 0.5, 0.0], [nan, 0.0, 1.0, nan, nan]]
    """

    columns: Mapping[str, Column]
    pairs: tuple[tuple[str, str], ...] = ()

    @property
    def features(self) -> tuple[Feature, ...]:
        """What the entries are."""
        own = {name: column.features(name) for name, column in self.columns.items()}
        products = (
            Feature(name, name)
            for first, second in self.pairs
            for name in (f"{a.name} × {b.name}" for a in own[first] for b in own[second])
        )
        return (*itertools.chain(*own.values()), *products)

    @property
    def count(self) -> int:
        """How many columns and pairs there are, each of norm 1 at most."""
        return len(self.columns) + len(self.pairs)

    @property
    def row_norm(self) -> float:
        """√count, rounded up."""
        root = math.sqrt(self.count)
        return root if Fraction(root) ** 2 >= self.count else math.nextafter(root, math.inf)

    def code(self, cells: Mapping[str, Any], n: int) -> Array:
        """X (n, number of entries), with NaN where a rule drops the record."""
        own = {name: column.code(column.read(cells[name])) for name, column in self.columns.items()}
        products = [
            own[first][:, [i]] * own[second]
            for first, second in self.pairs
            for i in range(own[first].shape[1])
        ]
        return np.hstack([np.empty((n, 0)), *own.values(), *products])

    def to_units(self) -> Array:
        """T with T (θ, b) the slopes and the intercept in the units of the columns.

        The entries of a column are e = T'u + s in terms of what is in the table, and the products
        of two of them e₁ ⊗ e₂, which adds to both and to the intercept.
        """
        own = {name: column.to_units() for name, column in self.columns.items()}
        stops = np.cumsum([0, *(len(shift) for _, shift in own.values())]).tolist()
        places = dict(zip(own, map(slice, stops, stops[1:]), strict=True))
        d, start = len(self.features), stops[-1]
        T = np.eye(d + 1)
        for name, (block, shift) in own.items():
            T[places[name], places[name]], T[d, places[name]] = block, shift
        for first, second in self.pairs:
            (A, a), (B, b) = own[first], own[second]
            here = slice(start, start + len(a) * len(b))
            T[here, here] = np.kron(A, B)
            T[places[first], here] += np.kron(A, b)
            T[places[second], here] += np.kron(a, B)
            T[d, here] = np.kron(a, b)
            start = here.stop
        return T

    def counts(self, cells: Mapping[str, Any]) -> dict[str, dict[str, int]]:
        """How many cells of each column were read as what; NOT private."""
        return {
            name: column.counts(column.read(cells[name])) for name, column in self.columns.items()
        }

    def describe(self) -> list[tuple[str, str, str]]:
        """Name, declaration and rules, in words."""
        pairs = [(f"{a} × {b}", "products of their entries", "") for a, b in self.pairs]
        return [*((name, *column.describe()) for name, column in self.columns.items()), *pairs]
