"""Plots of public numbers. matplotlib is an extra and is imported when a plot is made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from cvxqop.guarantee import Guarantee
from cvxqop.privacy.mechanism import Mechanism, reference_curvature

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["plot_plan"]


class Planned(Protocol):
    """What a plot asks of a plan."""

    @property
    def guarantee(self) -> Guarantee:
        """The promise."""
        ...

    @property
    def records(self) -> int | None:
        """n where it is public."""
        ...

    @property
    def radius(self) -> float:
        """D0."""
        ...

    @property
    def candidates(self) -> Sequence[Any]:
        """What was chosen from."""
        ...

    @property
    def mechanism(self) -> Mechanism:
        """The calibrated mechanism."""
        ...

    def profile(self, epsilon: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """δ(ε)."""
        ...


def plot_plan(plan: Planned) -> Figure:
    """δ(ε) of a plan, and the risk that is predicted for its candidates.

    Left: the privacy profile, with the (ε, δ) that was asked for. Right: predicted excess risk
    E J(θ_pert) − J(θ̂) against h, the curvature of the summed loss; the dotted line is nL/D, the
    most that n records can have on average, where n is public.

    Parameters
    ----------
    plan : Plan
        Made by :func:`cvxqop.plan`.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ImportError
        Without matplotlib: ``pip install cvxqop[plot]``.

    Examples
    --------
    >>> import cvxpy as cp, cvxqop, numpy as np
    >>> X, y, theta = np.ones((50, 2)), np.ones(50), cp.Variable(2)
    >>> p = cvxqop.plan(
    ...     cp.Problem(cp.Minimize(cp.sum_squares(X @ theta - y))), private=[X, y],
    ...     bounds=cvxqop.Bounds(row_norm=2.0, offset=1.0), epsilon=1.0, delta=1e-6,
    ... )
    >>> len(plot_plan(p).axes)
    2
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10.0, 4.0), layout="constrained")
    profile, risk = figure.subplots(1, 2)
    _draw_profile(profile, plan)
    _draw_risk(risk, plan)
    return figure


def _draw_profile(axes: Any, plan: Planned) -> None:
    epsilon, delta = plan.guarantee.epsilon, plan.guarantee.delta
    grid = epsilon * np.linspace(0.02, 2.0, 40)
    values = np.asarray(plan.profile(grid))
    axes.semilogy(grid, np.where(values > 0.0, values, np.nan), label=plan.mechanism.title)
    axes.plot([epsilon], [delta], "o", color="C3", label=f"asked for: ({epsilon:g}, {delta:g})")
    axes.set_ylim(bottom=max(delta**2, 1e-300), top=2.0)
    axes.set(xlabel="ε", ylabel="δ(ε)", title=f"Privacy profile, {plan.guarantee.adjacency}")
    axes.legend(fontsize=8)


def _draw_risk(axes: Any, plan: Planned) -> None:
    shown: list[tuple[str, Mechanism]] = [
        (candidate.name, candidate.mechanism)
        for candidate in plan.candidates
        if candidate.mechanism is not None
    ] or [(plan.mechanism.title, plan.mechanism)]
    reference = reference_curvature([mechanism for _, mechanism in shown], plan.records)
    grid = reference * np.geomspace(1e-3, 1e3, 61)
    for name, mechanism in shown:
        chosen = mechanism.describe() == plan.mechanism.describe()
        risks = [mechanism.predicted_risk(plan.radius, float(h)) for h in grid]
        axes.loglog(grid, risks, label=name, linewidth=2.5 if chosen else 1.0)
    if plan.records is not None:
        axes.axvline(reference, color="0.5", linestyle=":", label="nL/D")
    axes.set(
        xlabel="curvature h of the summed loss",
        ylabel="predicted excess risk",
        title=f"Predicted risk, D0 = {plan.radius:g}",
    )
    axes.legend(fontsize=8)
