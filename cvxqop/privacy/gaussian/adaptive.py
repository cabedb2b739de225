"""Adaptive stages of the Gaussian ensemble: gradients of records cut in norm, by a private rule.

H and the gradient at the anchor are released once, uncut. Then the gradient is released at the
solution of each stage, that of a record cut to a norm ζ that noisy histograms choose
(:mod:`cvxqop.privacy.gaussian.cut_rules`). The noise is proportional to ζ, so that whatever path
the stages take, each spends the same privacy (Proposition 1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import lambertw

from cvxqop.errors import CalibrationError
from cvxqop.privacy.gaussian.calibrated import CalibratedGaussian
from cvxqop.privacy.gaussian.cut_rules import DEVIATIONS, EDGES, SIZE, TOP, USUAL
from cvxqop.privacy.gaussian.joint import joint_mu
from cvxqop.privacy.gaussian.symmetric import SymmetricDraw
from cvxqop.privacy.grid import ENLARGED, Grid, spacing
from cvxqop.privacy.mechanism import Sensitivity
from cvxqop.privacy.noise import Noise
from cvxqop.privacy.release import GaussianRelease

__all__ = ["AdaptiveDraw", "CalibratedAdaptive", "calibrate_adaptive"]

Array = npt.NDArray[np.float64]

STAGES = 24
"""Gradients that are released, the one at the anchor included."""
EVERY = 4
"""A histogram is released in every fourth stage, from the second on."""
AVERAGED = 6
"""Stages whose solutions are averaged in the end: the last ones."""
FIRST, HISTOGRAMS = 0.2, 0.02
"""Shares of μ² of the gradient at the anchor, and of all histograms together."""
SMALL_STEPS = 0.91
"""As STEPS in :mod:`cvxqop.privacy.gaussian.calibrated`: many steps may each be bolder."""
TYPICAL, RAISED, HARM = 0.08, 1.1, 0.22
"""What risks are predicted for: the mean norm of a gradient over G, what eigenvalues are off by
over their level, and the part of what is cut off that does not cancel."""
MORE = 1.0 + 2.0**-45
"""Noise is multiplied by this, so that rounding never leaves it too small."""


@dataclass(frozen=True)
class AdaptiveDraw(SymmetricDraw):
    """One draw of all noise. The guards after the first are in units of the cut of their stage.

    Attributes
    ----------
    counts : ndarray, shape (histograms, bins)
        The noise of the histograms.
    """

    counts: Array


@dataclass(frozen=True)
class CalibratedAdaptive(CalibratedGaussian):
    """Adaptive stages with their noise fixed, for squared losses. All numbers are public.

    With q_j = σ_j/ζ_j, the noise of a gradient over the norm that it is cut to, and s_h that of a
    count, a record adds at most

        a = F²/s²,   b_0 = G0²/s_1²,   b_n = Σ_j q_j⁻²,   b_h = Σ s_h⁻²

    and μ² = a + b_0 + b_n + b_h for add_remove; under replace_one
    :func:`cvxqop.privacy.gaussian.joint.joint_mu` says what a pair of records can do, and a record
    of several rows moves everything by a multiple (then 2a + 4b_0 + 4b_n + 2b_h).

    Attributes
    ----------
    guard_scales : tuple of float
        s_1, and q_j of the stages that follow.
    count_scale : float
        s_h.
    """

    count_scale: float = 0.0

    @property
    def unit(self) -> float:
        """G, the bound on the gradient of one row at the anchor, which cuts are parts of."""
        return self.sensitivity.anchor_gradient / (self.sensitivity.cuts or 1)

    @property
    def looks(self) -> tuple[int, ...]:
        """The stages that release a histogram."""
        return tuple(range(1, self.stages, EVERY))

    @property
    def averaged(self) -> int:
        """How many of the last stages are averaged."""
        return AVERAGED

    @property
    def gdp_mu(self) -> float:
        """μ_tot, the same on every path."""
        s = self.sensitivity
        most = (s.cuts or 1) * ENLARGED
        first, *later = self.guard_scales
        own = _total(
            s,
            (s.frobenius_bound * ENLARGED / self.scale) ** 2,
            (s.anchor_gradient * ENLARGED / first) ** 2,
            math.fsum((most / ratio) ** 2 for ratio in later),
            len(self.looks) * (most / self.count_scale) ** 2,
        )
        return math.hypot(own, self.release.mu) if self.release else own

    def level(self, stage: int = 0) -> float:
        """The least curvature of stage j = 0, 1, …: max{s√(2d), .91 √d F s_1/G0} and later
        ½ max{s√(2d), .91 √d F q_j}, q_j for one row."""
        s = self.sensitivity
        noise = self.guard_scales[stage] / (s.anchor_gradient if stage == 0 else s.cuts or 1)
        least = SMALL_STEPS * math.sqrt(s.dimension) * s.frobenius_bound * noise
        return max(self.noise_edge, least) * (0.5 if stage else 1.0)

    @property
    def last_level(self) -> float:
        """The least curvature of the quadratic that comes out, ½ s√(2d)."""
        return 0.5 * self.noise_edge

    def predicted_risk(self, radius: float, curvature: float) -> float:
        """Prediction of the risk for data of curvature hI.

        A step by the inverse of k = h + 1.1 t, t the level of the stage, leaves ρ = 1.1 t/k of the
        distance and adds noise of variance D (ζ q_j)²/k². The last solutions are averaged, their
        errors correlated by ρ, and what the cuts leave is less than what the check sees.
        """
        s = self.sensitivity
        parameters = math.sqrt(s.parameters)
        cut, lost = self._typical(curvature)
        bias, variance = radius, 0.0
        for stage, scale in enumerate(self.guard_scales):
            raised = RAISED * self.level(stage)
            k = curvature + raised
            part = raised / k
            bias *= part
            noise = scale * (cut if stage else 1.0) * parameters / k
            variance = variance * part**2 + noise**2
        alike = (1.0 + part) / max(self.averaged * (1.0 - part), 1e-300)
        left = min(HARM * lost, DEVIATIONS * self.guard_scale * parameters) / k
        return 0.5 * curvature * (bias**2 + variance * min(1.0, alike) + left**2)

    def _typical(self, curvature: float) -> tuple[float, float]:
        """The cut that the rule is expected to choose, and the sum of what it takes away.

        Norms of gradients are supposed to have an exponential law with mean m = 0.08 G, of as many
        records as have that curvature if their rows are a third of R long: T = n m exp(−ζ/m).
        """
        s, m = self.sensitivity, TYPICAL
        records = 9.0 * curvature * s.dimension / s.trace_bound
        noise = self.guard_scales[-1] * math.sqrt(s.parameters)
        cut = min(max(m * float(lambertw(records / (SIZE[0] * noise)).real), USUAL), TOP)
        return cut * self.unit, records * m * math.exp(-cut / m) * self.unit

    def draw(self, noise: Noise) -> AdaptiveDraw:
        """All noise of a run, from a fresh stream."""
        drawn = super().draw(noise)
        counts = self.count_scale * noise.standard_normal((len(self.looks), len(EDGES) - 1))
        return AdaptiveDraw(drawn.curvature, drawn.guards, counts)

    @property
    def grids(self) -> tuple[Grid, ...]:
        """The public grids of H̃, of the gradient at the anchor, and of the counts."""
        s = self.sensitivity
        side = s.dimension * s.dimension
        return (
            Grid(spacing(math.sqrt(0.5) * self.scale, s.frobenius_bound, side)),
            Grid(spacing(self.guard_scale, s.anchor_gradient, s.parameters)),
            Grid(spacing(self.count_scale, s.cuts or 1, len(EDGES) - 1)),
        )

    def cut_grid(self, stage: int, cut: float) -> Grid:
        """The grid of the gradient of a stage with gradients of rows cut to ``cut``, ζ: as fine as
        the others beside its noise and ζ, and public once ζ is."""
        s = self.sensitivity
        most = cut * (s.cuts or 1)
        return Grid(spacing(cut * self.guard_scales[stage], most, s.parameters))

    def describe(self) -> dict[str, Any]:
        """The public numbers, for plans and solutions."""
        return {
            **super().describe(),
            "stages": "adaptive",
            "count_scale": self.count_scale,
            "last_level": self.last_level,
        }

    def summary(self) -> tuple[tuple[str, str], ...]:
        """The noise in words."""
        mechanism, *_ = super().summary()
        noise = (
            f"s = {self.scale:.6g}, guard {self.guard_scale:.6g}, then {self.guard_scales[-1]:.3g} "
            f"times the norm that gradients are cut to, {self.count_scale:.3g} on each count"
        )
        stages = (
            f"{self.stages}, gradients cut to norms that {len(self.looks)} private histograms "
            "choose, then a check against the uncut gradient"
        )
        level = f"eigenvalues raised to half the edge of the noise, {self.last_level:.6g}"
        return mechanism, ("noise", noise), ("curvature", level), ("stages", stages)


def calibrate_adaptive(
    mu: float, sensitivity: Sensitivity, radius: float, release: GaussianRelease | None = None
) -> CalibratedAdaptive:
    """The noise that spends μ, shared between curvature, gradients and histograms.

    With q = ½√(d+1) D0 F/G0 the curvature has the share q/(q + √(dK)) of what the gradient at the
    anchor and the histograms leave, K the number of gradients, and these the rest in equal parts.

    Raises
    ------
    CalibrationError
        If the residual of a record at the anchor has no bound.
    """
    s = sensitivity
    if s.offset is None or s.offset <= 0.0:
        raise CalibrationError(
            "Gaussian: stages='adaptive' needs a bound on the residual of a squared loss at the "
            "anchor (Bounds(offset=…)); for other quadratic losses use stages=1."
        )
    later, looks = STAGES - 1, len(range(1, STAGES, EVERY))
    by_curvature = 0.5 * math.sqrt(s.dimension + 1.0) * radius * s.frobenius_bound
    by_gradient = s.anchor_gradient * math.sqrt(s.parameters * STAGES)
    left = 1.0 - FIRST - HISTOGRAMS
    curvature = left * min(max(by_curvature / (by_curvature + by_gradient), 1e-9), 0.9)
    parts = (curvature, FIRST, left - curvature, HISTOGRAMS)
    if s.adjacency == "replace_one":
        parts = (0.5 * curvature, 0.25 * FIRST, 0.25 * parts[2], 0.5 * HISTOGRAMS)
        if s.joint:  # a pair that moves all gradients moves the curvature by little or nothing
            parts = (max(parts[0], parts[1]), parts[1], 0.25 * left, parts[3])
    norm = _total(s, *parts) / mu * ENLARGED * MORE
    a, first, cut, histogram = (norm / math.sqrt(part) for part in parts)
    most = s.cuts or 1
    return CalibratedAdaptive(
        sensitivity=s,
        scale=s.frobenius_bound * a,
        guard_scales=(s.anchor_gradient * first, *[most * cut * math.sqrt(later)] * later),
        release=release,
        count_scale=most * histogram * math.sqrt(looks),
    )


def _total(s: Sensitivity, curvature: float, first: float, cut: float, histogram: float) -> float:
    """μ from what one record adds at most to each kind of release."""
    if s.joint:
        return joint_mu(curvature, first, cut=cut, histogram=histogram)
    if s.adjacency == "add_remove":
        return math.sqrt(math.fsum((curvature, first, cut, histogram)))
    return math.sqrt(math.fsum((2.0 * curvature, 4.0 * first, 4.0 * cut, 2.0 * histogram)))
