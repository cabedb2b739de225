"""Labels of a loss: Σ_i log(1 + exp t_i) − y_i t_i, with t_i the row that the loss has.

The linear term is divided by the row: what is left is one number a record. For y in {0, 1} the
logistic loss is that of labels ±1; for y in [0, 1] it is a mixture of both, with the same bounds
on slope and curvature. Labels of other losses, such as counts, need a public bound.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

import numpy as np
import scipy.sparse as sp

from cvxqop import _cvxpy
from cvxqop.errors import ProblemError
from cvxqop.problem.losses.scalar import ScalarLoss, logistic, squared_hinge
from cvxqop.problem.private.data import PrivateData
from cvxqop.problem.reading.affine import AffineReader
from cvxqop.problem.reading.columns import (
    CONSTANT,
    TOLERANCE,
    Columns,
    is_offset,
    linear_columns,
    ratio,
)
from cvxqop.problem.reading.loss_terms import LinearTerm, LossTerm
from cvxqop.problem.records.beside import Labels
from cvxqop.problem.records.pieces import (
    Column,
    Leaf,
    Piece,
    Pieces,
    linear_part,
    product,
    times,
    total,
)

__all__ = ["check_signs", "check_targets", "divided", "read_labels", "read_votes", "takes_signs"]

Text = Callable[[Any], str]


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


def takes_signs(term: LossTerm, columns: Columns) -> bool:
    """Whether what multiplies the whole row of a loss is a label, ±1, and no weight.

    It is in logistic losses, and where there is a public number beside it, as in 1 − y t. Other
    losses φ(s t) may have a weight s inside them: those with φ(s t) = s^p φ(t), and even ones.
    Private targets decide nothing: CVXPY leaves one of zeros out.
    """
    (own,) = columns
    if term.loss is logistic or term.centre or (CONSTANT in own and np.any(own[CONSTANT].g)):
        return True
    return isinstance(term.loss, ScalarLoss) and not (term.loss.even or _homogeneous(term.loss))


def check_targets(term: LossTerm, columns: Columns, sign: Leaf, text: Text) -> None:
    """Refuse a target that labels multiply, for then they may be a scale of the record.

    Raises
    ------
    ProblemError
        There is one, and the loss is not logistic.
    """
    (own,) = columns
    targets = [piece for piece in own.values() if is_offset(piece) and not np.any(piece.G.data)]
    if term.loss is not logistic and any(sign.key == one.key for p in targets for one in p.leaves):
        raise ProblemError(
            f"The private term {text(term.written)} multiplies by {sign.name} a target as well as "
            "the row and the 1 of an intercept, so that it may be a scale and not a label. List "
            "the products: (s X) @ w + s b - (s y), computed in NumPy."
        ) from None


def _homogeneous(loss: ScalarLoss) -> bool:
    """Whether φ(s t) = s^p φ(t) for s > 0, tried at a few points."""
    with np.errstate(all="ignore"):
        values = loss.value(np.array([[1.0, 2.0, 4.0], [-1.0, -2.0, -4.0]]))
    first, second, third = values.T
    return bool(np.allclose(first * third, second * second, rtol=1e-6, atol=1e-12))


def read_labels(
    base: Pieces,
    terms: Sequence[LossTerm],
    ratios: Sequence[float],
    linear: Sequence[tuple[LinearTerm, Pieces]],
    text: Text,
) -> Labels:
    """q with Σ linear terms = Σ_i q_i (a_i'θ), and the interval that q is cut to.

    Raises
    ------
    ProblemError
        If the linear terms are not a number a record times the row of the loss.
    """
    takers = [k for k, term in enumerate(terms) if term.takes_labels]
    j = next((k for k in takers if terms[k].loss is logistic), takers[0])
    weight = terms[j].weight
    first = linear[0][0]
    if np.ndim(weight) or any(np.ndim(term.weight) for term, _ in linear):
        told = "; use logistic(-multiply(y, X @ w))" if terms[j].loss is logistic else ""
        _refuse(first, text, f"has public weights, one a record{told}")
    together = total(times(pieces, float(term.weight)) for term, pieces in linear)
    found = divided(linear_part(together.values()), base)
    if found is None:
        _refuse(
            first,
            text,
            f"is linear, but not a number a record times the argument of {text(terms[j].written)}: "
            "both must have the same row",
        )
    if terms[j].loss is not logistic:
        if list(found) == [CONSTANT]:  # a public number, beside a loss with private weights
            size = abs(float(found[CONSTANT].g[0]))
            return Labels(tuple(found.values()), -size, size, 1.0)
        unit = abs(float(weight) * ratios[j])
        return Labels(tuple(found.values()), -np.inf, np.inf, unit)
    # The slope of φ(s t) has its values between 0 and s times that of φ at one end.
    end = float(weight) * ratios[j] * logistic.slope
    weighted = j if terms[j].private else None
    return Labels(tuple(found.values()), min(0.0, -end), max(0.0, -end), weighted=weighted)


def read_votes(
    term: LossTerm,
    base: Columns,
    linear: Sequence[LinearTerm],
    reader: AffineReader,
    text: Text,
) -> tuple[Columns, float]:
    """y with Σ linear terms = −weight · Σ_i y_i't_i, and the sum of the factors that y is made of.

    Raises
    ------
    ProblemError
        If the linear terms are not products of one row of labels a record and the argument t.
    """
    found, total_factor = [], 0.0
    for own in linear:
        if len(own.factors) != 1 or np.ndim(own.weight):
            _refuse(
                own, text, "has weights, one a record, which labels of several classes have not"
            )
        for factor, labels, argument in _products(own.factors[0], reader):
            columns = reader.read(argument, own.written)
            alike = labels is not None and labels.shape == argument.shape and labels.ndim == 2
            scale = ratio(linear_columns(columns), base) if alike else None
            if scale is None or any(is_offset(p) for column in columns for p in column.values()):
                _refuse(
                    own,
                    text,
                    "is linear, but not of the form multiply(Y, T) with the argument T of the "
                    "log_sum_exp and one row of labels a record",
                )
            scale *= -factor * float(own.weight) / float(term.weight)
            total_factor += scale
            found.append([times(y, scale) for y in reader.read(labels, own.written)])
    return [total(column) for column in zip(*found, strict=True)], total_factor


def _products(node: Any, reader: AffineReader) -> Iterator[tuple[float, Any, Any]]:
    """Summands factor · Y ∘ T of a sum over all entries, Y without variables or None."""
    kind = _cvxpy.kind(node)
    scaled = reader.scaled(node)
    if scaled is not None:
        inner = _products(scaled[1], reader)
        yield from ((scaled[0] * factor, labels, own) for factor, labels, own in inner)
    elif kind in ("add", "sum", "conj", "transpose"):
        for argument in node.args[: None if kind == "add" else 1]:
            yield from _products(argument, reader)
    elif kind == "multiply" and not all(map(_cvxpy.has_variables, node.args)):
        labels, own = sorted(node.args, key=_cvxpy.has_variables)
        turned = _cvxpy.kind(own) == "transpose"
        yield 1.0, labels.T if turned else labels, own.args[0] if turned else own
    else:
        yield 1.0, None, node


def divided(linear: Pieces, base: Pieces) -> Pieces | None:
    """Pieces of q with linear = q · base, or None."""
    leading = next(iter(base.values()))
    quotient: Pieces = {}
    for piece in linear.values():
        columns = _remaining(piece, leading)
        key = leading.signature
        factor = None if columns is None else ratio([{key: piece}], [{key: leading}])
        if columns is not None and factor is not None:
            part = Piece(columns, None, sp.csr_array((1, piece.G.shape[1])), np.array([factor]))
            quotient = total([quotient, {part.signature: part}])
    back = linear_part(product(quotient, base).values()) if quotient else {}
    difference = total([linear, times(back, -1.0)])
    scale = max((abs(piece.G).max() for piece in linear.values()), default=0.0)
    gaps = [abs(piece.G).max() for piece in difference.values()]
    return quotient if quotient and max(gaps, default=0.0) <= TOLERANCE * scale else None


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


def _refuse(term: LinearTerm, text: Text, reason: str) -> NoReturn:
    raise ProblemError(f"The private term {text(term.written)} {reason}.") from None
