"""Numbers beside a row, one a record: labels, private weights, and the weights of classes.

Each is a function of its own record, cut to a public interval whatever the record holds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from cvxqop.problem.records.pieces import Leaf, Piece

__all__ = ["Beside", "ClassWeights", "Labels", "Numbers", "Weights", "class_text"]

Array = npt.NDArray[np.float64]
Change = Callable[[Any], Any]


@dataclass(frozen=True, eq=False)
class Numbers:
    """A sum of pieces without variables; zero for a row with share 0, whatever it holds."""

    pieces: tuple[Piece, ...]
    shares: Leaf | None = field(default=None, kw_only=True)

    def take(self, start: int, stop: int) -> Array:
        """The numbers of the records start…stop, not cut."""
        found = np.zeros(stop - start)
        with np.errstate(over="ignore", invalid="ignore"):
            for piece in self.pieces:
                found += piece.constants(start, stop)
        if self.shares is None:
            return found
        return np.where(self.shares.take(start, stop)[:, 0] == 0.0, 0.0, found)


@dataclass(frozen=True, eq=False)
class Labels(Numbers):
    """Numbers q_i, one a record, for a loss φ(t_i) + q_i t_i; q_i belongs into [low, high].

    Cut to that interval, every slope φ' + q of a logistic loss stays within the range of slopes of
    φ itself. Where that loss has a private weight, the one of number ``weighted``, the interval is
    that of weight 1, and is multiplied with the weight of the record. For other losses the interval
    is ±``unit`` times a public bound, once that is known, and |q| adds to the slopes.
    """

    low: float
    high: float
    unit: float = 0.0
    weighted: int | None = None

    @property
    def slope(self) -> float:
        """What q adds to the largest |φ'|."""
        return max(-self.low, self.high) if self.unit else 0.0

    def bounded(self, bound: float) -> Labels:
        """q cut to ±unit · bound."""
        return replace(self, low=-self.unit * bound, high=self.unit * bound)

    def cut(self, start: int, stop: int, weights: Array) -> Array:
        """q of the records start…stop, cut to its interval; ``weights`` (·, J) are those cut."""
        w = 1.0 if self.weighted is None else weights[:, self.weighted]
        return _cut(self.take(start, stop), self.low * w, self.high * w)


@dataclass(frozen=True, eq=False)
class Weights(Numbers):
    """Private weights w_i ≥ 0, cut to [low, high] once ``high`` is known.

    ``shift`` is r of weights y + r, y a private array and r a public number, for which a bound on y
    is one.
    """

    low: float = 0.0
    high: float = np.inf
    shift: float = 0.0

    def bounded(self, weight: float | None, offset: float | None) -> Weights:
        """Cut to [0, weight]; where that is not known, y + r to [r, offset + r]."""
        if weight is not None:
            return replace(self, low=0.0, high=weight)
        if self.shift > 0.0 and offset is not None:
            return replace(self, low=self.shift, high=offset + self.shift)
        return self

    def cut(self, start: int, stop: int) -> Array:
        """w of the records start…stop, cut to its interval."""
        return _cut(self.take(start, stop), self.low, self.high)


@dataclass(frozen=True, eq=False)
class ClassWeights(Numbers):
    """Public weights of classes: that of the class which is nearest to the label of a record.

    Examples
    --------
    >>> ClassWeights((), classes=(-1.0, 1.0), weights=(1.0, 3.0)).of(np.array([-1.0, 0.9]))
    array([1., 3.])
    """

    classes: tuple[float, ...]
    weights: tuple[float, ...]

    @property
    def high(self) -> float:
        """The largest weight."""
        return max(self.weights)

    def of(self, labels: Array) -> Array:
        """The weights of labels."""
        classes = np.array(self.classes)
        middles = 0.5 * (classes[:-1] + classes[1:])
        found = np.array(self.weights)[np.searchsorted(middles, labels)]
        return np.where(np.isnan(labels), 0.0, found)

    def cut(self, start: int, stop: int) -> Array:
        """The weights of the records start…stop."""
        return self.of(self.take(start, stop))


