"""Values and gradients of a CVXPY expression by one reverse pass, without setting any value.

``Expression.grad`` reads the values of the user's variables and multiplies Jacobians from the
leaves up; here a vector goes from the root down, so that a linear model costs two products.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import softmax

from cvxqop._cvxpy.nodes import (
    evaluate,
    exponent,
    has_variables,
    index_key,
    is_leaf,
    is_sparse,
    kind,
    reduced_axes,
)

__all__ = ["Tape"]

Array = npt.NDArray[np.float64]


class Tape:
    """An expression of one entry as a function of its variables, with its gradient.

    What does not depend on a variable is computed once.

    Parameters
    ----------
    node : cvxpy.Expression
        Scalar, of any atoms that know their own derivative.

    Examples
    --------
    >>> import cvxpy as cp
    >>> x = cp.Variable(2)
    >>> tape = Tape(cp.sum_squares(np.array([[3.0, 4.0]]) @ x - 1.0))
    >>> value, gradient = tape({x.id: np.array([1.0, 0.0])})
    >>> float(value), gradient[x.id].tolist()
    (4.0, [12.0, 16.0])
    """

    def __init__(self, node: Any) -> None:
        self._root = node
        self._order = _postorder(node)
        self._constants: dict[Any, Any] = {}

    def __call__(self, values: Mapping[int, Array]) -> tuple[float, dict[int, Array]] | None:
        """Value and gradient by ``variable.id``; None where an atom has no derivative there."""
        with np.errstate(all="ignore"):
            found = self._forward(values)
            return self._backward(found)

    def _forward(self, values: Mapping[int, Array]) -> dict[Any, Any]:
        if not self._constants:
            for node in self._order:
                for argument in [] if is_leaf(node) else node.args:
                    if argument not in self._constants and not has_variables(argument):
                        self._constants[argument] = evaluate(argument, {})
        found = dict(self._constants)
        for node in self._order:
            if is_leaf(node):
                found[node] = np.asarray(values[node.id])
                continue
            arguments = [found[argument] for argument in node.args]
            if kind(node) not in ("matmul", "multiply"):
                arguments = [a.toarray() if is_sparse(a) else np.asarray(a) for a in arguments]
            result = node.numeric(arguments)
            found[node] = result.toarray() if is_sparse(result) else np.asarray(result)
        return found

    def _backward(self, found: Mapping[Any, Any]) -> tuple[float, dict[int, Array]] | None:
        root = self._root
        adjoints: dict[Any, Any] = {root: np.ones(root.shape)}
        gradient: dict[int, Array] = {}
        for node in reversed(self._order):
            adjoint = adjoints.pop(node, None)
            if adjoint is None:
                continue
            if is_leaf(node):
                gradient[node.id] = gradient.get(node.id, 0.0) + adjoint
                continue
            moving = [i for i, argument in enumerate(node.args) if has_variables(argument)]
            arguments = [found[argument] for argument in node.args]
            parts = _pull(node, arguments, found[node], adjoint, moving)
            if parts is None:
                return None
            for i, part in zip(moving, parts, strict=True):
                argument = node.args[i]
                part = np.asarray(part, dtype=np.float64).reshape(argument.shape, order="F")
                known = adjoints.get(argument)
                adjoints[argument] = part if known is None else known + part
        value = np.asarray(found[root], dtype=np.float64).reshape(-1)
        return float(value[0]), gradient


def _postorder(root: Any) -> list[Any]:
    """The nodes that depend on a variable, every argument before what it is an argument of."""
    order: list[Any] = []
    seen: set[Any] = set()
    stack: list[tuple[Any, bool]] = [(root, False)]
    while stack:
        node, ready = stack.pop()
        if ready:
            order.append(node)
        elif node not in seen and has_variables(node):
            seen.add(node)
            stack.append((node, True))
            if not is_leaf(node):
                stack.extend((argument, False) for argument in node.args)
    return order


def _pull(
    node: Any, values: Sequence[Any], own: Any, adjoint: Array, moving: Sequence[int]
) -> list[Any] | None:
    """The adjoint of each argument in ``moving`` from that of the node."""
    name = kind(node)
    if name == "add":
        return [_unbroadcast(adjoint, node.args[i].shape) for i in moving]
    if name == "neg":
        return [-adjoint]
    if name == "multiply" and len(moving) == 1:
        other = values[1 - moving[0]]
        other = other.toarray() if is_sparse(other) else np.asarray(other)
        return [_unbroadcast(adjoint * other, node.args[moving[0]].shape)]
    if name == "divide" and moving == [0]:
        return [_unbroadcast(adjoint / np.asarray(values[1]), node.args[0].shape)]
    if name == "matmul" and len(moving) == 1 and all(a.ndim <= 2 for a in node.args):
        return [_pull_product(node, values, adjoint, moving[0])]
    if name in ("promote", "broadcast"):
        return [_unbroadcast(adjoint, node.args[0].shape)]
    if name in ("kl_div", "rel_entr") and moving == [1]:  # CVXPY's has none at a count of zero
        x, y = np.asarray(values[0]), np.asarray(values[1])
        slope = (1.0 if name == "kl_div" else 0.0) - x / y
        return [_unbroadcast(adjoint * slope, node.args[1].shape)] if np.all(y > 0.0) else None
    if name == "reshape" and node.order == "F":
        return [adjoint]
    if name == "transpose" and node.args[0].ndim <= 2:
        return [adjoint.T]
    if name == "index":
        whole = np.zeros(node.args[0].shape)
        picked = whole[index_key(node)]
        whole[index_key(node)] = adjoint.reshape(picked.shape, order="F")
        return [whole]
    axes = reduced_axes(node)
    if axes is not None and moving == [0]:
        kept = tuple(1 if k in axes else side for k, side in enumerate(node.args[0].shape))
        wide = adjoint.reshape(kept)
        x = np.asarray(values[0])
        if name == "sum":
            return [np.broadcast_to(wide, x.shape)]
        if name == "log_sum_exp":
            return [wide * softmax(x, axis=axes)]
        if name == "quad_over_lin":
            return [2.0 * wide * x / np.asarray(values[1])]
        if name == "pnorm" and exponent(node) == 2:
            length = np.asarray(own).reshape(kept)
            return [np.divide(wide * x, length, out=np.zeros(x.shape), where=length > 0.0)]
    return _by_jacobian(node, values, adjoint, moving)


def _pull_product(node: Any, values: Sequence[Any], adjoint: Array, moving: int) -> Any:
    """d⟨adjoint, L R⟩ by L or R; vectors are rows on the left and columns on the right."""
    left, right = node.args
    rows = 1 if left.ndim < 2 else left.shape[0]
    columns = 1 if right.ndim < 2 else right.shape[1]
    wide = adjoint.reshape(rows, columns)
    other = values[1 - moving]
    if not is_sparse(other):
        other = np.asarray(other)
        if moving == 1 and other.ndim < 2:
            other = other.reshape(1, -1)
        if moving == 0 and other.ndim < 2:
            other = other.reshape(-1, 1)
    return (other.T @ wide) if moving == 1 else (other @ wide.T).T


def _by_jacobian(
    node: Any, values: Sequence[Any], adjoint: Array, moving: Sequence[int]
) -> list[Any] | None:
    """Through CVXPY's own derivative of the atom: (argument size, size) matrices."""
    dense = [value.toarray() if is_sparse(value) else np.asarray(value) for value in values]
    flat = adjoint.reshape(-1, order="F")
    parts = []
    jacobians = node._grad(dense)
    for i in moving:
        if jacobians[i] is None:
            return None
        parts.append(jacobians[i] * flat if np.isscalar(jacobians[i]) else jacobians[i] @ flat)
    return parts


def _unbroadcast(adjoint: Any, shape: tuple[int, ...]) -> Array:
    """Sum over the axes that a broadcast from ``shape`` added or stretched."""
    result = np.asarray(adjoint)
    result = result.sum(axis=tuple(range(result.ndim - len(shape))))
    stretched = tuple(k for k, side in enumerate(shape) if side == 1 and result.shape[k] != 1)
    return np.asarray(result.sum(axis=stretched, keepdims=True) if stretched else result)
