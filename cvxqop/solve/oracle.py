"""The smooth part of the perturbed problem: a quadratic form, or a finite sum over row blocks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from cvxqop.solve.record_loss import LossSum, RecordLoss

__all__ = [
    "Evaluation",
    "FiniteSum",
    "Loss",
    "Quadratic",
    "Rows",
    "Smooth",
    "dense",
    "gram",
    "row_squares",
    "slope",
    "squares_of",
]

Array = npt.NDArray[np.float64]

EPS = float(np.finfo(np.float64).eps)

# A sparse A'A costs about fill² · 190 times the dense product of the same shape (measured).
DENSE_FILL = 0.07


class Evaluation(NamedTuple):
    """f and ∇f at a point; ``error`` bounds the rounding of the gradient in the 2-norm."""

    value: float
    gradient: Array
    error: float


class Smooth(Protocol):
    """A smooth convex f."""

    @property
    def dimension(self) -> int:
        """D."""

    def evaluate(self, theta: Array) -> Evaluation:
        """Value and gradient in one pass."""

    def hessian(self, theta: Array, radius: float = 0.0) -> Array:
        """A matrix below ∇²f everywhere within ``radius`` of θ; ∇²f(θ) for radius 0."""

    def lower_curvature(self) -> Array:
        """A matrix below ∇²f everywhere."""

    def plus(self, Q: Array | None, q: Array) -> Smooth:
        """f(θ) + ½ θ'Qθ + q'θ, up to a constant."""


@dataclass(frozen=True, eq=False)
class Quadratic:
    """The quadratic f(θ) = g'(θ − θ0) + ½ (θ − θ0)'H(θ − θ0).

    Parameters
    ----------
    H : (D, D) array
        Symmetric and positive definite.
    g : (D,) array
        Gradient at the anchor.
    anchor : (D,) array
        θ0.

    Examples
    --------
    >>> import numpy as np
    >>> f = Quadratic(2.0 * np.eye(2), np.array([1.0, 0.0]), np.zeros(2))
    >>> float(f.value(np.array([1.0, 1.0])))
    3.0
    >>> f.gradient(np.array([1.0, 1.0])).tolist()
    [3.0, 2.0]
    """

    H: Array
    g: Array
    anchor: Array

    @property
    def dimension(self) -> int:
        """D, the length of θ."""
        return int(self.g.shape[0])

    def value(self, theta: Array) -> float:
        """f(θ)."""
        step = theta - self.anchor
        return float(step @ (self.g + 0.5 * (self.H @ step)))

    def gradient(self, theta: Array) -> Array:
        """∇f(θ), of shape (D,)."""
        return np.asarray(self.g + self.H @ (theta - self.anchor))

    @cached_property
    def _size(self) -> float:
        return float(np.linalg.norm(self.H))

    def evaluate(self, theta: Array) -> Evaluation:
        """Value and gradient; the error is that of a product of length D."""
        step = theta - self.anchor
        product = self.H @ step
        size = float(np.linalg.norm(self.g)) + self._size * float(np.linalg.norm(step))
        error = EPS * (self.dimension + 4) * size
        return Evaluation(float(step @ (self.g + 0.5 * product)), self.g + product, error)

    def hessian(self, theta: Array, radius: float = 0.0) -> Array:
        """H."""
        return self.H

    def lower_curvature(self) -> Array:
        """H."""
        return self.H

    def plus(self, Q: Array | None, q: Array) -> Quadratic:
        """f(θ) + ½ θ'Qθ + q'θ, up to a constant."""
        if Q is None:
            return Quadratic(self.H, self.g + q, self.anchor)
        return Quadratic(self.H + Q, self.g + q + Q @ self.anchor, self.anchor)


class Loss(Protocol):
    """A convex φ with κ = sup φ'' finite and φ'' unimodal (it rises, then falls)."""

    curvature: float
    quadratic: bool

    def value(self, t: Array) -> Array:
        """φ, elementwise."""

    def derivative(self, t: Array) -> Array:
        """φ'."""

    def second_derivative(self, t: Array) -> Array:
        """φ''."""


class Rows(Protocol):
    """Records by blocks of rows A (b, D) and offsets C (b, J)."""

    n: int
    dimension: int

    def blocks(self, size: int) -> Iterator[tuple[Any, Array]]:
        """All records in order."""

    def take(self, start: int, stop: int) -> tuple[Any, Array]:
        """Records start…stop."""


