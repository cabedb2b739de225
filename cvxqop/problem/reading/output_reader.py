"""From an argument with several outputs a record to rows that all outputs share.

The argument has shape (n, k), one row a record. Each of its columns is read into pieces as for one
output; the columns must have the same row, each on entries of θ of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from cvxqop import _cvxpy
from cvxqop.errors import ProblemError
from cvxqop.problem.private.data import PrivateData
from cvxqop.problem.reading import refusals
from cvxqop.problem.reading.matrix import MatrixReader
from cvxqop.problem.reading.public import AffineMap, Stacking, affine_map, constant_array, number
from cvxqop.problem.records.outputs import OutputRows, Outputs, stacked_numbers
from cvxqop.problem.records.pieces import Piece, Pieces, linear_part, times, total

__all__ = ["OutputReader", "Shared", "outputs_of"]

_TOLERANCE = 1e-12

Columns = list[Pieces]


@dataclass(frozen=True, eq=False)
class Shared:
    """The row that all outputs share: as pieces on θ in the first output, and on p numbers."""

    columns: Columns
    written: tuple[Piece, ...]
    compressed: tuple[Piece, ...]
    layout: npt.NDArray[np.intp]


def outputs_of(argument: Any, records: int | None) -> Any:
    """The (n, k) expression, k > 1, that the argument of a loss is, or None.

    A norm flattens its argument; what it flattens has the same sum of squares. ``records`` is the
    number of rows of the private arrays, so that n = 1 is read as any other n.
    """
    if _cvxpy.holds_records(argument):
        return None
    while _cvxpy.kind(argument) == "reshape" and argument.ndim == 1:
        argument = argument.args[0]
    shape = argument.shape
    several = len(shape) == 2 and shape[0] == records and shape[1] > 1
    return argument if several else None


class OutputReader:
    """Reads arguments of shape (n, k).

    Parameters
    ----------
    private : PrivateData
        Which leaves are private.
    stacking : Stacking
        The order of the variables in θ.
    text : callable
        Formats an expression without the entries of arrays.
    term : Expression
        The term as it was written.
    shape : (int, int)
        n and k.
    """

    def __init__(
        self,
        private: PrivateData,
        stacking: Stacking,
        text: Callable[[Any], str],
        term: Any,
        shape: tuple[int, int],
    ) -> None:
        self._private, self._stacking, self._text, self._term = private, stacking, text, term
        self._matrices = MatrixReader(private, text)
        self._argument: Any = term
        self._weight = 0.0
        self.n, self.count = shape

    def share(self, argument: Any) -> Shared:
        """The row that the columns of ``argument`` share.

        Raises
        ------
        ProblemError
            If they do not, or the argument is not of a form that keeps records apart.
        """
        self._argument = argument
        columns = self.columns(argument)
        linear = [linear_part(column.values()) for column in columns]
        supports = [_support(own) for own in linear]
        layout = np.stack(supports, axis=1) if len({len(s) for s in supports}) == 1 else None
        if layout is None or not np.array_equal(
            np.sort(layout, axis=None), np.arange(self._stacking.dimension)
        ):
            self._refuse(
                argument, "does not have variables of its own for each output, as many for each"
            )
        own = [_compressed(piece, s) for piece, s in zip(linear, supports, strict=True)]
        if not all(_same(own[0], other) for other in own[1:]):
            self._refuse(argument, "has different rows for different outputs of a record")
        return Shared(columns, tuple(linear[0].values()), tuple(own[0].values()), layout)

    def squared(self, argument: Any) -> tuple[OutputRows, Outputs, Shared]:
        """Rows and offsets of a squared loss."""
        shared = self.share(argument)
        offsets = [
            [replace(piece, G=None) for piece in column.values() if _is_offset(piece)]
            for column in shared.columns
        ]
        return self._rows(shared, offsets, labelled=False)

    def labelled(
        self, argument: Any, labels: Sequence[tuple[float, Any]]
    ) -> tuple[OutputRows, Outputs, Shared]:
        """Rows and labels of a loss φ(t) − y't; ``labels``, (factor, term), add up to −y't.

        Raises
        ------
        ProblemError
            If the argument has an offset, or the linear terms have another row.
        """
        shared = self.share(argument)
        if any(_is_offset(piece) for column in shared.columns for piece in column.values()):
            self._refuse(argument, "has an offset, which a loss with labels does not take")
        found: list[Columns] = []
        for factor, node in labels:
            self._labels(node, -factor, shared, found)
        if abs(self._weight - 1.0) > _TOLERANCE:
            self._refuse(argument, "has not the weight that its labels have")
        columns = [total(part[j] for part in found) for j in range(self.count)]
        numbers = [[replace(p, G=None) for p in column.values()] for column in columns]
        return self._rows(shared, numbers, labelled=True)

    def columns(self, node: Any) -> Columns:
        """The pieces of each column of an (n, k) expression."""
        kind = _cvxpy.kind(node)
        if node.shape != (self.n, self.count):
            return self._row(node)
        if kind in ("promote", "broadcast"):
            return self.columns(node.args[0])
        if not _cvxpy.has_variables(node):
            return self._constant(node, 0)
        if kind == "add":
            parts = [self.columns(argument) for argument in node.args]
            return [total(part[j] for part in parts) for j in range(self.count)]
        if kind == "conj":
            return self.columns(node.args[0])
        scaled = self._scaled(node, kind)
        if scaled is not None:
            factor, other = scaled
            return [times(column, factor) for column in self.columns(other)]
        if kind == "matmul":
            return self._product(node)
        if self.n == 1 and not self._private.contains(node):
            self._check_shape(node)
            return self._public(node)
        return self._refuse(node, "is not of the form X @ Theta + b - Y")

    def _product(self, node: Any) -> Columns:
        left, right = node.args
        if _cvxpy.has_variables(left) or self._private.contains(right) or left.ndim != 2:
            self._refuse(node, "does not have the records on the left and the variables right")
        if left.shape[1] == 1 and not self._private.contains(left):
            self._check_shape(right)  # a row that is repeated; of one record CVXPY repeats nothing
        found = affine_map(right, self._stacking)
        if found is None:
            self._refuse(node, "is not affine in the variables")
        p, D = left.shape[1], self._stacking.dimension
        cuts = [slice(j * p, j * p + p) for j in range(self.count)]
        parts = [AffineMap(found.G[cut], found.g[cut]) for cut in cuts]
        factors = self._matrices.read(left, 0, self._term)
        return [total(factor.pieces(D, factor.apply(part)) for factor in factors) for part in parts]

    def _constant(self, node: Any, axis: int) -> Columns:
        """A constant array, records along ``axis``."""
        D = self._stacking.dimension
        factors = self._matrices.read(node, axis, self._term)
        units = [AffineMap(sp.csr_array((self.count, D)), e) for e in np.eye(self.count)]
        return [total(factor.pieces(D, factor.apply(unit)) for factor in factors) for unit in units]

    def _row(self, row: Any) -> Columns:
        """One public row, (k,) or (1, k), or one number, for every record."""
        if self._private.contains(row) or not (row.ndim < 2 or row.shape == (1, self.count)):
            reason = refusals.of_shape(self._argument, self._private.count_is_private)
            raise ProblemError(f"The private term {self._text(self._term)} {reason}.") from None
        if not _cvxpy.has_variables(row):
            self._matrices.check_public(constant_array(row), self._term)
        self._check_shape(row)
        return self._public(row)

    def _check_shape(self, row: Any) -> None:
        """Where n is private, a row of variables with an axis for the records is listed, or
        refused: of one record it cannot be told from one row a record."""
        if self._private.count_is_private and row.ndim == 2 and not self._private.has_listed(row):
            self._refuse(row, refusals.PER_RECORD)

    def _public(self, row: Any) -> Columns:
        found = affine_map(row, self._stacking)
        if found is None:
            return self._refuse(row, "is not affine in the variables")
        index = range(self.count) if row.size == self.count else [0] * self.count
        pieces = [Piece((), None, found.G[[j]], found.g[[j]]) for j in index]
        return [{piece.signature: piece} for piece in pieces]

    def _scaled(self, node: Any, kind: str) -> tuple[float, Any] | None:
        """A public factor and the rest."""
        if kind == "neg":
            return -1.0, node.args[0]
        if kind not in ("multiply", "matmul", "divide"):
            return None
        divides = kind == "divide"
        for scalar, other in [node.args[::-1]] if divides else [node.args, node.args[::-1]]:
            inner = scalar.args[0] if _cvxpy.kind(scalar) == "promote" else scalar
            if other.shape != node.shape or self._private.contains(inner):
                continue
            value = number(inner)
            if value is not None and not (divides and value == 0.0):
                self._matrices.check_public(constant_array(inner), self._term)
                return (1.0 / value if divides else value), other
        return None

    def _labels(self, node: Any, factor: float, shared: Shared, found: list[Columns]) -> None:
        """Summands Y ∘ E of a linear term; E must be a number times the argument of the loss."""
        kind = _cvxpy.kind(node)
        if kind == "add":
            for argument in node.args:
                self._labels(argument, factor, shared, found)
            return
        if kind in ("sum", "conj", "transpose"):
            self._labels(node.args[0], factor, shared, found)
            return
        scaled = self._scaled(node, kind) if kind != "multiply" or _is_scaling(node) else None
        if scaled is not None:
            self._labels(scaled[1], factor * scaled[0], shared, found)
            return
        for labels, argument in (node.args, node.args[::-1]) if kind == "multiply" else ():
            turned = _cvxpy.kind(argument) == "transpose"
            inner = argument.args[0] if turned else argument
            if _cvxpy.has_variables(labels) or inner.shape != (self.n, self.count):
                continue
            if labels.shape != argument.shape:
                continue
            ratio = self._ratio(self.columns(inner), shared)
            if ratio is None:
                break
            self._weight += factor * ratio
            own = self._constant(labels, int(turned))
            found.append([times(column, factor * ratio) for column in own])
            return
        self._refuse(
            node,
            "is linear, but not of the form multiply(Y, T) with the argument T of the log_sum_exp "
            "and one row of labels a record",
        )

    def _ratio(self, columns: Columns, shared: Shared) -> float | None:
        """s with columns = s times those of the loss."""
        ratios = []
        for own, known in zip(columns, shared.columns, strict=True):
            left, right = linear_part(own.values()), linear_part(known.values())
            if left.keys() != right.keys() or any(map(_is_offset, own.values())):
                return None
            first = next(iter(right))
            ratios.append(float(left[first].G.data[0] / right[first].G.data[0]))
            if not _same(left, {k: replace(p, G=p.G * ratios[0]) for k, p in right.items()}):
                return None
        return ratios[0]

    def _rows(
        self, shared: Shared, numbers: Sequence[Sequence[Piece]], labelled: bool
    ) -> tuple[OutputRows, Outputs, Shared]:
        pieces = stacked_numbers(numbers)
        rows = OutputRows(shared.compressed, pieces, self.n, len(shared.layout), self.count)
        return rows, Outputs(shared.layout, labelled), shared

    def _refuse(self, node: Any, reason: str) -> NoReturn:
        raise ProblemError(
            f"{self._text(node)} in the term {self._text(self._term)} {reason}. Several outputs a "
            "record are read from X @ Theta + b - Y, Theta and b variables, one row of X and Y a "
            "record and one column of Theta, b and Y an output."
        ) from None


def _is_scaling(node: Any) -> bool:
    return any(argument.ndim == 0 or _cvxpy.kind(argument) == "promote" for argument in node.args)


def _is_offset(piece: Piece) -> bool:
    return bool(np.any(piece.g) or (piece.private and not np.any(piece.G.data)))


def _support(linear: Pieces) -> npt.NDArray[np.intp]:
    if not linear:
        return np.zeros(0, dtype=np.intp)
    return np.unique(np.concatenate([piece.G.indices for piece in linear.values()])).astype(np.intp)


def _compressed(linear: Pieces, support: npt.NDArray[np.intp]) -> Pieces:
    return {key: replace(p, G=sp.csr_array(p.G[:, support])) for key, p in linear.items()}


def _same(one: Pieces, other: Pieces) -> bool:
    """Whether two rows are the same, decided on the structure and on public factors."""
    if one.keys() != other.keys():
        return False
    scale = max(float(np.max(np.abs(piece.G.data))) for piece in one.values())
    gaps = [abs(piece.G - other[key].G).max() for key, piece in one.items()]
    return bool(max(gaps) <= _TOLERANCE * scale)
