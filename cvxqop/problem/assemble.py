"""From loss terms with their pieces to the rows that they share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from cvxqop._cvxpy import is_sparse
from cvxqop.errors import ProblemError
from cvxqop.problem.losses import ScalarLoss
from cvxqop.problem.rows import AffineRows, Piece, Signature
from cvxqop.problem.terms import LossTerm

__all__ = ["Assembled", "assemble"]

_TOLERANCE = 1e-12


@dataclass(frozen=True, eq=False)
class Assembled:
    """Rows shared by all terms, the losses on them, and what is public about the rows."""

    rows: AffineRows
    losses: tuple[tuple[ScalarLoss, Any], ...]
    private_row: bool
    public_norm: float


def assemble(
    terms: Sequence[LossTerm],
    pieces: Sequence[Sequence[Piece]],
    n: int,
    dimension: int,
    text: Callable[[Any], str],
) -> Assembled:
    """One row a record for all terms; a term whose row is s times it has the loss t ↦ φ(s t).

    Raises
    ------
    ProblemError
        If two terms have different rows.
    """
    base, sign = _base(pieces[0], terms[0], text)
    losses, offsets = [], []
    for term, own in zip(terms, pieces, strict=True):
        ratio = sign if own is pieces[0] else _ratio(base, own, term, terms[0], text)
        losses.append((term.loss.scaled(ratio), term.weight))
        offsets.append([replace(p, g=p.g / ratio) for p in own if np.any(p.g)])
    linear = list(base.values())
    private = any(piece.private for piece in linear)
    rows = AffineRows(linear, offsets, n, dimension)
    return Assembled(rows, tuple(losses), private, _public_norm(linear, n, dimension))


def _base(
    pieces: Sequence[Piece], term: LossTerm, text: Callable[[Any], str]
) -> tuple[dict[Signature, Piece], float]:
    """The pieces that make the row, with the sign of the first made positive."""
    linear = _linear(pieces)
    if not linear:
        raise ProblemError(
            f"The private term {text(term.written)} does not depend on a variable; remove it."
        )
    first = next(iter(linear.values())).G.data
    sign = 1.0 if first[0] > 0 else -1.0
    return {key: replace(p, G=p.G * sign) for key, p in linear.items()}, sign


def _linear(pieces: Sequence[Piece]) -> dict[Signature, Piece]:
    linear = {}
    for piece in pieces:
        G = sp.csr_array(piece.G)
        G.sum_duplicates()
        G.eliminate_zeros()
        if G.nnz:
            linear[piece.signature] = replace(piece, G=G)
    return linear


def _ratio(
    base: dict[Signature, Piece],
    pieces: Sequence[Piece],
    term: LossTerm,
    first: LossTerm,
    text: Callable[[Any], str],
) -> float:
    """s with row of ``pieces`` = s · base; decided on the structure and on public factors."""
    own = _linear(pieces)
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


def _public_norm(linear: Sequence[Piece], n: int, dimension: int) -> float:
    """Bound on what the public pieces add to R, by R² = R_private² + (…)².

    Where a public piece meets a private one on the same entries of θ, norms add instead of
    squares; the bound returned is of the public part alone, and R is enforced by clipping.
    """
    public = [piece for piece in linear if not piece.private]
    if not public:
        return 0.0
    constant = [piece for piece in public if not piece.leaves]
    if len(constant) == len(public):
        row = sum((piece.G.toarray()[0] for piece in constant), np.zeros(dimension))
        return float(np.linalg.norm(row))
    largest = 0.0
    for A, _ in AffineRows(public, [], n, dimension).blocks():
        squares = A.multiply(A).sum(axis=1) if is_sparse(A) else np.einsum("ij,ij->i", A, A)
        largest = max(largest, float(np.max(squares, initial=0.0)))
    return float(np.sqrt(largest))
