"""What a private loss can be asked at no further cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import cvxpy as cp
import numpy as np
import numpy.typing as npt

from cvxqop.inference.error_bars import ErrorBars, error_bars
from cvxqop.inference.fit import Fit, fit
from cvxqop.inference.joint_test import p_value
from cvxqop.inference.path import Path, path
from cvxqop.inference.released import Released
from cvxqop.inference.solution_verbs import held

__all__ = ["LossVerbs"]


class LossVerbs:
    """Methods of `cvxqop.PrivateLoss`."""

    def error_bars(
        self: Released,
        regularizer: cp.Expression | float | None = None,
        constraints: Sequence[cp.Constraint] | None = None,
        *,
        level: float = 0.95,
        draws: int = 1000,
        population: bool = False,
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
        population : bool
            Whether the sampling of the records is included: intervals for the minimiser on a
            population, with residuals of one variance, estimated by `fit`. Needs
            ``Gaussian(sum_of_squares=…)`` and a public number of records.
        seed : int or numpy.random.Generator, optional
            For draws that can be repeated. It is no part of the release: redraws are public.

        Returns
        -------
        ErrorBars
            ``lower``, ``upper``, ``undetermined`` by variable; a table when printed.

        Raises
        ------
        OptionError
            r or C is not convex, level and draws do not fit, or what ``population`` needs is not
            there.

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
        return error_bars(
            self,
            regularizer,
            constraints,
            level=level,
            draws=draws,
            population=population,
            seed=seed,
        )

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

    def fit(
        self: Released,
        regularizer: Any = None,
        constraints: Sequence[cp.Constraint] | None = None,
        *,
        draws: int = 200,
        seed: int | np.random.Generator | None = None,
    ) -> Fit:
        """Training R² and residual standard deviation, with standard errors; free.

        R² = 1 − f(θ̂)/f(θ0) for the one-stage solution θ̂ with this r and C. f(θ̂) − f(θ0) is
        estimated without bias from the release (:mod:`cvxqop.inference.risk`), f(θ0) has been
        released.

        Parameters
        ----------
        regularizer : cvxpy.Expression or PrivateSolution, optional
            Public convex r(θ); of a solution its regulariser and constraints are taken.
        constraints : list of constraints, optional
            Public C.
        draws : int
            Of the simulation.
        seed : int or numpy.random.Generator, optional
            For draws that can be repeated.

        Returns
        -------
        Fit

        Raises
        ------
        OptionError
            The sum of squares was not released (``Gaussian(sum_of_squares=…)``).

        Examples
        --------
        >>> import cvxpy as cp, cvxqop, numpy as np
        >>> rng = np.random.default_rng(0)
        >>> X, theta = rng.uniform(-0.5, 0.5, (20_000, 3)), cp.Variable(3, name="theta")
        >>> y = X @ [1.0, 0.0, -0.5] + rng.uniform(-0.3, 0.3, 20_000)
        >>> loss = cvxqop.private_loss(
        ...     cp.sum_squares(X @ theta - y), private=[X, y], epsilon=2.0, delta=1e-6, seed=1,
        ...     bounds=cvxqop.Bounds(row_norm=1.0, offset=1.0),
        ...     perturbation=cvxqop.Gaussian(sum_of_squares=True),
        ... )
        >>> found = loss.fit()
        >>> abs(found.residual_sd - 0.3 / 3**0.5) < 0.02
        True
        """
        if hasattr(regularizer, "private_loss"):
            regularizer, constraints = held(regularizer, "fit")[1]
        return fit(self, regularizer, constraints, draws=draws, seed=seed)
