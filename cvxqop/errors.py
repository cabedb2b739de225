"""The errors of cvxqop: one small hierarchy, and the warning that an answer is not private.

No message ever carries a number that was computed from records. Records enter messages by the name
and shape of the array that holds them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

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


class AccuracyError(CvxqopError, RuntimeError):
    """A limit of the caller, or of precision, ended the solve before the accuracy was certified.

    Nothing was released. The privacy budget was charged before the noise was drawn and the charge
    stands. The error depends on the data and is for the holder of the data only.
    """


class PrivateSolverError(CvxqopError, SolverError):  # type: ignore[misc]
    """A solver failed on the perturbed problem; no variable was written.

    For a squared loss the perturbed objective itself is private and has been paid for:
    ``private_loss``, a `cvxqop.PrivateLoss`, holds it, so that another solver can be tried at no
    further privacy cost.
    """

    def __init__(self, message: str, private_loss: Any = None) -> None:
        super().__init__(message)
        self.private_loss = private_loss


class PrivacyWarning(UserWarning):
    """What was asked for is not private, or hardly is."""


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
