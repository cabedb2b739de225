"""The perturbed quadratic loss, which is private by itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import cvxpy as cp
import numpy as np
import numpy.typing as npt

from cvxqop import _cvxpy
from cvxqop.guarantee import Guarantee
from cvxqop.travel import Description, deep_copies, distinct_names, read_only

__all__ = ["PrivateLoss"]

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class PrivateLoss:
    """A perturbed quadratic loss that is itself private (Theorem 1).

    f(θ) = g̃'(θ − θ0) + ½(θ − θ0)'H̃(θ − θ0) has been released; whatever is computed from it is
    post-processing. Use `expression` in any CVXPY problem, with any convex regulariser and
    constraints, as often as wanted, at no further privacy cost.

    Deep copies and pickles hold no record and no value of a variable. They come with variables of
    their own, as CVXPY's deep copies do: write problems in `variables` of the copy.

    Attributes
    ----------
    hessian : ndarray, shape (D, D)
        H̃, positive definite, or zero if the loss is linear; read-only, as the other arrays.
    gradient : ndarray, shape (D,)
        g̃, the gradient at the anchor.
    anchor : ndarray, shape (D,)
        θ0.
    variables : tuple of Variable
        θ, stacked in this order, each flattened column by column.
    guarantee : Guarantee
        What was paid, and under which assumptions.

    Examples
    --------
    >>> import cvxpy as cp, cvxqop, numpy as np
    >>> X, y = np.eye(4)[:, :2], np.ones(4)
    >>> theta = cp.Variable(2)
    >>> loss = cvxqop.private_loss(
    ...     cp.sum_squares(X @ theta - y), private=[X, y], epsilon=1.0, delta=1e-6,
    ...     bounds=cvxqop.Bounds(row_norm=1.0, offset=1.0),
    ... )
    >>> problem = cp.Problem(cp.Minimize(loss.expression + cp.norm1(theta)), [theta >= 0])
    >>> value = problem.solve()
    """

    hessian: Array
    gradient: Array
    anchor: Array
    variables: tuple[cp.Variable, ...]
    guarantee: Guarantee

    def __post_init__(self) -> None:
        for name in ("hessian", "gradient", "anchor"):
            object.__setattr__(self, name, read_only(getattr(self, name)))

    @cached_property
    def expression(self) -> cp.Expression:
        """f as a convex CVXPY expression in the variables of the loss."""
        with _cvxpy.SHARED:
            return self._expression()

    def _expression(self) -> cp.Expression:
        theta = cp.hstack([cp.vec(variable, order="F") for variable in self.variables])
        linear = self.gradient - self.hessian @ self.anchor
        constant = 0.5 * self.anchor @ self.hessian @ self.anchor - self.gradient @ self.anchor
        affine = linear @ theta + constant
        if not np.any(self.hessian):
            return affine
        return 0.5 * cp.quad_form(theta, cp.psd_wrap(self.hessian)) + affine

    @property
    def epsilon(self) -> float:
        """ε that was paid."""
        return self.guarantee.epsilon

    @property
    def delta(self) -> float:
        """δ that was paid."""
        return self.guarantee.delta

    def profile(self, epsilon: npt.ArrayLike) -> Array:
        """δ(ε) of the release, rounded up."""
        return self.guarantee.profile(epsilon)

    def epsilon_at(self, delta: float) -> float:
        """The smallest ε at a δ, rounded up."""
        return self.guarantee.epsilon_at(delta)

    def numbers(self) -> tuple[Array, Array, Array]:
        """H̃, g̃ and θ0: all that was released."""
        return self.hessian, self.gradient, self.anchor

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> PrivateLoss:
        variables = tuple(deep_copies(self.variables, memo))
        return PrivateLoss(*self.numbers(), variables, self.guarantee)

    def __getstate__(self) -> dict[str, Any]:
        return {
            "numbers": self.numbers(),
            "variables": [Description.of(variable) for variable in self.variables],
            "guarantee": self.guarantee,
        }

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        variables = tuple(description.variable() for description in state["variables"])
        self.__init__(*state["numbers"], variables, state["guarantee"])  # type: ignore[misc]

    def __str__(self) -> str:
        names = ", ".join(distinct_names(self.variables))
        kind = "quadratic" if np.any(self.hessian) else "linear"
        return "\n".join([f"Private {kind} loss of {names}", *self.guarantee.lines()])

    __repr__ = __str__
