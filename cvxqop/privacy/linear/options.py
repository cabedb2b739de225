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
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from cvxqop.errors import CalibrationError, OptionError
from cvxqop.privacy.accounting.profile import check_privacy, is_number
from cvxqop.privacy.linear.calibrated import CalibratedLinear
from cvxqop.privacy.linear.profile import approximate_shift, largest_shift
from cvxqop.privacy.mechanism import Sensitivity
from cvxqop.privacy.release import GaussianRelease
from cvxqop.privacy.remembered import remembered

__all__ = ["CalibratedLinear", "Linear"]

Array = npt.NDArray[np.float64]

UP = 1.0 + 2.0**-49
"""Noise is multiplied by this, so that rounding never leaves it too small."""
LEVELS = {"anchor": 1.0, "auto": 0.5}
"""ζ/G0 of the levels that have a name."""


@dataclass(frozen=True)
class Linear:
    """Linear objective perturbation: a fixed ridge μ and a random linear term.

    The baseline that quadratic perturbation is compared with. It needs a bound G on the gradient
    of one record at every θ of the constraint set, which for a squared loss grows with that set.

    Parameters
    ----------
    clip : float, "anchor" or "auto", optional
        ζ > 0 (LOP-Clip), in units of loss per θ: the gradient of each record is clipped to norm ζ,
        so that G = ζ. "anchor" is ζ = G0, the bound at the anchor: R/2 for a logistic loss at 0,
        κRB for a squared one; "auto" is half of it, the most accurate level on data. Clipping is
        minimising the loss whose slope is cut to ±ζ/‖a‖, a the whole row, public columns included;
        for a squared loss it is Huber's, with a threshold a record. Of a record with several rows
        each has its gradient clipped, and G is their sum.
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

    clip: float | Literal["anchor", "auto"] | None = None
    calibration: str = "exact"
    whole: ClassVar[bool] = True
    """Its accounting is that of the whole Hessian of all outputs."""

    def __post_init__(self) -> None:
        clip: Any = self.clip
        named = clip is None or (isinstance(clip, str) and clip in LEVELS)
        if not named and not (is_number(clip) and 0.0 < clip < math.inf):
            raise OptionError(
                f"Linear: clip must be a positive and finite number, 'anchor' or 'auto', not "
                f"{self.clip!r}. It is the largest norm that the gradient of one record may have; "
                "'anchor' takes the bound on it at the anchor, 'auto' half of it, and None the "
                "bound over the constraints."
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
            If clip is "anchor" or "auto", and G0 is 0.
        """
        if not isinstance(self.clip, str):
            return None if self.clip is None else float(self.clip)
        if not anchor_gradient > 0.0:
            raise CalibrationError(
                f"Linear: clip={self.clip!r} clips at a part of the bound on a record's gradient "
                "at the anchor, and that is 0 here: every record has its minimum there. Pass clip "
                "a number."
            )
        return LEVELS[self.clip] * float(anchor_gradient)

    @remembered
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
        release = GaussianRelease.beside(accuracy, epsilon, delta)
        start = CalibratedLinear(sensitivity, float(G), 1.0, 1.0, release, clip, self.calibration)
        if not classic:
            return _exact(start, epsilon, delta, radius)
        ridge = 2.0 * sensitivity.smoothness / epsilon * UP
        double = sensitivity.hops
        scale = double * G * math.sqrt(8.0 * math.log(2.0 / delta) + 4.0 * epsilon) / epsilon * UP
        found = replace(start, ridge=ridge, guard_scale=scale)
        while float(found.profile(epsilon)) > delta:
            found = replace(found, guard_scale=found.guard_scale * 1.01)
        return found


def _exact(
    start: CalibratedLinear, epsilon: float, delta: float, radius: float
) -> CalibratedLinear:
    """μ by two rounds of a grid on the utility bound, s_a by the exact profile.

    The release is left out of the search, where it matters little and costs a quadrature a trial.
    """
    L, rank, d = start.sensitivity.smoothness, start.sensitivity.hessian_rank, start.freedom
    mu_release = start.release.mu if start.release else 0.0

    def ridge(part: Any) -> Any:
        """Where the determinants take that part of ε."""
        return L / np.expm1(part * epsilon / rank) * UP

    def at(part: float) -> CalibratedLinear:
        trial = replace(start, ridge=float(ridge(part)))
        v = largest_shift(epsilon - trial.paid, delta, d, mu_release=mu_release)
        return replace(trial, guard_scale=start.shift / v * UP if v > 0.0 else math.inf)

    # Not below e^−9 L: a ten-thousandth of what one record can have hardly shows, and keeps the
    # problem well-posed: double precision certifies an answer at e^−11 L yet, and not at e^−14 L.
    most = min(1.0, 9.0 * rank / epsilon)
    parts = most * np.concatenate([np.geomspace(1e-6, 0.1, 9), np.linspace(0.2, 0.95, 7)])
    for _ in range(2):
        left = epsilon - rank * np.log1p(L / ridge(parts))
        scales = start.shift / approximate_shift(left, delta, d)
        trials = (
            replace(start, ridge=float(mu), guard_scale=float(scale))
            for mu, scale in zip(ridge(parts), scales, strict=True)
        )
        best = int(np.argmin([trial.excess_risk_bound(radius) for trial in trials]))
        chosen = float(parts[best])
        ends = parts[max(best - 1, 0)], parts[min(best + 1, len(parts) - 1)]
        parts = np.geomspace(*ends, 8)
    result = at(chosen)
    while math.isinf(result.guard_scale):  # no room for the release there: leave it more
        chosen *= 0.5
        result = at(chosen)
    while float(result.profile(epsilon)) > delta:
        result = replace(result, guard_scale=result.guard_scale * (1.0 + 1e-12))
    return result
