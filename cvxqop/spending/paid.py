"""A draw that has been charged for: tried until it ends in one release, and never in two."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

from cvxqop.backend import Backend
from cvxqop.case import Case
from cvxqop.errors import AccuracyError, PlanError, Resumable, keep, kept
from cvxqop.solve.engines import monitor

__all__ = ["Paid", "afterwards", "backend_of"]

T = TypeVar("T")
U = TypeVar("U")


@dataclass(eq=False)
class Paid(Generic[T]):
    """What is left to do after a draw, as a function of the solver.

    Two releases of one draw would differ by numbers that no noise hides, so that a second one is
    refused, whichever error it is asked of.
    """

    case: Case
    attempt: Callable[[Backend], T] | None = field(repr=False)
    _lock: Any = field(default_factory=threading.Lock, repr=False)
    _process: int = field(default_factory=os.getpid, repr=False)

    def run(self, backend: Backend) -> T:
        """One attempt.

        Raises
        ------
        AccuracyError
            It failed; ``error.resume()`` is the next attempt.
        PlanError
            The draw has been released.
        """
        with self._lock:
            if os.getpid() != self._process:
                raise PlanError("A draw is released by the process that it was made in.")
            if self.attempt is None:
                raise PlanError("This draw has been released; its charge covers one release.")
            words = ""
            try:
                result = self.attempt(backend)
            except AccuracyError as error:
                words = str(error)
            except Exception:  # whatever it says, it depends on records
                words = monitor.failure("the solver failed, or records could not be read,")
            else:
                self.attempt = None
                return result
        failure = AccuracyError(words)
        keep(
            failure,
            lambda solver, options: self.run(backend_of(self.case, backend, solver, options)),
        )
        raise failure


def backend_of(case: Case, backend: Backend, solver: Any, options: Any) -> Backend:
    """The solver of the next attempt: the same one, or another that works on the same draw.

    Raises
    ------
    OptionError
        It cannot be used; what is kept stays.
    """
    if solver is None and options is None:
        return backend
    settings = replace(
        case.settings,
        solver=case.settings.solver if solver is None else solver,
        solver_options=options or {},
    )
    return Backend.of(case.erm, settings)


def afterwards(
    error: Resumable, then: Callable[[Any], U], before: Callable[[], None] = lambda: None
) -> None:
    """Whoever resumes gets what ``then`` makes of the result, once ``before`` has not refused;
    errors on the way are resumed likewise."""
    go = kept(error)
    if go is None:
        return

    def on(solver: Any, options: Any) -> U:
        before()
        try:
            result = go(solver, options)
        except Resumable as following:
            afterwards(following, then, before)
            raise
        return then(result)

    keep(error, on)
