"""Calibration of the floored Gaussian ensemble: (s, μ, c0, s_a) by the utility bound.

The search is a grid over c0 and the guard's share with approximate accounting; the scale of the
noise and then μ are solved for with the profile of Theorem 8, so that the search may be rough.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from cvxqop.errors import CalibrationError
from cvxqop.privacy.accounting.oscillator import LARGEST, edge, log_density
from cvxqop.privacy.accounting.profile import approximate_mu, check_privacy, gaussian_mu
from cvxqop.privacy.accounting.root import increasing_root
from cvxqop.privacy.gaussian.truncated import CalibratedTruncatedGaussian, shift_profile
from cvxqop.privacy.mechanism import Sensitivity
from cvxqop.privacy.release import GaussianRelease

__all__ = ["calibrate_truncated"]

Array = npt.NDArray[np.float64]

TAIL_SHARE = 0.3
"""Part of δ set aside for p1 − p0 in the search: a choice of utility (theory §8)."""
MORE = 1.0 + 2.0**-49


def calibrate_truncated(
    epsilon: float,
    delta: float,
    sensitivity: Sensitivity,
    *,
    radius: float = 1.0,
    accuracy: float | None = None,
) -> CalibratedTruncatedGaussian:
    """The Gaussian ensemble with a floor that is (ε, δ)-differentially private.

    Parameters are those of :meth:`cvxqop.privacy.gaussian.options.Gaussian.calibrate`.

    Raises
    ------
    CalibrationError
        If a record's Hessian may have rank above one, or (ε, δ) is out of range.

    Examples
    --------
    >>> bounds = Sensitivity(
    ...     dimension=10, smoothness=0.25, anchor_gradient=0.5, quadratic=False,
    ...     adjacency="add_remove",
    ... )
    >>> mechanism = calibrate_truncated(1.0, 1e-6, bounds, accuracy=1e-6)
    >>> 0.999e-6 < float(mechanism.profile(1.0)) <= 1e-6
    True
    """
    check_privacy(epsilon, delta)
    if sensitivity.hessian_rank != 1:
        raise CalibrationError(
            "Gaussian: losses that are not quadratic need the GLM form, one row a record "
            f"(rank up to {sensitivity.hessian_rank} here); use the Wishart ensemble."
        )
    release = GaussianRelease.beside(accuracy, epsilon, delta)
    hops = sensitivity.hops
    release_mu = release.mu if release else 0.0
    floor, share = _choose(epsilon, delta, sensitivity, radius, release_mu)
    left = epsilon - hops * math.log1p(sensitivity.smoothness / floor) * (1.0 + 1e-15)
    moved = hops * sensitivity.anchor_gradient
    F = sensitivity.frobenius_bound

    def excess(log_mu: float) -> float:
        mu = math.exp(log_mu)
        linear = math.hypot(mu * math.sqrt(1.0 - share) if moved > 0.0 else 0.0, release_mu)
        value = float(shift_profile(left, mu * math.sqrt(share), linear, sensitivity.adjacency))
        return math.log(max(value, 1e-320) / ((1.0 - TAIL_SHARE) * delta))

    mu = math.exp(_below_root(excess, math.log(gaussian_mu(left, delta)) - 0.05))
    guard = moved / (mu * math.sqrt(1.0 - share)) * MORE if moved > 0.0 else 0.0
    scale = F / (mu * math.sqrt(share)) * MORE
    start = CalibratedTruncatedGaussian(
        sensitivity=sensitivity,
        scale=scale,
        ridge=0.0,
        floor=floor,
        guard_scale=guard,
        release=release,
    )

    def at(steps: float) -> CalibratedTruncatedGaussian:
        return replace(start, ridge=floor + sensitivity.smoothness + scale * steps)

    def log_excess(less: float) -> float:
        return math.log(max(float(at(-less).profile(epsilon)), 1e-320) / delta)

    d = sensitivity.dimension
    low = edge(d) if d <= LARGEST else math.sqrt(2.0 * d)
    steps = _steps(*_tail_table(d), sensitivity.smoothness / scale, TAIL_SHARE * delta, d)
    return at(-_below_root(log_excess, -steps, -low))


def _below_root(function: Callable[[float], float], start: float, high: float = math.inf) -> float:
    """A point within 1e-6 of the root of an increasing function, where it is at most zero.

    ``high`` where the function is negative there.
    """
    found, _ = increasing_root(function, start, 0.01, low=-1e6, high=high)
    root, step = (-1e6 if found is None else found - 1e-8), 1e-8
    while function(root) > 0.0:
        root, step = root - step, 2.0 * step
    return root


def _choose(
    epsilon: float, delta: float, sensitivity: Sensitivity, radius: float, release_mu: float
) -> tuple[float, float]:
    """c0 and the share of μ² that goes to the curvature, by a grid on the utility bound."""
    d, L, F = sensitivity.dimension, sensitivity.smoothness, sensitivity.frobenius_bound
    hops = sensitivity.hops
    moved = hops * sensitivity.anchor_gradient
    shares = np.linspace(0.04, 0.96, 24) if moved > 0.0 else np.ones(1)
    parts = np.concatenate([np.geomspace(0.01, 0.1, 5), np.linspace(0.15, 0.95, 17)])
    by_epsilon = 1.0 / np.expm1(np.minimum(parts * epsilon / hops, 7.0))
    floor = L * np.concatenate([by_epsilon, np.geomspace(1e-3, 1.0, 7)])
    left = epsilon - hops * np.log1p(L / floor)
    floor, left = floor[left > 0.02 * epsilon, None], left[left > 0.02 * epsilon]
    total = approximate_mu(left, max(0.5 * (1.0 - TAIL_SHARE) * delta, 1e-300))
    room = np.sqrt(np.maximum(total**2 - release_mu**2, 0.01 * total**2))[:, None]
    scales = F * math.sqrt(hops) / (room * np.sqrt(shares))
    # The steps depend on the width of an interval alone: they are looked up.
    widths = L / np.geomspace(scales.max(), scales.min(), 40)
    tail = _tail_table(d)
    steps = [_steps(*tail, float(width), TAIL_SHARE * delta, d) for width in widths]
    ridge = floor + L + scales * np.interp(np.log(L / scales), np.log(widths), steps)
    risk = 0.5 * radius**2 * ridge
    if moved > 0.0:
        guard = moved / (room * np.sqrt(1.0 - shares))
        bulk = np.sqrt(np.maximum(ridge**2 - 2.0 * d * scales**2, 0.0))
        risk = risk + guard**2 * d / (ridge + bulk)
    row, column = divmod(int(risk.argmin()), len(shares))
    return float(floor[row, 0]), float(shares[column])


@lru_cache(maxsize=16)
def _tail_table(dimension: int) -> tuple[Array, Array]:
    """log P(λ_max > t) on a grid, roughly: for the search alone."""
    if dimension > LARGEST:
        gap = np.linspace(0.0, 45.0, 2000)
        return np.sqrt(2.0 * dimension) + gap, -0.5 * gap**2
    low = edge(dimension)
    t = low + np.geomspace(0.01, 46.0, 1500) - 0.01
    log_rho = log_density(t, dimension)
    cells = np.logaddexp(log_rho[1:], log_rho[:-1]) + np.log(0.5 * np.diff(t))
    log_tail = np.logaddexp.accumulate(cells[::-1])[::-1]
    return t[:-1], np.minimum(log_tail, 0.0)


def _steps(t: Array, log_tail: Array, width: float, target: float, dimension: int) -> float:
    """Smallest t of the table with P(t < λ_max ≤ t + width) ≤ target and few rejections."""
    if dimension > LARGEST:
        met = log_tail <= math.log(target)
    else:
        above = np.interp(t + width, t, log_tail, right=-np.inf)
        with np.errstate(divide="ignore"):
            inside = log_tail + np.log(-np.expm1(np.minimum(above - log_tail, -1e-16)))
        met = (inside <= math.log(target)) & (above <= math.log(0.5))
    return float(t[int(met.argmax())] if met.any() else t[-1])
