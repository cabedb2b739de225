"""The curves by which a calibrated mechanism enters a numerical composition."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from cvxqop.privacy.accounting.composition import Curve
from cvxqop.privacy.accounting.profile import gaussian_profile
from cvxqop.privacy.accounting.quadrature import chi_mean, converged
from cvxqop.privacy.mechanism import Mechanism
from cvxqop.privacy.paper.calibrated import CalibratedPaper
from cvxqop.privacy.wishart import ensemble as wishart
from cvxqop.privacy.wishart.calibrated import CalibratedWishart

__all__ = ["curves_of"]

Array = npt.NDArray[np.float64]

FEW_POINTS = 24
"""For profiles that take about a tenth of a second a point."""


def curves_of(mechanism: Mechanism, epsilon: float) -> tuple[Curve, ...]:
    """Curves whose composition bounds the mechanism's profile; ε sets where they are dense.

    One, sampled from the profile; but three for a Wishart mechanism on quadratic losses under
    replace_one: its privacy loss is max(0, Z_rem(B)) + max(0, Z_add(h)) + that of the Gaussian
    parts, independent of each other (Theorem 4), and each is quickly sampled.
    """
    s = mechanism.sensitivity
    exact = isinstance(mechanism, CalibratedPaper) and mechanism.exactly_accounted
    if not (exact or type(mechanism) is CalibratedWishart) or s.adjacency == "add_remove":
        return (Curve.of(mechanism.profile, epsilon),)
    assert isinstance(mechanism, CalibratedWishart)
    if not s.quadratic:
        return (Curve.of(mechanism.profile, epsilon, FEW_POINTS),)
    c = s.smoothness / mechanism.sigma2
    nu = mechanism.degrees_of_freedom - s.dimension + 1.0

    def added(eps: npt.ArrayLike) -> Array:
        return wishart.profile(eps, c, nu, adjacency="add_remove", direction="add")

    parts = [
        replace(Curve.of(added, epsilon), symmetric=False),
        replace(Curve.of(lambda eps: _removed(eps, c, nu), epsilon), symmetric=False),
    ]
    if mechanism.mu > 0.0:
        parts.append(Curve.of(lambda eps: gaussian_profile(eps, mechanism.mu), epsilon))
    return tuple(parts)


def _removed(epsilon: npt.ArrayLike, c: float, nu: float) -> Array:
    """E[(1 − e^{ε − Z(B)})₊] for ε ≥ 0, Z(B) = c/2 − k log(1 + c/B), B ~ χ²_{ν+1}, k = ν/2 − 1."""
    eps, k = np.asarray(epsilon, dtype=np.float64), 0.5 * nu - 1.0
    gap = (0.5 * c - eps) / k
    reached = gap > 0.0
    if not reached.any():
        return np.zeros_like(eps)
    level = eps[reached]
    kink = np.sqrt(c / np.expm1(np.minimum(gap[reached], 700.0)))[:, None]

    def weight(y: Array) -> Array:
        loss = 0.5 * c - k * np.log1p(c / np.maximum(y * y, 1e-300))
        return np.asarray(-np.expm1(np.minimum(level[:, None] - loss, 0.0)))

    full = np.full_like(level, nu + 1.0)
    result = np.zeros_like(eps)
    result[reached] = converged(lambda nodes: chi_mean(weight, full, kink, nodes))
    return result
