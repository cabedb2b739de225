"""Rows that a schema read from a table: records with their bounds."""

from __future__ import annotations

from typing import Any

from cvxqop.problem.bounds import Bounds
from cvxqop.records import Records

__all__ = ["Rows"]


class Rows(Records):
    """What `Schema.read` gives: arrays of records, and what is public about them.

    In ``private=rows`` it states the bounds, that a dropped record becomes a zero row
    (``nonfinite="zero"``), and the persons if the schema names their column. Or list the arrays:
    ``private=[rows.X, rows.y], bounds=rows.bounds, nonfinite="zero"``.

    Attributes
    ----------
    X : array, shape (n, d)
        Entries from −1 to 1; NaN throughout in the row of a record that is dropped.
    y : array, shape (n,) or (n, k)
        The target: numbers from −1 to 1, labels −1 and 1 of two classes, one 0/1 column a class of
        more; NaN likewise. Not there without a target.
    bounds : Bounds
        On a row of X, and on y.
    names : tuple of str
        Names of the columns of X.
    persons : list of str or None
        Ids, where the schema names their column: as private as the rows.
    """

    def __init__(
        self, names: tuple[str, ...], bounds: Bounds, arrays: dict[str, Any], **stated: Any
    ) -> None:
        super().__init__(bounds=bounds, nonfinite="zero", **arrays, **stated)
        self.names, self.bounds, self.persons = names, bounds, stated.get("persons")
