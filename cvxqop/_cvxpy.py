"""Every touch of CVXPY's internals: nodes (from `_nodes`), their text, the release written back.

Nothing here prints the entries of an array.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    is_elementwise,
    is_leaf,
    is_linear,
    is_sparse,
    kept_aside,
    kind,
    leaf_value,
    leaves,
    nodes,
    reduced_axes,
    source,
    variables,
)
from cvxqop._reverse import Tape

__all__ = [
    "Shapes",
    "Tape",
    "attributes",
    "evaluate",
    "exponent",
    "format_constraint",
    "format_expression",
    "format_shape",
    "given_name",
    "has_variables",
    "holds_records",
    "index_key",
    "is_elementwise",
    "is_leaf",
    "is_linear",
    "is_sparse",
    "kept_aside",
    "kind",
    "leaf_value",
    "leaves",
    "mark_optimal",
    "nodes",
    "reduced_axes",
    "source",
    "variables",
    "write_values",
]

_RELATIONS = {"Inequality": "<=", "Equality": "==", "Zero": "==", "NonPos": "<=", "NonNeg": ">="}

# Numbers that a formula is made of. Any other number may have been computed from records.
_PLAIN_NUMBERS = frozenset({0.0, 0.25, 0.5, 1.0, 2.0, 3.0, 4.0})


Shapes = Mapping[int, Sequence[int | str]]


def format_expression(node: Any, names: Mapping[int, str], shapes: Shapes | None = None) -> str:
    """Text of an expression as it was written, arrays replaced by name and shape.

    ``names[id(leaf)]`` names a leaf; other constants become ``const(shape)``. ``shapes``, also by
    ``id``, are the only ones that are written where they are given, for texts that must not say
    how many records there are.
    """
    return _Writer(names, shapes).write(node, 0)


def format_constraint(
    constraint: Any, names: Mapping[int, str], shapes: Shapes | None = None
) -> str:
    """Text of a constraint, like `format_expression`."""
    symbol = _RELATIONS.get(type(constraint).__name__)
    sides = [format_expression(argument, names, shapes) for argument in constraint.args]
    if symbol and len(sides) == 2:
        return f"{sides[0]} {symbol} {sides[1]}"
    if symbol and len(sides) == 1:
        return f"{sides[0]} {symbol} 0"
    return f"{type(constraint).__name__}({', '.join(sides)})"


def format_shape(shape: Sequence[int | str]) -> str:
    """(n,3) for a shape."""
    sides = [str(side) for side in shape]
    return "(" + ",".join(sides) + ("," if len(sides) == 1 else "") + ")"


class _Writer:
    """Formats one expression; ``level`` is 0 in brackets or a sum, 1 in a product, 2 negated."""

    def __init__(self, names: Mapping[int, str], shapes: Shapes | None) -> None:
        self.names, self.shapes = names, shapes

    def write(self, node: Any, level: int = 0) -> str:
        if isinstance(node, list):
            return f"[{', '.join(self.write(item) for item in node)}]"
        if is_leaf(node):
            return self.leaf(node)
        if holds_records(node):
            return str(node.describe(hidden=self.shapes is not None))
        name = kind(node)
        if name in ("promote", "broadcast", "conj"):
            return self.write(node.args[0], level)
        if name in ("add", "neg", "matmul", "divide") or (name == "multiply" and _scaling(node)):
            text = self.operator(node, name)
            return f"({text})" if level else text
        if name in ("transpose", "index"):
            return self.write(node.args[0], 1) + (".T" if name == "transpose" else "[...]")
        return self.call(node, name, [self.write(argument) for argument in node.args])

    def operator(self, node: Any, name: str) -> str:
        if name == "neg":
            return "-" + self.write(node.args[0], 2)
        if name != "add":
            symbol = {"matmul": "@", "divide": "/", "multiply": "*"}[name]
            if self.shapes is not None and name == "divide" and kind(node.args[0]) == "sum":
                return f"{self.write(node.args[0], 1)} / const"  # in a mean, n
            return f" {symbol} ".join(self.write(argument, 1) for argument in node.args)
        text = self.write(node.args[0])
        for argument in node.args[1:]:
            if kind(argument) == "neg":
                text += " - " + self.write(argument.args[0], 1)
            else:
                part = self.write(argument)
                text += f" - {part[1:]}" if part.startswith("-") else f" + {part}"
        return text

    def call(self, node: Any, name: str, inner: list[str]) -> str:
        if name == "reshape":
            inner = [inner[0]] + ([format_shape(node.shape)] if self.shapes is None else [])
        elif name == "quad_over_lin" and inner[1] == "1":
            name, inner = "sum_squares", inner[:1]
        elif name == "power" and exponent(node) == 2:
            name = "square"
        elif (
            self.shapes is not None
            and name in ("norm1", "norm_inf", "pnorm")
            and "(n," in inner[0]  # over records: of one CVXPY makes a norm1, whatever was written
        ):
            name = "norm"
        elif name in ("power", "pnorm"):
            name, p = {"pnorm": "norm"}.get(name, name), exponent(node)
            inner = [inner[0], f"{p:g}" if p in _PLAIN_NUMBERS else "const"]
        elif name == "norm1" and node.args[0].size == 1:
            name, inner = "norm", [*inner, "2"]  # CVXPY makes it of any norm of one number
        elif name == "huber":
            inner = [inner[0], self.write(node.M)]
        elif name == "maximum" and len(inner) == 2 and inner[1] == "0":
            name, inner = "pos", inner[:1]
        return f"{name}({', '.join(inner)})"

    def leaf(self, leaf: Any) -> str:
        known = leaf.shape if self.shapes is None else self.shapes.get(id(leaf))
        shape = "" if known is None else format_shape(known)
        if id(leaf) in self.names:
            return self.names[id(leaf)] + shape
        if kind(leaf) != "constant":
            return str(leaf.name())
        if leaf.ndim == 0:
            number = float(np.real(leaf._value.item()))
            return f"{number:g}" if abs(number) in _PLAIN_NUMBERS else "const"
        return (given_name(leaf) or "const") + shape


def _scaling(node: Any) -> bool:
    """Whether a product has a number as a factor; an array of one entry counts as an array."""
    return any(argument.ndim == 0 or kind(argument) == "promote" for argument in node.args)


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
