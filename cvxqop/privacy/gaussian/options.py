"""The Gaussian ensemble for quadratic losses: exact accounting (Theorems 7 and 15), stages (§6).

S = s N, N symmetric with N_ii ~ N(0, 1) and N_ij ~ N(0, ½): its density is proportional to
exp(−‖N‖_F²/2). A record of a quadratic loss moves (S, a) by a fixed (E, b), so that releasing the
perturbed quadratic is a Gaussian mechanism: nothing is truncated, and no determinant is paid for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from cvxqop.errors import CalibrationError, OptionError
from cvxqop.privacy.accounting.profile import gaussian_mu, is_number
from cvxqop.privacy.gaussian.adaptive import calibrate_adaptive
from cvxqop.privacy.gaussian.calibrated import CalibratedGaussian
from cvxqop.privacy.gaussian.gradient import calibrate_gradient
from cvxqop.privacy.gaussian.shifts import (
    curvature_shift,
    free_value_scale,
    gradient_shifts,
    total_mu,
    value_shift,
)
from cvxqop.privacy.gaussian.truncated import CalibratedTruncatedGaussian
from cvxqop.privacy.gaussian.truncated_choice import calibrate_truncated
from cvxqop.privacy.mechanism import Sensitivity
from cvxqop.privacy.release import RELEASE_PART, GaussianRelease
from cvxqop.privacy.remembered import remembered
from cvxqop.privacy.shares import checked_shares, gaussian_shares

__all__ = ["Gaussian"]

CURVATURES = ("floor", "ridge")
MORE = 1.0 + 2.0**-46
"""Noise is multiplied by this, so that rounding never leaves it too small."""


@dataclass(frozen=True)
class Gaussian:
    """Quadratic perturbation by a symmetric Gaussian matrix, with exact accounting.

    Quadratic losses: the perturbed quadratic (H̃, g̃) is released by a Gaussian mechanism, and its
    curvature is repaired afterwards, which costs no privacy. Other GLM losses: S = μI + sN is
    drawn until its smallest eigenvalue is at least c0 (:mod:`cvxqop.privacy.gaussian.truncated`).

    Parameters
    ----------
    curvature : {"floor", "ridge"}
        How H̃ is repaired: its eigenvalues raised to a level that only noise sets, most often its
        edge s√(2d), see :meth:`CalibratedGaussian.level`, or a ridge added that raises the smallest
        one to it. Without meaning for losses that are not quadratic.
    stages : int or "adaptive"
        Number of times that the gradient is released, each time at the solution of the stage
        before, with every residual cut to ``residual_bound`` from the second stage on. Squared
        losses only. Each stage reads the records once; where most residuals are small six are more
        accurate than two.
        "adaptive" is adaptive clipping: 24 stages, in which the gradient of each record is cut to a
        norm that private histograms choose, and a check against the uncut gradient in the end, so
        that more records lead to the minimiser of the loss as written
        (:mod:`cvxqop.privacy.gaussian.adaptive`).
    residual_bound : float, optional
        B', public, in units of the residual, the same in every stage. None is B/(j + 2) in stage
        j ≥ 2, B the bound at the anchor: a quarter, a fifth, …
    shares : tuple of float, optional
        Fractions of μ_tot² that S and the gradients of the stages spend, in this order; they add
        up to one. None chooses them, see :func:`cvxqop.privacy.shares.gaussian_shares`. What joint
        accounting saves (Theorem 15) is taken from all of the noise alike.
    sum_of_squares : bool or float
        Whether Σ ½κr² at the anchor is released as well, for squared losses. A number is the
        fraction of μ_tot² that it takes; True takes what is free where records of one row are
        exchanged (replace_one).

    Raises
    ------
    OptionError
        On a value of the wrong type or out of range.

    Notes
    -----
    Theory §4, Theorems 7, 8 and 15, and §6.

    Examples
    --------
    >>> Gaussian(stages=2)
    Gaussian(curvature='floor', stages=2, residual_bound=None, shares=None, sum_of_squares=False)
    """

    curvature: str = "floor"
    stages: int | str = 1
    residual_bound: float | None = None
    shares: tuple[float, ...] | None = None
    sum_of_squares: bool | float = False

    def __post_init__(self) -> None:
        if self.curvature not in CURVATURES:
            raise OptionError(
                f"Gaussian: curvature must be 'floor' or 'ridge', not {self.curvature!r}."
            )
        if self.adaptive:
            others = (self.curvature, self.residual_bound, self.shares, self.sum_of_squares)
            if others != ("floor", None, None, False):
                raise OptionError(
                    "Gaussian: stages='adaptive' chooses its cuts and shares, raises eigenvalues "
                    "and releases no sum of squares: leave other options out, or state a number of "
                    "stages."
                )
            return
        if (
            isinstance(self.stages, bool)
            or not isinstance(self.stages, int | np.integer)
            or not 1 <= self.stages <= 100
        ):
            raise OptionError(
                f"Gaussian: stages must be an int from 1 to 100 or 'adaptive', not {self.stages!r}."
            )
        bound = self.residual_bound
        if bound is not None and not (is_number(bound) and 0.0 < bound < math.inf):
            raise OptionError("Gaussian: residual_bound must be positive and finite, or None.")
        part = self.sum_of_squares
        if not isinstance(part, bool) and not (is_number(part) and 0.0 < part < 1.0):
            raise OptionError(
                "Gaussian: sum_of_squares must be True, False or a number between 0 and 1, not "
                f"{part!r}."
            )
        if self.shares is not None:
            object.__setattr__(self, "shares", checked_shares(self.shares, int(self.stages)))

    @property
    def adaptive(self) -> bool:
        """Whether private histograms choose what gradients are cut to."""
        return isinstance(self.stages, str) and self.stages == "adaptive"

    @property
    def repeats(self) -> bool:
        """Whether the gradient is released more than once."""
        return self.stages != 1

    @remembered
    def calibrate(
        self,
        epsilon: float,
        delta: float,
        sensitivity: Sensitivity,
        *,
        radius: float = 1.0,
        accuracy: float | None = None,
    ) -> CalibratedGaussian | CalibratedTruncatedGaussian:
        """The smallest noise of this mechanism that is (ε, δ)-differentially private.

        Parameters
        ----------
        epsilon, delta : float
            The privacy to be met.
        sensitivity : Sensitivity
            Public bounds.
        radius : float
            Hint for ‖θ̂ − θ0‖; it moves the shares, not the privacy.
        accuracy : float, optional
            Δ, the certified distance to the exact minimiser, for a solve that touches records; a
            Gaussian release is then part of the mechanism.

        Raises
        ------
        CalibrationError
            If stages are asked for without a bound on the residual at the anchor or for a loss
            that is not squared, or a sum of squares that does not exist or is not free; if a loss
            is neither quadratic nor GLM, or (ε, δ) cannot be met.
        """
        part = self._value_share(sensitivity)
        if not sensitivity.quadratic:
            if self.repeats:
                raise CalibrationError(
                    "Gaussian: stages belong to squared losses, whose curvature does not depend "
                    "on θ; use stages=1."
                )
            return calibrate_truncated(
                epsilon, delta, sensitivity, radius=radius, accuracy=accuracy
            )
        if sensitivity.smoothness == 0.0:
            return calibrate_gradient(epsilon, delta, sensitivity)
        total = gaussian_mu(epsilon, delta)
        release = None
        if accuracy is not None:
            release = GaussianRelease.of(accuracy, total / RELEASE_PART)
            total = math.sqrt(total**2 - release.mu**2)
        if self.adaptive and sensitivity.anchor_gradient > 0.0:
            return calibrate_adaptive(total, sensitivity, radius, release)
        bounds = self._residual_bounds(sensitivity)
        shifts = gradient_shifts(sensitivity, bounds)
        E = curvature_shift(sensitivity)
        # The error of the gradient grows with its length dk, that of the curvature with d.
        weighed = [math.sqrt(sensitivity.outputs) * shift for shift in shifts]
        shares = gaussian_shares(
            E, weighed, sensitivity.dimension, radius, self.shares, joint=sensitivity.joint
        )
        scales = [
            shift / (total * math.sqrt((1.0 - part) * share)) if shift > 0.0 else 0.0
            for shift, share in zip((E, *shifts), shares, strict=True)
        ]
        value = None
        if self.sum_of_squares:
            moved = value_shift(sensitivity)
            value = (
                moved / (total * math.sqrt(part))
                if part > 0.0
                else free_value_scale(sensitivity, bounds, scales)
            )
        # One by one they spend μ_tot; where no pair of records spends it, less noise is enough.
        enough = total_mu(sensitivity, bounds, scales, value) / total * MORE
        return CalibratedGaussian(
            sensitivity=sensitivity,
            scale=scales[0] * enough,
            guard_scales=tuple(s * enough for s in scales[1:]),
            residual_bounds=bounds,
            curvature=self.curvature,
            release=release,
            sum_of_squares_scale=None if value is None else value * enough,
        )

    def _value_share(self, sensitivity: Sensitivity) -> float:
        """The part of μ_tot² that the sum of squares takes; 0 where it is free or not released."""
        if self.sum_of_squares is False:
            return 0.0
        if sensitivity.anchor_value is None:
            raise CalibrationError(
                "Gaussian: sum_of_squares is the value of a squared loss at the anchor, and this "
                "private loss is another: leave sum_of_squares out."
            )
        if self.sum_of_squares is not True:
            return float(self.sum_of_squares)
        if not sensitivity.joint:
            raise CalibrationError(
                "Gaussian: sum_of_squares=True is free where records of one row are exchanged "
                "(adjacency='replace_one'). Here state the part of the privacy that it takes, "
                "such as sum_of_squares=0.05."
            )
        return 0.0

    def _residual_bounds(self, sensitivity: Sensitivity) -> tuple[float, ...]:
        """B'_2, …, B'_k; empty for one stage, or where no record has a gradient at the anchor."""
        if self.stages == 1 or sensitivity.anchor_gradient == 0.0:
            return ()
        offset = sensitivity.offset
        if offset is None or offset <= 0.0:
            raise CalibrationError(
                "Gaussian: stages > 1 needs a bound on the residual of a squared loss at the "
                "anchor (Bounds(offset=…)); for other quadratic losses use stages=1."
            )
        if self.residual_bound is not None:
            return (float(self.residual_bound),) * (int(self.stages) - 1)
        return tuple(offset / (stage + 2.0) for stage in range(2, int(self.stages) + 1))
