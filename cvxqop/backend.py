"""Which solver a plan uses, checked on the public part of the problem before anything is spent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import cvxpy as cp

from cvxqop.errors import CvxqopError, OptionError, ProblemError
from cvxqop.privacy.linear.options import Linear
from cvxqop.problem.erm import ERM
from cvxqop.settings import Settings
from cvxqop.solve.cones import checks as cone_checks
from cvxqop.solve.cones.recession import minimisers
from cvxqop.solve.engines import conic, conic_checks, stotos
from cvxqop.solve.rest.prox import NotSplittable, splits

__all__ = ["Backend"]

STOTOS = "STOTOS"
BOUND_IT = (
    "Add a public ridge to the objective, such as cp.sum_squares of the variable, or bound the "
    "variable by a constraint, such as cp.norm(w, 2) <= 1"
)
STOTOS_OPTIONS = ("variant", "max_iter", "time_limit", "finish")
LIMITS = cone_checks.LIMITS


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
    takes_records : bool
        Whether CVXPY is handed the loss as it was written, to start STOTOS from its answer.
    warnings : tuple of str
        What may go wrong, judged by the public part of the problem.
    """

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)
    touches_records: bool = False
    over_cones: bool = False
    takes_records: bool = False
    warnings: tuple[str, ...] = ()

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
        rest = (erm.variables, erm.regulariser, erm.constraints)
        options = dict(settings.solver_options)
        if erm.loss.linear and asked == STOTOS:
            raise OptionError(
                "solver: STOTOS works on losses with curvature, and this one is linear: leave "
                "solver out."
            )
        name = asked or (_default(erm, options) if quadratic else STOTOS)
        taken = False
        if not quadratic and asked != STOTOS:
            split = splits(*rest)
            if erm.loss.expression is not None and (split or settings.accept_solver_accuracy):
                name = asked or (STOTOS if split else conic.default_solver(*rest))
                taken = name != STOTOS
            elif asked is not None or not split:
                return cls._over_cones(erm, settings, asked)
        if name != STOTOS:
            size, curvature = _sizes(erm, settings)
            conic_checks.check_solver(name, options, *rest, size=size, curvature=curvature)
            return cls(name, options, touches_records=taken, takes_records=taken)
        _check_names(options, STOTOS_OPTIONS if erm.loss.records_are_drawn else LIMITS)
        _check_stotos(erm, settings)
        stochastic = options.get("variant", "newton") != "newton"
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

    def for_release(self, erm: ERM) -> Backend:
        """The same, after a look at what is left to be solved of a linear loss.

        Raises
        ------
        ProblemError
            The public rest leaves no minimiser beside a linear term with noise.
        """
        found = "every"
        if erm.loss.linear:
            found = minimisers(erm.variables, erm.regulariser, erm.constraints)
        terms = " + ".join(erm.terms)
        if found == "none":
            raise ProblemError(
                f"The private loss {terms} is linear, and along some line the public rest of the "
                f"objective is linear, too, so that there is no minimiser. {BOUND_IT}"
            )
        if found == "every":
            return self
        doubt = (
            f"the private loss {terms} is linear, and with noise the public rest may leave no "
            "minimiser: the run would then end without one, and its error.private_loss, which is "
            f"paid for, could be solved again with a ridge. {BOUND_IT}"
        )
        return replace(self, warnings=(doubt,))

    def check_ridge(self, erm: ERM, settings: Settings, ridge: float) -> None:
        """Refuse an accuracy that the ridge of the calibrated mechanism is too small for.

        Raises
        ------
        OptionError
            With one that will do on the public part of the problem.
        """
        if not self.over_cones or erm.loss.flat is None:
            return
        cone_checks.check_ridge(
            self.name,
            self.options.get("solver_options", {}),
            erm.variables,
            erm.regulariser,
            erm.constraints,
            accuracy=float(settings.accuracy),
            size=settings.distance,
            flat=erm.loss.flat,
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


def _default(erm: ERM, options: Mapping[str, Any]) -> str:
    """The quickest solver of a released quadratic; options are those of a solver of CVXPY."""
    rest = (erm.variables, erm.regulariser, erm.constraints)
    if options or erm.loss.linear:
        return conic.default_solver(*rest)
    return conic.quickest(*rest)


def _touches(settings: Settings) -> bool:
    """Whether records are needed while solving a squared loss: only a random curvature makes its
    quadratic form private by itself, and the correction of an anchor only the solution."""
    return isinstance(settings.mechanism, Linear) or settings.corrects_anchor


def _sizes(erm: ERM, settings: Settings) -> tuple[float, float]:
    """Public sizes of θ and of the curvature of the loss of one record; of a linear one, the
    curvature that has its slope at that size."""
    if erm.loss.linear:
        return settings.distance, erm.loss.row_norm(settings.bounds) / settings.distance
    return settings.distance, erm.loss.smoothness(settings.bounds)


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
