"""Labels of a logistic loss: Σ_i log(1 + exp t_i) − y_i t_i, with t_i the row that the loss has.

The linear term is divided by the row: what is left is one number a record. For y in {0, 1} the
loss is that of labels ±1; for y in [0, 1] it is a mixture of both, with the same bounds on slope
and curvature.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from cvxqop import _cvxpy
from cvxqop.errors import ProblemError
from cvxqop.problem.losses.scalar import ScalarLoss, logistic, squared_hinge
from cvxqop.problem.private.data import PrivateData
from cvxqop.problem.reading.terms import LinearTerm, LossTerm
from cvxqop.problem.records.pieces import Column, Piece, Pieces, linear_part, product, times, total
from cvxqop.problem.records.rows import Labels

__all__ = ["check_signs", "read_labels"]

_TOLERANCE = 1e-12

Text = Callable[[Any], str]
Losses = Sequence[tuple[ScalarLoss, float | npt.NDArray[np.float64]]]


def check_signs(term: LossTerm, data: PrivateData, text: Text) -> None:
    """Refuse booleans where a margin loss has its signs: CVXPY multiplies by 0 and 1.

    Decided by the type that an array was given with. Booleans that multiply a variable alone are
    a feature, and those that enter a sum, such as 2y − 1, may be meant as they are.

    Raises
    ------
    ProblemError
        A boolean array multiplies the rows of the loss.
    """
    if term.loss not in (logistic, squared_hinge):
        return
    for node in _cvxpy.nodes(term.argument):
        if _cvxpy.kind(node) == "multiply" and any(
            _is_boolean(sign, data) and _has_rows(rows)
            for sign, rows in (node.args, node.args[::-1])
        ):
            raise ProblemError(
                f"{text(node)} in the term {text(term.written)} multiplies by an array of "
                "booleans, which CVXPY reads as 0 and 1, while the loss is written for labels of "
                "−1 and 1. Use np.where(y, 1.0, -1.0) in the problem and in private, or "
                "y.astype(float) if 0 and 1 are meant."
            )


def _is_boolean(node: Any, data: PrivateData) -> bool:
    """Whether a node holds what was given as booleans, up to shape and sign."""
    while _cvxpy.kind(node) in ("neg", "reshape", "transpose", "promote", "broadcast"):
        node = node.args[0]
    if not (_cvxpy.kind(node) in ("constant", "parameter") and node.ndim):
        return False
    return data.is_boolean(node) or bool(getattr(node, "is_boolean_valued", False))


def _has_rows(node: Any) -> bool:
    """Whether a variable meets an array in a node."""
    arrays = (_cvxpy.kind(leaf) != "variable" and leaf.ndim > 0 for leaf in _cvxpy.leaves(node))
    return _cvxpy.has_variables(node) and any(arrays)


def read_labels(
    base: Pieces,
    terms: Sequence[LossTerm],
    losses: Losses,
    linear: Sequence[tuple[LinearTerm, Pieces]],
    text: Text,
) -> Labels:
    """q with Σ linear terms = Σ_i q_i (a_i'θ), and the interval that q is cut to.

    Raises
    ------
    ProblemError
        If the linear terms are not a number a record times the row of the loss.
    """
    j = next(k for k, term in enumerate(terms) if term.loss is logistic)
    loss, weight = losses[j]
    first = linear[0][0]
    if np.ndim(weight) or any(np.ndim(term.weight) for term, _ in linear):
        _refuse(first, text, "has public weights, one a record; use logistic(-multiply(y, X @ w))")
    together = total(times(pieces, float(term.weight)) for term, pieces in linear)
    found = _divide(linear_part(together.values()), base)
    if found is None:
        _refuse(
            first,
            text,
            f"is linear, but not a number a record times the argument of {text(terms[j].written)}: "
            "both must have the same row",
        )
    # φ' has its values between 0 and the slope at one end, whose sign is that of the argument.
    end = float(weight) * float(np.sign(loss.derivative(np.zeros(1))[0])) * loss.slope
    return Labels(tuple(found.values()), min(0.0, -end), max(0.0, -end))


def _divide(linear: Pieces, base: Pieces) -> Pieces | None:
    """Pieces of q with linear = q · base, or None."""
    leading = next(iter(base.values()))
    quotient: Pieces = {}
    for piece in linear.values():
        columns = _remaining(piece, leading)
        ratio = None if columns is None else _ratio(piece.G, leading.G)
        if columns is not None and ratio is not None:
            part = Piece(columns, None, sp.csr_array((1, piece.G.shape[1])), np.array([ratio]))
            quotient = total([quotient, {part.signature: part}])
    back = linear_part(product(quotient, base).values()) if quotient else {}
    difference = total([linear, times(back, -1.0)])
    scale = max((abs(piece.G).max() for piece in linear.values()), default=0.0)
    gaps = [abs(piece.G).max() for piece in difference.values()]
    return quotient if quotient and max(gaps, default=0.0) <= _TOLERANCE * scale else None


def _remaining(piece: Piece, leading: Piece) -> tuple[Column, ...] | None:
    """Columns of ``piece`` that are left after those of ``leading``."""
    own = None if piece.matrix is None else piece.matrix.key
    if own != (None if leading.matrix is None else leading.matrix.key):
        return None
    needed = Counter(column.key for column in leading.columns)
    left = []
    for column in piece.columns:
        if needed[column.key] > 0:
            needed[column.key] -= 1
        else:
            left.append(column)
    return None if any(needed.values()) else tuple(left)


def _ratio(G: Any, base: Any) -> float | None:
    if G.nnz != base.nnz or not np.array_equal(G.indices, base.indices):
        return None
    ratio = float(G.data[0] / base.data[0])
    gap = float(np.max(np.abs(G.data - ratio * base.data)))
    return ratio if gap <= _TOLERANCE * float(np.max(np.abs(G.data))) else None


def _refuse(term: LinearTerm, text: Text, reason: str) -> NoReturn:
    raise ProblemError(f"The private term {text(term.written)} {reason}.") from None
