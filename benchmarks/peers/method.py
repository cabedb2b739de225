"""What every method of the comparison is given, and what it gives back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
DELTA = 1e-6


@dataclass(frozen=True)
class Task:
    """Public facts about one fit: rows have norm at most 1, targets lie in [-1, 1] or are ±1.

    Attributes
    ----------
    n, d : int
        Records and features.
    epsilon, delta : float
        The privacy asked for, for a record that is added or removed.
    column_bound : float
        No feature exceeds it in size; at most 1.
    """

    n: int
    d: int
    epsilon: float
    column_bound: float = 1.0
    delta: float = DELTA


@dataclass(frozen=True)
class Fit:
    """A linear predictor x'theta + intercept."""

    theta: Array
    intercept: float = 0.0


Draw = Callable[[], Fit]


@dataclass(frozen=True)
class Method:
    """One row of the table.

    Attributes
    ----------
    name : str
        As printed.
    prepare : callable
        (task, X, y, seed) to a function that fits once, with fresh noise at each call. What does
        not depend on records (calibration) belongs here, and is timed apart.
    private : bool
        Whether ε matters.
    draws : int or None
        Fewer draws than the others, where a fit is slow.
    """

    name: str
    prepare: Callable[[Task, Array, Array, int], Draw]
    private: bool = True
    draws: int | None = None


def with_ones(X: Array) -> Array:
    """X with a column of ones for an intercept: rows of norm at most √2."""
    return np.hstack([X, np.ones((len(X), 1))])


def gdp_mu(epsilon: float, delta: float) -> float:
    """μ of the Gaussian mechanism that is exactly (ε, δ)-differentially private."""
    from dp_accounting import get_sigma_gaussian

    return 1.0 / get_sigma_gaussian(epsilon, delta)
