"""A whole path of penalties on one release, and a choice that does no harm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np
import numpy.typing as npt

from cvxqop import _cvxpy
from cvxqop.errors import OptionError
from cvxqop.inference import drawing
from cvxqop.inference.intervals import paragraph, split_up
from cvxqop.inference.released import Released, generator_of
from cvxqop.inference.risk import coupled_risk, one_stage, spread_of
from cvxqop.inference.solving import PublicRest

__all__ = ["Path", "path"]

Array = npt.NDArray[np.float64]

WRITTEN = (cp.Expression, cp.constraints.Constraint)
GUARD = 2.0
"""Standard errors by which a λ must be better than the smallest one."""
SENTENCE = (
    "The repair of the curvature already regularises. The choice leaves the smallest λ only where "
    "the estimated training loss falls by more than twice the noise of that estimate: it finds "
    "sparsity where it is real and ε is large, and is not a substitute for cross-validation."
)


@dataclass(frozen=True, eq=False)
class Path:
    """Solutions for each λ, the estimated training loss, and the guarded choice.

    All of it is computed from the first release with its curvature raised to the noise edge: with
    several stages, or another repair, ``loss.expression`` has solutions that differ from these.

    Attributes
    ----------
    values : ndarray, shape (L,)
        λ, ascending.
    solutions : mapping {variable: ndarray}
        Of shape (L, …): the solution for each λ.
    gain : ndarray, shape (L,)
        Estimate of f(θ_λ) − f(θ_λ0), λ0 the smallest: the loss without noise, in its own units.
    standard_error : ndarray, shape (L,)
        Of ``gain``: the noise of the release, and of the simulation.
    nonzero : ndarray of int, shape (L,)
        Entries of the solution that are not zero.
    index : int
        Where the guarded choice is.
    """

    values: Array
    solutions: Mapping[cp.Variable, Array]
    gain: Array
    standard_error: Array
    nonzero: npt.NDArray[np.intp]
    index: int

    @property
    def chosen(self) -> float:
        """λ of the guarded choice: argmin gain + 2 standard errors."""
        return float(self.values[self.index])

    def plot(self) -> Any:
        """The estimate with its error, and the coefficients; needs matplotlib."""
        thetas = [np.reshape(x, (len(self.values), -1)) for x in self.solutions.values()]
        return drawing.path(
            self.values, self.gain, self.standard_error, np.hstack(thetas), self.index
        )

    def __str__(self) -> str:
        head = f"  {'λ':>12}{'loss − first':>15}{'s.e.':>12}{'nonzero':>9}"
        lines = [f"Path of {len(self.values)} penalties on one release, no privacy spent", head]
        rows = zip(self.values, self.gain, self.standard_error, self.nonzero, strict=True)
        for k, (value, gain, error, count) in enumerate(rows):
            mark = "  chosen" if k == self.index else ""
            lines.append(f"  {value:>12.5g}{gain:>15.5g}{error:>12.3g}{count:>9}{mark}")
        return "\n".join([*lines, *paragraph(SENTENCE)])

    __repr__ = __str__


def path(
    loss: Released,
    penalty: cp.Expression,
    lam: cp.Parameter,
    values: npt.ArrayLike,
    constraints: Sequence[cp.Constraint] | None = None,
    *,
    draws: int = 50,
    seed: int | np.random.Generator | None = None,
) -> Path:
    """See `PrivateLoss.path`."""
    grid = _checked(lam, values, draws)
    rests, T = _rests(loss, penalty, lam, grid, constraints), loss.scale
    loss = loss.of_scaled(T)
    fitted = one_stage(loss)

    def solve(H: Array, g: Array, least: Array, start: Array | None = None) -> Array:
        starts = np.broadcast_to(loss.first_anchor, (len(rests), g.shape[1]))
        starts = starts if start is None else start
        solved = [rest.solve(H, g, loss, least, at) for rest, at in zip(rests, starts, strict=True)]
        return np.stack(solved, axis=1)

    thetas = solve(*fitted)[0]
    risk = coupled_risk(
        loss, lambda H, g, least: solve(H, g, least, thetas), int(draws), generator_of(seed)
    )
    U = thetas - loss.first_anchor
    simulated = np.diag(risk.simulated) + risk.simulated[0, 0] - 2.0 * risk.simulated[0]
    error = np.sqrt(spread_of(loss, U, U[0]) ** 2 + np.maximum(simulated, 0.0))
    gain = risk.value - risk.value[0]
    thetas = T * thetas
    rows = [split_up(theta, loss.variables) for theta in thetas]
    solutions = {v: np.stack([row[v] for row in rows]) for v in loss.variables}
    scale = np.abs(thetas).max(initial=0.0)
    nonzero = np.count_nonzero(np.abs(thetas) > 1e-9 * scale, axis=1)
    index = int(np.argmin(gain + GUARD * error))
    return Path(grid, solutions, gain, error, nonzero, index)


def _checked(lam: Any, values: npt.ArrayLike, draws: Any) -> Array:
    if not isinstance(lam, cp.Parameter) or lam.size != 1:
        raise OptionError("lam: a scalar cp.Parameter that occurs in the penalty is needed.")
    grid = np.unique(np.asarray(values, dtype=np.float64))
    if grid.size < 2 or not np.all(np.isfinite(grid)) or grid[0] < 0.0:
        raise OptionError("values: at least two different numbers λ ≥ 0 are needed.")
    if isinstance(draws, bool) or not isinstance(draws, int | np.integer) or draws < 2:
        raise OptionError(f"draws must be an int of at least 2, not {draws!r}.")
    return grid


def _rests(
    loss: Released,
    penalty: cp.Expression,
    lam: cp.Parameter,
    grid: Array,
    constraints: Sequence[cp.Constraint] | None,
) -> list[PublicRest]:
    """r and C for each λ; the parameter gets its value back."""
    holders = [penalty, *(constraints or ())]
    if not any(p is lam for x in holders if isinstance(x, WRITTEN) for p in x.parameters()):
        raise OptionError("lam: the parameter does not occur in the penalty or the constraints.")
    frozen = []
    for value in grid:
        number = cp.Constant(np.full(lam.shape, value) if lam.shape else value)
        with _cvxpy.SHARED:
            r, *C = [_with(x, lam, number) for x in holders]
        frozen.append(PublicRest.of(loss, r, C))
    return frozen


def _with(node: Any, lam: cp.Parameter, number: cp.Constant) -> Any:
    """A copy with a constant in the place of the parameter; the variables are the same ones."""
    return node.tree_copy({id(lam): number}) if isinstance(node, WRITTEN) else node
