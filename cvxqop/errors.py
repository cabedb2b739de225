"""The errors of cvxqop: one small hierarchy, and the warning that an answer is not private.

No message ever carries a number that was computed from records. Records enter messages by the name
and shape of the array that holds them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

from cvxpy.error import SolverError

P = ParamSpec("P")
T = TypeVar("T")

__all__ = [
    "AccuracyError",
    "BudgetError",
    "CalibrationError",
    "CvxqopError",
    "OptionError",
    "PlanError",
    "PrivacyWarning",
    "PrivateSolverError",
    "ProblemError",
    "Resumable",
    "keep",
    "kept",
    "sealed",
]


class CvxqopError(Exception):
    """Base class of every error that cvxqop raises on purpose."""


class ProblemError(CvxqopError, ValueError):
    """The problem, its private data or its bounds cannot be used as they are."""


class OptionError(CvxqopError, ValueError):
    """An option has an unknown name, a wrong type or a value outside its range."""


class CalibrationError(CvxqopError, ValueError):
    """No noise level of this mechanism meets the privacy that was asked for."""


class BudgetError(CvxqopError, RuntimeError):
    """A release would cost more privacy than is left, or a saved budget cannot be trusted.

    Raised before any noise is drawn; nothing is charged.
    """


class PlanError(CvxqopError, RuntimeError):
    """A plan cannot be run: its problem is no longer the one that the noise was calibrated for.

    Nothing was charged and no noise was drawn.
    """


def sealed(function: Callable[P, T]) -> Callable[P, T]:
    """Cut the traceback and the context of our own errors at this function.

    The frames below hold blocks of records and unreleased sums in their local variables, and
    tools that log exceptions read those.
    """

    @functools.wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return function(*args, **kwargs)
        except CvxqopError as caught:
            error = caught.with_traceback(None)
            error.__context__ = error.__cause__ = None
        raise error

    return wrapper


class Resumable(CvxqopError):
    """A failure after the budget was charged. What was paid for, the draw, is kept."""

    @sealed
    def resume(self, *, solver: str | None = None, solver_options: Any = None) -> Any:
        """Go on with the draw that has been paid for, at no further privacy cost.

        Parameters
        ----------
        solver, solver_options
            As in `cvxqop.privatize`; without them as they were.

        Returns
        -------
        PrivateSolution or PrivateLoss
            What the call that failed would have returned. A draw ends in one release at most.

        Raises
        ------
        PlanError
            If nothing is kept (an error that was copied or pickled, a draw that has been
            released), or the problem has changed since.
        """
        go = _KEPT.get(self)
        if go is None:
            raise PlanError(
                "Nothing is kept with this error: its draw has been released, or the error is a "
                "copy. What was charged stands."
            )
        return go(solver, solver_options)


class AccuracyError(Resumable, RuntimeError):
    """A limit of the caller, or of precision, ended the solve before the accuracy was certified.

    Nothing was released. The privacy budget was charged before the noise was drawn and the charge
    stands; ``error.resume()`` goes on with the same draw. The error depends on the data and is for
    the holder of the data only.
    """


class PrivateSolverError(Resumable, SolverError):  # type: ignore[misc]
    """A solver failed on the perturbed problem; no variable was written.

    For a squared loss the perturbed objective itself is private and has been paid for:
    ``private_loss``, a `cvxqop.PrivateLoss`, holds it, so that another solver can be tried at no
    further privacy cost; ``error.resume(solver=…)`` tries it on the problem as it is.
    """

    def __init__(self, message: str, private_loss: Any = None) -> None:
        super().__init__(message)
        self.private_loss = private_loss


# Beside the errors and not on them: whatever is reachable from an error may be logged.
_KEPT: WeakKeyDictionary[Resumable, Callable[[Any, Any], Any]] = WeakKeyDictionary()


def keep(error: Resumable, go: Callable[[Any, Any], Any]) -> None:
    """Say how to go on after an error: ``go(solver, solver_options)``."""
    _KEPT[error] = go


def kept(error: Resumable) -> Callable[[Any, Any], Any] | None:
    """How to go on, if anything was kept."""
    return _KEPT.get(error)


class PrivacyWarning(UserWarning):
    """What was asked for is not private, or hardly is."""
