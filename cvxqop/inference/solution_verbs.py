"""What a private solution can be asked at no further cost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import cvxpy as cp
import numpy as np

from cvxqop.errors import OptionError, ProblemError
from cvxqop.inference.error_bars import ErrorBars, error_bars
from cvxqop.inference.fit import Fit, fit

__all__ = ["SolutionVerbs", "held"]


class Solved(Protocol):
    """A private solution, as far as inference goes."""

    @property
    def values(self) -> Mapping[cp.Variable, Any]:
        """The release."""

    @property
    def private_loss(self) -> Any:
        """What was released underneath, None where nothing was."""

    @property
    def _rest(self) -> tuple[Any, Any] | None:
        """The regulariser and the constraints of the problem, where they are held."""


class SolutionVerbs:
    """Methods of `cvxqop.PrivateSolution`."""

    def error_bars(
        self: Solved,
        *,
        level: float = 0.95,
        draws: int = 1000,
        population: bool = False,
        seed: int | np.random.Generator | None = None,
    ) -> ErrorBars:
        """How far this solution may be from the one without privacy, at no further cost.

        `PrivateLoss.error_bars` with the regulariser and the constraints of the problem. With
        stages the redraws are those of the first: the printed solution is another estimate of the
        same minimiser.

        Raises
        ------
        OptionError
            The loss was not squared, or level and draws do not fit.
        ProblemError
            A copy, or a solution from a text, does not hold the regulariser and the constraints; or
            they have changed since.

        Examples
        --------
        >>> import cvxpy as cp, cvxqop, numpy as np
        >>> rng = np.random.default_rng(0)
        >>> X, theta = rng.uniform(-0.5, 0.5, (20_000, 3)), cp.Variable(3, name="theta")
        >>> y = X @ [1.0, 0.0, -0.5]
        >>> objective = cp.Minimize(cp.sum_squares(X @ theta - y) + cp.norm1(theta))
        >>> solution = cvxqop.privatize(
        ...     cp.Problem(objective), private=[X, y], epsilon=1.0, delta=1e-6,
        ...     bounds=cvxqop.Bounds(row_norm=1.0, offset=1.0),
        ... )
        >>> solution.error_bars(draws=200).lower[theta].shape
        (3,)
        """
        loss, rest = held(self, "error_bars")
        return error_bars(
            loss,
            *rest,
            released=self.values,
            level=level,
            draws=draws,
            population=population,
            seed=seed,
        )

    def fit(
        self: Solved, *, draws: int = 200, seed: int | np.random.Generator | None = None
    ) -> Fit:
        """How good the fit on the training records is: `PrivateLoss.fit` of this problem."""
        loss, rest = held(self, "fit")
        return fit(loss, *rest, draws=draws, seed=seed)


def held(solution: Solved, what: str) -> tuple[Any, tuple[Any, Any]]:
    """The private loss, and the regulariser and the constraints.

    Raises
    ------
    OptionError
        There is no private loss.
    ProblemError
        The solution is a copy.
    """
    loss, rest = solution.private_loss, solution._rest
    if loss is None:
        raise OptionError(
            f"{what}: the loss of this release is not squared, so that no quadratic form was "
            "released whose noise could be redrawn."
        )
    if rest is None:
        raise ProblemError(
            f"{what}: this solution is a copy and does not hold the regulariser and the "
            "constraints. Write them in the variables of solution.private_loss, and use "
            f"solution.private_loss.{what}(regularizer, constraints)."
        )
    return loss, rest
