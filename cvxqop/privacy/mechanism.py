"""Mechanisms: what a user asks for, and what it becomes once it is calibrated."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from cvxqop.errors import CalibrationError, OptionError
from cvxqop.privacy import wishart
from cvxqop.privacy.noise import Noise
from cvxqop.privacy.release import GaussianRelease
from cvxqop.privacy.utility import choose_wishart, release_share, wishart_excess_risk
from cvxqop.privacy.wishart import Adjacency

__all__ = ["CalibratedWishart", "Draw", "Mechanism", "Perturbation", "Sensitivity", "Wishart"]

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Sensitivity:
    """Bounds over every record that could occur; never computed from the data at hand.

    Attributes
    ----------
    dimension : int
        D, the length of θ.
    smoothness : float
        L ≥ ‖∇²ℓ(θ; z)‖.
    anchor_gradient : float
        G0 ≥ ‖∇ℓ(θ0; z)‖ at the anchor θ0.
    quadratic : bool
        Whether ℓ is quadratic in θ.
    adjacency : {"replace_one", "add_remove"}
        What neighbouring data sets are.
    hessian_rank : int
        ρ ≥ rank ∇²ℓ. 1 means the GLM form: one row a record, a Hessian of fixed direction.
    trace, frobenius : float, optional
        T ≥ tr ∇²ℓ and F ≥ ‖∇²ℓ‖_F; None stands for ρL and √ρ L.
    gradient : float, optional
        G ≥ ‖∇ℓ(θ; z)‖ at every θ of C; only the linear mechanism needs it.
    offset : float, optional
        B ≥ |a'θ0 + c|: bound on the residual of a squared loss at the anchor, which G0 = κRB
        rests on.
    """

    dimension: int
    smoothness: float
    anchor_gradient: float
    quadratic: bool
    adjacency: Adjacency
    hessian_rank: int = 1
    trace: float | None = None
    frobenius: float | None = None
    gradient: float | None = None
    offset: float | None = None

    @property
    def trace_bound(self) -> float:
        """T: the trace as given, at most ρL."""
        bound = self.hessian_rank * self.smoothness
        return bound if self.trace is None else min(self.trace, bound)

    @property
    def frobenius_bound(self) -> float:
        """F: the Frobenius norm as given, at most √ρ L and at most T."""
        bound = min(math.sqrt(self.hessian_rank) * self.smoothness, self.trace_bound)
        return bound if self.frobenius is None else min(self.frobenius, bound)

    @property
    def guard_sensitivity(self) -> float:
        """Δ_b: how far one record moves the gradient at the anchor (2 G0 for replace_one).

        For replace_one with a GLM loss that is not quadratic the Wishart accounting goes by two
        hops, and this is Δ_b of one hop, G0.
        """
        one_hop = self.quadratic or self.hessian_rank > 1
        double = self.adjacency == "replace_one" and one_hop
        return (2.0 if double else 1.0) * self.anchor_gradient


class Draw(Protocol):
    """One draw of the noise: a symmetric matrix S and a linear guard a."""

    @property
    def curvature(self) -> Array:
        """S, shape (D, D), exactly symmetric."""
        ...

    @property
    def factor(self) -> Array:
        """A factor of S where S is positive definite: S = factor factor'."""
        ...

    @property
    def guard(self) -> Array:
        """a, shape (D,)."""
        ...


class Mechanism(Protocol):
    """A mechanism with its noise fixed. All of its numbers are public."""

    @property
    def sensitivity(self) -> Sensitivity:
        """The bounds that it was calibrated for."""
        ...

    @property
    def release(self) -> GaussianRelease | None:
        """The release composed with it, where the solve touches records."""
        ...

    @property
    def title(self) -> str:
        """Its name."""
        ...

    @property
    def guard_scale(self) -> float:
        """s_a of the linear guard; 0 where there is none."""
        ...

    @property
    def mean_curvature(self) -> float:
        """The multiple of I that E S is: the ridge that the perturbation amounts to."""
        ...

    @property
    def gdp_mu(self) -> float | None:
        """μ where the mechanism is exactly μ-GDP, so that its releases compose exactly."""
        ...

    def profile(self, epsilon: npt.ArrayLike) -> Array:
        """δ(ε), rounded up."""
        ...

    def excess_risk_bound(self, radius: float) -> float:
        """Bound on E J(θ_pert) − J(θ̂) for ‖θ̂ − θ0‖ ≤ radius, exact solve."""
        ...

    def draw(self, noise: Noise) -> Draw:
        """One draw of (S, a) from a fresh stream."""
        ...

    def describe(self) -> dict[str, Any]:
        """The public numbers, for plans and solutions."""
        ...

    def summary(self) -> tuple[tuple[str, str], ...]:
        """The same for people: (heading, text) of each line."""
        ...


