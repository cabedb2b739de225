"""From loss terms with their pieces to the rows that they share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cvxqop._cvxpy import is_sparse
from cvxqop.errors import ProblemError
from cvxqop.problem.losses.multinomial import Multinomial
from cvxqop.problem.losses.scalar import ScalarLoss
from cvxqop.problem.parts import RowParts
from cvxqop.problem.private.data import PrivateData
from cvxqop.problem.reading.factors import outer_factor, row_factor
from cvxqop.problem.reading.labels import read_labels
from cvxqop.problem.reading.terms import LinearTerm, LossTerm
from cvxqop.problem.records.outputs import Outputs
from cvxqop.problem.records.pieces import Piece, Pieces, Signature, linear_part
from cvxqop.problem.records.rows import AffineRows

__all__ = ["Assembled", "assemble", "row_parts"]

_TOLERANCE = 1e-12


@dataclass(frozen=True, eq=False)
class Assembled:
    """Rows shared by all terms, the losses on them, and what is public about the rows."""

    rows: AffineRows
    losses: tuple[tuple[ScalarLoss | Multinomial, Any], ...]
    parts: RowParts
    outputs: Outputs | None = None


def assemble(
    terms: Sequence[LossTerm],
    pieces: Sequence[Sequence[Piece]],
    labels: Sequence[tuple[LinearTerm, Pieces]],
    n: int,
    dimension: int,
    data: PrivateData,
    text: Callable[[Any], str],
) -> Assembled:
    """One row a record for all terms; a term whose row is s times it has the loss t ↦ φ(s t).

    ``labels`` are the linear terms with their pieces; they must be a number a record times the row.

    Raises
    ------
    ProblemError
        If two terms have different rows.
    """
    base, sign = _base(pieces[0], terms[0], text)
    losses: list[tuple[ScalarLoss, Any]] = []
    offsets = []
    outer = 0.0
    for term, own in zip(terms, pieces, strict=True):
        ratio = sign if own is pieces[0] else _ratio(base, own, term, terms[0], text)
        assert isinstance(term.loss, ScalarLoss)
        losses.append((term.loss.scaled(ratio), term.weight))
        offsets.append([replace(p, g=p.g / ratio) for p in own if _is_offset(p)])
        outer = max(outer, outer_factor(term.argument, data) / abs(ratio))
    linear = list(base.values())
    found = read_labels(base, terms, losses, labels, text) if labels else None
    rows = AffineRows(linear, offsets, n, dimension, found)
    return Assembled(rows, tuple(losses), row_parts(linear, outer, n, dimension))


def _is_offset(piece: Piece) -> bool:
    """Whether a piece counts as an offset.

    A private one that cancels does: a target of ones minus a public column of ones is no less an
    offset than any other target.
    """
    return bool(np.any(piece.g) or (piece.private and not np.any(piece.G.data)))


def _base(
    pieces: Sequence[Piece], term: LossTerm, text: Callable[[Any], str]
) -> tuple[dict[Signature, Piece], float]:
    """The pieces that make the row, with the sign made positive where φ is even."""
    linear = linear_part(pieces)
    if not linear:
        raise ProblemError(
            f"The private term {text(term.written)} does not depend on a variable; remove it."
        )
    first = next(iter(linear.values())).G.data
    sign = -1.0 if first[0] < 0 and term.loss.even else 1.0
    return {key: replace(p, G=p.G * sign) for key, p in linear.items()}, sign


def _ratio(
    base: dict[Signature, Piece],
    pieces: Sequence[Piece],
    term: LossTerm,
    first: LossTerm,
    text: Callable[[Any], str],
) -> float:
    """s with row of ``pieces`` = s · base; decided on the structure and on public factors."""
    own = linear_part(pieces)
    if own.keys() == base.keys():
        known = next(iter(base.values())).G
        other = next(iter(own.values())).G
        ratio = float(other.data[0] / known.data[0])
        scale = max(float(np.max(np.abs(piece.G.data))) for piece in own.values())
        gaps = [abs(own[key].G - ratio * piece.G).max() for key, piece in base.items()]
        if max(gaps) <= _TOLERANCE * scale:
            return ratio
    raise ProblemError(
        f"The private terms {text(first.written)} and {text(term.written)} have different rows: a "
        "record enters through two rows, its Hessian may have rank above one, and the mechanisms "
        "for it do not exist yet. Several terms must share the same a in φ(a'θ + c)."
    )


def row_parts(linear: Sequence[Piece], outer: float, n: int, dimension: int) -> RowParts:
    """What is private and what is public in the row that pieces make.

    ``outer`` is the factor around the whole argument.
    """
    private = [piece for piece in linear if not piece.label_only]
    public = [piece for piece in linear if piece.label_only]
    touched = set(np.concatenate([p.G.indices for p in private]).tolist()) if private else set()
    overlap = any(touched & set(piece.G.indices.tolist()) for piece in public)
    norm = _largest_norm(public, n, dimension)
    return RowParts(bool(private), norm, overlap, row_factor(private, outer), outer)


def _largest_norm(public: Sequence[Piece], n: int, dimension: int) -> float:
    """Largest norm over the records of the row that the public pieces make.

    The labels of `glm_loss` are no larger than one; a part of them does not depend on their values.
    """
    labelled = [piece for piece in public if piece.private]
    if labelled:
        own = sum(float(np.linalg.norm(piece.G.data)) for piece in labelled)
        return own + _largest_norm([p for p in public if not p.private], n, dimension)
    if not any(piece.leaves for piece in public):
        row = sum((piece.G.toarray()[0] for piece in public), np.zeros(dimension))
        return float(np.linalg.norm(row))
    largest = 0.0
    for A, _ in AffineRows(public, [], n, dimension).blocks():
        squares = A.multiply(A).sum(axis=1) if is_sparse(A) else np.einsum("ij,ij->i", A, A)
        largest = max(largest, float(np.max(squares, initial=0.0)))
    return float(np.sqrt(largest))
