"""Whether two arrays hold the same numbers, up to a transpose or an axis of length one."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from cvxqop._blocks import canonical
from cvxqop._cvxpy import is_sparse

__all__ = ["NO_MATCH", "is_constant", "is_zero", "record_axis"]

_BLOCK = 1 << 18  # entries compared at a time

NO_MATCH: Any = object()


def record_axis(entry: Any, value: Any) -> Any:
    """The axis of ``value`` along which the rows of ``entry`` lie, or ``NO_MATCH``."""
    if is_sparse(entry) != is_sparse(value):
        return NO_MATCH
    if value.shape[0] * value.shape[-1] == 0 and entry.ndim != value.ndim:
        return NO_MATCH  # no entries to compare: a column of no ones is not a target
    if is_sparse(entry):
        straight = entry.shape == value.shape and _same_sparse(entry, value)
        turned = (
            entry.ndim == 2 and entry.shape[::-1] == value.shape and _same_sparse(entry.T, value)
        )
    else:
        sides = [side for side in entry.shape if side != 1]
        if len(sides) <= 1 and [side for side in value.shape if side != 1] == sides:
            return _vector_axis(entry, value) if _same(entry.ravel(), value.ravel()) else NO_MATCH
        straight = entry.shape == value.shape and _same(entry, value)
        turned = entry.ndim == 2 and entry.shape[::-1] == value.shape and _same(entry.T, value)
    if straight and turned:
        return None
    return 0 if straight else 1 if turned else NO_MATCH


def is_constant(array: Any) -> bool:
    """Whether all entries of a dense array are the same number, or there are none."""
    return bool(not is_sparse(array) and np.all(array == array.flat[:1]))


def is_zero(array: Any) -> bool:
    """Whether an array has entries and all of them are zero."""
    if is_sparse(array):
        return bool(array.shape[0] * array.shape[-1] > 0 and not np.any(_canonical(array).data))
    return bool(array.size > 0 and not np.any(array))


def _vector_axis(entry: Any, value: Any) -> int | None:
    if entry.size == 1:
        return None
    records_on_long_axis = entry.ndim == 1 or entry.shape[1] == 1
    if value.ndim == 1:
        return 0 if records_on_long_axis else -1
    long_axis = 0 if value.shape[1] == 1 else 1
    return long_axis if records_on_long_axis else 1 - long_axis


def _same(a: Any, b: Any) -> bool:
    """Equality entry by entry, NaN equal to NaN, by blocks with early exit."""
    rows = max(1, _BLOCK // max(1, a.size // max(1, a.shape[0])))
    for start in range(0, a.shape[0], rows):
        x, y = a[start : start + rows], b[start : start + rows]
        equal = x == y
        if not equal.all():
            x, y = x[~equal], y[~equal]
            if not (np.all(x != x) and np.all(y != y)):
                return False
    return True


def _same_sparse(a: Any, b: Any) -> bool:
    a, b = _canonical(a), _canonical(b)
    return bool(
        a.nnz == b.nnz
        and np.array_equal(a.indptr, b.indptr)
        and np.array_equal(a.indices, b.indices)
        and _same(a.data, b.data)
    )


def _canonical(array: Any) -> Any:
    """One form for both sides; the conversion is CVXPY's, which has made one of them."""
    return canonical(sp.csc_array(array, dtype=np.float64)).tocsc()
