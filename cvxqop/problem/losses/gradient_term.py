"""A private loss that is linear in θ: a record has a gradient, and no curvature."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from cvxqop.errors import ProblemError
from cvxqop.problem.bounds import Bounds
from cvxqop.problem.losses.margin_term import MarginTerm
from cvxqop.problem.parts import Constants, Product

__all__ = ["GradientTerm"]

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class GradientTerm(MarginTerm):
    """Σ_i a_i'θ, with ‖a_i‖ bounded by products of bounds on the listed arrays.

    Attributes
    ----------
    products : tuple of Product
        The private part of a is at most their sum.
    """

    products: tuple[Product, ...] = ()

    cuts_slopes = False
    cuts_arguments = False

    def row_norm(self, bounds: Bounds) -> float:
        """R = Σ s row_norm^p offset^q, and the public part beside it.

        Raises
        ------
        ProblemError
            If a product needs ``bounds.offset`` and there is none.
        """
        if bounds.offset is None and any(one.others for one in self.products):
            raise ProblemError(
                "Bounds(offset=…) is missing: a linear term has private numbers beside its "
                "features, as y in sum(multiply(y, X @ w)). State a public bound on them; "
                "records beyond it are clipped."
            )
        own = sum(
            one.factor * bounds.row_norm**one.features * (bounds.offset or 0.0) ** one.others
            for one in self.products
        )
        public = self.row_parts.public_norm
        return own + public if self.row_parts.overlap else float(np.hypot(own, public))

    def offset(self, bounds: Bounds) -> float | None:
        """None: no argument is bounded."""
        return None

    def constants(
        self, bounds: Bounds, anchor: Array | None = None, offset: float | None = None
    ) -> Constants:
        """L = 0 and G0 = R, everywhere."""
        found = super().constants(bounds, anchor, offset)
        return replace(found, hessian_rank=0, linear_rank=1, one_row=False)

    def promise(self, offset: float | None, moved: bool) -> str:
        """No argument is cut."""
        return ""

    def _bound(self, bounds: Bounds, anchor: Array, offset: float | None) -> float | None:
        """None: the gradient is the same at every argument."""
        return None
