"""The public law of the noise on a released quadratic form: what error bars are drawn from."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

__all__ = ["NoiseLaw"]

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class NoiseLaw:
    """How (H̃, g̃) = (H + S, g + a) was drawn; the first gradient where there are several stages.

    Attributes
    ----------
    kind : {"gaussian", "wishart"}
        S = sN, N symmetric with N_ii ~ N(0, 1) and N_ij ~ N(0, ½); or S = σ²W, W ~ Wishart(m, I).
    curvature_scale : float
        s, or σ², in units of the curvature.
    gradient_scale : float
        σ: a ~ N(0, σ²I), in units of the gradient; 0 where no record moves it.
    edge : float
        How far the spectrum of S reaches below its mean: s√(2d), or σ²(2√(md) − d).
    degrees_of_freedom : float, optional
        m of the Wishart ensemble.
    value_scale : float, optional
        Standard deviation of the noise on the sum of squares at the anchor, where it is released.

    Examples
    --------
    >>> law = NoiseLaw("wishart", 2.0, 1.0, edge=2.0, degrees_of_freedom=8.0)
    >>> law.spread, law.mean
    (8.0, 16.0)
    """

    kind: Literal["gaussian", "wishart"]
    curvature_scale: float
    gradient_scale: float
    edge: float
    degrees_of_freedom: float | None = None
    value_scale: float | None = None

    @property
    def mean(self) -> float:
        """E S = mean · I."""
        m = self.degrees_of_freedom
        return 0.0 if m is None else self.curvature_scale * m

    @property
    def spread(self) -> float:
        """Standard deviation of a diagonal entry of S; off the diagonal it is 1/√2 of that."""
        m = self.degrees_of_freedom
        return self.curvature_scale * (1.0 if m is None else math.sqrt(2.0 * m))

    def curvatures(self, generator: np.random.Generator, count: int, side: int) -> Array:
        """Independent draws of S − E S, shape (count, side, side): public noise of no release.

        Examples
        --------
        >>> law = NoiseLaw("gaussian", 3.0, 1.0, edge=6.0)
        >>> S = law.curvatures(np.random.default_rng(0), 1000, 2)
        >>> bool(np.array_equal(S, S.swapaxes(1, 2))), round(float(S[:, 0, 0].std()), 1)
        (True, 3.0)
        """
        Z = generator.standard_normal((count, side, side))
        m = self.degrees_of_freedom
        if m is None:
            return np.asarray(0.5 * self.curvature_scale * (Z + Z.swapaxes(1, 2)))
        T = np.tril(Z, -1)
        k = np.arange(side)
        T[:, k, k] = np.sqrt(generator.chisquare(m - k, (count, side)))
        W = T @ T.swapaxes(1, 2)
        W[:, k, k] -= m
        return np.asarray(0.5 * self.curvature_scale * (W + W.swapaxes(1, 2)))

    def gradients(self, generator: np.random.Generator, count: int, length: int) -> Array:
        """Independent draws of a, shape (count, length)."""
        return self.gradient_scale * generator.standard_normal((count, length))
