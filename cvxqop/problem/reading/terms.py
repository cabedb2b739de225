"""From an objective to loss terms w·Σ_i φ(e_i) and the public rest: atoms, not arguments e."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from cvxqop import _cvxpy
from cvxqop.errors import ProblemError
from cvxqop.problem.losses.multinomial import Multinomial
from cvxqop.problem.losses.phi.operations import ELEMENTWISE
from cvxqop.problem.losses.scalar import ScalarLoss, huber, logistic, squared, squared_hinge
from cvxqop.problem.private.data import PrivateData
from cvxqop.problem.reading import refusals
from cvxqop.problem.reading.loss_terms import (
    LinearTerm,
    LossTerm,
    Opened,
    argument_nodes,
    is_affine,
)
from cvxqop.problem.reading.public import constant_array, record_count
from cvxqop.problem.reading.scales import ScaleReader
from cvxqop.problem.reading.weights import Weight

__all__ = ["TermReader"]

Array = npt.NDArray[np.float64]


class TermReader:
    """Splits an objective into private loss terms and public rest.

    What is no loss by name, and may be one of an affine argument inside it, is left in ``opened``;
    then so is everything else in the same term, because it may be part of the same φ.
    """

    def __init__(self, private: PrivateData, text: Callable[[Any], str]) -> None:
        self._private, self._text = private, text
        self._scales = ScaleReader(private, self._refuse)
        self.scales: list[str] = []
        self.terms: list[LossTerm] = []
        self.linear: list[LinearTerm] = []
        self.rest: list[Any] = []
        self.opened: list[Opened] = []
        self._written: Any = None
        self._outer, self._opening = Weight(), False

    def split(self, node: Any) -> None:
        """Read the expression that is minimised into ``terms``, ``linear`` and ``rest``."""
        self._split_term(node, Weight())

    def _split(self, node: Any, factor: Weight, written: Any) -> None:
        if not self._private.contains(node):
            weight = float(np.asarray(factor.value))
            self.rest.append(node if weight == 1.0 else weight * node)
            return
        kind = _cvxpy.kind(node)
        if kind == "add":
            for argument in node.args:
                self._split_term(argument, factor)
            return
        self._written = written
        if kind == "neg":
            self._split(node.args[0], factor.times(-1.0), written)
        elif kind in ("reshape", "transpose", "conj", "promote") and node.args[0].size == 1:
            self._split(node.args[0], factor, written)
        elif kind in ("multiply", "matmul") and self._scales.scalar_side(node) is not None:
            scalar, other = self._scales.scalar_side(node) or (0.0, None)
            if kind == "matmul" and _cvxpy.kind(other) not in ("sum", "quad_over_lin"):
                self._weighted_sum(node, factor)  # of one record, a vector is one number
                return
            self._split(other, factor.times(scalar), written)
        elif kind == "divide":
            divided = self._scales.divide(node, factor)
            self._split(node.args[0], divided, written)
        else:
            self._outer = factor
            self._loss(node, factor, kind)

    def _split_term(self, node: Any, factor: Weight) -> None:
        """One summand of the objective; again with everything left open, if something is."""
        lists: list[list[Any]] = [self.terms, self.linear, self.scales, self.opened, self.rest]
        before, opened = [len(one) for one in lists], len(self.opened)
        self._split(node, factor, node)
        if len(self.opened) > opened and len(self.terms) > before[0] and not self._opening:
            for one, length in zip(lists, before, strict=True):
                del one[length:]
            self._opening = True
            self._split(node, factor, node)
            self._opening = False

    def _loss(self, node: Any, factor: Weight, kind: str) -> None:
        """One term Σ_i φ(e_i), or a sum of several under one ``sum``."""
        if kind == "quad_over_lin" and node.axis is None:
            over = factor.over(self._scales.positive(node.args[1]))
            self._square(node.args[0], over, node, factor)
        elif kind == "power" and _cvxpy.exponent(node) == 2 and _cvxpy.is_euclidean(node.args[0]):
            self._square(node.args[0].args[0], factor, node)
        elif kind == "sum" and (node.axis is None or node.size == 1):
            self._elementwise(node.args[0], factor)
        elif kind == "glm_loss":
            self._add(node.loss, factor, node)
        elif kind == "matmul":
            self._weighted_sum(node, factor)
        elif kind == "quad_form" and _cvxpy.kind(node.args[1]) == "diag":
            vector, (weights,) = node.args[0], node.args[1].args
            own = self._scales.weighted(factor, weights, weights)
            self._known(squared, own, vector, node)
        elif node.size == 1 and kind in ("power", "huber", "logistic"):
            if node.ndim and self._private.count_is_private:
                raise ProblemError(refusals.ARRAY)  # it would be of more records
            self._elementwise(node, factor)
        else:
            self._open(node, factor, kind)

    def _elementwise(self, node: Any, factor: Weight) -> None:
        """Σ over the entries of ``node``, weighted by ``factor``."""
        if not self._private.contains(node):
            self._refuse(
                "adds up public entries, one a record; write that part as a term of its own"
            )
        kind = _cvxpy.kind(node)
        if _cvxpy.is_linear(node) and _cvxpy.has_variables(node):
            self._add_linear(factor, (node,))
        elif kind == "add":
            for argument in node.args:
                self._elementwise(argument, factor)
        elif kind == "neg":
            self._elementwise(node.args[0], factor.times(-1.0))
        elif kind in ("reshape", "transpose", "conj"):
            self._elementwise(node.args[0], factor)
        elif kind in ("promote", "broadcast"):
            self._refuse_shape(node)
        elif kind in ("multiply", "matmul") and self._scales.scalar_side(node) is not None:
            scalar, other = self._scales.scalar_side(node) or (0.0, None)
            self._elementwise(other, factor.times(scalar))
        elif kind == "multiply" and not all(map(_cvxpy.has_variables, node.args)):
            self._weighted(*self._scales.constant_side(node), factor)
        elif kind == "divide":
            self._elementwise(node.args[0], self._scales.divide(node, factor))
        elif kind == "power" and _cvxpy.exponent(node) == 2:
            self._square(node.args[0], factor, node)
        elif kind == "huber":
            self._known(huber(self._scales.positive(node.M)), factor, node.args[0], node)
        elif kind == "logistic":
            self._known(logistic, factor, node.args[0], node)
        elif kind == "log_sum_exp" and node.axis in (1, -1) and node.args[0].shape[1] > 1:
            self._add(Multinomial(int(node.args[0].shape[1])), factor, node.args[0])
        else:
            self._open(node, factor, kind)

    def _square(self, inner: Any, factor: Weight, node: Any, around: Weight | None = None) -> None:
        """Σ of the squares of the entries of ``inner``."""
        part = self._positive_part(inner) if _cvxpy.kind(inner) == "maximum" else None
        if part is not None:
            self._known(squared_hinge, factor, part, node, around)
        elif _cvxpy.kind(inner) == "maximum":
            self._open(node, around or factor, "maximum", inner)
        else:
            inner = inner.args[0] if _cvxpy.kind(inner) == "abs" else inner
            self._known(squared, factor, inner, node, around)

    def _known(
        self,
        loss: ScalarLoss,
        factor: Weight,
        argument: Any,
        node: Any,
        around: Weight | None = None,
    ) -> None:
        """A loss by name; left open where its argument is not affine, or its term is left open."""
        affine = _cvxpy.is_linear(argument) or is_affine(argument)
        closed = _cvxpy.holds_records(argument) or (affine and not self._opening)
        if closed or not self._opens(node):
            self._add(loss, factor, argument)
        else:
            own = around or factor
            self.opened.append(Opened(node, own, self._outer, self._written))

    def _opens(self, node: Any) -> bool:
        found = argument_nodes(node, self._private)
        return bool(found) and not isinstance(found, str)

    def _open(self, node: Any, factor: Weight, kind: str, told: Any = None) -> None:
        """What is no loss by name; ``told`` is the node that a refusal is about."""
        found = argument_nodes(node, self._private)
        told = node if told is None else told
        hidden = self._private.count_is_private
        if found and not isinstance(found, str) and not refusals.over_records(told, kind, hidden):
            self.opened.append(Opened(node, factor, self._outer, self._written))
            return
        if told is node and found == refusals.BESIDE and kind in ELEMENTWISE:
            self._refuse(refusals.BESIDE)
        self._refuse_atom(told, kind)

    def _add(self, loss: ScalarLoss | Multinomial, factor: Weight, argument: Any) -> None:
        weight = self.checked_weight(factor, self._written)
        if _cvxpy.kind(argument) == "abs" and loss.even:
            argument = argument.args[0]
        mean = self.is_mean(factor, argument)
        self.scales += factor.scales
        own = LossTerm(loss, weight, argument, self._written, mean, private=factor.private)
        self.terms.append(own)

    def checked_weight(self, factor: Weight, written: Any) -> float | Array:
        """The weight of a term.

        Raises
        ------
        ProblemError
            If it is negative, zero or not finite.
        """
        self._written = written
        weights = np.asarray(factor.value)
        if np.any(weights < 0):
            self._refuse(
                "has a negative weight, so it is not convex; losses are minimised with positive "
                "weights"
            )
        if weights.size and not np.any(weights > 0):
            self._refuse("has weight zero, so there is nothing private in it; remove the term")
        if not np.all(np.isfinite(weights)):
            self._refuse("has a weight that is not finite")
        return factor.simplified()

    def _add_linear(self, factor: Weight, factors: tuple[Any, ...]) -> None:
        mean = self.is_mean(factor, factors[0])
        self.scales += factor.scales
        whole = (*factor.private, *factors)
        self.linear.append(LinearTerm(factor.simplified(), whole, self._written, mean))

    def is_mean(self, factor: Weight, argument: Any) -> bool:
        """Whether the weight holds 1/n; where n is private, no number is compared with it."""
        if self._private.count_is_private:
            return False
        counts = [record_count(argument), self._private.records]
        counts += [argument.size] if argument.ndim == 2 else []
        return any(n is not None and factor.depends_on(n) for n in counts)

    def _weighted(self, constant: Any, other: Any, factor: Weight) -> None:
        self._elementwise(other, self._scales.weighted(factor, constant, other))

    def _weighted_sum(self, node: Any, factor: Weight) -> None:
        """weights @ (…): a public vector times one entry a record."""
        left, right = node.args
        constant, other = self._scales.constant_side(node)
        if left.size == right.size and node.size == 1 and not _cvxpy.has_variables(constant):
            if not _cvxpy.is_linear(other):
                self._weighted(constant, other, factor)
                return
            if _cvxpy.has_variables(other):
                self._add_linear(factor, (constant, other))
                return
        self._refuse(refusals.COMBINES)

    def _positive_part(self, node: Any) -> Any:
        """e of max(e, 0); None of any other maximum."""
        inner = [own for own in node.args if _cvxpy.has_variables(own)]
        others = [own for own in node.args if not _cvxpy.has_variables(own)]
        if len(inner) != 1 or any(map(self._private.contains, others)):
            return None
        return None if any(np.any(constant_array(own)) for own in others) else inner[0]

    def _refuse_shape(self, node: Any) -> NoReturn:
        shapes = f" from shape {tuple(node.args[0].shape)} to {tuple(node.shape)}"
        told = "" if self._private.count_is_private else shapes
        self._refuse(f"broadcasts {self._text(node)}{told}; {refusals.SHAPES}")

    def _refuse_atom(self, node: Any, kind: str) -> NoReturn:
        self._refuse(refusals.of_atom(node, kind, self._private.count_is_private))

    def refuse_term(self, written: Any, reason: str) -> NoReturn:
        """Refuse a term.

        Raises
        ------
        ProblemError
            Always.
        """
        self._written = written
        self._refuse(reason)

    def _refuse(self, reason: str) -> NoReturn:
        raise ProblemError(f"The private term {self._text(self._written)} {reason}.") from None
