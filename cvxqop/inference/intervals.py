"""Intervals with names: tables, frames, pictures."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import cvxpy as cp
import numpy as np
import numpy.typing as npt

from cvxqop.errors import OptionError
from cvxqop.inference import drawing
from cvxqop.privacy.accounting.profile import is_number
from cvxqop.travel import distinct_names

__all__ = ["Intervals", "checked_level", "paragraph", "split_up"]

Array = npt.NDArray[np.float64]

SHOWN = 40
"""Rows of a printed table."""


@dataclass(frozen=True, eq=False)
class Intervals:
    """Ends of intervals beside what was released, from redraws.

    Attributes
    ----------
    released, lower, upper : mapping {variable: ndarray}
        In the shape of the variable; of predictions under the key None.
    level : float
        Nominal coverage of each.
    draws : ndarray, shape (B, ·)
        The redraws, each flattened column by column.
    """

    released: Mapping[Any, Array]
    lower: Mapping[Any, Array]
    upper: Mapping[Any, Array]
    level: float
    draws: Array = field(repr=False)

    @classmethod
    def of(
        cls,
        variables: Sequence[cp.Variable],
        released: Mapping[cp.Variable, Any],
        draws: Array,
        level: float,
        give: float = 0.0,
        **further: Any,
    ) -> Self:
        """From the redrawn solutions (B, D), with ends that are moved outwards by ``give``."""
        lower, upper = _ends(draws, level)
        lower, upper = lower - give, upper + give
        return cls(
            released={v: np.asarray(released[v], dtype=np.float64) for v in variables},
            lower=split_up(lower, variables),
            upper=split_up(upper, variables),
            level=level,
            draws=draws,
            **further,
        )

    def ends(self, values: Array) -> tuple[Array, Array]:
        """Quantiles of redraws (B, m), each of shape (m,)."""
        return _ends(values, self.level)

    @property
    def names(self) -> list[str]:
        """Of each entry, such as theta[0] or theta[1, 2], in the order of the columns of draws."""
        keys = list(self.released)
        given = ["prediction"] if keys[0] is None else distinct_names(keys)
        return [
            name + (f"[{', '.join(map(str, place))}]" if place else "")
            for name, value in zip(given, self.released.values(), strict=True)
            for place in _places(np.shape(value))
        ]

    def _stacked(self, values: Mapping[Any, Any]) -> Array:
        return np.concatenate([np.ravel(values[key], order="F") for key in self.released])

    def _columns(self) -> list[Array]:
        return [self._stacked(values) for values in (self.released, self.lower, self.upper)]

    def _remarks(self) -> list[str]:
        """Beside each entry."""
        return [""] * len(self.names)

    def _notes(self) -> list[str]:
        """Below the table."""
        return []

    def to_pandas(self) -> Any:
        """A data frame with a row an entry; needs pandas."""
        import pandas as pd

        columns = dict(zip(("released", "lower", "upper"), self._columns(), strict=True))
        return pd.DataFrame(columns, index=self.names)

    def plot(self) -> Any:
        """A forest plot as a matplotlib figure; needs matplotlib."""
        released, lower, upper = self._columns()
        return drawing.forest(self.names, released, lower, upper, self._remarks(), self.level)

    def __str__(self) -> str:
        names, remarks = self.names, self._remarks()
        width = max(12, *map(len, names[:SHOWN]))
        head = f"  {'':<{width}}{'released':>12}{'from':>12}{'to':>12}"
        lines = [f"{self.level:.4g} intervals from {len(self.draws)} redraws of the noise", head]
        columns = self._columns()
        for name, *numbers, remark in list(zip(names, *columns, remarks, strict=True))[:SHOWN]:
            cells = "".join(f"{number:>12.5g}" for number in numbers)
            lines.append(f"  {name:<{width}}{cells}  {remark}".rstrip())
        if len(names) > SHOWN:
            lines.append(f"  … and {len(names) - SHOWN} more: to_pandas() has them all")
        for note in self._notes():
            lines += paragraph(note)
        return "\n".join(lines)

    __repr__ = __str__


def paragraph(text: str) -> list[str]:
    """Lines that fit a terminal."""
    return textwrap.wrap(
        text, 88, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False
    )


def checked_level(level: Any, draws: Any) -> tuple[float, int]:
    """Both, or what is wrong with them.

    Raises
    ------
    OptionError
        A level outside of (0, 1), or too few draws for its quantiles.
    """
    if not (is_number(level) and 0.0 < level < 1.0):
        raise OptionError(f"level must be a number between 0 and 1, such as 0.95, not {level!r}.")
    least = math.ceil(2.0 / (1.0 - level)) - 1
    if isinstance(draws, bool) or not isinstance(draws, int | np.integer) or draws < least:
        raise OptionError(
            f"draws must be an int of at least {least} for level={level:g}, not {draws!r}: the "
            "ends of an interval are quantiles of the draws."
        )
    return float(level), int(draws)


def split_up(theta: Any, variables: Sequence[cp.Variable]) -> dict[cp.Variable, Any]:
    """A stacked vector by variable, each in its shape."""
    parts = np.split(np.asarray(theta), np.cumsum([v.size for v in variables])[:-1])
    return {v: p.reshape(v.shape, order="F") for v, p in zip(variables, parts, strict=True)}


def _ends(draws: Array, level: float) -> tuple[Array, Array]:
    half = 0.5 * (1.0 - level)
    lower, upper = np.quantile(draws, [half, 1.0 - half], axis=0, method="weibull")
    return np.asarray(lower), np.asarray(upper)


def _places(shape: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Indices of the entries, column by column."""
    return [place[::-1] for place in np.ndindex(*shape[::-1])]
