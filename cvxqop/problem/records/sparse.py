"""Sparse arrays in the one form in which stored entries are entries of the matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

__all__ = ["canonical", "scale_rows"]

Array = npt.NDArray[np.float64]


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
