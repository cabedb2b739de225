"""Whether operators say what CVXPY says: values of r and membership of C at a few points.

Reading an expression by its spelling can go wrong in ways that no list of spellings rules out. What
was read is therefore compared with CVXPY's own values before it is used.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import cvxpy as cp
import numpy as np
import numpy.typing as npt

from cvxqop._cvxpy import SHARED, evaluate
from cvxqop.solve.rest.feasibility import ELEMENTWISE
from cvxqop.solve.rest.rest import Rest
from cvxqop.solve.rest.terms import dense

__all__ = ["Public", "agrees"]

Array = npt.NDArray[np.float64]

SEED = 20_260_101
SIZES = (0.03, 30.0, 1.0)
VALUE_TOLERANCE = 1e-9
POINT_TOLERANCE = 1e-6


class Public:
    """r and C at points, as CVXPY evaluates them; nothing is written into a variable.

    Parameters
    ----------
    variables : sequence of cp.Variable
        θ is their entries in order, each flattened in Fortran order.
    regulariser : cp.Expression or None
        r.
    constraints : sequence of cp.Constraint
        C, beside the attributes of the variables.
    """

    def __init__(
        self,
        variables: Sequence[cp.Variable],
        regulariser: cp.Expression | None,
        constraints: Sequence[cp.Constraint],
    ) -> None:
        self._variables, self._term = tuple(variables), regulariser
        self._constraints = tuple(constraints)

    def _values(self, theta: Array) -> dict[int, Array]:
        ends = np.cumsum([v.size for v in self._variables])[:-1]
        parts = np.split(theta, ends)
        return {
            v.id: part.reshape(v.shape, order="F")
            for v, part in zip(self._variables, parts, strict=True)
        }

    def value(self, theta: Array) -> float:
        """r(θ); NaN or infinite where r has no value."""
        if self._term is None:
            return 0.0
        with SHARED, np.errstate(all="ignore"):
            return float(_evaluated(self._term, self._values(theta)).item())

    def violation(self, theta: Array) -> tuple[float, float]:
        """The largest violation of a constraint, and the largest number that enters one."""
        values = self._values(theta)
        worst, size = 0.0, 0.0
        with SHARED, np.errstate(all="ignore"):
            for constraint in self._constraints:
                arguments = [_evaluated(argument, values) for argument in constraint.args]
                worst = max(worst, _violation(constraint, arguments))
                size = max(size, *map(_largest, arguments))
        for variable in self._variables:
            own = values[variable.id]
            worst = max(worst, _largest(dense(variable.project(own)) - own))
            for bound, side in zip(variable.attributes["bounds"] or (), (-1.0, 1.0), strict=False):
                # CVXPY projects onto bounds that are numbers only, not onto parameters.
                beyond = side * (own - np.asarray(getattr(bound, "value", bound), dtype=np.float64))
                worst = max(worst, float(np.max(beyond, initial=0.0)))
            size = max(size, _largest(own))
        return worst, size


def agrees(rest: Rest, public: Public) -> str:
    """Which part of a reading of r and C is wrong; empty where CVXPY agrees at every point tried.

    Values of r are compared up to the constant that a reading may leave out. A projection onto C
    must satisfy the constraints, and a point that is outside of what was read must violate one.
    """
    points = list(_points(rest.dimension))
    theirs = np.array([public.value(theta) for theta in points])
    ours = np.array([_value(rest, theta) for theta in points])
    size = np.abs(theirs) + np.abs(theirs[0]) + np.abs(ours) + np.abs(ours[0])
    if not np.all(np.isfinite(theirs)):
        return "regulariser"
    if not np.all(np.abs(theirs - theirs[0] - ours + ours[0]) <= VALUE_TOLERANCE * size):
        return "regulariser"
    # Projections may take many sweeps: fewer points, of each sign.
    for theta in points[len(points) // 2 :]:
        found = rest.project(theta)
        if not found.violation <= POINT_TOLERANCE * float(np.linalg.norm(found.point)):
            continue
        moved = theta - found.point
        far, size = public.violation(found.point + 0.5 * moved)
        near, _ = public.violation(found.point)
        outside = float(np.linalg.norm(moved)) > POINT_TOLERANCE * float(np.linalg.norm(theta))
        if not near <= POINT_TOLERANCE * size or (outside and not far > 0.0):
            return "constraints"
    return ""


def _value(rest: Rest, theta: Array) -> float:
    bend = 0.0 if rest.Q is None else 0.5 * float(theta @ (rest.Q @ theta))
    return bend + float(rest.q @ theta) + rest.value(theta)


def _points(dimension: int) -> Iterator[Array]:
    """The origin, then points of three sizes: of mixed signs, positive, negative."""
    generator = np.random.default_rng(SEED)
    yield np.zeros(dimension)
    for size in SIZES:
        for sign in (0.0, 1.0, -1.0):
            direction = generator.standard_normal(dimension)
            yield size * (sign * np.abs(direction) if sign else direction)


def _evaluated(expression: cp.Expression, values: dict[int, Array]) -> Array:
    try:
        return dense(evaluate(expression, values))
    except AttributeError:  # an atom without a numeric value of its own: a support function
        return np.full(expression.shape, np.nan)


def _violation(constraint: cp.Constraint, arguments: list[Array]) -> float:
    excess = ELEMENTWISE.get(type(constraint).__name__)
    if excess is not None:
        return _largest(np.maximum(excess(constraint, arguments, arguments)[0], 0.0))
    return _largest(constraint.copy([cp.Constant(a) for a in arguments]).violation())


def _largest(value: Array) -> float:
    """The largest absolute entry; NaN counts as infinite."""
    largest = np.max(np.abs(np.asarray(value, dtype=np.float64)), initial=0.0)
    return float(largest) if np.isfinite(largest) else float("inf")
