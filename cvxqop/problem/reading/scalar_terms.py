"""Losses of one number a record in any spelling: the argument is found, φ is what is around it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NoReturn

import numpy as np

from cvxqop import _cvxpy
from cvxqop.errors import ProblemError
from cvxqop.problem.losses.open_loss import OpenLoss
from cvxqop.problem.losses.phi.piecewise import Piecewise
from cvxqop.problem.losses.phi.reading import read_function
from cvxqop.problem.losses.phi.recognise import NotRecognised, Smooth, classified
from cvxqop.problem.losses.phi.smooth import Unread
from cvxqop.problem.losses.radial import Radial
from cvxqop.problem.losses.scalar import squared
from cvxqop.problem.private.data import PrivateData
from cvxqop.problem.reading import checks, refusals
from cvxqop.problem.reading.affine import AffineReader
from cvxqop.problem.reading.columns import CONSTANT, Columns, line, linear_columns
from cvxqop.problem.reading.loss_terms import (
    LinearTerm,
    LossTerm,
    Opened,
    argument_nodes,
    is_affine,
)
from cvxqop.problem.reading.public import Stacking, constant_array, is_plain, record_count
from cvxqop.problem.reading.separable import PUBLIC, SeparableReader, State
from cvxqop.problem.reading.terms import TermReader
from cvxqop.problem.reading.weights import Weight, weight_ratio
from cvxqop.problem.records.pieces import Pieces

__all__ = ["read_opened"]

Text = Callable[[Any], str]
_NAME = "a loss of one number"
_OF_A_LENGTH = (
    "is a function of the length of several outputs that is not smooth, or has no bound on its "
    "slope. Use sum(huber(norm(X @ Theta - Y, 2, axis=1), M)), or sum_squares(X @ Theta - Y)"
)


@dataclass(eq=False)
class _Phi:
    """weight · Σ_i private_i φ(argument_i): one or several opened nodes with the same argument."""

    function: Piecewise
    argument: Any
    columns: Columns
    weight: Weight
    private: Pieces
    written: Any
    mean: bool
    radial: bool = False

    @property
    def offset(self) -> float:
        """The public number in the argument, the same in all outputs."""
        found = {float(own[CONSTANT].g[0]) if CONSTANT in own else 0.0 for own in self.columns}
        return found.pop() if len(found) == 1 else 0.0


def read_opened(reader: TermReader, data: PrivateData, text: Text) -> None:
    """Add what was left open to the terms of the reader; linear terms with the same argument and
    public factors become part of φ.

    Raises
    ------
    ProblemError
        If φ is no function of one affine argument a record, or not convex.
    """
    if not reader.opened:
        return
    nodes = [own.node for own in reader.opened]
    nodes += [factor for own in reader.linear for factor in own.factors]
    variables = {v.id: v for node in nodes for v in _cvxpy.variables(node)}
    affine = AffineReader(data, Stacking(list(variables.values())), text)
    found: list[_Phi] = []
    for opened in reader.opened:
        own = _Reading(opened, reader, data, affine, text).read()
        same = next((phi for phi in found if _joins(phi, own)), None)
        if same is None:
            found.append(own)
        else:
            _join(same, own)
    if not any(term.takes_labels for term in reader.terms):
        reader.linear[:] = [own for own in reader.linear if not _folded(own, found, affine)]
    for phi in found:
        reader.terms.append(_term(phi, reader))


class _Reading:
    """Reads one opened node."""

    def __init__(
        self,
        opened: Opened,
        reader: TermReader,
        data: PrivateData,
        affine: AffineReader,
        text: Text,
    ) -> None:
        self._opened, self._reader, self._data = opened, reader, data
        self._affine, self._text = affine, text

    def read(self) -> _Phi:
        own = self._opened
        nodes = argument_nodes(own.node, self._data)
        if isinstance(nodes, str):
            self._refuse(nodes)
        self._check_numbers()
        if self._data.count_is_private:
            self._check_structure()
        base, *others = nodes
        terms = [LossTerm(squared, 1.0, node, own.written, False) for node in nodes]
        checks.check_arguments(terms, [], self._data, self._text)
        columns = self._affine.read(base, own.written)
        if not any(linear_columns(columns)):
            self._refuse("does not depend on a variable; remove it")
        also = []
        for node in others:
            own_line = line(self._affine.read(node, own.written), columns)
            if own_line is None:
                self._refuse(refusals.SEVERAL)
            also.append((node, *own_line))
        outer, sign, weights = self._weights()
        length = _length_of(base, own.node) if len(columns) > 1 and not also else None
        inner, several = (base, len(columns) > 1) if length is None else (length, False)
        try:
            function = read_function(own.node, inner, also, several)
        except (Unread, OverflowError) as reason:
            self._refuse(f"{reason}{refusals.DECLARE}")
        self._reader.scales += own.factor.scales
        mean = self._reader.is_mean(own.factor, base)
        weight = replace(own.factor, value=abs(outer) * weights)
        radial = length is not None
        private = self._affine.read_product(weight.private, own.written)
        return _Phi(function * sign, base, columns, weight, private, own.written, mean, radial)

    def _check_numbers(self) -> None:
        """Refuse arrays of one entry that are listed nowhere: κ would tell a record's number."""
        unlisted = [one.owner for one in self._data.unlisted]
        for leaf in _cvxpy.leaves(self._opened.node):
            single = not _cvxpy.has_variables(leaf) and leaf.ndim and leaf.size == 1
            found = single and any(leaf is owner for owner in unlisted)
            if found and not is_plain(constant_array(leaf)):
                self._refuse(
                    "holds an array of one number that is listed neither in private nor in "
                    "public: write it as a number, or list it in public"
                )

    def _weights(self) -> tuple[float, float, Any]:
        """The weight outside the sum, the factor that is part of φ, and weights of records."""
        own = self._opened
        outer = float(np.asarray(own.outer.value))
        inner = np.asarray(own.factor.simplified())
        if not np.all(np.isfinite(inner)) or not np.any(inner):
            return 1.0, 1.0, inner  # refused where weights are checked
        if inner.ndim:
            sign = 1.0 if np.all(inner >= 0.0) else -1.0
            return 1.0, sign, sign * inner
        return outer, float(inner) / abs(outer), 1.0

    def _check_structure(self) -> None:
        """Where n is private: a sum over records by structure, whatever their number."""
        state = _Around(self._data, self._refuse).read(self._opened.node)
        if state == PUBLIC:
            self._refuse(refusals.COMBINES)
        for node in _cvxpy.nodes(self._opened.node):
            if _cvxpy.kind(node) in ("multiply", "divide"):
                self._state_scales(node)

    def _state_scales(self, node: Any) -> None:
        """Numbers within φ may not be computed from n either, which no structure shows."""
        for side in node.args:
            inner = side.args[0] if _cvxpy.kind(side) == "promote" else side
            if _cvxpy.kind(inner) == "constant" and inner.size == 1:
                value = float(np.asarray(_cvxpy.evaluate(inner, {})).ravel()[0])
                self._reader.scales += Weight().times(value).scales if value else ()

    def _refuse(self, reason: str) -> NoReturn:
        written = self._text(self._opened.written)
        raise ProblemError(f"The private term {written} {reason}.") from None


