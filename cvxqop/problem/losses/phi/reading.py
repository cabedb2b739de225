"""A CVXPY expression as a function of one of its nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cvxqop import _cvxpy
from cvxqop.problem.losses.phi.operations import (
    ADDING,
    ADDITIVE,
    ELEMENTWISE,
    REDUCTIONS,
    SCALING,
    SHAPING,
)
from cvxqop.problem.losses.phi.piecewise import Piecewise
from cvxqop.problem.losses.phi.sheet import Sheet, elementwise, reduced
from cvxqop.problem.losses.phi.smooth import Unread

__all__ = ["read_function"]


def read_function(
    expression: Any,
    argument: Any,
    also: Sequence[tuple[Any, float, float]] = (),
    outputs: bool = False,
) -> Piecewise:
    """φ with expression = φ(argument), for each entry of the argument alike; or summed over them.

    Parameters
    ----------
    expression : cvxpy Expression
        Its variables occur in the argument only; everything else is a public number.
    argument : cvxpy Expression
        t, one of its nodes: a number, an array whose longest axis is that of the records, or one
        with several outputs a record, of which each has φ.
    also : sequence of (node, a, b)
        Other nodes, known to be a t + b, a ≠ 0: the same rows written again, or with a sign.
    outputs : bool
        Whether t has a row a record, of several outputs: of one record no shape tells.

    Raises
    ------
    Unread
        If an atom is not known, or records are combined.
    """
    found = _Reader(argument, also, outputs).read(expression)
    if not isinstance(found, Sheet):
        raise Unread("does not depend on its argument")
    if found.entries.size != 1:
        raise Unread("has several numbers a record")
    function: Piecewise = found.entries.ravel()[0]
    return function


class _Reader:
    def __init__(
        self, argument: Any, also: Sequence[tuple[Any, float, float]], outputs: bool
    ) -> None:
        self._argument, self._also = argument, also
        self._several = outputs or sum(length > 1 for length in argument.shape) > 1

    def read(self, node: Any) -> Any:
        """A Sheet, or an array of public numbers."""
        if node is self._argument:
            return self._leaf(node)
        for other, a, b in self._also:
            if node is other:
                return self._leaf(node, Piecewise.argument() * a + b)
        if _cvxpy.is_leaf(node):
            return self._constant(node)
        arguments = [self.read(argument) for argument in node.args]
        if not any(isinstance(one, Sheet) for one in arguments):
            if _cvxpy.has_variables(node):
                raise Unread("holds a variable outside its argument")
            return self._numbers(_array(_cvxpy.evaluate(node, {})))
        kind = _cvxpy.kind(node)
        known = ELEMENTWISE.get(kind)
        if known is not None:
            numbers = sum(not isinstance(one, Sheet) for one in arguments)
            linear = (kind in ADDITIVE and not numbers) or (kind in SCALING and numbers == 1)
            return elementwise(known(node), arguments, node.ndim, linear)
        if self._several:
            raise Unread("combines several outputs of a record")
        shaped = SHAPING.get(kind)
        if shaped is not None:
            return shaped(node, arguments)
        over = REDUCTIONS.get(kind)
        axes = _cvxpy.reduced_axes(node)
        if over is None or (axes is None and kind != "sigma_max"):
            raise Unread(f"holds {kind}, which is not an atom of one number that is known")
        sheet = arguments[0]
        if not isinstance(sheet, Sheet) or any(isinstance(one, Sheet) for one in arguments[1:]):
            raise Unread(f"holds {kind} with the argument in an unusual place")
        if axes is None:
            if sheet.entries.size != 1 or sheet.axis is not None:
                raise Unread("combines several records, or several numbers of one")
            axes = tuple(range(sheet.entries.ndim))
        keepdims = bool(getattr(node, "keepdims", False))
        return reduced(sheet, axes, keepdims, over(node, arguments), kind in ADDING)

    def _leaf(self, node: Any, function: Piecewise | None = None) -> Sheet:
        lengths = enumerate(node.shape)
        axis = 0 if self._several else next((k for k, length in lengths if length > 1), None)
        entries = np.empty(tuple(1 for _ in node.shape), dtype=object)
        entries[...] = Piecewise.argument() if function is None else function
        return Sheet(entries, axis)

    def _constant(self, node: Any) -> Any:
        if _cvxpy.kind(node) == "variable":
            if _cvxpy.kind(self._argument) == "variable" and node.id == self._argument.id:
                return self._leaf(node)
            raise Unread("holds a variable outside its argument")
        value = _cvxpy.leaf_value(node)
        if value is None:
            raise Unread("holds a parameter without a value")
        return self._numbers(_array(value))

    def _numbers(self, value: Any) -> Any:
        """Public numbers; one number for all outputs, where there are several."""
        if not self._several or value.ndim < 2 or not value.size:
            return value
        if np.any(value != value[:1, :1]):
            raise Unread("has public numbers in it that differ between records or outputs")
        return value[:1, :1]


def _array(value: Any) -> Any:
    if _cvxpy.is_sparse(value):
        value = value.toarray()
    array = np.asarray(value)
    if array.dtype.kind not in "fiub":
        raise Unread("holds a constant that is not an array of real numbers")
    return array.astype(np.float64)
