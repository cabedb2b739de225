"""What a reading holds beside its records: every number that anybody but their holder may see."""

from __future__ import annotations

import numbers
from collections.abc import Iterator, Mapping
from types import BuiltinFunctionType, FunctionType
from typing import Any

import numpy as np
import scipy.sparse as sp

from cvxqop.problem.records.pieces import Leaf

__all__ = ["fingerprint", "numbers_of"]

_SILENT = (str, bytes, type, numbers.Number, FunctionType, BuiltinFunctionType, np.ufunc)

# The leaves that hold records, a declared loss over them, and derivatives of CVXPY's own.
_PRIVATE = frozenset({"private_leaves", "private_arrays", "term", "_given"})
_CACHES = frozenset({"_csr", "id", "_id", "_value_source_id"})


def fingerprint(erm: Any) -> list[bytes]:
    """The public numbers of a reading with their shapes, in order; equal on neighbouring data."""
    return [repr(a.shape).encode() + np.ascontiguousarray(a).tobytes() for a in numbers_of(erm)]


def numbers_of(erm: Any) -> Iterator[Any]:
    """Every array and floating-point number that a reading holds outside its private leaves.

    This walk knows nothing of CVXPY: it looks into whatever has attributes or elements.
    """
    seen: dict[int, Any] = {}
    stack = [erm]
    while stack:
        item = stack.pop()
        if isinstance(item, np.ndarray):
            yield np.asarray(item, dtype=np.float64 if item.dtype != object else object)
        elif sp.issparse(item):
            yield item.toarray()
        elif isinstance(item, numbers.Real) and not isinstance(item, bool | int):
            yield np.asarray(float(item))
        elif not (isinstance(item, _SILENT) or id(item) in seen or _is_private(item)):
            seen[id(item)] = item
            stack.extend(_parts(item))


def _is_private(item: Any) -> bool:
    return isinstance(item, Leaf) and item.private


def _parts(item: Any) -> list[Any]:
    if isinstance(item, Mapping):
        return [part for pair in item.items() for part in pair]
    if isinstance(item, list | tuple | set | frozenset):
        return list(item)
    state = dict(getattr(item, "__dict__", {}))
    return [value for name, value in state.items() if name not in _PRIVATE | _CACHES]
