"""The Gaussian release: noise that hides how inexactly the perturbed problem was solved."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cvxqop.privacy.accounting.profile import gaussian_mu
from cvxqop.privacy.noise import Noise

__all__ = ["RELEASE_PART", "GaussianRelease"]

Array = npt.NDArray[np.float64]

RELEASE_PART = 7.0
"""A release spends a seventh of the μ at hand, 2% of μ²: a choice of utility (theory §8)."""


@dataclass(frozen=True)
class GaussianRelease:
    """θ̃ + N(0, σ_rel² I) for a θ̃ that is certified to lie within Δ of the exact minimiser.

    The outputs on neighbouring data sets are mixtures of Gaussians whose centres are within Δ of
    the exact mechanism's output on each side, so that the release composes with that mechanism as
    a Gaussian mechanism with μ_rel = 2Δ/σ_rel (Theorem 10).

    Attributes
    ----------
    accuracy : float
        Δ, in units of θ, fixed before the data are seen.
    scale : float
        σ_rel, in units of θ.

    Examples
    --------
    >>> release = GaussianRelease.of(accuracy=1e-6, mu=0.02)
    >>> release.mu <= 0.02
    True
    """

    accuracy: float
    scale: float

    @classmethod
    def of(cls, accuracy: float, mu: float) -> GaussianRelease:
        """The smallest noise with 2Δ/σ_rel ≤ μ (rounded up)."""
        scale = math.nextafter(2.0 * accuracy / mu, math.inf)
        return cls(accuracy, scale * (1.0 + 2.0**-50))

    @classmethod
    def beside(cls, accuracy: float | None, epsilon: float, delta: float) -> GaussianRelease | None:
        """The release beside a mechanism that is not Gaussian: of what (ε/2, δ/4) allow, its part.

        None without an accuracy: nothing is then solved on records.

        Examples
        --------
        >>> round(GaussianRelease.beside(1e-6, epsilon=2.0, delta=4e-6).mu, 4)
        0.0338
        """
        if accuracy is None:
            return None
        mu = gaussian_mu(0.5 * epsilon, max(0.25 * delta, 1e-300))
        return cls.of(accuracy, mu / RELEASE_PART)

    @property
    def mu(self) -> float:
        """2Δ/σ_rel."""
        return 2.0 * self.accuracy / self.scale

    def apply(self, theta: Array, noise: Noise) -> Array:
        """θ̃ plus noise from the stream of this release."""
        return theta + self.scale * noise.standard_normal(theta.size)
