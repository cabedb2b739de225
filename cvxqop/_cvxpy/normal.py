"""Constants that CVXPY itself writes into an expression: those of ``log_normcdf``."""

from __future__ import annotations

from functools import cache
from typing import Any

import cvxpy as cp
import numpy as np

from cvxqop._cvxpy.nodes import is_sparse, kind, leaf_value, leaves

__all__ = ["is_of_log_normcdf"]


@cache
def _own() -> tuple[Any, ...]:
    values = (
        leaf_value(leaf)
        for leaf in leaves(cp.log_normcdf(cp.Variable()))
        if kind(leaf) == "constant"
    )
    return tuple(_dense(value) for value in values if np.size(_dense(value)) > 1)


def _dense(value: Any) -> Any:
    return value.toarray() if is_sparse(value) else np.asarray(value)


def is_of_log_normcdf(array: Any) -> bool:
    """Whether an array is a constant of CVXPY's approximation, one column for all records or one
    for each."""
    if array.ndim != 2:
        return False
    for own in _own():
        columns = (1, array.shape[1]) if own.shape[1] == 1 else (1, 1)
        if own.shape[0] == array.shape[0] and np.array_equal(np.tile(own, columns), _dense(array)):
            return True
    return False
