"""Atoms that are another spelling of what is read: each is rewritten where it stands.

- x'(X'X)x is ‖X x‖²;
- [A B] v is A v1 + B v2, the parts of v;
- (y'X) w is y'(X w);
- log(exp 0 + exp t) is log(1 + exp t);
- (X w)'C(X w) with a public diagonal C is a weighted sum of squares;
- X[:k] and M[i, j] are in `cvxqop.problem.spelling.selections`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cvxpy as cp
import numpy as np
import scipy.sparse as sp

from cvxqop import _cvxpy
from cvxqop.problem.private.data import PrivateData
from cvxqop.problem.reading.public import constant_array
from cvxqop.problem.spelling.selections import Selections

__all__ = ["Forms"]

_WRAPS = ("psd_wrap", "symmetric_wrap", "hermitian_wrap")


class Forms:
    """Rewrites atoms that hold private data.

    Parameters
    ----------
    data : PrivateData
        What is private.

    Attributes
    ----------
    found : list of (str, Expression)
        What was rewritten, in words, and as what.
    selections : Selections
        The arrays that selections were made into.
    public : list of Constant
        Diagonals of matrices that are listed in ``public``.
    """

    def __init__(self, data: PrivateData, text: Callable[[Any], str]) -> None:
        self._data, self._text = data, text
        self._known: dict[Any, Any] = {}
        self.found: list[tuple[str, Any]] = []
        self.selections = Selections(data)
        self.public: list[Any] = []

    def rewritten(self, node: Any) -> Any:
        """The expression in plain spelling, the node itself where it is."""
        if _cvxpy.is_leaf(node) or not self._data.contains(node):
            return node
        if _cvxpy.holds_records(node) or not all(isinstance(a, cp.Expression) for a in node.args):
            return node
        if node not in self._known:
            made = _cvxpy.rebuilt(node, [self.rewritten(argument) for argument in node.args])
            own = {
                "quad_form": self._quadratic,
                "matmul": self._product,
                "log_sum_exp": self._softplus,
                "index": self.selections.rows,
                "special_index": self.selections.read,
            }.get(_cvxpy.kind(made))
            plain = own(made, node) if own else None
            if plain is not None:
                self.found.append((self._text(node), plain))
            self._known[node] = made if plain is None else plain
        return self._known[node]

    def _quadratic(self, node: Any, _: Any) -> Any:
        inner, matrix = node.args
        return self._weighted(inner, matrix) or self._square(inner, matrix)

    def _weighted(self, inner: Any, matrix: Any) -> Any:
        """Σ_i C_ii e_i² for a diagonal C that is listed as public."""
        while _cvxpy.kind(matrix) in _WRAPS:
            matrix = matrix.args[0]
        if not self._data.shows(matrix) or inner.ndim != 1 or not self._data.contains(inner):
            return None
        value = _cvxpy.leaf_value(matrix)
        diagonal = value.diagonal()
        if abs(sp.csr_array(value) - sp.diags_array(diagonal)).sum():
            return None
        weights = cp.Constant(np.array(diagonal, dtype=float))
        self.public.append(weights)
        return cp.sum(cp.multiply(weights, cp.square(inner)))

    def _square(self, x: Any, P: Any) -> Any:
        """x'P x for a sum of multiples of X'X."""
        kind = _cvxpy.kind(P)
        if kind in _WRAPS:
            return self._square(x, P.args[0])
        if kind in ("multiply", "divide"):
            scalar, rest = P.args if kind == "multiply" else P.args[::-1]
            number = scalar.args[0] if _cvxpy.kind(scalar) == "promote" else scalar
            inner = None if number.ndim else self._square(x, rest)
            if inner is None:
                return None
            return number * inner if kind == "multiply" else inner / number
        if kind != "matmul" or not all(self._data.contains(side) for side in P.args):
            return None
        left, right = P.args
        if _cvxpy.kind(left) == "transpose" and left.args[0] is right and right.ndim == 2:
            return cp.sum_squares(right @ x)
        return None

    def _product(self, node: Any, _: Any) -> Any:
        left, right = node.args
        if _cvxpy.kind(left) == "hstack" and not _cvxpy.has_variables(left):
            return self._blocks(left.args, right)
        turned = _cvxpy.kind(right) == "transpose" and _cvxpy.kind(right.args[0]) == "hstack"
        if turned and not _cvxpy.has_variables(right) and left.ndim == 1:
            return self._blocks(right.args[0].args, left)
        for product, other in ((left, right), (right, left)):
            apart = _cvxpy.kind(product) == "matmul" and not _cvxpy.has_variables(product)
            if not (apart and product.ndim == other.ndim == 1 and _cvxpy.has_variables(other)):
                continue
            first, second = product.args
            if not (self._data.contains(first) and self._data.contains(second)):
                continue
            if first.ndim == 1 and second.ndim == 2:
                return first @ (second @ other)
            if second.ndim == 1 and first.ndim == 2:
                return second @ (first.T @ other)
        return None

    def _blocks(self, blocks: list[Any], vector: Any) -> Any:
        """The columns of several blocks times their parts of a vector or matrix."""
        if any(block.ndim != 2 for block in blocks) or not _cvxpy.has_variables(vector):
            return None
        leaves = [leaf for block in blocks for leaf in _cvxpy.leaves(block)]
        if any(_cvxpy.is_sparse(_cvxpy.leaf_value(leaf)) for leaf in leaves):
            return None  # CVXPY does not compute the value of such a stack
        if vector.ndim not in (1, 2):
            return None
        total, start = None, 0
        for block in blocks:
            stop = start + block.shape[1]
            part = block @ vector[start:stop]
            total, start = part if total is None else total + part, stop
        return total

    def _softplus(self, node: Any, _: Any) -> Any:
        """Σ_k exp t_k of two numbers, one of which is zero."""
        stack = node.args[0]
        axis = {"vstack": 0, "hstack": 1}.get(_cvxpy.kind(stack))
        if axis is None or len(stack.args) != 2 or node.axis not in (axis, axis - 2):
            return None
        own = [part for part in stack.args if not self._is_zero(part)]
        if len(own) != 1 or stack.shape[axis] != 2 or not _cvxpy.has_variables(own[0]):
            return None
        found = cp.logistic(own[0])
        return found if found.shape == node.shape else cp.reshape(found, node.shape, order="F")

    def _is_zero(self, node: Any) -> bool:
        if self._data.contains(node) or _cvxpy.has_variables(node):
            return False
        value = constant_array(node)
        return not np.any(value.toarray() if _cvxpy.is_sparse(value) else value)
