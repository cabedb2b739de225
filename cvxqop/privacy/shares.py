"""How the Gaussian ensemble divides its privacy between curvature and gradients (theory §6).

All of it is chosen by public numbers, and whatever is chosen is private: the noise is calibrated
to the shares exactly.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from cvxqop.errors import OptionError

__all__ = ["centred_risk", "checked_shares", "gaussian_shares", "quadratic_risk", "repair_risk"]

CURVATURE_WEIGHT = 0.5
"""Part of E‖S u‖² that counts: the repair takes the rest, by raising what S has lowered.

A choice of utility (theory §8).
"""


def checked_shares(shares: Sequence[float], stages: int) -> tuple[float, ...]:
    """Shares as a caller gave them: one for S and one for each stage, positive, adding up to one.

    Raises
    ------
    OptionError
        If they do not.

    Examples
    --------
    >>> checked_shares([0.5, 0.5], 1)
    (0.5, 0.5)
    """
    try:
        values = tuple(float(share) for share in shares)
    except (TypeError, ValueError):
        values = ()
    if len(values) != stages + 1 or not all(0.0 < share < 1.0 for share in values):
        raise OptionError(
            f"Gaussian: shares must be {stages + 1} numbers between 0 and 1, for the curvature and "
            f"the gradient of each of {stages} stage(s)."
        )
    if abs(math.fsum(values) - 1.0) > 1e-9:
        raise OptionError(f"Gaussian: shares must add up to 1, not to {math.fsum(values):g}.")
    return values


def gaussian_shares(
    curvature_shift: float,
    gradient_shifts: Sequence[float],
    dimension: int,
    radius: float,
    fixed: tuple[float, ...] | None = None,
    *,
    joint: bool = False,
) -> tuple[float, ...]:
    """Fractions of μ_tot² for S and for the gradient of each stage; they add up to at most one.

    With k stages and A = (d+1) D0²/4 the share of S is Δ_E √A / (Δ_E √A + Δ_1 √(kd)): it minimises
    A s² + d s_1² under Δ_E²/s² + k Δ_1²/s_1² = μ_tot². The gradients divide the rest in proportion
    to √Δ_j, between equal parts and the parts Δ_j that would make Σ s_j² least.

    Under joint accounting (Theorem 15), with a = F²/s², b = k G0²/s_1² and ρ = b/a, the same error
    is least where ρ³ + (2 + z/4) ρ² = z, z = kd Δ_1²/(A Δ_E²). The share of S is then that of 2a in
    2a + 4b, a sum that is not attained; what is saved is taken from all of the noise alike.

    The factors are not critical: half or twice the share of S costs little accuracy.

    Parameters
    ----------
    curvature_shift : float
        Δ_E > 0.
    gradient_shifts : sequence of float
        Δ_1, …, Δ_k; zero where no guard is needed.
    dimension : int
        d.
    radius : float
        D0, the hint for ‖θ̂ − θ0‖.
    fixed : tuple of float, optional
        Shares fixed by the caller; what falls to a stage that needs no noise goes to S.
    joint : bool
        Whether they are accounted for jointly.

    Returns
    -------
    tuple of float
        Rounded so that their exact sum does not exceed one.

    Examples
    --------
    >>> [round(share, 3) for share in gaussian_shares(1.0, [1.0], 1, 2**0.5)]
    [0.5, 0.5]
    >>> [round(share, 3) for share in gaussian_shares(1.0, [1.0, 0.25], 10, 1.0)]
    [0.271, 0.486, 0.243]
    """
    first, last = gradient_shifts[0], gradient_shifts[-1]
    if fixed is not None and len(fixed) == len(gradient_shifts) + 1 and last > 0.0:
        shares = list(fixed)
    else:
        weight = CURVATURE_WEIGHT * 0.5 * (dimension + 1)
        by_curvature = curvature_shift * math.sqrt(weight) * radius
        by_gradient = first * math.sqrt(dimension * len(gradient_shifts))
        part = by_curvature / (by_curvature + by_gradient)
        part = min(max(part, 1e-9), 1.0 - 1e-9) if by_gradient > 0.0 else 1.0
        if joint:
            part = 1.0 / (1.0 + 2.0 * _joint_ratio((1.0 - part) / part))
        roots = [math.sqrt(shift) for shift in gradient_shifts]
        total = math.fsum(roots) or 1.0
        shares = [part, *((1.0 - part) * (root / total) for root in roots)]
    excess = sum(Fraction(share) for share in shares)
    if excess > 1:  # only by rounding: checked_shares allows 1e-9
        shares = [float(Fraction(share) / excess) * (1.0 - 2.0**-52) for share in shares]
    return tuple(shares)


def _joint_ratio(quotient: float) -> float:
    """The positive zero of ρ³ + (2 + z/4) ρ² − z, z = quotient², by Newton's method from above.

    It makes (C/a + D/b)(2a + 2b + b²/(2a)) least, z = 2D/C, and is below 2: the range where 4b is
    less than this is no better.

    Examples
    --------
    >>> ratio = _joint_ratio(1.0)
    >>> abs(ratio**3 + 2.25 * ratio**2 - 1.0) < 1e-12
    True
    """
    z = quotient * quotient
    ratio = 2.0 * quotient / math.sqrt(4.0 + z)
    for _ in range(8):
        slope = ratio * (3.0 * ratio + 4.0 + 0.5 * z)
        ratio -= (ratio * ratio * (ratio + 2.0 + 0.25 * z) - z) / slope if slope > 0.0 else 0.0
    return ratio


def quadratic_risk(scale: float, guard_scale: float, dimension: int, radius: float) -> float:
    """E ‖S u + a‖² at ‖u‖ = D0: (d+1) D0² s²/2 + d s_a².

    Examples
    --------
    >>> quadratic_risk(2.0, 1.0, 3, 0.5)
    5.0
    """
    return 0.5 * (dimension + 1) * (radius * scale) ** 2 + dimension * guard_scale**2


def repair_risk(
    scale: float, guard_scale: float, dimension: int, radius: float, level: float = 0.0
) -> float:
    """Bound on E J(θ_pert) − J(θ̂), ‖θ̂ − θ0‖ ≤ D0, when the curvature is repaired (Theorem 14).

    With the level t ≥ s√(2d) that eigenvalues are raised to, Y = ‖S‖/t and f(Y) = (1 + Y)(1 + 2Y)²:

        E J(θ_pert) − J(θ̂) ≤ ½ t D0² E f(Y) + E(1 + Y) d s_a²/(2t),

    and tY ≤ s√(2d) + s x with probability 1 − 2 exp(−x²/2) bounds the moments. A ``level`` below
    s√(2d) stands for it.

    Notes
    -----
    Let H be the curvature of the losses, Ĥ ⪰ tI the repaired one, M = Ĥ − H, w = θ_pert − θ̂ and
    u = θ̂ − θ0. Strong convexity of the perturbed problem and optimality of θ̂ give
    ‖w‖_Ĥ ≤ v = ‖M u + a‖_{Ĥ⁻¹} and a gap of at most v‖w‖_Ĥ − ½‖w‖²_Ĥ − ½ w'Mw. The repair only
    raises eigenvalues and by at most t + ‖S‖, so that M ⪰ −‖S‖ I and ‖M‖ ≤ t + 2‖S‖; the gap is
    then at most ½ (1 + Y) v². The guard is independent of M.

    Examples
    --------
    >>> round(repair_risk(1.0, 0.0, 10**6, 1.0) / math.sqrt(2e6), 1)   # 9 as d grows
    9.0
    """
    edge = scale * math.sqrt(2.0 * dimension)
    level = max(level, edge)
    norm = np.array([edge, scale]) / level
    return _repaired_risk(norm, level, guard_scale, dimension, radius)


def centred_risk(
    *,
    sigma2: float,
    degrees_of_freedom: float,
    edge: float,
    guard_scale: float,
    dimension: int,
    radius: float,
) -> float:
    """The bound of :func:`repair_risk` for S − σ² m I, S = σ² W, W ~ Wishart_d(m, I).

    With probability 1 − 2 exp(−x²/2) the singular values of a Gaussian matrix with m rows lie in
    √m ± (√d + x), so that ‖W − mI‖ ≤ 2√m (√d + x) + (√d + x)². Where m is not an integer, m is
    rounded up there and 1 is added: the eigenvalues of W increase with m in distribution. As m
    grows this is the bound of the Gaussian ensemble with x√2 for x.

    Examples
    --------
    >>> bound = centred_risk(   # m = 10¹⁶, s = σ²√(2m) = 1: close to the Gaussian ensemble
    ...     sigma2=1.0 / 2e16**0.5, degrees_of_freedom=1e16, edge=2e6**0.5, guard_scale=0.0,
    ...     dimension=10**6, radius=1.0,
    ... )
    >>> round(bound / repair_risk(1.0, 0.0, 10**6, 1.0), 2)
    1.0
    """
    d, m = dimension, math.ceil(degrees_of_freedom)
    shift = 1.0 if m > degrees_of_freedom else 0.0
    norm = np.array(
        [2.0 * math.sqrt(m * d) + d + shift, 2.0 * math.sqrt(m) + 2.0 * math.sqrt(d), 1.0]
    )
    return _repaired_risk(norm * (sigma2 / edge), edge, guard_scale, d, radius)


def _repaired_risk(
    norm: npt.NDArray[np.float64], edge: float, guard_scale: float, dimension: int, radius: float
) -> float:
    """The bound, given Y ≤ Σ_i norm_i x^i with probability 1 − 2 exp(−x²/2) for every x ≥ 0."""
    x0 = math.sqrt(2.0 * math.log(2.0))
    powers = [np.ones(1)]
    for _ in range(3):
        powers.append(np.convolve(powers[-1], norm))
    # E X^p ≤ x0^p + 2p ∫_{x0}^∞ x^(p−1) exp(−x²/2) dx for P(X > x) ≤ min(1, 2 exp(−x²/2)).
    tails = [math.sqrt(0.5 * math.pi) * math.erfc(x0 / math.sqrt(2.0)), 0.5]
    for q in range(2, len(powers[3])):
        tails.append(0.5 * x0 ** (q - 1) + (q - 1) * tails[q - 2])
    moments = [1.0, *(x0**p + 2.0 * p * tails[p - 1] for p in range(1, len(powers[3])))]
    Y = [math.fsum(a * b for a, b in zip(power, moments, strict=False)) for power in powers]
    by_curvature = 0.5 * edge * radius**2 * (4.0 * Y[3] + 8.0 * Y[2] + 5.0 * Y[1] + 1.0)
    return by_curvature + (1.0 + Y[1]) * dimension * guard_scale**2 / (2.0 * edge)
