"""What counts as public: arrays that are listed, and what cannot be one row a record.

- What is listed in ``private`` is private wherever it stands, and so is what shares its memory.
- What is listed in ``public`` is public.
- In a private term an array with one value in every entry is a way to write a number.
- Any other array is refused where it could hold records: where n is public, if one of its axes is
  as long as there are records, or it has as many entries as a private array, of which it may be
  another shape; where n is private, always, because no length may decide.

Neither the numbers of a private array nor, where n is private, their count enter the decision.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import cvxpy as cp
import numpy as np

from cvxqop import _cvxpy
from cvxqop.errors import ProblemError
from cvxqop.problem.private.data import PrivateData, Unlisted
from cvxqop.problem.reading import refusals
from cvxqop.problem.reading.public import is_plain, is_plain_identity

__all__ = ["check_hidden", "check_listed", "check_shapes", "summands", "unlisted_names"]

Text = Callable[[Any], str]


def check_hidden(roots: Sequence[Any], data: PrivateData, text: Text) -> None:
    """Records occur in arguments only, not in bounds, indices, weights or sets beside them.

    Raises
    ------
    ProblemError
        Names the variable or the expression, and the private arrays.
    """
    for node in _cvxpy.holdings(list(roots)).nodes:
        if not isinstance(node, cp.Expression) or _cvxpy.kind(node) in ("huber", "power"):
            continue  # the readers of these look at their constants
        beside = _cvxpy.aside(node)
        names = data.found_among([node, *beside], beside)
        if names:
            kept = " and ".join(names)
            if _cvxpy.kind(node) == "variable":
                raise ProblemError(
                    f"The bounds or attributes of the variable {node.name()} hold private data "
                    f"({kept}). Private data may occur in losses only; use public bounds."
                )
            raise ProblemError(
                f"{text(node)} keeps private data ({kept}) beside its arguments, as indices, "
                "weights or a set. Private data may occur in the arguments of losses only."
            )


def check_listed(objective: Any, constraints: Sequence[Any], data: PrivateData, text: Text) -> None:
    """Refuse arrays that are listed nowhere and could hold records.

    Raises
    ------
    ProblemError
        Names the term, the array and both remedies.
    """
    terms = [term for term in summands(objective) if data.contains(term)]
    rest = [term for term in summands(objective) if not data.contains(term)]
    beside = set(_cvxpy.holdings([*rest, *constraints]).nodes)
    written = _broadcast_ones([*terms, *rest, *constraints])
    for unlisted in data.unlisted:
        if unlisted.owner in written:
            continue
        if not _is_accepted(unlisted, data, unlisted.owner not in beside):
            place = _place(unlisted.owner, objective, constraints, data, text)
            reason = refusals.UNLISTED_COUNTED if data.count_is_private else refusals.UNLISTED
            raise ProblemError(f"{place} holds {_named(unlisted, data, text)} {reason}")


def check_shapes(objective: Any, constraints: Sequence[Any], data: PrivateData) -> None:
    """Where n is private, refuse arrays of variables beside the loss whose shape is not listed.

    They are released, and their shape with them.

    Raises
    ------
    ProblemError
        Names the variable.
    """
    if not data.count_is_private:
        return
    terms = [term for term in summands(objective) if data.contains(term)]
    own = {v.id for term in terms for v in _cvxpy.variables(term)}
    for node in _cvxpy.holdings([objective, *constraints]).nodes:
        if _cvxpy.kind(node) != "variable" or not node.ndim or node.id in own:
            continue
        if not data.is_listed(node):
            raise ProblemError(
                f"The variable {node.name()} occurs in no private term, and its shape is released "
                "with it. Under add_remove and with persons, where the number of records is "
                "private, say that its shape was chosen without looking at the data by listing the "
                f"variable: public=[{node.name()}]."
            )


def unlisted_names(data: PrivateData) -> tuple[str, ...]:
    """Arrays of more than one number that are listed nowhere and taken for public."""
    names = []
    for unlisted in data.unlisted:
        array = unlisted.array
        if array.size > 1 and not (_has_one_value(array) or is_plain_identity(array)):
            shape = _cvxpy.format_shape(unlisted.array.shape)
            name = unlisted.where or _given_name(unlisted.owner)
            names.append(f"{name} of shape {shape}, not listed")
    return tuple(dict.fromkeys(names))


def summands(node: Any) -> Iterator[Any]:
    """The terms of a sum, those of sums in brackets included."""
    if _cvxpy.kind(node) == "add":
        for argument in node.args:
            yield from summands(argument)
    else:
        yield node


def _is_accepted(unlisted: Unlisted, data: PrivateData, in_a_private_term: bool) -> bool:
    array = unlisted.array
    folded = array.size > 1 and int(np.prod(array.shape)) in data.sizes
    if not (data.count_is_private or folded or data.counts & set(array.shape)):
        return True
    if unlisted.is_index:
        return False
    if unlisted.where:  # weights that CVXPY fills in, and bounds that are none
        return is_plain(array) or (not _cvxpy.is_sparse(array) and bool(np.all(np.isinf(array))))
    if not in_a_private_term:
        return False
    # The array of one record may have one value: it has to be a number that formulas are made of,
    # and where n may be one, so has any.
    if is_plain(array) or is_plain_identity(array) or _cvxpy.is_of_log_normcdf(array):
        return True
    several = array.size > 1 and not data.count_is_private and min(data.counts) > 1
    return several and _has_one_value(array)


def _broadcast_ones(roots: Sequence[Any]) -> set[Any]:
    """The constants of ones by which CVXPY itself writes that a row or a column is repeated."""
    nodes = [node for node in _cvxpy.holdings(list(roots)).nodes if _cvxpy.stretched(node)]
    return {side for node in nodes for side in node.args if side is not _cvxpy.stretched(node)}


def _has_one_value(array: Any) -> bool:
    if _cvxpy.is_sparse(array):
        return bool(array.nnz == 0)
    return bool(np.all(array == array.flat[:1]))


def _place(
    owner: Any, objective: Any, constraints: Sequence[Any], data: PrivateData, text: Text
) -> str:
    """The term or constraint that holds a node, in words."""
    for constraint in constraints:
        if _holds(constraint, owner):
            return f"The constraint {text(constraint)}"
    for term in summands(objective):
        if _holds(term, owner):
            kind = "private" if data.contains(term) else "public"
            return f"The {kind} term {text(term)}"
    return "The problem"


def _holds(root: Any, owner: Any) -> bool:
    return any(node is owner for node in _cvxpy.holdings(root).nodes)


def _named(unlisted: Unlisted, data: PrivateData, text: Text) -> str:
    if unlisted.where:
        return unlisted.where
    if data.count_is_private:
        return _given_name(unlisted.owner)
    return f"{_given_name(unlisted.owner)} of shape {_cvxpy.format_shape(unlisted.array.shape)}"


def _given_name(leaf: Any) -> str:
    kind = _cvxpy.kind(leaf)
    name = _cvxpy.given_name(leaf)
    return f"the {kind} {name}" if name else "an array"
