"""Every touch of CVXPY's internals: kinds of nodes, leaves, values without side effects, names.

The rest of the library asks ``kind(node)`` and compares strings. Nothing here sets a value on a
user's object, and nothing here prints the entries of an array.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import cvxpy as cp
import numpy as np
import scipy.sparse as sp
from cvxpy.atoms.affine.add_expr import AddExpression
from cvxpy.atoms.affine.binary_operators import DivExpression, MulExpression, multiply
from cvxpy.atoms.affine.broadcast_to import broadcast_to
from cvxpy.atoms.affine.conj import conj
from cvxpy.atoms.affine.diag import diag_vec
from cvxpy.atoms.affine.index import index
from cvxpy.atoms.affine.promote import Promote
from cvxpy.atoms.affine.reshape import reshape
from cvxpy.atoms.affine.sum import Sum
from cvxpy.atoms.affine.transpose import transpose
from cvxpy.atoms.affine.unary_operators import NegExpression
from cvxpy.atoms.elementwise.abs import abs as abs_atom
from cvxpy.atoms.elementwise.huber import huber
from cvxpy.atoms.elementwise.logistic import logistic
from cvxpy.atoms.elementwise.maximum import maximum
from cvxpy.atoms.elementwise.power import Power
from cvxpy.atoms.pnorm import Pnorm
from cvxpy.atoms.quad_over_lin import quad_over_lin

__all__ = [
    "attributes",
    "evaluate",
    "exponent",
    "format_constraint",
    "format_expression",
    "given_name",
    "has_variables",
    "holds_records",
    "index_key",
    "is_leaf",
    "is_linear",
    "is_sparse",
    "kind",
    "leaf_value",
    "leaves",
    "mark_optimal",
    "nodes",
    "variables",
    "write_values",
]

# multiply derives from MulExpression, so it comes first; bases cover their approximations.
_KINDS: tuple[tuple[type, str], ...] = (
    (cp.Variable, "variable"),
    (cp.Parameter, "parameter"),
    (cp.Constant, "constant"),
    (AddExpression, "add"),
    (NegExpression, "neg"),
    (multiply, "multiply"),
    (MulExpression, "matmul"),
    (DivExpression, "divide"),
    (Promote, "promote"),
    (broadcast_to, "broadcast"),
    (reshape, "reshape"),
    (transpose, "transpose"),
    (conj, "conj"),
    (diag_vec, "diag"),
    (index, "index"),
    (Sum, "sum"),
    (Power, "power"),
    (Pnorm, "pnorm"),
    (abs_atom, "abs"),
    (maximum, "maximum"),
    (huber, "huber"),
    (logistic, "logistic"),
    (quad_over_lin, "quad_over_lin"),
)

_LINEAR = frozenset(
    {"add", "neg", "multiply", "matmul", "divide", "promote", "broadcast", "reshape"}
    | {"transpose", "conj", "diag", "index", "sum"}
)

_CLASS_NAMES = {"QuadForm": "quad_form", "NormInf": "norm_inf", "GLMLoss": "glm_loss"}

_RELATIONS = {"Inequality": "<=", "Equality": "==", "Zero": "==", "NonPos": "<=", "NonNeg": ">="}

# Numbers that a formula is made of. Any other number may have been computed from records.
_PLAIN_NUMBERS = frozenset({0.0, 0.25, 0.5, 1.0, 2.0, 3.0, 4.0})


def kind(node: Any) -> str:
    """Name of the kind of an expression; the class name in lower case where it has none here."""
    for cls, name in _KINDS:
        if isinstance(node, cls):
            return name
    return _CLASS_NAMES.get(type(node).__name__, type(node).__name__.lower())


def is_sparse(array: Any) -> bool:
    """Whether an array is a SciPy sparse matrix or array."""
    return bool(sp.issparse(array))


def nodes(node: Any) -> Iterator[Any]:
    """Nodes of an expression, an objective or a constraint in order of appearance, once each."""
    seen: set[int] = set()
    stack = [node]
    while stack:
        current = stack.pop()
        if id(current) in seen:
            continue
        seen.add(id(current))
        yield current
        if not is_leaf(current):
            stack.extend(reversed(current.args))


def is_leaf(node: Any) -> bool:
    """Whether a node is a variable, a constant or a parameter."""
    return isinstance(node, (cp.Variable, cp.Constant, cp.Parameter))


def leaves(node: Any) -> Iterator[Any]:
    """Leaves in order of appearance, once each."""
    return (current for current in nodes(node) if is_leaf(current))


def holds_records(node: Any) -> bool:
    """Whether a node is a term that keeps its records outside CVXPY."""
    return bool(getattr(node, "holds_records", False))


def variables(node: Any) -> list[cp.Variable]:
    """Variables in order of appearance."""
    return [leaf for leaf in leaves(node) if kind(leaf) == "variable"]


def has_variables(node: Any) -> bool:
    """Whether a variable occurs. (CVXPY's ``is_constant`` calls every empty shape constant.)"""
    return any(kind(leaf) == "variable" for leaf in leaves(node))


def is_linear(node: Any) -> bool:
    """Whether only sums, products, selections and rearrangements occur; reads no array."""
    stack = [node]
    while stack:
        current = stack.pop()
        if is_leaf(current):
            continue
        if kind(current) not in _LINEAR:
            return False
        stack.extend(current.args)
    return True


def attributes(variable: Any) -> tuple[str, ...]:
    """Names of the attributes that a variable was created with, such as nonneg."""
    return tuple(
        name
        for name, value in variable.attributes.items()
        if value is not None and value is not False and not (np.ndim(value) and not len(value))
    )


def leaf_value(leaf: Any) -> Any:
    """Array held by a constant or parameter, not copied; None for a parameter without value."""
    if kind(leaf) == "constant":
        return leaf._value
    return leaf.value_sparse if leaf.attributes.get("sparsity") else leaf.value


def given_name(leaf: Any) -> str | None:
    """Name of a parameter, or the one that a constant was given; never a constant's entries."""
    name = leaf._name if kind(leaf) == "constant" else leaf.name()
    return name if isinstance(name, str) else None


def exponent(node: Any) -> float:
    """Exponent of a power or order of a p-norm."""
    p = node.p
    return float(p.value) if hasattr(p, "value") else float(p)


def index_key(node: Any) -> tuple[Any, ...]:
    """Slices of an indexing node, one per axis of its argument."""
    return tuple(node.key)


def evaluate(node: Any, values: Mapping[int, Any]) -> Any:
    """Value of an expression with ``values[variable.id]`` in place of the variables' own values."""
    name = kind(node)
    if name == "variable":
        return values[node.id]
    if name in ("constant", "parameter"):
        return leaf_value(node)
    arguments = [evaluate(argument, values) for argument in node.args]
    if name not in ("add", "matmul", "multiply"):
        arguments = [a.toarray() if is_sparse(a) else np.asarray(a) for a in arguments]
    return node.numeric(arguments)


def format_expression(node: Any, names: Mapping[int, str]) -> str:
    """Text of an expression as it was written, arrays replaced by name and shape.

    ``names[id(leaf)]`` names a leaf; other constants become ``const(shape)``.
    """
    return _format(node, names, 0)


def format_constraint(constraint: Any, names: Mapping[int, str]) -> str:
    """Text of a constraint, like `format_expression`."""
    symbol = _RELATIONS.get(type(constraint).__name__)
    sides = [format_expression(argument, names) for argument in constraint.args]
    if symbol and len(sides) == 2:
        return f"{sides[0]} {symbol} {sides[1]}"
    if symbol and len(sides) == 1:
        return f"{sides[0]} {symbol} 0"
    return f"{type(constraint).__name__}({', '.join(sides)})"


def _format(node: Any, names: Mapping[int, str], level: int) -> str:
    """``level``: 0 inside brackets or a sum, 1 as an operand of a product, 2 of a negation."""
    name = kind(node)
    shape = _shape(node)
    if is_leaf(node):
        return _format_leaf(node, names)
    if holds_records(node):
        return str(node.written)
    inner = [_format(argument, names, 0) for argument in node.args]
    if name in ("promote", "broadcast", "conj"):
        return _format(node.args[0], names, level)
    if name == "add":
        text = inner[0]
        for argument in node.args[1:]:
            if kind(argument) == "neg":
                text += " - " + _format(argument.args[0], names, 1)
            else:
                part = _format(argument, names, 0)
                text += f" - {part[1:]}" if part.startswith("-") else f" + {part}"
        return f"({text})" if level else text
    if name == "neg":
        text = "-" + _format(node.args[0], names, 2)
        return f"({text})" if level else text
    if name in ("matmul", "divide") or (name == "multiply" and _scaling(node)):
        operator = {"matmul": "@", "divide": "/", "multiply": "*"}[name]
        text = f" {operator} ".join(_format(argument, names, 1) for argument in node.args)
        return f"({text})" if level else text
    if name == "transpose":
        return _format(node.args[0], names, 1) + ".T"
    if name == "index":
        return _format(node.args[0], names, 1) + "[...]"
    if name == "reshape":
        return f"reshape({inner[0]}, {shape})"
    if name == "quad_over_lin":
        if inner[1] == "1":
            return f"sum_squares({inner[0]})"
        return f"quad_over_lin({inner[0]}, {inner[1]})"
    if name == "power":
        p = exponent(node)
        if p == 2:
            return f"square({inner[0]})"
        return f"power({inner[0]}, {p:g})" if p in _PLAIN_NUMBERS else f"power({inner[0]}, const)"
    if name == "pnorm":
        p = exponent(node)
        return f"norm({inner[0]}, {p:g})" if p in _PLAIN_NUMBERS else f"norm({inner[0]}, const)"
    if name == "huber":
        return f"huber({inner[0]}, {_format(node.M, names, 0)})"
    if name == "maximum" and len(inner) == 2 and inner[1] == "0":
        return f"pos({inner[0]})"
    return f"{name}({', '.join(inner)})"


def _scaling(node: Any) -> bool:
    return (
        any(argument.size == 1 or kind(argument) == "promote" for argument in node.args)
        or node.size == 1
    )


def _shape(node: Any) -> str:
    return "(" + ",".join(str(side) for side in node.shape) + ("," if node.ndim == 1 else "") + ")"


def _format_leaf(leaf: Any, names: Mapping[int, str]) -> str:
    if id(leaf) in names:
        return names[id(leaf)] + _shape(leaf)
    name = kind(leaf)
    if name != "constant":
        return str(leaf.name())
    if leaf.size == 1 and leaf.ndim == 0:
        number = float(np.real(leaf._value.item()))
        return f"{number:g}" if abs(number) in _PLAIN_NUMBERS else "const"
    return (given_name(leaf) or "const") + _shape(leaf)


def write_values(values: Mapping[cp.Variable, Any]) -> None:
    """Write a release into the variables, each projected onto its own attributes first."""
    for variable, value in values.items():
        variable.save_value(variable.project(np.asarray(value, dtype=np.float64)))


def mark_optimal(problem: cp.Problem) -> None:
    """Status "optimal"; the objective's value and the duals, which are not private, stay None."""
    released = {variable: variable.value for variable in problem.variables()}
    problem._clear_solution()
    for variable, value in released.items():
        variable.save_value(value)
    problem._status = cp.OPTIMAL
