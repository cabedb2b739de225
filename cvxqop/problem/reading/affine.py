"""From the argument of a loss to rows: a structural walk that checks one record, one row.

Every node on the way down has one entry a record. Whatever combines entries of different records
is refused; the decision looks at the structure of the expression and at public arrays, never at
the values of a private one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np
import scipy.sparse as sp

from cvxqop import _cvxpy
from cvxqop.errors import ProblemError
from cvxqop.problem.private.data import PrivateData
from cvxqop.problem.reading import refusals
from cvxqop.problem.reading.factor import Factor
from cvxqop.problem.reading.matrix import MatrixReader
from cvxqop.problem.reading.public import (
    AffineMap,
    Stacking,
    affine_map,
    constant_array,
    is_plain_identity,
    number,
    record_count,
)
from cvxqop.problem.records.pieces import Piece, Pieces, product, times, total

__all__ = ["AffineReader"]


class AffineReader:
    """Reads the argument of a loss into pieces.

    Parameters
    ----------
    private : PrivateData
        Which leaves are private.
    stacking : Stacking
        The order of the variables in θ.
    text : callable
        Formats an expression without the entries of arrays.
    """

    def __init__(
        self, private: PrivateData, stacking: Stacking, text: Callable[[Any], str]
    ) -> None:
        self._private, self._stacking, self._text = private, stacking, text
        self._matrices = MatrixReader(private, text)
        self._term: Any = None
        self._n = 0

    def read(self, argument: Any, term: Any) -> list[Piece]:
        """Pieces of ``argument``, an expression with one entry a record, in ``term``.

        Raises
        ------
        ProblemError
            If the argument is not affine, mixes records or has several outputs a record.
        """
        if _cvxpy.holds_records(argument):
            return list(argument.pieces(self._stacking))
        return list(self._read(argument, term).values())

    def read_product(self, factors: Sequence[Any], term: Any) -> Pieces:
        """Pieces of a product, record by record, of expressions with one entry a record."""
        result: Pieces | None = None
        for factor in sorted(factors, key=_cvxpy.has_variables, reverse=True):
            own = self._read(factor, term)
            result = own if result is None else product(own, result)
        return result or {}

    def _read(self, argument: Any, term: Any) -> Pieces:
        self._term = term
        n = record_count(argument)
        if n is None:
            reason = refusals.of_shape(argument, self._private.count_is_private)
            raise ProblemError(f"The private term {self._text(term)} {reason}.")
        counted = self._private.count_is_private and argument.ndim
        if counted and self._private.records not in (None, n):
            reason = refusals.of_count(argument)
            raise ProblemError(f"The private term {self._text(term)} {reason}.")
        self._n = n
        return self._walk(argument)

    def _walk(self, node: Any) -> Pieces:
        kind = _cvxpy.kind(node)
        if self._is_one_number(node):
            return self._scalar(node)
        if record_count(node) != self._n:
            self._refuse(node, "does not have one entry a record")
        if kind == "add":
            return total(self._walk(argument) for argument in node.args)
        if kind == "neg":
            return times(self._walk(node.args[0]), -1.0)
        if kind in ("reshape", "transpose", "conj") and record_count(node.args[0]) == self._n:
            return self._walk(node.args[0])
        if kind in ("promote", "broadcast"):
            return self._broadcast(node)
        if kind == "multiply":
            return self._multiply(node, *node.args)
        if kind == "divide":
            return self._divide(node)
        if kind == "matmul":
            return self._matmul(node, *node.args)
        if self._private.contains(node):
            return self._private_node(node, kind)
        return self._public_node(node)

    def _private_node(self, node: Any, kind: str) -> Pieces:
        if kind in ("constant", "parameter"):
            return total([self._array(self._matrices.column(node, self._term))])
        if kind == "index" and not _cvxpy.has_variables(node):
            return total(map(self._array, self._matrices.indexed_column(node, self._term)))
        if kind in ("abs", "maximum", "power", "logistic", "huber", "pnorm"):
            return self._refuse(node, "is not affine in the variables")
        return self._refuse(
            node,
            "may combine several records (only sums, products with a public or per-record factor, "
            "and X @ w keep records apart)",
        )

    def _public_node(self, node: Any) -> Pieces:
        if not _cvxpy.has_variables(node):
            return self._public_constant(constant_array(node))
        if self._n == 1:
            self._check_shape(node)
            return self._scalar(node)
        return self._refuse(node, refusals.PER_RECORD)

    def _public_constant(self, value: Any) -> Pieces:
        factor = self._matrices.public_column(value, self._n, self._term)
        return total([self._array(factor)])

    def _is_public(self, node: Any) -> bool:
        return not self._private.contains(node)

    def _is_one_number(self, node: Any) -> bool:
        """Whether a node has one entry for all records; of one record, the structure tells."""
        if self._n != 1 or node.size != 1:
            return bool(node.size == 1)
        return bool(node.ndim == 0 and (self._is_public(node) or self._reduces(node)))

    def _reduces(self, node: Any) -> bool:
        """Whether one number is made of private entries by more than sums and products."""
        if not self._private.contains(node):
            return False
        if _cvxpy.kind(node) in ("add", "neg", "multiply", "divide", "promote"):
            return any(map(self._reduces, node.args))
        return bool(node.ndim == 0 and _cvxpy.kind(node) != "matmul")

    def _number(self, node: Any) -> float | None:
        scalar = number(node)
        if scalar is not None:
            self._matrices.check_public(constant_array(node), self._term)
        return scalar

    def _scalar(self, node: Any) -> Pieces:
        """A public affine expression with one entry, the same for every record."""
        if self._private.contains(node):
            self._refuse(node, "combines several records into one number")
        if not _cvxpy.has_variables(node):
            self._matrices.check_public(constant_array(node), self._term)
        found = affine_map(node, self._stacking)
        if found is None:
            return self._refuse(node, "is not affine in the variables")
        piece = Piece((), None, found.G, found.g)
        return {piece.signature: piece}

    def _broadcast(self, node: Any) -> Pieces:
        argument = node.args[0]
        if argument.size == node.size:
            return self._walk(argument) if argument.ndim else self._scalar(argument)
        if argument.size == 1:
            self._check_shape(argument)
            return self._scalar(argument)
        return self._refuse(node, "does not have one entry a record")

    def _check_shape(self, node: Any) -> None:
        """Where n is private, refuse variables along the axis of the records, unless listed: of one
        record, one entry for all and one entry for each are the same."""
        if self._private.count_is_private and node.ndim and not self._private.has_listed(node):
            self._refuse(node, refusals.PER_RECORD)

    def _multiply(self, node: Any, left: Any, right: Any) -> Pieces:
        for factor, other in ((left, right), (right, left)):
            if _cvxpy.has_variables(factor):
                continue
            if not self._private.contains(factor):
                inner = factor.args[0] if _cvxpy.kind(factor) == "promote" else factor
                scalar = self._number(inner)
                if scalar is not None:
                    return times(self._walk(other), scalar)
            return product(self._walk(factor), self._walk(other))
        return self._refuse(node, "is not affine in the variables")

    def _divide(self, node: Any) -> Pieces:
        top, bottom = node.args
        if _cvxpy.has_variables(bottom):
            self._refuse(node, "is not affine in the variables")
        if self._private.contains(bottom):
            self._refuse(
                node, "divides by private data; multiply by a private array of reciprocals instead"
            )
        inner = bottom.args[0] if _cvxpy.kind(bottom) == "promote" else bottom
        self._matrices.check_public(constant_array(inner), self._term)
        value = constant_array(bottom)
        dense = np.asarray(value.toarray() if _cvxpy.is_sparse(value) else value, dtype=np.float64)
        if not np.all(np.isfinite(dense) & (dense != 0)):
            self._refuse(node, "divides by a public constant that is zero or not finite")
        if dense.size and np.all(dense == dense.flat[0]):
            return times(self._walk(top), 1.0 / float(dense.flat[0]))
        return product(self._public_constant(1.0 / dense), self._walk(top))

    def _matmul(self, node: Any, left: Any, right: Any) -> Pieces:
        for scalar, other in ((left, right), (right, left)):
            if scalar.ndim == 0:
                return self._multiply(node, scalar, other)
        for matrix, vector in ((left, right), (right, left)):
            apart = self._private.contains(vector) and not self._private.contains(matrix)
            scalar = number(matrix) if apart and vector.size == self._n else None
            if scalar is not None:
                self._check_plain(node, constant_array(matrix))
                return times(self._walk(vector), scalar)
            if _cvxpy.kind(matrix) == "diag" and matrix.args[0].size == vector.size == self._n:
                return self._multiply(node, matrix.args[0], vector)
        left, right = _regrouped(left, right)
        if self._records_on_left(left, right):
            if self._private.contains(right):
                return self._diagonal(node, left, right)
            return self._rows_times(node, left, 0, right)
        if self._private.contains(left):
            return self._diagonal(node, right, left)
        return self._rows_times(node, right, 1, left)

    def _records_on_left(self, left: Any, right: Any) -> bool:
        rows = left.shape[0] if left.ndim == 2 else 1
        columns = right.shape[1] if right.ndim == 2 else 1
        if self._n != 1:
            return rows == self._n and columns == 1
        if left.shape[-1] == 1 and any(map(_cvxpy.has_variables, (left, right))):
            return not _cvxpy.has_variables(left)
        return self._private.contains(left) or not self._private.contains(right)

    def _rows_times(self, node: Any, matrix: Any, axis: int, vector: Any) -> Pieces:
        if _cvxpy.has_variables(matrix):
            self._refuse(node, "is not affine in the variables")
        found = affine_map(vector, self._stacking)
        if found is None:
            return self._refuse(node, "is not affine in the variables")
        return total(
            self._array(factor, factor.apply(found))
            for factor in self._matrices.read(matrix, axis, self._term)
        )

    def _diagonal(self, node: Any, matrix: Any, vector: Any) -> Pieces:
        """D v with a diagonal D scales each record; anything else mixes them."""
        if self._private.contains(matrix) or _cvxpy.has_variables(matrix):
            self._refuse(node, "combines several records")
        value = constant_array(matrix)
        self._check_plain(node, value)
        if vector.size != self._n or value.shape != (self._n, self._n):
            self._refuse(node, "combines several records")
        entries = sp.coo_array(value)
        if np.any((entries.coords[0] != entries.coords[1]) & (entries.data != 0)):
            self._refuse(node, "combines several records")
        return product(self._public_constant(value.diagonal()), self._walk(vector))

    def _check_plain(self, node: Any, value: Any) -> None:
        """Where n is private, records are multiplied by no other matrix than a plain number of I.

        With one record, a matrix that mixes records and a number are the same.
        """
        if self._private.count_is_private and value.ndim == 2 and not is_plain_identity(value):
            self._refuse(node, refusals.PUBLIC_MATRIX)

    def _array(self, factor: Factor, found: AffineMap | None = None) -> Pieces:
        return factor.pieces(self._stacking.dimension, found)

    def _refuse(self, node: Any, reason: str) -> NoReturn:
        raise ProblemError(
            f"{self._text(node)} in the term {self._text(self._term)} {reason}. Row i of a private "
            "loss must be affine in the variables and depend on record i alone."
        ) from None


def _regrouped(left: Any, right: Any) -> tuple[Any, Any]:
    """A (B c) in the place of (A B) c where B holds the variables; c (B A) likewise."""
    for side, other in ((left, right), (right, left)):
        if _cvxpy.kind(side) != "matmul" or any(part.ndim != 2 for part in side.args):
            continue
        first, second = side.args
        held, outer = (second, first) if side is left else (first, second)
        if _cvxpy.has_variables(held) and not any(map(_cvxpy.has_variables, (outer, other))):
            return (first, second @ other) if side is left else (other @ first, second)
    return left, right
