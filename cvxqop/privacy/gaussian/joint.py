"""Joint accounting of an exchange of two records for the Gaussian ensemble (Theorem 15).

A record is one row x with the Hessian κxx'. The bounds √2 F on the change of the curvature and 2 G0
on that of the gradient belong to different pairs of records: orthogonal rows and parallel ones. No
pair attains both, and the noise needs to cover only what one pair can do.
"""

from __future__ import annotations

import math

__all__ = ["joint_mu"]

UP = 1.0 + 2.0**-47
"""More than the roundings of a dozen positive terms add up to."""


def joint_mu(
    curvature: float,
    first: float,
    residual: float = 0.0,
    cut: float = 0.0,
    histogram: float = 0.0,
    *,
    public: float = 0.0,
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
        A lower bound on p: ‖public part of every row‖/R. 0 where there is none.

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
    """
    a, e, n = curvature, first + residual, cut
    lengths = [1.0]
    if 2.0 * e < a:
        lengths.append(max(0.5 * (1.0 - math.sqrt(1.0 - 2.0 * e / a)), public))
    largest = max(_shift(a, e, n, p) for p in lengths)
    return math.sqrt((largest + 2.0 * histogram) * UP)


def _shift(a: float, e: float, n: float, p: float) -> float:
    """The largest squared shift for p' = 1 and this p, over the angle between the rows."""
    across, along = 2.0 * a * p * p, e * p + n
    if along >= across:
        return a * (1.0 - p * p) ** 2 + e * (1.0 + p) ** 2 + 4.0 * n
    return a * (1.0 + p**4) + e * (1.0 + p * p) + 2.0 * n + along * (along / across)
