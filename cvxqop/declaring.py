"""Declared losses in the front: what privacy is told of them, what is refused, what is stated."""

from __future__ import annotations

import math

from cvxqop.errors import OptionError
from cvxqop.privacy.gaussian.options import Gaussian
from cvxqop.privacy.linear.options import Linear
from cvxqop.privacy.mechanism import Sensitivity
from cvxqop.problem.declared_erm import DeclaredERM
from cvxqop.settings import Settings

__all__ = ["check_declared", "declared_sensitivity"]


def declared_sensitivity(erm: DeclaredERM, settings: Settings) -> Sensitivity:
    """The declared constants in the form that every mechanism takes.

    Rank one in `Sensitivity` means that every Hessian of a record has one and the same direction.
    A declared rank of one says less, unless the loss is quadratic, or θ is a number; it counts as
    two with the trace of one: Theorem 6 takes T, not ρ. Theorem 9 also needs gradients of one
    direction.
    """
    declared, d = erm.declared, erm.dimension
    rank, trace = declared.rank(d), declared.trace_bound(d)
    frobenius = min(math.sqrt(rank) * declared.smoothness, trace)
    fixed = declared.quadratic and not isinstance(settings.mechanism, Linear)
    return Sensitivity(
        dimension=d,
        smoothness=min(declared.smoothness, trace),
        anchor_gradient=declared.anchor_bound,
        quadratic=declared.quadratic,
        adjacency=settings.adjacency,
        hessian_rank=rank if fixed or d == 1 else max(rank, 2),
        trace=trace,
        frobenius=frobenius,
        gradient=declared.gradient,
    )


def check_declared(erm: DeclaredERM, settings: Settings) -> None:
    """Refuse options that do not go with declared constants.

    Raises
    ------
    OptionError
        Names the option and the remedy.
    """
    mechanism, declared = settings.mechanism, erm.declared
    if isinstance(mechanism, Linear):
        if declared.gradient is None:
            raise OptionError(
                "perturbation: the linear mechanism needs a bound on the gradient of one record at "
                "every θ of the constraint set: state Declared(gradient=…)."
            )
        if mechanism.clip is not None:
            raise OptionError("Linear: clip changes recognised losses only; leave it out.")
    if isinstance(mechanism, Gaussian) and not declared.quadratic:
        raise OptionError(
            "perturbation: the Gaussian ensemble takes declared losses that are quadratic only. "
            "Use 'wishart'."
        )
    if getattr(mechanism, "calibration", "exact") == "paper":
        raise OptionError("Wishart: calibration='paper' does not take declared losses.")
    if settings.accept_solver_accuracy and erm.quadratic and not isinstance(mechanism, Linear):
        raise OptionError(
            "accept_solver_accuracy has no meaning for quadratic losses: the solver sees the "
            "released quadratic form only, so that its accuracy is no part of the guarantee."
        )
