"""From the regulariser and constraints of a CVXPY problem to proximal operators and projections."""

from __future__ import annotations

from collections.abc import Sequence

import cvxpy as cp
import numpy as np
import numpy.typing as npt

from cvxqop._cvxpy import SHARED
from cvxqop.solve.rest.agreement import Public, agrees
from cvxqop.solve.rest.regulariser import PenaltyReader
from cvxqop.solve.rest.rest import Rest
from cvxqop.solve.rest.sets import SetReader
from cvxqop.solve.rest.terms import NotSplittable, Stack, summands

__all__ = ["NotSplittable", "split", "splits"]

Array = npt.NDArray[np.float64]


def split(
    variables: Sequence[cp.Variable],
    regulariser: cp.Expression | None,
    constraints: Sequence[cp.Constraint],
    *,
    compare: bool = True,
) -> Rest:
    """Read r and C as operators.

    Parameters
    ----------
    variables : sequence of cp.Variable
        θ is their entries in order, each flattened in Fortran order.
    regulariser : cp.Expression or None
        A sum of: norm1 and weighted norm1, norm2 and group norms, norm_inf, normNuc, 1-D total
        variation, sum_squares, positive semidefinite quad_form, linear terms; scaled, shifted.
    constraints : sequence of cp.Constraint
        Boxes, balls of norm 1, 2, inf, simplices, affine sets, polyhedra, second-order and
        semidefinite cones, and intersections of these.
    compare : bool
        Whether what was read is compared with CVXPY's own values; once is enough.

    Returns
    -------
    Rest

    Raises
    ------
    NotSplittable
        A term has no proximal operator here, two terms overlap in a way that has none, or CVXPY
        evaluates r or C otherwise at points tried.
    ProblemError
        The constraints are visibly infeasible.

    Examples
    --------
    >>> import cvxpy as cp, numpy as np
    >>> theta = cp.Variable(3)
    >>> rest = split([theta], 2 * cp.norm1(theta), [cp.norm_inf(theta) <= 1])
    >>> rest.candidate(np.array([3.0, -0.5, -4.0]), 1.0).point.tolist()
    [1.0, 0.0, -1.0]
    """
    with SHARED:
        rest = _read(variables, regulariser, constraints)
        if not compare:
            return rest
        if wrong := agrees(rest, Public(variables, regulariser, constraints)):
            raise NotSplittable(f"public {wrong}", "was not read as CVXPY evaluates it")
        # Projections onto polyhedra start from their last answer, which shows in the last bits.
        return _read(variables, regulariser, constraints)


def splits(
    variables: Sequence[cp.Variable],
    regulariser: cp.Expression | None,
    constraints: Sequence[cp.Constraint],
) -> bool:
    """Whether r and C can be read as operators."""
    try:
        split(variables, regulariser, constraints)
    except NotSplittable:
        return False
    return True


def _read(
    variables: Sequence[cp.Variable],
    regulariser: cp.Expression | None,
    constraints: Sequence[cp.Constraint],
) -> Rest:
    stack = Stack(variables)
    penalties = PenaltyReader(stack)
    if regulariser is not None:
        for factor, term in summands(regulariser):
            penalties.add(factor, term)
    sets = SetReader(stack)
    for variable in variables:
        sets.add_attributes(variable)
    for constraint in constraints:
        sets.add(constraint)
    lower, upper, placed = sets.finish()
    norms = tuple(penalties.norms)
    penalties.check_overlaps()
    rest = Rest(
        stack.dimension,
        penalties.Q,
        penalties.q,
        penalties.weights,
        penalties.kinks,
        norms,
        lower,
        upper,
        placed,
    )
    object.__setattr__(rest, "fused", _fused(rest))
    return rest


def _fused(rest: Rest) -> bool:
    """Whether clip, soft threshold, norm and projection compose to the prox of g + ι_C.

    True on each block of coordinates that has a penalty or a set but not both; for absolute
    values on a box (one-dimensional functions); and, since all norms are positively homogeneous,
    for a 2-ball around their common centre.
    """
    bounded = np.isfinite(rest.lower) | np.isfinite(rest.upper)
    if any(np.any(bounded[norm.index]) for norm in rest.norms):
        return False
    penalised = rest.weights > 0.0
    for norm in rest.norms:
        penalised[norm.index] = True
    for s in rest.sets:
        if not np.any(penalised[s.index]):
            continue
        centre = s.ball_centre()
        if centre is None or np.any(bounded[s.index]):
            return False
        weighted = rest.weights[s.index] > 0.0
        if np.any(rest.kinks[s.index][weighted] != centre[weighted]):
            return False
        inside = set(s.index.tolist())
        position = {j: k for k, j in enumerate(s.index.tolist())}
        for norm in rest.norms:
            own = norm.index.tolist()
            common = inside.intersection(own)
            if not common:
                continue
            if len(common) != len(own):
                return False
            at = np.array([centre[position[j]] for j in own])
            if np.any(-norm.shift / norm.scale != at):
                return False
    return True
