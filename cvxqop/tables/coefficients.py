"""Released coefficients with the names and in the units of the columns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cvxqop.errors import OptionError
from cvxqop.tables.columns import Array, Feature

__all__ = ["Coefficients", "together"]


@dataclass(frozen=True, eq=False)
class Coefficients:
    """Coefficients by name, in the units of the columns. Made by `Schema.coefficients`.

    They are computed from released numbers and public ones. ``coefficients["age"]`` is one of them,
    and ``print(coefficients)`` a table.

    Attributes
    ----------
    features : tuple of Feature
        Name and label of each.
    values : array, shape (d,) or (d, k)
        A column for each class where there are more than two.
    intercept : float or array, shape (k,)
        The prediction where numbers are 0, dates at the beginning of their range, categories and
        Booleans at their first level.
    """

    features: tuple[Feature, ...]
    values: Any
    intercept: Any
    _target: str = field(default="", repr=False)
    _classes: tuple[str, ...] = field(default=(), repr=False)

    def __getitem__(self, name: str) -> Any:
        """A coefficient by the name of its column of X.

        Raises
        ------
        KeyError
            There is none of this name.
        """
        return self._by_name()[name]

    def _by_name(self) -> dict[str, Any]:
        names = (feature.name for feature in self.features)
        return dict(zip(names, self.values, strict=True))

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers by name, the intercept first; lists of them where there are classes."""
        everything = {"intercept": self.intercept, **self._by_name()}
        return {name: np.asarray(value).tolist() for name, value in everything.items()}

    def __str__(self) -> str:
        labels = ["intercept", *(feature.label for feature in self.features)]
        numbers = np.vstack([np.atleast_1d(row) for row in (self.intercept, *self.values)])
        cells = [[f"{number:.6g}" for number in row] for row in numbers]
        title = "Coefficients" + (f" of {self._target}" if self._target else "")
        if len(self._classes) == 2:
            title += f", on the margin of {self._classes[1]}"
        elif len(self._classes) == len(cells[0]):
            labels, cells = ["", *labels], [list(self._classes), *cells]
        first = max(map(len, labels))
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines = [
            "  ".join([label.ljust(first), *map(str.rjust, row, widths)])
            for label, row in zip(labels, cells, strict=True)
        ]
        return "\n  ".join([title, *lines])

    __repr__ = __str__


def together(theta: Any, intercept: Any, d: int) -> Array:
    """(θ, b) as one vector, or as one for each class.

    Raises
    ------
    OptionError
        The shape is another one, or there are no numbers.
    """
    try:
        rows = np.asarray(theta, dtype=np.float64)
        last = np.broadcast_to(np.asarray(intercept, dtype=np.float64), rows.shape[1:])
        both = np.concatenate([rows, last[None]])
    except (TypeError, ValueError):
        both = np.empty(0)
    if both.ndim not in (1, 2) or len(both) != d + 1 or np.isnan(both).any():
        raise OptionError(
            f"Schema: theta must have {d} coefficients, one for each of schema.names, in one "
            "column or in one a class, and the intercept one number or one a class. Are they the "
            ".value of variables that have been solved for?"
        )
    return both
