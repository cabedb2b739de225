"""What every mechanism shares: the bounds that it is calibrated for, its draws, its interface."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from cvxqop.errors import CalibrationError
from cvxqop.privacy.grid import Grid
from cvxqop.privacy.law import NoiseLaw
from cvxqop.privacy.noise import Noise
from cvxqop.privacy.release import GaussianRelease
from cvxqop.privacy.wishart.ensemble import Adjacency

__all__ = ["Draw", "Mechanism", "Perturbation", "RidgeDraw", "Sensitivity", "reference_curvature"]

Array = npt.NDArray[np.float64]

AMPLE = 10.0
"""Where n is private: curvature of the data over the largest ridge of the candidates."""


@dataclass(frozen=True)
class Sensitivity:
    """Bounds over every record that could occur; never computed from the data at hand.

    They hold on C and on the segments from C to the anchor: Theorem 2 asks for no more.

    Attributes
    ----------
    dimension : int
        d, the side of S: the length of θ, or of each of its columns where there are several
        outputs.
    smoothness : float
        L ≥ ‖∇²ℓ(θ; z)‖.
    anchor_gradient : float
        G0 ≥ ‖∇ℓ(θ0; z)‖ at the anchor θ0.
    quadratic : bool
        Whether ℓ is quadratic in θ.
    adjacency : {"replace_one", "add_remove"}
        What neighbouring data sets are.
    hessian_rank : int
        ρ ≥ rank ∇²ℓ. 1 means the GLM form: one row a record, a Hessian of fixed direction.
    hessian_range : int, optional
        Dimension of a subspace that holds the range of ∇²ℓ(θ; z) at every θ; it may depend on the
        record z, but not on θ. ρ for quadratic losses; None stands for d.
    gradient_range : int, optional
        Dimension of a subspace that holds ∇ℓ(θ; z) at every θ; it may depend on the record z, but
        not on θ. Only the linear mechanism asks for it. None stands for d.
    trace, frobenius : float, optional
        T ≥ tr ∇²ℓ and F ≥ ‖∇²ℓ‖_F; None stands for ρL and √ρ L.
    one_row : bool
        Whether a record is one row a: a Hessian κaa', with the same κ for any two records that are
        exchanged, and a gradient along a at every θ. Joint accounting rests on it (Theorem 15).
    anchor_value : float, optional
        V ≥ ½κr², the value of a squared loss at the anchor, r = a'θ0 + c.
    cuts : int, optional
        How many gradients that are cut to ζ each add up to that of a record at most, where a
        record has several rows; None: a record is one row.
    gradient : float, optional
        G ≥ ‖∇ℓ(θ; z)‖ at every θ of C; only the linear mechanism needs it.
    offset : float, optional
        B ≥ |a'θ0 + c|: bound on the residual of a squared loss at the anchor, which G0 = κRB
        rests on.
    anchor_error : float, optional
        η ≥ ‖θ0 − θ*‖ for a public θ* that is taken to minimise ℓ(·; z) for every z that could
        occur; only calibration "paper" rests on it. None where no such point is known.
    outputs : int
        k: θ is Θ (d, k), and the Hessian of every record is I_k ⊗ A, the same matrix A in each
        column and none between them, as for a squared loss with k targets a record. Quadratic
        losses only. The noise is I_k ⊗ S then, and L, ρ, T and F are those of A.

    Notes
    -----
    Several outputs. H = I_k ⊗ ΣA and I_k ⊗ S are functions of ΣA and S, so that everything follows
    from the pair (ΣA + S, ∇Σℓ(θ0) + a) by post-processing. A record moves ΣA by a fixed matrix E
    with the bounds of A, and the gradient by a vector b of length up to Δ_b in R^dk; S and a are
    independent. That is the pair of Theorem 1 for one output, with E in the place of E and a
    spherical guard that has more entries: the privacy loss is that of S under the translation by
    E, plus that of a, N(μ_a²/2, μ_a²), μ_a = ‖b‖/s_a, whatever the length of b. There is no
    determinant, because the loss is quadratic. Hence the accounting of one output with side d,
    exactly: A = κ aa' has rank one and F = L, where I_k ⊗ A has rank k and F = √k L.
    """

    dimension: int
    smoothness: float
    anchor_gradient: float
    quadratic: bool
    adjacency: Adjacency
    hessian_rank: int = 1
    trace: float | None = None
    frobenius: float | None = None
    gradient: float | None = None
    offset: float | None = None
    anchor_error: float | None = None
    outputs: int = 1
    hessian_range: int | None = None
    gradient_range: int | None = None
    cuts: int | None = None
    one_row: bool = False
    anchor_value: float | None = None

    def __post_init__(self) -> None:
        if self.outputs > 1 and not self.quadratic:
            raise CalibrationError("Several outputs share their noise for quadratic losses only.")

    @property
    def parameters(self) -> int:
        """D = dk, the length of θ and of the guard."""
        return self.dimension * self.outputs

    @property
    def average_curvature(self) -> float:
        """T/d: no record has more curvature, on average over directions."""
        return self.trace_bound / self.dimension

    @property
    def trace_bound(self) -> float:
        """T: the trace as given, at most ρL."""
        bound = self.hessian_rank * self.smoothness
        return bound if self.trace is None else min(self.trace, bound)

    @property
    def frobenius_bound(self) -> float:
        """F: the Frobenius norm as given, at most √ρ L and at most T."""
        bound = min(math.sqrt(self.hessian_rank) * self.smoothness, self.trace_bound)
        return bound if self.frobenius is None else min(self.frobenius, bound)

    @property
    def hops(self) -> float:
        """2 for replace_one, which removes a record and adds another, else 1."""
        return 2.0 if self.adjacency == "replace_one" else 1.0

    @property
    def joint(self) -> bool:
        """Whether Theorem 15 accounts for curvature and gradients together."""
        return self.one_row and self.quadratic and self.adjacency == "replace_one"

    @property
    def guard_sensitivity(self) -> float:
        """Δ_b: how far one record moves the gradient at the anchor (2 G0 for replace_one).

        For replace_one with a GLM loss that is not quadratic the Wishart accounting goes by two
        hops, and this is Δ_b of one hop, G0.
        """
        one_hop = self.quadratic or self.hessian_rank > 1
        return (self.hops if one_hop else 1.0) * self.anchor_gradient


class Draw(Protocol):
    """One draw of the noise: a symmetric matrix S and a linear guard a."""

    @property
    def curvature(self) -> Array:
        """S, shape (d, d), exactly symmetric."""

    @property
    def operator(self) -> Any:
        """S for products and sums: a sparse array where it is a multiple of I, else itself."""

    @property
    def factor(self) -> Array:
        """A factor of S where S is positive definite: S = factor factor'."""

    @property
    def guard(self) -> Array:
        """a, shape (D,)."""


