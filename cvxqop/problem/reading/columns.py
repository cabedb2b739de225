"""Columns: one output of a record a column, each a sum of pieces, and what ties them together."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from cvxqop.problem.records.pieces import (
    Piece,
    Pieces,
    Signature,
    linear_part,
    product,
    times,
    total,
)

__all__ = [
    "CONSTANT",
    "TOLERANCE",
    "Columns",
    "centred",
    "is_offset",
    "layout_of",
    "line",
    "linear_columns",
    "products",
    "ratio",
    "restricted",
    "shared_row",
    "support",
]

Columns = list[Pieces]

CONSTANT: Signature = ((), None)
"""The signature of what is the same for every record."""

TOLERANCE = 1e-12


def products(constant: Columns, other: Columns) -> Columns:
    """Product, column by column, with an expression without variables."""
    return [product(one, own) for one, own in zip(constant, other, strict=True)]


def linear_columns(columns: Columns) -> Columns:
    """The pieces of each column with G ≠ 0, in canonical form: the row of each output."""
    return [linear_part(column.values()) for column in columns]


def is_offset(piece: Piece) -> bool:
    """Whether a piece counts as an offset.

    A private one that cancels does: a target of ones minus a public column of ones is no less an
    offset than any other target.
    """
    return bool(np.any(piece.g) or (piece.private and not np.any(piece.G.data)))


def ratio(own: Columns, base: Columns) -> float | None:
    """s with ``own`` = s · ``base``, rows of as many outputs; None if there is none.

    Decided on the structure and on public factors.
    """
    if [column.keys() for column in own] != [column.keys() for column in base]:
        return None
    pairs = [
        (one[key].G, p.G) for one, other in zip(own, base, strict=True) for key, p in other.items()
    ]
    s = float(pairs[0][0].data[0] / pairs[0][1].data[0])
    scale = max(float(np.max(np.abs(G.data))) for G, _ in pairs)
    return s if max(abs(G - s * H).max() for G, H in pairs) <= TOLERANCE * scale else None


def layout_of(rows: Columns) -> npt.NDArray[np.intp] | None:
    """Where the entries of θ that each output's row is on stand, (p, k).

    None if two outputs share an entry, or one has more than another.
    """
    supports = [support(row) for row in rows]
    if len({len(own) for own in supports}) > 1:
        return None
    layout = np.stack(supports, axis=1)
    return layout if np.unique(layout).size == layout.size else None


def support(row: Pieces) -> npt.NDArray[np.intp]:
    """The entries of θ that a row is on, in order."""
    indices = [piece.G.indices for piece in row.values()]
    return np.unique(np.concatenate(indices) if indices else []).astype(np.intp)


def centred(columns: Columns, centre: float) -> Columns:
    """Columns less a public number."""
    if centre == 0.0:
        return columns
    return [
        {key: replace(p, g=p.g - centre) if key == CONSTANT else p for key, p in own.items()}
        for own in columns
    ]


def restricted(row: Pieces, entries: npt.NDArray[np.intp]) -> Pieces:
    """A row on these entries of θ alone."""
    return {key: replace(p, G=sp.csr_array(p.G[:, entries])) for key, p in row.items()}


def shared_row(rows: Columns) -> bool:
    """Whether outputs have variables of their own, and the same row on them."""
    layout = layout_of(rows)
    if layout is None:
        return False
    first, *others = map(restricted, rows, layout.T)
    return all(abs((ratio([own], [first]) or 0.0) - 1.0) <= TOLERANCE for own in others)


def line(own: Columns, base: Columns) -> tuple[float, float] | None:
    """(a, b) with own = a · base + b in every output, public numbers; None if there are none."""
    if len(own) != len(base) or not any(linear_columns(own)):
        return None
    a = ratio(linear_columns(own), linear_columns(base))
    if a is None:
        return None
    shifts = {_shift(one, other, a) for one, other in zip(own, base, strict=True)}
    b = shifts.pop()
    return None if shifts or b is None else (a, b)


def _shift(own: Pieces, base: Pieces, a: float) -> float | None:
    """b with own = a · base + b."""
    b = 0.0
    sizes = [abs(p.g).max(initial=0.0) + abs(p.G).max() for p in own.values()]
    for key, piece in total([own, times(base, -a)]).items():
        rest = abs(piece.G).max()
        if key == CONSTANT:
            b = float(piece.g[0])
        else:
            rest = max(rest, float(np.max(np.abs(piece.g), initial=0.0)))
        if rest > TOLERANCE * max(sizes):
            return None
    return b
