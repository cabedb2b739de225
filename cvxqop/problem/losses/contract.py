"""The contract of a private loss: what a record adds to the objective answers three questions.

*Constants*: what public bounds imply of every record that could occur. *Sums*: what is added up
over the records that are there, clipped. *Smooth*: what a solver minimises. Nobody else asks of
what kind a loss is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from cvxqop.problem.bounds import Bounds
from cvxqop.problem.parts import Constants

__all__ = ["PrivateTerms", "Sums"]

Array = npt.NDArray[np.float64]


class Sums(Protocol):
    """Sums over clipped records, at an anchor."""

    def check(self) -> None:
        """Read every record once, and refuse what cannot be used: before anything is charged."""

    def quadratic_form(self) -> tuple[Array, Array]:
        """Hessian and gradient (D,) at the anchor, of a quadratic loss; the side of the Hessian is
        that of S, which outputs may share."""

    def gradient(self) -> Array:
        """That gradient alone."""

    def value(self) -> float:
        """Σ ½κt² at the anchor, of squared losses."""

    def cut_gradients(self, theta: Array, cuts: Array, edges: Array) -> tuple[Array, Array]:
        """In one pass, of records with one residual: the gradient at θ with that of each record cut
        to each of the norms, (m, D), and a histogram of the norms."""

    def whole(self, S: Array) -> Array:
        """(D, D) from a matrix of the side of S."""

    def columns(self, gradient: Array) -> Array:
        """A gradient (D,) by output, (p, k), where outputs share one S."""

    def stacked(self, columns: Array) -> Array:
        """A gradient (D,) from its columns."""

    def smooth(self, finite_sum: Any, function: Any) -> Callable[[Array, Array], Any]:
        """The sum with ½(θ−θ0)'S(θ−θ0) + a'(θ−θ0), as a function of S (D, D) and a; made by one of
        the two constructors of the solver."""


class PrivateTerms(Protocol):
    """Σ_i ℓ(θ; z_i), the private part of the objective."""

    @property
    def n(self) -> int:
        """Number of records."""

    @property
    def has_offset(self) -> bool:
        """Whether a record has a target, or another number beside its rows."""

    @property
    def quadratic(self) -> bool:
        """Whether ℓ is quadratic in θ."""

    @property
    def linear(self) -> bool:
        """Whether ℓ is linear in θ: then no record has curvature."""

    @property
    def clipped(self) -> bool:
        """Whether records are clipped to bounds; else constants are believed."""

    @property
    def vanishing(self) -> bool:
        """Whether the gradient of a record can vanish, so that records may share a minimiser."""

    @property
    def cuts_arguments(self) -> bool:
        """Whether arguments at the anchor are cut to a bound."""

    @property
    def one_residual(self) -> bool:
        """Whether a record has one residual, which may be cut closer at another anchor: cut to a
        part of its bound, it has a gradient of at most that part of G0."""

    @property
    def squares(self) -> float | None:
        """κ where the loss is Σ ½κt² over records; else None."""

    @property
    def cuts_slopes(self) -> bool:
        """Whether gradients can be cut to a norm record by record."""

    @property
    def records_are_drawn(self) -> bool:
        """Whether single records can be read, as stochastic solvers do."""

    @property
    def expression(self) -> Any:
        """The loss for CVXPY, where its solvers may be handed records; else None."""

    @property
    def flat(self) -> Array | None:
        """Orthonormal directions (D, ·) along which no record has curvature."""

    @property
    def prediction_curvature(self) -> float | None:
        """κ of a record's loss in its prediction x'θ, in units of the target; None where a record
        has no single prediction."""

    def row_norm(self, bounds: Bounds) -> float:
        """R ≥ ‖a‖ of every row; infinite where there are none."""

    def features_alone(self, bounds: Bounds) -> float | None:
        """What ``row_norm`` would be without an intercept, where it looks as if it took one in."""

    def offset(self, bounds: Bounds) -> float | None:
        """B, the bound on |a'θ0 + c| that bounds make."""

    def smoothness(self, bounds: Bounds) -> float:
        """L ≥ ‖∇²ℓ‖."""

    def constants(self, bounds: Bounds, anchor: Array, offset: float | None) -> Constants:
        """All of the constants; ``offset`` is B in the place of the one that bounds make."""

    def gradient_bound(
        self,
        bounds: Bounds,
        anchor: Array,
        offset: float | None,
        distance: float,
        *,
        as_written: bool = False,
    ) -> float | None:
        """G ≥ ‖∇ℓ‖ within ``distance`` of the anchor; None where it is not known. ``as_written``
        asks only for records that meet no continuation of ℓ beyond a stated range."""

    def natural_radius(self, bounds: Bounds, anchor: Array, offset: float | None) -> float:
        """How far a minimiser is expected to lie from the anchor, from public numbers."""

    def sums(
        self,
        bounds: Bounds,
        anchor: Array,
        offset: float | None,
        nonfinite: str,
        clip: float | None,
        shared: bool,
    ) -> Sums:
        """The sums at an anchor; ``clip`` is ζ, ``shared`` says that outputs share one S."""

    def promise(self, constants: Constants, bounds: Bounds, anchored: bool, cut: str | None) -> str:
        """What is enforced on every record, or believed of it, in words; ``cut`` says what becomes
        of offsets where that is settled elsewhere."""
