"""The Wishart mechanism for records whose Hessian may have rank above one (Theorem 6)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cvxqop.errors import CalibrationError
from cvxqop.privacy.mechanism import Sensitivity
from cvxqop.privacy.release import GaussianRelease
from cvxqop.privacy.wishart import spectral
from cvxqop.privacy.wishart.calibrated import CalibratedWishart

__all__ = ["CalibratedSpectral", "calibrate_spectral"]

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class CalibratedSpectral(CalibratedWishart):
    """A Wishart mechanism accounted for by the spectral bound; attributes of its base class.

    Attributes
    ----------
    level : float
        δ_λ: the part of δ that the smallest eigenvalue takes at the ε it was calibrated for.
    """

    level: float = 1e-6

    def profile(self, epsilon: npt.ArrayLike) -> Array:
        """Bound on δ(ε) of this mechanism: the best of a grid of δ_λ, and of its own."""
        own = self._profile(epsilon, self.level)
        return np.minimum(own, self._profile(epsilon, None)) if np.ndim(epsilon) else own

    def _profile(self, epsilon: npt.ArrayLike, level: float | None) -> Array:
        s = self.sensitivity
        side, freedom = _seen(s, self.degrees_of_freedom)
        return spectral.profile(
            epsilon,
            smoothness_ratio=s.smoothness / self.sigma2,
            trace_ratio=s.trace_bound / self.sigma2,
            dimension=side,
            degrees_of_freedom=freedom,
            adjacency=s.adjacency,
            quadratic=s.quadratic,
            mu=self.mu,
            level=level,
        )

    def describe(self) -> dict[str, Any]:
        """The public numbers, for plans and solutions."""
        return {**super().describe(), "calibration": "spectral", "level": self.level}


def _seen(sensitivity: Sensitivity, degrees_of_freedom: float) -> tuple[int, float]:
    """Side q and degrees of freedom of the part of W that two neighbouring data sets differ by.

    Let U (d, q) be an orthonormal basis of a subspace that holds the range of the Hessian of the
    record that is exchanged, and of its replacement, at every θ. E and these Hessians have the form
    U e U', and

        det(W + U e U') / det W = det(V + e) / det V,   V = (U'W⁻¹U)⁻¹ ~ Wishart_q(m − d + q, I);

    with H0 + S, H0 ⪰ 0, in the place of S = σ²W the same holds for a V that is no smaller. The
    privacy loss is therefore that of the q × q problem: λ_min(V) takes the place of λ_min(W), and
    k = (m − d − 1)/2 is the same in both. q = 1 is the h ~ χ²_ν of GLM losses.
    """
    s = sensitivity
    held = s.hessian_rank if s.quadratic else s.hessian_range
    if held is None:
        return s.dimension, degrees_of_freedom
    q = min(s.dimension, held * int(s.hops))
    return q, degrees_of_freedom - s.dimension + q


def calibrate_spectral(
    epsilon: float,
    delta: float,
    sensitivity: Sensitivity,
    *,
    radius: float = 1.0,
    accuracy: float | None = None,
    degrees_of_freedom: float | None = None,
) -> CalibratedSpectral:
    """σ², m and the guard by the spectral bound; m, where free, by the utility bound.

    Parameters are those of
    :meth:`cvxqop.privacy.wishart.options.Wishart.calibrate`, which calls this
    for losses of rank above one.

    Raises
    ------
    CalibrationError
        If the rank is out of range, m too small, or (ε, δ) cannot be met.

    Examples
    --------
    >>> bounds = Sensitivity(
    ...     dimension=6, smoothness=1.0, anchor_gradient=1.0, quadratic=False,
    ...     adjacency="replace_one", hessian_rank=3,
    ... )
    >>> mechanism = calibrate_spectral(2.0, 1e-6, bounds, accuracy=1e-6)
    >>> float(mechanism.profile(2.0)) <= 1e-6
    True
    """
    d = sensitivity.dimension
    if not 1 <= sensitivity.hessian_rank <= d:
        raise CalibrationError(
            f"hessian_rank = {sensitivity.hessian_rank} must lie between 1 and the dimension {d}."
        )
    release = GaussianRelease.beside(accuracy, epsilon, delta)
    moved = sensitivity.guard_sensitivity

    def at(m: float, edelman: bool) -> spectral.SpectralShares:
        side, freedom = _seen(sensitivity, m)
        return spectral.calibrate(
            epsilon,
            delta,
            smoothness=sensitivity.smoothness,
            trace=sensitivity.trace_bound,
            dimension=side,
            degrees_of_freedom=freedom,
            whole=(d, m),
            adjacency=sensitivity.adjacency,
            quadratic=sensitivity.quadratic,
            guard_ratio=moved / radius,
            release_mu=release.mu if release else 0.0,
            edelman=edelman,
        )

    def finished(m: float, shares: spectral.SpectralShares) -> CalibratedSpectral:
        guard = moved / shares.guard_mu * (1.0 + 2.0**-50) if moved > 0.0 else 0.0
        return CalibratedSpectral(sensitivity, shares.sigma2, m, guard, release, level=shares.level)

    m = degrees_of_freedom
    if m is None:
        trials = d + 1 + np.ceil((d + 1) * np.geomspace(0.25, 64.0, 13))
        for _ in range(2):
            risks = [
                finished(float(t), at(float(t), True)).excess_risk_bound(radius) for t in trials
            ]
            best = float(trials[int(np.argmin(risks))])
            trials = d + 1 + np.ceil((best - d - 1) * np.array([0.7, 0.85, 1.0, 1.2, 1.45]))
        m = best
    result = finished(m, at(m, False))
    if not float(result.profile(epsilon)) <= delta:
        raise CalibrationError("The spectral calibration did not settle. Please report this.")
    return result
