"""Which solver a plan uses, checked on the public part of the problem before anything is spent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

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
        # Only a random curvature makes the quadratic form of a squared loss private by itself, and
        # the correction of an anchor only the solution.
        fixed = isinstance(settings.mechanism, Linear)
        quadratic = erm.quadratic and not fixed and not settings.corrects_anchor
        if isinstance(erm, DeclaredERM) and not quadratic:
            return cls._declared(erm, settings)
        rest = (erm.variables, erm.regulariser, erm.constraints)
        options = dict(settings.solver_options)
        name = settings.solver or (conic.default_solver(*rest) if quadratic else STOTOS)
        if name != STOTOS:
            if not quadratic:
                raise OptionError(
                    f"solver={name!r}: the records of the private loss {' + '.join(erm.terms)} are "
                    "needed while solving (the loss is not quadratic, the perturbation is linear, "
                    "or calibration 'paper' corrects the anchor), and CVXPY's solvers certify no "
                    "accuracy, without which an inexact solve has no guarantee. Use "
                    "solver='STOTOS', the default."
                )
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
    def _declared(cls, erm: DeclaredERM, settings: Settings) -> Backend:
        """STOTOS, or a conic solver whose answer STOTOS certifies.

        Where the rest cannot be split there is no certificate: the solver must be trusted.
        """
        rest = (erm.variables, erm.regulariser, erm.constraints)
        options = dict(settings.solver_options)
        name = settings.solver or STOTOS
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
            obstacle = str(error).split(": ", 1)[-1].split(";")[0]
        if obstacle and not settings.accept_solver_accuracy:
            raise OptionError(
                f"declared: {obstacle}, so that no answer can be certified. Change that term, or "
                "trust the solver with accept_solver_accuracy=True, which the solution will state."
            )
        if obstacle and settings.solver is None:
            name = conic.default_solver(*rest)
        if name != STOTOS:
            conic.check_solver(name, options, *rest)
            return cls(name, options, touches_records=True)
        _check_names(options, DECLARED_OPTIONS)
        stotos.check_stotos(*rest, **options)
        return cls(name, options, touches_records=True)


def _check_names(options: Mapping[str, Any], known: tuple[str, ...]) -> None:
    for option in options:
        if option not in known:
            raise OptionError(
                f"solver_options: STOTOS has no option {option!r} here; it takes "
                f"{', '.join(known)}."
            )
