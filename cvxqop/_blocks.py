"""Arithmetic of row blocks: A (b, p) is an ndarray, or a CSR array in canonical form."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

__all__ = ["back", "canonical", "dense", "outputs", "row_squares", "scale_rows", "weighted_gram"]

Array = npt.NDArray[np.float64]

DENSE_FILL = 0.07
"""Above this share of nonzeros dense products are faster."""


def is_sparse(A: Any) -> bool:
    """Whether A is sparse."""
    return bool(sp.issparse(A))


def canonical(array: Any) -> Any:
    """A CSR array of float64 with sorted indices and every position stored at most once.

    A matrix may store a position twice and mean the sum; whoever looks at stored entries, as a
    norm of rows does, would see something else. Entries are converted before they are added up.
    Memory is shared where ``array`` already has this form; it is never written to.
    """
    rows = sp.csr_array(array.astype(np.float64, copy=False))
    # A matrix remembers whether it has this form, even if its indices were changed since.
    rows = sp.csr_array((rows.data, rows.indices, rows.indptr), shape=rows.shape)
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    return rows


def scale_rows(array: Any, factor: Array) -> Any:
    """Every row of a CSR array times its own number; positions stay what they are."""
    data = array.data * np.repeat(factor, np.diff(array.indptr))
    return sp.csr_array((data, array.indices, array.indptr), shape=array.shape)


def dense(A: Any) -> Array:
    """A block of rows as an array."""
    return np.asarray(A.toarray() if is_sparse(A) else A)


def outputs(A: Any, coefficients: Array) -> Array:
    """T = A Θ (b, k) for Θ (p, k)."""
    if coefficients.shape[1] == 1:  # a product with one vector is faster than with a matrix
        return np.asarray(A @ coefficients[:, 0]).reshape(-1, 1)
    return np.asarray(A @ coefficients)


def back(A: Any, slopes: Array) -> Array:
    """A' G (p, k) for G (b, k)."""
    if slopes.shape[1] == 1:
        return np.asarray(A.T @ slopes[:, 0]).reshape(-1, 1)
    return np.asarray(A.T @ slopes)


def row_squares(A: Any) -> Array:
    """‖a‖² of each row; a sparse A must store every position once, as `canonical` does."""
    with np.errstate(over="ignore", invalid="ignore"):
        if is_sparse(A):
            assert A.has_canonical_format, "a position that is stored twice has another norm"
            squared = sp.csr_array((np.square(A.data), A.indices, A.indptr), shape=A.shape)
            return np.asarray(squared.sum(axis=1), dtype=np.float64).reshape(-1)
        return np.asarray(np.einsum("ij,ij->i", A, A), dtype=np.float64)


def weighted_gram(A: Any, weights: Array | None) -> Any:
    """A' diag(weights) A for weights ≥ 0 (ones by default), sparse where that is cheaper."""
    if is_sparse(A) and A.nnz > DENSE_FILL * A.shape[0] * A.shape[1]:
        A = A.toarray()
    if weights is not None:
        root = np.sqrt(weights)
        A = scale_rows(A, root) if is_sparse(A) else A * root[:, None]
    return A.T @ A
