"""The weight collected on the way from the objective down to an atom, public and private."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from cvxqop.problem.reading.columns import CONSTANT
from cvxqop.problem.records.beside import Weights
from cvxqop.problem.records.pieces import Pieces, times

__all__ = [
    "ONE_WEIGHT",
    "Weight",
    "private_weights",
    "scale_statement",
    "sums_with_factors",
    "weight_ratio",
]

Array = npt.NDArray[np.float64]

ONE_WEIGHT = (
    "has private weights that add up several arrays with factors. Compute the weights in NumPy, "
    "and list that array"
)

_PLAIN = (0.25, 0.5, 1.0, 2.0, 4.0)


@dataclass(frozen=True, eq=False)
class Weight:
    """A weight and the numbers it is made of: ``value`` is a number or a public array (n,).

    ``scales`` are the numbers in words, other than those that a formula is made of; ``private`` are
    expressions with one private number a record, whose product is part of the weight.
    """

    value: float | Array = 1.0
    divisors: tuple[float, ...] = ()
    averaged: tuple[int, ...] = ()
    scales: tuple[str, ...] = ()
    private: tuple[Any, ...] = ()

    def times(self, scalar: float) -> Weight:
        """Multiplied by a number."""
        plain = scalar in (0.0, 0.5, 1.0, 2.0)
        divisors = self.divisors if plain else (*self.divisors, 1.0 / scalar)
        scales = self._scales(scalar, _text(abs(scalar)))
        return replace(self, value=self.value * scalar, divisors=divisors, scales=scales)

    def over(self, scalar: float) -> Weight:
        """Divided by a number."""
        divisors = (*self.divisors, scalar)
        scales = self._scales(scalar, f"1/{abs(scalar):g}")
        return replace(self, value=self.value / scalar, divisors=divisors, scales=scales)

    def mean(self, n: int) -> Weight:
        """Marked as a mean over n records."""
        return replace(self, averaged=(*self.averaged, n))

    def weighted(self, weights: Array) -> Weight:
        """Multiplied by one number a record."""
        return replace(self, value=self.value * weights)

    def privately(self, weights: Any) -> Weight:
        """Multiplied by one private number a record."""
        return replace(self, private=(*self.private, weights))

    def depends_on(self, n: int) -> bool:
        """Whether it holds a factor 1/n or 1/(2n). Small n are told by the structure alone."""
        close = [abs(d / n - k) < 1e-12 for d in self.divisors for k in (1, 2)] if n > 2 else []
        return n in self.averaged or any(close)

    def simplified(self) -> float | Array:
        """The weight: one number where all records have the same."""
        values = np.asarray(self.value, dtype=np.float64)
        if values.ndim == 0:
            return float(values)
        if values.size == 0:
            return 1.0
        return float(values[0]) if np.all(values == values[0]) else values

    def _scales(self, scalar: float, text: str) -> tuple[str, ...]:
        if abs(scalar) in _PLAIN or scalar == 0.0 or text in self.scales:
            return self.scales
        return (*self.scales, text)


def sums_with_factors(pieces: Pieces) -> bool:
    """Whether private arrays are added with factors, so that a bound has no unit.

    CVXPY leaves out an array of zeros that is added: sums without factors have the bound that each
    of their arrays has alone, whatever they hold.
    """
    own = [piece for piece in pieces.values() if piece.private]
    return len(own) > 1 and any(np.any(piece.g[piece.g != 0.0] != 1.0) for piece in own)


def private_weights(pieces: Pieces) -> tuple[float, Weights]:
    """A public factor and the weights in the units of the listed arrays: 2 and w for 2w."""
    unit, shift = 1.0, 0.0
    own = [piece for key, piece in pieces.items() if key != CONSTANT]
    if len(pieces) == 1 and len(own) == 1 and own[0].matrix is None:
        unit = float(own[0].g[0])
    elif len(pieces) == 2 and len(own) == 1 and own[0].matrix is None and own[0].g[0] == 1.0:
        shift = float(pieces[CONSTANT].g[0])
    scaled = times(pieces, 1.0 / unit) if unit not in (0.0, 1.0) else pieces
    return unit, Weights(tuple(scaled.values()), shift=shift)


def weight_ratio(own: Pieces, base: Pieces) -> float | None:
    """s with own = s · base, both without variables; 1 of none and none; None if there is none."""
    if own.keys() != base.keys():
        return None
    if not base:
        return 1.0
    pairs = [(piece.g, base[key].g) for key, piece in own.items()]
    k = int(np.argmax(np.abs(pairs[0][1])))
    s = float(pairs[0][0][k] / pairs[0][1][k]) if pairs[0][1][k] else 0.0
    return s if s and all(np.array_equal(g, s * h) for g, h in pairs) else None


def _text(scalar: float) -> str:
    inverse = 1.0 / scalar if scalar else 0.0
    whole = round(inverse) if inverse < 1e15 else 0
    return f"1/{whole}" if whole > 1 and abs(inverse - whole) < 1e-9 * whole else f"{scalar:g}"


def scale_statement(scales: Sequence[str], opened: bool = False) -> str | None:
    """What has to be assumed of the numbers in the loss where the number of records is private.

    ``opened`` says that a loss is read as a function in which numbers may stand anywhere.

    Examples
    --------
    >>> scale_statement(["1/100"])
    'The factor 1/100 of the loss is a public number and not the number of records.'
    """
    said = []
    distinct = list(dict.fromkeys(scales))
    if distinct:
        subject, rest = f"factor {distinct[0]}", "is a public number"
        if len(distinct) > 1:
            subject = f"factors {', '.join(distinct[:-1])} and {distinct[-1]}"
            rest = "are public numbers"
        said = [f"The {subject} of the loss {rest} and not the number of records."]
    if opened:
        said.append("No number in the loss was computed from records, or from how many there are.")
    return " ".join(said) or None
