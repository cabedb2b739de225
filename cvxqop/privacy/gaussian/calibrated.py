"""The Gaussian ensemble for quadratic losses with its noise fixed (Theorems 7 and 15), and repair.

A record of a quadratic loss moves (S, a) by a fixed (E, b), so that releasing the perturbed
quadratic is a Gaussian mechanism: nothing is truncated, and no determinant is paid for.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cvxqop.privacy.accounting.profile import gaussian_profile
from cvxqop.privacy.gaussian.shifts import gradient_shifts, total_mu
from cvxqop.privacy.gaussian.symmetric import SymmetricDraw, repaired, symmetric_noise
from cvxqop.privacy.grid import Grid, spacing
from cvxqop.privacy.law import NoiseLaw
from cvxqop.privacy.mechanism import Sensitivity
from cvxqop.privacy.noise import Noise
from cvxqop.privacy.release import GaussianRelease
from cvxqop.privacy.shares import quadratic_risk, repair_risk

__all__ = ["CalibratedGaussian"]

Array = npt.NDArray[np.float64]

STEPS = 1.3
"""A step by the noise of a gradient is at most 1/1.3 of a record's gradient over its curvature.

A choice of utility (theory §8): it sets the level of a repair, which is post-processing.
"""


@dataclass(frozen=True)
class CalibratedGaussian:
    """A Gaussian ensemble with its noise fixed, for quadratic losses. All numbers are public.

    Its privacy is that of one Gaussian mechanism, exactly:

        μ_tot² = Δ_E²/s² + Σ_j Δ_j²/s_j² (+ V²/s_f² + μ_rel²),    δ(ε) = δ_G(ε; μ_tot)

    with Δ_E = F, Δ_1 = G0, Δ_j = κ R B'_j for add_remove, and √2 F, 2 G0, 2 κ R B'_j for
    replace_one; κR = G0/B. Where records of one row are exchanged no pair of them attains this sum,
    and μ_tot is that of :func:`cvxqop.privacy.gaussian.joint.joint_mu`.

    Attributes
    ----------
    sensitivity : Sensitivity
        The bounds that it was calibrated for.
    scale : float
        s: S = s N.
    guard_scales : tuple of float
        s_j of each stage; the first is the guard's, 0 where none is needed.
    residual_bounds : tuple of float
        B'_2, …, B'_k: residuals are cut to ±B'_j in stage j. Empty for one stage.
    curvature : {"floor", "ridge"}
        How :meth:`repair` works.
    release : GaussianRelease or None
        The release composed with it, where the solve touches records.
    sum_of_squares_scale : float or None
        s_f, the noise of the sum of the values at the anchor; None where it is not released.

    Examples
    --------
    >>> from cvxqop.privacy.gaussian.options import Gaussian
    >>> bounds = Sensitivity(
    ...     dimension=10, smoothness=1.0, anchor_gradient=1.0, quadratic=True,
    ...     adjacency="add_remove",
    ... )
    >>> mechanism = Gaussian().calibrate(1.0, 1e-6, bounds)
    >>> round(mechanism.gdp_mu, 6), round(mechanism.scale, 3), round(mechanism.guard_scale, 3)
    (0.236704, 7.203, 5.216)
    """

    sensitivity: Sensitivity
    scale: float
    guard_scales: tuple[float, ...]
    residual_bounds: tuple[float, ...] = ()
    curvature: str = "floor"
    release: GaussianRelease | None = None
    sum_of_squares_scale: float | None = None

    @property
    def title(self) -> str:
        """Name of the mechanism."""
        return "Gaussian quadratic perturbation"

    @property
    def stages(self) -> int:
        """Number of times that the gradient is released."""
        return len(self.guard_scales)

    @property
    def guard_scale(self) -> float:
        """s_a, the guard of the first stage."""
        return self.guard_scales[0]

    @property
    def gdp_mu(self) -> float:
        """μ_tot: the mechanism is exactly μ_tot-GDP."""
        own = total_mu(
            self.sensitivity,
            self.residual_bounds,
            (self.scale, *self.guard_scales),
            self.sum_of_squares_scale,
        )
        return math.hypot(own, self.release.mu) if self.release else own

    @property
    def noise_edge(self) -> float:
        """s√(2d), the edge of the spectrum of S."""
        return self.scale * math.sqrt(2.0 * self.sensitivity.dimension)

    @property
    def law(self) -> NoiseLaw | None:
        """That of the noise on H̃, on the first g̃ and on the sum of squares."""
        return NoiseLaw(
            "gaussian",
            self.scale,
            self.guard_scale,
            self.noise_edge,
            value_scale=self.sum_of_squares_scale,
        )

    @property
    def value_grid(self) -> Grid:
        """The public grid of the sum of squares."""
        scale, s = self.sum_of_squares_scale, self.sensitivity
        return Grid(spacing(scale or 0.0, s.anchor_value or 0.0, 1))

    def level(self, stage: int = 0) -> float:
        """The least curvature after the repair, for stage j = 0, 1, …

            max{ s√(2d), 1.3 √d s_j F B/(G0 B'_j) }, from the second stage on half of it

        The second term keeps the noise of the gradient, s_j√d, from moving θ by much more than
        G0 B'_j/(F B): by what a record's gradient is to its curvature. It exceeds the first only
        where S has more than its usual share. H̃ may miss a curvature of up to s√(2d), so that half
        of that is the least with which repeated stages do not grow an error.
        """
        s = self.sensitivity
        level = self.noise_edge
        if s.anchor_gradient > 0.0:
            step = s.anchor_gradient / s.frobenius_bound
            if stage > 0:
                step *= self.residual_bounds[stage - 1] / (s.offset or 1.0)
            level = max(level, STEPS * math.sqrt(s.dimension) * self.guard_scales[stage] / step)
        return 0.5 * level if stage > 0 else level

    @property
    def mean_curvature(self) -> float:
        """0: E S = 0, and the repair depends on the released curvature alone."""
        return 0.0

    @property
    def ridge(self) -> float:
        """The mean curvature, or what eigenvalues are raised to where it is zero."""
        return self.mean_curvature or self.noise_edge

    def profile(self, epsilon: npt.ArrayLike) -> Array:
        """δ(ε) of this mechanism, every stage included, rounded up."""
        return gaussian_profile(epsilon, self.gdp_mu)

    def excess_risk_bound(self, radius: float) -> float:
        """Bound on E J(θ_pert) − J(θ̂) for ‖θ̂ − θ0‖ ≤ radius, exact solve, one stage.

        Rigorous and crude, see :func:`cvxqop.privacy.shares.repair_risk`; ∞ for several stages,
        where cut residuals leave no bound that does not depend on data.
        """
        if self.stages > 1:
            return math.inf
        guard = math.sqrt(self.sensitivity.outputs) * self.guard_scale
        d = self.sensitivity.dimension
        return repair_risk(self.scale, guard, d, radius, self.level())

    def predicted_risk(self, radius: float, curvature: float) -> float:
        """Prediction of the risk for data of curvature hI, k = max(h, level of the stage).

        Stage j has the error w_j = ((k − h)² D_j² + ½(d+1) s² D_j² + d s_j²)/k² and the next one
        starts from it: D_{j+1} = min(D_j, √w_j). The prediction is ½ h w of the last stage, and
        supposes that cutting residuals does no harm.
        """
        d, distance = self.sensitivity.dimension, radius
        for stage, guard_scale in enumerate(self.guard_scales):
            k = max(curvature, self.level(stage))
            guard = math.sqrt(self.sensitivity.outputs) * guard_scale
            size = quadratic_risk(self.scale, guard, d, distance)
            error = (size + ((k - curvature) * distance) ** 2) / k**2
            distance = min(distance, math.sqrt(error))
        return 0.5 * curvature * error

    def draw(self, noise: Noise) -> SymmetricDraw:
        """One draw of S and of every stage's guard from a fresh stream."""
        D = self.sensitivity.parameters
        S = self.scale * symmetric_noise(noise, self.sensitivity.dimension)
        guards = tuple(
            s * noise.standard_normal(D) if s > 0.0 else np.zeros(D) for s in self.guard_scales
        )
        scale = self.sum_of_squares_scale
        value = scale * float(noise.standard_normal(1)[0]) if scale else 0.0
        return SymmetricDraw(S, guards, value=value)

    @property
    def grids(self) -> tuple[Grid, ...]:
        """The public grids of H̃ and of g̃ in each stage; :attr:`gdp_mu` accounts for them."""
        s = self.sensitivity
        shifts = gradient_shifts(s, self.residual_bounds)
        curvature = spacing(
            math.sqrt(0.5) * self.scale, s.frobenius_bound, s.dimension * s.dimension
        )
        gradients = (
            Grid(spacing(scale, shift, s.parameters))
            for scale, shift in zip(self.guard_scales, shifts, strict=True)
        )
        return Grid(curvature), *gradients

    def repair(self, hessian: Array, gradients: Sequence[Array]) -> Array:
        """The released curvature H̃, shape (D, D), with every eigenvalue at the level or above.

        Post-processing of what has been released. Symmetric. Of the gradients only their number
        counts, which says what stage it is.
        """
        return repaired(hessian, self.level(len(gradients) - 1), self.curvature)

    def describe(self) -> dict[str, Any]:
        """The public numbers, for plans and solutions."""
        return {
            "ensemble": "gaussian",
            "calibration": "exact",
            "scale": self.scale,
            "guard_scale": self.guard_scale,
            "guard_scales": list(self.guard_scales),
            "residual_bounds": list(self.residual_bounds),
            "sum_of_squares_scale": self.sum_of_squares_scale,
            "curvature": self.curvature,
            "noise_edge": self.noise_edge,
            "levels": [self.level(stage) for stage in range(self.stages)],
            "mean_curvature": self.mean_curvature,
            "mu": self.gdp_mu,
            "release_scale": self.release.scale if self.release else 0.0,
        }

    def summary(self) -> tuple[tuple[str, str], ...]:
        """The noise in words: (heading, text) of each line."""
        repair = {"floor": "eigenvalues raised to", "ridge": "ridge until every eigenvalue is at"}
        guards = ", ".join(f"{s:.6g}" for s in self.guard_scales if s > 0.0)
        lines = [
            ("mechanism", f"{self.title}, S = sN, μ-GDP with μ = {self.gdp_mu:.6g}"),
            ("noise", f"s = {self.scale:.6g}, {f'guard {guards}' if guards else 'no guard'}"),
            ("curvature", f"{repair[self.curvature]} the level of the noise, {self.level():.6g}"),
        ]
        if self.residual_bounds:
            cuts = ", ".join(f"{bound:.3g}" for bound in self.residual_bounds)
            lines.append(("stages", f"{self.stages}, residuals cut to ± {cuts}"))
        if self.sum_of_squares_scale:
            text = f"the sum of squares at the anchor, with noise {self.sum_of_squares_scale:.6g}"
            lines.append(("also", text))
        return tuple(lines)
