"""Which solver a plan uses, checked on the public part of the problem before anything is spent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import cvxpy as cp
import numpy as np

from cvxqop.errors import CvxqopError, OptionError
from cvxqop.privacy.linear.options import Linear
from cvxqop.problem.declared_erm import DeclaredERM
from cvxqop.problem.erm import ERM
from cvxqop.settings import Settings
from cvxqop.solve.cones import checks as cone_checks
from cvxqop.solve.engines import conic, stotos
from cvxqop.solve.rest.prox import NotSplittable, splits

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
    over_cones : bool
        Whether it solves D × D cone programs inside of the engine for any convex rest.
    """

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)
    touches_records: bool = False
    over_cones: bool = False

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
        quadratic = erm.quadratic and not _touches(settings)
        if isinstance(erm, DeclaredERM) and not quadratic:
            return cls._declared(erm, settings, asked)
        rest = (erm.variables, erm.regulariser, erm.constraints)
        options = dict(settings.solver_options)
        name = asked or (conic.default_solver(*rest) if quadratic else STOTOS)
        if not quadratic and (name != STOTOS or (asked is None and not splits(*rest))):
            return cls._over_cones(erm, settings, asked)
        if name != STOTOS:
            size, curvature = _sizes(erm, settings)
            conic.check_solver(name, options, *rest, size=size, curvature=curvature)
            return cls(name, options)
        declared = isinstance(erm, DeclaredERM)
        _check_names(options, DECLARED_OPTIONS if declared else STOTOS_OPTIONS)
        _check_stotos(erm, settings)
        stochastic = options.get("variant", "newton") != "newton"
        several = erm.outputs is not None and not erm.outputs.labelled
        if stochastic and several:
            raise OptionError(
                "solver_options: a squared loss with several outputs is solved from its quadratic "
                "form; leave the variant out."
            )
        return cls(name, options, touches_records=not quadratic or stochastic)

    @classmethod
    def _over_cones(cls, erm: ERM, settings: Settings, asked: str | None) -> Backend:
        """A solver of CVXPY for the cone programs of the engine that certifies any convex rest."""
        options = dict(settings.solver_options)
        if asked is None:
            _check_names(options, cone_checks.LIMITS, "the cone engine")
            stotos.check_limits(**options)
        size, curvature = _sizes(erm, settings)
        name = cone_checks.check_cone_engine(
            asked,
            {} if asked is None else options,
            erm.variables,
            erm.regulariser,
            erm.constraints,
            accuracy=float(settings.accuracy),
            size=size,
            curvature=curvature,
        )
        # Limits are those of the engine; options of a solver that was named are its own.
        engine = options if asked is None else {"solver_options": options}
        return cls(name, {"solver": name, **engine}, touches_records=True, over_cones=True)

    @classmethod
    def _declared(cls, erm: DeclaredERM, settings: Settings, asked: str | None) -> Backend:
        """STOTOS, or a conic solver whose answer STOTOS certifies; cones where the rest needs them.

        With ``accept_solver_accuracy`` a rest that cannot be split goes to the solver as it is.
        """
        rest = (erm.variables, erm.regulariser, erm.constraints)
        options = dict(settings.solver_options)
        name = asked or STOTOS
        if asked != STOTOS and not splits(*rest):
            if not settings.accept_solver_accuracy:
                return cls._over_cones(erm, settings, asked)
            name = asked or conic.default_solver(*rest)
        if name != STOTOS:
            size, curvature = _sizes(erm, settings)
            conic.check_solver(name, options, *rest, size=size, curvature=curvature)
            return cls(name, options, touches_records=True)
        _check_names(options, DECLARED_OPTIONS)
        _check_stotos(erm, settings)
        return cls(name, options, touches_records=True)

    def check_ridge(self, erm: ERM, settings: Settings, ridge: float) -> None:
        """Refuse an accuracy that the ridge of the calibrated mechanism is too small for.

        Raises
        ------
        OptionError
            With one that will do on the public part of the problem.
        """
        if not self.over_cones or erm.outputs is None or not erm.outputs.labelled:
            return
        cone_checks.check_ridge(
            self.name,
            self.options.get("solver_options", {}),
            erm.variables,
            erm.regulariser,
            erm.constraints,
            accuracy=float(settings.accuracy),
            size=settings.distance,
            flat=erm.outputs.shifts,
            ridge=ridge,
        )


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


def _touches(settings: Settings) -> bool:
    """Whether records are needed while solving a squared loss: only a random curvature makes its
    quadratic form private by itself, and the correction of an anchor only the solution."""
    return isinstance(settings.mechanism, Linear) or settings.corrects_anchor


def _sizes(erm: ERM | DeclaredERM, settings: Settings) -> tuple[float, float]:
    """Public sizes of θ and of the curvature of the loss of one record."""
    if isinstance(erm, DeclaredERM):
        return settings.distance, erm.declared.smoothness
    kappa = sum(loss.curvature * float(np.max(weight, initial=0.0)) for loss, weight in erm.losses)
    return settings.distance, erm.row_norm(settings.bounds) ** 2 * kappa


def _check_stotos(erm: ERM, settings: Settings) -> None:
    """Refuse what STOTOS cannot do, with a remedy where a term stands in the way.

    Raises
    ------
    OptionError
        A term cannot be split, or an option is wrong.
    """
    obstacle = ""
    try:
        stotos.check_stotos(
            erm.variables, erm.regulariser, erm.constraints, **settings.solver_options
        )
    except NotSplittable as error:
        obstacle = str(error)
    if not obstacle:
        return
    remedy = "Leave solver and solver_options out: the default for this problem takes the term."
    try:
        Backend.of(erm, replace(settings, solver=None, solver_options={}))
    except CvxqopError as error:
        remedy = f"CVXPY's solvers do not take it as it is either: {error}"
    raise OptionError(f"{obstacle}. {remedy}")


def _check_names(options: Mapping[str, Any], known: tuple[str, ...], of: str = STOTOS) -> None:
    for option in options:
        if option not in known:
            raise OptionError(
                f"solver_options: {of} has no option {option!r} here; it takes {', '.join(known)}."
            )
