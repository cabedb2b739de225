"""Every touch of CVXPY's internals: nodes (from `_nodes`), their text, the release written back.

Nothing here prints the entries of an array.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import cvxpy as cp
import numpy as np

from cvxqop._nodes import (
    attributes,
    evaluate,
    exponent,
    given_name,
    has_variables,
    holds_records,
    index_key,
    is_leaf,
    is_linear,
    is_sparse,
    kind,
    leaf_value,
    leaves,
    nodes,
    source,
    variables,
)

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
    "source",
    "variables",
    "write_values",
]

_RELATIONS = {"Inequality": "<=", "Equality": "==", "Zero": "==", "NonPos": "<=", "NonNeg": ">="}

# Numbers that a formula is made of. Any other number may have been computed from records.
_PLAIN_NUMBERS = frozenset({0.0, 0.25, 0.5, 1.0, 2.0, 3.0, 4.0})


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
