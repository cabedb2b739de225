"""What a person reads: the guarantee, the plan, the private loss and the private solution.

Nothing on these objects was computed from records, except what has been released: the values of
the variables and, for a quadratic loss, the perturbed quadratic form.
"""

from __future__ import annotations

import html
import json
import math
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import cvxpy as cp
import numpy as np
import numpy.typing as npt

from cvxqop.privacy.mechanism import Mechanism

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from cvxqop.choice import Candidate

__all__ = ["Guarantee", "Plan", "PrivateLoss", "PrivateSolution"]

Array = npt.NDArray[np.float64]


def _wrapped(name: str, text: str) -> list[str]:
    """A named entry that fits a terminal of 88 columns."""
    return textwrap.wrap(text, 88, initial_indent=f"  {name:<12}", subsequent_indent=" " * 14)


@dataclass(frozen=True, eq=False)
class Guarantee:
    """What is promised, by which mechanism, and under which assumptions.

    Attributes
    ----------
    epsilon, delta : float
        The release is (ε, δ)-differentially private.
    adjacency : {"replace_one", "add_remove"}
        What neighbouring data sets are.
    mechanism : Mechanism
        The calibrated mechanism: all of its numbers are public.
    assumptions : tuple of str
        What the promise rests on, in sentences.
    caveats : tuple of str
        Reasons why this release is not private at all (a seed, bounds read from the data).
    certified : bool
        False where the accuracy of a solver that saw records is trusted and not certified.
    """

    epsilon: float
    delta: float
    adjacency: str
    mechanism: Mechanism
    assumptions: tuple[str, ...]
    caveats: tuple[str, ...] = ()
    certified: bool = True

    @property
    def private(self) -> bool:
        """False when a seed was given or the bounds were read from the data."""
        return not self.caveats

    def profile(self, epsilon: npt.ArrayLike) -> Array:
        """The privacy profile δ(ε) of the mechanism, rounded up."""
        return self.mechanism.profile(epsilon)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and strings, for JSON."""
        return {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "adjacency": self.adjacency,
            "private": self.private,
            "mechanism": self.mechanism.describe(),
            "assumptions": list(self.assumptions),
            "caveats": list(self.caveats),
        }

    def lines(self) -> list[str]:
        """The guarantee as text."""
        m = self.mechanism
        promise = f"({self.epsilon:g}, {self.delta:g})-differential privacy, {self.adjacency}"
        rows = [("NOT PRIVATE", caveat) for caveat in self.caveats]
        rows += [("guarantee" if self.private else "would be", promise), *m.summary()]
        if m.release is not None:
            known = "certified" if self.certified else "trusted to be"
            text = f"{known} within {m.release.accuracy:g} of the exact solution, then N(0, σ_rel²)"
            rows.append(("release", f"{text}, σ_rel = {m.release.scale:.6g}"))
        rows += [("assumes" if i == 0 else "", text) for i, text in enumerate(self.assumptions)]
        return [line for name, text in rows for line in _wrapped(name, text)]


@dataclass(frozen=True, eq=False)
class Plan:
    """All that can be known before the budget is spent. Made by :func:`cvxqop.plan`.

    Attributes
    ----------
    guarantee : Guarantee
        The mechanism and its promise.
    dimension : int
        D, the length of θ.
    records : int or None
        n where it is public (replace_one), else None.
    radius : float
        The hint for ‖θ̂ − θ0‖ that the free parameters were chosen by.
    solver : str
        The solver that will be used.
    warnings : tuple of str
        What is likely to disappoint, from public numbers alone.
    candidates : tuple of Candidate
        What ``perturbation="auto"`` chose from, with the risk predicted for each; else empty.
    """

    guarantee: Guarantee
    dimension: int
    records: int | None
    radius: float
    solver: str
    warnings: tuple[str, ...]
    candidates: tuple[Candidate, ...]
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

    def excess_risk_bound(self, radius: float | None = None) -> float:
        """Bound on E J(θ_pert) − J(θ̂) if ‖θ̂ − θ0‖ ≤ radius (default: the hint); θ_pert is the
        exact solution, before a release adds its noise (theory §8)."""
        return self.mechanism.excess_risk_bound(self.radius if radius is None else radius)

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
        from cvxqop.plotting import plot_plan  # matplotlib is an extra

        return plot_plan(self)

    def run(self) -> PrivateSolution:
        """Spend: draw fresh noise, solve, and write the release into the variables."""
        return self._execute()

    def __str__(self) -> str:
        rows = [("solver", self.solver)]
        bound = self.excess_risk_bound()
        known = f"{bound:.6g} above the optimum, in expectation, if ‖θ̂ − θ0‖ ≤ {self.radius:g}"
        known += ", before the release noise" if self.mechanism.release is not None else ""
        rows.append(("risk bound", known if bound < math.inf else "none without reading the data"))
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
        lines += [line for name, text in rows for line in _wrapped(name, text)]
        return "\n".join(lines)

    __repr__ = __str__


@dataclass(frozen=True, eq=False)
class PrivateLoss:
    """A perturbed quadratic loss that is itself private (Theorem 1).

    f(θ) = g̃'(θ − θ0) + ½(θ − θ0)'H̃(θ − θ0) has been released; whatever is computed from it is
    post-processing. Use `expression` in any CVXPY problem, with any convex regulariser and
    constraints, as often as wanted, at no further privacy cost.

    Attributes
    ----------
    hessian : ndarray, shape (D, D)
        H̃, positive definite.
    gradient : ndarray, shape (D,)
        g̃, the gradient at the anchor.
    anchor : ndarray, shape (D,)
        θ0.
    variables : tuple of Variable
        θ, stacked in this order, each flattened column by column.
    guarantee : Guarantee
        What was paid, and under which assumptions.

    Examples
    --------
    >>> import cvxpy as cp, cvxqop, numpy as np
    >>> X, y = np.eye(4)[:, :2], np.ones(4)
    >>> theta = cp.Variable(2)
    >>> loss = cvxqop.private_loss(
    ...     cp.sum_squares(X @ theta - y), private=[X, y], epsilon=1.0, delta=1e-6,
    ...     bounds=cvxqop.Bounds(row_norm=1.0, offset=1.0),
    ... )
    >>> problem = cp.Problem(cp.Minimize(loss.expression + cp.norm1(theta)), [theta >= 0])
    >>> value = problem.solve()
    """

    hessian: Array
    gradient: Array
    anchor: Array
    variables: tuple[cp.Variable, ...]
    guarantee: Guarantee

    @cached_property
    def expression(self) -> cp.Expression:
        """f as a convex CVXPY expression in the variables of the loss."""
        theta = cp.hstack([cp.vec(variable, order="F") for variable in self.variables])
        linear = self.gradient - self.hessian @ self.anchor
        constant = 0.5 * self.anchor @ self.hessian @ self.anchor - self.gradient @ self.anchor
        return 0.5 * cp.quad_form(theta, cp.psd_wrap(self.hessian)) + linear @ theta + constant

    @property
    def epsilon(self) -> float:
        """ε that was paid."""
        return self.guarantee.epsilon

    @property
    def delta(self) -> float:
        """δ that was paid."""
        return self.guarantee.delta

    def profile(self, epsilon: npt.ArrayLike) -> Array:
        """δ(ε) of the release, rounded up."""
        return self.guarantee.profile(epsilon)

    def __str__(self) -> str:
        names = ", ".join(v.name() for v in self.variables)
        return "\n".join([f"Private quadratic loss of {names}", *self.guarantee.lines()])

    __repr__ = __str__


@dataclass(frozen=True, eq=False)
class PrivateSolution:
    """A differentially private minimiser. Made by :func:`cvxqop.privatize`.

    Attributes
    ----------
    values : dict {variable: ndarray}
        The release: the variables of the private loss, and those of the public rest.
    guarantee : Guarantee
        What is promised, by which mechanism, under which assumptions.
    solver : str
        The solver that was used.
    private_loss : PrivateLoss or None
        For quadratic losses, what was released underneath: more problems can be solved from it.
    """

    values: Mapping[cp.Variable, Any]
    guarantee: Guarantee
    solver: str
    private_loss: PrivateLoss | None = field(default=None, repr=False)

    def __getitem__(self, variable: cp.Variable) -> Any:
        return self.values[variable]

    @property
    def epsilon(self) -> float:
        """ε of the guarantee."""
        return self.guarantee.epsilon

    @property
    def delta(self) -> float:
        """δ of the guarantee."""
        return self.guarantee.delta

    @property
    def adjacency(self) -> str:
        """What neighbouring data sets are."""
        return self.guarantee.adjacency

    @property
    def mechanism(self) -> Mechanism:
        """The calibrated mechanism."""
        return self.guarantee.mechanism

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the guarantee rests on, in sentences."""
        return self.guarantee.assumptions

    @property
    def certificate(self) -> float | None:
        """Δ that the solve was certified to before the release; None where none is needed, or
        where a solver was trusted.

        The promise alone: how close the solver really came is not private.
        """
        release = self.mechanism.release
        return release.accuracy if release and self.guarantee.certified else None

    @property
    def reproducible(self) -> bool:
        """True when a seed was given, and then the release is not private."""
        return any("seed" in caveat for caveat in self.guarantee.caveats)

    def profile(self, epsilon: npt.ArrayLike) -> Array:
        """δ(ε) of the release, rounded up."""
        return self.guarantee.profile(epsilon)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and strings, ready for ``json.dumps``."""
        return {
            "values": {v.name(): np.asarray(x).tolist() for v, x in self.values.items()},
            "solver": self.solver,
            "certificate": self.certificate,
            **self.guarantee.to_dict(),
        }

    def __str__(self) -> str:
        lines = ["Private solution", *self.guarantee.lines(), f"  {'solver':<12}{self.solver}"]
        for variable, value in self.values.items():
            text = np.array2string(np.asarray(value), precision=6, threshold=12, max_line_width=72)
            lines.append(f"  {variable.name():<12}{text.replace(chr(10), chr(10) + ' ' * 14)}")
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"

    def to_json(self) -> str:
        """`to_dict` as a JSON string."""
        return json.dumps(self.to_dict())
