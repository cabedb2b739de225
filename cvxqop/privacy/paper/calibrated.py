"""The Wishart mechanism as Cortild and Cartis 2026 calibrate it (Theorem 12), for comparison.

The theorem supposes a public point θ* that minimises ℓ(·; z) for every record z that could occur,
and an anchor with ‖θ0 − θ*‖ ≤ η. Its proof for the released point, in the form that the profile of
:class:`CalibratedPaper` uses, with c = L/σ² and k = (m − d − 1)/2:

1. Let M be the exact solution perturbed around θ*, u its distance from θ*. A record z moves S by
   E = gg'/(g'u), g = ∇ℓ(θ; z): Eu = g, and 0 ⪯ E ⪯ LI of rank one, since g'u ≥ ‖g‖²/L (g vanishes
   at θ*). By Theorem 2, with both determinants of rank ρ, the privacy loss of M is at most
   ε_M = c (½ + (k + ρ + 1)/α) where λ_min(W) ≥ α + c. The paper's σ² gives ε_M ≤ ε1 and c ≤ α1/2,
   so that the event fails with probability at most δ3 + δ1(1 − δ3). A record that is added
   replaces the zero loss, which every θ minimises: add_remove needs no other constants.
2. The solution θ_pert perturbed around θ0 lies within ‖S(θ0 − θ*)‖/λ_min(S) ≤ βη/α of M's, and the
   solver's point within Δ of θ_pert. The release is a Gaussian mechanism for M's value with
   μ = 2(Δ + βη/α)/σ̃ where λ_max(W) ≤ β, and ≤ β − c on the side that is translated, which fails
   with probability δ4. Hence  δ(ε) ≤ δ1 + δ3 + δ4 + δ_G(ε − ε_M; μ),  and ε1 + ε2 gives the paper's
   total.

With η > 0 it is the released point alone that is private: the gradient at θ0 bears no noise, and
the quadratic form (H̃, g̃) of a squared loss may not be seen.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cvxqop.privacy.accounting.profile import gaussian_profile
from cvxqop.privacy.paper.profile import PaperConstants
from cvxqop.privacy.wishart.calibrated import CalibratedWishart

__all__ = ["CalibratedPaper"]

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class CalibratedPaper(CalibratedWishart):
    """A Wishart mechanism with the paper's constants; attributes of its base class, and

    Attributes
    ----------
    constants : PaperConstants
        α, α1, β, σ², σ̃.
    epsilons, deltas : tuple of float
        (ε1, ε2) and (δ1, δ2, δ3, δ4).
    tau : float
        τ = ½ασ²Δ², the gap of the objective that stands for the certified distance Δ.
    eta : float
        η, distance of the anchor from the common minimiser; 0 where records cannot have a gradient
        at the anchor.
    distance : float
        Δ + βη/α, which the release hides.

    Raises
    ------
    CalibrationError
        If the constants are those of the published code, which carry no guarantee.
    """

    constants: PaperConstants
    epsilons: tuple[float, float]
    deltas: tuple[float, float, float, float]
    tau: float
    eta: float
    distance: float

    def __post_init__(self) -> None:
        self.constants.require_usable()

    @property
    def mu(self) -> float:
        """2(Δ + βη/α)/σ̃ of the release; there is no guard."""
        return 2.0 * self.distance / self.release.scale if self.release else 0.0

    @property
    def exactly_accounted(self) -> bool:
        """Whether the exact profile of the Wishart ensemble holds too: one row a record, η = 0."""
        return self.eta == 0.0 and self.sensitivity.hessian_rank == 1

    @property
    def perturbation_epsilon(self) -> float:
        """ε_M = c (½ + (k + ρ + 1)/α), at most ε1."""
        s, alpha = self.sensitivity, self.constants.alpha
        k = 0.5 * (self.degrees_of_freedom - s.dimension - 1.0)
        return s.smoothness / self.sigma2 * (0.5 + (k + s.hessian_rank + 1.0) / alpha)

    def profile(self, epsilon: npt.ArrayLike) -> Array:
        """Bound on δ(ε), rounded up: the smallest of those that hold.

        The paper's total from ε1 + ε2 on; δ1 + δ3 + δ4 + δ_G(ε − ε_M; μ); and, where
        ``exactly_accounted``, the exact profile of these σ², m and release.
        """
        eps = np.asarray(epsilon, dtype=np.float64)
        tail = (self.deltas[0] + self.deltas[2] + self.deltas[3]) * (1.0 + 1e-15)
        left = eps - self.perturbation_epsilon * (1.0 + 1e-14)
        bound = np.minimum(1.0, tail + gaussian_profile(left, self.mu) * (1.0 + 1e-15))
        # Of its own release the paper knows no more than ε2 and δ2.
        total = math.fsum(self.deltas)
        bound = np.where(eps >= math.fsum(self.epsilons), np.minimum(bound, total), bound)
        if self.exactly_accounted:
            bound = np.minimum(bound, super().profile(eps))
        return np.asarray(bound)

    def describe(self) -> dict[str, Any]:
        """The public numbers, for plans and solutions."""
        constants = self.constants
        return {
            **super().describe(),
            "calibration": "paper",
            "alpha": constants.alpha,
            "alpha1": constants.alpha1,
            "beta": constants.beta if self.eta > 0.0 else None,
            "sigma_tilde": self.release.scale if self.release else 0.0,
            "epsilons": list(self.epsilons),
            "deltas": list(self.deltas),
            "tau": self.tau,
            "eta": self.eta,
        }

    def summary(self) -> tuple[tuple[str, str], ...]:
        """The noise in words: (heading, text) of each line."""
        constants = self.constants
        text = f"α = {constants.alpha:.6g}, α1 = {constants.alpha1:.6g}"
        if self.eta > 0.0:
            text += f", β = {constants.beta:.6g}"
        if self.release:
            text += f", σ̃ = {self.release.scale:.6g}"
        epsilons = " + ".join(f"{e:.4g}" for e in self.epsilons if e > 0.0)
        deltas = ", ".join(f"δ{i} = {x:.4g}" for i, x in enumerate(self.deltas, 1) if x > 0.0)
        lines = [
            *super().summary(),
            ("paper", f"constants of Cortild and Cartis 2026: {text}"),
            ("shares", f"ε = {epsilons}; {deltas}"),
        ]
        if self.eta > 0.0:
            lines.append(
                (
                    "anchor",
                    f"within η = {self.eta:g} of a common minimiser; the release hides "
                    f"Δ + βη/α = {self.distance:.6g}",
                )
            )
        return tuple(lines)
