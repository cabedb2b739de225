"""The weight collected on the way from the objective down to an atom."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["Weight"]

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Weight:
    """A weight and the numbers it is made of: ``weight`` is a number or an array (n,)."""

    value: float | Array = 1.0
    divisors: tuple[float, ...] = ()
    averaged: tuple[int, ...] = ()

    def times(self, scalar: float) -> Weight:
        """Multiplied by a number."""
        divisors = (
            (*self.divisors, 1.0 / scalar)
            if scalar not in (0.0, 0.5, 1.0, 2.0)
            else (self.divisors)
        )
        return Weight(self.value * scalar, divisors, self.averaged)

    def over(self, scalar: float) -> Weight:
        """Divided by a number."""
        return Weight(self.value / scalar, (*self.divisors, scalar), self.averaged)

    def mean(self, n: int) -> Weight:
        """Marked as a mean over n records."""
        return Weight(self.value, self.divisors, (*self.averaged, n))

    def weighted(self, weights: Array) -> Weight:
        """Multiplied by one number a record."""
        return Weight(self.value * weights, self.divisors, self.averaged)

    def depends_on(self, n: int) -> bool:
        """Whether it holds a factor 1/n or 1/(2n). Small n are told by the structure alone."""
        close = [abs(d / n - k) < 1e-12 for d in self.divisors for k in (1, 2)] if n > 2 else []
        return n in self.averaged or any(close)

    def simplified(self) -> float | Array:
        """The weight: one number where all records have the same."""
        values = np.asarray(self.value, dtype=np.float64)
        if values.ndim == 0:
            return float(values)
        if values.size == 0:
            return 1.0
        return float(values[0]) if np.all(values == values[0]) else values
