"""The Wishart mechanism: what a user asks for, and its calibration."""

from __future__ import annotations

import math
from dataclasses import dataclass

from cvxqop.errors import CalibrationError, OptionError
from cvxqop.privacy.accounting.profile import is_number
from cvxqop.privacy.mechanism import Sensitivity
from cvxqop.privacy.paper.calibration import calibrate_paper, checked_split
from cvxqop.privacy.release import GaussianRelease
from cvxqop.privacy.remembered import remembered
from cvxqop.privacy.utility import choose_wishart, release_share
from cvxqop.privacy.wishart import ensemble as wishart
from cvxqop.privacy.wishart.calibrated import CalibratedWishart
from cvxqop.privacy.wishart.spectral_mechanism import calibrate_spectral

__all__ = ["Wishart"]


@dataclass(frozen=True)
class Wishart:
    """Quadratic perturbation by S = σ² W, W ~ Wishart_d(m, I), with exact accounting.

    Where a record may have a gradient at the anchor, an independent linear guard
    a ~ N(0, s_a² I) is added, so that no interpolation is assumed.

    Parameters
    ----------
    degrees_of_freedom : float, optional
        m > d + 1, real. None chooses it, and the shares, by the utility bound.
    calibration : {"exact", "paper"}
        "exact" solves δ(ε) = δ for the smallest σ² with the exact profile. "paper" takes the
        constants of the paper (Theorem 12), many times larger, for comparison; it needs losses with
        a common minimiser, see :mod:`cvxqop.privacy.paper.calibrated`, and has no guard.
    curvature : {"ridge", "floor"}
        "ridge" leaves the mean curvature E S = σ² m I in place. "floor" (squared losses, solved
        from their quadratic form) subtracts it and raises the eigenvalues to the noise edge
        σ² (2√(md) − d), which costs no privacy (theory §6).
    epsilon_shares : tuple of float, optional
        Calibration "paper": fractions of ε for (ε1, ε2), perturbation and release; they add up
        to 1. ε2 may not exceed 1. Without a release ε1 takes all. None chooses.
    delta_shares : tuple of float, optional
        Calibration "paper": fractions of δ for (δ1, δ2, δ3, δ4); they add up to 1. δ2 is needed
        with a release, δ4 with an anchor that is off by η > 0; what is not needed falls to the
        others.

    Raises
    ------
    OptionError
        On a value of the wrong type or out of range, or options that exclude each other.

    Notes
    -----
    Theorems 3 to 6. Source of the mechanism: Cortild and Cartis 2026, Quadratic Objective
    Perturbation.

    Examples
    --------
    >>> Wishart(degrees_of_freedom=40).calibration
    'exact'
    >>> Wishart(calibration="paper", delta_shares=(0.5, 0.0, 0.5)).delta_shares
    (0.5, 0.0, 0.5, 0.0)
    """

    degrees_of_freedom: float | None = None
    calibration: str = "exact"
    curvature: str = "ridge"
    epsilon_shares: tuple[float, ...] | None = None
    delta_shares: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        m = self.degrees_of_freedom
        if m is not None and not (is_number(m) and math.isfinite(m)):
            raise OptionError("Wishart: degrees_of_freedom must be a finite number or None.")
        if self.calibration not in ("exact", "paper"):
            raise OptionError(
                f"Wishart: calibration={self.calibration!r} does not exist; there are 'exact' and "
                "'paper'."
            )
        if self.curvature not in ("ridge", "floor"):
            raise OptionError(
                f"Wishart: curvature must be 'ridge' or 'floor', not {self.curvature!r}."
            )
        if self.calibration == "paper" and self.curvature == "floor":
            raise OptionError("Wishart: curvature='floor' belongs to calibration='exact'.")
        for name, parts in (("epsilon_shares", 2), ("delta_shares", 4)):
            shares = getattr(self, name)
            if shares is None:
                continue
            if self.calibration != "paper":
                raise OptionError(f"Wishart: {name} belongs to calibration='paper'.")
            object.__setattr__(self, name, checked_split(name, shares, parts))

    @property
    def whole(self) -> bool:
        """Whether the accounting is that of the whole Hessian of all outputs."""
        return self.calibration == "paper"

    @remembered
    def calibrate(
        self,
        epsilon: float,
        delta: float,
        sensitivity: Sensitivity,
        *,
        radius: float = 1.0,
        accuracy: float | None = None,
    ) -> CalibratedWishart:
        """The smallest noise of this mechanism that is (ε, δ)-differentially private.

        Parameters
        ----------
        epsilon, delta : float
            The privacy to be met.
        sensitivity : Sensitivity
            Public bounds.
        radius : float
            Hint for ‖θ̂ − θ0‖; it moves the choice of m and of the shares, not the privacy.
        accuracy : float, optional
            Δ, the certified distance to the exact minimiser, for a solve that touches records; a
            Gaussian release is then part of the mechanism.

        Raises
        ------
        CalibrationError
            If m is too small for d, (ε, δ) cannot be met, the floor is asked for where the solver
            sees more than a quadratic form of records of one row, or the paper's assumptions are
            not met.
        """
        d, L = sensitivity.dimension, sensitivity.smoothness
        m = None if self.degrees_of_freedom is None else float(self.degrees_of_freedom)
        if m is not None and m <= d + 1:
            raise CalibrationError(
                f"Wishart: degrees_of_freedom = {m:g} must exceed d + 1 = {d + 1}."
            )
        if self.calibration == "paper":
            return calibrate_paper(
                epsilon, delta, sensitivity, radius=radius, accuracy=accuracy, degrees_of_freedom=m,
                epsilon_shares=self.epsilon_shares, delta_shares=self.delta_shares,
            )  # fmt: skip
        if self.curvature == "floor":
            _check_floor(sensitivity, accuracy)
        if sensitivity.hessian_rank != 1:
            return calibrate_spectral(
                epsilon, delta, sensitivity, radius=radius, accuracy=accuracy, degrees_of_freedom=m
            )
        moved = sensitivity.guard_sensitivity
        release = None
        if accuracy is not None:
            share = release_share(
                epsilon, delta, adjacency=sensitivity.adjacency, quadratic=sensitivity.quadratic
            )
            release = GaussianRelease.of(accuracy, share)
        release_mu = release.mu if release else 0.0
        shares = choose_wishart(
            epsilon,
            delta,
            d,
            guard_ratio=math.sqrt(sensitivity.outputs) * moved / (L * radius),
            adjacency=sensitivity.adjacency,
            quadratic=sensitivity.quadratic,
            release_mu=release_mu,
            degrees_of_freedom=m,
            curvature=self.curvature,
        )
        # Rounding the guard's noise up first: its share of μ is what the noise really gives.
        guard_scale = math.nextafter(moved / shares.guard_mu, math.inf) if moved > 0.0 else 0.0
        ratio = wishart.calibrate(
            epsilon,
            delta,
            shares.degrees_of_freedom - d + 1,
            adjacency=sensitivity.adjacency,
            quadratic=sensitivity.quadratic,
            mu=math.hypot(shares.guard_mu, release_mu) if moved > 0.0 else release_mu,
            guess=shares.guess,
        )
        return CalibratedWishart(
            sensitivity=sensitivity,
            sigma2=math.nextafter(ratio * L, math.inf),
            degrees_of_freedom=shares.degrees_of_freedom,
            guard_scale=guard_scale,
            release=release,
            curvature=self.curvature,
        )


def _check_floor(sensitivity: Sensitivity, accuracy: float | None) -> None:
    """Refuse what has no released curvature to subtract from."""
    if not sensitivity.quadratic:
        raise CalibrationError(
            "Wishart: curvature='floor' belongs to squared losses, whose perturbed curvature is "
            "released; use curvature='ridge'."
        )
    if accuracy is not None:
        raise CalibrationError(
            "Wishart: curvature='floor' repairs the quadratic form that the solver sees, and this "
            "variant of STOTOS works on the records; leave the variant out, or use "
            "curvature='ridge'."
        )
    if sensitivity.hessian_rank != 1:
        raise CalibrationError(
            "Wishart: curvature='floor' is for records of one row; use perturbation='gaussian', "
            "whose curvature is repaired in the same way."
        )
