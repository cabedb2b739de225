"""Wishart perturbation of losses that are not of GLM form: the spectral bound (Theorem 6).

With k = (m − d − 1)/2, t = T/σ² and α = λ − L/σ² > 0 for a level λ that λ_min(W) exceeds but for a
probability δ_λ, the privacy loss of the curvature is at most

    quadratic losses   add (k/α − ½)₊ t        remove t/2          replace t max(½, k/α)
    other losses       add ((k+1)/α − ½)₊ t    remove t (½ + 1/α)  replace t (max(½, k/α) + 2/α)

so that δ(ε) ≤ min over λ of P(λ_min(W) < λ) + δ_G(ε − that; μ), μ that of guard and release.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cvxqop.errors import CalibrationError
from cvxqop.privacy.accounting.profile import check_privacy, gaussian_mu, gaussian_profile
from cvxqop.privacy.accounting.smallest_eigenvalue import (
    smallest_eigenvalue_quantile,
    smallest_eigenvalue_table,
)
from cvxqop.privacy.wishart.ensemble import Adjacency

__all__ = ["SpectralShares", "calibrate", "profile", "spectral_epsilon"]

Array = npt.NDArray[np.float64]

UP = 1.0 + 1e-12


def spectral_epsilon(
    alpha: float, k: float, t: float, *, adjacency: Adjacency, quadratic: bool
) -> float:
    """Bound on the privacy loss of the curvature, given λ_min(W) ≥ α + L/σ².

    Parameters
    ----------
    alpha : float
        α; the bound is ∞ unless it is positive.
    k : float
        (m − d − 1)/2 ≥ 0.
    t : float
        T/σ².
    adjacency, quadratic
        Which of the six formulas.

    Examples
    --------
    >>> spectral_epsilon(2.0, 3.0, 0.5, adjacency="replace_one", quadratic=False)
    1.25
    """
    if alpha <= 0.0:
        return math.inf
    j = 0.0 if quadratic else 1.0
    if adjacency == "replace_one":
        return t * (max(0.5, k / alpha) + 2.0 * j / alpha)
    return t * max((k + j) / alpha - 0.5, 0.5 + j / alpha)


def profile(
    epsilon: npt.ArrayLike,
    *,
    smoothness_ratio: float,
    trace_ratio: float,
    dimension: int,
    degrees_of_freedom: float,
    adjacency: Adjacency = "replace_one",
    quadratic: bool = False,
    mu: float = 0.0,
    level: float | None = None,
) -> Array:
    """Bound on δ(ε) by the smallest eigenvalue.

    Parameters
    ----------
    epsilon : array_like of float
        Any real numbers.
    smoothness_ratio, trace_ratio : float
        L/σ² and T/σ².
    dimension, degrees_of_freedom
        d and m > d + 1.
    adjacency, quadratic
        What neighbours are, and whether the loss is quadratic.
    mu : float
        Guard and release together.
    level : float, optional
        One δ_λ; None takes the best of a grid, each of which is valid.

    Returns
    -------
    ndarray
        Shaped as ``epsilon``, rounded up.

    Examples
    --------
    >>> setting = dict(trace_ratio=0.2, dimension=100, degrees_of_freedom=200)
    >>> float(profile(2.0, smoothness_ratio=0.1, quadratic=True, **setting)) < 1e-5
    True
    """
    eps = np.asarray(epsilon, dtype=np.float64)
    if level is None:
        levels, tails = smallest_eigenvalue_table(dimension, degrees_of_freedom)
    else:
        tails = np.array([level])
        levels = np.array([smallest_eigenvalue_quantile(level, dimension, degrees_of_freedom)])
    k = 0.5 * (degrees_of_freedom - dimension - 1.0)
    best = np.ones(eps.shape)
    for tail, least in zip(tails, levels, strict=True):
        spent = spectral_epsilon(
            least - smoothness_ratio * UP,
            k,
            trace_ratio * UP,
            adjacency=adjacency,
            quadratic=quadratic,
        )
        best = np.minimum(best, tail + gaussian_profile(eps - spent * UP, mu))
    return np.asarray(best)


@dataclass(frozen=True)
class SpectralShares:
    """σ² and μ of the guard that a calibration found, and the δ_λ it rests on."""

    sigma2: float
    guard_mu: float
    level: float


def calibrate(
    epsilon: float,
    delta: float,
    *,
    smoothness: float,
    trace: float,
    dimension: int,
    degrees_of_freedom: float,
    adjacency: Adjacency = "replace_one",
    quadratic: bool = False,
    guard_ratio: float = 0.0,
    release_mu: float = 0.0,
    edelman: bool = False,
    whole: tuple[int, float] | None = None,
) -> SpectralShares:
    """Smallest σ² by the spectral bound, at the δ_λ and the guard's share that cost least.

    Without guard and release all of δ goes to λ. With them, δ/2, and a grid of shares of ε; the
    cost is m σ² + γ² d/(μ_a² σ² (ν − 2)) in units of the radius, γ = Δ_b/D0.

    Parameters
    ----------
    epsilon, delta : float
        The privacy to be met.
    smoothness, trace : float
        L and T.
    dimension, degrees_of_freedom
        d and m > d + 1.
    adjacency, quadratic
        As in :func:`profile`.
    guard_ratio : float
        γ = Δ_b/D0; 0 means that no guard is needed.
    release_mu : float
        μ of a release, already fixed.
    edelman : bool
        λ by Edelman's bound alone: quick, for a search over m.
    whole : (int, float), optional
        d and m in the cost, where the privacy is accounted for on a part of W.

    Raises
    ------
    CalibrationError
        If (ε, δ) or m is out of range, or the release spends everything.

    Examples
    --------
    >>> shares = calibrate(
    ...     1.0, 1e-6, smoothness=1.0, trace=2.0, dimension=10, degrees_of_freedom=40
    ... )
    >>> 1.0 < shares.sigma2 < 100.0
    True
    """
    check_privacy(epsilon, delta)
    d, m = dimension, degrees_of_freedom
    if not m > d + 1:
        raise CalibrationError(f"degrees_of_freedom = {m:g} must exceed d + 1 = {d + 1}.")
    nu = m - d + 1.0
    composed = guard_ratio > 0.0 or release_mu > 0.0
    level = delta * (0.5 if composed else 1.0)
    least = smallest_eigenvalue_quantile(level, d, m, edelman=edelman)
    found: list[tuple[float, SpectralShares]] = []
    for part in np.linspace(0.1, 0.95, 35) if composed else (1.0,):
        guard_mu = 0.0
        if composed:
            room = gaussian_mu((1.0 - part) * epsilon, 0.49 * delta) ** 2 - release_mu**2
            if room < 0.0:
                continue
            guard_mu = math.sqrt(room) if guard_ratio > 0.0 else 0.0
        sigma2 = _sigma2(
            part * epsilon, least, 0.5 * (m - d - 1.0), smoothness, trace, adjacency, quadratic
        )
        side, freedom = whole or (d, m)
        cost = sigma2 * freedom
        if guard_ratio > 0.0:
            if guard_mu == 0.0:
                continue
            cost += (guard_ratio / guard_mu) ** 2 * side / (sigma2 * (nu - 2.0))
        found.append((cost, SpectralShares(sigma2, guard_mu, level)))
    if not found:
        raise CalibrationError(
            "The release alone spends the budget: take a larger epsilon or delta."
        )
    return min(found, key=lambda pair: pair[0])[1]


def _sigma2(
    epsilon: float,
    least: float,
    k: float,
    smoothness: float,
    trace: float,
    adjacency: Adjacency,
    quadratic: bool,
) -> float:
    """Smallest σ² with the spectral bound at most ε, by bisection in log σ², rounded up."""

    def fits(log_sigma2: float) -> bool:
        s = math.exp(log_sigma2)
        spent = spectral_epsilon(
            least - smoothness / s * UP, k, trace / s * UP, adjacency=adjacency, quadratic=quadratic
        )
        return spent * UP <= epsilon * (1.0 - 1e-10)

    low = math.log(smoothness / least)  # α = 0 there: never fits
    high = low + 1.0
    while not fits(high):
        high += 2.0 * (high - low)
    for _ in range(200):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if fits(middle) else (middle, high)
    return math.exp(high) * (1.0 + 1e-14)
