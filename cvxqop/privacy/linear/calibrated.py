"""Linear objective perturbation with its noise fixed: profile (Theorem 9), draw, bounds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cvxqop.privacy.linear.profile import linear_profile
from cvxqop.privacy.mechanism import RidgeDraw, Sensitivity
from cvxqop.privacy.noise import Noise
from cvxqop.privacy.release import GaussianRelease
from cvxqop.privacy.ridge import RidgeMechanism

__all__ = ["CalibratedLinear"]

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class CalibratedLinear(RidgeMechanism):
    """Linear objective perturbation with its noise fixed. All of its numbers are public.

    Attributes
    ----------
    sensitivity : Sensitivity
        The bounds that it was calibrated for.
    gradient : float
        G, over the constraint set.
    ridge : float
        μ: S = μI.
    guard_scale : float
        s_a, the standard deviation of each entry of the linear term.
    release : GaussianRelease or None
        The release composed with it.
    clip : float or None
        ζ of LOP-Clip.
    calibration : {"exact", "classic"}
        Where the numbers come from; the profile is exact for both.
    """

    sensitivity: Sensitivity
    gradient: float
    ridge: float
    guard_scale: float
    release: GaussianRelease | None = None
    clip: float | None = None
    calibration: str = "exact"

    @property
    def title(self) -> str:
        """Name of the mechanism."""
        return "linear objective perturbation"

    @property
    def freedom(self) -> int:
        """Dimension of the space in which the direction of the shift may depend on the output."""
        s = self.sensitivity
        held = 1 if s.hessian_rank == 1 else s.gradient_range
        if held is None:
            return s.dimension
        return min(s.dimension, int(s.hops) * held)

    @property
    def shift(self) -> float:
        """Largest change of a: G for add_remove, 2G for replace_one."""
        return self.sensitivity.hops * self.gradient

    @property
    def paid(self) -> float:
        """ρ log(1 + L/μ), what the determinants take from ε."""
        s = self.sensitivity
        return s.hessian_rank * math.log1p(s.smoothness / self.ridge) * (1.0 + 2.0**-50)

    def profile(self, epsilon: npt.ArrayLike) -> Array:
        """δ(ε) of this mechanism, rounded up."""
        left = np.asarray(epsilon, dtype=np.float64) - self.paid
        return linear_profile(
            left,
            self.shift / self.guard_scale * (1.0 + 2.0**-50),
            self.freedom,
            mu_release=self.release.mu if self.release else 0.0,
        )

    def excess_risk_bound(self, radius: float) -> float:
        """½ μ D0² + s_a² d/(2μ) ≥ E J(θ_pert) − J(θ̂) for ‖θ̂ − θ0‖ ≤ D0, exact solve (Theorem 13).

        J is the objective with the clipped loss where there is a clip.
        """
        return 0.5 * self.ridge * radius**2 + (
            0.5 * self.guard_scale**2 * self.sensitivity.dimension / self.ridge
        )

    def draw(self, noise: Noise) -> RidgeDraw:
        """S = μI, and a from a fresh stream."""
        d = self.sensitivity.dimension
        return RidgeDraw(self.ridge, d, self.guard_scale * noise.standard_normal(d))

    def describe(self) -> dict[str, Any]:
        """The public numbers, for plans and solutions."""
        return {
            "ensemble": "linear",
            "calibration": self.calibration,
            "gradient": self.gradient,
            "clip": self.clip,
            "ridge": self.ridge,
            "guard_scale": self.guard_scale,
            "mean_curvature": self.mean_curvature,
            "release_scale": self.release.scale if self.release else 0.0,
        }

    def summary(self) -> tuple[tuple[str, str], ...]:
        """The noise in words: (heading, text) of each line."""
        clip = f", clipped at ζ = {self.clip:g}" if self.clip is not None else ""
        return (
            ("mechanism", f"{self.title}, S = μI ({self.calibration})"),
            ("noise", f"s_a = {self.guard_scale:.6g} for gradients up to {self.gradient:g}{clip}"),
            ("ridge", f"μ = {self.ridge:.6g}"),
        )
