"""The smooth part of the perturbed problem as a sum over records.

Everything that depends on a record is a kernel: a function of a block of rows A (b, p) and numbers
C (b, ·). `Records.sum` adds it up over blocks, wherever the records lie.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from cvxqop._blocks import back, dense, outputs, row_squares
from cvxqop.solve.smooth.quadratic import EPS, Evaluation, Quadratic
from cvxqop.solve.smooth.record_loss import Part

__all__ = ["FiniteSum"]

Array = npt.NDArray[np.float64]
Ranges = Sequence[tuple[int, int]]

FIRST = 256
"""Records from which the fill of sparse rows is judged."""

GRAM_SIDE = 200
"""Up to this many rows of Θ a quadratic sum is worked with as a quadratic form."""


@dataclass(frozen=True, eq=False)
class FiniteSum:
    """f(θ) = Σ_parts Σ_i ψ_i(Θ'a_i) + ½ (θ − θ0)'S(θ − θ0) + a'(θ − θ0).

    Parameters
    ----------
    parts : sequence of Part
        What a record adds: its rows, each with its loss.
    S : (D, D) array or sparse array
        Symmetric positive definite.
    a : (D,) array
        Linear term.
    anchor : (D,) array
        θ0.
    fine : bool
        Sum in small blocks and extended precision: slower, with a tenth of the rounding and less.
    """

    parts: Sequence[Part]
    S: Array
    a: Array
    anchor: Array
    fine: bool = False
    _sizes: list[Array] = field(default_factory=list, repr=False)

    @property
    def dimension(self) -> int:
        """D, the length of θ."""
        return int(self.a.shape[0])

    @property
    def n(self) -> int:
        """Number of records."""
        return self.parts[0].records.n

    @property
    def quadratic(self) -> bool:
        """Whether every ∇²ψ is constant."""
        return all(part.loss.quadratic for part in self.parts)

    @property
    def gram_is_small(self) -> bool:
        """Whether the Hessian of one output has few entries, and no more than the records."""
        width = max((part.layout.shape[0] for part in self.parts), default=0)
        return width <= GRAM_SIDE and self.n > width // 2

    @property
    def record_rank(self) -> int:
        """Rank of the Hessian of a record, at most."""
        return sum(part.loss.rank for part in self.parts)

    @property
    def remote(self) -> bool:
        """Whether records lie with workers: a pass is dear, and no record may be collected."""
        return any(part.records.remote for part in self.parts)

    @cached_property
    def _size(self) -> float:
        return float(sp.linalg.norm(self.S) if sp.issparse(self.S) else np.linalg.norm(self.S))

    def evaluate(self, theta: Array) -> Evaluation:
        """Value and gradient in one pass over the records; not finite where a row is not."""
        return self.evaluate_with(theta, [])[0]

    def evaluate_with(
        self, theta: Array, samples: Sequence[Ranges]
    ) -> tuple[Evaluation, list[Array]]:
        """`evaluate`, and `data_hessian` of each sample, in one pass."""
        with np.errstate(over="ignore", invalid="ignore"):
            return self._evaluate(theta, samples)

    def _evaluate(self, theta: Array, samples: Sequence[Ranges]) -> tuple[Evaluation, list[Array]]:
        first, blocks_of_samples = not self._sizes, []
        step = theta - self.anchor
        product = self.S @ step
        value = float(step @ (self.a + 0.5 * product))
        gradient = self.a + product
        error = (self.dimension + 4) * float(
            np.linalg.norm(self.a) + self._size * np.linalg.norm(step)
        )
        for k, part in enumerate(self.parts):
            coefficients = theta[part.layout]
            found, *hessians = part.records.sums(
                [
                    (_evaluate, (part.loss, coefficients, first), self.fine),
                    *((_hessian, (part.loss, coefficients, 0.0), False, s) for s in samples),
                ]
            )
            values, slopes, weighted, squared, blocks, squares, offsets = found
            blocks_of_samples.append([block for (block,) in hessians])
            if first:
                # They are the same in every pass.
                self._sizes.append(np.array([squares, offsets], dtype=np.float64))
            value += float(values)
            gradient[part.layout] += np.asarray(slopes, dtype=np.float64)
            sizes = self._sizes[k].tolist()
            error += self._rounding(part, theta, weighted, squared, blocks, sizes)
        bends = [self._embedded(blocks) for blocks in zip(*blocks_of_samples, strict=True)]
        return Evaluation(value, gradient, EPS * error), bends

    def _rounding(
        self,
        part: Part,
        theta: Array,
        weighted: float,
        squared: float,
        blocks: float,
        sizes: list[float],
    ) -> float:
        """Units of rounding in the gradient of a part, in the 2-norm.

        A block of b rows sums b products: (b + 8) ‖A_b‖_F ‖G_b‖_F, and over blocks, by Cauchy's
        inequality, ‖A‖_F (Σ (b + 8)² ‖G_b‖²)^½; then the sums of blocks are added. The slopes
        themselves: a'Θ + c is off by (p + 4) ‖a‖ ‖θ‖ + |c| units and ∇ψ by κ times that.
        """
        squares, offsets = sizes
        p, loss = part.layout.shape[0], part.loss
        between = blocks * (float(np.finfo(np.longdouble).eps) / EPS if self.fine else 1.0)
        error = float(np.sqrt(squares * weighted)) + between * float(np.sqrt(squares * squared))
        error += loss.curvature * (p + 8) * squares * float(np.linalg.norm(theta))
        error += loss.curvature * float(np.sqrt(squares * offsets))
        error += loss.roundings * float(np.sqrt(max(self.n, 1) * squares))
        return float(error)

    def hessian(self, theta: Array, radius: float = 0.0) -> Array:
        """A matrix below ∇²f everywhere within ``radius`` of θ; ∇²f(θ) for radius 0."""
        return np.asarray(self.data_hessian(theta, radius=radius) + self.S)

    def data_hessian(
        self, theta: Array, chosen: Ranges | None = None, *, radius: float = 0.0
    ) -> Array:
        """The part of the records, or of the chosen ones; (D, D)."""
        found = (
            part.records.sum(_hessian, part.loss, theta[part.layout], radius, chosen=chosen)[0]
            for part in self.parts
        )
        return self._embedded(found)

    def _embedded(self, blocks: Iterable[Any]) -> Array:
        """The Hessian (D, D) from that of every part."""
        H = np.zeros((self.dimension, self.dimension))
        for part, block in zip(self.parts, blocks, strict=True):
            H += part.embedded(block)
        return 0.5 * (H + H.T)

    def data_root(self, theta: Array, chosen: Ranges, *, sparse: bool = False) -> Any:
        """B with B'B = `data_hessian`: a few rows for each record that was chosen."""
        roots = []
        for part in self.parts:
            (found,) = part.records.sum(
                _root, part.loss, theta[part.layout], sparse, chosen=chosen, combine=_below
            )
            roots.append(part.spread_rows(found))
        return sp.vstack(roots, "csr") if sparse else np.vstack(roots)

    @cached_property
    def rows_are_thin(self) -> bool:
        """Whether a product with the rows costs less than a hundredth of a dense one."""
        first = [(0, min(self.n, FIRST))]
        found = [part.records.sum(_fill, chosen=first)[0] for part in self.parts]
        return all(share < 0.01 for share in found)

    def record_gradient(self, theta: Array, start: int, stop: int) -> Array:
        """Σ ∇ℓ_i(θ) over the records start…stop."""
        gradient = np.zeros(self.dimension)
        for part in self.parts:
            (found,) = part.records.sum(
                _gradient, part.loss, theta[part.layout], chosen=[(start, stop)]
            )
            gradient[part.layout] += found
        return gradient

    def lower_curvature(self) -> Array:
        """S."""
        return self.S

    def upper_curvature(self) -> float:
        """L ≥ λ_max(∇²f) everywhere, in one pass if none was made."""
        if not self._sizes:
            self.evaluate(self.anchor)
        squares = (
            part.loss.curvature * float(sizes[0])
            for part, sizes in zip(self.parts, self._sizes, strict=True)
        )
        return 1.01 * (sum(squares) + self._size)

    def record_smoothness(self) -> float:
        """L = max_i κ ‖a_i‖², in one pass."""
        largest = 0.0
        for part in self.parts:
            (found,) = part.records.sum(_largest, combine=np.maximum)
            largest += part.loss.curvature * float(found)
        return largest

    def data_smoothness(self) -> float:
        """λ_max of Σ κ a a' by power iteration over the records, raised by a tenth."""
        v = np.ones(self.dimension) / np.sqrt(self.dimension)
        value = 0.0
        for _ in range(8):
            w = np.zeros_like(v)
            for part in self.parts:
                (found,) = part.records.sum(_twice, v[part.layout])
                w[part.layout] += part.loss.curvature * found
            value = float(np.linalg.norm(w))
            if value == 0.0:
                return 0.0
            v = w / value
        return 1.1 * value

    def plus(self, Q: Array | None, q: Array) -> FiniteSum:
        """f(θ) + ½ θ'Qθ + q'θ, up to a constant."""
        if Q is None:
            return replace(self, a=self.a + q)
        return replace(self, S=self.S + Q, a=self.a + q + Q @ self.anchor)

    def gram_form(self) -> Quadratic:
        """The same f as a quadratic form, in one pass; every ψ must be quadratic."""
        H, g = dense(self.S).copy(), self.a.copy()
        for part in self.parts:
            block, gradient = part.quadratic_form(self.anchor)
            H += part.embedded(block)
            g += gradient
        return Quadratic(H, g, self.anchor)


def _evaluate(A: Any, C: Array, loss: Any, coefficients: Array, first: bool) -> tuple[Any, ...]:
    """Value, gradient, and the sizes that its rounding is bounded by."""
    values, slopes = loss.evaluate(outputs(A, coefficients), C)
    squared = float(np.vdot(slopes, slopes))
    squares = float(np.sum(row_squares(A))) if first else 0.0
    offsets = float(np.sum(np.square(C[:, : loss.shifts]))) if first else 0.0
    weighted = (len(values) + 8) ** 2 * squared
    value = float(np.sum(values))
    return value, back(A, slopes), weighted, squared, 1.0, squares, offsets


def _hessian(A: Any, C: Array, loss: Any, coefficients: Array, radius: float) -> tuple[Any]:
    reach = None if radius == 0.0 else radius * np.sqrt(row_squares(A))
    return (loss.hessian(A, outputs(A, coefficients), C, reach),)


def _root(A: Any, C: Array, loss: Any, coefficients: Array, sparse: bool) -> tuple[Any]:
    B = loss.root(A, outputs(A, coefficients), C)
    return (B if sparse else dense(B),)


def _fill(A: Any, C: Array) -> tuple[float]:
    """Share of entries that are stored."""
    return (A.nnz / max(A.shape[0] * A.shape[1], 1) if sp.issparse(A) else 1.0,)


def _gradient(A: Any, C: Array, loss: Any, coefficients: Array) -> tuple[Any]:
    return (back(A, loss.evaluate(outputs(A, coefficients), C)[1]),)


def _largest(A: Any, C: Array) -> tuple[float]:
    return (float(np.max(row_squares(A), initial=0.0)),)


def _twice(A: Any, C: Array, v: Array) -> tuple[Array]:
    return (back(A, outputs(A, v)),)


def _below(one: Any, other: Any, out: Any = None) -> Any:
    """Rows of the second below those of the first."""
    return sp.vstack([one, other], "csr") if sp.issparse(one) else np.vstack([one, other])
