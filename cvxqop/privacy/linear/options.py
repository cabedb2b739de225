"""Linear objective perturbation, the baseline: S = μI, all of the shift goes to a (Theorem 9).

With m = G/s_a and ε̃ = ε − ρ log(1 + L/μ), the privacy loss is Z = v X + v²/2 and
δ(ε) = E[δ_G(ε̃ − Z; μ_rel)], where

    GLM, add_remove    v = m,   X = |g|, g ~ N(0, 1)      (the slope may have either sign)
    GLM, replace_one   v = 2m,  X Rayleigh distributed    (the shift lies in a plane)
    other losses       v = m or 2m, X ~ χ_d               (the direction of the shift is free)

that is X ~ χ with 1, 2 and d degrees of freedom. Where the gradients of a record stay in a subspace
of r dimensions at every θ (k outputs of one row: r = k), the shift stays in it, or in the span of
two, and only the part of a in there can meet it: χ with r or 2r degrees of freedom.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from cvxqop.errors import CalibrationError, OptionError
from cvxqop.privacy.accounting.profile import check_privacy
from cvxqop.privacy.grid import Grid
from cvxqop.privacy.linear.profile import largest_shift, linear_profile
from cvxqop.privacy.mechanism import Perturbation, Sensitivity
from cvxqop.privacy.noise import Noise
from cvxqop.privacy.release import GaussianRelease
from cvxqop.privacy.utility import predicted_risk

__all__ = ["CalibratedLinear", "Linear"]

Array = npt.NDArray[np.float64]

UP = 1.0 + 2.0**-49
"""Noise is multiplied by this, so that rounding never leaves it too small."""


@dataclass(frozen=True)
class Linear:
    """Linear objective perturbation: a fixed ridge μ and a random linear term.

    The baseline that quadratic perturbation is compared with. It needs a bound G on the gradient
    of one record at every θ of the constraint set, which for a squared loss grows with that set.

    Parameters
    ----------
    clip : float or "anchor", optional
        ζ > 0 (LOP-Clip), in units of loss per θ: the gradient of each record is clipped to norm ζ,
        so that G = ζ. "anchor" is ζ = G0, the bound at the anchor: R/2 for a logistic loss at 0,
        κRB for a squared one. Clipping is minimising the loss whose slope is cut to ±ζ/‖a‖, a the
        whole row, public columns included; for a squared loss it is Huber's, with a threshold a
        record. Of a record with several rows each has its gradient clipped, and G is their sum.
        Still convex, it is solved as such, and the answer is biased: it is the clipped
        loss that is minimised. None takes G from the loss and the constraints.
    calibration : {"exact", "classic"}
        "exact" chooses μ by the utility bound and solves δ(ε) = δ for the smallest s_a; "classic"
        is the closed form of Kifer, Smith and Thakurta 2012, μ = 2L/ε and
        s_a = G √(8 log(2/δ) + 4ε)/ε, with 2G in place of G for replace_one.

    Raises
    ------
    OptionError
        On a value of the wrong type or out of range.

    Notes
    -----
    Theory §5, Theorem 9. The accounting follows Redberg, Koskela and Wang 2023.

    Examples
    --------
    >>> Linear(clip=1.0)
    Linear(clip=1.0, calibration='exact')
    """

    clip: float | Literal["anchor"] | None = None
    calibration: str = "exact"
    whole: ClassVar[bool] = True
    """Its accounting is that of the whole Hessian of all outputs."""

    def __post_init__(self) -> None:
        named = isinstance(self.clip, str) and self.clip == "anchor"
        if (
            not named
            and self.clip is not None
            and (
                isinstance(self.clip, bool)
                or not isinstance(self.clip, int | float | np.integer | np.floating)
                or not 0.0 < self.clip < math.inf
            )
        ):
            raise OptionError(
                f"Linear: clip must be a positive and finite number, or 'anchor', not "
                f"{self.clip!r}. It is the largest norm that the gradient of one record may have; "
                "'anchor' takes the bound on it at the anchor, and None that over the constraints."
            )
        if self.calibration not in ("exact", "classic"):
            raise OptionError(
                f"Linear: calibration must be 'exact' or 'classic', not {self.calibration!r}."
            )

    def threshold(self, anchor_gradient: float) -> float | None:
        """ζ as a number, for a bound G0 on the gradient of a record at the anchor.

        Raises
        ------
        CalibrationError
            If clip is "anchor" and G0 is 0.
        """
        if self.clip != "anchor":
            return self.clip
        if not anchor_gradient > 0.0:
            raise CalibrationError(
                "Linear: clip='anchor' clips at the bound on a record's gradient at the anchor, "
                "and that is 0 here: every record has its minimum there. Pass clip a number."
            )
        return float(anchor_gradient)

    def calibrate(
        self,
        epsilon: float,
        delta: float,
        sensitivity: Sensitivity,
        *,
        radius: float = 1.0,
        accuracy: float | None = None,
    ) -> CalibratedLinear:
        """The smallest noise of this mechanism that is (ε, δ)-differentially private.

        Parameters are those of
        :meth:`cvxqop.privacy.wishart.options.Wishart.calibrate`; ``radius`` moves the choice of
        μ. With "classic" and a release, s_a is raised where its slack does not cover the release.

        Raises
        ------
        CalibrationError
            If there is no bound G, if "classic" or ``clip`` is asked for where the Hessian of a
            record may have rank above one, or (ε, δ) is out of range.
        """
        check_privacy(epsilon, delta)
        cuts = sensitivity.cuts or 1
        clip = self.threshold(sensitivity.anchor_gradient / cuts)
        bounds = (None if clip is None else cuts * clip, sensitivity.gradient)
        G = min((bound for bound in bounds if bound is not None), default=math.inf)
        if not math.inf > G:
            raise CalibrationError(
                "Linear: the gradient of one record has no bound over the constraint set: the "
                "slope of this loss grows without limit, and the constraints leave the variable "
                "unbounded. The noise of linear perturbation is proportional to such a bound. "
                "Bound the variable by a box or a ball, such as "
                "cp.norm(theta, 2) <= 1; or, for a loss of one number a record, clip the gradients "
                "with Linear(clip=…), which changes the loss; or use a quadratic perturbation, "
                "'wishart' or 'gaussian': its random curvature covers the growth of the gradient, "
                "so it only needs a bound at the anchor."
            )
        if clip is not None and sensitivity.hessian_rank != 1 and sensitivity.cuts is None:
            raise CalibrationError(
                "Linear: clip holds for losses of GLM form only, one row a record: there clipping "
                "the gradient is minimising another convex loss. Bound the variable instead."
            )
        classic = self.calibration == "classic"
        if classic and sensitivity.hessian_rank != 1:
            raise CalibrationError("Linear: 'classic' holds for losses of GLM form only.")
        release = None
        if accuracy is not None:
            release = GaussianRelease.beside(accuracy, epsilon, delta)
        start = CalibratedLinear(sensitivity, float(G), 1.0, 1.0, release, clip, self.calibration)
        if not classic:
            return _exact(start, epsilon, delta, radius)
        double = 2.0 if sensitivity.adjacency == "replace_one" else 1.0
        ridge = 2.0 * sensitivity.smoothness / epsilon * UP
        scale = double * G * math.sqrt(8.0 * math.log(2.0 / delta) + 4.0 * epsilon) / epsilon * UP
        found = replace(start, ridge=ridge, guard_scale=scale)
        while float(found.profile(epsilon)) > delta:
            found = replace(found, guard_scale=found.guard_scale * 1.01)
        return found


@dataclass(frozen=True)
class CalibratedLinear:
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
    def mean_curvature(self) -> float:
        """μ, the ridge."""
        return self.ridge

    @property
    def gdp_mu(self) -> float | None:
        """None: the determinants are not Gaussian."""
        return None

    @property
    def freedom(self) -> int:
        """Dimension of the space in which the direction of the shift may depend on the output."""
        s = self.sensitivity
        held = 1 if s.hessian_rank == 1 else s.gradient_range
        if held is None:
            return s.dimension
        return min(s.dimension, 2 * held if self._replaced else held)

    @property
    def shift(self) -> float:
        """Largest change of a: G for add_remove, 2G for replace_one."""
        return (2.0 if self._replaced else 1.0) * self.gradient

    @property
    def paid(self) -> float:
        """ρ log(1 + L/μ), what the determinants take from ε."""
        s = self.sensitivity
        return s.hessian_rank * math.log1p(s.smoothness / self.ridge) * (1.0 + 2.0**-50)

    @property
    def _replaced(self) -> bool:
        return self.sensitivity.adjacency == "replace_one"

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

    def predicted_risk(self, radius: float, curvature: float) -> float:
        """Prediction of the risk, see :func:`cvxqop.privacy.utility.predicted_risk`."""
        d = self.sensitivity.dimension
        return predicted_risk(
            ridge=self.ridge,
            spread=0.0,
            guard_scale=self.guard_scale,
            dimension=d,
            radius=radius,
            curvature=curvature,
        )

    def draw(self, noise: Noise) -> Perturbation:
        """S = μI, and a from a fresh stream."""
        d = self.sensitivity.dimension
        root = math.nextafter(math.sqrt(self.ridge), math.inf)
        return Perturbation(root * np.eye(d), self.guard_scale * noise.standard_normal(d))

    @property
    def grids(self) -> tuple[Grid, ...]:
        """None: no quadratic is released."""
        return ()

    def repair(self, hessian: Array, gradients: Sequence[Array]) -> Array:
        """H̃ as it is: S is positive definite."""
        return hessian

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


def _exact(
    start: CalibratedLinear, epsilon: float, delta: float, radius: float
) -> CalibratedLinear:
    """μ by two rounds of a grid on the utility bound, s_a by the exact profile.

    The release is left out of the search, where it matters little and costs a quadrature a trial.
    """
    L, rank = start.sensitivity.smoothness, start.sensitivity.hessian_rank

    def at(part: float, mu_release: float = 0.0) -> CalibratedLinear:
        """The mechanism whose determinants take that part of ε; never less ridge than e^−7 L.

        A millionth of what one record can have hardly shows, and keeps the problem well-posed.
        """
        paid = min(part * epsilon / rank, 7.0)
        trial = replace(start, ridge=L / math.expm1(paid) * UP)
        left = epsilon - trial.paid
        v = largest_shift(left, delta, start.freedom, mu_release=mu_release)
        return replace(trial, guard_scale=start.shift / v * UP if v > 0.0 else math.inf)

    parts = np.concatenate([np.geomspace(1e-6, 0.1, 9), np.linspace(0.2, 0.95, 7)])
    for _ in range(2):
        risks = [at(float(part)).excess_risk_bound(radius) for part in parts]
        best = int(np.argmin(risks))
        chosen = float(parts[best])
        ends = parts[max(best - 1, 0)], parts[min(best + 1, len(parts) - 1)]
        parts = np.geomspace(*ends, 8)
    mu_release = start.release.mu if start.release else 0.0
    result = at(chosen, mu_release)
    while math.isinf(result.guard_scale):  # no room for the release there: leave it more
        chosen *= 0.5
        result = at(chosen, mu_release)
    while float(result.profile(epsilon)) > delta:
        result = replace(result, guard_scale=result.guard_scale * (1.0 + 1e-12))
    return result
