"""Reading a CVXPY problem: which terms are private, what their rows are, what is public."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import cvxpy as cp
import numpy as np

from cvxqop import _cvxpy
from cvxqop.errors import OptionError, ProblemError
from cvxqop.problem.affine import AffineReader, record_count
from cvxqop.problem.assemble import Assembled, assemble
from cvxqop.problem.erm import ERM
from cvxqop.problem.private import PrivateData, match
from cvxqop.problem.public import Stacking
from cvxqop.problem.rows import Piece
from cvxqop.problem.terms import LossTerm, TermReader

__all__ = ["read", "read_expression"]

_ADJACENCIES = ("replace_one", "add_remove")
_KEPT_ATTRIBUTES = ("nonneg", "nonpos", "pos", "neg", "bounds")


def read(problem: cp.Problem, private: Sequence[Any], *, adjacency: str = "replace_one") -> ERM:
    """Read a problem as private ERM.

    Parameters
    ----------
    problem : cvxpy.Problem
        Minimise private losses plus a public rest, subject to public constraints.
    private : sequence
        Arrays (matched by value, also transposed), ``cp.Constant`` or ``cp.Parameter`` (by
        identity), each with one row a record.
    adjacency : {"replace_one", "add_remove"}
        What neighbouring data sets are; a mean and public arrays with one row a record have no
        meaning under add_remove.

    Raises
    ------
    ProblemError
        If the problem is not of this form. The message names the term and the remedy.
    """
    if not isinstance(problem, cp.Problem):
        raise ProblemError(f"problem must be a cvxpy.Problem, not {type(problem).__name__}.")
    if type(problem.objective) is not cp.Minimize:
        raise ProblemError(
            "The objective is a maximisation. Minimise the negative log-likelihood or loss: "
            "Minimize(loss + regulariser) in place of Maximize(…)."
        )
    return _read(problem.objective.args[0], list(problem.constraints), private, adjacency)


def read_expression(
    expression: Any, private: Sequence[Any], *, adjacency: str = "replace_one"
) -> ERM:
    """Read an expression that is a private loss and nothing else.

    Raises
    ------
    ProblemError
        As `read`, and if the expression has public terms.
    """
    if not isinstance(expression, cp.Expression):
        raise ProblemError(
            f"expression must be a CVXPY expression, not {type(expression).__name__}."
        )
    erm = _read(expression, [], private, adjacency)
    if erm.regulariser is not None:
        raise ProblemError(
            f"The expression has public terms: {' + '.join(erm.rest_text)}. Pass the private loss "
            "alone; regularisers are added to the PrivateLoss that comes back, at no privacy cost."
        )
    return erm


def _read(objective: Any, constraints: list[Any], private: Sequence[Any], adjacency: str) -> ERM:
    if adjacency not in _ADJACENCIES:
        raise OptionError(f"adjacency must be one of {', '.join(_ADJACENCIES)}, not {adjacency!r}.")
    if objective.size != 1:
        raise ProblemError(
            f"The objective has shape {tuple(objective.shape)}; it must be a number."
        )
    data = match(private, [objective, *constraints])
    names = data.leaf_names

    def text(node: Any) -> str:
        return _cvxpy.format_expression(node, names)

    _check_leaves([objective, *constraints], data)
    if not data.contains(objective):
        _check_constraints(constraints, data, text)
        raise ProblemError(
            "The objective holds no private data: nothing in private occurs in it. List the "
            "arrays of the loss in private."
        )
    reader = TermReader(data, text)
    reader.split(objective)
    stacking = _stacking(reader.terms)
    affine = AffineReader(data, stacking, text)
    pieces = [affine.read(term.argument, term.written) for term in reader.terms]
    n = _common_count(reader.terms, text)
    together = assemble(reader.terms, pieces, n, stacking.dimension, text)
    _check_weights(reader.terms, n, adjacency, text)
    public_data = _public_data(reader.terms, together, adjacency)
    _check_constraints(constraints, data, text)
    rest = _rest(reader.rest, text)
    return ERM(
        variables=stacking.variables,
        rows=together.rows,
        losses=together.losses,
        regulariser=rest,
        constraints=constraints,
        private_names=tuple(
            f"{name}, shape {shape}" for name, shape in zip(data.names, data.shapes, strict=True)
        ),
        public_data=public_data,
        mean=any(term.mean for term in reader.terms),
        adjacency=adjacency,
        private_row=together.private_row,
        public_norm=together.public_norm,
        has_offset=together.rows.has_offset,
        terms=tuple(text(term.written) for term in reader.terms),
        row_text=_row_text(together.rows.pieces, stacking),
        rest_text=tuple(text(node) for node in reader.rest),
        constraint_texts=tuple(_constraint_text(c, text) for c in constraints),
    )


def _check_leaves(roots: Sequence[Any], data: PrivateData) -> None:
    for root in roots:
        for leaf in _cvxpy.leaves(root):
            kind = _cvxpy.kind(leaf)
            if kind == "variable":
                _check_variable(leaf)
            elif kind == "parameter" and _cvxpy.leaf_value(leaf) is None:
                raise ProblemError(
                    f"The parameter {leaf.name()} has no value; set its value before this call."
                )
            elif np.issubdtype(
                getattr(_cvxpy.leaf_value(leaf), "dtype", float), np.complexfloating
            ):
                raise ProblemError("The problem holds a complex constant; only real data work.")


def _check_variable(variable: cp.Variable) -> None:
    set_ = [
        name
        for name, value in variable.attributes.items()
        if value is not None
        and (value is not False and not (isinstance(value, (list, tuple)) and not len(value)))
    ]
    for name in set_:
        if name in ("complex", "imag", "hermitian"):
            raise ProblemError(
                f"The variable {variable.name()} is complex. Use real variables, its real and "
                "imaginary part."
            )
        if name in ("boolean", "integer"):
            raise ProblemError(
                f"The variable {variable.name()} is {name}, so the problem is not convex. Use a "
                "continuous variable and round the release."
            )


def _stacking(terms: Sequence[LossTerm]) -> Stacking:
    seen: dict[int, cp.Variable] = {}
    for term in terms:
        for variable in _cvxpy.variables(term.argument):
            seen.setdefault(variable.id, variable)
    for variable in seen.values():
        for name, value in variable.attributes.items():
            reduces = value is not None and value is not False and name not in _KEPT_ATTRIBUTES
            if reduces and not (isinstance(value, (list, tuple)) and not len(value)):
                raise ProblemError(
                    f"The variable {variable.name()} of the private loss has the attribute {name}, "
                    "which ties its entries together. Use a free variable and state the property "
                    "as a constraint."
                )
    return Stacking(list(seen.values()))


def _common_count(terms: Sequence[LossTerm], text: Callable[[Any], str]) -> int:
    counts = [record_count(term.argument) for term in terms]
    for term, n in zip(terms, counts, strict=True):
        if n != counts[0]:
            raise ProblemError(
                f"The private terms {text(terms[0].written)} and {text(term.written)} run over "
                "different numbers of records. Every term must have one entry for each record."
            )
    return counts[0] or 0


def _check_weights(
    terms: Sequence[LossTerm], n: int, adjacency: str, text: Callable[[Any], str]
) -> None:
    for term in terms:
        if np.ndim(term.weight) and np.size(term.weight) not in (1, n):
            raise ProblemError(
                f"The private term {text(term.written)} has {np.size(term.weight)} weights for "
                "another number of records."
            )
        if adjacency != "add_remove":
            continue
        if term.mean:
            raise ProblemError(
                f"The private term {text(term.written)} is divided by the number of records, which "
                "is private under add_remove. Write the sum and multiply the regulariser by a "
                'public number instead, or use adjacency="replace_one".'
            )
        if np.ndim(term.weight) and np.ptp(term.weight) > 0 if np.size(term.weight) else False:
            raise ProblemError(
                f"The private term {text(term.written)} has public weights, one a record; under "
                "add_remove the position of a record has no meaning. Put the square roots of the "
                "weights inside the square and list them in private, or use "
                'adjacency="replace_one".'
            )


def _public_data(terms: Sequence[LossTerm], together: Assembled, adjacency: str) -> tuple[str, ...]:
    names = [leaf.name for leaf in together.rows.leaves if not leaf.private]
    if names and adjacency == "add_remove":
        raise ProblemError(
            f"The private loss uses {' and '.join(names)}, with one row a record; under add_remove "
            "it says how many records there are. List it in private, or use "
            'adjacency="replace_one".'
        )
    weights = [
        f"public weights of shape {np.shape(term.weight)}" for term in terms if np.ndim(term.weight)
    ]
    return tuple(names + weights)


def _check_constraints(
    constraints: Sequence[Any], data: PrivateData, text: Callable[[Any], str]
) -> None:
    for constraint in constraints:
        if data.contains(constraint):
            raise ProblemError(
                f"The constraint {_constraint_text(constraint, text)} holds private data "
                f"({' and '.join(data.found_in(constraint))}). Private data may occur in losses "
                "only; replace them by public numbers."
            )
        if not constraint.is_dcp():
            raise ProblemError(
                f"The constraint {_constraint_text(constraint, text)} does not follow the rules of "
                "disciplined convex programming."
            )


def _rest(rest: Sequence[Any], text: Callable[[Any], str]) -> cp.Expression | None:
    for node in rest:
        if not (node.is_dcp() and node.is_convex()):
            raise ProblemError(
                f"The public term {text(node)} is not convex by the rules of disciplined convex "
                "programming."
            )
    if not rest:
        return None
    total = rest[0]
    for node in rest[1:]:
        total = total + node
    return total


def _constraint_text(constraint: Any, text: Callable[[Any], str]) -> str:
    symbol = {
        "Inequality": "<=",
        "Equality": "==",
        "Zero": "== 0",
        "NonPos": "<= 0",
        "NonNeg": ">= 0",
    }.get(type(constraint).__name__)
    sides = [text(argument) for argument in constraint.args]
    if symbol and len(sides) == 2:
        return f"{sides[0]} {symbol} {sides[1]}"
    if symbol and len(sides) == 1:
        return f"{sides[0]} {symbol}"
    return f"{type(constraint).__name__}({', '.join(sides)})"


def _row_text(pieces: Sequence[Piece], stacking: Stacking) -> str:
    """The row of a record in words, such as private[0][i] on w, 1 on b."""
    parts = []
    for piece in pieces:
        factors = [f"{column.leaf.name}[i]" for column in piece.columns]
        factors += [f"{piece.matrix.name}[i]"] if piece.matrix is not None else []
        touched = set(piece.G.indices.tolist())
        names = [
            v.name()
            for v in stacking.variables
            if touched & set(range(stacking.start(v), stacking.start(v) + v.size))
        ]
        largest = float(np.max(np.abs(piece.G.data), initial=0.0))
        plain = bool(np.all(np.isin(piece.G.data, (0.0, 1.0))))
        factor = "" if plain else f" times a public factor up to {largest:g}"
        parts.append(f"{' · '.join(factors) or '1'}{factor} on {', '.join(names)}")
    return " and ".join(parts)
