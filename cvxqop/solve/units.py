"""The public rest in other units of θ: the tolerances of conic solvers are absolute.

With θ = τu an expression h is written as f · e(u), τ and f positive, such that e has numbers of
the order of u: a homogeneous atom passes its factor on, a sum takes that of its first
part. Powers of two change no digit, so that a problem in other units is the same problem.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import cvxpy as cp
import numpy as np

from cvxqop import _cvxpy
from cvxqop.solve.rest.finite import bounded
from cvxqop.solve.smooth.quadratic import Quadratic

__all__ = ["Rescaled", "power_of_two", "rescaled", "size_of"]

_FIRST_DEGREE = frozenset(
    {"neg", "sum", "reshape", "transpose", "index", "promote", "broadcast", "diag", "abs", "norm1"}
    | {"pnorm", "norm_inf", "normnuc", "sigma_max", "max", "min", "maximum", "minimum"}
    | {"lambda_max", "lambda_sum_largest", "sum_largest", "hstack", "vstack", "concatenate"}
    | {"cumsum", "cummax", "geomean", "geomeanapprox", "kl_div", "rel_entr"}
)
_BY_A_CONSTANT = {"quad_over_lin": 2, "quad_form": 2, "matrixfrac": 2, "dotsort": 1}
"""Degree in the first of two arguments; in both together it is one where the second moves too."""

_CONES = frozenset(
    {"PSD", "SOC", "NonNeg", "NonPos", "Zero", "Equality", "ExpCone", "PowCone3D", "PowConeND"}
)

ORDER = 8.0
"""Size of u: objectives are then above one, where tolerances on gaps are relative."""

Substitution = Mapping[int, Any]


class Rescaled(NamedTuple):
    """u = θ/τ, τ a power of two, with r and C written in u; r = factor · regulariser.

    ``auxiliary`` are the user's other variables, each with its own in the same unit.
    """

    unit: float
    variables: list[cp.Variable]
    auxiliary: dict[cp.Variable, cp.Variable]
    factor: float
    regulariser: cp.Expression | None
    constraints: list[cp.Constraint]

    def over(self, divisor: float) -> cp.Expression | None:
        """r / divisor."""
        return None if self.regulariser is None else self.regulariser * (self.factor / divisor)


def rescaled(
    size: float,
    variables: Sequence[cp.Variable],
    regulariser: cp.Expression | None,
    constraints: Sequence[cp.Constraint],
) -> Rescaled:
    """The rest with variables of order 8 where θ is of order ``size``; the user's stay untouched.

    Examples
    --------
    >>> import cvxpy as cp
    >>> theta = cp.Variable(2)
    >>> found = rescaled(1e6, [theta], 3 * cp.norm1(theta), [theta <= 2.0**21])
    >>> found.unit == 2.0**17, found.factor == 3 * 2.0**17
    (True, True)
    >>> found.variables[0].value = [8.0, 16.0]
    >>> float(found.regulariser.value), bool(found.constraints[0].value())
    (24.0, True)
    """
    with _cvxpy.SHARED:  # trees are copied and read, and CVXPY counts new variables
        return _rescaled(power_of_two(size / ORDER), variables, regulariser, constraints)


def _rescaled(
    unit: float,
    variables: Sequence[cp.Variable],
    regulariser: cp.Expression | None,
    constraints: Sequence[cp.Constraint],
) -> Rescaled:
    roots = [*([] if regulariser is None else [regulariser]), *constraints]
    found = {v.id: v for v in variables} | {v.id: v for r in roots for v in _cvxpy.variables(r)}
    if any(map(_keeps_variables, _cvxpy.holdings(roots).nodes)):
        others = {v: v for v in found.values() if all(v is not given for given in variables)}
        return Rescaled(1.0, list(variables), others, 1.0, regulariser, list(constraints))
    own = {key: _in_units(variable, unit) for key, variable in found.items()}
    inner = {id(variable): unit * own[key] for key, variable in found.items()}
    factor, r = (1.0, None) if regulariser is None else _scaled(regulariser, unit, inner)
    return Rescaled(
        unit,
        [own[v.id] for v in variables],
        {v: own[key] for key, v in found.items() if all(v is not given for given in variables)},
        factor,
        r,
        [_constraint(constraint, unit, inner) for constraint in bounded(constraints)],
    )


def _keeps_variables(node: Any) -> bool:
    """Whether a node keeps variables beside its arguments, which no rewriting reaches: the set of a
    support function, the function of a perspective, an indicator, a partial problem."""
    if not isinstance(node, cp.Expression):
        return False
    if _cvxpy.kind(node) in ("indicator", "partialproblem"):
        return True
    return any(isinstance(inner, cp.Variable) for inner in _cvxpy.aside(node))


def size_of(quadratic: Quadratic) -> float:
    """Size of the minimiser of a quadratic form and of its anchor; 1 where both are zero."""
    try:
        step = np.linalg.solve(quadratic.H, quadratic.g)
    except np.linalg.LinAlgError:  # singular to working precision: the solver will say so
        step = np.zeros_like(quadratic.g)
    sizes = np.abs(quadratic.anchor) + np.abs(step)
    size = float(sizes.max(initial=0.0))
    return size if 0.0 < size < np.inf else 1.0


def power_of_two(size: float) -> float:
    """The power of two next to a positive number, on the scale of logarithms."""
    return float(2.0 ** np.round(np.log2(max(size, 1e-300))))


def _in_units(variable: cp.Variable, unit: float) -> cp.Variable:
    """A variable with the attributes of another, its bounds divided by ``unit``."""
    attributes: dict[str, Any] = {
        name: value
        for name, value in variable.attributes.items()
        if value is not None and value is not False
    }
    if "bounds" in attributes:
        attributes["bounds"] = [bound * (1.0 / unit) for bound in attributes["bounds"]]
    return cp.Variable(variable.shape, variable.name(), **attributes)


def _scaled(node: Any, unit: float, inner: Substitution) -> tuple[float, Any]:
    """f and e with h(τu) = f · e(u)."""
    name = _cvxpy.kind(node)
    if not _cvxpy.has_variables(node):
        return 1.0, node
    if node.is_affine() and not any(_cvxpy.kind(n) == "cumsum" for n in _cvxpy.nodes(node)):
        # CVXPY gives a cumulative sum variables of its own, which have to be of the order of u.
        factor = unit * _slope(node)
        return factor, node.tree_copy(inner) * (1.0 / factor)
    if name == "add" or (name in _FIRST_DEGREE and not _cvxpy.kept_aside(node)):
        factor, arguments = _common(node.args, unit, inner)
        return factor, node.copy(arguments)
    if name in ("multiply", "matmul", "divide") and (number := _number(node)) is not None:
        factor, inside = _scaled(node.args[number[1]], unit, inner)
        return factor * abs(number[0]), inside if number[0] > 0 else -inside
    degree = _degree(node, name)
    if degree is None:
        return 1.0, node.tree_copy(inner)
    factor, inside = _scaled(node.args[0], unit, inner)
    power = float(np.float_power(factor, degree))
    if not 0.0 < power < np.inf:
        return 1.0, node.tree_copy(inner)
    if name == "huber":
        return power, cp.huber(inside, float(node.M.value) / factor)
    return power, node.copy([inside, *node.args[1:]])


def _slope(node: Any) -> float:
    """The order of the largest coefficient of an affine expression, a power of two."""
    if _cvxpy.is_leaf(node):
        return 1.0
    moving = [argument for argument in node.args if _cvxpy.has_variables(argument)]
    slope = max(map(_slope, moving), default=1.0)
    name = _cvxpy.kind(node)
    if name in ("multiply", "matmul", "divide") and len(moving) == 1:
        (constant,) = (argument for argument in node.args if argument is not moving[0])
        largest = float(abs(_cvxpy.evaluate(constant, {})).max()) if constant.size else 0.0
        size = power_of_two(largest) if 0.0 < largest < np.inf else 1.0
        slope = slope / size if name == "divide" else slope * size
    return slope


def _degree(node: Any, name: str) -> float | None:
    """k where an atom of τx, with its other numbers as they are (the M of a Huber function times
    τ), is τ^k times that of x; None where it is not known."""
    if name == "power":
        return _cvxpy.exponent(node)
    if name in _BY_A_CONSTANT and not _cvxpy.has_variables(node.args[1]):
        return _BY_A_CONSTANT[name]
    return {"huber": 2.0, "tr_inv": -1.0}.get(name)


def _common(nodes: Sequence[Any], unit: float, inner: Substitution) -> tuple[float, list[Any]]:
    """Several expressions with the factor of the first that has variables."""
    parts = [_scaled(node, unit, inner) for node in nodes]
    moving = (
        part[0] for part, node in zip(parts, nodes, strict=True) if _cvxpy.has_variables(node)
    )
    factor = next(moving)
    return factor, [e if own == factor else e * (own / factor) for own, e in parts]


def _number(node: Any) -> tuple[float, int] | None:
    """The number that a product or quotient multiplies with, not zero, and the place of the other
    factor."""
    divides = _cvxpy.kind(node) == "divide"
    for k in (1,) if divides else (0, 1):
        given, other = node.args[k], node.args[1 - k]
        stated = given.args[0] if _cvxpy.kind(given) in ("promote", "broadcast") else given
        if stated.size == 1 and not _cvxpy.has_variables(stated) and other.shape == node.shape:
            value = float(np.asarray(stated.value).reshape(-1)[0])
            return (1.0 / value if divides else value, 1 - k) if value else None
    return None


def _constraint(constraint: Any, unit: float, inner: Substitution) -> cp.Constraint:
    """The same set in u; a constraint that is positively homogeneous has its factor divided out."""
    name = type(constraint).__name__
    if name == "Inequality" and _cvxpy.has_variables(constraint.expr):
        return _scaled(constraint.expr, unit, inner)[1] <= 0
    if name in _CONES and all(argument.is_affine() for argument in constraint.args):
        arguments = [argument.tree_copy(inner) * (1.0 / unit) for argument in constraint.args]
        return constraint.copy(arguments)
    return constraint.tree_copy(inner)
