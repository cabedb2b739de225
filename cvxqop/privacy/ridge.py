"""What mechanisms have in common that add a ridge and release no quadratic form."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from cvxqop.privacy.grid import Grid
from cvxqop.privacy.mechanism import Sensitivity
from cvxqop.privacy.utility import predicted_risk

__all__ = ["RidgeMechanism"]

Array = npt.NDArray[np.float64]


class RidgeMechanism:
    """A mechanism whose S is positive definite with mean μI, for a solve on the records."""

    sensitivity: Sensitivity
    ridge: float
    guard_scale: float

    @property
    def mean_curvature(self) -> float:
        """μ; where draws are rejected E S exceeds μI by a hair."""
        return self.ridge

    @property
    def spread(self) -> float:
        """v: E‖(S − μI)u‖² = v‖u‖²."""
        return 0.0

    @property
    def gdp_mu(self) -> float | None:
        """None: determinants are paid for, which are not Gaussian."""
        return None

    def predicted_risk(self, radius: float, curvature: float) -> float:
        """Prediction of the risk, see :func:`cvxqop.privacy.utility.predicted_risk`."""
        return predicted_risk(
            ridge=self.ridge,
            spread=self.spread,
            guard_scale=self.guard_scale,
            dimension=self.sensitivity.dimension,
            radius=radius,
            curvature=curvature,
        )

    @property
    def grids(self) -> tuple[Grid, ...]:
        """None: no quadratic is released."""
        return ()

    @property
    def law(self) -> None:
        """None: no quadratic is released."""
        return None

    def repair(self, hessian: Array, gradients: Sequence[Array]) -> Array:
        """H̃ as it is: S is positive definite."""
        return hessian
