"""Constants of a loss that is not recognised, declared by the user."""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass
from typing import Any

import numpy as np

from cvxqop.errors import OptionError

__all__ = ["Declared"]

_SMALLEST, _LARGEST = 1e-100, 1e100


@dataclass(frozen=True)
class Declared:
    """Bounds on a private loss that is convex and smooth, but not of a form that is recognised.

    The objective is Σ_i ℓ(θ; z_i) + r(θ), and ℓ(·; z) is the sum of *all* private terms of one
    record. Each bound must hold for every record z that could occur, not only for the data at
    hand, and for every θ in C and on the segments between C and the anchor θ0 (if these have no
    interior, as where C holds equations, and the loss has kinks in its slope: within some distance
    of them). Nothing is clipped: the privacy guarantee rests on these numbers.

    Parameters
    ----------
    smoothness : float
        L > 0 with ‖∇²ℓ(θ; z)‖₂ ≤ L.
    hessian_rank : int, optional
        ρ ≥ rank ∇²ℓ(θ; z). None is the dimension D of θ.
    trace : float, optional
        T > 0 with tr ∇²ℓ(θ; z) ≤ T. None is ρL.
    anchor_gradient : float, optional
        G0 ≥ 0 with ‖∇ℓ(θ0; z)‖₂ ≤ G0. None takes ``gradient``; one of both is needed. 0 says that
        θ0 minimises the loss of every possible record.
    gradient : float, optional
        G ≥ 0 with ‖∇ℓ(θ; z)‖₂ ≤ G at every such θ. Only the linear mechanism needs it.
    quadratic : bool
        Whether ℓ is quadratic in θ. The perturbed loss is then private by itself.

    Raises
    ------
    OptionError
        If a bound has a wrong type, is not finite or out of range, or none of the gradients is
        bounded.

    Notes
    -----
    The constants of Theorem 6 and, with ``gradient``, of Theorem 9. With a label k out of K classes
    and ‖x‖ ≤ 1 the loss log Σ_j exp(x'θ_j) − x'θ_k has L = ½, T = 1 − 1/K, ρ = K − 1 and G = √2.

    Examples
    --------
    >>> Declared(smoothness=0.5, hessian_rank=2, trace=2 / 3, gradient=2**0.5).anchor_bound
    1.4142135623730951
    """

    smoothness: float
    hessian_rank: int | None = None
    trace: float | None = None
    anchor_gradient: float | None = None
    gradient: float | None = None
    quadratic: bool = False

    def __post_init__(self) -> None:
        for name, positive in (
            ("smoothness", True),
            ("trace", True),
            ("anchor_gradient", False),
            ("gradient", False),
        ):
            value = getattr(self, name)
            if value is not None or name == "smoothness":
                object.__setattr__(self, name, _number(name, value, positive))
        rank = self.hessian_rank
        if rank is not None:
            if isinstance(rank, bool) or not isinstance(rank, int | np.integer) or rank < 1:
                raise OptionError(
                    f"Declared: hessian_rank must be an int ≥ 1 or None, not {rank!r}."
                )
            object.__setattr__(self, "hessian_rank", int(rank))
        if not isinstance(self.quadratic, bool):
            raise OptionError("Declared: quadratic must be True or False.")
        if self.anchor_gradient is None and self.gradient is None:
            raise OptionError(
                "Declared: state anchor_gradient=…, a bound on the gradient of one record at the "
                "anchor, or gradient=…, one over the whole constraint set. anchor_gradient=0 says "
                "that the anchor minimises the loss of every record that could occur."
            )

    @property
    def anchor_bound(self) -> float:
        """G0: the smaller of the bounds at the anchor."""
        known = [g for g in (self.anchor_gradient, self.gradient) if g is not None]
        return min(known)

    def rank(self, dimension: int) -> int:
        """ρ, at most D.

        Raises
        ------
        OptionError
            If a rank above D was declared.
        """
        if self.hessian_rank is None:
            return dimension
        if self.hessian_rank > dimension:
            raise OptionError(
                f"Declared: hessian_rank = {self.hessian_rank} exceeds the dimension "
                f"{dimension} of θ."
            )
        return self.hessian_rank

    def trace_bound(self, dimension: int) -> float:
        """T, at most ρL."""
        bound = self.rank(dimension) * self.smoothness
        return bound if self.trace is None else min(self.trace, bound)

    def lines(self, dimension: int) -> tuple[str, ...]:
        """The bounds in words."""
        texts = [
            f"‖∇²ℓ‖ ≤ {self.smoothness:g}",
            f"rank ∇²ℓ ≤ {self.rank(dimension)}",
            f"tr ∇²ℓ ≤ {self.trace_bound(dimension):g}",
            f"‖∇ℓ‖ ≤ {self.anchor_bound:g} at the anchor",
        ]
        if self.gradient is not None:
            texts.append(f"‖∇ℓ‖ ≤ {self.gradient:g} on the constraint set")
        if self.quadratic:
            texts.append("ℓ is quadratic in θ")
        return tuple(texts)


def _number(name: str, value: Any, positive: bool) -> float:
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Real):
        raise OptionError(f"Declared: {name} must be a number, not {type(value).__name__}.")
    number = float(value)
    if not math.isfinite(number):
        raise OptionError(f"Declared: {name} must be finite, not {number!r}.")
    if number < 0.0 or (positive and number == 0.0):
        least = "positive" if positive else "at least 0"
        raise OptionError(f"Declared: {name} must be {least}, not {number:g}.")
    if number > _LARGEST or 0.0 < number < _SMALLEST:
        raise OptionError(
            f"Declared: {name} must lie between {_SMALLEST:g} and {_LARGEST:g}, not {number:g}; "
            "rescale the loss."
        )
    return number
