"""What a private problem must not contain, each with its own message."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import cvxpy as cp
import numpy as np

from cvxqop import _cvxpy
from cvxqop.errors import ProblemError
from cvxqop.problem.losses.multinomial import Multinomial
from cvxqop.problem.losses.radial import Radial
from cvxqop.problem.private.data import PrivateData
from cvxqop.problem.private.listing import summands
from cvxqop.problem.reading import refusals
from cvxqop.problem.reading.loss_terms import LinearTerm, LossTerm
from cvxqop.problem.reading.public import constant_array, outputs_of, record_count, records_of
from cvxqop.problem.spelling.impossible import IMPOSSIBLE, IN_A_CONSTRAINT, Impossible

__all__ = [
    "check_arguments",
    "check_constraints",
    "check_counts",
    "check_leaves",
    "check_loss_variable",
    "check_matrices",
    "check_outputs",
    "check_rest",
    "check_weights",
    "common_count",
]

_KEPT_ATTRIBUTES = ("nonneg", "nonpos", "pos", "neg", "bounds")
_TIED_ATTRIBUTES = ("symmetric", "PSD", "NSD")

Text = Callable[[Any], str]

_CONTRACTS = (
    "sums a matrix of variables along an axis that may be as long as there are records, which is "
    "private under add_remove and with persons. List the array, or the variable, in public=[…]"
)


def check_leaves(roots: Sequence[Any]) -> None:
    """Variables are real and continuous, parameters have values, arrays are real, powers are to
    the power of a number, and no problem is inside the problem."""
    for node in _cvxpy.holdings(list(roots)).nodes:
        if _cvxpy.kind(node) == "power" and np.size(node.p) != 1:
            raise ProblemError("The exponent of a power is an array; it must be a number.")
    for root in roots:
        if any(_cvxpy.kind(node) == "partialproblem" for node in _cvxpy.nodes(root)):
            raise ProblemError(
                "partial_optimize holds a problem inside the problem, which CVXPY cannot solve "
                "beside a quadratic form. Write its objective as a term and its constraints among "
                "the constraints: the whole is then minimised over all variables, which is the "
                "same."
            )
        for leaf in _cvxpy.leaves(root):
            if _cvxpy.kind(leaf) == "variable":
                _check_variable(leaf)
                continue
            value = _cvxpy.leaf_value(leaf)
            if value is None:
                raise ProblemError(
                    f"The parameter {leaf.name()} has no value; set its value before this call."
                )
            if np.iscomplexobj(value):
                raise ProblemError("The problem holds a complex constant; only real data work.")


def _check_variable(variable: cp.Variable) -> None:
    for name in _cvxpy.attributes(variable):
        if name in ("complex", "imag", "hermitian"):
            raise ProblemError(
                f"The variable {variable.name()} is complex. Use real variables for its real and "
                "imaginary part."
            )
        if name in ("boolean", "integer"):
            raise ProblemError(
                f"The variable {variable.name()} is {name}, so the problem is not convex. Use a "
                "continuous variable and round the release."
            )


def check_loss_variable(variable: cp.Variable, quadratic: bool) -> None:
    """A variable of the loss may have attributes that are plain constraints, and of a quadratic
    loss, whose release does not look at them, those of symmetric matrices."""
    for name in _cvxpy.attributes(variable):
        if name not in _KEPT_ATTRIBUTES and not (quadratic and name in _TIED_ATTRIBUTES):
            raise ProblemError(
                f"The variable {variable.name()} of the private loss has the attribute {name}, "
                "which ties its entries together. Use a free variable and state the property as a "
                "constraint."
            )


def common_count(
    terms: Sequence[LossTerm], linear: Sequence[LinearTerm], data: PrivateData, text: Text
) -> int:
    """n, the same for all terms and private weights: the linear terms where there are no others."""
    arguments = [(term.argument, term.written) for term in terms]
    arguments = arguments or [(one, own.written) for own in linear for one in own.factors]
    counts = [(records_of(argument, data.records), written) for argument, written in arguments]
    counts += [(record_count(one), term.written) for term in terms for one in term.private]
    check_counts(counts, text)
    return counts[0][0] or 0


def check_outputs(term: LossTerm, data: PrivateData, text: Text) -> None:
    """The multinomial loss has several outputs a record, and one weight."""
    labelled, radial = isinstance(term.loss, Multinomial), isinstance(term.loss, Radial)
    if outputs_of(term.argument, data.records) is None:
        if labelled:
            _refuse_term(term, refusals.of_shape(term.argument, data.count_is_private), text)
        return
    if term.private:
        _refuse_term(term, "has private weights, and several outputs a record", text)
    if (labelled or radial) and np.ndim(term.weight):
        _refuse_term(term, "has public weights, one a record, and several outputs a record", text)


def check_counts(counts: Sequence[tuple[int | None, Any]], text: Text) -> None:
    """All terms, given with the number of records they run over, have the same."""
    n, first = counts[0]
    for count, written in counts:
        if count != n:
            raise ProblemError(
                f"The private terms {text(first)} and {text(written)} "
                f"{IMPOSSIBLE['different records'].text}."
            )


def check_arguments(
    terms: Sequence[LossTerm], linear: Sequence[LinearTerm], data: PrivateData, text: Text
) -> None:
    """Records are not stacked, nor in the arguments of a `glm_loss`, nor broadcast where their
    number is private.

    Decided on the structure and before any shape is looked at, so that it is decided alike for one
    record and for more.
    """
    roots = [(node, own.written) for own in terms for node in (own.argument, *own.private)]
    roots += [(factor, term.written) for term in linear for factor in term.factors]
    for root, written in roots:
        for node in _cvxpy.nodes(root):
            kind = _cvxpy.kind(node)
            if _cvxpy.holds_records(node) and any(map(data.contains, node.args)):
                _refuse(node, written, refusals.in_arguments(_names(node.args, data)), text)
            if kind in ("vstack", "hstack", "concatenate") and data.contains(node):
                _refuse(node, written, refusals.stacked(kind), text)
            if data.count_is_private and _contracts(node, data):
                _refuse(node, written, _CONTRACTS, text)
            entrywise = kind in ("add", "multiply", "divide")
            if data.count_is_private and entrywise and _broadcasts(node, data):
                _refuse(node, written, f"{refusals.BROADCAST}; {refusals.SHAPES}", text)


def _contracts(node: Any, data: PrivateData) -> bool:
    """Whether a matrix of variables is summed along an axis that may be as long as there are
    records, so that the norm of a row would tell how many there are."""
    if _cvxpy.kind(node) == "sum":
        inner = node.args[0]
        return inner.ndim == 2 and _cvxpy.has_variables(inner) and not data.has_listed(inner)
    if _cvxpy.kind(node) != "matmul":
        return False
    left, right = node.args
    for vector, other in ((left, right), (right, left)):
        summed = vector.ndim == 1 or (vector is right and vector.shape[1] == 1)
        if summed and other.ndim == 2 and _cvxpy.has_variables(other):
            owners = [one.owner for one in data.unlisted]
            return any(leaf is owner for leaf in _cvxpy.leaves(vector) for owner in owners)
    return False


def _names(nodes: Sequence[Any], data: PrivateData) -> str:
    names = [name for node in nodes for name in data.found_in(node)]
    return " and ".join(dict.fromkeys(names))


def _broadcasts(node: Any, data: PrivateData) -> bool:
    """Whether an operand with records is brought to another shape, or, of one record, would be."""
    own = [argument for argument in node.args if data.contains(argument) and argument.ndim]
    for argument in own:
        inner = argument.args[0] if _cvxpy.kind(argument) in ("promote", "broadcast") else None
        inner = _cvxpy.stretched(argument) if inner is None else inner
        grown = inner is not None and inner.ndim and inner.shape != argument.shape
        if grown and data.contains(inner):
            return True
    return len({argument.ndim for argument in own}) > 1


def _refuse(node: Any, term: Any, reason: str, text: Text) -> NoReturn:
    if node is term:
        raise ProblemError(f"The private term {text(term)} {reason}.")
    raise ProblemError(f"{text(node)} in the term {text(term)} {reason}.")


def _refuse_term(term: LossTerm, reason: str, text: Text) -> NoReturn:
    raise ProblemError(f"The private term {text(term.written)} {reason}.")


def check_weights(terms: Sequence[LossTerm], n: int, data: PrivateData, text: Text) -> None:
    """Weights have one entry a record, or one for each of its outputs."""
    for term in terms:
        outputs = outputs_of(term.argument, data.records)
        most = n if outputs is None else n * int(outputs.shape[1])
        if np.ndim(term.weight) and np.size(term.weight) not in (1, most):
            raise ProblemError(
                f"The private term {text(term.written)} has weights for another number of records."
            )


def check_constraints(
    constraints: Sequence[Any], data: PrivateData, text: Callable[[Any], str]
) -> None:
    """Constraints hold no private data and are convex."""
    for constraint in constraints:
        if data.contains(constraint):
            raise ProblemError(
                f"The constraint {text(constraint)} holds private data "
                f"({' and '.join(data.found_in(constraint))}), which may occur in losses only: it "
                f"{_in_a_constraint(constraint, data).text}."
            )
        if not constraint.is_dcp():
            raise ProblemError(
                f"The constraint {text(constraint)} is not convex by the rules of disciplined "
                "convex programming."
            )


def _in_a_constraint(constraint: Any, data: PrivateData) -> Impossible:
    """Of what kind a constraint with private data is; of one record as of more."""
    sums = ("quad_over_lin", "sum", "sum_largest", "max")
    for node in _cvxpy.nodes(constraint):
        kind = _cvxpy.kind(node)
        whole = (kind in sums and node.ndim == 0) or refusals.over_records(node, kind, hidden=True)
        if whole and not _cvxpy.is_leaf(node) and data.contains(node):
            return IN_A_CONSTRAINT["norm"]
    if _cvxpy.kind(constraint) != "equality":
        return IN_A_CONSTRAINT["row"]
    return IN_A_CONSTRAINT["equation" if constraint.args[0].ndim else "dual"]


def check_matrices(objective: Any, data: PrivateData, text: Text) -> None:
    """No quadratic form has a private matrix or weighs records against each other, and where n is
    public no variable has one entry a record.

    Raises
    ------
    ProblemError
        Names the term and what to write instead.
    """
    for term in summands(objective):
        if not data.contains(term):
            continue
        for node in _cvxpy.nodes(term):
            kind = _cvxpy.kind(node)
            if kind == "quad_form" and data.contains(node.args[1]) and not _scales(node, data):
                _refuse(node, term, IMPOSSIBLE["matrix"].text, text)
            if kind == "quad_form" and data.contains(node.args[0]) and _weighs(node.args[1]):
                _refuse(node, term, IMPOSSIBLE["quad_form"].text, text)
            if kind in ("add", "multiply") and not data.count_is_private and _grows(node, data):
                _refuse(node, term, IMPOSSIBLE["per record"].text, text)


def _scales(node: Any, data: PrivateData) -> bool:
    """Whether a quadratic form has private weights, one a record."""
    return _cvxpy.kind(node.args[1]) == "diag" and data.contains(node.args[0])


def _weighs(matrix: Any) -> bool:
    """Whether a public matrix has entries beside its diagonal."""
    if _cvxpy.has_variables(matrix):
        return True
    value = constant_array(matrix)
    value = value.toarray() if _cvxpy.is_sparse(value) else value
    return bool(np.count_nonzero(value) > np.count_nonzero(np.diagonal(value)))


def _grows(node: Any, data: PrivateData) -> bool:
    """Whether a variable meets the records entry by entry."""
    own = [side.args[0] if _cvxpy.kind(side) == "neg" else side for side in node.args]
    alike = any(_cvxpy.kind(v) == "variable" and v.shape == node.shape and v.ndim for v in own)
    n = data.records
    return alike and n is not None and n > 1 and node.shape[0] == n


def check_rest(rest: Sequence[Any], text: Text) -> None:
    """The public terms are convex."""
    for node in rest:
        if not (node.is_dcp() and node.is_convex()):
            raise ProblemError(
                f"The public term {text(node)} is not convex by the rules of disciplined convex "
                "programming."
            )
