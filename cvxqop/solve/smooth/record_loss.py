"""What a sum over records asks of the loss of one record."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

__all__ = ["Part", "RecordLoss", "Records"]

Array = npt.NDArray[np.float64]


class RecordLoss(Protocol):
    """A convex ψ(t) of k numbers t = Θ'a a record; row i of C holds what else it depends on.

    Methods take a block: rows A (b, p), t as T (b, k), and C (b, ·).
    """

    @property
    def shifts(self) -> int:
        """J, the number of leading columns of C that are added to t."""

    @property
    def curvature(self) -> float:
        """κ ≥ λ_max(∇²ψ) over all records."""

    @property
    def rank(self) -> int:
        """Rank of ∇²ψ, at most."""

    @property
    def quadratic(self) -> bool:
        """Whether every ∇²ψ is constant."""

    @property
    def roundings(self) -> float:
        """Units of rounding of ∇ψ that are not in proportion to ∇ψ or t."""

    def evaluate(self, T: Array, C: Array) -> tuple[Array, Array]:
        """ψ (b,), up to a constant of the record, and ∇ψ (b, k)."""

    def hessian(self, A: Any, T: Array, C: Array, reach: Array | None = None) -> Any:
        """Σ ∇²ψ ⊗ aa' (kp, kp), output by output; with ``reach`` (b,) a matrix below it while each
        t moves by at most that."""

    def root(self, A: Any, T: Array, C: Array) -> Any:
        """B (·, kp) with B'B = `hessian`."""


class Records(Protocol):
    """Records that are read by nobody but ``sum``."""

    @property
    def n(self) -> int:
        """Number of records."""

    @property
    def remote(self) -> bool:
        """Whether they lie with workers, so that a pass over them is dear."""

    def sums(self, requests: Any) -> list[tuple[Any, ...]]:
        """`sum` of several (kernel, args, fine, chosen), in one pass where a pass is dear."""

    def sum(self, kernel: Any, *args: Any, **options: Any) -> tuple[Any, ...]:
        """Σ over blocks of kernel(A, C, *args); ``fine`` for little rounding, ``chosen`` ranges,
        ``combine`` in the place of addition."""


class Part(Protocol):
    """Σ_i ψ_i(Θ'a_i) over records, Θ = θ[layout]."""

    @property
    def records(self) -> Records:
        """a_i (p,), and the numbers of ψ_i."""

    @property
    def loss(self) -> RecordLoss:
        """ψ."""

    @property
    def layout(self) -> npt.NDArray[np.intp]:
        """Where Θ (p, k) stands in θ; an entry of θ occurs once at most."""

    @property
    def place(self) -> npt.NDArray[np.intp]:
        """Those entries, output by output."""

    def spread_rows(self, rows: Any) -> Any:
        """(·, D) from rows in Θ (·, kp)."""

    def embedded(self, block: Any) -> Array:
        """(D, D) from a Hessian in Θ, or from that of one output where all have the same."""

    def quadratic_form(self, anchor: Array) -> tuple[Any, Array]:
        """Of quadratic ψ: such a Hessian, and the gradient (D,) at the anchor."""
