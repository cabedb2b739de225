"""The public grid that released quadratics lie on, so that no low-order bit speaks (theory §9).

A float carries 53 bits, and a sum of data and noise in floating point can betray the data by the
last of them: not every float can be reached from every data set. Rounding to multiples of a public
power of two, far coarser than the last bits and far finer than the noise, leaves nothing there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["ENLARGED", "Grid", "spacing"]

Array = npt.NDArray[np.float64]

FINENESS = 2.0**-20
"""Rounding moves a statistic by at most this part of its sensitivity."""
ENLARGED = 1.0 + FINENESS
"""By which the sensitivity of a rounded statistic exceeds that of the statistic."""


@dataclass(frozen=True)
class Grid:
    """Multiples of a power of two.

    Attributes
    ----------
    spacing : float
        q, the power of two; 0 leaves everything as it is.
    before : bool
        Whether value and noise are rounded before they are added, or their sum is.

    Notes
    -----
    Before: value and noise are multiples of q and so is their sum, which floating point gets
    exactly below 2⁵³ q and rounds as a function of the exact sum above. The rounded noise is that
    of a mechanism on the rounded value, whose sensitivity is larger by q√(entries), which
    :func:`spacing` keeps below ``ENLARGED``: right where the noise is Gaussian and the accounting
    goes by the norm of a shift. After: rounding the sum is post-processing. It is what the Wishart
    ensemble needs, whose accounting goes by the direction of a shift as well.

    Examples
    --------
    >>> import numpy as np
    >>> Grid(0.25).add(np.array([0.3]), np.array([1.4]))
    array([1.75])
    >>> Grid(0.25, before=False).add(np.array([0.1]), np.array([0.1]))
    array([0.25])
    """

    spacing: float
    before: bool = True

    def add(self, value: Array, noise: Array) -> Array:
        """value + noise on the grid; symmetric where both are."""
        if self.spacing == 0.0:
            return np.asarray(value + noise)
        if not self.before:
            return self._rounded(value + noise)
        total = self._rounded(value)
        total += self._rounded(noise)
        return total

    def _rounded(self, value: Array) -> Array:
        """Exact: dividing and multiplying by a power of two changes no digit."""
        result = np.asarray(value / self.spacing)
        np.rint(result, out=result)
        result *= self.spacing
        return result


def spacing(noise: float, sensitivity: float, entries: int) -> float:
    """q: a power of two, at most 2⁻¹⁰ noise, with q√(entries) at most 2⁻²¹ sensitivity.

    Parameters
    ----------
    noise : float
        Standard deviation of the noise of an entry; 0 where there is none, and no grid then.
    sensitivity : float
        Largest Euclidean norm by which one record moves the entries.
    entries : int
        How many they are.

    Examples
    --------
    >>> spacing(3.0, 1.0, 4) == 2.0**-22
    True
    """
    if noise == 0.0:
        return 0.0
    largest = min(noise * 2.0**-10, 0.5 * FINENESS * sensitivity / math.sqrt(entries))
    return 2.0 ** math.floor(math.log2(largest))
