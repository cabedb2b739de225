"""What a node of an expression is as a function of one number: an array of piecewise functions.

Of an argument with one entry a record, one record is looked at: the axis of the records has length
1 in the array, and what stands beside it must be the same for every record.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cvxqop.problem.losses.phi.piecewise import Piecewise
from cvxqop.problem.losses.phi.smooth import Unread

__all__ = ["Sheet", "elementwise", "function_array", "of_one_record", "reduced"]

_LARGEST = 4096
_COMBINES = "combines several records"


@dataclass(frozen=True, eq=False)
class Sheet:
    """Functions of one number.

    Parameters
    ----------
    entries : array of Piecewise
        The shape of the node, with 1 in place of the number of records.
    axis : int or None
        The axis of the records; None where there is none.
    summed : bool
        Whether the node is the sum of this over the records.
    """

    entries: Any
    axis: int | None = None
    summed: bool = False

    def __post_init__(self) -> None:
        if self.entries.size > _LARGEST:
            raise Unread("has too many numbers a record")


def function_array(values: Any) -> Any:
    """An array of constant functions."""
    flat = np.asarray(values, dtype=np.float64)
    if flat.size > _LARGEST:
        raise Unread("has too many numbers a record")
    found = np.empty(flat.shape, dtype=object)
    for index in np.ndindex(flat.shape):
        found[index] = Piecewise.number(float(flat[index]))
    return found


def of_one_record(values: Any, axis: int | None) -> Any:
    """Public numbers that stand beside records along an axis: those of one record."""
    if axis is None or axis < 0 or values.shape[axis] == 1:
        return values
    first = np.take(values, [0], axis=axis)
    if not np.array_equal(np.broadcast_to(first, values.shape), values):
        raise Unread("has public numbers that differ from record to record")
    return first


def elementwise(
    function: Callable[..., Any], arguments: Sequence[Any], ndim: int, linear: bool
) -> Sheet:
    """An entrywise function of sheets and arrays of public numbers; of sums where ``linear``."""
    sheets = [one for one in arguments if isinstance(one, Sheet)]
    summed = any(one.summed for one in sheets)
    if summed and not (linear and all(one.summed for one in sheets)):
        raise Unread("is not a sum of one function over the records")
    axes = {one.axis + ndim - one.entries.ndim for one in sheets if one.axis is not None}
    if len(axes) > 1:
        raise Unread(_COMBINES)
    axis = axes.pop() if axes else None
    arrays = []
    for one in arguments:
        if isinstance(one, Sheet):
            arrays.append(one.entries)
        else:
            own = None if axis is None else axis - (ndim - one.ndim)
            arrays.append(of_one_record(one, own).astype(object))
    shape = np.broadcast_shapes(*(array.shape for array in arrays))
    if math.prod(shape) > _LARGEST:
        raise Unread("has too many numbers a record")
    aligned = [np.broadcast_to(array, shape) for array in arrays]
    found = np.empty(shape, dtype=object)
    for index in np.ndindex(shape):
        found[index] = function(*(array[index] for array in aligned))
    return Sheet(found, axis, summed)


def reduced(
    sheet: Sheet,
    axes: Sequence[int],
    keepdims: bool,
    function: Callable[[list[Piecewise]], Piecewise],
    adds: bool,
) -> Sheet:
    """A function of the entries along some axes; over the records only where it ``adds``."""
    over = sheet.axis is not None and sheet.axis in axes
    if sheet.summed or (over and not adds):
        raise Unread(_COMBINES)
    ndim = sheet.entries.ndim
    rest = [k for k in range(ndim) if k not in axes]
    moved = np.transpose(sheet.entries, [*rest, *axes])
    kept = moved.shape[: len(rest)]
    found = np.empty(kept, dtype=object)
    for index in np.ndindex(kept):
        found[index] = function(list(np.asarray(moved[index], dtype=object).ravel()))
    axis = sheet.axis
    if over:
        axis = None
    elif axis is not None and not keepdims:
        axis -= sum(k < axis for k in axes)
    if keepdims:
        shape = [1 if k in axes else sheet.entries.shape[k] for k in range(ndim)]
        found = found.reshape(shape)
    return Sheet(found, axis, over)
