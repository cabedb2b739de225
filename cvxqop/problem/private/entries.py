"""The elements of ``private``: arrays, constants and parameters with one row a record."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np

from cvxqop import _cvxpy
from cvxqop.errors import ProblemError
from cvxqop.problem.records.dask_arrays import is_dask
from cvxqop.problem.records.forms import as_numbers, is_list_of_numbers, is_masked

__all__ = ["Entry", "check_outside", "held_elsewhere", "read_entries"]


@dataclass(frozen=True, eq=False)
class Entry:
    """One element of ``private``: its array, and the CVXPY leaf it was given as, if any."""

    array: Any
    leaf: Any
    given: Any
    name: str


def read_entries(private: Any, role: str = "private") -> list[Entry]:
    """The elements of ``private``, or of the list that ``role`` names, checked.

    Raises
    ------
    ProblemError
        If it is no list, or an element is not a real array with one row a record.
    """
    check_outside(private, role)
    if (
        isinstance(private, (np.ndarray, cp.Expression))
        or _cvxpy.is_sparse(private)
        or hasattr(private, "to_numpy")
    ):
        raise ProblemError("private must be a list of arrays: write private=[X], not private=X.")
    if isinstance(private, (str, bytes)) or not isinstance(private, Iterable):
        raise ProblemError(
            f"private must be a list of arrays, constants or parameters, "
            f"not {type(private).__name__}."
        )
    return [_entry(item, f"{role}[{i}]") for i, item in enumerate(private)]


def held_elsewhere(private: Any, entry: Entry) -> bool:
    """Whether something other than lists and tuples holds an element, such as a name.

    An array that was made inside the brackets of ``private=[…]`` is younger than the problem, so
    that its ``id`` may be that of an array that the problem was written with and that is gone.
    """
    return _holders(private, entry) > _holders([], _entry(np.empty(1), ""))


def _holders(private: Any, entry: Entry) -> int:
    """References to an element, less those from lists and tuples."""
    lists = [r for r in gc.get_referrers(entry.given) if type(r) in (list, tuple)]
    if not any(r is private for r in lists) and isinstance(private, (list, tuple)):
        lists.append(private)  # a tuple of arrays may be unknown to the garbage collector
    listed = sum(sum(x is entry.given for x in r) for r in lists)
    del lists
    return sys.getrefcount(entry.given) - listed


def _entry(item: Any, name: str) -> Entry:
    leaf, array, label = None, item, name
    if isinstance(item, (cp.Constant, cp.Parameter)):
        leaf, array, label = item, _cvxpy.leaf_value(item), _cvxpy.given_name(item) or name
        if array is None:
            raise ProblemError(
                f"{name}, the parameter {item.name()}, has no value; set its value first."
            )
    _check_form(array, name)
    array = as_numbers(array, name)
    if not (isinstance(array, np.ndarray) or _cvxpy.is_sparse(array)):
        raise ProblemError(
            f"{name} must be a NumPy array, a SciPy sparse matrix, a pandas or polars object, a "
            f"list of numbers, a cp.Constant or a cp.Parameter, not {type(item).__name__}."
        )
    if array.ndim not in (1, 2) and not (name.startswith("public") and array.ndim):
        raise ProblemError(
            f"{name} must have one row a record, hence one or two axes, not {array.ndim}."
        )
    return Entry(array, leaf, item, label)


def check_outside(data: Any, name: str) -> None:
    """Refuse what CVXPY would read into memory as a whole, by its type.

    Raises
    ------
    ProblemError
        Names `glm_loss`.
    """
    kept = "a Dask array or frame" if is_dask(data) else getattr(type(data), "outside", "")
    if kept:
        raise ProblemError(
            f"{name} is {kept}, and CVXPY would read all of it into memory. Write the loss as "
            "cvxqop.glm_loss(…, X, y, theta), which leaves X and y where they are and is private "
            f"by itself, and leave them out of {name.split('[')[0]}."
        )


def _check_form(array: Any, name: str) -> None:
    """Refuse what CVXPY reads otherwise than it is meant: by its type alone.

    Raises
    ------
    ProblemError
        A masked array, a nested list, or what is not in memory.
    """
    check_outside(array, name)
    if is_masked(array):
        raise ProblemError(
            f"{name} is a masked array, and CVXPY computes with the numbers under the mask. Write "
            'the problem with y.astype(float).filled(np.nan) and list that; nonfinite="zero" '
            "makes a zero row of a record with a missing entry."
        )
    if is_list_of_numbers(array) and isinstance(array[0], list | tuple):
        raise ProblemError(
            f"{name} is a nested list, which CVXPY reads column by column. Write the problem with "
            "np.array(…) of it and list that."
        )
