"""Terms that share one row a record, up to a factor: rows, losses, labels, completed squares."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn

from cvxqop.errors import ProblemError
from cvxqop.problem.losses.multinomial import Multinomial
from cvxqop.problem.losses.radial import Radial
from cvxqop.problem.losses.scalar import ScalarLoss, linear
from cvxqop.problem.parts import Product, RowParts
from cvxqop.problem.private.data import PrivateData
from cvxqop.problem.reading import checks
from cvxqop.problem.reading.affine import AffineReader
from cvxqop.problem.reading.columns import (
    TOLERANCE,
    Columns,
    is_offset,
    layout_of,
    ratio,
    restricted,
    shared_row,
)
from cvxqop.problem.reading.factors import outer_factor, row_parts
from cvxqop.problem.reading.linear.labels import (
    check_targets,
    read_labels,
    read_votes,
    takes_signs,
)
from cvxqop.problem.reading.linear.squares import completed, constant_of, numbers_factor
from cvxqop.problem.reading.loss_terms import LinearTerm, LossTerm
from cvxqop.problem.reading.public import record_count
from cvxqop.problem.reading.weights import ONE_WEIGHT, private_weights, sums_with_factors
from cvxqop.problem.records.beside import Beside, Labels, Weights
from cvxqop.problem.records.outputs import OutputRows, Outputs, stacked_numbers
from cvxqop.problem.records.pieces import LabelLeaf, Piece, Pieces, signs_of, times
from cvxqop.problem.records.rows import AffineRows

__all__ = ["OWN_VARIABLES", "Assembled", "Group"]

Text = Callable[[Any], str]

OWN_VARIABLES = (
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
    terms, labels, squares : tuple
        The loss terms, and the linear terms that are their labels or complete their squares, as
        they were written.
    products : tuple of Product, optional
        What bounds the row of a linear term that belongs to no loss.
    sign : LabelLeaf, optional
        The listed array that multiplies the whole row, and is to be cut to ±1.
    """

    rows: AffineRows
    losses: tuple[tuple[ScalarLoss | Multinomial | Radial, Any], ...]
    parts: RowParts
    outputs: Outputs | None
    row: tuple[Piece, ...]
    terms: tuple[LossTerm | LinearTerm, ...]
    labels: tuple[LinearTerm, ...] = ()
    squares: tuple[LinearTerm, ...] = ()
    products: tuple[Product, ...] | None = None
    sign: LabelLeaf | None = None


