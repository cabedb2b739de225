"""The terms that an objective is split into, and the affine argument inside each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from cvxqop import _cvxpy
from cvxqop.errors import ProblemError
from cvxqop.problem.losses.multinomial import Multinomial
from cvxqop.problem.losses.open_loss import OpenLoss
from cvxqop.problem.losses.phi.loss import PhiLoss
from cvxqop.problem.losses.radial import Radial
from cvxqop.problem.losses.scalar import ScalarLoss, logistic
from cvxqop.problem.private.data import PrivateData
from cvxqop.problem.reading import refusals
from cvxqop.problem.reading.public import outputs_of, record_count
from cvxqop.problem.reading.separable import Structure
from cvxqop.problem.reading.weights import Weight

__all__ = ["LinearTerm", "LossTerm", "Opened", "argument_nodes", "is_affine"]

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class LossTerm:
    """weight · Σ_i Π private_i φ(argument_i − centre); ``written`` is the term as it stands in the
    objective.

    ``centre`` is a public number in the argument that is part of φ, ``private`` are expressions
    without variables, with one private weight a record.
    """

    loss: ScalarLoss | Multinomial | Radial
    weight: float | Array
    argument: Any
    written: Any
    mean: bool
    centre: float = 0.0
    private: tuple[Any, ...] = ()

    @property
    def takes_labels(self) -> bool:
        """Whether the loss is one that linear terms are labels of."""
        return self.loss is logistic or isinstance(self.loss, Multinomial | PhiLoss | OpenLoss)


@dataclass(frozen=True, eq=False)
class LinearTerm:
    """weight · Σ_i Π factors_i, linear in the variables; ``output`` is one of several outputs a
    record, where the others are terms of their own."""

    weight: float | Array
    factors: tuple[Any, ...]
    written: Any
    mean: bool
    output: int | None = None


@dataclass(frozen=True, eq=False)
class Opened:
    """factor · Σ over the entries of a node that is no loss by name; ``outer`` is the part of the
    factor that stands outside the sum."""

    node: Any
    factor: Weight
    outer: Weight
    written: Any


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
    if affine and outputs_of(node, data.records) is not None and _keeps_records(node, data, 0):
        return [_unscaled(node, data)]
    if affine and record_count(node) in data.counts and _keeps_records(node, data):
        return [] if _grows(node, data) else [_unscaled(node, data)]
    found: list[Any] = []
    for argument in node.args:
        own = argument_nodes(argument, data)
        if isinstance(own, str):
            return refusals.SEVERAL if affine else own
        found += [one for one in own if not any(one is other for other in found)]
    return found


def _keeps_records(node: Any, data: PrivateData, axis: int | None = None) -> bool:
    """Where n is private, whether a node has the axis of the records, and not one as long."""
    return not data.count_is_private or Structure(data, _unread).has_axis(node, axis)


def _unread(reason: str) -> NoReturn:
    raise ProblemError(reason)


def _unscaled(node: Any, data: PrivateData) -> Any:
    """What is left of an argument without signs and public numbers around it."""
    kind = _cvxpy.kind(node)
    if kind == "neg":
        return _unscaled(node.args[0], data)
    if kind not in ("multiply", "divide"):
        return node
    scalar, inner = sorted(node.args, key=_cvxpy.has_variables)
    scalar = scalar.args[0] if _cvxpy.kind(scalar) == "promote" else scalar
    alone = scalar.size == 1 and not data.contains(scalar)
    return _unscaled(inner, data) if alone and inner.shape == node.shape else node


def _grows(node: Any, data: PrivateData) -> bool:
    """Whether an array of variables meets the records entry by entry."""
    if not data.contains(node):
        return _cvxpy.has_variables(node) and node.size > 1 and not _is_stretched(node)
    if _cvxpy.kind(node) in ("add", "neg", "multiply", "divide"):
        return any(_grows(argument, data) for argument in node.args)
    return False


def _is_stretched(node: Any) -> bool:
    return _cvxpy.kind(node) in ("promote", "broadcast") and node.args[0].size == 1
