"""From a group of terms that share a row to a term of the private loss."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cvxqop.problem.losses.gradient_term import GradientTerm
from cvxqop.problem.losses.margin_term import MarginTerm
from cvxqop.problem.losses.open_loss import OpenLoss
from cvxqop.problem.losses.output_terms import LabelledTerm, RadialTerm, SquaresTerm
from cvxqop.problem.losses.radial import Radial
from cvxqop.problem.losses.terms import Term
from cvxqop.problem.private.persons import Persons
from cvxqop.problem.reading import refusals
from cvxqop.problem.reading.loss_terms import LossTerm
from cvxqop.problem.reading.sharing import Assembled
from cvxqop.problem.records.outputs import Outputs

__all__ = ["check_closed", "term_of"]


def check_closed(group: Assembled, text: Callable[[Any], str]) -> None:
    """Refuse a group that waits for a public number."""
    for term in group.terms:
        if isinstance(term, LossTerm) and isinstance(term.loss, OpenLoss):
            refusals.refuse_open(text(term.written), term.loss.lacks)
    beside = group.rows.beside
    for term, own in zip(group.terms, beside.weights, strict=False):
        if own is not None:
            refusals.refuse_open(text(term.written), "weight")
    if beside.labels is not None and np.isinf(beside.labels.high):
        refusals.refuse_open(text(group.terms[0].written), "labels")


def term_of(group: Assembled, dimension: int, dropped: bool, persons: Persons | None) -> Term:
    """Rows with their losses as one term of the private loss."""
    outputs = group.outputs or Outputs(np.arange(dimension)[:, None], labelled=False)
    shared: dict[str, Any] = {
        "rows": group.rows,
        "losses": group.losses,
        "row_parts": group.parts,
        "has_offset": group.rows.has_offset or dropped,
        "outputs": outputs,
        "dimension": dimension,
        "persons": persons,
        "sign": group.sign,
    }
    if group.products is not None:
        return GradientTerm(**shared, products=group.products)
    if isinstance(group.losses[0][0], Radial):
        return RadialTerm(**shared)
    kind = LabelledTerm if outputs.labelled else SquaresTerm if outputs.count > 1 else MarginTerm
    return kind(**shared)