class _Around(SeparableReader):
    """The structure around arguments; what they may divide by is the business of their reader."""

    def __init__(self, private: PrivateData, refuse: Callable[[str], NoReturn]) -> None:
        super().__init__(private, refuse)
        self._inside = False

    def read(self, node: Any) -> State:
        """State of an expression."""
        outside = self._inside
        self._inside = outside or is_affine(node)
        try:
            return super().read(node)
        finally:
            self._inside = outside

    def _divisor(self, node: Any, states: Sequence[State]) -> None:
        if not self._inside:
            super()._divisor(node, states)


def _length_of(argument: Any, node: Any) -> Any:
    """The node that is the Euclidean length of each record's outputs; None if there is none."""
    found = [
        one
        for one in _cvxpy.nodes(node)
        if _cvxpy.kind(one) == "pnorm"
        and one.args[0] is argument
        and float(one.p) == 2.0
        and one.axis in (1, -1)
        and not one.keepdims
    ]
    return found[0] if len(found) == 1 else None


def _joins(phi: _Phi, own: _Phi) -> bool:
    """Whether two have one argument, and weights that are numbers, or the same private ones."""
    numbers = np.ndim(phi.weight.value) == 0 == np.ndim(own.weight.value)
    numbers = numbers and not (phi.radial or own.radial)
    numbers = numbers and weight_ratio(own.private, phi.private) == 1.0
    usable = numbers and 0.0 < float(phi.weight.value) < np.inf
    return usable and line(own.columns, phi.columns) is not None


