"""Public factors of a loss: numbers, and arrays with one weight a record."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from cvxqop import _cvxpy
from cvxqop.problem.private.data import PrivateData
from cvxqop.problem.reading import refusals
from cvxqop.problem.reading.public import constant_array, is_plain, number
from cvxqop.problem.reading.weights import Weight

__all__ = ["ScaleReader"]

Array = npt.NDArray[np.float64]


class ScaleReader:
    """Reads what a loss is multiplied with or divided by.

    Parameters
    ----------
    private : PrivateData
        Which leaves are private.
    refuse : callable
        Raises for the term that is being read, with a reason.
    """

    def __init__(self, private: PrivateData, refuse: Callable[[str], NoReturn]) -> None:
        self._private, self._refuse = private, refuse

    def scalar_side(self, node: Any) -> tuple[float, Any] | None:
        """The public number among the two factors of a product, and the other factor."""
        for scalar, other in (node.args, node.args[::-1]):
            if self._private.contains(scalar):
                continue
            inner = scalar.args[0] if _cvxpy.kind(scalar) == "promote" else scalar
            value = number(inner)
            if value is not None:
                self._one_for_all(inner)
                return value, other
        return None

    def constant_side(self, node: Any) -> tuple[Any, Any]:
        """The factor without variables, and the other factor."""
        left, right = node.args
        return (left, right) if not _cvxpy.has_variables(left) else (right, left)

    def weighted(self, factor: Weight, constant: Any, losses: Any) -> Weight:
        """``factor`` times an array with one weight for each of the losses, public or private."""
        if not self._private.contains(constant):
            return factor.weighted(self._public(constant))
        if self._private.count_is_private and _axes(constant) != _axes(losses):
            self._refuse(f"{refusals.BROADCAST}; {refusals.SHAPES}")
        while _cvxpy.kind(constant) in ("neg", "multiply", "reshape", "transpose", "conj"):
            kind, scaled = _cvxpy.kind(constant), None
            if kind == "multiply":
                scaled = self.scalar_side(constant)
                if scaled is None:
                    break
            number, constant = scaled or (-1.0 if kind == "neg" else 1.0, constant.args[0])
            factor = factor if number == 1.0 else factor.times(number)
        return factor.privately(constant)

    def _public(self, constant: Any) -> Array:
        self._one_for_all(constant)
        value = constant_array(constant)
        dense = value.toarray() if _cvxpy.is_sparse(value) else value
        return np.asarray(dense, dtype=np.float64).reshape(-1)

    def divide(self, node: Any, factor: Weight) -> Weight:
        """``factor`` divided by the denominator of a quotient."""
        bottom = node.args[1]
        inner = bottom.args[0] if _cvxpy.kind(bottom) == "promote" else bottom
        if self._private.contains(bottom):
            self._refuse_private(bottom)
        total = _cvxpy.kind(node.args[0]) == "sum"
        scalar = number(inner)
        if self._private.count_is_private:
            self._refuse(refusals.MEAN)  # whatever the number is: of that many records it is n
        if scalar is None:
            if _cvxpy.has_variables(bottom):
                self._refuse("divides by a variable; it is not a sum of losses φ(a'θ + c)")
            return factor.weighted(1.0 / self._public(bottom))
        self._one_for_all(inner)
        if scalar == 0.0:
            self._refuse("divides by zero")
        if total and scalar == node.args[0].args[0].size:
            factor = factor.mean(int(scalar))
        return factor.over(scalar)

    def positive(self, node: Any) -> float:
        """A positive public number."""
        value = None if self._private.contains(node) else number(node)
        if value is None or value <= 0:
            self._refuse("needs a positive public constant in the place of its second argument")
        return value

    def _one_for_all(self, constant: Any) -> None:
        """Where n is private, an array must be the same plain number for any n."""
        counted = self._private.count_is_private and constant.ndim
        if counted and not is_plain(constant_array(constant)):
            self._refuse(refusals.PUBLIC_WEIGHTS)

    def _refuse_private(self, constant: Any) -> NoReturn:
        self._refuse(refusals.divided(" and ".join(self._private.found_in(constant))))


def _axes(node: Any) -> int:
    """Axes of what was broadcast; of one record, CVXPY broadcasts nothing."""
    while _cvxpy.kind(node) in ("promote", "broadcast"):
        node = node.args[0]
    return int(node.ndim)
