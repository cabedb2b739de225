"""Reading the public rest of a problem: affine maps and summands of CVXPY expressions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import cvxpy as cp
import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from cvxqop._cvxpy import exponent, format_expression, kind, variables
from cvxqop.errors import OptionError

__all__ = ["Affine", "NotSplittable", "Stack", "summands"]

Array = npt.NDArray[np.float64]


class NotSplittable(OptionError):
    """A term of the rest has no proximal operator here; ``obstacle`` says which and why.

    Whether another solver may take the problem depends on the loss: whoever knows it adds a remedy.
    """

    def __init__(self, term: Any, reason: str = "has no known proximal operator") -> None:
        text = term if isinstance(term, str) else format_expression(term, {})
        self.obstacle = f"the term {text} {reason}"
        super().__init__(f'solver="STOTOS" cannot split the problem: {self.obstacle}')


class Affine:
    """The map θ ↦ A θ + b of an affine expression, entries in Fortran order."""

    def __init__(self, A: Any, b: Array) -> None:
        self.A = sp.csr_array(A)
        self.A.sum_duplicates()
        self.A.eliminate_zeros()
        self.b = b

    def diagonal(self) -> tuple[npt.NDArray[np.intp], Array] | None:
        """Columns and factors when entry k is s_k θ[index_k] + b_k, each column once."""
        counts = np.diff(self.A.indptr)
        if np.any(counts != 1) or len(np.unique(self.A.indices)) != len(self.A.indices):
            return None
        return self.A.indices.astype(np.intp), np.asarray(self.A.data, dtype=np.float64)


class Stack:
    """Positions of the variables in θ, each flattened in Fortran order."""

    def __init__(self, stacked: Sequence[cp.Variable]) -> None:
        self.variables = tuple(stacked)
        self.dimension = int(sum(v.size for v in stacked))
        self._start: dict[int, int] = {}
        position = 0
        for v in stacked:
            self._start[v.id] = position
            position += v.size

    def indices(self, variable: cp.Variable) -> npt.NDArray[np.intp]:
        """Coordinates of a variable."""
        start = self._start[variable.id]
        return np.arange(start, start + variable.size)

    def affine(self, expression: Any) -> Affine:
        """Matrix and offset of an affine expression.

        Raises
        ------
        NotSplittable
            It is not affine, or another variable occurs in it.
        """
        if not expression.is_affine():
            raise NotSplittable(expression, "is not affine")
        if kind(expression) == "variable" and expression.id in self._start:
            index = self.indices(expression)
            A = sp.csr_array(
                (np.ones(len(index)), index, np.arange(len(index) + 1)),
                shape=(len(index), self.dimension),
            )
            return Affine(A, np.zeros(len(index)))
        found = variables(expression)
        for v in found:
            if v.id not in self._start:
                raise NotSplittable(expression, f"contains the auxiliary variable {v.name()}")
        if not found:
            value = dense(expression.value)
            b = np.broadcast_to(value, expression.shape).reshape(-1, order="F")
            return Affine(sp.csr_array((len(b), self.dimension)), b)
        # A copy on variables of our own: the user's hold no value and must not get one.
        own = {id(v): cp.Variable(v.shape) for v in found}
        for v in own.values():
            v.value = np.zeros(v.shape)
        copy = own[id(expression)] if id(expression) in own else expression.tree_copy(own)
        gradient = copy.grad
        parts = []
        for v in self.variables:
            block = gradient.get(own[id(v)]) if id(v) in own else None
            shape = (expression.size, v.size)
            parts.append(sp.csr_array(shape) if block is None else _matrix(block, shape))
        b = dense(copy.value).reshape(-1, order="F")
        return Affine(sp.hstack(parts, format="csr"), b)


def _matrix(block: Any, shape: tuple[int, int]) -> Any:
    """CVXPY's gradient is transposed, and a plain number for scalars."""
    return sp.csr_array(dense(block).reshape(shape[::-1]).T)


def dense(value: Any) -> Array:
    """A number, an array or a sparse array as an array of doubles."""
    return np.asarray(value.toarray() if sp.issparse(value) else value, dtype=np.float64)


def constant(expression: Any) -> Array | None:
    """Value of an expression without variables, else None."""
    if variables(expression):
        return None
    return dense(expression.value)


