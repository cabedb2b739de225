"""The terms that an objective is split into."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cvxqop.problem.losses.multinomial import Multinomial
from cvxqop.problem.losses.open_loss import OpenLoss
from cvxqop.problem.losses.phi.loss import PhiLoss
from cvxqop.problem.losses.scalar import ScalarLoss, logistic
from cvxqop.problem.reading.weights import Weight

__all__ = ["LinearTerm", "LossTerm", "Opened"]

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class LossTerm:
    """weight · Σ_i φ(argument_i − centre); ``written`` is the term as it stands in the objective.

    ``centre`` is a public number in the argument that is part of φ.
    """

    loss: ScalarLoss | Multinomial
    weight: float | Array
    argument: Any
    written: Any
    mean: bool
    centre: float = 0.0

    @property
    def takes_labels(self) -> bool:
        """Whether the loss is one that linear terms are labels of."""
        return self.loss is logistic or isinstance(self.loss, Multinomial | PhiLoss | OpenLoss)


@dataclass(frozen=True, eq=False)
class LinearTerm:
    """weight · Σ_i Π factors_i, linear in the variables: the label part of a logistic loss."""

    weight: float | Array
    factors: tuple[Any, ...]
    written: Any
    mean: bool


@dataclass(frozen=True, eq=False)
class Opened:
    """factor · Σ over the entries of a node that is no loss by name; ``outer`` is the part of the
    factor that stands outside the sum."""

    node: Any
    factor: Weight
    outer: Weight
    written: Any
