"""Atoms with kinks inside a private term: no declaration makes such a term smooth."""

from __future__ import annotations

from typing import Any

import numpy as np

from cvxqop import _cvxpy
from cvxqop.problem.private.data import PrivateData
from cvxqop.problem.reading.public import constant_array

__all__ = ["kink"]

_KINKS = frozenset(
    {"abs", "norm1", "norm_inf", "normnuc", "maximum", "minimum", "max", "min", "cummax"}
    | {"sum_largest", "sigma_max", "lambda_max", "lambda_sum_largest", "dotsort", "pnorm"}
)
_NORMS = ("norm1", "norm_inf", "normnuc", "pnorm", "sigma_max")
_SMOOTHING = ("power", "quad_over_lin", "huber")
_PASSING = ("neg", "reshape", "transpose", "promote", "broadcast", "index", "multiply", "divide")


def kink(term: Any, private: PrivateData) -> str | None:
    """Kind of an atom that leaves the term with a kink; None if there is none that is known.

    Squares and Huber functions of absolute values, positive parts and norms are smooth, and so is
    a norm of a stack with a constant.
    """
    stack: list[tuple[Any, bool]] = [(term, False)]
    while stack:
        node, smoothed = stack.pop()
        if _cvxpy.is_leaf(node) or not (private.contains(node) and _cvxpy.has_variables(node)):
            continue
        kind = _cvxpy.kind(node)
        if kind in _KINKS and not _smooth(node, kind, smoothed, private):
            # Of one record CVXPY writes every norm as that of one number.
            return "norm" if private.count_is_private and kind in _NORMS else kind
        inside = smoothed if kind in _PASSING else _smooths(node, kind)
        stack.extend((argument, inside) for argument in node.args)
    return None


def _smooths(node: Any, kind: str) -> bool:
    return kind in _SMOOTHING and (kind != "power" or _cvxpy.exponent(node) >= 2)


def _smooth(node: Any, kind: str, smoothed: bool, private: PrivateData) -> bool:
    if kind == "abs" or _cvxpy.is_norm_of_one(node):
        return smoothed  # any norm of one number is its absolute value
    if kind == "maximum":
        others = [argument for argument in node.args if not _cvxpy.has_variables(argument)]
        zero = all(
            not private.contains(argument) and not np.any(_dense(constant_array(argument)))
            for argument in others
        )
        return smoothed and len(node.args) - len(others) == 1 and zero
    if kind == "pnorm" and _cvxpy.exponent(node) >= 2:
        inner = node.args[0]
        stacked = _cvxpy.kind(inner) in ("vstack", "hstack")
        return smoothed or (stacked and not all(map(_cvxpy.has_variables, inner.args)))
    return False


def _dense(array: Any) -> Any:
    return array.toarray() if _cvxpy.is_sparse(array) else array
