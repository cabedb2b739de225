"""How far a private solution may be from the one without privacy, from the release alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import cvxpy as cp
import numpy as np
import numpy.typing as npt

from cvxqop.errors import OptionError, ProblemError
from cvxqop.inference.fit import noise_variance
from cvxqop.inference.intervals import Intervals, checked_level, split_up
from cvxqop.inference.released import Released, generator_of, law_of, redraws
from cvxqop.inference.solving import PublicRest
from cvxqop.solve.rest.terms import NotSplittable, Stack

__all__ = ["ErrorBars", "error_bars"]

Array = npt.NDArray[np.float64]

SOLVED = 1e-3
TOLERANCE = 1e-8
"""By which ends are moved outwards, relative to the largest entry, where solvers have tolerances: a
bound that a solution lies on must not be missed by the last digits of another."""
LOOSE = 0.05
"""A coefficient is not determined where more of it lies in directions that were raised."""


@dataclass(frozen=True, eq=False, repr=False)
class ErrorBars(Intervals):
    """Intervals for the solution without privacy, coefficient by coefficient.

    They are about the minimiser of the same regulariser and constraints on the same clipped records
    without noise; with ``population`` about that on all of a population with residuals of one
    variance. Print it for a table; :meth:`plot` draws it.

    Attributes
    ----------
    released, lower, upper : mapping {variable: ndarray}
        The release, and the ends of the interval, in the shape of the variable.
    undetermined : mapping {variable: ndarray of bool}
        Where the noise exceeds the curvature of the data: read the interval as unbounded.
    share : mapping {variable: ndarray}
        The part of each coefficient in such directions, between 0 and 1, averaged over redraws.
    population : bool
        Whether the sampling of the records is included.
    level : float
        1 − α: the nominal coverage of each interval by itself. Misses come together.
    draws : ndarray, shape (B, D)
        The redrawn solutions, stacked as the variables are.
    """

    share: Mapping[cp.Variable, Array] = field(default_factory=dict)
    undetermined: Mapping[cp.Variable, npt.NDArray[np.bool_]] = field(default_factory=dict)
    population: bool = False

    @property
    def variables(self) -> tuple[cp.Variable, ...]:
        """θ, stacked in this order."""
        return tuple(self.released)

    def predict(self, X: npt.ArrayLike | cp.Expression) -> Intervals:
        """Intervals for predictions at public points, from the same redraws.

        Parameters
        ----------
        X : array (m, d), or affine cvxpy.Expression
            Public points, one a row, for one variable θ (d,) or Θ (d, k); or any expression that is
            affine in the variables, such as ``X_new @ theta + b``.

        Returns
        -------
        Intervals
            ``released``, ``lower`` and ``upper`` of shape (m,) or (m, k), under the key None.

        Raises
        ------
        OptionError
            The shape does not fit, or the expression is not affine.
        """
        if not isinstance(X, cp.Expression):
            X = self._linear(np.asarray(X, dtype=np.float64))
        try:
            affine = Stack(self.variables).affine(X)
        except NotSplittable as error:
            raise OptionError(f"predict: {error.obstacle}.") from None
        released = np.concatenate([np.ravel(self.released[v], order="F") for v in self.variables])
        A, b, shape = affine.A, affine.b, X.shape
        values = self.draws @ A.T + b
        lower, upper = self.ends(values)
        centre, low, high = (
            {None: np.reshape(x, shape, order="F")} for x in (A @ released + b, lower, upper)
        )
        return Intervals(centre, low, high, self.level, values)

    def _linear(self, X: Array) -> cp.Expression:
        theta = self.variables[0]
        fits = X.ndim in (1, 2) and theta.ndim > 0 and X.shape[-1] == theta.shape[0]
        if len(self.variables) > 1 or not fits:
            raise OptionError(
                "predict: an array of rows goes with one variable of as many rows as it has "
                "columns; pass an affine expression, such as X_new @ theta + b."
            )
        return X @ theta

    def to_pandas(self) -> Any:
        """A data frame with a row a coefficient: released, lower, upper, share, undetermined."""
        frame = super().to_pandas()
        frame["share"] = self._stacked(self.share)
        frame["undetermined"] = self._stacked(self.undetermined)
        return frame

    def _remarks(self) -> list[str]:
        loose = self._stacked(self.undetermined)
        return ["not determined" if one else "" for one in loose]

    def _notes(self) -> list[str]:
        about = "the same clipped records, not about a population"
        if self.population:
            about = (
                "a population of clipped records from which these were drawn, with residuals of "
                "one variance"
            )
        notes = [
            f"About the solution without privacy of the same problem on {about}; what clipping "
            "changes is not included. Each interval is for one coefficient, and misses come "
            "together.",
        ]
        if np.any(self._stacked(self.undetermined)):
            notes.append(
                "Not determined: more than "
                f"{LOOSE:.0%} of the coefficient lies where the noise exceeds the curvature of "
                "the data. Read its interval as unbounded."
            )
        return notes


def error_bars(
    loss: Released,
    regularizer: cp.Expression | float | None = None,
    constraints: Sequence[cp.Constraint] | None = None,
    *,
    released: Mapping[cp.Variable, Any] | None = None,
    level: float = 0.95,
    draws: int = 1000,
    population: bool = False,
    seed: int | np.random.Generator | None = None,
) -> ErrorBars:
    """Redraw the noise around the released form, solve the same problem, and take quantiles.

    H_b = H̃ − S', g_b = g̃ − a' with fresh (S', a') of the public law of the noise, eigenvalues of
    H_b raised to a twentieth of the noise edge. See `PrivateLoss.error_bars` for the arguments.
    """
    law_of(loss)
    level, draws = checked_level(level, draws)
    rest, T = PublicRest.of(loss, regularizer, constraints), loss.scale
    scaled = loss.of_scaled(T)
    theta = rest.released(scaled)
    if released is None:
        released = split_up(T * theta, loss.variables)
    elif not _same(T * theta, released, loss):
        raise ProblemError(
            "The regulariser and the constraints no longer lead to this solution: a parameter, or "
            "a bound, has changed since. Set it back, or use solution.private_loss.error_bars with "
            "the new ones."
        )
    generator, (d, k) = generator_of(seed), loss.layout.shape
    variance = noise_variance(loss, regularizer, constraints, generator) if population else 0.0
    found, raised = [], np.zeros(d)
    for forms in redraws(scaled, draws, generator, variance):
        found.append(rest.solve(forms.H, forms.g, scaled, forms.least, theta))
        raised += forms.raised
    solutions = T * np.concatenate(found)
    share = np.zeros(d * k)
    share[loss.layout] = (raised / draws)[:, None]
    return ErrorBars.of(
        loss.variables,
        released,
        solutions,
        level,
        0.0 if rest.exact else TOLERANCE * float(np.abs(solutions).max()),
        share=split_up(share, loss.variables),
        undetermined=split_up(share > LOOSE, loss.variables),
        population=bool(population),
    )


def _same(theta: Array, released: Mapping[cp.Variable, Any], loss: Released) -> bool:
    """Whether two solutions of one problem are one, but for the tolerance of a solver."""
    found = np.concatenate([np.ravel(released[v], order="F") for v in loss.variables])
    size = float(np.linalg.norm(theta - loss.anchor) + np.linalg.norm(theta))
    return bool(np.linalg.norm(theta - found) <= SOLVED * size + SOLVED**2)
