"""The atom behind `glm_loss`: a CVXPY expression that keeps its records outside CVXPY."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NoReturn

import cvxpy as cp
import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from cvxpy.atoms.atom import Atom

from cvxqop import _cvxpy
from cvxqop.errors import ProblemError
from cvxqop.problem.losses.scalar import ScalarLoss, huber, logistic, squared, squared_hinge
from cvxqop.problem.reading.public import Stacking, affine_map
from cvxqop.problem.records.blocks import as_records
from cvxqop.problem.records.dask_arrays import DaskRows
from cvxqop.problem.records.forms import as_numbers, is_boolean, is_list_of_numbers
from cvxqop.problem.records.pieces import (
    Column,
    LabelLeaf,
    Leaf,
    Piece,
    Pieces,
    ZeroOneLeaf,
    linear_part,
    product,
    total,
)
from cvxqop.problem.records.rows import AffineRows

__all__ = ["MARGIN_LOSSES", "GLMLoss"]

Array = npt.NDArray[np.float64]

MARGIN_LOSSES = ("logistic", "squared_hinge")


class GLMLoss(Atom):  # type: ignore[misc]
    """The atom behind `glm_loss`, convex in its two arguments, the coefficients and intercept."""

    holds_records = True

    def __init__(
        self,
        theta: Any,
        intercept: Any,
        loss: str | ScalarLoss,
        X: Any,
        y: Any,
        threshold: float,
        labels: str | None = None,
    ) -> None:
        self._given = [loss, X, y, threshold, labels]
        self._spelling = loss if isinstance(loss, str) else "residual"
        self.loss: ScalarLoss = _LOSSES.get(self._spelling) or (
            huber(threshold) if loss == "huber" else loss  # type: ignore[assignment]
        )
        records = as_records(X, "X", (2,))
        self.n, self._width = (int(side) for side in records.shape)
        self._x = Leaf(records, ("X", id(X)), True, "X")
        self._y: Leaf | None = None
        if y is not None:
            target = as_records(y, "y", (1, 2))
            if target.shape != (self.n, 1):
                raise ProblemError(
                    f"glm_loss: X has shape {self.n, self._width} and y {tuple(target.shape)}; y "
                    "must have one entry a row of X."
                )
            if isinstance(target, DaskRows) != isinstance(records, DaskRows):
                raise ProblemError(
                    "glm_loss: X and y must both be Dask arrays, or none of them: records of this "
                    "process are not sent to workers. Read both with Dask."
                )
            kind = self._kind(y, labels)
            self._y = kind(target, (kind.__name__, id(y)), True, "y")
        super().__init__(theta, intercept)

    def _kind(self, y: Any, labels: str | None) -> type[Leaf]:
        """How y is read; of a margin loss by its type or as stated, never by its values."""
        if self._spelling not in MARGIN_LOSSES:
            return Leaf
        return ZeroOneLeaf if labels == "01" or is_boolean(y) else LabelLeaf

    def describe(self, hidden: bool = False) -> str:
        """The term in words; ``hidden`` writes n for the number of records."""
        n = "n" if hidden else self.n
        shapes: _cvxpy.Shapes | None = {} if hidden else None
        names = [_cvxpy.format_expression(argument, {}, shapes) for argument in self.args]
        parts = [f'"{self._spelling}"', "X" + _cvxpy.format_shape((n, self._width))]
        parts += ["y" + _cvxpy.format_shape((n,))] if self._y is not None else []
        names = names[: 1 if names[1] == "0" else 2]
        mapped = ['labels="01"'] if isinstance(self._y, ZeroOneLeaf) else []
        return f"glm_loss({', '.join(parts + names + mapped)})"

    def held(self) -> Iterator[tuple[Any, Any, str]]:
        """The arrays of the records, each with the object it was given as and a name."""
        _, X, y, _ = self._given[:4]
        for given, name in ((X, "X of glm_loss"), (y, "y of glm_loss")):
            blocks = isinstance(given, list | tuple) and not is_list_of_numbers(given)
            for part in given if blocks else [given]:
                array = as_numbers(part, name)
                if isinstance(array, np.ndarray) or sp.issparse(array):
                    yield array, part, name

    def pieces(self, stacking: Stacking) -> list[Piece]:
        """The argument of φ as pieces, for the rows of an ERM."""
        linear = self._product(stacking)
        if self._y is None:
            return list(linear.values())
        zero = sp.csr_array((1, stacking.dimension))
        label = Piece((Column(self._y, np.ones(1)),), None, zero, np.ones(1))
        if self._spelling in MARGIN_LOSSES:
            minus = product(_single(label, -1.0), linear)
            one = Piece((), None, zero, np.ones(1))
            margin = total([minus, _single(one, 1.0)])
            return list((minus if self._spelling == "logistic" else margin).values())
        return list(total([linear, _single(label, -1.0)]).values())

    def _product(self, stacking: Stacking) -> Pieces:
        theta, intercept = (affine_map(argument, stacking) for argument in self.args)
        if theta is None or intercept is None:
            raise ProblemError(
                f"{self.describe(hidden=True)}: theta and intercept must be affine in variables."
            )
        if self._width == 1:
            rows = Piece((Column(self._x, np.ones(1)),), None, theta.G, theta.g)
        else:
            rows = Piece((), self._x, theta.G, theta.g)
        if not (intercept.G.nnz or np.any(intercept.g)):
            return _single(rows, 1.0)
        shift = Piece((), None, intercept.G, intercept.g)
        return total([_single(rows, 1.0), _single(shift, 1.0)])

    def _rows(self) -> tuple[Stacking, AffineRows]:
        """Rows with respect to the entries of the two arguments, taken as variables."""
        theta, intercept = (cp.Variable(argument.shape) for argument in self.args)
        stacking = Stacking([theta, intercept])
        spare = GLMLoss(theta, intercept, *self._given)
        pieces = spare.pieces(stacking)
        offsets = [piece for piece in pieces if np.any(piece.g)]
        linear = list(linear_part(pieces).values())
        return stacking, AffineRows(linear, [offsets], self.n, stacking.dimension)

    def _sums(self, values: Any) -> tuple[float, Array]:
        """Σ_i φ and its gradient at given values of θ and intercept."""
        _, rows = self._rows()
        point = [np.asarray(value, float).reshape(-1, order="F") for value in values]
        value, gradient = rows.sum(_value_and_gradient, self.loss, np.concatenate(point))
        return float(value), gradient

    def numeric(self, values: Any) -> Any:
        """Σ_i φ at the values of the arguments."""
        return np.array(self._sums(values)[0])

    def _grad(self, values: Any) -> list[Any]:
        parts = np.split(self._sums(values)[1], [self.args[0].size])
        return [sp.csc_array(part.reshape(-1, 1)) for part in parts]

    def validate_arguments(self) -> None:
        """Shapes agree."""
        theta, intercept = self.args
        if theta.size != self._width:
            raise ProblemError(
                f"glm_loss: X has {self._width} columns and theta {theta.size} entries."
            )
        if intercept.size != 1:
            raise ProblemError(f"glm_loss: the intercept has {intercept.size} entries, not one.")
        super().validate_arguments()

    def shape_from_args(self) -> tuple[int, ...]:
        """A number."""
        return ()

    def sign_from_args(self) -> tuple[bool, bool]:
        """Nonnegative for the named losses."""
        return (isinstance(self._given[0], str), False)

    def is_atom_convex(self) -> bool:
        """Convex."""
        return True

    def is_atom_concave(self) -> bool:
        """Not concave."""
        return False

    def is_incr(self, idx: int) -> bool:
        """No direction is known."""
        return False

    def is_decr(self, idx: int) -> bool:
        """No direction is known."""
        return False

    def graph_implementation(self, arg_objs: Any, shape: Any, data: Any = None) -> NoReturn:
        """CVXPY's own solvers would need the records as constants."""
        raise ProblemError(
            f"{self.describe()} keeps its records outside CVXPY, so CVXPY cannot solve it. Use "
            "cvxqop.privatize or cvxqop.private_loss, or write the loss out with cp.sum_squares."
        )

    def get_data(self) -> list[Any]:
        """What rebuilds the atom beside its arguments."""
        return list(self._given)

    def name(self) -> str:
        """The term in words, without an entry of the data."""
        return self.describe()


def _value_and_gradient(A: Any, C: Array, loss: ScalarLoss, point: Array) -> tuple[float, Array]:
    t = A @ point + C[:, 0]
    return float(np.sum(loss.value(t))), np.asarray(A.T @ loss.derivative(t))


_LOSSES = {"squared": squared, "logistic": logistic, "squared_hinge": squared_hinge}


def _single(piece: Piece, factor: float) -> Pieces:
    scaled = Piece(piece.columns, piece.matrix, piece.G * factor, piece.g * factor)
    return {scaled.signature: scaled}
