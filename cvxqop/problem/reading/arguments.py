"""The affine argument of a loss inside whatever is around it."""

from __future__ import annotations

from typing import Any

from cvxqop import _cvxpy
from cvxqop.problem.private.data import PrivateData
from cvxqop.problem.reading import refusals
from cvxqop.problem.reading.public import record_count

__all__ = ["argument_nodes", "is_affine"]


def is_affine(node: Any) -> bool:
    """Whether the variables of an expression enter by sums and products with constants alone."""
    if _cvxpy.is_leaf(node) or not _cvxpy.has_variables(node):
        return True
    if not _cvxpy.is_affine_kind(node):
        return False
    held = [argument for argument in node.args if _cvxpy.has_variables(argument)]
    if _cvxpy.kind(node) in ("multiply", "matmul") and len(held) > 1:
        return False
    if _cvxpy.kind(node) == "divide" and _cvxpy.has_variables(node.args[1]):
        return False
    return all(map(is_affine, held))


def argument_nodes(node: Any, data: PrivateData) -> list[Any] | str:
    """The largest affine nodes with records and variables and one entry a record, in order.

    Nothing private may stand beside them: what is around them is read as public numbers. A string
    is the reason why there are none.
    """
    if not data.contains(node):
        return []
    if _cvxpy.holds_records(node):
        return refusals.SEVERAL
    beside = _cvxpy.kept_aside(node)
    if any(map(data.contains, beside)) or not _cvxpy.has_variables(node):
        return refusals.BESIDE
    affine = is_affine(node)
    if affine and record_count(node) in data.counts:
        return [] if _grows(node, data) else [node]
    found: list[Any] = []
    for argument in node.args:
        own = argument_nodes(argument, data)
        if isinstance(own, str):
            return refusals.SEVERAL if affine else own
        found += [one for one in own if not any(one is other for other in found)]
    return found


def _grows(node: Any, data: PrivateData) -> bool:
    """Whether an array of variables meets the records entry by entry."""
    if not data.contains(node):
        return _cvxpy.has_variables(node) and node.size > 1 and not _is_stretched(node)
    if _cvxpy.kind(node) in ("add", "neg", "multiply", "divide"):
        return any(_grows(argument, data) for argument in node.args)
    return False


def _is_stretched(node: Any) -> bool:
    return _cvxpy.kind(node) in ("promote", "broadcast") and node.args[0].size == 1
