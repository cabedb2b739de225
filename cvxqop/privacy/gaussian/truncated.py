"""The Gaussian ensemble for GLM losses that are not quadratic: a floor under S (Theorem 8).

S = μI + sN, drawn until its smallest eigenvalue is at least c0; the number of draws depends on no
record. With p0 = P(λ_min < c0), p1 = P(λ_min < c0 + L), ε_det = log(1 + L/c0), μ_E = F/s and
Z ~ N(μ_E²/2, μ_E²),

    add_remove   δ(ε) ≤ { E[δ_G(ε − ε_det − max(0, Z); μ_a)] + p1 − p0 } / (1 − p0)
    replace_one  δ(ε) ≤ { Σ δ_G(ε − 2 ε_det; (Δ²/s² + μ_a²)^½) + p1 − p0 } / (1 − p0),

the sum over Δ² = 0, F², F², 2F² and μ_a that of guard and release together. p1 − p0 is bounded as
one integral of the density of eigenvalues (:mod:`cvxqop.privacy.accounting.oscillator`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import log_ndtr, ndtr

from cvxqop.privacy.accounting.normal import half_normal_mean
from cvxqop.privacy.accounting.oscillator import LARGEST, eigenvalue_tail
from cvxqop.privacy.accounting.profile import gaussian_profile
from cvxqop.privacy.accounting.quadrature import converged
from cvxqop.privacy.gaussian.symmetric import SymmetricDraw, symmetric_noise
from cvxqop.privacy.mechanism import Sensitivity
from cvxqop.privacy.noise import Noise
from cvxqop.privacy.release import GaussianRelease
from cvxqop.privacy.ridge import RidgeMechanism
from cvxqop.privacy.wishart.ensemble import Adjacency

__all__ = ["CalibratedTruncatedGaussian", "shift_profile"]

Array = npt.NDArray[np.float64]


def shift_profile(
    epsilon: npt.ArrayLike, mu_curvature: float, mu_linear: float, adjacency: Adjacency
) -> Array:
    """The part of δ that the shift of (S, a) costs; ``epsilon`` is what the determinants leave.

    ``add_remove``: E[δ_G(ε − max(0, Z); μ_a)], Z ~ N(μ_E²/2, μ_E²). ``replace_one``: the sum of
    δ_G(ε; μ) over μ² = μ_a² + (0, 1, 1, 2) μ_E².

    Parameters
    ----------
    epsilon : array_like of float
        Any real numbers.
    mu_curvature : float
        μ_E = F/s > 0.
    mu_linear : float
        μ_a ≥ 0: guard and release together.
    adjacency : {"replace_one", "add_remove"}
        What neighbouring data sets are.

    Returns
    -------
    ndarray
        At most 1, rounded up, shaped as ``epsilon``.

    Examples
    --------
    >>> round(float(shift_profile(1.0, 1.0, 0.0, "add_remove")), 9)   # δ_G(1; 1)
    0.126936738
    """
    eps = np.atleast_1d(np.asarray(epsilon, dtype=np.float64)).ravel()
    if adjacency == "replace_one":
        corners = np.sqrt(mu_linear**2 + mu_curvature**2 * np.array([0.0, 1.0, 1.0, 2.0]))
        delta = gaussian_profile(eps[:, None], corners * (1.0 + 2.0**-50)).sum(axis=1)
    elif mu_linear == 0.0:
        with np.errstate(over="ignore"):
            negative = 1.0 - 2.0 * np.exp(np.minimum(eps, 0.0) + log_ndtr(-0.5 * mu_curvature))
        delta = np.where(eps >= 0.0, gaussian_profile(eps, mu_curvature), negative + 1e-15)
    else:
        delta = _one_shift(eps, mu_curvature, mu_linear)
    return np.asarray(np.minimum(delta, 1.0).reshape(np.shape(epsilon)))


def _one_shift(epsilon: Array, mu_curvature: float, mu_linear: float) -> Array:
    """E[δ_G(ε − max(0, Z); μ_a)]: Z ≤ 0 in closed form, the rest by quadrature over g."""
    half = 0.5 * mu_curvature
    spread = mu_linear * np.array([-20.0, -10.0, -5.0, -2.0, 0.0, 2.0, 5.0, 10.0, 20.0])
    kinks = (epsilon[:, None] + spread) / mu_curvature - half

    def weight(g: Array) -> Array:
        return gaussian_profile(epsilon[:, None] - mu_curvature * (g + half), mu_linear)

    low = np.full_like(epsilon, -half)
    above = converged(lambda n: half_normal_mean(weight, low, kinks, n), nodes=12)
    below = ndtr(-half) * (1.0 + 1e-14) * gaussian_profile(epsilon, mu_linear)
    return np.asarray(above + below)


@dataclass(frozen=True)
class CalibratedTruncatedGaussian(RidgeMechanism):
    """S = μI + sN with a floor under its spectrum, and a guard. All numbers are public.

    Attributes
    ----------
    sensitivity : Sensitivity
        The bounds that it was calibrated for.
    scale : float
        s.
    ridge : float
        μ.
    floor : float
        c0: S is drawn until λ_min(S) ≥ c0.
    guard_scale : float
        s_a, the standard deviation of each entry of the linear guard; 0 without guard.
    release : GaussianRelease or None
        The release composed with it.
    """

    sensitivity: Sensitivity
    scale: float
    ridge: float
    floor: float
    guard_scale: float
    release: GaussianRelease | None = None

    @property
    def title(self) -> str:
        """Name of the mechanism."""
        return "Gaussian quadratic perturbation with a floor"

    @property
    def spread(self) -> float:
        """s²(d + 1)/2."""
        return 0.5 * self.scale**2 * (self.sensitivity.dimension + 1)

    @property
    def mu_linear(self) -> float:
        """Guard and release together."""
        moved = self.sensitivity.hops * self.sensitivity.anchor_gradient
        release = self.release.mu if self.release else 0.0
        return math.hypot(moved / self.guard_scale if moved > 0.0 else 0.0, release)

    @property
    def rejection(self) -> float:
        """Upper bound on p0, the probability that a draw is rejected."""
        gap = (self.ridge - self.floor) / self.scale
        return eigenvalue_tail(gap * (1.0 - 1e-14), self.sensitivity.dimension)

    @property
    def crossing(self) -> float:
        """Upper bound on p1 − p0, the probability that a record reaches through the floor."""
        d, L = self.sensitivity.dimension, self.sensitivity.smoothness
        below = (self.ridge - self.floor - L) / self.scale
        above = (self.ridge - self.floor) / self.scale
        upper = above * (1.0 + 1e-14) if d <= LARGEST else math.inf
        return eigenvalue_tail(below - 1e-14 * above, d, upper)

    def profile(self, epsilon: npt.ArrayLike) -> Array:
        """δ(ε) of this mechanism, rounded up."""
        s = self.sensitivity
        paid = s.hops * math.log1p(s.smoothness / self.floor) * (1.0 + 1e-15)
        left = np.asarray(epsilon, dtype=np.float64) - paid
        moved = shift_profile(left, s.frobenius_bound / self.scale, self.mu_linear, s.adjacency)
        kept = max(1.0 - self.rejection, 1e-300)
        return np.asarray(np.minimum(1.0, (moved + self.crossing) / kept * (1.0 + 1e-14)))

    def excess_risk_bound(self, radius: float) -> float:
        """Bound on E J(θ_pert) − J(θ̂) for ‖θ̂ − θ0‖ ≤ radius, exact solve (Theorem 13).

        ½ D0² ‖E S‖ + ½ s_a² E tr S⁻¹ with ‖E S‖ ≤ μ + s √(p0/(d(1 − p0))), as E S is a multiple
        of I, and E tr S⁻¹ ≤ d/μ + s² d(d+1)/(2 μ² c0 (1 − p0)), from
        1/x = 1/μ − (x − μ)/μ² + (x − μ)²/(μ² x) with x ≥ c0 and E tr S ≥ dμ.
        """
        d, p0 = self.sensitivity.dimension, min(self.rejection, 1.0 - 1e-12)
        mean = self.ridge + self.scale * math.sqrt(p0 / (d * (1.0 - p0)))
        spread = self.scale**2 * (d + 1) / (2.0 * self.ridge**2 * self.floor * (1.0 - p0))
        inverse = d * min(1.0 / self.floor, 1.0 / self.ridge + spread)
        return 0.5 * radius**2 * mean + 0.5 * self.guard_scale**2 * inverse

    def draw(self, noise: Noise) -> SymmetricDraw:
        """One draw of (S, a) from a fresh stream, by rejection."""
        d = self.sensitivity.dimension
        while True:
            S = self.ridge * np.eye(d) + self.scale * symmetric_noise(noise, d)
            spectrum = np.linalg.eigvalsh(S)
            if spectrum[0] >= self.floor + 1e-14 * d * abs(spectrum[-1]):
                break
        scale = self.guard_scale
        guard = scale * noise.standard_normal(d) if scale > 0.0 else np.zeros(d)
        return SymmetricDraw(S, (guard,))

    def describe(self) -> dict[str, Any]:
        """The public numbers, for plans and solutions."""
        return {
            "ensemble": "gaussian",
            "calibration": "exact",
            "scale": self.scale,
            "ridge": self.ridge,
            "floor": self.floor,
            "guard_scale": self.guard_scale,
            "mean_curvature": self.mean_curvature,
            "rejection": self.rejection,
            "release_scale": self.release.scale if self.release else 0.0,
        }

    def summary(self) -> tuple[tuple[str, str], ...]:
        """The noise in words: (heading, text) of each line."""
        guard = f"linear guard s_a = {self.guard_scale:.6g}" if self.guard_scale else "no guard"
        return (
            ("mechanism", f"{self.title}, S = μI + sN, λ_min(S) ≥ c0"),
            ("noise", f"s = {self.scale:.6g}, c0 = {self.floor:.6g}, {guard}"),
            ("ridge", f"mean curvature μ = {self.ridge:.6g}"),
        )
