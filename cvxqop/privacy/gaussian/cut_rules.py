"""What adaptive stages make of their releases: a cut from noisy histograms, and a checked gradient.

All of it is post-processing: numbers of the mechanism and what has been released go in, and no
record. Sizes of gradients are in units of G, the bound on that of one row at the anchor.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["CUTS", "DEVIATIONS", "EDGES", "SIZE", "TOP", "USUAL", "chosen_cut", "shrunk"]

Array = npt.NDArray[np.float64]

EDGES = np.array([0.0, 0.01, 0.02, 0.035, 0.05, 0.07, 0.1, 0.14, 0.2, 0.28, 0.4, 0.56, 0.8, np.inf])
"""Edges of the histogram of gradient norms. A record without a gradient counts nowhere, so that
rows of a person that are left out do not."""
TOP = 1.1
"""What the last bin is taken to end at: later gradients may exceed that at the anchor."""
_CUTS = (0.02, 0.03, 0.04, 0.05, 0.06, 0.08, 0.1, 0.125, 0.15, 0.2, 0.25, 0.33, 0.45, 0.6, 0.8)
CUTS = np.array([*_CUTS, 1.0, TOP])
"""Cuts that may be chosen."""
USUAL = 0.08
"""Below it a cut must be known, beyond the noise, to be harmless: bounds that are loose."""

LOST = 0.4
"""Part of the sum of gradient norms that a cut may take away."""
SIZE = (5.0, 1.0)
"""What is lost over the size of the noise of one gradient, at most: without and with a public rest,
where what is lost once is not made up by the steps that follow."""
DEVIATIONS = 2.5
"""Standard deviations of its noise that a checked gradient is pulled towards zero by."""

_MIDDLES = 0.5 * (np.append(0.0, EDGES[1:-1]) + np.append(EDGES[1:-1], TOP))
_BEYOND = np.maximum(_MIDDLES[:, None] - CUTS, 0.0)


def chosen_cut(counts: Array, scale: float, noise: float, *, rest: bool) -> int:
    """The number of the least cut ζ that takes little away, judged by a noisy histogram c.

    With T(ζ) = Σ c_b (m_b − ζ)₊, the sum of what is cut off, M = Σ c_b m_b and t(ζ) the standard
    deviation of T, it is the least with T − t ≤ 0.4 M and T − 2t ≤ β ζ ν; below 0.08 also
    T + t ≤ 0.4 M. The largest if there is none.

    Parameters
    ----------
    counts : ndarray, shape (13,)
        c: records by the norm of their gradient, the mean of all histograms so far.
    scale : float
        Standard deviation of the noise of each count in that mean.
    noise : float
        ν: expected norm of the noise of a gradient, over its cut.
    rest : bool
        Whether there are a public regulariser or constraints: β = 1, else 5.

    Examples
    --------
    >>> residuals = np.zeros(13)
    >>> residuals[4] = 1000.0        # a thousand gradients of norms from 0.05 to 0.07
    >>> float(CUTS[chosen_cut(residuals, 1.0, 50.0, rest=False)])
    0.05
    >>> float(CUTS[chosen_cut(residuals, 1.0, 1.0, rest=True)])
    0.06
    >>> float(CUTS[chosen_cut(residuals, 1000.0, 50.0, rest=False)])    # too noisy to go lower
    0.08
    """
    lost, deviation = counts @ _BEYOND, scale * np.sqrt(np.sum(_BEYOND**2, axis=0))
    allowed = LOST * max(float(counts @ _MIDDLES), 0.0)
    good = lost - deviation <= allowed
    good &= lost - 2.0 * deviation <= SIZE[rest] * noise * CUTS
    good &= (CUTS >= USUAL) | (lost + deviation <= allowed)
    return int(np.argmax(good)) if good.any() else len(CUTS) - 1


def shrunk(gradient: Array, variance: Array) -> Array:
    """x (1 − 2.5² σ²/x²)₊ for each entry x of a gradient and its variance σ².

    It moves no entry by more than 2.5 σ, those within 2.5 σ to zero, and of one that is far larger
    it takes 2.5² σ²/x only.

    Examples
    --------
    >>> shrunk(np.array([2.0, 5.0, -100.0, 0.0]), np.ones(4)).round(4).tolist()
    [0.0, 3.75, -99.9375, 0.0]
    """
    most = DEVIATIONS * np.sqrt(variance)
    beyond = np.abs(gradient) > most
    ratio = np.divide(most, gradient, out=np.ones_like(gradient), where=beyond)
    return np.asarray(gradient * (1.0 - ratio**2))
