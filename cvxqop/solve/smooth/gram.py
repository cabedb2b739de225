"""Sums over blocks of rows: Hessian and gradient of a sum of squares, and what else is needed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

__all__ = ["dense", "gram", "row_squares", "slope", "squares_of", "weighted_gram"]

Array = npt.NDArray[np.float64]

# A sparse A'A costs about fill² · 190 times the dense product of the same shape (measured).
DENSE_FILL = 0.07


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
