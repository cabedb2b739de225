"""From the argument of a loss to rows: a structural walk that checks one record, one row.

An argument has one entry a record, or one row of k outputs: it is read into k columns, each a sum
of pieces. Every node on the way down has the records of the argument, or is the same for all of
them. Whatever combines entries of different records is refused; the decision looks at the structure
of the expression and at public arrays, never at the values of a private one.
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
from cvxqop.problem.reading.columns import Columns, products
from cvxqop.problem.reading.factor import Factor
from cvxqop.problem.reading.matrix import MatrixReader
from cvxqop.problem.reading.public import (
    AffineMap,
    Stacking,
    affine_map,
    constant_array,
    is_plain_identity,
    number,
    outputs_of,
    record_count,
    regrouped,
)
from cvxqop.problem.records.pieces import Piece, Pieces, product, times, total

__all__ = ["AffineReader"]


class AffineReader:
    """Reads the argument of a loss into columns of pieces.

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
        self._argument: Any = None
        self._n, self._count = 0, 1

    def read(self, argument: Any, term: Any) -> Columns:
        """The columns of ``argument``, in ``term``: one for one entry a record, k for (n, k).

        Raises
        ------
        ProblemError
            If the argument is not affine, mixes records or is of no form that is known.
        """
        if _cvxpy.holds_records(argument):
            return [{piece.signature: piece for piece in argument.pieces(self._stacking)}]
        outputs = outputs_of(argument, self._private.records)
        if outputs is None:
            return self._read(argument, term)
        return self._read(outputs, term, outputs.shape[1])

    def read_product(self, factors: Sequence[Any], term: Any) -> Pieces:
        """Pieces of a product, record by record, of expressions with one entry a record."""
        result: Pieces | None = None
        for factor in sorted(factors, key=_cvxpy.has_variables, reverse=True):
            (own,) = self._read(factor, term)
            result = own if result is None else product(own, result)
        return result or {}

    def scaled(self, node: Any) -> tuple[float, Any] | None:
        """A public number around an expression, and the rest; None where there is none."""
        return self._matrices.scaled(node, self._term)

    def _read(self, argument: Any, term: Any, count: int = 1) -> Columns:
        self._term, self._argument = term, argument
        n = record_count(argument) if count == 1 else int(argument.shape[0])
        hidden = self._private.count_is_private
        if n is None:
            self._refuse_term(refusals.of_shape(argument, hidden))
        if hidden and argument.ndim and self._private.records not in (None, n):
            self._refuse_term(refusals.of_count(argument))
        self._n, self._count = n, count
        return self._walk(argument)

    def _walk(self, node: Any) -> Columns:
        kind = _cvxpy.kind(node)
        if self._is_for_all(node):
            return self._for_all(node)
        if not self._fits(node):
            self._refuse(node, "does not have one entry a record")
        constant = self._count > 1 and not _cvxpy.has_variables(node)
        if kind in ("promote", "broadcast") and not (constant and self._private.contains(node)):
            inner = node.args[0]
            return self._walk(inner) if inner.ndim else self._for_all(inner)
        if constant:
            return self._columns(self._matrices.read(node, 0, self._term))
        if kind == "add":
            parts = [self._walk(argument) for argument in node.args]
            return [total(own) for own in zip(*parts, strict=True)]
        scaled = self.scaled(node)
        if scaled is not None:
            return [times(column, scaled[0]) for column in self._walk(scaled[1])]
        turned = kind in ("reshape", "transpose") and self._count == 1
        if kind == "conj" or (turned and self._fits(node.args[0])):
            return self._walk(node.args[0])
        if kind == "divide" and self._count > 1:
            self._refuse(node, "is not of the form X @ Theta + b - Y")
        read = {"multiply": self._multiply, "divide": self._divide, "matmul": self._matmul}.get(
            kind
        )
        return read(node, *node.args) if read else self._end(node, kind)

    def _fits(self, node: Any) -> bool:
        """Whether a node has the records and outputs of the argument."""
        if self._count > 1:
            return bool(node.shape == (self._n, self._count))
        return record_count(node) == self._n

    def _end(self, node: Any, kind: str) -> Columns:
        """A node that is read no further."""
        public, variables = not self._private.contains(node), _cvxpy.has_variables(node)
        if public and not variables:
            return self._public_constant(constant_array(node))
        if public:
            return self._for_all(node) if self._n == 1 else self._refuse(node, refusals.PER_RECORD)
        if kind in ("constant", "parameter"):
            return self._columns([self._matrices.column(node, self._term)])
        if kind == "index" and not variables:
            return self._columns(self._matrices.indexed_column(node, self._term))
        if kind in ("abs", "maximum", "power", "logistic", "huber", "pnorm"):
            return self._refuse(node, "is not affine in the variables")
        return self._refuse(
            node,
            "may combine several records (only sums, products with a public or per-record factor, "
            "and X @ w keep records apart)",
        )

    def _public_constant(self, value: Any) -> Columns:
        return self._columns([self._matrices.public_column(value, self._n, self._term)])

    def _is_for_all(self, node: Any) -> bool:
        """Whether a node is the same for all records; of one record, the structure tells."""
        if self._count > 1:
            return not self._fits(node)
        if self._n != 1 or node.size != 1:
            return bool(node.size == 1)
        return bool(node.ndim == 0 and (not self._private.contains(node) or self._reduces(node)))

    def _reduces(self, node: Any) -> bool:
        """Whether one number is made of private entries by more than sums and products."""
        if not self._private.contains(node):
            return False
        if _cvxpy.kind(node) in ("add", "neg", "multiply", "divide", "promote"):
            return any(map(self._reduces, node.args))
        return bool(node.ndim == 0 and _cvxpy.kind(node) != "matmul")

    def _for_all(self, node: Any) -> Columns:
        """A public affine row of k entries, or one number, the same for every record."""
        private = self._private.contains(node)
        row = node.size == 1 or node.ndim < 2 or node.shape == (1, self._count)
        if self._count > 1 and (private or not row):
            self._refuse_term(refusals.of_shape(self._argument, self._private.count_is_private))
        if private:
            self._refuse(node, "combines several records into one number")
        if not _cvxpy.has_variables(node):
            self._matrices.check_public(constant_array(node), self._term)
        self._check_shape(node)
        found = affine_map(node, self._stacking)
        if found is None:
            return self._refuse(node, "is not affine in the variables")
        index = range(self._count) if node.size == self._count else [0] * self._count
        pieces = [Piece((), None, found.G[[j]], found.g[[j]]) for j in index]
        return [{piece.signature: piece} for piece in pieces]

    def _check_shape(self, node: Any) -> None:
        """Where n is private, variables with an axis for the records are listed, or refused: of one
        record, one entry for all and one entry for each are the same."""
        counted = self._private.count_is_private and node.ndim > (self._count > 1)
        if counted and not self._private.has_listed(node):
            self._refuse(node, refusals.PER_RECORD)

    def _multiply(self, node: Any, left: Any, right: Any) -> Columns:
        for factor, other in ((left, right), (right, left)):
            if not _cvxpy.has_variables(factor):
                return products(self._walk(factor), self._walk(other))
        return self._refuse(node, "is not affine in the variables")

    def _divide(self, node: Any, top: Any, bottom: Any) -> Columns:
        if _cvxpy.has_variables(bottom):
            self._refuse(node, "is not affine in the variables")
        if self._private.contains(bottom):
            self._refuse(
                node, "divides by private data; multiply by a private array of reciprocals instead"
            )
        value = constant_array(bottom)
        dense = np.asarray(value.toarray() if _cvxpy.is_sparse(value) else value, dtype=np.float64)
        if not np.all(np.isfinite(dense) & (dense != 0)):
            self._refuse(node, "divides by a public constant that is zero or not finite")
        return products(self._public_constant(1.0 / dense), self._walk(top))

    def _matmul(self, node: Any, left: Any, right: Any) -> Columns:
        if 0 in (left.ndim, right.ndim):
            return self._multiply(node, left, right)
        if self._count > 1:
            return self._outputs(node, left, right)
        for matrix, vector in ((left, right), (right, left)):
            apart = self._private.contains(vector) and not self._private.contains(matrix)
            scalar = number(matrix) if apart and vector.size == self._n else None
            if scalar is not None:
                self._check_plain(node, constant_array(matrix))
                return [times(column, scalar) for column in self._walk(vector)]
            if _cvxpy.kind(matrix) == "diag" and matrix.args[0].size == vector.size == self._n:
                return self._multiply(node, matrix.args[0], vector)
        left, right = regrouped(left, right)
        if self._records_on_left(left, right):
            if self._private.contains(right):
                return self._diagonal(node, left, right)
            return self._rows_times(node, left, 0, right)
        if self._private.contains(left):
            return self._diagonal(node, right, left)
        return self._rows_times(node, right, 1, left)

    def _outputs(self, node: Any, left: Any, right: Any) -> Columns:
        """X @ Theta with a column of Theta an output."""
        if _cvxpy.has_variables(left) or self._private.contains(right) or left.ndim != 2:
            self._refuse(node, "does not have the records on the left and the variables right")
        if left.shape[1] == 1 and not self._private.contains(left):
            self._check_shape(right)  # a row that is repeated; of one record CVXPY repeats nothing
        return self._rows_times(node, left, 0, right)

    def _records_on_left(self, left: Any, right: Any) -> bool:
        rows = left.shape[0] if left.ndim == 2 else 1
        columns = right.shape[1] if right.ndim == 2 else 1
        if self._n != 1:
            return rows == self._n and columns == 1
        if left.shape[-1] == 1 and any(map(_cvxpy.has_variables, (left, right))):
            return not _cvxpy.has_variables(left)
        return self._private.contains(left) or not self._private.contains(right)

    def _rows_times(self, node: Any, matrix: Any, axis: int, other: Any) -> Columns:
        found = None if _cvxpy.has_variables(matrix) else affine_map(other, self._stacking)
        if found is None:
            return self._refuse(node, "is not affine in the variables")
        cuts = np.split(np.arange(found.g.size), self._count)
        maps = [AffineMap(found.G[own], found.g[own]) for own in cuts]
        return self._columns(self._matrices.read(matrix, axis, self._term), maps)

    def _diagonal(self, node: Any, matrix: Any, vector: Any) -> Columns:
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
        return products(self._public_constant(value.diagonal()), self._walk(vector))

    def _check_plain(self, node: Any, value: Any) -> None:
        """Where n is private, records are multiplied by no other matrix than a plain number of I:
        of one record, a matrix that mixes records and a number are the same."""
        if self._private.count_is_private and value.ndim == 2 and not is_plain_identity(value):
            self._refuse(node, refusals.PUBLIC_MATRIX)

    def _columns(
        self, factors: Sequence[Factor], maps: Sequence[AffineMap] | None = None
    ) -> Columns:
        """The sum of factors, each times one map a column; without maps, their own columns."""
        D, k = self._stacking.dimension, self._count
        maps = maps or [AffineMap(sp.csr_array((k, D)), unit) for unit in np.eye(k)]
        return [total(factor.pieces(own) for factor in factors) for own in maps]

    def _refuse_term(self, reason: str) -> NoReturn:
        raise ProblemError(f"The private term {self._text(self._term)} {reason}.") from None

    def _refuse(self, node: Any, reason: str) -> NoReturn:
        form = refusals.ONE_ROW if self._count == 1 else refusals.ONE_ROW_OF_OUTPUTS
        raise ProblemError(
            f"{self._text(node)} in the term {self._text(self._term)} {reason}. {form}"
        ) from None
