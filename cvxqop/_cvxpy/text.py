"""Text of an expression as it was written, without an entry of an array.

Where the number of records is private, the text is the same for any number of them, one included:
CVXPY builds products, norms and broadcasts of one row otherwise than of several, and here they are
brought to one form.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cvxqop._cvxpy.nodes import (
    exponent,
    given_name,
    has_variables,
    holds_records,
    is_leaf,
    kind,
    nodes,
    stretched,
)

__all__ = ["Shapes", "format_constraint", "format_expression", "format_shape"]

_RELATIONS = {"Inequality": "<=", "Equality": "==", "Zero": "==", "NonPos": "<=", "NonNeg": ">="}

# Numbers that a formula is made of. Any other number may have been computed from records.
_PLAIN_NUMBERS = frozenset({0.0, 0.25, 0.5, 1.0, 2.0, 3.0, 4.0})

# What CVXPY may make of a norm over records when there is one record, and when there are more.
_NORMS = frozenset({"norm1", "norm_inf", "pnorm", "sigma_max"})

Shapes = Mapping[Any, Sequence[int | str]]


def format_expression(
    node: Any, names: Mapping[Any, str], shapes: Shapes | None = None, hidden: bool = False
) -> str:
    """Text of an expression as it was written, arrays replaced by name and shape.

    ``names[leaf]`` names a private leaf; other constants become ``const(shape)``. ``shapes``, also
    by leaf, are the only ones that are written where they are given. ``hidden`` brings to
    one form what depends on how many records there are.
    """
    return _Writer(names, shapes, hidden).write(node, 0)


def format_constraint(
    constraint: Any, names: Mapping[Any, str], shapes: Shapes | None = None, hidden: bool = False
) -> str:
    """Text of a constraint, like `format_expression`."""
    symbol = _RELATIONS.get(type(constraint).__name__)
    sides = [format_expression(argument, names, shapes, hidden) for argument in constraint.args]
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

    def __init__(self, names: Mapping[Any, str], shapes: Shapes | None, hidden: bool) -> None:
        self.names, self.shapes, self.hidden = names, shapes, hidden

    def write(self, node: Any, level: int = 0) -> str:
        if isinstance(node, list):
            return f"[{', '.join(self.write(item) for item in node)}]"
        if is_leaf(node):
            return self.leaf(node)
        if holds_records(node):
            return str(node.describe(hidden=self.shapes is not None))
        name = kind(node)
        if name in ("promote", "broadcast", "conj") or (name == "reshape" and self.counted(node)):
            return self.write(node.args[0], level)
        row = self.stretched(node)
        if row is not None:
            return self.write(row, level)
        symbol = self.symbol(node, name)
        if symbol:
            text = self.operator(node, symbol)
            return f"({text})" if level else text
        if name in ("transpose", "index", "special_index"):
            return self.write(node.args[0], 1) + (".T" if name == "transpose" else "[...]")
        return self.call(node, name, self.shortened([self.write(side) for side in node.args]))

    def shortened(self, parts: list[str]) -> list[str]:
        """Parts without those that say the same as the one before, as the terms of a loop do."""
        kept = [p for p, before in zip(parts, [None, *parts], strict=False) if p != before]
        if self.hidden or len(parts) - len(kept) <= 1:
            return kept if self.hidden else parts
        return [*kept, "…"]

    def counted(self, node: Any) -> bool:
        """Whether records occur whose number is private."""
        return self.hidden and any(
            n in self.names or holds_records(n) or kind(n) == "special_index" for n in nodes(node)
        )

    def stretched(self, node: Any) -> Any:
        """The public row or column that is broadcast, or one of records to several outputs."""
        found = stretched(node)
        if found is None or any(side in self.names for side in node.args if side is not found):
            return None
        ones = node.args[1] if found is node.args[0] else node.args[0]
        return None if ones.size == 1 and self.counted(found) else found

    def symbol(self, node: Any, name: str) -> str:
        """Symbol of an operator; none for a call."""
        if name in ("multiply", "matmul") and self.counted(node):
            # Of one record, CVXPY makes a matrix product of what is an elementwise one of more.
            if any(not (self.counted(side) or has_variables(side)) for side in node.args):
                return "*"
            if node.ndim == 0 and not all(map(self.counted, node.args)):
                name = "multiply"
        if name == "multiply":
            return "*" if any(map(_is_number, node.args)) else ""
        return {"add": "+", "neg": "-", "matmul": "@", "divide": "/"}.get(name, "")

    def operator(self, node: Any, symbol: str) -> str:
        if symbol == "-":
            return "-" + self.write(node.args[0], 2)
        if symbol != "+":
            if symbol == "/" and self.divisor_is_hidden(node):
                return f"{self.write(node.args[0], 1)} / const"
            return f" {symbol} ".join(self.write(argument, 1) for argument in node.args)
        first, *others = self.shortened([self.summand(argument) for argument in node.args])
        return first + "".join(f" - {p[1:]}" if p.startswith("-") else f" + {p}" for p in others)

    def summand(self, node: Any) -> str:
        """A part of a sum, its sign included."""
        return "-" + self.write(node.args[0], 1) if kind(node) == "neg" else self.write(node)

    def divisor_is_hidden(self, node: Any) -> bool:
        """Whether a divisor may be n: in a mean, and of any sum over records."""
        if self.shapes is not None and kind(node.args[0]) == "sum":
            return True
        return self.counted(node.args[0]) and not has_variables(node.args[1])

    def call(self, node: Any, name: str, inner: list[str]) -> str:
        if name == "matmul":
            name = "multiply"
        if name == "reshape":
            inner = [inner[0]] + ([format_shape(node.shape)] if self.shapes is None else [])
        elif name == "quad_over_lin" and inner[1] == "1":
            name, inner = "sum_squares", inner[:1]
        elif name == "power" and exponent(node) == 2:
            name = "square"
        elif name in _NORMS and self.counted(node):
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
        known = leaf.shape if self.shapes is None else self.shapes.get(leaf)
        shape = "" if known is None else format_shape(known)
        if leaf in self.names:
            return self.names[leaf] + shape
        if kind(leaf) != "constant":
            return str(leaf.name())
        if leaf.ndim == 0:
            number = float(np.real(leaf._value.item()))
            return f"{number:g}" if abs(number) in _PLAIN_NUMBERS else "const"
        return (given_name(leaf) or "const") + shape


def _is_number(node: Any) -> bool:
    """Whether a factor is one number; an array of one entry counts as an array."""
    return bool(node.ndim == 0 or (kind(node) == "promote" and node.args[0].ndim == 0))
