"""How good the fit on the training records is, from a release with its sum of squares."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import cvxpy as cp
import numpy as np

from cvxqop.errors import OptionError
from cvxqop.inference.released import Released, generator_of, law_of
from cvxqop.inference.risk import coupled_risk, one_stage, spread_of
from cvxqop.inference.solving import PublicRest

__all__ = ["Fit", "fit", "noise_variance"]

WIDER = 1.25
"""Standard errors are multiplied by this: at small ε they came out too small otherwise."""


@dataclass(frozen=True)
class Fit:
    """The loss without noise at the one-stage solution, against that at the anchor.

    Attributes
    ----------
    r_squared, r_squared_error : float
        R² = 1 − f(θ̂)/f(θ0) on the clipped training records, estimated, and its standard error. The
        anchor takes the part of the mean: with θ0 = 0 it is the R² about zero.
    residual_sd, residual_sd_error : float or None
        √(2 f(θ̂)/(κn)), in units of the residual, where n is public and the loss one sum of squares.
    value, value_error : float
        f(θ̂), in units of the loss.
    """

    r_squared: float
    r_squared_error: float
    value: float
    value_error: float
    residual_sd: float | None = None
    residual_sd_error: float | None = None

    def __str__(self) -> str:
        lines = [
            "Fit on the clipped training records, of the one-stage solution",
            f"  R² (against the anchor)  {self.r_squared:.3f} ± {self.r_squared_error:.3f}",
        ]
        if self.residual_sd is not None and self.residual_sd_error is not None:
            sd, error = self.residual_sd, self.residual_sd_error
            lines.append(f"  residual sd              {sd:.4g} ± {error:.2g}")
        return "\n".join([*lines, "  ± is one standard error of the noise of privacy"])

    __repr__ = __str__


def fit(
    loss: Released,
    regularizer: cp.Expression | float | None = None,
    constraints: Sequence[cp.Constraint] | None = None,
    *,
    draws: int = 200,
    seed: int | np.random.Generator | None = None,
) -> Fit:
    """See `PrivateLoss.fit`."""
    start = first_value_of(loss)
    if isinstance(draws, bool) or not isinstance(draws, int | np.integer) or draws < 2:
        raise OptionError(f"draws must be an int of at least 2, not {draws!r}.")
    rest = PublicRest.of(loss, regularizer, constraints)
    loss = loss.of_scaled(loss.scale)
    fitted = one_stage(loss)
    theta = rest.solve(fitted[0], fitted[1], loss, fitted[2], loss.first_anchor)
    risk = coupled_risk(
        loss,
        lambda H, g, least: rest.solve(H, g, loss, least, theta[0])[:, None, :],
        int(draws),
        generator_of(seed),
    )
    U = theta - loss.first_anchor
    change = float(risk.value[0])
    spread = float(spread_of(loss, U, np.zeros_like(U[0]))[0])
    own = WIDER * math.hypot(spread, math.sqrt(float(risk.simulated[0, 0])))
    noise = law_of(loss).value_scale or 0.0
    value, value_error = start + change, math.hypot(own, noise)
    r_squared = -change / start
    found = Fit(
        r_squared=r_squared,
        r_squared_error=math.hypot(own, r_squared * noise) / abs(start),
        value=value,
        value_error=value_error,
    )
    if loss.records is None or loss.squares is None:
        return found
    total = 0.5 * loss.squares * loss.records * loss.layout.shape[1]
    sd = math.sqrt(max(value, 0.0) / total)
    error = 0.5 * value_error / math.sqrt(total * max(value, value_error))
    return Fit(**{**vars(found), "residual_sd": sd, "residual_sd_error": error})


def first_value_of(loss: Released) -> float:
    """f(θ0) with its noise.

    Raises
    ------
    OptionError
        It was not released, or noise is all of it.
    """
    law = law_of(loss)
    if loss.first_value is None:
        raise OptionError(
            "The sum of squares was not released. Use perturbation=cvxqop.Gaussian("
            "sum_of_squares=True) with adjacency='replace_one', where it is free, or a share of "
            "the privacy, such as sum_of_squares=0.05."
        )
    if not loss.first_value > 2.0 * (law.value_scale or 0.0):
        raise OptionError("The released sum of squares does not exceed twice its noise.")
    return float(loss.first_value)


def noise_variance(
    loss: Released,
    regularizer: cp.Expression | float | None,
    constraints: Sequence[cp.Constraint] | None,
    generator: np.random.Generator,
) -> float:
    """κτ̂² = 2f(θ̂)/n: how much another sample moves the gradient, per unit of curvature.

    With residuals of variance τ² the gradient has the covariance κ²τ² Σ xx' = κτ² H.

    Raises
    ------
    OptionError
        n is not public, the loss is no single sum of squares, or there are several outputs.
    """
    if loss.squares is None or loss.layout.shape[1] > 1:
        raise OptionError(
            "population=True needs a loss that is one sum of squares with the same weight for each "
            "record, and one output."
        )
    if loss.records is None:
        raise OptionError(
            "population=True needs a public number of records: use adjacency='replace_one', "
            "without persons."
        )
    found = fit(loss, regularizer, constraints, seed=generator)
    return 2.0 * max(found.value, 0.0) / loss.records
