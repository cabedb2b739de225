"""How far predictions of a release are expected to lie from those without privacy.

Public numbers only: bounds, the number of records, the noise of the mechanism.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from cvxqop.privacy.mechanism import Mechanism
from cvxqop.problem.erm import ERM
from cvxqop.settings import Settings

__all__ = ["Prediction", "prediction_of"]

TYPICAL = 1.0 / 3.0
"""Rows and residuals of real data, over their bounds."""
DECAY = 1.0
"""The j-th eigenvalue of the second moments of real features falls about like j^−1."""
LONGER = 1.5
"""‖θ̂ − θ0‖ over B/R, where features are correlated."""
DROWNED = 0.7
"""Part of the anchor's error from which on an answer is called noise."""
SIZES = (1_000, 10_000, 100_000)
"""Sizes that are shown where the number of records is private."""


@dataclass(frozen=True)
class Prediction:
    """The size of x'(θ − θ̂), root mean square over the records, θ̂ the answer without privacy.

    With h_j = n κ (R/3)² j^−1/Σ i^−1, the curvature of n rows at a third of their bound R whose
    second moments fall like 1/j, and the predicted risk of a mechanism at curvature h I,

        error² = (2/(κ n)) Σ_j risk(h_j)/d.

    Attributes
    ----------
    mechanism : Mechanism
        The calibrated mechanism.
    radius : float
        How far θ̂ is supposed to lie from the anchor.
    curvature : float
        κ, for x'θ in units of the target.
    unit : str
        What x'θ is in, in words.
    """

    mechanism: Mechanism
    radius: float
    curvature: float
    unit: str

    def error(self, records: int) -> float:
        """The typical error with n records, in units of x'θ.

        Examples
        --------
        >>> from cvxqop.privacy.gaussian.options import Gaussian
        >>> from cvxqop.privacy.mechanism import Sensitivity
        >>> bounds = Sensitivity(4, 1.0, 1.0, True, "add_remove")
        >>> found = Prediction(Gaussian().calibrate(1.0, 1e-6, bounds), 1.0, 1.0, "the target")
        >>> [round(found.error(n), 4) for n in (1_000, 10_000, 100_000)]
        [0.0913, 0.0105, 0.0011]
        """
        return math.sqrt(self._mean_square(records, self.mechanism.predicted_risk))

    def drowned(self, records: int) -> bool:
        """Whether the error is most of that of the anchor."""
        return self.error(records) >= DROWNED * self.of_anchor(records)

    def of_anchor(self, records: int) -> float:
        """The error of returning the anchor: what no answer should exceed."""
        return math.sqrt(self._mean_square(records, lambda radius, h: 0.5 * h * radius**2))

    def _mean_square(self, records: int, risk: Callable[[float, float], float]) -> float:
        s = self.mechanism.sensitivity
        decay = np.arange(1.0, s.dimension + 1.0) ** -DECAY
        level = records * s.average_curvature * TYPICAL**2 / decay.mean()
        total = math.fsum(risk(self.radius, float(h)) for h in level * decay)
        release = self.mechanism.release
        if release is not None:
            total += 0.5 * release.scale**2 * math.fsum(level * decay)
        return 2.0 * total / (s.dimension * self.curvature * records)

    def text(self, records: int | None) -> str:
        """In a sentence; for sizes of its own where n is private."""
        if records:
            sizes = f"± {self.error(records):.2g}"
        else:
            sizes = ", ".join(f"± {self.error(n):.2g} for {n:,} records" for n in SIZES)
        return (
            f"off by about {sizes} {self.unit} from those without privacy, typical for bounds "
            "like these"
        )


def prediction_of(erm: ERM, settings: Settings, mechanism: Mechanism) -> Prediction | None:
    """The prediction of a plan; None where a record has no single x'θ."""
    curvature = erm.loss.prediction_curvature
    if not curvature:
        return None
    unit = "(units of the target)" if erm.loss.has_offset else "(in x'θ)"
    longer = LONGER if erm.loss.has_offset else 1.0
    return Prediction(mechanism, longer * settings.distance, curvature, unit)
