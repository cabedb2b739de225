"""Nodes of CVXPY's trees: their kinds, their leaves, their values without side effects.

The rest of the library asks ``kind(node)`` and compares strings.
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
from cvxpy.atoms.axis_atom import AxisAtom
from cvxpy.atoms.elementwise.abs import abs as abs_atom
from cvxpy.atoms.elementwise.elementwise import Elementwise
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
    "given_name",
    "has_variables",
    "holds_records",
    "index_key",
    "is_affine_kind",
    "is_elementwise",
    "is_euclidean",
    "is_leaf",
    "is_linear",
    "is_norm_of_one",
    "is_sparse",
    "keeps_rows",
    "kept_aside",
    "kind",
    "leaf_value",
    "leaves",
    "nodes",
    "reduced_axes",
    "source",
    "stretched",
    "variables",
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
    seen: dict[int, Any] = {}  # by an id that belongs to the node while it stands here
    stack = [node]
    while stack:
        current = stack.pop()
        if id(current) in seen:
            continue
        seen[id(current)] = current
        if not isinstance(current, list | tuple):
            yield current
        if not is_leaf(current):
            stack.extend(reversed(_children(current)))


def _children(node: Any) -> list[Any]:
    if isinstance(node, (list, tuple)):
        return list(node)
    return [*node.args, *kept_aside(node)]


def kept_aside(node: Any) -> list[Any]:
    """Expressions that an atom keeps beside its arguments (M of ``huber(x, M)``)."""
    return [
        value
        for name, value in vars(node).copy().items()
        if isinstance(value, cp.Expression) and name != "_eta"  # of the last compilation
    ]


def stretched(node: Any) -> Any:
    """What CVXPY broadcasts by a product with ones, a row (1, k) or a column (n, 1), or None."""
    if kind(node) != "matmul":
        return None
    left, right = node.args
    if right.ndim == 2 and right.shape[0] == 1 and _is_ones(right):
        return left  # first: a column of no records has no entry other than one
    if left.ndim == 2 and left.shape[1] == 1 and _is_ones(left):
        return right
    return None


def _is_ones(node: Any) -> bool:
    """Whether a node is a dense constant of ones that was given no name."""
    if kind(node) != "constant" or given_name(node):
        return False
    return isinstance(node._value, np.ndarray) and bool(np.all(node._value == 1.0))


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


def is_affine_kind(node: Any) -> bool:
    """Whether a node is a sum, product, selection or rearrangement, stacks included."""
    return kind(node) in _LINEAR or kind(node) in ("vstack", "hstack", "concatenate")


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
    return tuple(name for name, value in variable.attributes.items() if _is_given(value))


def _is_given(value: Any) -> bool:
    """Whether an attribute is set; lists of bounds and of indices may hold anything."""
    if isinstance(value, list | tuple):
        return bool(value)
    return value is not None and value is not False and np.size(value) > 0


def leaf_value(leaf: Any) -> Any:
    """Array held by a constant or parameter, not copied; None for a parameter without value."""
    if kind(leaf) == "constant":
        return leaf._value
    return leaf.value_sparse if leaf.attributes.get("sparsity") else leaf.value


def source(leaf: Any) -> int | None:
    """``id`` of the array that a constant was copied from, where CVXPY knows it."""
    found = getattr(leaf, "_value_source_id", None)
    return found if isinstance(found, int) else None


def given_name(leaf: Any) -> str | None:
    """Name of a parameter, or the one that a constant was given; never a constant's entries."""
    name = leaf._name if kind(leaf) == "constant" else leaf.name()
    return name if isinstance(name, str) else None


def exponent(node: Any) -> float:
    """Exponent of a power or order of a p-norm."""
    p = node.p
    return float(p.value) if hasattr(p, "value") else float(p)


def is_norm_of_one(node: Any) -> bool:
    """Whether a node is what CVXPY makes of any norm of one number: its absolute value."""
    return kind(node) in ("norm1", "sigma_max") and bool(node.args[0].size == 1)


def is_euclidean(node: Any) -> bool:
    """Whether a node is the 2-norm of all entries of its argument."""
    if is_norm_of_one(node):
        return True
    return kind(node) == "pnorm" and exponent(node) == 2 and node.axis is None


def index_key(node: Any) -> tuple[Any, ...]:
    """Slices of an indexing node, one per axis of its argument."""
    return tuple(node.key)


def keeps_rows(node: Any) -> bool:
    """Whether an indexing node was written with all of the first axis, and not a part of it that
    may be all."""
    key = node._orig_key
    first = key[0] if isinstance(key, tuple) else key
    return first is Ellipsis or (isinstance(first, slice) and first == slice(None))


def is_elementwise(node: Any) -> bool:
    """Whether entry k of an atom is a function of entry k of each argument."""
    return isinstance(node, Elementwise)


def reduced_axes(node: Any) -> tuple[int, ...] | None:
    """Axes of the first argument that a sum, norm or the like runs over; None for other atoms.

    Cumulative sums, products and maxima keep every axis, and count as other atoms.
    """
    if not (isinstance(node, AxisAtom) and node._reduce_all_axes_to_none):
        return None
    ndim = node.args[0].ndim
    axis = node.axis
    if axis is None:
        return tuple(range(ndim))
    return tuple(k % ndim for k in (axis if isinstance(axis, tuple) else (axis,)))


def evaluate(node: Any, values: Mapping[int, Any]) -> Any:
    """Value of an expression with ``values[variable.id]`` in place of the variables' own values."""
    name = kind(node)
    if name == "variable":
        return values[node.id]
    if name in ("constant", "parameter"):
        return leaf_value(node)
    arguments = [evaluate(argument, values) for argument in node.args]
    sparse = name == "add" and all(map(is_sparse, arguments))
    if not sparse and name not in ("matmul", "multiply"):
        arguments = [a.toarray() if is_sparse(a) else np.asarray(a) for a in arguments]
    return node.numeric(arguments)
