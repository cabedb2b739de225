"""A Wishart mechanism with its noise fixed: profile (Theorems 3 to 5), draw, repair, bounds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cvxqop.privacy.gaussian.symmetric import repaired
from cvxqop.privacy.grid import Grid, spacing
from cvxqop.privacy.law import NoiseLaw
from cvxqop.privacy.mechanism import Perturbation, Sensitivity
from cvxqop.privacy.noise import Noise
from cvxqop.privacy.release import GaussianRelease
from cvxqop.privacy.shares import centred_risk, quadratic_risk
from cvxqop.privacy.utility import predicted_risk, wishart_excess_risk
from cvxqop.privacy.wishart import ensemble as wishart

__all__ = ["CalibratedWishart"]

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class CalibratedWishart:
    """A Wishart mechanism with its noise fixed: profile, draw, bounds. All numbers are public.

    Attributes
    ----------
    sensitivity : Sensitivity
        The bounds that it was calibrated for.
    sigma2, degrees_of_freedom : float
        S = σ² W, W ~ Wishart_d(m, I).
    guard_scale : float
        s_a, the standard deviation of each entry of the linear guard.
    release : GaussianRelease or None
        The release composed with it, where the solve touches records.
    curvature : {"ridge", "floor"}
        "ridge" leaves H̃ = H + S as it is. "floor" (squared losses) subtracts E S = σ² m I, which
        is known, and raises the eigenvalues to the noise edge afterwards.
    """

    sensitivity: Sensitivity
    sigma2: float
    degrees_of_freedom: float
    guard_scale: float
    release: GaussianRelease | None = None
    curvature: str = "ridge"

    @property
    def title(self) -> str:
        """Name of the mechanism."""
        return "quadratic objective perturbation"

    @property
    def mu(self) -> float:
        """Guard and release together."""
        guard = self.sensitivity.guard_sensitivity
        release_mu = self.release.mu if self.release else 0.0
        return math.hypot(guard / self.guard_scale if guard > 0.0 else 0.0, release_mu)

    @property
    def mean_curvature(self) -> float:
        """σ² m: E S = σ² m I, the ridge that the perturbation amounts to; 0 where subtracted."""
        if self.curvature == "floor":
            return 0.0
        return self.sigma2 * self.degrees_of_freedom

    @property
    def ridge(self) -> float:
        """The mean curvature, or what eigenvalues are raised to where it is zero."""
        return self.mean_curvature or self.noise_edge

    @property
    def noise_edge(self) -> float:
        """σ² (2√(md) − d) ≥ σ² d: how far below its mean the spectrum of S reaches."""
        m, d = self.degrees_of_freedom, self.sensitivity.dimension
        return self.sigma2 * (2.0 * math.sqrt(m * d) - d)

    @property
    def law(self) -> NoiseLaw:
        """That of the noise on H̃ and g̃."""
        m = self.degrees_of_freedom
        return NoiseLaw("wishart", self.sigma2, self.guard_scale, self.noise_edge, m)

    @property
    def _guard_spread(self) -> float:
        """√k s_a: d entries of this size are as long as the dk entries of the guard."""
        return math.sqrt(self.sensitivity.outputs) * self.guard_scale

    @property
    def gdp_mu(self) -> float | None:
        """None: the Wishart mechanism is not Gaussian."""
        return None

    def profile(self, epsilon: npt.ArrayLike) -> Array:
        """δ(ε) of this mechanism, rounded up."""
        s = self.sensitivity
        return wishart.profile(
            epsilon,
            s.smoothness / self.sigma2,
            self.degrees_of_freedom - s.dimension + 1,
            adjacency=s.adjacency,
            quadratic=s.quadratic,
            mu=self.mu,
        )

    def excess_risk_bound(self, radius: float) -> float:
        """Bound on E J(θ_pert) − J(θ̂) for ‖θ̂ − θ0‖ ≤ radius, exact solve (Theorems 13 and 14).

        Rigorous and crude for the floor, see :func:`cvxqop.privacy.shares.centred_risk`.
        """
        if self.curvature == "floor":
            return centred_risk(
                sigma2=self.sigma2,
                degrees_of_freedom=self.degrees_of_freedom,
                edge=self.noise_edge,
                guard_scale=self._guard_spread,
                dimension=self.sensitivity.dimension,
                radius=radius,
            )
        return wishart_excess_risk(
            sigma2=self.sigma2,
            degrees_of_freedom=self.degrees_of_freedom,
            guard_scale=self._guard_spread,
            dimension=self.sensitivity.dimension,
            radius=radius,
        )

    def predicted_risk(self, radius: float, curvature: float) -> float:
        """Prediction of the risk for data of curvature hI.

        For the ridge see :func:`cvxqop.privacy.utility.predicted_risk`; for the floor that of the
        Gaussian ensemble with s² = 2σ⁴m and one stage.
        """
        d, m = self.sensitivity.dimension, self.degrees_of_freedom
        if self.curvature == "floor":
            k = max(curvature, self.noise_edge)
            size = quadratic_risk(self.sigma2 * math.sqrt(2.0 * m), self._guard_spread, d, radius)
            return 0.5 * curvature * (size + ((k - curvature) * radius) ** 2) / k**2
        spread = self.sigma2**2 * m * (d + 1)
        return predicted_risk(
            ridge=self.mean_curvature,
            spread=spread,
            guard_scale=self._guard_spread,
            dimension=d,
            radius=radius,
            curvature=curvature,
        )

    def draw(self, noise: Noise) -> Perturbation:
        """One draw of (S, a) from a fresh stream."""
        d, D = self.sensitivity.dimension, self.sensitivity.parameters
        factor = wishart.sample_factor(noise, d, self.degrees_of_freedom)
        guard = np.zeros(D)
        if self.guard_scale > 0.0:
            guard = self.guard_scale * noise.standard_normal(D)
        return Perturbation(math.sqrt(self.sigma2) * factor, guard)

    @property
    def grids(self) -> tuple[Grid, ...]:
        """The public grids of H̃ = H + S and of g̃; sums are rounded."""
        s, d = self.sensitivity, self.sensitivity.dimension
        entry = self.sigma2 * math.sqrt(self.degrees_of_freedom)
        curvature = spacing(entry, s.smoothness, d * d)
        gradient = spacing(self.guard_scale, s.guard_sensitivity, s.parameters)
        return Grid(curvature, before=False), Grid(gradient, before=False)

    def repair(self, hessian: Array, gradients: Sequence[Array]) -> Array:
        """H̃ and what rounding may have taken; for the floor H̃ − σ² m I, raised to the edge.

        Post-processing of what has been released. Symmetric.
        """
        if self.curvature == "ridge":
            lost = self.grids[0].spacing * self.sensitivity.dimension
            return hessian + lost * np.eye(len(hessian))
        mean = self.sigma2 * self.degrees_of_freedom
        return repaired(hessian - mean * np.eye(len(hessian)), self.noise_edge, "floor")

    def describe(self) -> dict[str, Any]:
        """The public numbers, for plans and solutions."""
        return {
            "ensemble": "wishart",
            "calibration": "exact",
            "sigma2": self.sigma2,
            "degrees_of_freedom": self.degrees_of_freedom,
            "guard_scale": self.guard_scale,
            "curvature": self.curvature,
            "mean_curvature": self.mean_curvature,
            "release_scale": self.release.scale if self.release else 0.0,
        }

    def summary(self) -> tuple[tuple[str, str], ...]:
        """The noise in words: (heading, text) of each line."""
        guard = (
            f"linear guard s_a = {self.guard_scale:.6g}" if self.guard_scale else "no linear guard"
        )
        ridge = ("ridge", f"mean curvature E S = σ²m I = {self.mean_curvature:.6g} I")
        floor = (
            "curvature",
            f"E S = σ²m I subtracted, eigenvalues raised to σ²(2√(md) − d) = {self.noise_edge:.6g}",
        )
        return (
            ("mechanism", f"{self.title}, S = σ²W, W ~ Wishart(m, I)"),
            ("noise", f"σ² = {self.sigma2:.6g}, m = {self.degrees_of_freedom:g}, {guard}"),
            ridge if self.curvature == "ridge" else floor,
        )
