"""The smooth part of the perturbed problem as a quadratic form, and how rows become one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

__all__ = ["Quadratic", "gram"]

Array = npt.NDArray[np.float64]

# A sparse A'A costs about fill² · 190 times the dense product of the same shape (measured).
DENSE_FILL = 0.07


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
        return self.g + self.H @ (theta - self.anchor)


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
    anchor : (D,) array
        θ0.

    Returns
    -------
    H : (D, D) array
        Exactly symmetric.
    g : (D,) array

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
    H, g = np.zeros((d, d)), np.zeros(d)
    sparse_part: Any = None
    shifted = bool(np.any(anchor))
    for A, C, *record_weights in blocks:
        if shifted:
            C = C + (A @ anchor)[:, None]
        if record_weights:
            C = C * record_weights[0]
        g += A.T @ (C @ kappa)
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
