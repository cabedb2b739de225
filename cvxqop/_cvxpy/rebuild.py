"""Trees of CVXPY made anew with other parts; no node is changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import cvxpy as cp
import numpy as np

from cvxqop._cvxpy.nodes import is_leaf, kept_aside, kind, leaves

__all__ = [
    "is_relation",
    "plain_data",
    "rebuilt",
    "related",
    "selected_entries",
    "substituted",
    "unsigned",
]

_RELATIONS = (cp.constraints.Inequality, cp.constraints.Equality)


def rebuilt(node: Any, arguments: Sequence[Any]) -> Any:
    """The node with other arguments, or the node itself where none is another."""
    if all(one is other for one, other in zip(node.args, arguments, strict=True)):
        return node
    return node.copy(list(arguments))


def is_relation(constraint: Any) -> bool:
    """Whether a constraint is an inequality or equality between two sides."""
    return isinstance(constraint, _RELATIONS)


def related(constraint: Any, left: Any, right: Any) -> Any:
    """An inequality or equality between other sides, or itself where none is another."""
    if left is constraint.args[0] and right is constraint.args[1]:
        return constraint
    return left <= right if isinstance(constraint, _RELATIONS[0]) else left == right


def substituted(node: Any, where: Mapping[Any, Any]) -> Any:
    """The tree with other expressions in the place of leaves.

    None if one of them is kept where nothing can be put, beside the arguments of an atom.
    """
    if is_leaf(node):
        return where.get(node, node)
    if not any(leaf in where for leaf in leaves(node)):
        return node
    known = all(isinstance(argument, cp.Expression) for argument in node.args)
    beside = any(leaf in where for own in kept_aside(node) for leaf in leaves(own))
    if beside or not known:
        return None
    arguments = [substituted(argument, where) for argument in node.args]
    return None if any(a is None for a in arguments) else rebuilt(node, arguments)


def unsigned(node: Any, is_private: Callable[[Any], Any]) -> Any:
    """The tree with parameters in the place of private constants.

    CVXPY reads the signs of a constant's entries, and nothing must depend on those of records.
    Parameters have the sign that they were declared with.
    """
    where = {
        leaf: cp.Parameter(leaf.shape)
        for leaf in leaves(node)
        if kind(leaf) == "constant" and is_private(leaf)
    }
    return substituted(node, where)


def selected_entries(node: Any) -> tuple[tuple[Any, ...], Any]:
    """Of a selection by arrays of indices: the indices, and the positions in the argument that they
    choose, column by column."""
    key = node.key if isinstance(node.key, tuple) else (node.key,)
    return key, np.asarray(node._select_mat)


def plain_data(node: Any) -> Any:
    """What a node keeps beside its arguments, if that is numbers and words; else None."""
    try:
        return tuple(map(_plain, node.get_data() or ()))
    except TypeError:
        return None


def _plain(value: Any) -> Any:
    if isinstance(value, cp.Constant) and value.ndim == 0:
        return ("number", float(value._value.item()))
    if isinstance(value, tuple | list):
        return tuple(map(_plain, value))
    if isinstance(value, slice):
        return ("slice", value.start, value.stop, value.step)
    if isinstance(value, bool | int | float | str | np.integer | np.floating | None):
        return value
    raise TypeError