@dataclass(frozen=True, eq=False)
class FiniteSum:
    """f(θ) = Σ_i ℓ_i(a_i'θ) + ½ (θ − θ0)'S(θ − θ0) + a'(θ − θ0), ℓ_i(t) = Σ_j φ_j(t + c_ij).

    Parameters
    ----------
    rows : Rows
        Records; only one block is held at a time.
    losses : sequence of Loss, or RecordLoss
        The J functions φ_j; or ℓ as one object, where it is not their sum.
    S : (D, D) array
        Symmetric positive definite.
    a : (D,) array
        Linear term.
    anchor : (D,) array
        θ0.
    fine : bool
        Sum gradients over blocks of 256 rows in extended precision: slower, with a tenth of the
        rounding and less.
    """

    rows: Any
    losses: Sequence[Any] | RecordLoss
    S: Array
    a: Array
    anchor: Array
    fine: bool = False
    _squares: list[float] = field(default_factory=list, repr=False)

    @property
    def dimension(self) -> int:
        """D, the length of θ."""
        return int(self.a.shape[0])

    @cached_property
    def record_loss(self) -> RecordLoss:
        """ℓ."""
        return LossSum(self.losses) if isinstance(self.losses, Sequence) else self.losses

    @property
    def quadratic(self) -> bool:
        """Whether every ℓ'' is constant."""
        return self.record_loss.quadratic

    @property
    def smoothness(self) -> float:
        """κ ≥ ℓ''."""
        return self.record_loss.curvature

    @property
    def record_rank(self) -> int:
        """Rank of the Hessian of a record, at most."""
        return 1

    @cached_property
    def _size(self) -> float:
        return float(np.linalg.norm(self.S))

    @property
    def block(self) -> int:
        """Rows per block: about three megabytes, and blocked summation keeps rounding small."""
        if self.fine:
            return 256
        return int(min(16384, max(256, 400_000 // max(self.dimension, 1))))

    def blocks(self) -> Iterator[tuple[Any, Array]]:
        """Row blocks of a size that fits the cache."""
        return iter(self.rows.blocks(self.block))

    def evaluate(self, theta: Array) -> Evaluation:
        """Value and gradient in one pass over the rows; not finite where a row is not."""
        with np.errstate(over="ignore", invalid="ignore"):
            return self._evaluate(theta)

    def _evaluate(self, theta: Array) -> Evaluation:
        value, squares, slopes, blocks = 0.0, 0.0, 0.0, 0
        total: Any = np.zeros(self.dimension, dtype=np.longdouble if self.fine else np.float64)
        for A, C in self.blocks():
            values, slope = self.record_loss.evaluate(A @ theta, C)
            value += float(np.sum(values))
            total += A.T @ slope
            if not self._squares:
                squares += squares_of(A)
            slopes += float(slope @ slope)
            blocks += 1
        if self._squares:
            squares = self._squares[0]
        else:
            # ‖A‖_F² is the same in every pass.
            self._squares.append(squares)
        step = theta - self.anchor
        product = self.S @ step
        gradient = total.astype(np.float64)
        # Products of length D, then sums of length `block`, then of `blocks`.
        kappa = self.record_loss.curvature
        between = blocks * (float(np.finfo(np.longdouble).eps) / EPS if self.fine else 1.0)
        lengths = min(self.block, max(self.rows.n, 1)) + between + 8
        error = lengths * float(np.sqrt(squares * slopes))
        error += kappa * (self.dimension + 4) * squares * (1.0 + float(np.linalg.norm(theta)))
        error += (self.dimension + 4) * float(
            np.linalg.norm(self.a) + self._size * np.linalg.norm(step)
        )
        value += float(step @ (self.a + 0.5 * product))
        return Evaluation(value, gradient + self.a + product, EPS * error)

    def hessian(self, theta: Array, radius: float = 0.0) -> Array:
        """A matrix below ∇²f everywhere within ``radius`` of θ; ∇²f(θ) for radius 0."""
        H = np.zeros_like(self.S)
        for A, C in self.blocks():
            reach = None if radius == 0.0 else radius * np.sqrt(row_squares(A))
            weights = self.record_loss.second_derivative(A @ theta, C, reach)
            H += weighted_gram(A, weights)
        return 0.5 * (H + H.T) + self.S

    def curvature_part(self, theta: Array, start: int, stop: int, factor: float) -> Array:
        """factor · Σ φ'' a a' over the records start…stop; (D, D)."""
        A, C = self.rows.take(start, stop)
        return weighted_gram(A, factor * self.record_loss.second_derivative(A @ theta, C))

    def curvature_root(self, theta: Array, start: int, stop: int, factor: float) -> Array:
        """B with B'B = `curvature_part`: one row a record."""
        A, C = self.rows.take(start, stop)
        weights = factor * self.record_loss.second_derivative(A @ theta, C)
        return dense(A) * np.sqrt(weights)[:, None]

    def record_gradient(self, theta: Array, start: int, stop: int) -> Array:
        """Σ ∇ℓ_i(θ) over the records start…stop."""
        A, C = self.rows.take(start, stop)
        return np.asarray(A.T @ self.record_loss.slope(A @ theta, C))

    def lower_curvature(self) -> Array:
        """S."""
        return self.S

    def plus(self, Q: Array | None, q: Array) -> FiniteSum:
        """f(θ) + ½ θ'Qθ + q'θ, up to a constant."""
        if Q is None:
            return replace(self, a=self.a + q)
        return replace(self, S=self.S + Q, a=self.a + q + Q @ self.anchor)

    def gram_form(self) -> Quadratic:
        """The same f as a quadratic form, in one pass; every φ must be quadratic."""
        assert isinstance(self.losses, Sequence)
        kappa = [float(loss.curvature) for loss in self.losses]
        H, g = gram(self.blocks(), kappa, self.anchor)
        return Quadratic(H + self.S, g + self.a, self.anchor)


def dense(A: Any) -> Array:
    """A block of rows as an array."""
    sparse: bool = sp.issparse(A)
    return np.asarray(A.toarray() if sparse else A)


def squares_of(A: Any) -> float:
    """‖A‖_F²."""
    sparse: bool = sp.issparse(A)
    data = A.data if sparse else A.reshape(-1)
    return float(np.dot(data, data))


def row_squares(A: Any) -> Array:
    """‖a‖² of each row."""
    sparse: bool = sp.issparse(A)
    if sparse:
        return np.asarray(A.multiply(A).sum(axis=1)).reshape(-1)
    return np.asarray(np.einsum("ij,ij->i", A, A))


def weighted_gram(A: Any, weights: Array) -> Array:
    """A' diag(weights) A for weights ≥ 0, dense."""
    sparse: bool = sp.issparse(A)
    if sparse:
        return np.asarray((A.T @ A.multiply(weights[:, None])).toarray())
    B = A * np.sqrt(weights)[:, None]
    return np.asarray(B.T @ B)


def slope(blocks: Iterable[tuple[Any, ...]], weights: npt.ArrayLike, anchor: Array) -> Array:
    """The gradient g of `gram` at the anchor alone, in one pass over row blocks.

    Examples
    --------
    >>> import numpy as np
    >>> slope([(np.array([[1.0, 2.0]]), np.array([[3.0]]))], [2.0], np.zeros(2)).tolist()
    [6.0, 12.0]
    """
    kappa = np.asarray(weights, dtype=np.float64)
    g = np.zeros(anchor.shape)
    for A, C, *record_weights in blocks:
        g += _block_slope(A, C, record_weights, kappa, anchor)
    return g


def _block_slope(A: Any, C: Array, weights: Sequence[Array], kappa: Array, anchor: Array) -> Array:
    """Σ_i a_i Σ_j κ_j w_ij (a_i'θ0 + c_ij) over a block."""
    if anchor.ndim == 2:
        return np.asarray(A.T @ (kappa[0] * (np.asarray(A @ anchor) + C)))
    if np.any(anchor):
        C = C + np.asarray(A @ anchor)[:, None]
    if weights:
        C = C * weights[0]
    return np.asarray(A.T @ (C @ kappa))


def gram(
    blocks: Iterable[tuple[Any, ...]], weights: npt.ArrayLike, anchor: Array
) -> tuple[Array, Array]:
    """Hessian and gradient at the anchor of a sum of squares, in one pass over row blocks.

    For f(θ) = Σ_i Σ_j ½ κ_j w_ij (a_i'θ + c_ij)²:

        H = Σ_i (Σ_j κ_j w_ij) a_i a_i',    g = Σ_i a_i Σ_j κ_j w_ij (a_i'θ0 + c_ij).

    Parameters
    ----------
    blocks : iterable of (A, C) or (A, C, w)
        A is (b, D), an ndarray or a CSR matrix; C is (b, J); w is (b, J), not negative (default
        ones).
        No array larger than a block is copied. No blocks at all is n = 0.
    weights : (J,) array
        The curvatures κ_j of the squared losses that share the rows.
    anchor : (D,) or (D, k) array
        θ0. With k columns there is one κ and C is (b, k): f(Θ) = Σ_i ½ κ ‖Θ'a_i + c_i‖², whose
        Hessian is H in each column.

    Returns
    -------
    H : (D, D) array
        Exactly symmetric.
    g : array, shaped as ``anchor``

    Examples
    --------
    >>> import numpy as np
    >>> A, c = np.array([[1.0, 2.0], [0.0, 1.0]]), np.array([[3.0], [-1.0]])
    >>> H, g = gram([(A, c)], [2.0], np.zeros(2))
    >>> H.tolist(), g.tolist()
    ([[2.0, 4.0], [4.0, 10.0]], [6.0, 10.0])
    """
    kappa = np.asarray(weights, dtype=np.float64)
    d = anchor.shape[0]
    H, g = np.zeros((d, d)), np.zeros(anchor.shape)
    sparse_part: Any = None
    for A, C, *record_weights in blocks:
        g += _block_slope(A, C, record_weights, kappa, anchor)
        sparse: bool = sp.issparse(A)
        if sparse and A.nnz > DENSE_FILL * A.shape[0] * d:
            A, sparse = A.toarray(), False
        if record_weights:
            root = np.sqrt(record_weights[0] @ (kappa / kappa.sum()))[:, None]
            A = A.multiply(root).tocsr() if sparse else A * root
        product = A.T @ A
        if sparse:
            sparse_part = product if sparse_part is None else sparse_part + product
        else:
            H += product
    if sparse_part is not None:
        H += sparse_part.toarray()
    H *= kappa.sum()
    return 0.5 * (H + H.T), g
