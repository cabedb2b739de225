"""The constants of the multinomial logistic loss log Σ_j exp t_j − y't, t = Θ'a (k,)."""

from __future__ import annotations

import math
from dataclasses import dataclass

__all__ = ["Multinomial"]


@dataclass(frozen=True)
class Multinomial:
    """log Σ_j exp t_j − y't for probability vectors y of length k ≥ 2.

    With p = softmax(t) the gradient in t is p − y and the Hessian M = diag p − pp', so that in Θ
    they are a(p − y)' and M ⊗ aa'. For every t and y:

        λ_max(M) ≤ ½:         x'Mx is the variance of x under p, at most (max x − min x)²/4, and
                              (max x − min x)² ≤ 2‖x‖². Attained at p = (½, ½, 0, …).
        tr M ≤ 1 − 1/k:       tr M = 1 − Σ p_j². Attained at the uniform p.
        ‖M‖_F ≤ ½:            with s_q = Σ p_j^q, ‖M‖_F² = s_2 − 2 s_3 + s_2², and s_2² ≤ s_1 s_3
                              (Cauchy, Schwarz), so that it is ≤ s_2 − s_2² ≤ ¼. At (½, ½, 0, …).
        rank M ≤ k − 1:       M 1 = 0, also for means of such matrices. k = 2 is the GLM form.
        ‖p − y‖ < √2,         at t = 0 ‖p − y‖ ≤ √(1 − 1/k), attained by one-hot y.

    Parameters
    ----------
    count : int
        k.

    Examples
    --------
    >>> loss = Multinomial(4)
    >>> loss.curvature, loss.trace, loss.hessian_rank, round(loss.slope_at_zero, 3)
    (0.5, 0.75, 3, 0.866)
    """

    count: int
    quadratic: bool = False
    even: bool = False

    @property
    def name(self) -> str:
        """Name for people."""
        return f"multinomial logistic, log Σ exp t − y't with {self.count} classes"

    @property
    def curvature(self) -> float:
        """κ = sup λ_max(M)."""
        return 0.5

    @property
    def trace(self) -> float:
        """sup tr M."""
        return 1.0 - 1.0 / self.count

    @property
    def frobenius(self) -> float:
        """sup ‖M‖_F."""
        return 0.5

    @property
    def hessian_rank(self) -> int:
        """max rank M."""
        return self.count - 1

    @property
    def slope(self) -> float:
        """sup ‖p − y‖."""
        return math.sqrt(2.0)

    @property
    def slope_at_zero(self) -> float:
        """sup ‖p − y‖ at t = 0."""
        return math.sqrt(1.0 - 1.0 / self.count)

    def slope_bound(self, bound: float) -> float:
        """sup ‖p − y‖ over ‖t‖ ≤ bound, for bound > 0 by sup ‖p − y‖ anywhere."""
        return self.slope_at_zero if bound == 0.0 else self.slope
