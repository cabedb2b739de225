"""Calibrations are remembered by value: equal numbers give the same mechanism.

A calibration is a function of public numbers alone, and a calibrated mechanism is immutable, so
that plans may share one. What is remembered is bounded, and safe to ask for in any thread.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any, ParamSpec, TypeVar

__all__ = ["remembered"]

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

SIZE = 128
"""Calibrations of one ensemble that are kept, the latest used."""


def _plain(value: Any) -> Any:
    real = isinstance(value, numbers.Real) and not isinstance(value, bool)
    return float(value) if real else value


def remembered(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """The function with its latest results kept; arguments are compared by value.

    Examples
    --------
    >>> calls = []
    >>> twice = remembered(lambda x: calls.append(x) or 2 * x)
    >>> twice(3.0), twice(3.0), calls
    (6.0, 6.0, [3.0])
    """
    kept = lru_cache(maxsize=SIZE)(function)

    @wraps(function)
    def ask(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        # Numbers of other types compare equal, and their arithmetic is another one.
        plain = {name: _plain(value) for name, value in kwargs.items()}
        return kept(*map(_plain, args), **plain)

    return ask
