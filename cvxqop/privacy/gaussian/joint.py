"""Joint accounting of an exchange of two records for the Gaussian ensemble (Theorem 15).

A record is one row x with the Hessian κxx'. The bounds √2 F on the change of the curvature and 2 G0
on that of the gradient belong to different pairs of records: orthogonal rows and parallel ones. No
pair attains both, and the noise needs to cover only what one pair can do.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

__all__ = ["free_value", "joint_mu"]

Array = npt.NDArray[np.float64]

UP = 1.0 + 2.0**-47
"""More than the roundings of a dozen positive terms add up to."""
CELLS = 512
"""The bound with the value at the anchor exceeds the supremum by at most 2·10⁻⁶ of its part."""


def joint_mu(
    curvature: float,
    first: float,
    residual: float = 0.0,
    cut: float = 0.0,
    histogram: float = 0.0,
    *,
    public: float = 0.0,
    value: float = 0.0,
) -> float:
    """μ_tot of all that is released, under replace_one, for records of one row; never too small.

    With p ≤ p' the lengths of the two rows over R and k the |cosine| between them, the squared
    shift over the noise is at most

        a (p⁴ + p'⁴ − 2p²p'²k²) + e (p² + p'² + 2pp'k) + 2n (1 + k) + 2h,

    a the curvature, e the gradients whose residuals are bounded, n those that are cut in norm,
    whose length does not depend on that of the row. It grows with p', so p' = 1; it is concave in
    k, so k = min(1, (ep + n)/(2ap²)); and in p the largest value is at p = 1 or at the first zero
    p1 of the slope for k = 1, p1 (1 − p1) = e/(2a).

    Parameters
    ----------
    curvature : float
        a = (κR²/s)².
    first : float
        b_0 = (κRB/s_1)², of the gradient at the anchor.
    residual : float
        Σ (κRB_j/s_j)² of the gradients of later stages whose *residuals* are cut to ±B_j.
    cut : float
        n = Σ (ζ_j/s_j)² of those where the *gradient* of a record is cut to norm ζ_j.
    histogram : float
        h = Σ 1/σ_j² of histograms, in each of which a record counts in one bin.
    public : float
        A lower bound on p: ‖public part of every row‖/R, where no row may be missing. 0 where
        there is none. It helps with gradients cut in norm only.
    value : float
        c = (V/s_f)² of the sum of the values at the anchor, each of them ½κr² ≤ V, in the same
        units r of the residual there; 0 where it is not released.

    Returns
    -------
    float
        μ_tot, rounded up.

    Examples
    --------
    >>> round(joint_mu(1.0, 1.0) ** 2, 6)        # 2a + 2b + b²/(2a), where the sum is 2a + 4b
    4.5
    >>> round(joint_mu(1.0, 0.0, cut=1.0) ** 2, 6)    # a + 4n: a row of length zero
    5.0
    >>> joint_mu(1.0, 1.0, value=1.499) == joint_mu(1.0, 1.0)    # free up to c = b + b²/(2a)
    True
    """
    largest = _largest(curvature, first + residual, cut, public)
    if value > 0.0:
        rest, weight = _beside_value(curvature, first, residual, cut)
        largest = max(largest, float(np.max(rest + value * weight)))
    return math.sqrt((largest + 2.0 * histogram) * UP)


def free_value(curvature: float, first: float, residual: float = 0.0, cut: float = 0.0) -> float:
    """The largest c = (V/s_f)² with which releasing Σ ½κr² at the anchor costs nothing.

    Two records that both have their largest residual at the anchor, which is the worst case for the
    gradients, have the same value there.

    Examples
    --------
    >>> round(free_value(1.0, 1.0), 4)    # b + b²/(2a)
    1.5
    """
    rest, weight = _beside_value(curvature, first, residual, cut)
    free = float(np.min((_largest(curvature, first + residual, cut) - rest) / weight))
    return max(free, 0.0) / UP


def _largest(a: float, e: float, n: float, public: float = 0.0) -> float:
    """The largest squared shift without histograms and values."""
    largest = _shift(a, e, n, 1.0)
    if 2.0 * e < a:
        largest = max(largest, _shift(a, e, n, max(_turning(e / a), public)))
    return largest


def _turning(ratio: float) -> float:
    """p1, where the slope for k = 1 is zero first; e/a ≤ ½."""
    return 0.5 * (1.0 - math.sqrt(1.0 - 2.0 * ratio))


def _shift(a: float, e: float, n: float, p: float) -> float:
    """The largest squared shift for p' = 1 and this p, over the angle between the rows."""
    across, along = 2.0 * a * p * p, e * p + n
    if along >= across:
        return a * (1.0 - p * p) ** 2 + e * (1.0 + p) ** 2 + 4.0 * n
    return a * (1.0 + p**4) + e * (1.0 + p * p) + 2.0 * n + along * (along / across)


def _beside_value(a: float, first: float, residual: float, cut: float) -> tuple[Array, Array]:
    """(A, w): with the value the largest squared shift is at most max(A + c w), and that without.

    With residuals 1 and t ≤ 1 at the anchor it is at most A(t) + c (1 − t²)², A convex and
    increasing. For t² ≥ ⅓ this is convex, so that t = 1 or t² = ⅓ is the worst. Below, (1 − t²)² is
    concave and lies under its tangents: on a cell the bound is largest at one of its ends.
    """
    t, step = np.linspace(0.0, math.sqrt(1.0 / 3.0), CELLS + 1, retstep=True)
    along = first * t + (residual + cut)
    A = first * (1.0 + t * t) + 2.0 * (residual + cut)
    with np.errstate(divide="ignore", invalid="ignore"):
        A += np.where(along <= 2.0 * a, 2.0 * a + along * (along / (2.0 * a)), 2.0 * along)
    if cut > 0.0:
        A = np.maximum(A, 4.0 * cut + _parallel(a, first, residual, t))
    room = 1.0 - t * t
    weight = np.concatenate([[1.0], (room * (room - 4.0 * t * step))[:-1]])
    return A, weight


def _parallel(a: float, first: float, residual: float, t: Array) -> Array:
    """a (1 − p²)² + b_0 (1 + tp)² + b_r (1 + p)², parallel rows, at the first zero p of its slope.

    The slope is convex in p, so that Newton's method comes to that zero from below; without a zero
    the value is that of another p, and smaller than at p = 1.
    """
    p = np.zeros_like(t)
    for _ in range(40):
        slope = 2.0 * (first * t * (1.0 + t * p) + residual * (1.0 + p) - 2.0 * a * p * (1 - p * p))
        bend = 2.0 * (first * t * t + residual - 2.0 * a * (1.0 - 3.0 * p * p))
        p = np.where(bend < 0.0, np.minimum(p - slope / np.minimum(bend, -1e-300), 1.0), p)
    return np.asarray(
        a * (1.0 - p * p) ** 2 + first * (1.0 + t * p) ** 2 + residual * (1.0 + p) ** 2
    )