def _join(phi: _Phi, own: _Phi) -> None:
    a, b = line(own.columns, phi.columns) or (1.0, 0.0)
    factor = Fraction(float(own.weight.value)) / Fraction(float(phi.weight.value))
    moved = own.function if (a, b) == (1.0, 0.0) else _moved(own.function, a, b)
    phi.function = phi.function + moved * factor
    phi.mean = phi.mean or own.mean
    if own.written is not phi.written:
        phi.written = phi.written + own.written


def _moved(f: Piecewise, a: float, b: float) -> Piecewise:
    return f.substitute(Fraction(a), Fraction(b))


def _folded(own: LinearTerm, found: Sequence[_Phi], affine: AffineReader) -> bool:
    """Whether a linear term is a public number times the argument of some φ, with the private
    weights of φ if it has some, and is now in it."""
    if np.ndim(own.weight):
        return False
    *private, argument = own.factors
    for phi in found:
        alike = record_count(argument) == record_count(phi.argument) and not phi.radial
        if not alike or np.ndim(phi.weight.value):
            continue
        try:
            found_line = line(affine.read(argument, own.written), phi.columns)
            share = weight_ratio(affine.read_product(private, own.written), phi.private)
        except ProblemError:
            return False
        weight = float(phi.weight.value)
        if found_line is not None and share is not None and 0.0 < weight < np.inf:
            slope = Fraction(float(own.weight) * share) * Fraction(found_line[0]) / Fraction(weight)
            phi.function = phi.function + Piecewise.argument() * slope
            phi.mean = phi.mean or own.mean
            if own.written is not phi.written:
                phi.written = phi.written + own.written
            return True
    return False


def _term(phi: _Phi, reader: TermReader) -> LossTerm:
    """The loss, of the argument less its public number, which becomes part of φ."""
    offset = 0.0 if phi.radial else phi.offset
    reason = "has a constant that is too large"
    try:
        found = classified(phi.function, _NAME)
        if isinstance(found, Smooth) and offset:
            found = classified(_moved(phi.function, 1.0, offset), _NAME)
    except (Unread, OverflowError) as why:
        found = NotRecognised(str(why) if isinstance(why, Unread) else reason)
    if isinstance(found, NotRecognised):
        reason = _OF_A_LENGTH if phi.radial else f"{found.reason}{refusals.DECLARE}"
        reader.refuse_term(phi.written, reason)
    weight = reader.checked_weight(phi.weight, phi.written)
    private = phi.weight.private
    if phi.radial:
        count = len(phi.columns)
        loss: Any = found.loss if isinstance(found, Smooth) else None
        if loss is None or loss.derivative(np.zeros(1))[0] != 0.0 or not np.isfinite(loss.slope):
            reader.refuse_term(phi.written, _OF_A_LENGTH)
        radial = Radial(count, loss)
        return LossTerm(radial, weight, phi.argument, phi.written, phi.mean, 0.0, private)
    loss = found.loss if isinstance(found, Smooth) else OpenLoss.of(found, 1.0, offset)
    return LossTerm(loss, weight, phi.argument, phi.written, phi.mean, offset, private)
