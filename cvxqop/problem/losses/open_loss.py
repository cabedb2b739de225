"""Losses of one number that lack a range or a width, until public numbers settle them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from cvxqop.problem.bounds import Bounds
from cvxqop.problem.losses.contract import PrivateTerms
from cvxqop.problem.losses.margin_term import MarginTerm
from cvxqop.problem.losses.phi.loss import PhiLoss, loss_of
from cvxqop.problem.losses.phi.recognise import NeedsRange, NeedsSmoothing
from cvxqop.problem.losses.phi.smooth import Unread
from cvxqop.problem.losses.recognised import RecognisedLoss
from cvxqop.problem.losses.scalar import ScalarLoss
from cvxqop.problem.losses.terms import Term

__all__ = ["OpenLoss", "Settled", "open_parts", "settle"]

Array = npt.NDArray[np.float64]
Refuse = Callable[[str], NoReturn]


@dataclass(frozen=True, eq=False)
class OpenLoss(ScalarLoss):
    """φ(t), t = factor · τ + shift, as a loss of τ; κ is infinite until φ is settled.

    Parameters
    ----------
    needs : NeedsRange or NeedsSmoothing
        φ, and what it lacks.
    factor, shift : float
        How the argument as it was written follows from that of the rows.
    """

    needs: NeedsRange | NeedsSmoothing = field(kw_only=True)
    factor: float = 1.0
    shift: float = 0.0

    @classmethod
    def of(
        cls, needs: NeedsRange | NeedsSmoothing, factor: float = 1.0, shift: float = 0.0
    ) -> OpenLoss:
        """The loss of an argument a τ + b."""
        f = needs.function.substitute(Fraction(factor), Fraction(shift))
        return cls(
            needs.name,
            value=lambda t: f.order(t, 0),
            derivative=lambda t: f.order(t, 1),
            second_derivative=lambda t: f.order(t, 2),
            curvature=math.inf,
            needs=needs,
            factor=factor,
            shift=shift,
        )

    def scaled(self, factor: float) -> ScalarLoss:
        """The loss τ ↦ φ(factor · τ)."""
        return self if factor == 1.0 else OpenLoss.of(self.needs, self.factor * factor, self.shift)

    @property
    def lacks(self) -> str:
        """What is missing: "range" or "smoothing"."""
        return "range" if isinstance(self.needs, NeedsRange) else "smoothing"


@dataclass(frozen=True)
class Settled:
    """A loss with what was done to it.

    Attributes
    ----------
    loss : PhiLoss
        It has κ and slopes.
    weight : float
        The largest weight of a record.
    gap : float
        φ lies between the loss and the loss plus this, where arguments are expected; 0 where φ
        was not smoothed.
    """

    loss: PhiLoss
    weight: float
    gap: float


def open_parts(loss: PrivateTerms) -> Iterator[tuple[int, str]]:
    """What waits for a public number: the number of the term, and "range", "smoothing", "labels"
    or "weight"."""
    number = 0
    for term in loss.terms if isinstance(loss, RecognisedLoss) else ():
        for j, (phi, _) in enumerate(term.losses, number):
            if isinstance(phi, OpenLoss):
                yield j, phi.lacks
        yield from ((number, lacks) for lacks in _unbounded(term))
        number += len(term.losses)


def settle(
    loss: PrivateTerms,
    bounds: Bounds,
    anchor: Array,
    offset: float | None,
    distance: float,
    radius: float,
    width: float | None,
    refuse: Callable[[str, int], NoReturn],
) -> tuple[PrivateTerms, tuple[Settled, ...], tuple[tuple[int, str], ...]]:
    """The loss with every open part settled, and what each was replaced by.

    Parameters
    ----------
    bounds, anchor, offset
        As in `PrivateTerms.constants`.
    distance, radius : float
        How far θ can be from the anchor, which may be infinite, and how far it is expected to be.
    width : float or None
        h, in units of each argument.
    refuse : callable
        Raises for the term of a number, with what it lacks: see `open_parts`, or "domain".

    Returns
    -------
    loss : PrivateTerms
    settled : tuple of Settled
    replaced : tuple of (number of the term, text)
    """
    if not isinstance(loss, RecognisedLoss):
        return loss, (), ()
    terms, settled, replaced, number = [], [], [], 0
    for term in loss.terms:
        term = _bounded(term, bounds)
        if isinstance(term, MarginTerm):
            own: list[tuple[Any, Any]] = []
            for j, (phi, weight) in enumerate(term.losses, number):
                if isinstance(phi, OpenLoss):
                    possible, expected = (
                        term.argument_bound(bounds, anchor, offset, far)
                        for far in (distance, min(distance, radius))
                    )
                    phi, gap, text = _settled(
                        phi, possible, expected, bounds, width, _about(refuse, j)
                    )
                    settled.append(Settled(phi, term.largest[j - number], gap))
                    replaced.append((j, text))
                own.append((phi, weight))
            term = replace(term, losses=tuple(own))
        number += len(term.losses)
        for lacks in _unbounded(term):
            refuse(lacks, number - 1)
        terms.append(term)
    return replace(loss, terms=tuple(terms)), tuple(settled), tuple(replaced)


def _settled(
    own: OpenLoss,
    possible: float,
    expected: float,
    bounds: Bounds,
    width: float | None,
    refuse: Refuse,
) -> tuple[PhiLoss, float, str]:
    """The loss of |τ| ≤ possible, the gap of its envelope where |τ| ≤ expected, both in words."""
    possible, expected = abs(own.factor) * possible, abs(own.factor) * expected
    needs, gap, texts = own.needs, 0.0, []
    found: Any = needs
    low, high = -math.inf, math.inf
    if isinstance(needs, NeedsRange):
        stated = bounds.range
        low, high = max(own.shift - possible, stated[0]), min(own.shift + possible, stated[1])
        try:
            found = needs.within(low, high)
        except (Unread, OverflowError):
            outside = not (low >= needs.domain[0] and high <= needs.domain[1])
            refuse("domain" if outside else "range")
        texts.append(f"continued as a parabola where its argument is not in [{low:g}, {high:g}]")
    if isinstance(found, NeedsSmoothing):
        if width is None:
            refuse("smoothing")
        smoothed = found.smoothed(width, centred=True)
        gap = smoothed.gap
        where = ""
        if math.isinf(gap):
            left, right = own.shift - expected, own.shift + expected
            gap = smoothed.gap_on(left, right)
            where = f" where its argument is in [{left:g}, {right:g}]"
        texts.append(
            f"replaced by its Moreau envelope of width h = {width:g}, of curvature 1/h and the "
            f"same slopes, which is lower by at most {gap:.3g} a record{where}"
        )
        found = smoothed
    loss = found.loss
    if own.factor != 1.0 or own.shift != 0.0:
        source = loss.source.substitute(Fraction(own.factor), Fraction(own.shift))
        loss = loss_of(source, loss.name)
    written = sorted((end - own.shift) / own.factor for end in (low, high))
    return replace(loss, written=(written[0], written[1])), gap, " and ".join(texts)


def _about(refuse: Callable[[str, int], NoReturn], number: int) -> Refuse:
    def about(lacks: str) -> NoReturn:
        refuse(lacks, number)

    return about


def _unbounded(term: Term) -> list[str]:
    """What of labels and private weights waits for a bound."""
    beside = term.rows.beside
    labels = beside.labels is not None and math.isinf(beside.labels.high)
    weights = any(own is not None and math.isinf(own.high) for own in beside.weights)
    return [*(["weight"] if weights else []), *(["labels"] if labels else [])]


def _bounded(term: Term, bounds: Bounds) -> Term:
    """The term with public bounds on labels and private weights, where they are stated."""
    rows: Any = term.rows
    if not _unbounded(term):
        return term
    return replace(term, rows=rows.with_beside(rows.beside.settled(bounds.weight, bounds.offset)))