def summands(expression: Any, factor: float = 1.0) -> Iterator[tuple[float, Any]]:
    """Terms of a scalar expression with their factors; affine terms come whole."""
    if expression.is_affine():
        yield factor, expression
        return
    name = kind(expression)
    if name == "add":
        for argument in expression.args:
            yield from summands(argument, factor)
    elif name == "neg":
        yield from summands(expression.args[0], -factor)
    elif name in ("promote", "reshape", "broadcast") and expression.args[0].size == 1:
        yield from summands(expression.args[0], factor)
    elif name in ("multiply", "matmul") and (split := _scaled(expression)) is not None:
        yield from summands(split[1], factor * split[0])
    elif name == "divide" and (number := constant(expression.args[1])) is not None:
        if number.size != 1:
            yield factor, expression
        else:
            yield from summands(expression.args[0], factor / float(number.item()))
    elif name == "sum" and expression.axis is None and expression.args[0].size == 1:
        yield from summands(expression.args[0], factor)
    elif name == "sum" and expression.axis is None:
        yield from _sum_of(expression, factor)
    else:
        yield factor, expression


def _sum_of(expression: Any, factor: float) -> Iterator[tuple[float, Any]]:
    """The sum of an array expression, distributed over additions and common factors."""
    inner = expression.args[0]
    name = kind(inner)
    if name == "add":
        for argument in inner.args:
            if argument.shape == inner.shape:
                yield from summands(cp.sum(argument), factor)
            else:
                yield factor * inner.size / argument.size, cp.sum(argument)
    elif name == "neg":
        yield from summands(cp.sum(inner.args[0]), -factor)
    elif name in ("multiply", "matmul") and (split := _scaled(inner)) is not None:
        yield from summands(cp.sum(split[1]), factor * split[0])
    elif name == "reshape":
        yield from summands(cp.sum(inner.args[0]), factor)
    else:
        yield factor, expression


def _scaled(expression: Any) -> tuple[float, Any] | None:
    """A constant number times an expression of the same size."""
    for number, other in (expression.args, expression.args[::-1]):
        value = constant(number)
        if value is None or other.size != expression.size or value.size == 0:
            continue
        if value.size == 1 or kind(number) in ("promote", "broadcast"):
            return float(value.flat[0]), other
    return None


def weighted_absolute(expression: Any) -> tuple[Array | None, Any] | None:
    """Weights and argument of Σ w |e|, in any spelling; weights None are ones."""
    name = kind(expression)
    if name == "norm1" and expression.axis is None:
        return None, expression.args[0]
    if name == "pnorm" and exponent(expression) == 1 and expression.axis is None:
        return None, expression.args[0]
    if name == "abs" and expression.size == 1:
        return None, expression.args[0]
    if name == "sum" and expression.axis is None:
        inner = expression.args[0]
        if kind(inner) == "abs":
            return None, inner.args[0]
        if kind(inner) == "multiply":
            return _weights_times_abs(inner)
    if name == "matmul" and expression.size == 1:
        return _weights_times_abs(expression)
    return None


def _weights_times_abs(product: Any) -> tuple[Array | None, Any] | None:
    for number, other in (product.args, product.args[::-1]):
        value = constant(number)
        if value is not None and kind(other) == "abs" and value.size == other.size:
            return value.reshape(-1, order="F"), other.args[0]
    return None


def squared_norm(expression: Any) -> tuple[float, Any] | None:
    """Factor and argument e of factor · ‖e‖₂², in any spelling."""
    name = kind(expression)
    if name == "quad_over_lin" and expression.size == 1:
        divisor = constant(expression.args[1])
        if divisor is not None and divisor.size == 1:
            return 1.0 / float(divisor.item()), expression.args[0]
    if name == "power" and exponent(expression) == 2 and expression.size == 1:
        inner = expression.args[0]
        if kind(inner) == "pnorm" and exponent(inner) == 2 and inner.axis is None:
            return 1.0, inner.args[0]
        if inner.is_affine():
            return 1.0, inner
    if name == "sum" and expression.axis is None:
        inner = expression.args[0]
        if kind(inner) == "power" and exponent(inner) == 2:
            return 1.0, inner.args[0]
    return None


def quadratic_form(
    stack: Stack, factor: float, argument: Any, P: Array | None = None
) -> tuple[Array, Array] | None:
    """Q and q of factor · e'Pe for an affine e, P None for I; None where it is not convex."""
    affine = stack.affine(argument)
    A = affine.A.toarray()
    PA = A if P is None else 0.5 * (P + P.T) @ A
    Q = 2.0 * factor * (A.T @ PA)
    Q = 0.5 * (Q + Q.T)
    if factor < 0.0 or (P is not None and np.linalg.eigvalsh(Q)[0] < -1e-9 * np.linalg.norm(Q)):
        return None
    return Q, 2.0 * factor * (PA.T @ affine.b)
