"""From loss terms to groups: the terms of a group share one row a record, up to a factor."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import numpy as np

from cvxqop import _cvxpy
from cvxqop.errors import ProblemError
from cvxqop.problem.losses.multinomial import Multinomial
from cvxqop.problem.losses.scalar import ScalarLoss
from cvxqop.problem.parts import RowParts
from cvxqop.problem.private.data import PrivateData
from cvxqop.problem.reading import checks
from cvxqop.problem.reading.affine import AffineReader
from cvxqop.problem.reading.columns import (
    TOLERANCE,
    Columns,
    centred,
    is_offset,
    layout_of,
    linear_columns,
    ratio,
    restricted,
    support,
)
from cvxqop.problem.reading.factors import outer_factor, row_parts
from cvxqop.problem.reading.labels import (
    check_signs,
    check_targets,
    read_labels,
    read_votes,
    takes_signs,
)
from cvxqop.problem.reading.loss_terms import LinearTerm, LossTerm
from cvxqop.problem.reading.public import Stacking, record_count
from cvxqop.problem.reading.terms import TermReader
from cvxqop.problem.reading.weights import ONE_WEIGHT, private_weights, sums_with_factors
from cvxqop.problem.records.beside import Beside, Labels, Weights
from cvxqop.problem.records.outputs import OutputRows, Outputs, stacked_numbers
from cvxqop.problem.records.pieces import LabelLeaf, Piece, signs_of, times
from cvxqop.problem.records.rows import AffineRows

__all__ = ["Assembled", "assemble"]

Text = Callable[[Any], str]

_OWN_VARIABLES = (
    "does not have variables of its own for each output, as many for each: Theta and b of "
    "X @ Theta + b - Y have one column an output"
)
_ONE_ROW = (
    "has different rows for different outputs of a record: X of X @ Theta + b - Y has one row for "
    "all of them"
)


@dataclass(frozen=True, eq=False)
class Assembled:
    """Terms that share one row a record.

    Attributes
    ----------
    rows : AffineRows
        The rows: (n, D) on θ for one output, (n, p) for several.
    losses : tuple of (loss, weight)
        One a term.
    parts : RowParts
        What is public about the rows.
    outputs : Outputs, optional
        Where the coefficients (p, k) of several outputs stand in θ.
    row : tuple of Piece
        The row of the first output on θ.
    terms, labels : tuple
        The loss terms, and the linear terms that are their labels, as they were written.
    sign : LabelLeaf, optional
        The listed array that multiplies the whole row, and is to be cut to ±1.
    """

    rows: AffineRows
    losses: tuple[tuple[ScalarLoss | Multinomial, Any], ...]
    parts: RowParts
    outputs: Outputs | None
    row: tuple[Piece, ...]
    terms: tuple[LossTerm, ...]
    labels: tuple[LinearTerm, ...]
    sign: LabelLeaf | None


def assemble(
    reader: TermReader, data: PrivateData, stacking: Stacking, text: Text
) -> list[Assembled]:
    """The groups of the terms that were split, in the order of their first terms.

    A term whose row is s times that of a group has the loss t ↦ φ(s t) there; a term with several
    outputs is a group by itself. Linear terms are labels of the group whose row they have.

    Raises
    ------
    ProblemError
        If a term is of no form that is known, the terms do not run over the same records, or a
        linear term does not belong to exactly one group.
    """
    for term in reader.terms:
        checks.check_outputs(term, data, text)
    n = checks.common_count(reader.terms, data, text)
    checks.check_weights([*reader.terms, *reader.linear], n, text)
    affine = AffineReader(data, stacking, text)
    groups: list[_Group] = []
    for term in reader.terms:
        check_signs(term, data, text)
        columns = centred(affine.read(term.argument, term.written), term.centre)
        rows = linear_columns(columns)
        if not any(group.takes(term, rows, columns) for group in groups):
            groups.append(_Group(term, rows, columns, n, affine, data, text))
    _check_covered(groups, stacking, text)
    _assign_labels(reader.linear, groups, text)
    return [group.assembled(stacking.dimension) for group in groups]


class _Group:
    """Terms whose row is a number times ``base``; a term with several outputs is alone.

    ``row`` is what its outputs share, on the entries of θ in a column of ``layout``.
    """

    def __init__(
        self,
        term: LossTerm,
        rows: Columns,
        columns: Columns,
        n: int,
        affine: AffineReader,
        data: PrivateData,
        text: Text,
    ) -> None:
        self._n, self._affine, self._text = n, affine, text
        if not any(rows):
            _refuse(term, text, "does not depend on a variable; remove it")
        first = next(piece for row in rows for piece in row.values()).G.data
        sign = -1.0 if first[0] < 0 and term.loss.even else 1.0
        self.base = [times(row, sign) for row in rows]
        self.layout, self.row = None, self.base[0]
        if len(rows) > 1:
            self.layout = layout_of(self.base)
            if self.layout is None:
                _refuse(term, text, _OWN_VARIABLES)
            self.row, *others = map(restricted, self.base, self.layout.T)
            if any(abs((ratio([other], [self.row]) or 0.0) - 1.0) > TOLERANCE for other in others):
                _refuse(term, text, _ONE_ROW)
        self._data, self._weights = data, list[Weights | None]()
        self.terms, self._ratios, self._columns = [self._weighed(term)], [sign], [columns]
        self.linear: list[LinearTerm] = []

    def takes(self, term: LossTerm, rows: Columns, columns: Columns) -> bool:
        """Add a term of one output, if its row is that of the group."""
        found = ratio(rows, self.base) if len(rows) == 1 else None
        if found is None:
            return False
        self.terms.append(self._weighed(term))
        self._ratios.append(found)
        self._columns.append(columns)
        return True

    def _weighed(self, term: LossTerm) -> LossTerm:
        """The term with its private weights in the units of the listed arrays, which are kept."""
        pieces = self._affine.read_product(term.private, term.written)
        if sums_with_factors(pieces):
            _refuse(term, self._text, ONE_WEIGHT)
        unit, own = private_weights(pieces)
        if unit < 0.0:
            _refuse(term, self._text, "has a negative weight, so that it is not convex")
        self._weights.append(own if term.private else None)
        return replace(term, weight=term.weight * unit)

    def fits(self, own: LinearTerm) -> bool:
        """Whether a linear term may be labels of the group."""
        with contextlib.suppress(ProblemError):
            self._votes([own]) if self.layout is not None else self._labels([own])
            return True
        return False

    def _labels(self, linear: Sequence[LinearTerm]) -> Labels:
        factors = [(factor, own.written) for own in linear for factor in own.factors]
        counts = [(record_count(factor), written) for factor, written in factors]
        checks.check_counts([(self._n, self.terms[0].written), *counts], self._text)
        products = [(own, self._affine.read_product(own.factors, own.written)) for own in linear]
        return read_labels(self.base[0], self.terms, self._ratios, products, self._text)

    def _votes(self, linear: Sequence[LinearTerm]) -> tuple[Columns, float]:
        return read_votes(self.terms[0], self.base, linear, self._affine, self._text)

    def assembled(self, dimension: int) -> Assembled:
        """Rows, losses and labels."""
        outer = 0.0
        losses: list[tuple[ScalarLoss | Multinomial, Any]] = []
        numbers = []
        for term, s, columns in zip(self.terms, self._ratios, self._columns, strict=True):
            outer = max(outer, outer_factor(term.argument, self._data) / abs(s))
            scaled = term.loss.scaled(s) if isinstance(term.loss, ScalarLoss) else term.loss
            losses.append((scaled, term.weight))
            numbers.append(
                [[replace(p, g=p.g / s) for p in own.values() if is_offset(p)] for own in columns]
            )
        linear, outputs, sign = list(self.row.values()), None, self._sign()
        if self.layout is None:
            labels = self._labels(self.linear) if self.linear else None
            offsets = [own for (own,) in numbers]
            beside = Beside(labels, tuple(self._weights))
            rows = AffineRows(linear, offsets, self._n, dimension, beside)
        else:
            labelled = isinstance(self.terms[0].loss, Multinomial)
            own = self._probabilities(numbers[0]) if labelled else numbers[0]
            outputs = Outputs(self.layout, labelled)
            shape = (len(self.layout), outputs.count)
            rows = OutputRows(linear, stacked_numbers(own), self._n, *shape)
        bounded = linear if sign is None else [piece.with_label(sign) for piece in linear]
        return Assembled(
            rows,
            tuple(losses),
            row_parts(bounded, outer, self._n, rows.dimension),
            outputs,
            tuple(self.base[0].values()),
            tuple(self.terms),
            tuple(self.linear),
            sign,
        )

    def _sign(self) -> LabelLeaf | None:
        """The labels ±1 that a whole row is multiplied with, a public part of it included."""
        leaves = [] if self.layout is not None else signs_of(self.row.values())
        pairs = list(zip(self.terms, self._columns, strict=True))
        if len(leaves) != 1 or leaves[0].is_label or not all(takes_signs(*own) for own in pairs):
            return None
        (leaf,) = leaves
        label = LabelLeaf(leaf.array, leaf.key, leaf.private, leaf.name)
        if not any(piece.with_label(label).label_only for piece in self.row.values()):
            return None
        for own in pairs:
            check_targets(*own, label, self._text)
        return label

    def _probabilities(self, offsets: Sequence[Sequence[Piece]]) -> list[list[Piece]]:
        """The labels of a multinomial loss, which has no offset."""
        term = self.terms[0]
        if any(offsets):
            _refuse(term, self._text, "has an offset, which a loss with labels does not take")
        if not self.linear:
            _refuse(
                term,
                self._text,
                "has no labels: subtract sum(multiply(Y, X @ Theta)), Y with one row of class "
                "indicators a record",
            )
        columns, weight = self._votes(self.linear)
        if abs(weight - 1.0) > TOLERANCE:
            _refuse(term, self._text, "has not the weight that its labels have")
        return [list(column.values()) for column in columns]


def _assign_labels(linear: Sequence[LinearTerm], groups: Sequence[_Group], text: Text) -> None:
    """Each linear term is labels of one group: of the one that takes labels, or of the one of
    these whose row it has."""
    takers = [group for group in groups if any(term.takes_labels for term in group.terms)]
    for own in linear:
        found = takers if len(takers) == 1 else [group for group in takers if group.fits(own)]
        if len(found) != 1:
            count = "more than one" if found else "none"
            _refuse(
                own,
                text,
                f"is linear, and could be labels of {count} of the losses that take labels: write "
                "it as sum(multiply(y, t)) with the argument t of one of them",
            )
        found[0].linear.append(own)


def _check_covered(groups: Sequence[_Group], stacking: Stacking, text: Text) -> None:
    """Every entry of the variables of several outputs is in some row."""
    covered = np.zeros(stacking.dimension, dtype=bool)
    for group in groups:
        for row in group.base:
            covered[support(row)] = True
    for group in groups:
        term = group.terms[0]
        ranges = [(stacking.start(v), v.size) for v in _cvxpy.variables(term.argument)]
        whole = all(np.all(covered[start : start + size]) for start, size in ranges)
        if group.layout is not None and not whole:
            _refuse(term, text, _OWN_VARIABLES)


def _refuse(term: LossTerm | LinearTerm, text: Text, reason: str) -> NoReturn:
    raise ProblemError(f"The private term {text(term.written)} {reason}.") from None
