"""Variables and arrays of a release on their way into a copy, a pickle or a text.

A pickle holds of a variable what makes another like it, never its value: that may be of a solve
without privacy.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np
import numpy.typing as npt

from cvxqop import _cvxpy

__all__ = ["Description", "deep_copies", "distinct_names", "read_only"]

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Description:
    """A variable without its value.

    Attributes
    ----------
    id : int
        CVXPY's number of the variable, in the process that made it.
    name : str
        Its name.
    shape : tuple of int
        Its shape.
    attributes : mapping
        What it was created with: nonneg, PSD, bounds, …
    """

    id: int
    name: str
    shape: tuple[int, ...]
    attributes: Mapping[str, Any]

    @classmethod
    def of(cls, variable: cp.Variable) -> Description:
        """That of a variable; bounds are those of this moment."""
        active = {
            key: value
            for key, value in variable.attributes.items()
            if value is not None and value is not False
        }
        if "bounds" in active:
            active["bounds"] = [_value(bound) for bound in active["bounds"]]
        return cls(variable.id, variable.name(), variable.shape, active)

    @property
    def identity(self) -> tuple[int, str, tuple[int, ...]]:
        """By which a variable is found again when it is another object."""
        return self.id, self.name, self.shape

    def variable(self) -> cp.Variable:
        """A new variable of this description, with a number of its own."""
        with _cvxpy.SHARED:
            return cp.Variable(self.shape, name=self.name, **self.attributes)


def _value(bound: Any) -> Any:
    return bound.value if isinstance(bound, cp.Expression) else bound


def read_only(array: Any, kind: Any = np.float64) -> npt.NDArray[Any]:
    """A copy that cannot be written."""
    copied = np.array(array, dtype=kind)
    copied.setflags(write=False)
    return copied


def distinct_names(variables: Iterable[cp.Variable]) -> list[str]:
    """The names of variables; of several with one name, all but the first get #2, #3, …

    Examples
    --------
    >>> distinct_names([cp.Variable(name="b"), cp.Variable(name="b"), cp.Variable(name="b#2")])
    ['b', 'b#3', 'b#2']
    """
    given = [variable.name() for variable in variables]
    names: list[str] = []
    for name in given:
        number, distinct = 1, name
        while distinct in names or (number > 1 and distinct in given):
            number += 1
            distinct = f"{name}#{number}"
        names.append(distinct)
    return names


def deep_copies(variables: Iterable[cp.Variable], memo: dict[int, Any]) -> list[cp.Variable]:
    """Copies with numbers of their own, the same ones wherever else in the copied whole."""
    originals = list(variables)
    with _cvxpy.SHARED:
        copies = [copy.deepcopy(variable, memo) for variable in originals]
        _cvxpy.forget_forms(copies)
        for variable in (*originals, *copies):
            # CVXPY leaves this behind, and the next copy would have the number of this one.
            vars(variable).pop("__deepcopy__", None)
    return copies