@dataclass(frozen=True)
class Perturbation:
    """One draw: S = factor factor' and the linear guard a."""

    factor: Array
    guard: Array

    @property
    def curvature(self) -> Array:
        """S, shape (D, D), exactly symmetric."""
        S = self.factor @ self.factor.T
        return np.asarray(0.5 * (S + S.T))


@dataclass(frozen=True)
class Wishart:
    """Quadratic perturbation by S = σ² W, W ~ Wishart_d(m, I), with exact accounting.

    Where a record may have a gradient at the anchor, an independent linear guard
    a ~ N(0, s_a² I) is added, so that no interpolation is assumed.

    Parameters
    ----------
    degrees_of_freedom : float, optional
        m > d + 1, real. None chooses it, and the guard's share, by the utility bound.
    calibration : {"exact"}
        "exact" solves δ(ε) = δ for the smallest σ² with the exact profile.

    Raises
    ------
    OptionError
        On a value of the wrong type or out of range.

    Notes
    -----
    Theory §3. Source of the mechanism: Cortild and Cartis 2026, Quadratic Objective Perturbation.

    Examples
    --------
    >>> Wishart()
    Wishart(degrees_of_freedom=None, calibration='exact')
    """

    degrees_of_freedom: float | None = None
    calibration: str = "exact"

    def __post_init__(self) -> None:
        m = self.degrees_of_freedom
        if m is not None and (
            isinstance(m, bool)
            or not isinstance(m, int | float | np.integer | np.floating)
            or not math.isfinite(m)
        ):
            raise OptionError("Wishart: degrees_of_freedom must be a finite number or None.")
        if self.calibration != "exact":
            raise OptionError(
                f"Wishart: calibration={self.calibration!r} does not exist; there is 'exact'."
            )

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
            If m is too small for d, or (ε, δ) cannot be met.
        """
        d, L = sensitivity.dimension, sensitivity.smoothness
        m = self.degrees_of_freedom
        if m is not None and m <= d + 1:
            raise CalibrationError(
                f"Wishart: degrees_of_freedom = {m:g} must exceed d + 1 = {d + 1}."
            )
        if sensitivity.hessian_rank != 1:
            from cvxqop.privacy.spectral_mechanism import calibrate_spectral  # imports this module

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
            guard_ratio=moved / (L * radius),
            adjacency=sensitivity.adjacency,
            quadratic=sensitivity.quadratic,
            release_mu=release_mu,
            degrees_of_freedom=m,
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
        )


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
    """

    sensitivity: Sensitivity
    sigma2: float
    degrees_of_freedom: float
    guard_scale: float
    release: GaussianRelease | None = None

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
        """σ² m: E S = σ² m I, the ridge that the perturbation amounts to."""
        return self.sigma2 * self.degrees_of_freedom

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
        """Bound on E J(θ_pert) − J(θ̂) for ‖θ̂ − θ0‖ ≤ radius, exact solve (theory §8)."""
        return wishart_excess_risk(
            sigma2=self.sigma2,
            degrees_of_freedom=self.degrees_of_freedom,
            guard_scale=self.guard_scale,
            dimension=self.sensitivity.dimension,
            radius=radius,
        )

    def draw(self, noise: Noise) -> Perturbation:
        """One draw of (S, a) from a fresh stream."""
        d = self.sensitivity.dimension
        factor = wishart.sample_factor(noise, d, self.degrees_of_freedom)
        guard = np.zeros(d)
        if self.guard_scale > 0.0:
            guard = self.guard_scale * noise.standard_normal(d)
        return Perturbation(math.sqrt(self.sigma2) * factor, guard)

    def describe(self) -> dict[str, Any]:
        """The public numbers, for plans and solutions."""
        return {
            "ensemble": "wishart",
            "calibration": "exact",
            "sigma2": self.sigma2,
            "degrees_of_freedom": self.degrees_of_freedom,
            "guard_scale": self.guard_scale,
            "mean_curvature": self.mean_curvature,
            "release_scale": self.release.scale if self.release else 0.0,
        }

    def summary(self) -> tuple[tuple[str, str], ...]:
        """The noise in words: (heading, text) of each line."""
        guard = (
            f"linear guard s_a = {self.guard_scale:.6g}" if self.guard_scale else "no linear guard"
        )
        return (
            ("mechanism", f"{self.title}, S = σ²W, W ~ Wishart(m, I)"),
            ("noise", f"σ² = {self.sigma2:.6g}, m = {self.degrees_of_freedom:g}, {guard}"),
            ("ridge", f"mean curvature E S = σ²m I = {self.mean_curvature:.6g} I"),
        )