class Mechanism(Protocol):
    """A mechanism with its noise fixed. All of its numbers are public."""

    @property
    def sensitivity(self) -> Sensitivity:
        """The bounds that it was calibrated for."""

    @property
    def release(self) -> GaussianRelease | None:
        """The release composed with it, where the solve touches records."""

    @property
    def title(self) -> str:
        """Its name."""

    @property
    def guard_scale(self) -> float:
        """s_a of the linear guard; 0 where there is none."""

    @property
    def mean_curvature(self) -> float:
        """The multiple of I that E S is: the ridge that the perturbation amounts to."""

    @property
    def ridge(self) -> float:
        """The curvature that the mechanism adds, or raises to where it adds none in the mean."""

    @property
    def gdp_mu(self) -> float | None:
        """μ where the mechanism is exactly μ-GDP, so that its releases compose exactly."""

    def profile(self, epsilon: npt.ArrayLike) -> Array:
        """δ(ε), rounded up."""

    def excess_risk_bound(self, radius: float) -> float:
        """Bound on E J(θ_pert) − J(θ̂) for ‖θ̂ − θ0‖ ≤ radius, exact solve."""

    def predicted_risk(self, radius: float, curvature: float) -> float:
        """Prediction of the same for data of curvature hI; compares mechanisms, is no bound."""

    def draw(self, noise: Noise) -> Draw:
        """One draw of (S, a) from a fresh stream."""

    def repair(self, hessian: Array, gradients: Sequence[Array]) -> Array:
        """The curvature that the solver sees, from what has been released: post-processing.

        ``hessian`` is H̃ = H + S as released, for every stage, and ``gradients`` are the g̃ of the
        stages so far, the present one last. The result is positive definite where a mechanism
        needs a repair, and H̃ itself where it does not.
        """

    @property
    def grids(self) -> tuple[Grid, ...]:
        """The public grids of H̃ and of the gradient of each stage, where they are released."""

    @property
    def law(self) -> NoiseLaw | None:
        """That of the noise on the quadratic form, where it is released."""

    def describe(self) -> dict[str, Any]:
        """The public numbers, for plans and solutions."""

    def summary(self) -> tuple[tuple[str, str], ...]:
        """The same for people: (heading, text) of each line."""


@dataclass(frozen=True)
class Perturbation:
    """One draw: S = factor factor' and the linear guard a."""

    factor: Array
    guard: Array

    @property
    def curvature(self) -> Array:
        """S, shape (d, d), exactly symmetric."""
        S = self.factor @ self.factor.T
        return np.asarray(0.5 * (S + S.T))

    @property
    def operator(self) -> Array:
        """S."""
        return self.curvature


@dataclass(frozen=True)
class RidgeDraw:
    """One draw with S = μI, which need not be formed, and the linear guard a.

    Examples
    --------
    >>> draw = RidgeDraw(2.0, 3, np.zeros(3))
    >>> (draw.operator @ np.ones(3)).tolist(), draw.operator.nnz, draw.curvature.shape
    ([2.0, 2.0, 2.0], 3, (3, 3))
    """

    ridge: float
    side: int
    guard: Array

    @property
    def curvature(self) -> Array:
        """S as an array, shape (d, d)."""
        return self.ridge * np.eye(self.side)

    @property
    def operator(self) -> Any:
        """S as a sparse array."""
        return self.ridge * sp.eye_array(self.side, format="csr")

    @property
    def factor(self) -> Array:
        """√μ I."""
        return math.sqrt(self.ridge) * np.eye(self.side)


def reference_curvature(mechanisms: Sequence[Mechanism], records: int | None) -> float:
    """h at which risks are compared: nT/D where n is public, else 10 times the largest ridge.

    With less curvature than that every mechanism returns an answer close to the anchor.
    """
    if not records:
        return AMPLE * max(mechanism.ridge for mechanism in mechanisms)
    return records * mechanisms[0].sensitivity.average_curvature
