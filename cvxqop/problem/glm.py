"""A loss term that keeps its records outside CVXPY: no copy, any size, private by itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NoReturn

import cvxpy as cp
import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from cvxpy.atoms.atom import Atom

from cvxqop import _cvxpy
from cvxqop.errors import OptionError, ProblemError
from cvxqop.problem.blocks import as_records
from cvxqop.problem.losses import ScalarLoss, huber, logistic, squared, squared_hinge
from cvxqop.problem.pieces import Column, Leaf, Piece, Pieces, linear_part, product, total
from cvxqop.problem.public import Stacking, affine_map
from cvxqop.problem.rows import AffineRows

__all__ = ["GLMLoss", "glm_loss"]

Array = npt.NDArray[np.float64]

_RESIDUAL = ("squared", "huber")
_MARGIN = ("logistic", "squared_hinge")


def glm_loss(
    loss: str | ScalarLoss,
    X: Any,
    y: Any,
    theta: Any,
    *,
    intercept: Any = None,
    threshold: float = 1.0,
) -> GLMLoss:
    """The private loss Σ_i φ(…) of a linear model as a term of a CVXPY objective.

    With t_i = x_i'θ + intercept the summands are

        "squared"        (t_i − y_i)²
        "huber"          huber(t_i − y_i, threshold)
        "logistic"       log(1 + exp(−y_i t_i)),       labels ±1
        "squared_hinge"  max(1 − y_i t_i, 0)²,          labels ±1

    and φ(t_i − y_i) for a `ScalarLoss`. CVXPY copies arrays that it is given; here X and y stay
    where they are and are read by blocks of rows. The term is private by itself: it needs no entry
    in ``private=``. It can be scaled and added to public terms like any expression, and has a value
    and a gradient; only CVXPY's own solvers cannot take it.

    Parameters
    ----------
    loss : str or ScalarLoss
        φ.
    X : array, memory map, sparse matrix, DataFrame or list of blocks of rows, shape (n, p)
        One row a record.
    y : array-like, shape (n,), or None
        Targets or labels; None for zero targets.
    theta : Variable or affine Expression, p entries
        Coefficients.
    intercept : Variable or affine Expression, one entry, optional
        Added to every x_i'θ.
    threshold : float
        M of the Huber loss, in units of y.

    Raises
    ------
    OptionError
        If the loss is unknown or the threshold not positive.
    ProblemError
        If shapes disagree, the data are not real, or a memory map is shorter than it says.

    Examples
    --------
    >>> import cvxpy as cp, numpy as np
    >>> theta = cp.Variable(2)
    >>> term = glm_loss("squared", np.eye(2), np.ones(2), theta)
    >>> problem = cp.Problem(cp.Minimize(0.5 * term + cp.norm1(theta)))
    >>> theta.value = np.zeros(2)
    >>> float(term.value)
    2.0
    """
    if isinstance(loss, str):
        if loss not in _RESIDUAL + _MARGIN:
            names = ", ".join(_RESIDUAL + _MARGIN)
            raise OptionError(f"glm_loss: unknown loss {loss!r}; known are {names}.")
    elif not isinstance(loss, ScalarLoss):
        raise OptionError(
            f"glm_loss: loss must be a name or a ScalarLoss, not {type(loss).__name__}."
        )
    if not (np.isfinite(threshold) and threshold > 0):
        raise OptionError("glm_loss: threshold must be positive and finite.")
    if y is None and loss in _MARGIN:
        raise OptionError(f"glm_loss: the loss {loss!r} needs labels y.")
    return GLMLoss(theta, 0.0 if intercept is None else intercept, loss, X, y, float(threshold))


class GLMLoss(Atom):  # type: ignore[misc]
    """The atom behind `glm_loss`, convex in its two arguments, the coefficients and intercept."""

    holds_records = True

    def __init__(
        self, theta: Any, intercept: Any, loss: str | ScalarLoss, X: Any, y: Any, threshold: float
    ) -> None:
        self._given = [loss, X, y, threshold]
        self._spelling = loss if isinstance(loss, str) else "residual"
        self.loss: ScalarLoss = _LOSSES.get(self._spelling) or (
            huber(threshold) if loss == "huber" else loss  # type: ignore[assignment]
        )
        records = as_records(X, "X", (2,))
        self.n, self._width = (int(side) for side in records.shape)
        self._x = Leaf(records, ("X", id(X)), True, "X")
        self._y: Leaf | None = None
        if y is not None:
            labels = as_records(y, "y", (1, 2))
            if labels.shape != (self.n, 1):
                raise ProblemError(
                    f"glm_loss: X has shape {self.n, self._width} and y {tuple(labels.shape)}; y "
                    "must have one entry a row of X."
                )
            self._y = Leaf(labels, ("y", id(y)), True, "y")
        super().__init__(theta, intercept)

    def describe(self, count: int | None = None) -> str:
        """The term in words; with ``count`` = n, n is not said."""
        names = [_cvxpy.format_expression(argument, {}, count) for argument in self.args]
        parts = [f'"{self._spelling}"', "X" + _cvxpy.format_shape((self.n, self._width), count)]
        parts += ["y" + _cvxpy.format_shape((self.n,), count)] if self._y is not None else []
        return f"glm_loss({', '.join(parts + names[: 1 if names[1] == '0' else 2])})"

    def pieces(self, stacking: Stacking) -> list[Piece]:
        """The argument of φ as pieces, for the rows of an ERM."""
        linear = self._product(stacking)
        if self._y is None:
            return list(linear.values())
        zero = sp.csr_array((1, stacking.dimension))
        label = Piece((Column(self._y, np.ones(1)),), None, zero, np.ones(1))
        if self._spelling in _MARGIN:
            minus = product(_single(label, -1.0), linear)
            one = Piece((), None, zero, np.ones(1))
            margin = total([minus, _single(one, 1.0)])
            return list((minus if self._spelling == "logistic" else margin).values())
        return list(total([linear, _single(label, -1.0)]).values())

    def _product(self, stacking: Stacking) -> Pieces:
        theta, intercept = (affine_map(argument, stacking) for argument in self.args)
        if theta is None or intercept is None:
            raise ProblemError(
                f"{self.describe()}: theta and intercept must be affine in variables."
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

    def _arguments(self, values: Any) -> Iterator[tuple[Any, Array]]:
        """Blocks of rows with φ's arguments at given values of θ and intercept."""
        _, rows = self._rows()
        point = np.concatenate(
            [np.asarray(value, float).reshape(-1, order="F") for value in values]
        )
        for A, C in rows.blocks():
            yield A, A @ point + C[:, 0]

    def numeric(self, values: Any) -> Any:
        """Σ_i φ at the values of the arguments."""
        return np.array(sum(float(np.sum(self.loss.value(t))) for _, t in self._arguments(values)))

    def _grad(self, values: Any) -> list[Any]:
        sizes = [argument.size for argument in self.args]
        gradient = np.zeros(sum(sizes))
        for A, t in self._arguments(values):
            gradient += A.T @ self.loss.derivative(t)
        parts = np.split(gradient, [sizes[0]])
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


_LOSSES = {"squared": squared, "logistic": logistic, "squared_hinge": squared_hinge}


def _single(piece: Piece, factor: float) -> Pieces:
    scaled = Piece(piece.columns, piece.matrix, piece.G * factor, piece.g * factor)
    return {scaled.signature: scaled}
