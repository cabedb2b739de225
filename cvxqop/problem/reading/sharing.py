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
)
from cvxqop.problem.reading.factors import outer_factor, row_parts
from cvxqop.problem.reading.linear.labels import read_labels, read_votes
from cvxqop.problem.reading.linear.squares import completed, constant_of, numbers_factor
from cvxqop.problem.reading.loss_terms import LinearTerm, LossTerm
from cvxqop.problem.reading.public import record_count
from cvxqop.problem.records.outputs import OutputRows, Outputs, stacked_numbers
from cvxqop.problem.records.pieces import Piece, Pieces, times
from cvxqop.problem.records.rows import AffineRows, Labels

__all__ = ["OWN_VARIABLES", "Assembled", "Group", "shared_row"]

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
        self.terms, self._ratios, self._columns = [term], [sign], [columns]
        self.labels: list[LinearTerm] = []
        self.squares: list[LinearTerm] = []

    def takes(self, term: LossTerm, rows: Columns, columns: Columns) -> bool:
        """Add a term of one output, if its row is that of the group."""
        found = ratio(rows, self.base) if len(rows) == 1 else None
        if found is None:
            return False
        self.terms.append(term)
        self._ratios.append(found)
        self._columns.append(columns)
        return True

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
        """The place of the first square among the terms."""
        return next((j for j, term in enumerate(self.terms) if term.loss.quadratic), None)

    def _votes(self, linear: Sequence[LinearTerm]) -> tuple[Columns, float]:
        return read_votes(self.terms[0], self.base, linear, self._affine, self._text)

    def assembled(self, dimension: int, data: PrivateData) -> Assembled:
        """Rows, losses and labels."""
        outer = 0.0
        losses: list[tuple[ScalarLoss | Multinomial | Radial, Any]] = []
        numbers = []
        for term, s, columns in zip(self.terms, self._ratios, self._columns, strict=True):
            outer = max(outer, outer_factor(term.argument, data) / abs(s))
            scaled = term.loss.scaled(s) if isinstance(term.loss, ScalarLoss) else term.loss
            losses.append((scaled, term.weight))
            numbers.append(
                [[replace(p, g=p.g / s) for p in own.values() if is_offset(p)] for own in columns]
            )
        terms: list[LossTerm | LinearTerm] = list(self.terms)
        moved = self._complete(numbers, losses, terms, outer, data)
        row, outputs = list(self.row.values()), None
        if self.layout is None:
            labels = self._labels(self.labels) if self.labels else None
            offsets = [own for (own,) in numbers]
            rows = AffineRows(row, offsets, self._n, dimension, labels)
        else:
            labelled = isinstance(self.terms[0].loss, Multinomial)
            own = self._probabilities(numbers[0]) if labelled else numbers[0]
            outputs = Outputs(self.layout, labelled)
            shape = (len(self.layout), outputs.count)
            rows = OutputRows(row, stacked_numbers(own), self._n, *shape)
        return Assembled(
            rows,
            tuple(losses),
            replace(row_parts(row, outer, self._n, rows.dimension), offset_factor=moved),
            outputs,
            tuple(self.base[0].values()),
            tuple(terms),
            tuple(self.labels),
            () if len(terms) > len(self.terms) else tuple(self.squares),
        )

    def _complete(
        self, numbers: Any, losses: Any, terms: Any, outer: float, data: PrivateData
    ) -> float:
        """Complete the squares; returns the public factor around the numbers that make offsets."""
        found = self._completed(self.squares) if self.squares else None
        if found is None or self._square is None:
            return outer
        offsets = data.dropped or any(map(any, numbers))
        constant = constant_of(found[0]) if self.layout is None else None
        if constant is not None:
            weight = losses[self._square][1]
            slope = constant * self.terms[self._square].loss.curvature
            losses.append((linear.scaled(slope * self._ratios[self._square] ** 2), weight))
            numbers.append([[]])
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


def shared_row(rows: Columns) -> bool:
    """Whether outputs have variables of their own, and the same row on them."""
    layout = layout_of(rows)
    if layout is None:
        return False
    first, *others = map(restricted, rows, layout.T)
    return all(abs((ratio([own], [first]) or 0.0) - 1.0) <= TOLERANCE for own in others)


def _refuse(term: LossTerm | LinearTerm, text: Text, reason: str) -> NoReturn:
    raise ProblemError(f"The private term {text(term.written)} {reason}.") from None
