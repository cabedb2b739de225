"""From loss terms to groups: the terms of a group share one row a record, up to a factor."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NoReturn

import numpy as np

from cvxqop import _cvxpy
from cvxqop.errors import ProblemError
from cvxqop.problem.losses.multinomial import Multinomial
from cvxqop.problem.losses.radial import Radial
from cvxqop.problem.losses.scalar import linear
from cvxqop.problem.private.data import PrivateData
from cvxqop.problem.reading import checks, refusals
from cvxqop.problem.reading.affine import AffineReader
from cvxqop.problem.reading.columns import (
    Columns,
    centred,
    linear_columns,
    shared_row,
    support,
)
from cvxqop.problem.reading.factors import row_parts
from cvxqop.problem.reading.linear.alone import products_of, row_of
from cvxqop.problem.reading.linear.labels import check_signs
from cvxqop.problem.reading.loss_terms import LinearTerm, LossTerm
from cvxqop.problem.reading.public import Stacking, outputs_of, records_of
from cvxqop.problem.reading.sharing import OWN_VARIABLES, Assembled, Group
from cvxqop.problem.reading.terms import TermReader
from cvxqop.problem.records.rows import AffineRows

__all__ = ["assemble"]

Text = Callable[[Any], str]


def assemble(
    reader: TermReader, data: PrivateData, stacking: Stacking, text: Text
) -> list[Assembled]:
    """The groups of the terms that were split, in the order of their first terms.

    A term whose row is s times that of a group has the loss t ↦ φ(s t) there. The outputs of a
    square or a multinomial loss that have one row are a group by themselves; those of other losses
    are terms of their own. Linear terms are labels of the group whose row they have, or complete
    its square, or are a group by themselves.

    Raises
    ------
    ProblemError
        If a term is of no form that is known, the terms do not run over the same records, or a
        linear term could be labels of several groups.
    """
    for term in reader.terms:
        checks.check_outputs(term, data, text)
    n = checks.common_count(reader.terms, reader.linear, data, text)
    checks.check_weights(reader.terms, n, data, text)
    affine = AffineReader(data, stacking, text)
    groups: list[Group] = []
    for term in reader.terms:
        check_signs(term, data, text)
        columns = centred(affine.read(term.argument, term.written), term.centre)
        for own, part in _outputs(term, columns):
            rows = linear_columns(part)
            if not any(group.takes(own, rows, part) for group in groups):
                groups.append(Group(own, rows, part, n, affine, data, text))
    _check_covered(groups, stacking, text)
    written = [own.written for own in reader.terms] + [own.written for own in reader.linear]
    alone = [
        _alone(own, affine, (n, written[0]), stacking.dimension, data, text)
        for own in _unassigned(reader.linear, groups, data, text)
    ]
    return [*(group.assembled(stacking.dimension) for group in groups), *alone]


def _outputs(term: LossTerm, columns: Columns) -> Iterator[tuple[LossTerm, Columns]]:
    """The term with all of its outputs, or with one after the other."""
    if len(columns) == 1 or isinstance(term.loss, Multinomial | Radial):
        yield term, columns
        return
    if term.loss.quadratic and not np.ndim(term.weight) and shared_row(linear_columns(columns)):
        yield term, columns
        return
    weights = np.asarray(term.weight)
    for j, column in enumerate(columns):
        own = term
        if weights.size > 1:
            each = weights.reshape(-1, len(columns))[:, j]
            alike = each.size and np.all(each == each[0])
            own = replace(term, weight=float(each[0]) if alike else each)
        yield own, [column]


def _unassigned(
    linear_terms: Sequence[LinearTerm], groups: Sequence[Group], data: PrivateData, text: Text
) -> list[LinearTerm]:
    """Give linear terms to the groups that they are labels of, or whose square they complete; what
    is left belongs to none.

    Beside losses that take labels, what is left has none of their arrays: else it was meant to be
    labels, and is refused.
    """
    takers = [group for group in groups if any(term.takes_labels for term in group.terms)]
    if linear_terms and len(takers) == 1 and takers[0].fits(linear_terms):
        takers[0].labels += linear_terms
        return []
    left = []
    for own in linear_terms:
        for parts in ([own], _columns(own, data)):
            places = [_places(part, takers, groups) for part in parts]
            if places and all(len(found) == 1 for found in places):
                for part, (place,) in zip(parts, places, strict=True):
                    place.append(part)
                break
        else:
            found = _places(own, takers, groups)
            if not found and _apart(own, takers, data):
                left.append(own)
            elif not found and len(takers) == 1:
                takers[0].labels.append(own)  # which says why it cannot be
            else:
                count = "more than one" if found else "none"
                _refuse(
                    own,
                    text,
                    f"is linear, and could be labels of {count} of the losses that take labels: "
                    "write it as sum(multiply(y, t)) with the argument t of one of them",
                )
    return left


def _columns(own: LinearTerm, data: PrivateData) -> list[LinearTerm]:
    """A linear term of several outputs a record, output by output."""
    outputs = outputs_of(own.factors[0], data.records) if len(own.factors) == 1 else None
    count = 0 if outputs is None or np.ndim(own.weight) else int(outputs.shape[1])
    return [replace(own, output=j) for j in range(count)]


def _places(
    own: LinearTerm, takers: Sequence[Group], groups: Sequence[Group]
) -> list[list[LinearTerm]]:
    """Where a linear term may go: to the labels of a loss, or else to a square."""
    found = [group.labels for group in takers if group.fits([own])]
    return found or [group.squares for group in groups if group.completes(own)][:1]


def _apart(own: LinearTerm, takers: Sequence[Group], data: PrivateData) -> bool:
    """Whether a linear term has none of the private arrays of some groups, none of which waits for
    labels."""
    terms = [term for group in takers for term in group.terms]
    nodes = [node for term in terms for node in (term.argument, *term.private)]
    taken = {name for node in nodes for name in data.found_in(node)}
    waiting = any(group.layout is not None for group in takers)
    return not waiting and not any(
        name in taken for factor in own.factors for name in data.found_in(factor)
    )


def _alone(
    own: LinearTerm,
    affine: AffineReader,
    known: tuple[int, Any],
    dimension: int,
    data: PrivateData,
    text: Text,
) -> Assembled:
    """A linear term as a loss by itself; ``known`` are n and a term that has it."""
    if np.ndim(own.weight):
        _refuse(
            own,
            text,
            "is linear and has public weights, one a record, around it: write them inside, "
            "sum(multiply(weights, X @ w))",
        )
    n, _ = known
    counts = [(records_of(factor, data.records), own.written) for factor in own.factors]
    for factor, (count, _) in zip(own.factors, counts, strict=True):
        if count is None:
            _refuse(own, text, refusals.of_shape(factor, data.count_is_private))
    checks.check_counts([known, *counts], text)
    row = row_of(own, affine, data.records)
    if not row:
        _refuse(own, text, "does not depend on a variable; remove it")
    pieces = list(row.values())
    return Assembled(
        AffineRows(pieces, [[]], n, dimension),
        ((linear, 1.0),),
        row_parts(pieces, 1.0, n, dimension),
        None,
        tuple(pieces),
        (own,),
        products=products_of(pieces),
    )


def _check_covered(groups: Sequence[Group], stacking: Stacking, text: Text) -> None:
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
            _refuse(term, text, OWN_VARIABLES)


def _refuse(term: LossTerm | LinearTerm, text: Text, reason: str) -> NoReturn:
    raise ProblemError(f"The private term {text(term.written)} {reason}.") from None
