"""The multinomial logistic loss log Σ_j exp t_j − y't, t = Θ'a (k,): constants and sums."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cvxqop._blocks import dense

__all__ = ["Multinomial", "Softmax", "WeightedSoftmax"]

Array = npt.NDArray[np.float64]

ENTRIES = 2**19
"""Entries of the largest array that rows lead to: about four megabytes."""


@dataclass(frozen=True)
class Multinomial:
    """log Σ_j exp t_j − y't for probability vectors y of length k ≥ 2.

    With p = softmax(t) the gradient in t is p − y and the Hessian M = diag p − pp', so that in Θ
    they are a(p − y)' and M ⊗ aa'. For every t and y:

        λ_max(M) ≤ ½:         x'Mx is the variance of x under p, at most (max x − min x)²/4, and
                              (max x − min x)² ≤ 2‖x‖². Attained at p = (½, ½, 0, …).
        tr M ≤ 1 − 1/k:       tr M = 1 − Σ p_j². Attained at the uniform p.
        ‖M‖_F ≤ ½:            with s_q = Σ p_j^q, ‖M‖_F² = s_2 − 2 s_3 + s_2², and s_2² ≤ s_1 s_3
                              (Cauchy, Schwarz), so that it is ≤ s_2 − s_2² ≤ ¼. At (½, ½, 0, …).
        rank M ≤ k − 1:       M 1 = 0, also for means of such matrices. k = 2 is the GLM form.
        ‖p − y‖ < √2,         at t = 0 ‖p − y‖ ≤ √(1 − 1/k), attained by one-hot y.

    Parameters
    ----------
    count : int
        k.

    Examples
    --------
    >>> loss = Multinomial(4)
    >>> loss.curvature, loss.trace, loss.hessian_rank, round(loss.slope_at_zero, 3)
    (0.5, 0.75, 3, 0.866)
    """

    count: int
    quadratic: bool = False
    even: bool = False

    @property
    def name(self) -> str:
        """Name for people."""
        return f"multinomial logistic, log Σ exp t − y't with {self.count} classes"

    @property
    def curvature(self) -> float:
        """κ = sup λ_max(M)."""
        return 0.5

    @property
    def trace(self) -> float:
        """sup tr M."""
        return 1.0 - 1.0 / self.count

    @property
    def frobenius(self) -> float:
        """sup ‖M‖_F."""
        return 0.5

    @property
    def hessian_rank(self) -> int:
        """max rank M."""
        return self.count - 1

    @property
    def slope(self) -> float:
        """sup ‖p − y‖."""
        return math.sqrt(2.0)

    @property
    def slope_at_zero(self) -> float:
        """sup ‖p − y‖ at t = 0."""
        return math.sqrt(1.0 - 1.0 / self.count)

    def slope_bound(self, bound: float) -> float:
        """sup ‖p − y‖ over ‖t‖ ≤ bound, for bound > 0 by sup ‖p − y‖ anywhere."""
        return self.slope_at_zero if bound == 0.0 else self.slope


@dataclass(frozen=True, eq=False)
class Softmax:
    """w (log Σ_j exp t_j − y't) as sums over blocks, the labels y (k,) in the rows of C.

    With p = softmax(t) and M = diag p − pp' the gradient in t is w (p − y) and the Hessian w M.

    Parameters
    ----------
    count : int
        k.
    weight : float
        w > 0.

    Examples
    --------
    >>> values, slopes = Softmax(2, 1.0).evaluate(np.zeros((1, 2)), np.array([[1.0, 0.0]]))
    >>> values.round(4).tolist(), slopes.tolist()
    ([0.6931], [[-0.5, 0.5]])
    """

    count: int
    weight: float = 1.0
    shifts = 0
    quadratic = False

    @property
    def curvature(self) -> float:
        """w/2, the bound on λ_max(w M)."""
        return 0.5 * self.weight

    @property
    def rank(self) -> int:
        """k − 1."""
        return self.count - 1

    @property
    def roundings(self) -> float:
        """Probabilities are off by a few units, however small p − y is."""
        return (self.count + 8) * self.weight

    def evaluate(self, T: Array, C: Array) -> tuple[Array, Array]:
        """Values and w (p − y)."""
        P, logs, T = _softmax(T)
        # T has been moved by its largest entry, which the entries of y, summing to 1, undo.
        values = logs - np.einsum("ij,ij->i", C, T)
        return self.weight * values, self.weight * (P - C)

    def hessian(self, A: Any, T: Array, C: Array, reach: Array | None = None) -> Array:
        """Σ w M ⊗ aa'.

        While no entry of t moves by more than δ, and no t by more than δ in its norm, differences
        of its entries move by no more than √2 δ, and no entry of p falls below exp(−√2 δ) times
        what it is. Since x'M x = min_c Σ_j p_j (x_j − c)², M does not fall below exp(−√2 δ) M
        either.
        """
        P, A, k, p = _softmax(T)[0], dense(A), self.count, A.shape[1]
        if reach is not None:
            A = A * np.exp(-np.sqrt(0.5) * reach)[:, None]
        H = np.zeros((k * p, k * p))
        size = max(64, ENTRIES // (k * p))
        for start in range(0, len(A), size):
            rows, weights = A[start : start + size], P[start : start + size]
            outer = (weights[:, :, None] * rows[:, None, :]).reshape(len(rows), k * p)
            H -= outer.T @ outer
            for j in range(k):
                part = rows * np.sqrt(weights[:, [j]])
                H[j * p : (j + 1) * p, j * p : (j + 1) * p] += part.T @ part
        return self.weight * H

    def root(self, A: Any, T: Array, C: Array) -> Array:
        """k rows a record."""
        P, A, k, p = _softmax(T)[0], dense(A), self.count, A.shape[1]
        # diag p − pp' = QQ' with Q = diag √p − p √p'.
        Q = np.sqrt(P)[:, :, None] * (np.eye(k) - P[:, None, :])
        return np.asarray(
            np.sqrt(self.weight) * np.einsum("bjl,bi->bjli", Q, A).reshape(len(A) * k, k * p)
        )

    def quadratic_form(self, A: Any, C: Array, anchor: Array) -> tuple[Any, Array]:
        """The loss is not quadratic."""
        raise NotImplementedError


class WeightedSoftmax(Softmax):
    """`Softmax` with a weight of its own for each record, the last number in the rows of C."""

    def evaluate(self, T: Array, C: Array) -> tuple[Array, Array]:
        """Values and slopes, weighted."""
        values, slopes = super().evaluate(T, C[:, :-1])
        return C[:, -1] * values, C[:, [-1]] * slopes

    def hessian(self, A: Any, T: Array, C: Array, reach: Array | None = None) -> Array:
        """Σ of weighted Hessians: of rows times the root of the weight."""
        return super().hessian(dense(A) * np.sqrt(C[:, [-1]]), T, C, reach)

    def root(self, A: Any, T: Array, C: Array) -> Array:
        """k rows a record."""
        return super().root(dense(A) * np.sqrt(C[:, [-1]]), T, C)


def _softmax(T: Array) -> tuple[Array, Array, Array]:
    """softmax of each row, log Σ exp of the rows of T less their largest entry, and those rows."""
    T = T - T.max(axis=1, keepdims=True)
    P = np.exp(T)
    sums = P.sum(axis=1, keepdims=True)
    P /= sums
    return P, np.log(sums[:, 0]), T
