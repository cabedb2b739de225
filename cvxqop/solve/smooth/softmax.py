"""The multinomial logistic loss over row blocks, with the protocol of `FiniteSum`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from cvxqop.solve.smooth.finite_sum import FiniteSum
from cvxqop.solve.smooth.gram import dense, row_squares, squares_of
from cvxqop.solve.smooth.quadratic import EPS, Evaluation

__all__ = ["SoftmaxSum"]

Array = npt.NDArray[np.float64]

ENTRIES = 400_000
"""Entries of the largest array that a block leads to: about three megabytes."""


@dataclass(frozen=True, eq=False)
class SoftmaxSum(FiniteSum):
    """f(θ) = w Σ_i [log Σ_j exp t_ij − y_i't_i] + ½ (θ − θ0)'S(θ − θ0) + a'(θ − θ0), t_i = Θ'a_i.

    Made by `SoftmaxSum.of`. With p_i = softmax(t_i) and M_i = diag p_i − p_i p_i', the gradient in
    Θ is w Σ a_i (p_i − y_i)' and the Hessian w Σ M_i ⊗ a_i a_i'.

    Parameters
    ----------
    rows : Rows
        a_i (p,), and the probability vectors y_i (k,) in the place of offsets.
    layout : (p, k) array of int
        Θ = θ[layout].
    weight : float
        w > 0.
    S, a, anchor
        As in `FiniteSum`.

    Examples
    --------
    >>> import numpy as np
    >>> class Rows:
    ...     n, dimension = 1, 1
    ...     def blocks(self, size):
    ...         yield np.array([[2.0]]), np.array([[1.0, 0.0]])
    >>> f = SoftmaxSum.of(
    ...     Rows(), np.array([[0, 1]]), 1.0, np.eye(2), np.zeros(2), np.zeros(2)
    ... )
    >>> found = f.evaluate(np.zeros(2))
    >>> round(found.value, 4), found.gradient.tolist()
    (0.6931, [-1.0, 1.0])
    """

    layout: npt.NDArray[np.intp] = field(default_factory=lambda: np.zeros((0, 0), dtype=np.intp))
    weight: float = 1.0

    @classmethod
    def of(
        cls,
        rows: Any,
        layout: npt.NDArray[np.intp],
        weight: float,
        S: Array,
        a: Array,
        anchor: Array,
    ) -> SoftmaxSum:
        """The sum over ``rows``."""
        return cls(rows, (), S, a, anchor, layout=layout, weight=weight)

    @property
    def quadratic(self) -> bool:
        """False."""
        return False

    @property
    def smoothness(self) -> float:
        """κ = w/2, the bound on λ_max(w M)."""
        return 0.5 * self.weight

    @property
    def record_rank(self) -> int:
        """Rank of the Hessian of a record, at most."""
        return int(self.layout.shape[1]) - 1

    @property
    def block(self) -> int:
        """Rows per block."""
        if self.fine:
            return 256
        return int(min(16384, max(256, ENTRIES // max(sum(self.layout.shape), 1))))

    def _evaluate(self, theta: Array) -> Evaluation:
        p, k = self.layout.shape
        coefficients = theta[self.layout]
        value, squares, slopes, blocks = 0.0, 0.0, 0.0, 0
        total: Any = np.zeros((p, k), dtype=np.longdouble if self.fine else np.float64)
        for A, Y in self.blocks():
            P, logs, T = _softmax(np.asarray(A @ coefficients))
            # T has been moved by its largest entry, which the entries of y, summing to 1, undo.
            value += float(np.sum(logs)) - float(np.sum(Y * T))
            P -= Y
            total += A.T @ P
            squares += squares_of(A)
            slopes += float(np.sum(P * P))
            blocks += 1
        step = theta - self.anchor
        product = self.S @ step
        gradient = self.a + product
        gradient[self.layout] += self.weight * total.astype(np.float64)
        # The sums over records; then p, whose argument and own rounding are off.
        between = blocks * (float(np.finfo(np.longdouble).eps) / EPS if self.fine else 1.0)
        n = max(self.rows.n, 1)
        error = (min(self.block, n) + between + 8) * float(np.sqrt(squares * slopes))
        error += 0.5 * (p + 8) * squares * float(np.linalg.norm(theta))
        error += (k + 8) * float(np.sqrt(n * squares))
        error *= self.weight
        error += (self.dimension + 4) * float(
            np.linalg.norm(self.a) + self._size * np.linalg.norm(step)
        )
        value = self.weight * value + float(step @ (self.a + 0.5 * product))
        return Evaluation(value, gradient, EPS * error)

    def hessian(self, theta: Array, radius: float = 0.0) -> Array:
        """A matrix below ∇²f everywhere within ``radius`` of θ; ∇²f(θ) for radius 0.

        Within that radius no t_i moves by more than δ = radius ‖a_i‖, differences of its entries by
        no more than √2 δ, and no entry of p_i falls below exp(−√2 δ) times what it is. Since
        x'M x = min_c Σ_j p_j (x_j − c)², M_i does not fall below exp(−√2 δ) M_i either.
        """
        return self.curvature_part(theta, 0, self.rows.n, 1.0, radius) + self.S

    def curvature_part(
        self, theta: Array, start: int, stop: int, factor: float, radius: float = 0.0
    ) -> Array:
        """factor · w Σ M_i ⊗ a_i a_i' over the records start…stop; (D, D)."""
        H = np.zeros((self.dimension, self.dimension))
        for A, P, root in self._weights(theta, start, stop, radius):
            scaled = A * root[:, None]
            for j, column in enumerate(self.layout.T):
                part = scaled * np.sqrt(P[:, j])[:, None]
                H[np.ix_(column, column)] += part.T @ part
            outer = np.empty((len(A), self.dimension))
            for j, column in enumerate(self.layout.T):
                outer[:, column] = scaled * P[:, [j]]
            H -= outer.T @ outer
        H *= factor * self.weight
        return 0.5 * (H + H.T)

    def curvature_root(self, theta: Array, start: int, stop: int, factor: float) -> Array:
        """B with B'B = `curvature_part`: k rows a record."""
        k = self.layout.shape[1]
        roots = [np.zeros((0, self.dimension))]
        for A, P, _ in self._weights(theta, start, stop, 0.0):
            # diag p − pp' = QQ' with Q = diag √p − p √p'.
            for j in range(k):
                Q = -P * np.sqrt(P[:, [j]])
                Q[:, j] += np.sqrt(P[:, j])
                part = np.empty((len(A), self.dimension))
                for column, q in zip(self.layout.T, Q.T, strict=True):
                    part[:, column] = A * q[:, None]
                roots.append(part)
        return np.asarray(np.sqrt(factor * self.weight) * np.vstack(roots))

    def record_gradient(self, theta: Array, start: int, stop: int) -> Array:
        """Σ ∇ℓ_i(θ) over the records start…stop."""
        A, Y = self.rows.take(start, stop)
        P = _softmax(np.asarray(A @ theta[self.layout]))[0]
        gradient = np.zeros(self.dimension)
        gradient[self.layout] = self.weight * np.asarray(A.T @ (P - Y))
        return gradient

    def _weights(
        self, theta: Array, start: int, stop: int, radius: float
    ) -> Iterator[tuple[Array, Array, Array]]:
        """Dense rows, p, and the square root of what M falls by, for small blocks."""
        size = max(64, ENTRIES // max(self.dimension, 1))
        for first in range(start, stop, size):
            A = dense(self.rows.take(first, min(first + size, stop))[0])
            P = _softmax(np.asarray(A @ theta[self.layout]))[0]
            yield A, P, np.exp(-np.sqrt(0.5) * radius * np.sqrt(row_squares(A)))


def _softmax(T: Array) -> tuple[Array, Array, Array]:
    """softmax of each row, log Σ exp of the rows of T less their largest entry, and those rows."""
    T = T - T.max(axis=1, keepdims=True)
    P = np.exp(T)
    sums = P.sum(axis=1, keepdims=True)
    P /= sums
    return P, np.log(sums[:, 0]), T
