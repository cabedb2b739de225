"""The perturbed quadratic loss, which is private by itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Self

import cvxpy as cp
import numpy as np
import numpy.typing as npt

from cvxqop import _cvxpy
from cvxqop.guarantee import Guarantee
from cvxqop.inference import publishing
from cvxqop.inference.loss_verbs import LossVerbs
from cvxqop.privacy.law import NoiseLaw
from cvxqop.travel import Description, deep_copies, distinct_names, read_only

__all__ = ["PrivateLoss"]

Array = npt.NDArray[np.float64]

ARRAYS = ("hessian", "gradient", "anchor", "raw_hessian", "first_gradient", "first_anchor", "scale")


@dataclass(frozen=True, eq=False)
class PrivateLoss(LossVerbs):
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
    raw_hessian : ndarray, shape (d, d), optional
        The curvature as it was released, before its repair; of one output where several share it.
    first_gradient, first_anchor : ndarray, shape (D,)
        The gradient as it was released first, and where. They differ from ``gradient`` and
        ``anchor`` where there were several stages.
    noise : NoiseLaw, optional
        The law of the noise on ``raw_hessian`` and ``first_gradient``.
    layout : ndarray, shape (d, k)
        Which entries of θ are the columns of Θ, for k outputs.
    first_value : float, optional
        The sum of squares at ``first_anchor``, where ``Gaussian(sum_of_squares=…)`` released it.
    records : int, optional
        n, where it is public.
    squares : float, optional
        κ, where the loss is Σ ½κr² over records.
    scale : ndarray, shape (D,)
        T: ``noise`` is that of the loss as a function of T⁻¹θ (theory §1). Ones where no column is
        constant.

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
    raw_hessian: Array | None = None
    first_gradient: Array = None  # type: ignore[assignment]  # the gradient
    first_anchor: Array = None  # type: ignore[assignment]  # the anchor
    noise: NoiseLaw | None = None
    layout: npt.NDArray[np.intp] = None  # type: ignore[assignment]  # one output
    first_value: float | None = None
    records: int | None = None
    squares: float | None = None
    scale: Array = None  # type: ignore[assignment]  # ones

    def __post_init__(self) -> None:
        defaults = {
            "first_gradient": self.gradient,
            "first_anchor": self.anchor,
            "layout": np.arange(len(self.gradient))[:, None],
            "scale": np.ones(len(self.gradient)),
        }
        object.__setattr__(self, "variables", tuple(self.variables))
        for name in (*ARRAYS, "layout"):
            value = getattr(self, name)
            value = defaults.get(name) if value is None else value
            if value is not None:
                kind = np.intp if name == "layout" else np.float64
                object.__setattr__(self, name, read_only(value, kind))

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
        """H̃, g̃ and θ0, of the quadratic that is solved."""
        return self.hessian, self.gradient, self.anchor

    def of_scaled(self, T: Array | float) -> Self:
        """The same loss as a function of T⁻¹θ, T a positive diagonal (D,)."""
        if np.all(T == 1.0):
            return self
        T = np.broadcast_to(T, self.gradient.shape)
        own = T[self.layout[:, 0]]
        raw = None if self.raw_hessian is None else self.raw_hessian * np.outer(own, own)
        return replace(
            self,
            hessian=self.hessian * np.outer(T, T),
            gradient=self.gradient * T,
            anchor=self.anchor / T,
            raw_hessian=raw,
            first_gradient=self.first_gradient * T,
            first_anchor=self.first_anchor / T,
            scale=self.scale / T,
        )

    def state(self) -> dict[str, Any]:
        """All fields but the variables."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name != "variables"}

    def to_json(self) -> str:
        """The release as JSON, to be published and used elsewhere: `from_json` reads it.

        It holds the released numbers with all of their digits, the guarantee, and of each variable
        its name, shape and attributes.

        Examples
        --------
        >>> import cvxpy as cp, cvxqop, numpy as np
        >>> X, y, theta = np.ones((50, 2)), np.ones(50), cp.Variable(2, name="theta")
        >>> loss = cvxqop.private_loss(
        ...     cp.sum_squares(X @ theta - y), private=[X, y], epsilon=1.0, delta=1e-6,
        ...     bounds=cvxqop.Bounds(row_norm=2.0, offset=1.0),
        ... )
        >>> again = cvxqop.PrivateLoss.from_json(loss.to_json(), variables=[theta])
        >>> bool(np.all(again.hessian == loss.hessian)), again.variables[0] is theta
        (True, True)
        """
        described = [replace(Description.of(v), id=0) for v in self.variables]
        content = {**self.state(), "variables": described}
        return publishing.written("PrivateLoss", content, self.guarantee.to_dict())

    @classmethod
    def from_json(
        cls, text: str | bytes, variables: Sequence[cp.Variable] | None = None
    ) -> PrivateLoss:
        """The loss that `to_json` wrote; no record is needed for it.

        Parameters
        ----------
        text : str or bytes
            What `to_json` returned.
        variables : list of cvxpy.Variable, optional
            θ: of the names, order and shapes of the release. None makes new ones.

        Raises
        ------
        ProblemError
            The text is not a release of this kind, or the variables are others.
        """
        content = publishing.read("PrivateLoss", text)
        return publishing.rebuilt(
            lambda: cls(
                **{**content, "variables": publishing.matched(content["variables"], variables)}
            ).consistent()
        )

    def _arrays(self) -> list[Array | None]:
        return [getattr(self, name) for name in ARRAYS]

    def consistent(self) -> Self:
        """Itself, where all shapes fit the variables.

        Raises
        ------
        ValueError
            They do not.
        """
        D, (d, k) = sum(variable.size for variable in self.variables), self.layout.shape
        square, vector = self.hessian.shape == (D, D), (D,)
        raw = self.raw_hessian is None or self.raw_hessian.shape == (d, d)
        vectors = (self.gradient, self.anchor, self.first_gradient, self.first_anchor, self.scale)
        lengths = all(value.shape == vector for value in vectors)
        placed = d * k == D and sorted(self.layout.ravel().tolist()) == list(range(D))
        known = isinstance(self.guarantee, Guarantee) and isinstance(self.noise, NoiseLaw | None)
        known &= isinstance(self.records, int | None)
        known &= all(isinstance(x, float | None) for x in (self.first_value, self.squares))
        finite = all(value is None or np.isfinite(value).all() for value in self._arrays())
        if not (square and raw and lengths and placed and known and finite):
            raise ValueError("shapes")
        return self

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> PrivateLoss:
        return replace(self, variables=tuple(deep_copies(self.variables, memo)))

    def __getstate__(self) -> dict[str, Any]:
        return {
            **self.state(),
            "variables": [Description.of(variable) for variable in self.variables],
        }

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        variables = tuple(description.variable() for description in state["variables"])
        self.__init__(**{**state, "variables": variables})  # type: ignore[misc]

    def __str__(self) -> str:
        names = ", ".join(distinct_names(self.variables))
        kind = "quadratic" if np.any(self.hessian) else "linear"
        return "\n".join([f"Private {kind} loss of {names}", *self.guarantee.lines()])

    __repr__ = __str__
