"""From a problem and its options to a case and a solver: all that is known before a charge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import cvxpy as cp

from cvxqop import _cvxpy
from cvxqop.backend import Backend
from cvxqop.case import Case
from cvxqop.choice import choose
from cvxqop.errors import (
    OptionError,
    ProblemError,
)
from cvxqop.plan import Candidate
from cvxqop.privacy.linear.options import Linear
from cvxqop.problem.erm import ERM
from cvxqop.problem.losses.class_weights import weighed
from cvxqop.problem.losses.declared import Declared
from cvxqop.problem.private.persons import Persons
from cvxqop.problem.reading import analysis
from cvxqop.problem.reading.declared_reading import read_declared
from cvxqop.settings import Settings
from cvxqop.smoothing import settled

__all__ = ["persons_of", "prepare", "prepare_loss", "read_problem"]


def prepare(
    problem: cp.Problem, options: Mapping[str, Any]
) -> tuple[Case, Backend, tuple[Candidate, ...]]:
    """The problem with its mechanism, its solver, and what else could have been chosen: what a
    plan runs, and what an audit looks at."""
    settings = Settings.of(options)
    with _cvxpy.reading():
        erm = read_problem(
            problem,
            settings.private,
            settings.public,
            settings.adjacency,
            settings.declared,
            persons_of(settings.persons, settings.rows_per_person),
        )
        _cvxpy.claim_ids([problem.objective, *problem.constraints])
        erm = settled(weighed(erm, settings.class_weight), settings)
        case, backend, candidates = choose(erm, settings)
        backend = backend.for_release(case.erm)
        backend.check_ridge(case.erm, case.settings, case.mechanism.ridge)
    return case, backend, candidates


def prepare_loss(
    expression: cp.Expression,
    regularizer: cp.Expression | None,
    constraints: Sequence[cp.Constraint] | None,
    settings: Settings,
) -> tuple[Case, Backend]:
    """The private loss alone with its mechanism, and the solver of its stages."""
    if settings.declared is not None:
        raise OptionError(
            "declared: pass the whole problem to privatize; where the declared loss is quadratic, "
            "the solution has the released loss in solution.private_loss."
        )
    people = persons_of(settings.persons, settings.rows_per_person)
    erm = analysis.read_expression(
        expression,
        settings.private,
        public=settings.public,
        adjacency=settings.adjacency,
        persons=people,
        losses="any",
    )
    _cvxpy.claim_ids([expression])
    if not erm.quadratic:
        raise ProblemError(
            f"The private loss {' + '.join(erm.terms)} is not quadratic, and the perturbed loss is "
            "private by itself for quadratic losses only. Use privatize on the whole problem."
        )
    if regularizer is not None or constraints:
        whole = expression if regularizer is None else expression + regularizer
        problem = cp.Problem(cp.Minimize(whole), list(constraints or []))
        erm = analysis.read(
            problem,
            settings.private,
            public=settings.public,
            adjacency=settings.adjacency,
            persons=people,
            losses="any",
        )
    if settings.perturbation != "auto" and isinstance(settings.mechanism, Linear):
        raise OptionError(
            "perturbation: the linear mechanism leaves the curvature of the data as it is, so that "
            "no quadratic form can be released. Use 'wishart' or 'gaussian' here."
        )
    erm = settled(weighed(erm, settings.class_weight), settings)
    case, backend, _ = choose(erm, settings, releases_quadratic=True)
    return case, backend


def read_problem(
    problem: cp.Problem,
    private: Sequence[Any],
    public: Sequence[Any],
    adjacency: str,
    declared: Declared | None,
    persons: Persons | None,
) -> ERM:
    if declared is None:
        return analysis.read(
            problem, private, public=public, adjacency=adjacency, persons=persons, losses="any"
        )
    return read_declared(problem, private, declared, public=public, adjacency=adjacency)


def persons_of(ids: Any, rows_per_person: int | str | None) -> Persons | None:
    return None if rows_per_person is None else Persons.of(ids, rows_per_person)
