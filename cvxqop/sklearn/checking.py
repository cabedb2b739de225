"""scikit-learn's checks of X and y, with words that hold no cell and no number of records."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.utils.validation import column_or_1d, validate_data

from cvxqop.errors import ProblemError

__all__ = ["checked_features", "checked_target"]

_SAFE = (
    r"X has \d+ features, but \w+ is expecting \d+ features as input",
    r"(?s)The feature names should match those that were passed during fit.*",
    r"Complex data not supported",
    r"Reshape your data",
    r"requires y to be passed, but the target y is None",
    r"argument must be a string or a real number",
    r"Sparse data was passed",
    r"contains (?:NaN|infinity)",
)
"""What of a message may be told: names and numbers of columns, which are public, and no record."""


def checked_features(estimator: Any, X: Any, *, reset: bool, least: int = 1) -> Any:
    """X as a matrix of at least so many rows of numbers; those of ``fit`` (``reset``) may be NaN.

    Raises
    ------
    ProblemError, TypeError
        It is none, or has other columns than in ``fit``.
    """
    return _shielded(
        "X",
        validate_data,
        estimator,
        X,
        reset=reset,
        dtype=np.float64,
        ensure_all_finite=not reset,
        ensure_min_samples=least,
    )


def checked_target(y: Any, count: int, *, numeric: bool) -> Any:
    """y as a vector, of floats where ``numeric``, with one entry a row of X.

    Raises
    ------
    ProblemError
        It is none.
    """
    if y is None:
        raise ProblemError("fit requires y to be passed, but the target y is None.")
    if not numeric and isinstance(y, list | tuple):
        y = np.array([*y, None], dtype=object)[:-1]  # else one text would make all of them texts
    y = _shielded("y", _vector, y, numeric)
    if len(y) != count:
        raise ProblemError("y must have one entry for each row of X.")
    return y


def _vector(y: Any, numeric: bool) -> Any:
    vector = column_or_1d(y, warn=True)
    if np.iscomplexobj(vector):
        raise ValueError("Complex data not supported")
    return np.asarray(vector, dtype=np.float64) if numeric else vector


def _shielded(name: str, read: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """What ``read`` returns, or its error without what it says of records."""
    if any(isinstance(one, np.ma.MaskedArray) for one in args):
        raise ProblemError(
            f"{name} has a mask, which scikit-learn leaves out: pass {name}.filled(np.nan) with "
            'nonfinite="zero".'
        )
    try:
        return read(*args, **options)
    except Exception as error:
        text, kind = str(error), TypeError if isinstance(error, TypeError) else ProblemError
    if "0 feature(s)" in text:  # the rest of these words is the shape that scikit-learn tells
        raise kind("X has 0 feature(s) (shape=(, 0)) while a minimum of 1 is required.")
    told = [found.group(0) for found in (re.search(one, text) for one in _SAFE) if found]
    shape = (
        "a matrix of real numbers, one row a record"
        if name == "X"
        else "a vector, one entry a record"
    )
    raise kind(f"{name} must be {shape}" + "".join(f": {one}" for one in told) + ".")
