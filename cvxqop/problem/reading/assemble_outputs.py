"""From the one loss term with several outputs a record to its rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from cvxqop.errors import ProblemError
from cvxqop.problem.losses.multinomial import Multinomial
from cvxqop.problem.losses.scalar import squared
from cvxqop.problem.private.data import PrivateData
from cvxqop.problem.reading.assemble import Assembled, row_parts
from cvxqop.problem.reading.factors import outer_factor
from cvxqop.problem.reading.output_reader import OutputReader, outputs_of
from cvxqop.problem.reading.public import Stacking
from cvxqop.problem.reading.terms import LinearTerm, LossTerm, TermReader
from cvxqop.problem.records.pieces import Piece

__all__ = ["read_outputs"]

Text = Callable[[Any], str]


def read_outputs(
    reader: TermReader, data: PrivateData, stacking: Stacking, text: Text
) -> tuple[Assembled, tuple[Piece, ...]]:
    """Rows, loss and layout of a loss with several outputs, and the row of the first one in θ.

    Raises
    ------
    ProblemError
        If there is another loss beside it, it is not a squared or multinomial logistic loss, or
        its outputs do not share one row.
    """
    _check_alone(reader.terms, text)
    term = reader.terms[0]
    argument = outputs_of(term.argument, data.records)
    own = OutputReader(data, stacking, text, term.written, argument.shape)
    if term.loss is squared:
        if reader.linear:
            _refuse(reader.linear[0], text, "is linear; write it inside the square, as a target")
        rows, outputs, shared = own.squared(argument)
    elif isinstance(term.loss, Multinomial):
        rows, outputs, shared = own.labelled(argument, _labels(term, reader.linear, text))
    else:
        _refuse(
            term,
            text,
            "has several outputs a record, which sum_squares(X @ Theta - Y) and "
            "log_sum_exp(X @ Theta, axis=1) may have and other losses not: a record's Hessian may "
            "then have rank above one. Use one output a record",
        )
    outer = 1.0 if outputs.labelled else outer_factor(argument, data)
    parts = row_parts(rows.pieces, outer, rows.n, rows.dimension)
    weight = float(term.weight)
    return Assembled(rows, ((term.loss, weight),), parts, outputs), shared.written


def _labels(term: LossTerm, linear: Sequence[LinearTerm], text: Text) -> list[tuple[float, Any]]:
    """(factor, expression) of the linear terms, factors in units of the weight of the loss."""
    if not linear:
        _refuse(
            term,
            text,
            "has no labels: subtract sum(multiply(Y, X @ Theta)), Y with one row of class "
            "indicators a record",
        )
    for own in linear:
        if len(own.factors) != 1 or np.ndim(own.weight):
            _refuse(
                own, text, "has weights, one a record, which labels of several classes have not"
            )
    return [(float(own.weight) / float(term.weight), own.factors[0]) for own in linear]


def _check_alone(terms: Sequence[LossTerm], text: Text) -> None:
    if len(terms) > 1:
        raise ProblemError(
            f"The private terms {text(terms[0].written)} and {text(terms[1].written)} cannot be "
            "added: a loss with several outputs a record must be the only one. Put all outputs "
            "into one matrix Theta."
        )
    if np.ndim(terms[0].weight):
        _refuse(terms[0], text, "has public weights, one a record, and several outputs a record")


def _refuse(term: LossTerm | LinearTerm, text: Text, reason: str) -> NoReturn:
    raise ProblemError(f"The private term {text(term.written)} {reason}.") from None
