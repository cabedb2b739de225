"""Which solver a plan uses, checked on the public part of the problem before anything is spent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

import cvxpy as cp
import numpy as np

from cvxqop import _cvxpy
from cvxqop.errors import OptionError
from cvxqop.privacy.linear import Linear
from cvxqop.problem.declared_erm import DeclaredERM
from cvxqop.problem.erm import ERM
from cvxqop.settings import Settings
from cvxqop.solve import conic, stotos
from cvxqop.solve.prox import NotSplittable, split

__all__ = ["Backend"]

STOTOS = "STOTOS"
STOTOS_OPTIONS = ("variant", "max_iter", "time_limit", "finish")
DECLARED_OPTIONS = ("max_iter", "time_limit")


@dataclass(frozen=True)
class Backend:
    """A solver by name, with its options.

    Attributes
    ----------
    name : str
        "STOTOS" or a solver of CVXPY.
    options : mapping
        Its options.
    touches_records : bool
        Whether it works on the records. If not, it sees the perturbed quadratic form only.
    """

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)
    touches_records: bool = False

    @classmethod
    def of(cls, erm: ERM, settings: Settings) -> Backend:
        """The solver that was asked for, or the default, after all that can be checked.

        Raises
        ------
        OptionError
            The solver is unknown, cannot take the problem, or an option is wrong.
        ProblemError
            The public constraints cannot be met.
        """
        asked = _installed(settings.solver)
        quadratic = not _touches(erm, settings)
        if isinstance(erm, DeclaredERM) and not quadratic:
            return cls._declared(erm, settings, asked)
        rest = (erm.variables, erm.regulariser, erm.constraints)
        options = dict(settings.solver_options)
        name = asked or (conic.default_solver(*rest) if quadratic else STOTOS)
        if name != STOTOS:
            if not quadratic:
                _refuse_conic(name, erm, settings)
            size, curvature = _sizes(erm, settings)
            conic.check_solver(name, options, *rest, size=size, curvature=curvature)
            return cls(name, options)
        declared = isinstance(erm, DeclaredERM)
        _check_names(options, DECLARED_OPTIONS if declared else STOTOS_OPTIONS)
        _check_stotos(erm, options, _remedy(erm))
        stochastic = options.get("variant", "newton") != "newton"
        several = erm.outputs is not None and not erm.outputs.labelled
        if stochastic and several:
            raise OptionError(
                "solver_options: a squared loss with several outputs is solved from its quadratic "
                "form; leave the variant out."
            )
        return cls(name, options, touches_records=not quadratic or stochastic)

    @classmethod
    def _declared(cls, erm: DeclaredERM, settings: Settings, asked: str | None) -> Backend:
        """STOTOS, or a conic solver whose answer STOTOS certifies.

        Where the rest cannot be split there is no certificate: the solver must be trusted.
        """
        rest = (erm.variables, erm.regulariser, erm.constraints)
        options = dict(settings.solver_options)
        name = asked or STOTOS
        own = {variable.id for variable in erm.variables}
        public = [] if erm.regulariser is None else [erm.regulariser]
        for node in (*public, *erm.constraints):
            for variable in _cvxpy.variables(node):
                if variable.id not in own:
                    raise OptionError(
                        f"declared: the variable {variable.name()} does not occur in the private "
                        "loss. Declared losses take no auxiliary variables; write the regulariser "
                        "and the constraints without them."
                    )
        obstacle = ""
        try:
            split(*rest)
        except NotSplittable as error:
            obstacle = error.obstacle
        if obstacle and not settings.accept_solver_accuracy:
            raise OptionError(
                f"declared: {obstacle}, so that no answer can be certified. Change that term, or "
                "trust the solver with accept_solver_accuracy=True, which the solution will state."
            )
        if obstacle and asked is None:
            name = conic.default_solver(*rest)
        if name != STOTOS:
            size, curvature = _sizes(erm, settings)
            conic.check_solver(name, options, *rest, size=size, curvature=curvature)
            return cls(name, options, touches_records=True)
        _check_names(options, DECLARED_OPTIONS)
        _check_stotos(
            erm, options, "Leave solver and solver_options out: CVXPY's are trusted then."
        )
        return cls(name, options, touches_records=True)


def _installed(solver: str | None) -> str | None:
    """The name of a solver in its own spelling; capitals are no matter.

    Raises
    ------
    OptionError
        No such solver is installed.
    """
    if solver is None:
        return None
    names = {name.upper(): name for name in (STOTOS, *cp.installed_solvers())}
    if solver.upper() not in names:
        listed = ", ".join(names.values())
        raise OptionError(f"solver={solver!r} is not installed; installed are {listed}.")
    return str(names[solver.upper()])


def _touches(erm: ERM | DeclaredERM, settings: Settings) -> str:
    """Why the records are needed while solving; empty where the perturbed quadratic form is enough.

    Only a random curvature makes the quadratic form of a squared loss private by itself, and the
    correction of an anchor only the solution.
    """
    if not erm.quadratic:
        return "the loss is not quadratic"
    if isinstance(settings.mechanism, Linear):
        return "linear perturbation leaves the curvature of the records as it is"
    return "calibration='paper' corrects the anchor" if settings.corrects_anchor else ""


def _sizes(erm: ERM | DeclaredERM, settings: Settings) -> tuple[float, float]:
    """Public sizes of θ and of the curvature of the loss of one record."""
    if isinstance(erm, DeclaredERM):
        return settings.distance, erm.declared.smoothness
    kappa = sum(loss.curvature * float(np.max(weight, initial=0.0)) for loss, weight in erm.losses)
    return settings.distance, erm.row_norm(settings.bounds) ** 2 * kappa


def _refuse_conic(name: str, erm: ERM | DeclaredERM, settings: Settings) -> NoReturn:
    """Refuse a solver of CVXPY for a loss that is solved on the records.

    Raises
    ------
    OptionError
        With a remedy that this very problem takes.
    """
    remedy = "Leave solver and solver_options out: STOTOS, the default, takes this problem."
    try:
        split(erm.variables, erm.regulariser, erm.constraints)
    except NotSplittable as error:
        remedy = f"STOTOS cannot split it either: {error.obstacle}. {_remedy(erm)}"
    raise OptionError(
        f"solver={name!r}: the records of the private loss {' + '.join(erm.terms)} are needed "
        f"while solving, since {_touches(erm, settings)}, and CVXPY's solvers certify no accuracy, "
        f"without which an inexact solve has no guarantee. {remedy}"
    )


def _check_stotos(erm: ERM | DeclaredERM, options: Mapping[str, Any], remedy: str) -> None:
    """Refuse what STOTOS cannot do, with a remedy where a term stands in the way.

    Raises
    ------
    OptionError
        A term cannot be split, or an option is wrong.
    """
    obstacle = ""
    try:
        stotos.check_stotos(erm.variables, erm.regulariser, erm.constraints, **options)
    except NotSplittable as error:
        obstacle = str(error)
    if obstacle:
        raise OptionError(f"{obstacle}. {remedy}")


def _remedy(erm: ERM | DeclaredERM) -> str:
    """What to do where STOTOS cannot split the rest."""
    if erm.quadratic:
        return (
            "Leave solver and solver_options out, with perturbation='gaussian' or 'wishart': the "
            "solvers of CVXPY take every convex term beside a perturbed squared loss."
        )
    return (
        "The loss is solved on its records by STOTOS alone, since an answer must be certified. "
        "Write the term with norms and sets that it splits (the page on solvers lists them), or "
        "take a squared loss, cp.sum_squares(X @ w - y): CVXPY's solvers take every convex term "
        "beside it."
    )


def _check_names(options: Mapping[str, Any], known: tuple[str, ...]) -> None:
    for option in options:
        if option not in known:
            raise OptionError(
                f"solver_options: STOTOS has no option {option!r} here; it takes "
                f"{', '.join(known)}."
            )
