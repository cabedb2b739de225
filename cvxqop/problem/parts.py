"""What an ERM says of itself: constants for privacy, the make-up of its rows, its words."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Constants", "RowParts", "Texts"]


@dataclass(frozen=True)
class Constants:
    """What privacy needs to know of a loss: bounds over every record that could occur (theory §1).

    Attributes
    ----------
    row_norm : float
        R, bound on ‖a‖, public part included.
    smoothness : float
        L = R² Σ_j κ_j w_j ≥ ‖∇²ℓ‖, of Theorems 3 to 9.
    anchor_gradient : float
        G0 = R Σ_j w_j sup_{|t| ≤ B} |φ_j'(t)| ≥ ‖∇ℓ(θ0)‖, of the guard.
    quadratic : bool
        Whether every φ_j is quadratic.
    outputs : int
        k where the Hessian of a record is I_k ⊗ A with a matrix A of rank one; L is that of A.
    hessian_rank : int
        Bound ρ on the rank of the Hessian, of A where there are several outputs.
    hessian_range : int, optional
        Dimension of a subspace that holds its range at every θ.
    trace, frobenius : float, optional
        Bounds on its trace (Theorem 6) and Frobenius norm (Theorems 7 and 8), of A again; None
        stands for ρL and √ρ L.
    """

    row_norm: float
    smoothness: float
    anchor_gradient: float
    quadratic: bool
    outputs: int = 1
    hessian_rank: int = 1
    hessian_range: int | None = None
    trace: float | None = None
    frobenius: float | None = None


@dataclass(frozen=True)
class RowParts:
    """What the row is made of.

    Attributes
    ----------
    private : bool
        Whether some part of a comes from private data (else only the offset does).
    public_norm : float
        Largest norm of the public part over the records, labels of `glm_loss`, which are cut to
        [−1, 1], counted as public.
    overlap : bool
        Whether both parts meet on the same entries of θ.
    factor : float
        s: the private part is at most s times the norm of the features of the listed arrays.
    offset_factor : float
        The public factor around a whole argument φ(t (a'θ + c)), which bounds on c are multiplied
        with.
    """

    private: bool
    public_norm: float
    overlap: bool
    factor: float = 1.0
    offset_factor: float = 1.0


@dataclass(frozen=True)
class Texts:
    """The problem in words, without an entry of an array."""

    terms: tuple[str, ...]
    labels: tuple[str, ...]
    row: str
    rest: tuple[str, ...]
    constraints: tuple[str, ...]
    scale: str | None = None
