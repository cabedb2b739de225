"""Reading a CVXPY problem: which terms are private, what their rows are, what is public."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn

import cvxpy as cp

from cvxqop import _cvxpy
from cvxqop.errors import OptionError, ProblemError
from cvxqop.problem.describe import row_text
from cvxqop.problem.erm import ERM
from cvxqop.problem.losses.recognised import RecognisedLoss
from cvxqop.problem.parts import Texts
from cvxqop.problem.private import listing
from cvxqop.problem.private.data import PrivateData
from cvxqop.problem.private.persons import Persons
from cvxqop.problem.reading import checks, refusals
from cvxqop.problem.reading.assemble import assemble
from cvxqop.problem.reading.groups import check_closed, term_of
from cvxqop.problem.reading.public import Stacking
from cvxqop.problem.reading.scalar_terms import read_opened
from cvxqop.problem.reading.separable import SeparableReader
from cvxqop.problem.reading.terms import TermReader
from cvxqop.problem.reading.weights import scale_statement
from cvxqop.problem.spelling.plain import Plain, objective_and_constraints, plain

__all__ = [
    "counted_shapes",
    "private_data",
    "read",
    "read_expression",
    "total",
]

_ADJACENCIES = ("replace_one", "add_remove")


def read(
    problem: cp.Problem,
    private: Sequence[Any],
    *,
    public: Sequence[Any] = (),
    adjacency: str = "replace_one",
    persons: Persons | None = None,
    losses: str = "closed",
) -> ERM:
    """Read a problem as private ERM.

    Parameters
    ----------
    problem : cvxpy.Problem
        Minimise private losses plus a public rest, subject to public constraints.
    private : sequence
        Arrays (matched by value, also transposed), ``cp.Constant`` or ``cp.Parameter`` (by
        identity), each with one row a record.
    public : sequence
        Arrays that everyone may know, found likewise, and variables whose shape everyone may know.
    adjacency : {"replace_one", "add_remove"}
        What neighbouring data sets are; a mean and public arrays with one row a record have no
        meaning under add_remove.
    persons : Persons, optional
        Whose rows are whose; the number of rows is private then, whatever the adjacency.
    losses : {"closed", "named", "any"}
        "any" takes losses that wait for a range or a width, which the caller settles; "named" takes
        those only that are losses by name, and not every function of an argument.

    Raises
    ------
    ProblemError
        If the problem is not of this form. The message names the term and the remedy.
    """
    objective, constraints = objective_and_constraints(problem)
    return _read(objective, constraints, private, public, adjacency, persons, losses)


def read_expression(
    expression: Any,
    private: Sequence[Any],
    *,
    public: Sequence[Any] = (),
    adjacency: str = "replace_one",
    persons: Persons | None = None,
    losses: str = "closed",
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
    erm = _read(expression, [], private, public, adjacency, persons, losses)
    if erm.regulariser is not None:
        raise ProblemError(
            f"The expression has public terms: {' + '.join(erm.texts.rest)}. Pass the private loss "
            "alone; regularisers are added to the PrivateLoss that comes back, at no privacy cost."
        )
    return erm


def private_data(
    objective: Any,
    constraints: list[Any],
    private: Sequence[Any],
    public: Sequence[Any],
    adjacency: str,
    persons: Persons | None = None,
) -> Plain:
    """The problem in plain spelling with its private leaves, after what every problem needs.

    Raises
    ------
    ProblemError
        If the objective is no number or holds no record, or a constraint holds one.
    """
    if adjacency not in _ADJACENCIES:
        raise OptionError(f"adjacency must be one of {', '.join(_ADJACENCIES)}, not {adjacency!r}.")
    hidden = adjacency == "add_remove" or persons is not None
    if objective.size != 1:
        if hidden:
            raise ProblemError(refusals.ARRAY)
        shape = tuple(objective.shape)
        raise ProblemError(f"The objective has shape {shape}; it must be a number.")
    found = plain(objective, constraints, private, public, hidden, persons)
    objective, constraints, data, text = found.objective, found.constraints, found.data, found.text
    roots = [objective, *constraints]
    checks.check_leaves(roots)
    listing.check_hidden(roots, data, text)
    checks.check_constraints(constraints, data, text)
    checks.check_matrices(objective, data, text)
    listing.check_listed(objective, constraints, data, text)
    if not data.contains(objective):
        raise ProblemError(refusals.COMPUTED)
    listing.check_shapes(objective, constraints, data)
    return found


def _read(
    objective: Any,
    constraints: list[Any],
    private: Sequence[Any],
    public: Sequence[Any],
    adjacency: str,
    persons: Persons | None,
    losses: str = "closed",
) -> ERM:
    found = private_data(objective, constraints, private, public, adjacency, persons)
    objective, constraints, data, text = found.objective, found.constraints, found.data, found.text
    hidden = data.count_is_private
    reader = TermReader(data, text)
    reader.split(objective)
    if losses == "named" and reader.opened:
        reader.refuse_term(reader.opened[0].written, refusals.UNKNOWN)
    read_opened(reader, data, text)
    checks.check_rest(reader.rest, text)
    checks.check_arguments(reader.terms, reader.linear, data, text)
    stacking = _stacking(reader, text)
    try:
        groups = assemble(reader, data, stacking, text)
    except ProblemError:
        if hidden:
            _refuse_by_structure(reader, data, text)
        raise
    if losses != "any":
        for group in groups:
            check_closed(group, text)
    n = groups[0].rows.n
    if persons is not None and persons.n != n:
        raise ProblemError(
            "persons has not one id a row of the private arrays: give each of their rows the id of "
            "its person, in the same order."
        )
    shapes = data.leaf_shapes if hidden else counted_shapes([objective, *constraints], n)
    return ERM(
        variables=stacking.variables,
        loss=RecognisedLoss(
            tuple(term_of(group, stacking.dimension, data.dropped, persons) for group in groups),
            persons,
        ),
        regulariser=total(reader.rest),
        constraints=constraints,
        private_names=data.descriptions,
        public_data=(*data.public_descriptions, *listing.unlisted_names(data)),
        mean=any(t.mean for t in reader.terms) or any(t.mean for t in reader.linear),
        adjacency=adjacency,
        persons=persons,
        private_leaves=tuple(data.leaf_names),
        private_arrays=data.arrays,
        texts=Texts(
            terms=tuple(text(own.written, shapes) for group in groups for own in group.terms),
            labels=_once(text(own.written, shapes) for group in groups for own in group.labels),
            squares=_once(text(own.written, shapes) for group in groups for own in group.squares),
            rows=_once(row_text(group.row, stacking) for group in groups),
            rest=tuple(text(node, shapes) for node in reader.rest),
            constraints=tuple(text(constraint, shapes) for constraint in constraints),
            read_as=found.read_as(shapes),
            scale=scale_statement(reader.scales, bool(reader.opened)) if hidden else None,
        ),
    )


def _once(texts: Iterable[str]) -> tuple[str, ...]:
    """Each text once, where it is that of several outputs."""
    return tuple(dict.fromkeys(texts))


def _refuse_by_structure(reader: TermReader, data: PrivateData, text: Callable[[Any], str]) -> None:
    """Where n is private, refuse what combines records in words that no length decides: a side
    that is as long as there are records leads the readers elsewhere than one that is not."""
    reasons: list[str] = []

    def refuse(reason: str) -> NoReturn:
        reasons.append(reason)
        raise ProblemError(reason)

    found = [(term.argument, term.private, term.written) for term in reader.terms]
    found += [(own.factors[-1], own.factors[:-1], own.written) for own in reader.linear]
    for argument, beside, written in found:
        with contextlib.suppress(ProblemError):
            for node in (argument, *filter(data.contains, beside)):
                if not _cvxpy.holds_records(node):
                    SeparableReader(data, refuse).read_rows(node)
        for reason in reasons:
            if refusals.PUBLIC_ROWS not in reason:
                kept = (refusals.PER_RECORD, refusals.of_shape(argument, hidden=True))
                said = reason if reason in kept else refusals.COMBINES
                raise ProblemError(f"The private term {text(written)} {said}.") from None


def _stacking(reader: TermReader, text: Callable[[Any], str]) -> Stacking:
    """θ: the variables of the losses in order of appearance."""
    arguments = [(term.argument, term.written) for term in reader.terms]
    arguments += [(term.factors[-1], term.written) for term in reader.linear]
    quadratic = all(term.loss.quadratic for term in reader.terms)
    seen: dict[int, cp.Variable] = {}
    for argument, written in arguments:
        own = _cvxpy.variables(argument)
        if not any(variable.size for variable in own):
            raise ProblemError(
                f"The private term {text(written)} does not depend on a variable; remove it."
            )
        for variable in own:
            checks.check_loss_variable(variable, quadratic)
            seen.setdefault(variable.id, variable)
    return Stacking(list(seen.values()))


def counted_shapes(roots: Sequence[Any], n: int) -> dict[Any, list[int | str]]:
    """Shapes of all leaves, with n for a side that is as long as there are records."""
    leaves = (leaf for root in roots for leaf in _cvxpy.leaves(root))
    return {leaf: ["n" if side == n else side for side in leaf.shape] for leaf in leaves}


def total(terms: Sequence[Any]) -> cp.Expression | None:
    """The sum of expressions; None if there is none."""
    found = None
    for node in terms:
        found = node if found is None else found + node
    return found
