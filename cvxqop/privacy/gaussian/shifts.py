"""How far one record moves what the Gaussian ensemble releases, and what the noise makes of it."""

from __future__ import annotations

import math
from collections.abc import Sequence

from cvxqop.privacy.gaussian.joint import free_value, joint_mu
from cvxqop.privacy.grid import ENLARGED
from cvxqop.privacy.mechanism import Sensitivity

__all__ = ["curvature_shift", "free_value_scale", "gradient_shifts", "total_mu", "value_shift"]


def curvature_shift(sensitivity: Sensitivity) -> float:
    """Δ_E: F for add_remove, √2 F for replace_one (tr AA' ≥ 0 for two Hessians), on the grid."""
    return sensitivity.frobenius_bound * math.sqrt(sensitivity.hops) * ENLARGED


def gradient_shifts(sensitivity: Sensitivity, bounds: tuple[float, ...]) -> tuple[float, ...]:
    """Δ_1, …, Δ_k: G0 and κRB'_j, twice as much for replace_one, on the grid."""
    first = sensitivity.hops * sensitivity.anchor_gradient * ENLARGED
    return (first, *(first * (bound / (sensitivity.offset or 1.0)) for bound in bounds))


def value_shift(sensitivity: Sensitivity) -> float:
    """V, by which the sum of the values at the anchor moves at most, also for replace_one."""
    return (sensitivity.anchor_value or 0.0) * ENLARGED


def total_mu(
    sensitivity: Sensitivity,
    bounds: tuple[float, ...],
    scales: Sequence[float],
    value_scale: float | None = None,
) -> float:
    """μ of the releases with the noise s, s_1, …, s_k and s_f: Theorem 7, or 15 where it applies.

    Every shift is that of a statistic on the grid: the squares of the enlarged ones add up to no
    less than the square of the shift of any pair of records that are rounded.
    """
    moved = _ratios(sensitivity, bounds, scales)
    value = value_shift(sensitivity) / value_scale if value_scale else 0.0
    if not sensitivity.joint:
        return math.hypot(*moved, value)
    return joint_mu(*_parts(moved), value=value * value)


def free_value_scale(
    sensitivity: Sensitivity, bounds: tuple[float, ...], scales: Sequence[float]
) -> float:
    """The least s_f that leaves μ as it is, where Theorem 15 applies; 0 where V is."""
    moved = value_shift(sensitivity)
    if moved == 0.0:
        return 0.0
    return moved / math.sqrt(free_value(*_parts(_ratios(sensitivity, bounds, scales))))


def _ratios(
    sensitivity: Sensitivity, bounds: tuple[float, ...], scales: Sequence[float]
) -> list[float]:
    """Δ/s of the curvature and of each gradient."""
    shifts = curvature_shift(sensitivity), *gradient_shifts(sensitivity, bounds)
    return [shift / s if shift > 0.0 else 0.0 for shift, s in zip(shifts, scales, strict=True)]


def _parts(ratios: Sequence[float]) -> tuple[float, float, float]:
    """(a, b_0, b_r) of Theorem 15 from the ratios of √2 F, 2 G0 and 2 κRB'_j."""
    curvature, first, *later = (ratio * ratio for ratio in ratios)
    return 0.5 * curvature, 0.25 * first, 0.25 * math.fsum(later)
