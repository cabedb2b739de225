"""Squares that are completed: w Σ_i ½κ(t_i + c_i)² + q_i t_i has the offset c_i + q_i/(wκ).

A number q that is public and the same for all records is left beside the square: then nothing of
the offset is private, and no bound on it is needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from cvxqop.problem.reading.columns import CONSTANT, TOLERANCE, Columns
from cvxqop.problem.reading.factors import columns_factor
from cvxqop.problem.reading.linear.labels import divided
from cvxqop.problem.reading.loss_terms import LinearTerm, LossTerm
from cvxqop.problem.records.pieces import Piece, Pieces, linear_part, times, total

__all__ = ["completed", "constant_of", "numbers_factor"]


def completed(
    base: Pieces, term: LossTerm, own: Sequence[tuple[LinearTerm, Pieces]], curvature: float
) -> Pieces | None:
    """q/(wκ), one number a record, with Σ linear terms = Σ_i q_i (a_i'θ); None if there is none.

    Parameters
    ----------
    base : Pieces
        The row a.
    term : LossTerm
        The square, whose weight w is a number, or the weights of the linear terms are in proportion
        to its weights.
    own : sequence of (LinearTerm, Pieces)
        The linear terms.
    curvature : float
        κ of the square on the row a.
    """
    parts = []
    for linear, pieces in own:
        share = _share(linear.weight, term.weight)
        if share is None:
            return None
        parts.append(times(pieces, share / curvature))
    return divided(linear_part(total(parts).values()), base)


def _share(weight: Any, of: Any) -> float | None:
    """r with weight = r · of, for numbers or arrays of weights; None if there is none."""
    if np.ndim(weight) != np.ndim(of):
        return None
    weights, own = np.atleast_1d(weight), np.atleast_1d(of)
    if weights.shape != own.shape or not own.size:
        return None
    k = int(np.argmax(own))
    r = float(weights[k] / own[k])
    close = np.abs(weights - r * own) <= TOLERANCE * np.max(np.abs(weights))
    return r if np.all(close) else None


def constant_of(numbers: Pieces) -> float | None:
    """The public number that all records have; None where they differ or may differ."""
    if set(numbers) != {CONSTANT}:
        return None
    return float(numbers[CONSTANT].g[0])


def numbers_factor(columns: Columns) -> float:
    """Largest public factor around the listed arrays that numbers of a record are made of."""
    return max((_factor(piece) for own in columns for piece in own.values()), default=0.0)


def _factor(piece: Piece) -> float:
    return columns_factor(replace(piece)) * float(np.max(np.abs(piece.g), initial=0.0))
