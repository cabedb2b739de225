"""Utility bounds (Theorem 13), and the free parameters that minimise them.

Everything here is a function of public numbers. The searches may be as rough as they like: any
choice is private, because the scale of the noise is calibrated exactly afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import gammaincinv

from cvxqop.privacy.accounting.profile import gaussian_mu
from cvxqop.privacy.release import RELEASE_PART
from cvxqop.privacy.shares import gaussian_shares
from cvxqop.privacy.wishart.ensemble import Adjacency
from cvxqop.privacy.wishart.loss import Loss, one_sided

__all__ = [
    "WishartShares",
    "choose_wishart",
    "predicted_risk",
    "release_share",
    "wishart_excess_risk",
]

Array = npt.NDArray[np.float64]

SETTLED = 3e-3
"""Error of log δ at which the search for c stops: c is then known to a part in a thousand."""

LARGEST_NU = 1e6
"""Largest ν of :func:`cvxqop.privacy.wishart.ensemble.calibrate`."""


@dataclass(frozen=True)
class WishartShares:
    """The free parameters of the Wishart mechanism.

    Attributes
    ----------
    degrees_of_freedom : float
        m.
    guard_mu : float
        μ_a = Δ_b/s_a, the guard's part of the privacy; 0 without guard.
    guess : float or None
        An approximation to L/σ², to start the calibration from.
    """

    degrees_of_freedom: float
    guard_mu: float
    guess: float | None = None


def wishart_excess_risk(
    *, sigma2: float, degrees_of_freedom: float, guard_scale: float, dimension: int, radius: float
) -> float:
    """Bound on E J(θ_pert) − J(θ̂) when ‖θ̂ − θ0‖ ≤ radius (exact solve).

    ½ σ² m D0² + s_a² d / (2σ²(ν − 2)), ν = m − d + 1. The second term is infinite for ν ≤ 2.

    Parameters
    ----------
    sigma2, degrees_of_freedom, guard_scale : float
        σ², m and s_a.
    dimension : int
        d.
    radius : float
        D0, in units of θ.

    Examples
    --------
    >>> wishart_excess_risk(
    ...     sigma2=1.0, degrees_of_freedom=9, guard_scale=2.0, dimension=2, radius=2.0
    ... )
    18.666666666666668
    """
    nu = degrees_of_freedom - dimension + 1
    risk = 0.5 * sigma2 * degrees_of_freedom * radius**2
    if guard_scale > 0.0:
        risk += guard_scale**2 * dimension / (2.0 * sigma2 * (nu - 2.0)) if nu > 2.0 else np.inf
    return float(risk)


def predicted_risk(
    *,
    ridge: float,
    spread: float,
    guard_scale: float,
    dimension: int,
    radius: float,
    curvature: float,
) -> float:
    """E J(θ_pert) − J(θ̂) predicted for data of curvature hI; compares mechanisms, is no bound.

    For S = ρI + Δ with E Δ = 0 and E‖Δu‖² = v‖u‖², to first order in Δ,

        E J(θ_pert) − J(θ̂) ≈ ½ h (ρ² D0² + v D0² + d s_a²)/(h + ρ)².

    Parameters
    ----------
    ridge : float
        ρ ≥ 0.
    spread : float
        v: for σ²W, v = σ⁴ m (d + 1); for sN, v = s² (d + 1)/2.
    guard_scale : float
        s_a.
    dimension : int
        d.
    radius : float
        D0.
    curvature : float
        h > 0.

    Examples
    --------
    >>> predicted_risk(
    ...     ridge=2.0, spread=0.0, guard_scale=1.0, dimension=4, radius=1.0, curvature=2.0
    ... )
    0.5
    """
    size = (ridge**2 + spread) * radius**2 + dimension * guard_scale**2
    return 0.5 * curvature * size / (curvature + ridge) ** 2


def release_share(epsilon: float, delta: float, *, adjacency: Adjacency, quadratic: bool) -> float:
    """The μ that a Gaussian release may spend: a seventh of what (ε, δ) allow.

    μ² adds up, so that a release costs the other parts 1% of their noise level, and its own noise
    is 14Δ/μ for an accuracy Δ.

    Examples
    --------
    >>> round(release_share(1.0, 1e-6, adjacency="add_remove", quadratic=False), 4)
    0.0338
    """
    return gaussian_mu(*_one_hop(epsilon, delta, adjacency, quadratic)) / RELEASE_PART


def _one_hop(
    epsilon: float, delta: float, adjacency: Adjacency, quadratic: bool
) -> tuple[float, float]:
    """(ε, δ) of one hop where a replacement is accounted for by two: the first e^ε₁ is paid."""
    if adjacency == "add_remove" or quadratic:
        return epsilon, delta
    half = min(0.5 * epsilon, 10.0)
    return half, max(float(0.5 * delta * np.exp(-half)), 1e-300)


def choose_wishart(
    epsilon: float,
    delta: float,
    dimension: int,
    *,
    guard_ratio: float,
    adjacency: Adjacency = "replace_one",
    quadratic: bool = True,
    release_mu: float = 0.0,
    degrees_of_freedom: float | None = None,
    curvature: str = "ridge",
) -> WishartShares:
    """Choose m and the guard's share by the utility bound of :func:`wishart_excess_risk`.

    With c = L/σ² the bound is L D0²/2 times  m/c + γ² d c / (μ_a² (ν − 2)),  γ = Δ_b/(L D0). For
    each (ν, μ_a) of a grid, c is found from the ADD profile alone; in ``replace_one`` the REMOVE
    side, which is close to Gaussian, enters as μ² = c²/(2ν).

    With ``curvature="floor"`` the mean of S costs nothing and noise falls as ν grows, towards the
    Gaussian ensemble: ν is the largest that the accountant takes, and the guard's share is that of
    :func:`cvxqop.privacy.shares.gaussian_shares`.

    Parameters
    ----------
    epsilon, delta : float
        The privacy to be met.
    dimension : int
        d ≥ 1.
    guard_ratio : float
        γ = Δ_b/(L D0), dimensionless; 0 means that no guard is needed.
    adjacency, quadratic
        As in :func:`cvxqop.privacy.wishart.ensemble.profile`.
    release_mu : float
        The share of a Gaussian release, already fixed.
    degrees_of_freedom : float, optional
        Fixes m, so that only the guard's share is chosen.
    curvature : {"ridge", "floor"}
        What becomes of the mean of S.

    Returns
    -------
    WishartShares

    Examples
    --------
    >>> shares = choose_wishart(1.0, 1e-6, 10, guard_ratio=1.0, adjacency="add_remove")
    >>> 20 < shares.degrees_of_freedom < 200 and 0.05 < shares.guard_mu < 0.2
    True
    """
    epsilon, delta = _one_hop(epsilon, delta, adjacency, quadratic)
    total = gaussian_mu(epsilon, delta)
    room = float(np.sqrt(max(total**2 - release_mu**2, 0.01 * total**2)))
    if curvature == "floor":
        most = LARGEST_NU + dimension - 1.0 if degrees_of_freedom is None else degrees_of_freedom
        if guard_ratio == 0.0:
            return WishartShares(most, 0.0)
        moved = np.sqrt(2.0) if adjacency == "replace_one" else 1.0
        guard = gaussian_shares(moved, [guard_ratio], dimension, 1.0)[-1]
        return WishartShares(most, room * min(float(np.sqrt(guard)), 0.97))
    if degrees_of_freedom is not None and guard_ratio == 0.0:
        return WishartShares(degrees_of_freedom, 0.0)
    if degrees_of_freedom is None:
        nus = 2.0 + (dimension + 1.0) * np.geomspace(0.25, 64.0, 12)
    else:
        nus = np.array([degrees_of_freedom - dimension + 1.0])
    shares = np.linspace(0.15, 0.9, 6) if guard_ratio > 0.0 else np.zeros(1)
    single = adjacency == "replace_one" and quadratic
    near = None
    for _ in range(2):
        nu, share = (v.ravel() for v in np.meshgrid(nus, shares, indexing="ij"))
        c = _approximate_c(epsilon, delta, nu, np.hypot(share * room, release_mu), single, near)
        risk = (nu + dimension - 1.0) / c
        if guard_ratio > 0.0:
            risk += guard_ratio**2 * dimension * c / ((share * room) ** 2 * (nu - 2.0))
        best = int(np.argmin(risk))
        near = float(c[best] / np.sqrt(nu[best]))
        nus = (
            2.0 + (nu[best] - 2.0) * np.array([0.65, 0.8, 1.0, 1.25, 1.5]) if len(nus) > 1 else nus
        )
        shares = np.clip(share[best] + np.linspace(-0.1, 0.1, 5), 0.02, 0.97) * (guard_ratio > 0.0)
        shares = np.unique(shares)
    m = degrees_of_freedom
    return WishartShares(
        float(np.ceil(nu[best] + dimension - 1.0)) if m is None else m,
        float(share[best] * room),
        float(c[best]),
    )


def _approximate_c(
    epsilon: float, delta: float, nu: Array, mu: Array, replace: bool, near: float | None = None
) -> Array:
    """c with δ(ε) ≈ δ for many (ν, μ) at once: a few secant steps on log δ against log c.

    ``near`` is c/√ν of a neighbour, to start from.
    """

    def log_excess(log_c: Array, at: Any) -> Array:
        c = np.exp(log_c)
        loss = Loss("add", True, c, nu[at], positive=False)
        together = np.hypot(mu[at], c / np.sqrt(2.0 * nu[at])) if replace else mu[at]
        value = one_sided(loss, np.full_like(c, epsilon), together, 6)
        return np.asarray(np.log(np.maximum(value, 1e-320) / delta))

    limit = np.log(2.0 * np.maximum(gammaincinv(0.5 * nu, delta), 1e-300))  # P(h ≤ c) = δ
    if near is None:
        # The Gaussian limit, and how far c was found to lie below it.
        total = gaussian_mu(epsilon, delta)
        own = np.sqrt(np.maximum(total**2 - mu**2, 1e-6 * mu**2))
        y = max(epsilon / total - 0.5 * total, 0.0) * np.sqrt(2.0 / nu)
        below = own / total * (0.2 + 0.4 * y) * y * (1.0 if replace else 1.45)
        log_c = np.log(own * np.sqrt(nu if replace else 2.0 * nu)) - below
    else:
        log_c = np.log(near * np.sqrt(nu))
    log_c = np.minimum(log_c, limit - 0.1)
    at = np.arange(len(nu))
    value = log_excess(log_c, at)
    step = np.where(value > 0.0, -0.05, 0.05)
    step = np.minimum(step, limit - 0.01 - log_c)
    for _ in range(6):
        moved = step[at]
        after = log_excess(log_c[at] + moved, at)
        slope = np.maximum((after - value[at]) / moved, 1.0)
        log_c[at], value[at] = log_c[at] + moved, after
        moved = np.minimum(np.clip(-after / slope, -1.0, 0.5), limit[at] - log_c[at])
        step[at] = np.where(np.abs(moved) < 1e-4, -1e-4, moved)
        at = np.flatnonzero(np.abs(value) > SETTLED)
        if not at.size:
            break
    # What has not settled is made unattractive.
    return np.asarray(np.exp(log_c - np.maximum(value, 0.0)))
