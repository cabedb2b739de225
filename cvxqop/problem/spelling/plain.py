"""A problem as it is read: minimised, its private data found, in plain spelling."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import cvxpy as cp

from cvxqop import _cvxpy
from cvxqop.errors import ProblemError
from cvxqop.problem.private.data import PrivateData, match, public_entries
from cvxqop.problem.private.entries import read_entries
from cvxqop.problem.private.persons import Persons
from cvxqop.problem.spelling.forms import Forms
from cvxqop.problem.spelling.loops import Loops
from cvxqop.problem.spelling.slack import eliminated
from cvxqop.problem.spelling.stacks import Stacks

__all__ = ["Plain", "objective_and_constraints", "plain"]

Text = Callable[..., str]


@dataclass(frozen=True, eq=False)
class Plain:
    """What is read in the place of a problem.

    Attributes
    ----------
    objective, constraints
        The expression that is minimised, and what is left of the constraints.
    data : PrivateData
        What is private in them.
    found : tuple of (str, Expression)
        What was written otherwise, in words, and as what it is read.
    """

    objective: Any
    constraints: list[Any]
    data: PrivateData
    found: tuple[tuple[str, Any], ...] = ()

    @property
    def text(self) -> Text:
        """A writer of expressions and constraints, without entries."""
        return writer(self.data)

    def read_as(self, shapes: _cvxpy.Shapes | None) -> tuple[str, ...]:
        """What was written otherwise, in lines."""
        lines = (f"{name}: {self.text(node, shapes)}" for name, node in self.found)
        return tuple(dict.fromkeys(lines))


def objective_and_constraints(problem: Any) -> tuple[Any, list[Any]]:
    """The expression that a problem minimises, and its constraints; Maximize(e) is Minimize(−e).

    Raises
    ------
    ProblemError
        If it is no problem.
    """
    if not isinstance(problem, cp.Problem):
        raise ProblemError(f"problem must be a cvxpy.Problem, not {type(problem).__name__}.")
    objective = problem.objective.args[0]
    if isinstance(problem.objective, cp.Maximize):
        objective = _negated(objective)
    return objective, list(problem.constraints)


def _negated(node: Any) -> Any:
    """−e, term by term, so that each is shown as it was written."""
    if _cvxpy.kind(node) == "add":
        first, *others = map(_negated, node.args)
        return sum(others, first)
    return node.args[0] if _cvxpy.kind(node) == "neg" else -node


def plain(
    objective: Any,
    constraints: Sequence[Any],
    private: Sequence[Any],
    public: Sequence[Any],
    hidden: bool,
    persons: Persons | None,
) -> Plain:
    """Rewrite a problem; it has the same minimisers, and its terms are sums over records where
    they were that in another spelling.

    Parameters
    ----------
    objective, constraints
        As they were written.
    private, public, persons
        As in `cvxqop.problem.reading.analysis.read`.
    hidden : bool
        Whether the number of records is private. Loops over records are left as they are then:
        how many terms there are must decide nothing.

    Raises
    ------
    ProblemError
        A list is wrong, or a loop runs over other numbers than those of listed arrays.
    """
    found: list[tuple[str, Any]] = []
    constraints = list(constraints)
    if not hidden:
        objective, constraints, found = _unrolled(objective, constraints, private, public)
    data = match(private, [objective, *constraints], hidden, public, persons)
    forms = Forms(data, writer(data))
    named = [*found]
    objective = forms.rewritten(objective)
    constraints = [_rewritten(constraint, forms) for constraint in constraints]
    named += forms.found
    while (less := eliminated(objective, constraints, data)) is not None:
        objective, constraints, variables = less
        named += [(variable.name(), node) for variable, node in variables]
    if not forms.found and len(named) == len(found):
        return Plain(objective, constraints, data, tuple(found))
    made, known, within = forms.selections.private, forms.public, forms.selections.entries
    del data, forms
    roots = [objective, *constraints]
    data = match([*private, *made], roots, hidden, [*public, *known], persons, within)
    return Plain(objective, constraints, data, tuple(named))


def _unrolled(
    objective: Any, constraints: list[Any], private: Sequence[Any], public: Sequence[Any]
) -> tuple[Any, list[Any], list[tuple[str, Any]]]:
    stacks = Stacks(read_entries(private), public_entries(public)[0])
    loops = Loops(stacks)
    return loops.objective(objective), loops.constraints(constraints), loops.found


def _rewritten(constraint: Any, forms: Forms) -> Any:
    """An inequality or equality between rewritten sides; any other constraint as it is."""
    if not _cvxpy.is_relation(constraint):
        return constraint
    return _cvxpy.related(constraint, *map(forms.rewritten, constraint.args))


def writer(data: PrivateData) -> Text:
    """Formats expressions and constraints with the names of private arrays, without entries."""
    names, hidden = data.leaf_names, data.count_is_private

    def text(node: Any, shapes: _cvxpy.Shapes | None = data.leaf_shapes if hidden else None) -> str:
        if isinstance(node, cp.Expression):
            return _cvxpy.format_expression(node, names, shapes, hidden)
        return _cvxpy.format_constraint(node, names, shapes, hidden)

    return text
