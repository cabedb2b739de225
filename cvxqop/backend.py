"""Which solver a plan uses, checked on the public part of the problem before anything is spent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cvxqop.errors import OptionError
from cvxqop.privacy.linear import Linear
from cvxqop.problem.erm import ERM
from cvxqop.settings import Settings
from cvxqop.solve import conic, stotos

__all__ = ["Backend"]

STOTOS = "STOTOS"
STOTOS_OPTIONS = ("variant", "max_iter", "time_limit", "finish")


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
        # Only a random curvature makes the quadratic form of a squared loss private by itself.
        quadratic = all(loss.quadratic for loss, _ in erm.losses) and not isinstance(
            settings.mechanism, Linear
        )
        rest = (erm.variables, erm.regulariser, erm.constraints)
        options = dict(settings.solver_options)
        name = settings.solver or (conic.default_solver(*rest) if quadratic else STOTOS)
        if name != STOTOS:
            if not quadratic:
                raise OptionError(
                    f"solver={name!r}: the records of the private loss {' + '.join(erm.terms)} are "
                    "needed while solving (the loss is not quadratic, or the perturbation is "
                    "linear), and CVXPY's solvers certify no accuracy, without which an inexact "
                    "solve has no guarantee. Use solver='STOTOS', the default."
                )
            conic.check_solver(name, options, *rest)
            return cls(name, options)
        for option in options:
            if option not in STOTOS_OPTIONS:
                raise OptionError(
                    f"solver_options: STOTOS has no option {option!r}; it takes "
                    f"{', '.join(STOTOS_OPTIONS)}."
                )
        stotos.check_stotos(*rest, **options)
        stochastic = options.get("variant", "newton") != "newton"
        return cls(name, options, touches_records=not quadratic or stochastic)
