"""The objective of a multinomial logistic loss: gradient and Hessian, many points at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import softmax

from cvxqop._blocks import dense
from cvxqop.audit.objective import public_rest
from cvxqop.case import Case
from cvxqop.errors import OptionError
from cvxqop.problem.losses.recognised import RecognisedSums

__all__ = ["SoftmaxObjective", "contrasts"]

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class SoftmaxObjective:
    """J(u) = w Σ_i [log Σ_j exp t_ij − y_i't_i] + g'u + ½ u'Ku, t_i = Θ'a_i, up to a constant.

    Θ (p, k) is θ0 + Bu, with an orthonormal B: all of θ, or a subspace outside of which J is
    constant.

    Attributes
    ----------
    rows : ndarray, shape (n, p)
        a_i, clipped.
    labels : ndarray, shape (n, k)
        y_i, probability vectors.
    weight : float
        w.
    base : ndarray, shape (p, k)
        Θ at u = 0.
    directions : ndarray, shape (d, p, k)
        The columns of B as matrices.
    linear : ndarray, shape (d,)
        g.
    curvature : ndarray, shape (d, d)
        K.

    Examples
    --------
    >>> import numpy as np
    >>> J = SoftmaxObjective(
    ...     np.array([[2.0]]), np.array([[1.0, 0.0]]), 1.0, np.zeros((1, 2)),
    ...     np.eye(2).reshape(2, 1, 2), np.zeros(2), np.zeros((2, 2)),
    ... )
    >>> gradient, hessian = J.at(np.zeros((1, 2)))
    >>> gradient.tolist(), hessian.tolist()
    ([[-1.0, 1.0]], [[[1.0, -1.0], [-1.0, 1.0]]])
    """

    rows: Array
    labels: Array
    weight: float
    base: Array
    directions: Array
    linear: Array
    curvature: Array

    @classmethod
    def of(cls, case: Case) -> SoftmaxObjective:
        """The objective that a case minimises before it is perturbed.

        All of θ for D ≤ 2. Otherwise, for one feature and a public rest that does not depend on
        Σ_j θ_j, the k − 1 directions that are left.

        Raises
        ------
        OptionError
            If the public rest is not quadratic, or more than two directions are left.
        """
        sums = case.sums
        assert isinstance(sums, RecognisedSums)
        (part,) = sums.parts
        linear, curvature = public_rest(case)
        D, (p, k) = part.dimension, part.layout.shape
        basis = np.eye(D)
        if D > 2:
            basis = np.stack(
                [part.spread(column.reshape(1, k)) for column in contrasts(k)], axis=1
            ) if p == 1 else basis  # fmt: skip
            left = linear - basis @ (basis.T @ linear), curvature - basis @ (basis.T @ curvature)
            if basis.shape[1] > 2 or any(np.max(np.abs(each)) > 1e-9 for each in left):
                raise OptionError(
                    "divergence: a multinomial loss has a density that is known here for two "
                    "classes and one feature, or for three, with a public rest that does not "
                    "depend on the sum of their coefficients."
                )
        A, labels = part.records.take(0, part.records.n)
        return cls(
            dense(A),
            labels,
            part.loss.weight,
            case.anchor[part.layout],
            np.stack([column[part.layout] for column in basis.T]),
            basis.T @ linear,
            basis.T @ curvature @ basis,
        )

    @property
    def dimension(self) -> int:
        """d, the number of directions."""
        return len(self.linear)

    def at(self, u: Array) -> tuple[Array, Array]:
        """Gradients (N, d) and Hessians (N, d, d) at points u (N, d)."""
        gradient = u @ self.curvature + self.linear
        hessian = np.tile(self.curvature, (len(u), 1, 1))
        for a, y in zip(self.rows, self.labels, strict=True):
            along = np.einsum("p,dpk->dk", a, self.directions)
            P = softmax(a @ self.base + u @ along, axis=1)
            mean = P @ along.T
            gradient += self.weight * (mean - along @ y)
            spread = np.einsum("nk,dk,ek->nde", P, along, along, optimize=True)
            hessian += self.weight * (spread - mean[:, :, None] * mean[:, None, :])
        return gradient, hessian


def contrasts(k: int) -> Array:
    """An orthonormal basis, as rows, of the vectors of length k whose sum is 0.

    Examples
    --------
    >>> np.round(contrasts(3), 3).tolist()
    [[0.707, -0.707, 0.0], [0.408, 0.408, -0.816]]
    """
    basis = np.zeros((k - 1, k))
    for j in range(1, k):
        basis[j - 1, :j], basis[j - 1, j] = 1.0, -float(j)
    return np.asarray(basis / np.linalg.norm(basis, axis=1)[:, None])
