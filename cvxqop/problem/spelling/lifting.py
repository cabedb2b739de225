"""From expressions that are alike, one a record, to one expression with a slice a record."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import cvxpy as cp
import numpy as np

from cvxqop import _cvxpy
from cvxqop.problem.spelling.stacks import Stacks

__all__ = ["Lifter", "NotLifted", "Signatures", "one_a_record"]

_ONE_NUMBER = ("reshape", "transpose", "conj", "sum")
_ABSOLUTE = ("norm1", "norm_inf", "pnorm", "sigma_max", "abs")


class NotLifted(Exception):
    """The expressions are not known to be slices of one expression."""


class Signatures:
    """What two expressions have in common that differ in the numbers of a record alone."""

    def __init__(self) -> None:
        self._numbers: dict[Any, int] = {}

    def of(self, node: Any) -> Any:
        """Equal for expressions that are alike."""
        if _cvxpy.kind(node) == "constant":
            return ("constant", node.shape)
        if _cvxpy.is_leaf(node):
            return self._number(node)
        if _cvxpy.kind(node) == "index":
            return ("index", node.shape, self.of(node.args[0]))
        data = _cvxpy.plain_data(node)
        if data is None or not all(isinstance(argument, cp.Expression) for argument in node.args):
            return self._number(node)
        own = (type(node).__name__, node.shape, data)
        return (*own, *map(self.of, node.args))

    def _number(self, node: Any) -> int:
        return self._numbers.setdefault(node, len(self._numbers))


class Lifter:
    """Lifts alike expressions: their axis of the records is the first one."""

    def __init__(self, stacks: Stacks) -> None:
        self._stacks = stacks

    def lift(self, nodes: Sequence[Any]) -> tuple[Any, bool]:
        """One expression of shape (n, …) for n of shape (…), and True; False beside one of them
        where they are all the same.

        Raises
        ------
        NotLifted
            If there is none.
        """
        first, kind = nodes[0], _cvxpy.kind(nodes[0])
        if all(node is first for node in nodes):
            return first, False
        if kind == "constant":
            return self._constants(nodes)
        if kind == "index":
            return self._rows(nodes)
        parts = [self.lift(own) for own in zip(*(node.args for node in nodes), strict=True)]
        if not any(own for _, own in parts):
            return first, False
        lifted = self._made(first, kind, [part for part, _ in parts], [own for _, own in parts])
        if lifted is None or lifted.shape != (len(nodes), *first.shape):
            raise NotLifted
        return lifted, True

    def _constants(self, nodes: Sequence[Any]) -> tuple[Any, bool]:
        values = [_cvxpy.leaf_value(node) for node in nodes]
        if nodes[0].ndim > 1 or any(map(_cvxpy.is_sparse, values)):
            raise NotLifted
        rows = np.stack([np.asarray(value).reshape(nodes[0].shape) for value in values])
        found = self._stacks.find(rows)
        if found is not None:
            return found, True
        if np.all(rows == rows[:1]):
            return nodes[0], False
        raise NotLifted

    def _rows(self, nodes: Sequence[Any]) -> tuple[Any, bool]:
        """Rows of one array, all of them in order, or one entry for all."""
        whole, keys = nodes[0].args[0], [_cvxpy.index_key(node) for node in nodes]
        if all(
            node.args[0] is whole and str(k) == str(keys[0])
            for node, k in zip(nodes, keys, strict=True)
        ):
            return nodes[0], False
        if any(node.args[0] is not whole for node in nodes) or nodes[0].ndim != whole.ndim - 1:
            raise NotLifted
        side = whole.shape[0]
        picked = [range(side)[key[0]] for key in keys]
        rest = {tuple(map(str, key[1:])) for key in keys}
        if len(nodes) != side or [list(p) for p in picked] != [[i] for i in range(side)]:
            raise NotLifted
        others = zip(whole.shape[1:], keys[0][1:], strict=True)
        if len(rest) != 1 or not all(len(range(s)[key]) == s for s, key in others):
            raise NotLifted
        return whole, True

    def _made(self, node: Any, kind: str, parts: list[Any], own: list[bool]) -> Any:
        """The node over all records; None where that is not known."""
        if kind == "matmul":
            return _product(parts, own)
        if kind in ("multiply", "divide", "add"):
            return _operation(kind, parts)
        if kind == "neg":
            return -parts[0]
        if _cvxpy.is_elementwise(node):
            return _cvxpy.rebuilt(node, parts)
        inner = parts[0]
        if kind in ("promote", *_ONE_NUMBER) and node.args[0].size == 1 == node.size:
            return one_a_record(inner, node.ndim)
        if kind in ("quad_over_lin", *_ABSOLUTE) and node.args[0].size == 1:
            flat = one_a_record(inner, node.ndim)
            return cp.abs(flat) if kind in _ABSOLUTE else _over(cp.square(flat), parts[1])
        if getattr(node, "axis", 0) is not None or node.ndim or inner.ndim != 2:
            return None
        if kind == "pnorm" and _cvxpy.exponent(node) == 2:
            return cp.norm(inner, 2, axis=1)
        if kind == "quad_over_lin":
            return _over(cp.sum(cp.square(inner), axis=1), parts[1])
        atoms = {"sum": cp.sum, "log_sum_exp": cp.log_sum_exp, "max": cp.max, "norm1": cp.norm1}
        return atoms[kind](inner, axis=1) if kind in atoms else None


def one_a_record(node: Any, ndim: int) -> Any:
    """(n,) or (n, 1) from one number a record."""
    n = node.shape[0]
    shape = (n, 1) if ndim else (n,)
    while _cvxpy.kind(node) == "reshape" and node.shape != shape:
        node = node.args[0]
    return node if node.shape == shape else cp.reshape(node, shape, order="F")


def _over(node: Any, divisor: Any) -> Any:
    return node if divisor.is_constant() and divisor.value == 1.0 else node / divisor


def _operation(kind: str, parts: list[Any]) -> Any:
    if kind == "multiply":
        return cp.multiply(*parts)
    if kind == "divide":
        return parts[0] / parts[1]
    total = parts[0]
    for part in parts[1:]:
        total = total - part.args[0] if _cvxpy.kind(part) == "neg" else total + part
    return total


def _product(parts: list[Any], own: list[bool]) -> Any:
    """x_i @ w from X @ w, on either side."""
    left, right = parts
    if all(own):
        same = left.ndim == right.ndim == 2
        return cp.sum(cp.multiply(left, right), axis=1) if same else None
    if own[0]:
        return left @ right if left.ndim == 2 else None
    if right.ndim != 2:
        return None
    return right @ (left if left.ndim == 1 else left.T)
