"""Clipped records with the loss of their outputs: what the solver and a quadratic release sum."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from cvxqop._blocks import dense, row_squares
from cvxqop.problem.losses.margins import LossSum
from cvxqop.problem.records.cut_rows import UNSEEN
from cvxqop.problem.records.sums import Summed

__all__ = ["Part"]

Array = npt.NDArray[np.float64]

_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class Part:
    """Σ_i ψ_i(Θ'a_i) over clipped records, Θ = θ[layout].

    Attributes
    ----------
    records : Summed
        a_i (p,), and the numbers of ψ_i.
    loss : LossSum, CutLoss, Squares or Softmax
        ψ, as `cvxqop.solve.smooth.record_loss.RecordLoss` says.
    layout : int array, shape (p, k)
        Where Θ stands in θ; an entry of θ occurs once at most.
    dimension : int
        D, the length of θ.
    """

    records: Summed
    loss: Any
    layout: npt.NDArray[np.intp]
    dimension: int

    @classmethod
    def of(cls, records: Summed, losses: Sequence[Any]) -> Part:
        """φ_j(a'θ + c_j), one number a record, on all of θ.

        Examples
        --------
        >>> from cvxqop.problem.losses.scalar import squared
        >>> from cvxqop.problem.records.rows import ArrayRows
        >>> rows = ArrayRows(np.array([[1.0, 2.0]]), np.array([[3.0]]))
        >>> H, g = Part.of(rows, [squared]).quadratic_form(np.zeros(2))
        >>> H.tolist(), g.tolist()
        ([[2.0, 4.0], [4.0, 8.0]], [6.0, 12.0])
        """
        D = records.dimension
        return cls(records, LossSum(losses), np.arange(D)[:, None], D)

    @cached_property
    def place(self) -> npt.NDArray[np.intp]:
        """Entries of θ, output by output."""
        return self.layout.T.reshape(-1)

    @cached_property
    def _whole(self) -> bool:
        """Whether Θ is θ as it stands."""
        return np.array_equal(self.place, np.arange(self.dimension))

    def spread(self, gradient: Array) -> Array:
        """(D,) from a gradient in Θ (p, k)."""
        whole = np.zeros(self.dimension)
        whole[self.layout] = gradient
        return whole

    def spread_rows(self, rows: Any) -> Any:
        """(·, D) from rows in Θ (·, kp), output by output."""
        if self._whole:
            return rows
        select = sp.csr_array(
            (np.ones(len(self.place)), (np.arange(len(self.place)), self.place)),
            shape=(len(self.place), self.dimension),
        )
        return rows @ select

    def embedded(self, block: Any) -> Array:
        """(D, D) from a Hessian in Θ, or from that of one output where all have the same."""
        H = dense(block)
        if self._whole and len(H) == self.dimension:
            return H
        whole = np.zeros((self.dimension, self.dimension))
        places = [self.place] if len(H) == len(self.place) else list(self.layout.T)
        for place in places:
            whole[np.ix_(place, place)] = H
        return whole

    def quadratic_form(self, anchor: Array) -> tuple[Array, Array]:
        """Hessian and gradient (D,) at the anchor in one pass; the loss must be quadratic.

        The Hessian is (p, p) where the outputs have the same, else (kp, kp): see `embedded`.
        """
        H, g = self.records.sum(_quadratic_form, self.loss, anchor[self.layout])
        H = dense(H)
        return 0.5 * (H + H.T), self.spread(g)

    def gradient(self, anchor: Array) -> Array:
        """That gradient alone."""
        (g,) = self.records.sum(_slope, self.loss, anchor[self.layout])
        return self.spread(g)

    def value(self, anchor: Array) -> float:
        """The sum itself at the anchor."""
        (total,) = self.records.sum(_value, self.loss, anchor[self.layout])
        return float(total[0])

    def cut_gradients(self, anchor: Array, cuts: Array, edges: Array) -> tuple[Array, Array]:
        """Σ ∇ℓ_i with the gradient of each record cut to each of some norms, and a histogram of the
        norms, in one pass.

        Parameters
        ----------
        anchor : ndarray, shape (D,)
            Where the gradients are taken.
        cuts : ndarray, shape (m,)
            ζ > 0: a gradient that is longer is scaled to this norm.
        edges : ndarray, shape (b + 1,)
            A norm in [edges_j, edges_(j+1)) counts in bin j, zero and one beyond the edges
            nowhere.

        Returns
        -------
        gradients : ndarray, shape (m, D)
        counts : ndarray, shape (b,)
        """
        found, counts = self.records.sum(
            _cut_gradients, self.loss, anchor[self.layout], cuts, edges
        )
        return np.stack([self.spread(gradient) for gradient in found]), np.asarray(counts)


def _quadratic_form(A: Any, C: Array, loss: Any, anchor: Array) -> tuple[Any, ...]:
    return tuple(loss.quadratic_form(A, C, anchor))


def _slope(A: Any, C: Array, loss: Any, anchor: Array) -> tuple[Any]:
    return (A.T @ loss.evaluate(np.asarray(A @ anchor), C)[1],)


def _value(A: Any, C: Array, loss: Any, anchor: Array) -> tuple[Array]:
    return (np.sum(loss.evaluate(np.asarray(A @ anchor), C)[0], keepdims=True),)


def _cut_gradients(
    A: Any, C: Array, loss: Any, anchor: Array, cuts: Array, edges: Array
) -> tuple[Array, Array]:
    p, k = anchor.shape
    slopes = loss.evaluate(np.asarray(A @ anchor), C)[1]
    norms = np.sqrt(row_squares(A)) * np.sqrt(row_squares(slopes))
    # No gradient is longer than its cut, whatever the rounding of its norm.
    most = norms * (1.0 + (p + k + 8) * _EPS) + UNSEEN
    parts = np.minimum(1.0, cuts * (1.0 - 4.0 * _EPS) / most[:, None])
    cut = (parts[:, :, None] * slopes[:, None, :]).reshape(len(norms), len(cuts) * k)
    gradients = np.asarray(A.T @ cut).reshape(p, len(cuts), k)
    counts = np.histogram(norms[norms > 0.0], edges)[0].astype(np.float64)
    return gradients.transpose(1, 0, 2).copy(), counts
