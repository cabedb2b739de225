"""Whether a solver's answer is finite and lies in C, by values alone.

Nothing is written into a variable, and the words of a refusal hold no number: the answer is a
release only once it has passed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import cvxpy as cp
import numpy as np
import numpy.typing as npt

from cvxqop._cvxpy import SHARED, evaluate, is_leaf, is_linear, is_sparse, kind
from cvxqop.errors import ProblemError
from cvxqop.solve.rest.terms import dense

__all__ = ["ABSOLUTE", "ELEMENTWISE", "RELATIVE", "check_judged", "domain", "fault"]

Array = npt.NDArray[np.float64]
Excess = Callable[..., tuple[Array, Array]]

RELATIVE, ABSOLUTE = 1e-5, 1e-8
"""An answer is feasible if every constraint is violated by RELATIVE times its scale + ABSOLUTE at
most. The scale of an affine side is Σ_j |a_ij| ‖θ‖_∞ + |b_i|, that of another |its value| + ‖θ‖_∞,
for the errors of a solver are relative to the whole of θ. Solvers run at 1e-10 where they can."""


UNKNOWN = "cannot be checked against a constraint"


def check_judged(
    variables: Sequence[cp.Variable], regulariser: cp.Expression | None, constraints: Sequence[Any]
) -> None:
    """Refuse what no answer could be checked against, before anything is spent.

    Raises
    ------
    ProblemError
        Names the class of a constraint that is not known here.
    """
    for constraint in constraints:
        if type(constraint).__name__ not in _EXCESS:
            raise ProblemError(
                f"constraints: an answer cannot be checked against {type(constraint).__name__}. "
                f"Use one of {', '.join(sorted(_EXCESS))}, or an atom of CVXPY in an inequality."
            )
    origin = {variable: np.zeros(variable.shape) for variable in variables}
    if fault(origin, regulariser, constraints) == UNKNOWN:
        raise ProblemError(
            "constraints: CVXPY cannot evaluate a constraint, or the domain of the regulariser, at "
            "a point, so that no answer could be checked. Write it with other atoms, and a partial "
            "problem as a part of this one."
        )


def fault(
    values: Mapping[cp.Variable, Any], regulariser: cp.Expression | None, constraints: Sequence[Any]
) -> str:
    """What is wrong with an answer, in words without numbers; empty if nothing is.

    Parameters
    ----------
    values : mapping {variable: array}
        The answer, for every variable of the regulariser and the constraints.
    regulariser : cp.Expression or None
        r, whose domain is a constraint too.
    constraints : sequence of cp.Constraint
        C.
    """
    for variable, value in values.items():
        if np.shape(value) != variable.shape:
            return "is of another shape than its variable"
        if not np.all(np.isfinite(value)):
            return "is not finite"
    found = {variable.id: value for variable, value in values.items()}
    try:
        with SHARED:
            implied = [] if regulariser is None else domain(regulariser)
            for variable in values:
                implied += _attribute_constraints(variable)
            held = [_holds(constraint, found) for constraint in (*constraints, *implied)]
    except Exception:  # its words may hold the answer
        return UNKNOWN
    return "" if all(held) else "violates a constraint"


def domain(expression: Any) -> list[Any]:
    """Constraints that say where an expression is finite; those of an indicator are its own.

    Raises
    ------
    ValueError
        It holds a partial problem, whose domain nothing but a solve can tell.
    """
    if is_leaf(expression):
        return []
    if kind(expression) == "indicator":
        return list(expression.args)
    if kind(expression) == "partialproblem":
        raise ValueError("partial problem")
    inner = [constraint for argument in expression.args for constraint in domain(argument)]
    return [*expression._domain(), *inner]


def _holds(constraint: Any, values: Mapping[int, Any]) -> bool:
    """Whether a constraint is violated by no more than the tolerance; NaN is a violation."""
    size = max((float(np.max(np.abs(v), initial=0.0)) for v in values.values()), default=0.0)
    largest = {key: np.full(np.shape(value), size) for key, value in values.items()}
    with np.errstate(all="ignore"):
        sides = [dense(evaluate(side, values)) for side in constraint.args]
        scales = [
            dense(_magnitude(side, largest)) if is_linear(side) else np.abs(value) + size
            for side, value in zip(constraint.args, sides, strict=True)
        ]
        excess, scale = _EXCESS[type(constraint).__name__](constraint, sides, scales)
        return bool(np.all(excess <= RELATIVE * scale + ABSOLUTE))


def _magnitude(node: Any, largest: Mapping[int, Array]) -> Any:
    """Σ_j |a_ij| |x_j| + |b_i| of an affine expression, for bounds on |x|."""
    if is_leaf(node):
        return abs(evaluate(node, largest))
    arguments = [_magnitude(argument, largest) for argument in node.args]
    if kind(node) == "neg":
        return arguments[0]
    sparse = kind(node) == "add" and all(map(is_sparse, arguments))
    if not sparse and kind(node) not in ("matmul", "multiply"):
        arguments = [dense(a) for a in arguments]
    return node.numeric(arguments)


def _attribute_constraints(variable: cp.Variable) -> list[Any]:
    """What the attributes of a variable say, as constraints."""
    active = {k: v for k, v in variable.attributes.items() if v is not None and v is not False}
    found: list[Any] = []
    if active.keys() & {"nonneg", "pos"}:
        found.append(variable >= 0)
    if active.keys() & {"nonpos", "neg"}:
        found.append(variable <= 0)
    if active.keys() & {"symmetric", "PSD", "NSD"}:
        found.append(variable == variable.T)
    if "PSD" in active:
        found.append(variable >> 0)
    if "NSD" in active:
        found.append(variable << 0)
    if "diag" in active:
        found.append(variable == cp.diag(cp.diag(variable)))
    if "bounds" in active:
        lower, upper = active["bounds"]
        found += [] if lower is None else [variable >= lower]
        found += [] if upper is None else [variable <= upper]
    return found


def _semidefinite(_: Any, sides: list[Array], scales: list[Array]) -> tuple[Array, Array]:
    """−λ_min of each matrix, and its largest row sum."""
    M = sides[0]
    if not np.all(np.isfinite(M)):
        return np.array(np.nan), np.array(0.0)
    least = np.linalg.eigvalsh(0.5 * (M + np.swapaxes(M, -1, -2))).min(axis=-1)
    return -least, scales[0].sum(axis=-1).max(axis=-1)


def _second_order(cone: Any, sides: list[Array], scales: list[Array]) -> tuple[Array, Array]:
    """‖x‖₂ − t, a cone for each entry of t along the other axis of x."""
    axis = cone.axis if sides[1].ndim > 1 else None
    lengths = [np.sqrt(np.sum(np.square(x), axis=axis)) for x in (sides[1], scales[1])]
    t = [side.reshape(lengths[0].shape, order="F") for side in (sides[0], scales[0])]
    return lengths[0] - t[0], lengths[1] + t[1]


def _exponential(_: Any, sides: list[Array], scales: list[Array]) -> tuple[Array, Array]:
    """y exp(x/y) ≤ z, y > 0 and its closure: the least move of x or z alone that repairs it."""
    x, y, z = sides
    inside, top = np.maximum(y, 0.0), np.maximum(z, 0.0)
    by_z = np.where(inside > 0.0, inside * np.exp(x / inside), np.where(x > 0.0, np.inf, 0.0)) - z
    by_x = x - np.where(inside > 0.0, inside * np.log(top / inside), 0.0)
    excess = np.maximum(np.maximum(-y, -z), np.minimum(by_z, by_x))
    return excess, np.maximum.reduce(scales)


def _power(W: Array, powers: Array, z: Array) -> Array:
    """Π W_i^{α_i} ≥ |z|, W ≥ 0: the least move of z or of one W_i that repairs it."""
    inside, z = np.maximum(W, 0.0), np.abs(z)
    repairs = [z - np.prod(inside**powers, axis=0)]
    for i in range(len(W)):
        others = np.prod(np.delete(inside**powers, i, axis=0), axis=0)
        repairs.append((z / others) ** (1.0 / powers[i]) - W[i])
    return np.asarray(np.maximum(np.max(-W, axis=0), np.fmin.reduce(repairs)))


def _power_3d(cone: Any, sides: list[Array], scales: list[Array]) -> tuple[Array, Array]:
    W, alpha = np.stack(sides[:2]), dense(cone.alpha.value).reshape(sides[0].shape)
    powers = np.stack([alpha, 1.0 - alpha])
    return _power(W, powers, sides[2]), np.maximum.reduce(scales)


def _power_nd(cone: Any, sides: list[Array], scales: list[Array]) -> tuple[Array, Array]:
    alpha = dense(cone.alpha.value)
    W, S = (np.moveaxis(x, cone.axis, 0) if x.ndim > 1 else x for x in (sides[0], scales[0]))
    powers = np.moveaxis(alpha, cone.axis, 0) if alpha.ndim > 1 else alpha
    z = sides[1].reshape(W.shape[1:], order="F")
    return _power(W, powers, z), np.maximum(S.max(axis=0), scales[1].reshape(z.shape, order="F"))


ELEMENTWISE: Mapping[str, Excess] = {
    "Inequality": lambda _, sides, scales: (sides[0] - sides[1], scales[0] + scales[1]),
    "Equality": lambda _, sides, scales: (np.abs(sides[0] - sides[1]), scales[0] + scales[1]),
    "Zero": lambda _, sides, scales: (np.abs(sides[0]), scales[0]),
    "NonPos": lambda _, sides, scales: (sides[0], scales[0]),
    "NonNeg": lambda _, sides, scales: (-sides[0], scales[0]),
}
"""Constraints whose violation is a difference, entry by entry."""

_EXCESS: Mapping[str, Excess] = {
    **ELEMENTWISE,
    "PSD": _semidefinite,
    "SOC": _second_order,
    "ExpCone": _exponential,
    "PowCone3D": _power_3d,
    "PowConeND": _power_nd,
}