class Group:
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
                _refuse(term, text, OWN_VARIABLES)
            if not shared_row(self.base):
                _refuse(term, text, _ONE_ROW)
            self.row = restricted(self.base[0], self.layout[:, 0])
        self._data, self._weights = data, list[Weights | None]()
        self.terms, self._ratios, self._columns = [self._weighed(term)], [sign], [columns]
        self.labels: list[LinearTerm] = []
        self.squares: list[LinearTerm] = []

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

    def fits(self, linear: Sequence[LinearTerm]) -> bool:
        """Whether linear terms may be labels of the group."""
        with contextlib.suppress(ProblemError):
            self._votes(linear) if self.layout is not None else self._labels(linear)
            return True
        return False

    def completes(self, own: LinearTerm) -> bool:
        """Whether a linear term may complete a square of the group."""
        with contextlib.suppress(ProblemError):
            return self._completed([own]) is not None
        return False

    def _labels(self, linear: Sequence[LinearTerm]) -> Labels:
        found = self._products(linear)
        return read_labels(self.base[0], self.terms, self._ratios, found, self._text)

    def _products(self, linear: Sequence[LinearTerm]) -> list[tuple[LinearTerm, Pieces]]:
        whole = [own for own in linear if own.output is None]
        factors = [(factor, own.written) for own in whole for factor in own.factors]
        counts = [(record_count(factor), written) for factor, written in factors]
        checks.check_counts([(self._n, self.terms[0].written), *counts], self._text)
        return [(own, self._pieces(own)) for own in linear]

    def _pieces(self, own: LinearTerm) -> Pieces:
        if own.output is None:
            return self._affine.read_product(own.factors, own.written)
        return self._affine.read(own.factors[0], own.written)[own.output]

    def _completed(self, linear: Sequence[LinearTerm]) -> Columns | None:
        """What linear terms add to the offset of the first square of the group."""
        if self._square is None:
            return None
        curvature = self.terms[self._square].loss.curvature * self._ratios[self._square] ** 2
        if self.layout is not None:
            return [times(column, -1.0 / curvature) for column in self._votes(linear)[0]]
        square = self.terms[self._square]
        found = completed(self.base[0], square, self._products(linear), curvature)
        return None if found is None else [found]

    @property
    def _square(self) -> int | None:
        """The place of the first square among the terms; none where a record has a weight of its
        own, by which its linear term would be divided."""
        if any(own is not None for own in self._weights):
            return None
        return next((j for j, term in enumerate(self.terms) if term.loss.quadratic), None)

    def _votes(self, linear: Sequence[LinearTerm]) -> tuple[Columns, float]:
        return read_votes(self.terms[0], self.base, linear, self._affine, self._text)

    def assembled(self, dimension: int) -> Assembled:
        """Rows, losses and labels."""
        outer = 0.0
        losses: list[tuple[ScalarLoss | Multinomial | Radial, Any]] = []
        numbers = []
        for term, s, columns in zip(self.terms, self._ratios, self._columns, strict=True):
            outer = max(outer, outer_factor(term.argument, self._data) / abs(s))
            scaled = term.loss.scaled(s) if isinstance(term.loss, ScalarLoss) else term.loss
            losses.append((scaled, term.weight))
            numbers.append(
                [[replace(p, g=p.g / s) for p in own.values() if is_offset(p)] for own in columns]
            )
        terms: list[LossTerm | LinearTerm] = list(self.terms)
        moved = self._complete(numbers, losses, terms, outer)
        row, outputs, sign = list(self.row.values()), None, self._sign()
        if self.layout is None:
            labels = self._labels(self.labels) if self.labels else None
            offsets = [own for (own,) in numbers]
            beside = Beside(labels, tuple(self._weights))
            rows = AffineRows(row, offsets, self._n, dimension, beside)
        else:
            labelled = isinstance(self.terms[0].loss, Multinomial)
            own = self._probabilities(numbers[0]) if labelled else numbers[0]
            outputs = Outputs(self.layout, labelled)
            shape = (len(self.layout), outputs.count)
            rows = OutputRows(row, stacked_numbers(own), self._n, *shape)
        bounded = row if sign is None else [piece.with_label(sign) for piece in row]
        parts = row_parts(bounded, outer, self._n, rows.dimension)
        return Assembled(
            rows,
            tuple(losses),
            replace(parts, offset_factor=moved, completed=bool(self.squares)),
            outputs,
            tuple(self.base[0].values()),
            tuple(terms),
            tuple(self.labels),
            () if len(terms) > len(self.terms) else tuple(self.squares),
            sign=sign,
        )

    def _sign(self) -> LabelLeaf | None:
        """The labels ±1 that a whole row is multiplied with, a public part of it included."""
        leaves = [] if self.layout is not None else signs_of(self.row.values())
        pairs = list(zip(self.terms, self._columns, strict=True))
        if len(leaves) != 1 or leaves[0].is_label or not all(takes_signs(*own) for own in pairs):
            return None
        (leaf,) = leaves
        if {one.key for piece in self.row.values() for one in piece.leaves} == {leaf.key}:
            return None  # a feature alone
        label = LabelLeaf(leaf.array, leaf.key, leaf.private, leaf.name)
        if not any(piece.with_label(label).label_only for piece in self.row.values()):
            return None
        for own in pairs:
            check_targets(*own, label, self._text)
        return label

    def _complete(self, numbers: Any, losses: Any, terms: Any, outer: float) -> float:
        """Complete the squares; returns the public factor around the numbers that make offsets."""
        found = self._completed(self.squares) if self.squares else None
        if found is None or self._square is None:
            return outer
        offsets = self._data.dropped or any(map(any, numbers))
        constant = constant_of(found[0]) if self.layout is None else None
        if constant is not None:
            weight = losses[self._square][1]
            slope = constant * self.terms[self._square].loss.curvature
            losses.append((linear.scaled(slope * self._ratios[self._square] ** 2), weight))
            numbers.append([[]])
            self._weights.append(None)
            first, *others = self.squares
            terms.append(replace(first, written=sum((o.written for o in others), first.written)))
            return outer
        for own, column in zip(numbers[self._square], found, strict=True):
            own += column.values()
        factor = numbers_factor(found)
        return outer + factor if offsets else factor

    def _probabilities(self, offsets: Sequence[Sequence[Piece]]) -> list[list[Piece]]:
        """The labels of a multinomial loss, which has no offset."""
        term = self.terms[0]
        if any(offsets):
            _refuse(term, self._text, "has an offset, which a loss with labels does not take")
        if not self.labels:
            _refuse(
                term,
                self._text,
                "has no labels: subtract sum(multiply(Y, X @ Theta)), Y with one row of class "
                "indicators a record",
            )
        columns, weight = self._votes(self.labels)
        if abs(weight - 1.0) > TOLERANCE:
            _refuse(term, self._text, "has not the weight that its labels have")
        return [list(column.values()) for column in columns]


def _refuse(term: LossTerm | LinearTerm, text: Text, reason: str) -> NoReturn:
    raise ProblemError(f"The private term {text(term.written)} {reason}.") from None
