"""Reading a problem whose private terms are not recognised but declared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import cvxpy as cp
import numpy as np

from cvxqop import _cvxpy
from cvxqop.errors import OptionError, ProblemError
from cvxqop.problem.erm import ERM
from cvxqop.problem.losses.declared import Declared
from cvxqop.problem.losses.declared_loss import DeclaredLoss
from cvxqop.problem.parts import Texts
from cvxqop.problem.private import listing
from cvxqop.problem.private.data import PrivateData
from cvxqop.problem.reading import analysis, checks, refusals
from cvxqop.problem.reading.kinks import kink
from cvxqop.problem.reading.public import Stacking
from cvxqop.problem.reading.scales import ScaleReader
from cvxqop.problem.reading.separable import SeparableReader
from cvxqop.problem.reading.weights import Weight, scale_statement
from cvxqop.problem.spelling.plain import objective_and_constraints

__all__ = ["read_declared"]


def read_declared(
    problem: cp.Problem,
    private: Sequence[Any],
    declared: Declared,
    *,
    public: Sequence[Any] = (),
    adjacency: str = "replace_one",
) -> ERM:
    """Read a problem whose private loss has declared constants.

    Parameters
    ----------
    problem, private, public, adjacency
        As in `cvxqop.problem.reading.analysis.read`.
    declared : Declared
        Constants of the sum of all private terms of one record.

    Raises
    ------
    OptionError
        If the loss is recognised, so that bounds on the data would do, or ``declared`` does not
        fit the problem.
    ProblemError
        If a private term is no sum over records, not convex, has a kink, or the public rest of the
        problem cannot be used.
    """
    recognised = True
    try:
        analysis.read(problem, private, public=public, adjacency=adjacency, losses="named")
    except ProblemError:
        recognised = False
    if recognised:
        raise OptionError(
            "declared: this loss is recognised, and its constants follow from bounds that are "
            "enforced on every record. Leave declared out and state bounds."
        )
    objective, constraints = objective_and_constraints(problem)
    found = analysis.private_data(objective, constraints, private, public, adjacency)
    objective, constraints, data, text = found.objective, found.constraints, found.data, found.text
    reader = _Splitter(data, text)
    reader.split(objective, Weight(), objective)
    checks.check_rest(reader.rest, text)
    if len(reader.records.counts) != 1:
        raise ProblemError(
            "The private arrays of the declared loss have different numbers of rows. Row i of "
            "each of them must belong to record i."
        )
    term = analysis.total(reader.terms)
    _check_term(_cvxpy.unsigned(term, data.match), reader.written, declared, text)
    variables = {v.id: v for v in _cvxpy.variables(term)}
    for variable in variables.values():
        checks.check_loss_variable(variable, quadratic=False)
    stacking = Stacking(list(variables.values()))
    declared.rank(stacking.dimension)
    n = reader.records.counts.pop()
    hidden = data.count_is_private
    shapes = data.leaf_shapes if hidden else analysis.counted_shapes([objective, *constraints], n)
    leaves = tuple(data.leaf_names)
    return ERM(
        variables=stacking.variables,
        loss=DeclaredLoss(n, declared, term, stacking.variables, leaves),
        regulariser=analysis.total(reader.rest),
        constraints=constraints,
        private_names=data.descriptions,
        public_data=(*data.public_descriptions, *listing.unlisted_names(data)),
        mean=False,
        adjacency=adjacency,
        texts=Texts(
            terms=tuple(text(node, shapes) for node in reader.written),
            labels=(),
            rows=(),
            rest=tuple(text(node, shapes) for node in reader.rest),
            constraints=tuple(text(constraint, shapes) for constraint in constraints),
            read_as=found.read_as(shapes),
            scale=scale_statement(reader.scales) if hidden else None,
        ),
        private_leaves=leaves,
        private_arrays=data.arrays,
    )


class _Splitter:
    """Splits an objective into private terms, each a sum over records, and the public rest."""

    def __init__(self, private: PrivateData, text: Callable[..., str]) -> None:
        self._private, self._text = private, text
        self._scales = ScaleReader(private, self._refuse)
        self.records = SeparableReader(private, self._refuse)
        self.terms: list[Any] = []
        self.written: list[Any] = []
        self.rest: list[Any] = []
        self.scales: list[str] = []
        self._written: Any = None

    def split(self, node: Any, factor: Weight, written: Any) -> None:
        """Read a summand of the objective."""
        weight = float(np.asarray(factor.value))
        if not self._private.contains(node):
            self.rest.append(node if weight == 1.0 else weight * node)
            return
        kind = _cvxpy.kind(node)
        if kind == "add":
            for argument in node.args:
                self.split(argument, factor, argument)
            return
        self._written = written
        if kind == "neg":
            self.split(node.args[0], factor.times(-1.0), written)
        elif kind in ("reshape", "transpose", "promote") and node.args[0].size == 1:
            self.split(node.args[0], factor, written)
        elif kind in ("multiply", "matmul") and self._scales.scalar_side(node) is not None:
            scalar, other = self._scales.scalar_side(node) or (0.0, None)
            self.split(other, factor.times(scalar), written)
        elif kind == "divide" and not _cvxpy.has_variables(node.args[1]):
            self.split(node.args[0], self._scales.divide(node, factor), written)
        else:
            self._term(node, weight)
            self.scales += factor.scales

    def _term(self, node: Any, weight: float) -> None:
        if not _cvxpy.has_variables(node):
            self._refuse("does not depend on a variable; remove it")
        found = kink(node, self._private)
        if found is not None:
            self._refuse(refusals.kinked(found))
        self.records.read(node)
        self.terms.append(node if weight == 1.0 else weight * node)
        self.written.append(self._written)

    def _refuse(self, reason: str) -> NoReturn:
        raise ProblemError(f"The private term {self._text(self._written)} {reason}.") from None


def _check_term(
    term: Any, written: Sequence[Any], declared: Declared, text: Callable[..., str]
) -> None:
    """The private terms together are convex, and quadratic where that was declared."""
    loss = " + ".join(text(node) for node in written)
    if not (term.is_dcp() and term.is_convex()):
        raise ProblemError(
            f"The private loss {loss} is not convex by the rules of disciplined convex "
            "programming, whatever the signs of private numbers are, so that it cannot be "
            "declared. Where it is convex because some are never negative, write and list them as "
            "cp.Parameter(…, nonneg=True)."
        )
    if declared.quadratic and not term.is_quadratic():
        raise OptionError(
            f"Declared: quadratic=True, but the private loss {loss} is not seen to be quadratic. "
            "Leave quadratic out."
        )
