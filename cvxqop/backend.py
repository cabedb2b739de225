"""Which solver a plan uses, checked on the public part of the problem before anything is spent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cvxqop.errors import OptionError
from cvxqop.privacy.linear import Linear
from cvxqop.problem.declared_erm import DeclaredERM
from cvxqop.problem.erm import ERM
from cvxqop.settings import Settings
from cvxqop.solve import cone_checks, conic, stotos
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
        # Only a random curvature makes the quadratic form of a squared loss private by itself, and
        # the correction of an anchor only the solution.
        fixed = isinstance(settings.mechanism, Linear)
        quadratic = erm.quadratic and not fixed and not settings.corrects_anchor
        if isinstance(erm, DeclaredERM) and not quadratic:
            return cls._declared(erm, settings)
        rest = (erm.variables, erm.regulariser, erm.constraints)
        options = dict(settings.solver_options)
        name = settings.solver or (conic.default_solver(*rest) if quadratic else STOTOS)
        if not quadratic and (name != STOTOS or _needs_cones(erm, settings)):
            return cls._over_cones(erm, settings)
        if name != STOTOS:
            conic.check_solver(name, options, *rest)
            return cls(name, options)
        declared = isinstance(erm, DeclaredERM)
        _check_names(options, DECLARED_OPTIONS if declared else STOTOS_OPTIONS)
        stotos.check_stotos(*rest, **options)
        stochastic = options.get("variant", "newton") != "newton"
        several = erm.outputs is not None and not erm.outputs.labelled
        if stochastic and several:
            raise OptionError(
                "solver_options: a squared loss with several outputs is solved from its quadratic "
                "form; use variant='newton', or any solver of CVXPY."
            )
        return cls(name, options, touches_records=not quadratic or stochastic)

    @classmethod
    def _over_cones(cls, erm: ERM, settings: Settings) -> Backend:
        """A solver of CVXPY for the cone programs of the engine that certifies any convex rest."""
        options = dict(settings.solver_options)
        if settings.solver is None:
            _check_names(options, cone_checks.LIMITS)
            stotos.check_limits(**options)
        name = cone_checks.check_cone_engine(
            settings.solver,
            {} if settings.solver is None else options,
            erm.variables,
            erm.regulariser,
            erm.constraints,
            accuracy=settings.accuracy,
            radius=settings.distance,
        )
        # Limits are those of the engine; options of a solver that was named are its own.
        engine = options if settings.solver is None else {"solver_options": options}
        return cls(name, {"solver": name, **engine}, touches_records=True, over_cones=True)

    @classmethod
    def _declared(cls, erm: DeclaredERM, settings: Settings) -> Backend:
        """STOTOS, or a conic solver whose answer STOTOS certifies; cones where the rest needs them.

        With ``accept_solver_accuracy`` a rest that cannot be split goes to the solver as it is.
        """
        rest = (erm.variables, erm.regulariser, erm.constraints)
        options = dict(settings.solver_options)
        name = settings.solver or STOTOS
        obstacle = _needs_cones(erm, settings)
        if obstacle and not settings.accept_solver_accuracy:
            return cls._over_cones(erm, settings)
        if obstacle and settings.solver is None:
            name = conic.default_solver(*rest)
        if name != STOTOS:
            conic.check_solver(name, options, *rest)
            return cls(name, options, touches_records=True)
        _check_names(options, DECLARED_OPTIONS)
        stotos.check_stotos(*rest, **options)
        return cls(name, options, touches_records=True)


def _needs_cones(erm: ERM, settings: Settings) -> bool:
    """Whether the rest cannot be split; asked for STOTOS by name, it must be.

    Raises
    ------
    NotSplittable
        It cannot, and STOTOS was asked for.
    """
    try:
        split(erm.variables, erm.regulariser, erm.constraints)
    except NotSplittable:
        if settings.solver == STOTOS:
            raise
        return True
    return False


def _check_names(options: Mapping[str, Any], known: tuple[str, ...]) -> None:
    for option in options:
        if option not in known:
            raise OptionError(
                f"solver_options: STOTOS has no option {option!r} here; it takes "
                f"{', '.join(known)}."
            )
