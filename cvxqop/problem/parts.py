"""What an ERM says of itself: constants for privacy, the make-up of its rows, its words."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial, reduce
from operator import add

__all__ = ["Constants", "Product", "RowParts", "Texts"]


@dataclass(frozen=True)
class Constants:
    """What privacy needs to know of a loss: bounds over every record that could occur (theory §1).

    Attributes
    ----------
    smoothness : float
        L ≥ ‖∇²ℓ‖, of Theorems 3 to 9; R² Σ_j κ_j w_j of a row a.
    anchor_gradient : float
        G0 ≥ ‖∇ℓ(θ0)‖, of the guard; R Σ_j w_j sup_{|t| ≤ B} |φ_j'(t)| of a row a.
    quadratic : bool
        Whether ℓ is quadratic in θ.
    row_norm : float
        R, bound on ‖a‖, public part included; of several rows the largest.
    outputs : int
        k where the Hessian of a record is I_k ⊗ A with a matrix A of rank one; L is that of A.
    hessian_rank : int
        Bound ρ on the rank of the Hessian, of A where there are several outputs.
    hessian_range : int, optional
        Dimension of a subspace that holds its range at every θ.
    trace, frobenius : float, optional
        Bounds on its trace (Theorem 6) and Frobenius norm (Theorems 7 and 8), of A again; None
        stands for ρL and √ρ L.
    gradient_range : int, optional
        Dimension of a subspace that holds the gradient of a record at every θ (of one output).
    linear_rank : int, optional
        ρ for Theorem 9 where gradients need not follow the Hessian; None stands for ρ.
    cuts : int, optional
        How many gradients that were cut to a norm each add up to that of a record at most; None
        where a record is one row.
    one_row : bool
        Whether a record is one row a: its Hessian is κaa', with the same κ for any two records that
        are exchanged, and its gradient a multiple of a at every θ (Theorem 15).
    anchor_value : float, optional
        V ≥ ½κ(a'θ0 + c)², the value of a squared loss at the anchor; None for other losses.
    """

    smoothness: float
    anchor_gradient: float
    quadratic: bool
    row_norm: float = 1.0
    outputs: int = 1
    hessian_rank: int = 1
    hessian_range: int | None = None
    trace: float | None = None
    frobenius: float | None = None
    gradient_range: int | None = None
    linear_rank: int | None = None
    cuts: int | None = None
    one_row: bool = False
    anchor_value: float | None = None

    @property
    def whole(self) -> Constants:
        """The constants of the Hessian of all outputs together."""
        if self.outputs == 1:
            return self
        rank, k = self.hessian_rank * self.outputs, self.outputs
        return replace(
            self,
            outputs=1,
            hessian_rank=rank,
            hessian_range=None if self.hessian_range is None else k * self.hessian_range,
            gradient_range=rank,
            one_row=False,
            trace=None if self.trace is None else k * self.trace,
            frobenius=None if self.frobenius is None else k**0.5 * self.frobenius,
        )

    def of_person(self, rows: int | None, dimension: int) -> Constants:
        """The constants of all rows of a person, if these are the constants of one row.

        A person adds a sum of k terms, each within the bounds of one row: by the triangle
        inequality L, T, F and G0 count k-fold, and the range of a sum lies in the sum of the
        ranges. A mean is a sum with weights that add up to one: its bounds are those of one row,
        and its range may be everything.

        Parameters
        ----------
        rows : int or None
            k; None for the mean over any number of rows.
        dimension : int
            D.

        Examples
        --------
        >>> one = Constants(2.0, 1.0, True, gradient_range=1)
        >>> two = one.of_person(2, 5)
        >>> two.smoothness, two.anchor_gradient, two.hessian_rank, two.trace, two.frobenius
        (4.0, 2.0, 2, 4.0, 4.0)
        >>> mean = one.of_person(None, 5)
        >>> mean.smoothness, mean.hessian_rank, mean.trace, mean.frobenius
        (2.0, 5, 2.0, 2.0)
        """
        if rows == 1:
            return self
        k, side = rows or 1, dimension // self.outputs

        def held(known: int | None, most: int) -> int:
            return most if rows is None or known is None else min(k * known, most)

        return replace(
            self,
            smoothness=k * self.smoothness,
            anchor_gradient=k * self.anchor_gradient,
            hessian_rank=held(self.hessian_rank, side),
            hessian_range=held(self.hessian_range or self.hessian_rank, dimension),
            gradient_range=held(self.gradient_range, dimension),
            linear_rank=None if self.linear_rank is None else held(self.linear_rank, side),
            trace=k * self.trace_bound,
            frobenius=k * self.frobenius_bound,
            cuts=k,
            one_row=False,
            anchor_value=None if self.anchor_value is None else k * self.anchor_value,
        )

    @property
    def trace_bound(self) -> float:
        """T."""
        return self.hessian_rank * self.smoothness if self.trace is None else self.trace

    @property
    def frobenius_bound(self) -> float:
        """F."""
        bound = self.hessian_rank**0.5 * self.smoothness
        return bound if self.frobenius is None else self.frobenius

    @staticmethod
    def total(parts: Iterable[Constants]) -> Constants:
        """The constants of a sum: a record enters each of its terms, and bounds add up."""
        return reduce(partial(_together, add=add), parts)

    @staticmethod
    def apart(parts: Iterable[Constants]) -> Constants:
        """The constants of a sum of terms on variables of their own: the Hessian is a block for
        each, so that its norm is the largest of theirs, and squares of lengths add up.

        Examples
        --------
        >>> one = Constants(2.0, 3.0, True)
        >>> two = Constants.apart([one, replace(one, anchor_gradient=4.0)])
        >>> two.smoothness, two.anchor_gradient, two.trace, round(two.frobenius, 3)
        (2.0, 5.0, 4.0, 2.828)
        """
        return reduce(partial(_together, add=math.hypot, largest=max), parts)


def _together(
    one: Constants,
    other: Constants,
    add: Callable[[float, float], float],
    largest: Callable[[float, float], float] | None = None,
) -> Constants:
    """Both, with lengths put together by ``add`` and norms of matrices by ``largest``."""
    one, other = one.whole, other.whole
    ranks = [own.linear_rank or own.hessian_rank for own in (one, other)]
    return Constants(
        smoothness=(largest or add)(one.smoothness, other.smoothness),
        anchor_gradient=add(one.anchor_gradient, other.anchor_gradient),
        quadratic=one.quadratic and other.quadratic,
        row_norm=max(one.row_norm, other.row_norm),
        hessian_rank=one.hessian_rank + other.hessian_rank,
        linear_rank=sum(ranks),
        hessian_range=(one.hessian_range or one.hessian_rank)
        + (other.hessian_range or other.hessian_rank),
        gradient_range=(one.gradient_range or 0) + (other.gradient_range or 0),
        trace=one.trace_bound + other.trace_bound,
        frobenius=add(one.frobenius_bound, other.frobenius_bound),
        anchor_value=_sum(one.anchor_value, other.anchor_value),
    )


def _sum(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one + other


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
    written_norm : float, optional
        ``public_norm`` as it was written, where constant columns are taken at another size.
    completed : bool
        Whether linear terms are part of c.
    """

    private: bool
    public_norm: float
    overlap: bool
    factor: float = 1.0
    offset_factor: float = 1.0
    written_norm: float | None = None
    completed: bool = False


@dataclass(frozen=True)
class Product:
    """A bound factor · row_norm^features · offset^others on a part of a row that is linear in θ."""

    factor: float
    features: int
    others: int


@dataclass(frozen=True)
class Texts:
    """The problem in words, without an entry of an array; one term a loss, k for k outputs."""

    terms: tuple[str, ...]
    labels: tuple[str, ...]
    rows: tuple[str, ...]
    rest: tuple[str, ...]
    constraints: tuple[str, ...]
    scale: str | None = None
    squares: tuple[str, ...] = ()
    read_as: tuple[str, ...] = ()
