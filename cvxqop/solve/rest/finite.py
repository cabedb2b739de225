"""Numbers of the public rest that are not finite: NaN, and infinities that are no absent bound.

Solvers differ in what they make of them: some fail, some leave the constraint out, some return NaN.
What can be seen before the charge is refused before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import cvxpy as cp
import numpy as np
import numpy.typing as npt

from cvxqop import _cvxpy
from cvxqop.errors import ProblemError
from cvxqop.solve.rest.terms import dense

__all__ = ["bounded", "check_finite"]


def check_finite(
    variables: Sequence[cp.Variable],
    regulariser: cp.Expression | None,
    constraints: Sequence[cp.Constraint],
) -> None:
    """Refuse NaN everywhere, and infinities but for bounds that bound nothing.

    Raises
    ------
    ProblemError
        Names the term, the constraint or the variable.

    Examples
    --------
    >>> import cvxpy as cp, numpy as np
    >>> theta = cp.Variable(2)
    >>> check_finite([theta], cp.norm1(theta), [theta <= np.array([1.0, np.inf])])
    """
    rest = [] if regulariser is None else [regulariser]
    for node in rest:
        _check_constants(node, _cvxpy.format_expression(node, {}))
    for constraint in constraints:
        text = _cvxpy.format_constraint(constraint, {})
        if _sides(constraint) is None:
            _check_constants(constraint, text)
            continue
        lower, upper = constraint.args
        _check_side(lower, text, -np.inf)
        _check_side(upper, text, np.inf)
    found = [v for node in (*rest, *constraints) for v in _cvxpy.variables(node)]
    for variable in {v.id: v for v in [*variables, *found]}.values():
        _check_attribute(variable)


def bounded(constraints: Sequence[cp.Constraint]) -> list[cp.Constraint]:
    """The constraints without the entries whose bound is infinite, which some solvers refuse."""
    kept: list[cp.Constraint] = []
    for constraint in constraints:
        sides = _sides(constraint)
        finite = None if sides is None else np.isfinite(sides[0]) & np.isfinite(sides[1])
        if finite is None or np.all(finite):
            kept.append(constraint)
        elif np.any(finite):
            place = np.flatnonzero(finite.reshape(-1, order="F"))
            kept.append(cp.vec(constraint.expr, order="F")[place] <= 0)
    return kept


def _sides(constraint: Any) -> tuple[Any, Any] | None:
    """Both sides of an inequality as numbers, 0 for one with variables; None for other sets."""
    if type(constraint).__name__ != "Inequality":
        return None
    shape = constraint.expr.shape
    lower, upper = (
        np.zeros(shape) if _cvxpy.has_variables(side) else np.broadcast_to(_value(side), shape)
        for side in constraint.args
    )
    return lower, upper


def _check_side(side: Any, text: str, absent: float) -> None:
    """One side of an inequality: ``absent`` is the infinity that, where stated, bounds nothing."""
    stated = side.args[0] if _cvxpy.kind(side) in ("promote", "broadcast") else side
    if not _cvxpy.is_leaf(stated) or _cvxpy.has_variables(stated):
        _check_constants(side, text)
        return
    value = _value(side)
    if not np.all(np.isfinite(value) | (value == absent)):
        _refuse(text)


def _check_constants(node: Any, text: str) -> None:
    """Every largest part without variables is finite."""
    stack = [node]
    while stack:
        current = stack.pop()
        if isinstance(current, list | tuple):  # the constraints of a partial problem
            stack += current
        elif _cvxpy.has_variables(current):
            if not _cvxpy.is_leaf(current):
                stack += [*current.args, *_cvxpy.kept_aside(current)]
        elif not np.all(np.isfinite(_value(current))):
            _refuse(text)


def _check_attribute(variable: cp.Variable) -> None:
    bounds = variable.attributes.get("bounds")
    if bounds is None:
        return
    low, high = (_value(b) if isinstance(b, cp.Expression) else dense(b) for b in bounds)
    if not (np.all(low < np.inf) and np.all(high > -np.inf)):
        _refuse(f"bounds of the variable {variable.name()}")


def _value(node: Any) -> npt.NDArray[np.float64]:
    """The number or array that a node without variables is; NaN where it is undefined."""
    with np.errstate(all="ignore"):
        value = node.value
    return dense(np.nan if value is None else value)


def _refuse(text: str) -> None:
    raise ProblemError(
        f"{text}: a number in it is NaN or infinite. Public bounds, weights and shifts must be "
        "finite; leave out the entries that have no bound, or state np.inf as their upper and "
        "-np.inf as their lower bound."
    )
