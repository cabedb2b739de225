"""Whether a linear term leaves a minimiser: directions in which the public rest does not grow.

A direction d in which C goes on without end has the slope ρ(d) of r far out. g'θ + r(θ) has a
minimiser over C for every g if there is none with a finite slope, and for almost no g if
ρ(d) + ρ(−d) = 0 for some d ≠ 0: then the objective is linear along a line.
"""

from __future__ import annotations

from collections.abc import Sequence

import cvxpy as cp
import numpy as np
import numpy.typing as npt
from cvxpy import settings

from cvxqop._cvxpy import SHARED
from cvxqop.errors import OptionError
from cvxqop.solve.cones.solvers import cone_constraints
from cvxqop.solve.cones.standard_form import StandardForm, standard_form
from cvxqop.solve.rest.prox import NotSplittable
from cvxqop.solve.rest.reach import farthest
from cvxqop.solve.solvers import attempt

__all__ = ["minimisers"]

MOST = 300
"""Entries of θ up to which the rest is looked at."""

NOTHING = 1e-3
"""A direction shorter than that, of at most one in each entry, is rounding."""


def minimisers(
    variables: Sequence[cp.Variable],
    regulariser: cp.Expression | None,
    constraints: Sequence[cp.Constraint],
) -> str:
    """For which g the problem min g'θ + r(θ) over C has a minimiser: "every", "some" or "none".

    "some" is also the answer where it is not found out.

    Examples
    --------
    >>> w = cp.Variable(2)
    >>> minimisers([w], cp.sum_squares(w), []), minimisers([w], None, [w >= 0, cp.sum(w) == 1])
    ('every', 'every')
    >>> minimisers([w], cp.norm1(w), []), minimisers([w], None, [w >= 0])
    ('some', 'some')
    >>> minimisers([w], None, []), minimisers([w], cp.square(w[0] - w[1]), [])
    ('none', 'none')
    """
    D = sum(variable.size for variable in variables)
    if farthest(variables, constraints, np.zeros(D)) < np.inf:
        return "every"
    if D > MOST:
        return "some"
    try:
        form = standard_form(variables, regulariser, constraints)
    except (NotSplittable, OptionError):
        return "some"
    # A direction that is found lies across these, whatever the rest is.
    across = np.cos(1.0 + np.arange(D))
    if not any(_recedes(form, sign * across, line=False) for sign in (1.0, -1.0)):
        return "every"
    return "none" if _recedes(form, across, line=True) else "some"


def _recedes(form: StandardForm, across: npt.NDArray[np.float64], line: bool) -> bool:
    """Whether C and r go on along a direction, or a whole line, without a bend."""
    D, N = form.dimension, form.A.shape[1]
    with SHARED:
        d, up, down = cp.Variable(D), cp.Variable(N - D), cp.Variable(N - D)
        held = [*cone_constraints(form.cones, -form.A @ cp.hstack([d, up])), cp.abs(d) <= 1]
        held += [cp.abs(up) <= 1] if N > D else []
        if line:
            held += cone_constraints(form.cones, -form.A @ cp.hstack([-d, down]))
            held += [cp.abs(down) <= 1, form.c[D:] @ (up + down) <= 0] if N > D else []
        problem = cp.Problem(cp.Maximize(across @ d), held)
    status, solution = attempt(problem, "CLARABEL", {})
    if status not in (settings.OPTIMAL, settings.OPTIMAL_INACCURATE):
        return not line
    return float(np.abs(solution.primal_vars[d.id]).max()) > NOTHING
