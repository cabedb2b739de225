"""Constant columns of the rows, such as the 1 of an intercept, at a size that suits the noise.

A row a and coefficients θ may be taken as a' = Ta and θ' = T⁻¹θ, T diagonal and public: a'θ is the
same, so that the loss is. Clipping, noise, ridge and certificate then belong to a' and θ', and a
column of ones that is made small leaves R² = R_x² + τ² little more than the features need. T is one
but for entries of θ that only constant columns meet, and powers of two, so that taking numbers
there and back rounds nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import cvxpy as cp
import numpy as np
import numpy.typing as npt

from cvxqop import _cvxpy
from cvxqop.problem.bounds import Bounds
from cvxqop.problem.erm import ERM
from cvxqop.problem.losses.gradient_term import GradientTerm
from cvxqop.problem.losses.recognised import RecognisedLoss
from cvxqop.problem.losses.terms import Term
from cvxqop.problem.reading.factors import row_parts
from cvxqop.problem.records.pieces import Piece
from cvxqop.problem.records.rows import AffineRows

__all__ = ["scaled"]

Array = npt.NDArray[np.float64]

_LARGEST = 100
"""Powers of two beyond this one are not needed, and their squares must not overflow."""


def scaled(erm: ERM, bounds: Bounds) -> ERM:
    """The problem in θ' = T⁻¹θ, or the problem itself where no column is constant.

    T is R_x/(√d |v|) to the nearest power of two for a constant column v beside d features of norm
    R_x: their own root mean square, were they all alike.

    Parameters
    ----------
    erm : ERM
        As it was read. Its variables stand for θ' in what comes back: r and C hold T times them.
    bounds : Bounds
        Gives R_x.
    """
    loss = erm.loss
    if not isinstance(loss, RecognisedLoss):
        return erm
    # Slopes of linear terms, alone or in a square, are bounded as written.
    if any(isinstance(own, GradientTerm) or own.row_parts.completed for own in loss.terms):
        return erm
    T = _scale(loss.terms, bounds, erm.dimension)
    for variable, place in erm.places():
        if set(_cvxpy.attributes(variable)) - {"nonneg", "nonpos"}:
            T[place] = 1.0
    for layout in (term.outputs.layout for term in loss.terms):  # outputs share their rows
        T[layout[np.any(T[layout] == 1.0, axis=1)]] = 1.0
    where: dict[Any, Any] = {
        variable: cp.multiply(T[place].reshape(variable.shape, order="F"), variable)
        for variable, place in erm.places()
        if np.any(T[place] != 1.0)
    }
    if not where:
        return erm
    rest = [] if erm.regulariser is None else [erm.regulariser]
    r = [_cvxpy.substituted(node, where) for node in rest]
    C = [_substituted(constraint, where) for constraint in erm.constraints]
    if any(node is None for node in (*r, *C)):
        return erm
    terms = tuple(_with(term, T[term.outputs.layout[:, 0]]) for term in loss.terms)
    return replace(
        erm,
        loss=replace(loss, terms=terms),
        regulariser=r[0] if r else None,
        constraints=C,
        scale=T,
        unscaled=erm,
        replaced=(*erm.replaced, _sentence([v.name() for v in where], T)),
    )


def _scale(terms: Sequence[Term], bounds: Bounds, dimension: int) -> Array:
    """T (D,), the smallest that a term asks for."""
    T = np.full(dimension, np.inf)
    if len(terms) > 1 and any(term.outputs.count > 1 for term in terms):
        return np.ones(dimension)
    for term in terms:
        own, layout = _asked(term, bounds), term.outputs.layout
        T[layout] = np.minimum(T[layout], own[:, None])
        T[layout[own < 0.0]] = -1.0  # some record has a number of its own there
    return np.where(np.isinf(T) | (T < 0.0), 1.0, T)


def _asked(term: Term, bounds: Bounds) -> Array:
    """What suits the row (p,) of a term: −1 where T must be one, infinity where all is the same."""
    constants, features = np.zeros(term.rows.dimension), np.zeros(term.rows.dimension, dtype=bool)
    for piece in _bounded(term):
        if _constant(piece):
            constants[piece.G.indices] += np.abs(piece.G.data)
        else:
            features[piece.G.indices] = True
    norm = term.row_parts.factor * bounds.row_norm if term.row_parts.private else 0.0
    if norm == 0.0 or not np.any(features):
        return np.where(features | (constants > 0.0), -1.0, np.inf)
    alike = norm / math.sqrt(np.count_nonzero(features))
    with np.errstate(divide="ignore"):
        power = np.clip(np.rint(np.log2(alike / constants)), -_LARGEST, _LARGEST)
    asked = np.where(constants > 0.0, np.exp2(power), np.inf)
    return np.where(features, -1.0, asked)


def _constant(piece: Piece) -> bool:
    """Whether a piece is one number for all records, up to labels, which are at most one."""
    return piece.matrix is None and all(column.leaf.is_label for column in piece.columns)


def _bounded(term: Term) -> list[Piece]:
    """The pieces of its row, a label that multiplies all of them as one."""
    assert isinstance(term.rows, AffineRows)
    label = term.sign
    return [piece if label is None else piece.with_label(label) for piece in term.rows.pieces]


def _with(term: Term, T: Array) -> Term:
    """The term with the rows Ta."""
    assert isinstance(term.rows, AffineRows)
    found = replace(term, rows=term.rows.times(T))
    before = term.row_parts
    parts = row_parts(_bounded(found), before.offset_factor, term.rows.n, len(T))
    return replace(found, row_parts=replace(parts, written_norm=before.public_norm))


def _substituted(constraint: Any, where: dict[Any, Any]) -> Any:
    """A relation between sides in θ'; None for other sets of these variables."""
    if not any(variable in where for variable in _cvxpy.variables(constraint)):
        return constraint
    if not _cvxpy.is_relation(constraint):
        return None
    sides = [_cvxpy.substituted(side, where) for side in constraint.args]
    return None if any(s is None for s in sides) else _cvxpy.related(constraint, *sides)


def _sentence(names: Sequence[str], T: Array) -> str:
    sizes = " and ".join(f"{size:g}" for size in np.unique(T[T != 1.0]))
    return (
        f"A constant column, of {', '.join(names)}, counts {sizes} times in ‖a‖, for the noise and "
        f"for its ridge, and its coefficient divided by that: the loss is the same."
    )