@dataclass(frozen=True, eq=False)
class Beside:
    """All that is beside the row of a record.

    Attributes
    ----------
    labels : Labels, optional
        The linear part of the loss.
    weights : tuple
        Of each of the J losses that share the row, its private weight, if any; () is none.
    classes : ClassWeights, optional
        What the whole loss of a record is multiplied with.
    """

    labels: Labels | None = None
    weights: tuple[Weights | None, ...] = ()
    classes: ClassWeights | None = None

    @property
    def numbers(self) -> list[Numbers]:
        """Everything that is read."""
        return [own for own in (self.labels, *self.weights, self.classes) if own is not None]

    @property
    def weighted(self) -> bool:
        """Whether records have weights of their own."""
        return self.classes is not None or any(own is not None for own in self.weights)

    def largest(self, count: int) -> list[float]:
        """The largest weight that a record can have, of each of ``count`` losses."""
        whole = 1.0 if self.classes is None else self.classes.high
        own = self.weights or (None,) * count
        return [whole * (1.0 if one is None else one.high) for one in own]

    @property
    def slope(self) -> float:
        """What labels add to the largest slope of a record."""
        whole = 1.0 if self.classes is None else self.classes.high
        return 0.0 if self.labels is None else whole * self.labels.slope

    @property
    def enforced(self) -> tuple[str, ...]:
        """What is enforced of weights, in words."""
        said = [
            f", and its private weight to [{own.low:g}, {own.high:g}]"
            for own in self.weights
            if own is not None
        ]
        if self.classes is not None:
            pairs = zip(self.classes.classes, self.classes.weights, strict=True)
            names = [leaf.name for piece in self.classes.pieces for leaf in piece.leaves]
            said.append(class_text(tuple(pairs), f", by {names[0]}"))
        return tuple(said)

    def made(self, change: Callable[[Piece], Piece]) -> Beside:
        """The same of changed pieces."""
        return self._each(lambda own: replace(own, pieces=tuple(map(change, own.pieces))))

    def kept(self, shares: Leaf) -> Beside:
        """The same with zeros for rows with share 0."""
        return self._each(lambda own: replace(own, shares=shares))

    def settled(self, weight: float | None, offset: float | None) -> Beside:
        """The same with public bounds on private weights and labels, where they are known."""
        weights = tuple(own and own.bounded(weight, offset) for own in self.weights)
        labels = self.labels
        if labels is not None and np.isinf(labels.high) and offset is not None:
            labels = labels.bounded(offset)
        return replace(self, weights=weights, labels=labels)

    def cut(self, start: int, stop: int, count: int) -> tuple[Array, Array]:
        """Weights w (·, J) and labels q of the records start…stop, each cut to its interval, with
        the weight of the class in both; J is ``count``."""
        w = np.ones((stop - start, count))
        for j, own in enumerate(self.weights):
            if own is not None:
                w[:, j] = own.cut(start, stop)
        q = np.zeros(stop - start)
        if self.labels is not None:
            q = self.labels.cut(start, stop, w)
        if self.classes is not None:
            whole = self.classes.cut(start, stop)
            w, q = w * whole[:, None], q * whole
        return w, q

    def _each(self, change: Change) -> Beside:
        labels, *weights, classes = (
            None if own is None else change(own)
            for own in (self.labels, *self.weights, self.classes)
        )
        return Beside(labels, tuple(weights), classes)


def class_text(weights: Sequence[tuple[float, float]], label: str = "") -> str:
    """The weights of classes, in words."""
    pairs = ", ".join(f"{own:g}: {weight:g}" for own, weight in weights)
    return f", and its loss multiplied by the public weight of its class ({pairs}{label})"


def _cut(numbers: Array, low: Array | float, high: Array | float) -> Array:
    """Infinity from finite numbers is cut as well; NaN belongs to a row of zeros."""
    return np.where(np.isnan(numbers), 0.0, np.clip(numbers, low, high))
