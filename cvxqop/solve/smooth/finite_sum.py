"""The smooth part of the perturbed problem as a finite sum over row blocks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from cvxqop.solve.smooth.gram import dense, gram, row_squares, squares_of, weighted_gram
from cvxqop.solve.smooth.quadratic import EPS, Evaluation, Quadratic
from cvxqop.solve.smooth.record_loss import LossSum, RecordLoss

__all__ = ["FiniteSum", "Loss", "Rows"]

Array = npt.NDArray[np.float64]


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
        value, sizes, slopes, blocks = 0.0, np.zeros(2), 0.0, 0
        total: Any = np.zeros(self.dimension, dtype=np.longdouble if self.fine else np.float64)
        for A, C in self.blocks():
            values, slope = self.record_loss.evaluate(A @ theta, C)
            value += float(np.sum(values))
            total += A.T @ slope
            if not self._squares:
                sizes += self._squared_sizes(A, C)
            slopes += float(slope @ slope)
            blocks += 1
        if not self._squares:
            # They are the same in every pass.
            self._squares.extend(sizes.tolist())
        squares, offsets = self._squares
        step = theta - self.anchor
        product = self.S @ step
        gradient = total.astype(np.float64)
        # Products of length D, then sums of length `block`, then of `blocks`.
        kappa = self.record_loss.curvature
        between = blocks * (float(np.finfo(np.longdouble).eps) / EPS if self.fine else 1.0)
        lengths = min(self.block, max(self.rows.n, 1)) + between + 8
        error = lengths * float(np.sqrt(squares * slopes))
        # a'θ + c is off by (D + 1) ‖a‖ ‖θ‖ + |c| units, φ' by κ times that.
        error += kappa * (self.dimension + 4) * squares * float(np.linalg.norm(theta))
        error += kappa * float(np.sqrt(squares * offsets))
        error += (self.dimension + 4) * float(
            np.linalg.norm(self.a) + self._size * np.linalg.norm(step)
        )
        value += float(step @ (self.a + 0.5 * product))
        return Evaluation(value, gradient + self.a + product, EPS * error)

    def _squared_sizes(self, A: Any, C: Array) -> Array:
        """‖A‖_F² and ‖C‖_F² of a block."""
        offsets = C[:, : self.record_loss.offsets]
        return np.array([squares_of(A), float(np.sum(np.square(offsets)))])

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

    def upper_curvature(self) -> float:
        """L ≥ λ_max(∇²f) everywhere, in one pass if none was made."""
        if not self._squares:
            sizes = sum((self._squared_sizes(A, C) for A, C in self.blocks()), np.zeros(2))
            self._squares.extend(sizes.tolist())
        return 1.01 * (self.smoothness * self._squares[0] + self._size)

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
