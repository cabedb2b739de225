"""What a person reads before anything is spent: the plan, and the mechanisms that it chose from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, NoReturn, Self

import numpy as np
import numpy.typing as npt

from cvxqop.errors import OptionError
from cvxqop.guarantee import Guarantee, wrapped
from cvxqop.plotting import plot_plan
from cvxqop.prediction import Prediction
from cvxqop.privacy.mechanism import Mechanism
from cvxqop.settings import Perturbation
from cvxqop.solution import PrivateSolution

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Candidate", "Plan"]

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Candidate:
    """One mechanism that could be used, or why it could not.

    Attributes
    ----------
    perturbation : Wishart, Gaussian or Linear
        What to pass as ``perturbation`` to choose it.
    mechanism : Mechanism or None
        Calibrated to the (ε, δ) of the plan; None where that is not possible.
    reason : str
        Why it is not.
    predicted_risk : float or None
        E J(θ_pert) − J(θ̂) predicted at the reference curvature.
    """

    perturbation: Perturbation
    mechanism: Mechanism | None = field(default=None, repr=False)
    reason: str = ""
    predicted_risk: float | None = None

    @property
    def text(self) -> str:
        """The candidate in a line."""
        if self.predicted_risk is None:
            return f"{self.name}: not possible ({self.reason.split('. ')[0].rstrip('.')})"
        return f"{self.name}: predicted risk {self.predicted_risk:.3g}"

    @property
    def name(self) -> str:
        """The perturbation as one would write it."""
        stated = [
            f"{one.name}={getattr(self.perturbation, one.name)!r}"
            for one in fields(self.perturbation)
            if getattr(self.perturbation, one.name) != one.default
        ]
        return f"{type(self.perturbation).__name__}({', '.join(stated)})"


@dataclass(frozen=True, eq=False)
class Plan:
    """All that can be known before the budget is spent. Made by :func:`cvxqop.plan`.

    It may be run from several threads: each run is a release of its own, and the variables hold
    one of them whole. A copy is the plan itself, and it does not pickle, because it holds records.

    Attributes
    ----------
    guarantee : Guarantee
        The mechanism and its promise.
    dimension : int
        D, the length of θ.
    records : int or None
        n where it is public (replace_one), else None; the number of persons where there are such.
    radius : float
        The hint for ‖θ̂ − θ0‖ that the free parameters were chosen by.
    solver : str
        The solver that will be used.
    warnings : tuple of str
        What is likely to disappoint, from public numbers alone.
    candidates : tuple of Candidate
        What ``perturbation="auto"`` chose from, with the risk predicted for each; else empty.
    prediction : Prediction or None
        How far predictions x'θ are expected to lie from those without privacy; None where a record
        has no single one.
    """

    guarantee: Guarantee
    dimension: int
    records: int | None
    radius: float
    solver: str
    warnings: tuple[str, ...]
    candidates: tuple[Candidate, ...]
    prediction: Prediction | None
    _execute: Callable[[], PrivateSolution] = field(repr=False)

    @property
    def mechanism(self) -> Mechanism:
        """The calibrated mechanism."""
        return self.guarantee.mechanism

    @property
    def shrinkage(self) -> float | None:
        """ρ/(ρ + nL/D), E S = ρI: weight of the anchor against n records of the largest curvature.

        None where n is private (add_remove), and where the mean curvature is zero.
        """
        ridge = self.mechanism.mean_curvature
        if self.records is None or ridge == 0.0:
            return None
        data = self.records * self.mechanism.sensitivity.average_curvature
        return ridge / (ridge + data)

    def profile(self, epsilon: npt.ArrayLike) -> Array:
        """δ(ε) of the mechanism, rounded up; at most δ at the planned ε."""
        return self.guarantee.profile(epsilon)

    def epsilon_at(self, delta: float) -> float:
        """The smallest ε at a δ, rounded up."""
        return self.guarantee.epsilon_at(delta)

    def excess_risk_bound(self, radius: float | None = None) -> float:
        """Bound on E J(θ_pert) − J(θ̂) if ‖θ̂ − θ0‖ ≤ radius (default: the hint), coefficients of
        constant columns divided by what the plan says; θ_pert is the exact solution, before a
        release adds its noise (theory §8)."""
        return self.mechanism.excess_risk_bound(self.radius if radius is None else radius)

    def predicted_error(self, records: int | None = None) -> float:
        """Root mean square of x'(θ − θ̂) over the records that is expected, θ̂ the answer without
        privacy, in units of x'θ; see :class:`cvxqop.prediction.Prediction`.

        Rows and residuals are supposed to lie at a third of their bounds. A typical size, not a
        bound: real data differ by a factor of two or more.

        Parameters
        ----------
        records : int, optional
            A public number of records, or of persons. Default: n, where n is public.

        Raises
        ------
        OptionError
            If n is private and no number was given, or a record has no single prediction.
        """
        n = self.records if records is None else records
        if self.prediction is None:
            raise OptionError("predicted_error: a record of this loss has no single prediction.")
        if n is None or isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
            raise OptionError(
                "predicted_error: the number of records is private or not positive; give a public "
                "one, as in plan.predicted_error(10_000)."
            )
        return self.prediction.error(int(n))

    def plot(self) -> Figure:
        """The privacy profile, and the predicted risk against the curvature of the data.

        Returns
        -------
        matplotlib.figure.Figure
            For ``savefig``; matplotlib comes with ``pip install cvxqop[plot]``.

        Raises
        ------
        ImportError
            Without matplotlib.
        """
        return plot_plan(self)

    def run(self) -> PrivateSolution:
        """Spend: draw fresh noise, solve, and write the release into the variables."""
        return self._execute()

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: Any) -> Self:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "A plan does not pickle: it holds the records, and a budget that exists once. Make it "
            "anew where it is to run, with cvxqop.plan(…); what run() returns may be pickled."
        )

    def __str__(self) -> str:
        rows = [("solver", self.solver)]
        if self.prediction is not None:
            rows.append(("predictions", self.prediction.text(self.records)))
        if self.shrinkage is not None:
            rows.append(
                (
                    "shrinkage",
                    f"at least {self.shrinkage:.1%} towards the anchor, on average over directions",
                )
            )
        for i, candidate in enumerate(self.candidates):
            rows.append(("candidates" if i == 0 else "", candidate.text))
        rows += [("warning", text) for text in self.warnings]
        lines = ["Plan (nothing has been spent)", *self.guarantee.lines()]
        lines += [line for name, text in rows for line in wrapped(name, text)]
        return "\n".join(lines)

    __repr__ = __str__
