"""What CVXPY's atoms do to functions of one number.

Each table is by kind of node: ``ELEMENTWISE`` gives a function of entries, ``REDUCTIONS`` one of
a list of entries, ``SHAPING`` one of whole arrays.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from cvxqop import _cvxpy
from cvxqop.problem.losses.phi import compose
from cvxqop.problem.losses.phi.piecewise import Piecewise, exact
from cvxqop.problem.losses.phi.sheet import Sheet, function_array, of_one_record
from cvxqop.problem.losses.phi.smooth import Unread

__all__ = ["ADDING", "ADDITIVE", "ELEMENTWISE", "REDUCTIONS", "SCALING", "SHAPING"]

ADDITIVE = frozenset({"add", "neg"})
"""Entrywise atoms that of sums over the records make one."""

SCALING = frozenset({"multiply", "divide"})
"""Entrywise atoms that of such a sum and a number make one."""

ADDING = frozenset({"sum", "quad_over_lin", "norm1"})
"""Reductions that are sums over what they run over."""

_COMBINES = "combines several records"


def _function(value: Any) -> Piecewise:
    return value if isinstance(value, Piecewise) else Piecewise.number(value)


def _times(a: Any, b: Any) -> Any:
    return a * b if isinstance(a, Piecewise) else b * a


def _divided(a: Any, b: Any) -> Any:
    if isinstance(b, Piecewise):
        return _times(compose.power(b, -1.0), a)
    if b == 0.0:
        raise Unread("divides by zero")
    return a * (1 / exact(b))


def _relative_entropy(x: Any, y: Any) -> Piecewise:
    """x log(x/y), one of both a number."""
    if isinstance(x, Piecewise) and isinstance(y, Piecewise):
        raise Unread("holds a relative entropy of two functions of the argument")
    if isinstance(x, Piecewise):
        if not y > 0.0:
            raise Unread("holds a relative entropy to a number that is not positive")
        return compose.entropy(x) - x * float(np.log(y))
    if x < 0.0:
        raise Unread("holds a relative entropy of a negative number")
    first = float(x * np.log(x)) if x > 0.0 else 0.0
    return compose.log(y) * -float(x) + first


def _extreme(*values: Any, larger: bool) -> Piecewise:
    found = _function(values[0])
    for value in values[1:]:
        other = _function(value)
        found = found.maximum(other) if larger else found.minimum(other)
    return found


def _of_huber(node: Any) -> Callable[..., Any]:
    threshold = _cvxpy.evaluate(node.M, {})
    if threshold is None or np.size(threshold) != 1:
        raise Unread("holds huber with a threshold that is not one number")
    return lambda u: compose.huber(u, float(np.asarray(threshold).ravel()[0]))


ELEMENTWISE: dict[str, Callable[[Any], Callable[..., Any]]] = {
    "add": lambda _: lambda *values: functools.reduce(operator.add, values),
    "neg": lambda _: operator.neg,
    "multiply": lambda _: _times,
    "divide": lambda _: _divided,
    "conj": lambda _: lambda u: u,
    "abs": lambda _: lambda u: u.absolute(),
    "maximum": lambda _: functools.partial(_extreme, larger=True),
    "minimum": lambda _: functools.partial(_extreme, larger=False),
    "power": lambda node: lambda u: compose.power(u, _cvxpy.exponent(node)),
    "exp": lambda _: compose.exp,
    "log": lambda _: compose.log,
    "log1p": lambda _: lambda u: compose.log(u + 1.0),
    "logistic": lambda _: compose.logistic,
    "huber": _of_huber,
    "entr": lambda _: lambda u: -compose.entropy(u),
    "rel_entr": lambda _: _relative_entropy,
    "kl_div": lambda _: lambda x, y: _function(_relative_entropy(x, y) - x + y),
}


def _norm(p: float) -> Callable[[Any, Sequence[Any]], Callable[[list[Piecewise]], Piecewise]]:
    return lambda node, arguments: lambda parts: compose.norm(parts, p)


def _total(parts: Sequence[Piecewise]) -> Piecewise:
    return functools.reduce(operator.add, parts)


def _squares(node: Any, arguments: Sequence[Any]) -> Callable[[list[Piecewise]], Piecewise]:
    divisor = np.asarray(arguments[1]).ravel()
    if divisor.size != 1 or not divisor[0] > 0.0:
        raise Unread("divides squares by what is not one positive number")
    factor = 1 / exact(float(divisor[0]))
    return lambda parts: _total([compose.power(part, 2.0) for part in parts]) * factor


REDUCTIONS: dict[str, Callable[[Any, Sequence[Any]], Callable[[list[Piecewise]], Piecewise]]] = {
    "sum": lambda *_: _total,
    "norm1": _norm(1.0),
    "norm_inf": _norm(float("inf")),
    "sigma_max": _norm(2.0),
    "pnorm": lambda node, _: lambda parts: compose.norm(parts, _cvxpy.exponent(node)),
    "quad_over_lin": _squares,
    "log_sum_exp": lambda *_: compose.log_sum_exp,
    "max": lambda *_: lambda parts: _extreme(*parts, larger=True),
    "min": lambda *_: lambda parts: _extreme(*parts, larger=False),
}


def _stretch(node: Any, arguments: Sequence[Any]) -> Sheet:
    """A broadcast: the records keep their axis, counted from the last."""
    sheet = arguments[0]
    if sheet.summed:
        raise Unread(_COMBINES)
    shape, axis = list(node.shape), sheet.axis
    if axis is not None:
        axis += node.ndim - sheet.entries.ndim
        shape[axis] = 1
    if int(np.prod(shape)) > 4096:
        raise Unread("has too many numbers a record")
    return Sheet(np.broadcast_to(sheet.entries, shape).copy(), axis)


def _reshape(node: Any, arguments: Sequence[Any]) -> Sheet:
    sheet, inner = arguments[0], node.args[0]
    if sheet.axis is None:
        shaped = np.reshape(sheet.entries, node.shape, order=node.order)
        return Sheet(shaped, None, sheet.summed)
    if inner.shape == node.shape:
        return Sheet(sheet.entries, sheet.axis)
    n = inner.shape[sheet.axis]
    if not (inner.size == n == node.size and n in node.shape):
        raise Unread(_COMBINES)
    return Sheet(sheet.entries.reshape([1] * node.ndim), node.shape.index(n))


def _transpose(node: Any, arguments: Sequence[Any]) -> Sheet:
    sheet = arguments[0]
    axes = list(node.axes or reversed(range(node.ndim)))
    axis = None if sheet.axis is None else axes.index(sheet.axis)
    return Sheet(np.transpose(sheet.entries, axes), axis, sheet.summed)


def _index(node: Any, arguments: Sequence[Any]) -> Sheet:
    sheet, inner = arguments[0], node.args[0]
    key, axis = list(_cvxpy.index_key(node)), sheet.axis
    if axis is not None:
        every = range(inner.shape[axis])
        if list(every[key[axis]]) != list(every):
            raise Unread("chooses among the records")
        key[axis] = slice(None)
    chosen = sheet.entries[tuple(key)]
    if axis is not None and node.ndim != inner.ndim:
        axis = node.shape.index(inner.shape[axis])
    shape = [1 if k == axis else length for k, length in enumerate(node.shape)]
    return Sheet(np.reshape(chosen, shape, order="F"), axis, sheet.summed)


def _stack(node: Any, arguments: Sequence[Any]) -> Sheet:
    """Rows above, or columns beside each other: the records are in the other direction."""
    vertical = _cvxpy.kind(node) == "vstack"
    if any(isinstance(one, Sheet) and one.summed for one in arguments):
        raise Unread(_COMBINES)
    recorded = any(isinstance(one, Sheet) and one.axis is not None for one in arguments)
    axis = (1 if vertical else 0) if recorded else None
    if recorded and node.ndim < 2:
        raise Unread(_COMBINES)
    arrays = []
    for one, inner in zip(arguments, node.args, strict=True):
        own = None if axis is None else (0 if inner.ndim == 1 else axis)
        if isinstance(one, Sheet):
            if one.axis != own:
                raise Unread(_COMBINES)
            arrays.append(one.entries)
        else:
            arrays.append(function_array(of_one_record(one, own)))
    return Sheet((np.vstack if vertical else np.hstack)(arrays), axis)


def _product(node: Any, arguments: Sequence[Any]) -> Sheet:
    """A product with a public matrix or vector."""
    side = 0 if isinstance(arguments[0], Sheet) else 1
    sheet, matrix = arguments[side], arguments[1 - side]
    if isinstance(matrix, Sheet):
        raise Unread("multiplies the argument by a function of itself")
    if max(sheet.entries.ndim, matrix.ndim) > 2 or sheet.summed:
        raise Unread(_COMBINES)
    contracted = sheet.entries.ndim - 1 if side == 0 else max(sheet.entries.ndim - 2, 0)
    across = max(matrix.ndim - 2, 0) if side == 0 else matrix.ndim - 1
    axis, summed = sheet.axis, sheet.axis == contracted
    if summed:
        axis, matrix = None, of_one_record(matrix, across)
        if matrix.size > 1:
            raise Unread(_COMBINES)
    elif axis is not None:
        axis = 0 if side == 0 else node.ndim - 1
    if matrix.size > 4096:
        raise Unread("has too many numbers a record")
    factor = np.vectorize(Fraction, otypes=[object])(matrix)
    pair = (sheet.entries, factor) if side == 0 else (factor, sheet.entries)
    return Sheet(np.asarray(np.matmul(*pair), dtype=object), axis, summed)


SHAPING: dict[str, Callable[[Any, Sequence[Any]], Sheet]] = {
    "promote": _stretch,
    "broadcast": _stretch,
    "reshape": _reshape,
    "transpose": _transpose,
    "index": _index,
    "vstack": _stack,
    "hstack": _stack,
    "matmul": _product,
}
