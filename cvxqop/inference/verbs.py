"""What a private loss and a private solution can be asked at no further cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import cvxpy as cp
import numpy as np
import numpy.typing as npt

from cvxqop.errors import OptionError, ProblemError
from cvxqop.inference.error_bars import ErrorBars, error_bars
from cvxqop.inference.joint_test import p_value
from cvxqop.inference.path import Path, path
from cvxqop.inference.released import Released

__all__ = ["LossVerbs", "SolutionVerbs"]


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


class LossVerbs:
    """Methods of `cvxqop.PrivateLoss`."""

    def error_bars(
        self: Released,
        regularizer: cp.Expression | float | None = None,
        constraints: Sequence[cp.Constraint] | None = None,
        *,
        level: float = 0.95,
        draws: int = 1000,
        seed: int | np.random.Generator | None = None,
    ) -> ErrorBars:
        """How far the solution with this r and C may be from the one without privacy; free.

        For b = 1, …, B the noise is drawn anew and taken off the release, H_b = H̃ − S' and
        g_b = g̃ − a' (of the first stage), the eigenvalues of H_b are raised to a twentieth of the
        noise edge, and the same problem is solved. The ends are quantiles of these solutions. No
        record is needed, and no privacy is spent.

        Parameters
        ----------
        regularizer : cvxpy.Expression, optional
            Public convex r(θ), in the variables of the loss.
        constraints : list of constraints, optional
            Public C.
        level : float
            Nominal coverage of each interval.
        draws : int
            B. Where r and C act on each coordinate by itself all are solved at once; where they
            split into known proximal operators one after another; else by a solver of CVXPY.
        seed : int or numpy.random.Generator, optional
            For draws that can be repeated. It is no part of the release: redraws are public.

        Returns
        -------
        ErrorBars
            ``lower``, ``upper``, ``undetermined`` by variable; a table when printed.

        Raises
        ------
        OptionError
            r or C is not convex, or level and draws do not fit.

        Examples
        --------
        >>> import cvxpy as cp, cvxqop, numpy as np
        >>> rng = np.random.default_rng(0)
        >>> X, theta = rng.uniform(-0.5, 0.5, (20_000, 3)), cp.Variable(3, name="theta")
        >>> y = X @ [1.0, 0.0, -0.5]
        >>> loss = cvxqop.private_loss(
        ...     cp.sum_squares(X @ theta - y), private=[X, y], epsilon=1.0, delta=1e-6,
        ...     bounds=cvxqop.Bounds(row_norm=1.0, offset=1.0),
        ... )
        >>> bars = loss.error_bars(cp.norm1(theta), draws=200)
        >>> bars.lower[theta].shape, bool(np.any(bars.undetermined[theta]))
        ((3,), False)
        """
        return error_bars(self, regularizer, constraints, level=level, draws=draws, seed=seed)

    def p_value(
        self: Released,
        theta: Any,
        regularizer: cp.Expression | float | None = None,
        constraints: Sequence[cp.Constraint] | None = None,
        *,
        seed: int | np.random.Generator | None = None,
    ) -> float:
        """A test of whether θ is the solution without privacy of f + r over C; exact, and free.

        The θ with a p-value of at least α are a joint 1 − α confidence region for the whole vector,
        at every ε: where f + r has its minimum over C without noise, the released form differs from
        what stationarity asks for by noise of a known law (:mod:`cvxqop.inference.joint_test`).

        Parameters
        ----------
        theta : array, or mapping {variable: array}
            A public value of the variables.
        regularizer, constraints
            As in `error_bars`.
        seed : int or numpy.random.Generator, optional
            For the Wishart ensemble, whose law is simulated.

        Returns
        -------
        float
            P(T ≥ T(θ)), 0 where θ violates a constraint.

        Examples
        --------
        >>> import cvxpy as cp, cvxqop, numpy as np
        >>> rng = np.random.default_rng(0)
        >>> X, theta = rng.uniform(-0.5, 0.5, (20_000, 3)), cp.Variable(3, name="theta")
        >>> y = X @ [0.0, 0.0, -0.5]
        >>> loss = cvxqop.private_loss(
        ...     cp.sum_squares(X @ theta - y), private=[X, y], epsilon=1.0, delta=1e-6, seed=3,
        ...     bounds=cvxqop.Bounds(row_norm=1.0, offset=1.0),
        ... )
        >>> loss.p_value([0.0, 0.0, -0.5]) > 0.001, loss.p_value([0.0, 0.0, 0.5]) < 0.001
        (True, True)
        """
        return p_value(self, theta, regularizer, constraints, seed=seed)

    def path(
        self: Released,
        penalty: cp.Expression,
        lam: cp.Parameter,
        values: npt.ArrayLike,
        constraints: Sequence[cp.Constraint] | None = None,
        *,
        draws: int = 50,
        seed: int | np.random.Generator | None = None,
    ) -> Path:
        """Solutions for every λ, an estimate of the training loss of each, and a guarded choice.

        The estimate has no bias from the noise (:mod:`cvxqop.inference.risk`); its standard error
        is that of the noise, √(σ²‖u − u'‖² + ¼s²‖uu' − u'u''‖²), and of the simulation. The choice
        is argmin over λ of the estimate plus two standard errors, both against the smallest λ. The
        repair of the curvature already regularises: the path moves only where the improvement
        exceeds twice the noise of its estimate.

        Parameters
        ----------
        penalty : cvxpy.Expression
            Public convex r(θ) with the parameter in it, such as ``lam * cp.norm1(theta)``.
        lam : cvxpy.Parameter
            λ, a scalar. Its value is left as it is.
        values : array
            The λ ≥ 0 to be tried.
        constraints : list of constraints, optional
            Public C.
        draws : int
            Of the simulation.
        seed : int or numpy.random.Generator, optional
            For draws that can be repeated.

        Returns
        -------
        Path
            A table when printed; ``chosen``, ``solutions``, :meth:`Path.plot`.

        Raises
        ------
        OptionError
            The noise is not Gaussian, or an argument does not fit.

        Examples
        --------
        >>> import cvxpy as cp, cvxqop, numpy as np
        >>> rng = np.random.default_rng(0)
        >>> X, theta = rng.uniform(-0.5, 0.5, (20_000, 3)), cp.Variable(3, name="theta")
        >>> y = X @ [1.0, 0.0, 0.0]
        >>> loss = cvxqop.private_loss(
        ...     cp.sum_squares(X @ theta - y), private=[X, y], epsilon=4.0, delta=1e-6,
        ...     bounds=cvxqop.Bounds(row_norm=1.0, offset=1.0), perturbation=cvxqop.Gaussian(),
        ... )
        >>> lam = cp.Parameter(nonneg=True)
        >>> path = loss.path(lam * cp.norm1(theta), lam, [0.0, 10.0, 100.0, 1000.0])
        >>> path.solutions[theta].shape, path.chosen < 1000.0
        ((4, 3), True)
        """
        return path(self, penalty, lam, values, constraints, draws=draws, seed=seed)


class SolutionVerbs:
    """Methods of `cvxqop.PrivateSolution`."""

    def error_bars(
        self: Solved,
        *,
        level: float = 0.95,
        draws: int = 1000,
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
        loss, rest = self.private_loss, self._rest
        if loss is None:
            raise OptionError(
                "error_bars: the loss of this release is not squared, so that no quadratic form "
                "was released whose noise could be redrawn."
            )
        if rest is None:
            raise ProblemError(
                "error_bars: this solution is a copy and does not hold the regulariser and the "
                "constraints. Write them in the variables of solution.private_loss, and use "
                "solution.private_loss.error_bars(regularizer, constraints)."
            )
        return error_bars(loss, *rest, released=self.values, level=level, draws=draws, seed=seed)
