"""The Gaussian mechanism for losses that are linear in θ: a record moves the gradient alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cvxqop.privacy.accounting.profile import gaussian_mu
from cvxqop.privacy.gaussian.calibrated import CalibratedGaussian
from cvxqop.privacy.gaussian.shifts import gradient_shifts
from cvxqop.privacy.gaussian.symmetric import SymmetricDraw
from cvxqop.privacy.mechanism import Sensitivity
from cvxqop.privacy.noise import Noise

__all__ = ["CalibratedGradient", "calibrate_gradient"]

Array = npt.NDArray[np.float64]

MORE = 1.0 + 2.0**-49
"""Noise is multiplied by this, so that rounding never leaves it too small."""


@dataclass(frozen=True)
class CalibratedGradient(CalibratedGaussian):
    """(0, g + a): Theorem 7 with E = 0.

    No record has curvature, so that S = 0, nothing is repaired, and all of μ goes to the gradient.

    Examples
    --------
    >>> bounds = Sensitivity(
    ...     dimension=3, smoothness=0.0, anchor_gradient=1.0, quadratic=True,
    ...     adjacency="add_remove",
    ... )
    >>> mechanism = calibrate_gradient(1.0, 1e-6, bounds)
    >>> round(mechanism.gdp_mu, 6), round(mechanism.guard_scale, 4), mechanism.ridge
    (0.236704, 4.2247, 0.0)
    """

    @property
    def title(self) -> str:
        """Name of the mechanism."""
        return "Gaussian gradient perturbation"

    @property
    def gdp_mu(self) -> float:
        """Δ_b/s_a."""
        (shift,) = gradient_shifts(self.sensitivity, ())
        return shift / self.guard_scale

    @property
    def law(self) -> None:
        """None: no curvature is released."""
        return None

    def level(self, stage: int = 0) -> float:
        """0: there is no curvature to repair."""
        return 0.0

    def excess_risk_bound(self, radius: float) -> float:
        """E J(θ_pert) − J(θ̂) ≤ E a'(θ̂ − θ_pert) ≤ 2 D0 s_a √D if C lies within D0 of the anchor."""
        return 2.0 * radius * self.guard_scale * math.sqrt(self.sensitivity.parameters)

    def predicted_risk(self, radius: float, curvature: float) -> float:
        """That bound: what curvature there is comes from the public rest, and is not known here."""
        return self.excess_risk_bound(radius)

    def draw(self, noise: Noise) -> SymmetricDraw:
        """S = 0, and the noise of the gradient from a fresh stream."""
        d, D = self.sensitivity.dimension, self.sensitivity.parameters
        return SymmetricDraw(np.zeros((d, d)), (self.guard_scale * noise.standard_normal(D),))

    def repair(self, hessian: Array, gradients: Sequence[Array]) -> Array:
        """Zeros, whatever the sums are."""
        return np.zeros_like(hessian)

    def describe(self) -> dict[str, Any]:
        """The public numbers, for plans and solutions."""
        return {
            "ensemble": "gaussian",
            "calibration": "exact",
            "scale": 0.0,
            "guard_scale": self.guard_scale,
            "mean_curvature": 0.0,
            "mu": self.gdp_mu,
            "release_scale": 0.0,
        }

    def summary(self) -> tuple[tuple[str, str], ...]:
        """The noise in words: (heading, text) of each line."""
        return (
            ("mechanism", f"{self.title}, μ-GDP with μ = {self.gdp_mu:.6g}"),
            ("noise", f"guard {self.guard_scale:.6g}; no record has curvature, none is added"),
        )


def calibrate_gradient(
    epsilon: float, delta: float, sensitivity: Sensitivity
) -> CalibratedGradient:
    """The smallest noise that is (ε, δ)-differentially private for a linear loss."""
    (shift,) = gradient_shifts(sensitivity, ())
    scale = shift / gaussian_mu(epsilon, delta) * MORE
    return CalibratedGradient(sensitivity, scale=0.0, guard_scales=(scale,))
