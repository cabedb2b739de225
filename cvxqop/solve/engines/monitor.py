"""When to stop, what limits apply, and what the holder of the data gets to see on the way."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from cvxqop.errors import AccuracyError
from cvxqop.solve.certificate import Certificate
from cvxqop.solve.smooth.finite_sum import FiniteSum

__all__ = ["Goal", "Monitor"]

T = TypeVar("T")

LOG = logging.getLogger("cvxqop.solve")


@dataclass(frozen=True)
class Goal:
    """What must be certified: a distance to the minimiser, or a gap relative to |Φ|."""

    distance: float | None = None
    relative_gap: float | None = None

    def met(self, certificate: Certificate, value: float) -> bool:
        """Whether a certificate is good enough; ``value`` is Φ."""
        if self.distance is not None and not certificate.distance <= self.distance:
            return False
        if self.relative_gap is None:
            return self.distance is not None
        return certificate.gap <= self.relative_gap * abs(value)


@dataclass(eq=False)
class Monitor:
    """Counts iterations, enforces the caller's limits, reports progress.

    Parameters
    ----------
    max_iter, time_limit : int, float or None
        Limits set by the caller: iterations and seconds.
    progress : bool or callable
        True shows a bar on a terminal (with tqdm) and logs otherwise; a callable receives
        (iteration, passes over the data, certified gap, certified distance). Progress is not
        private: it is for the holder of the data.
    """

    max_iter: int | None = None
    time_limit: float | None = None
    progress: bool | Callable[[int, float, float, float], Any] = False
    iterations: int = 0
    passes: float = 0.0
    _start: float = field(default_factory=time.monotonic)
    _bar: Any = None

    def __post_init__(self) -> None:
        if self.progress is True and sys.stderr.isatty():
            try:
                from tqdm import tqdm
            except ImportError:
                return
            self._bar = tqdm(desc="STOTOS", unit="it", leave=False)

    def report(self, certificate: Certificate) -> None:
        """Count one outer iteration that ended with this certificate."""
        self.iterations += 1
        if callable(self.progress):
            self.progress(self.iterations, self.passes, certificate.gap, certificate.distance)
        elif self._bar is not None:
            self._bar.update()
            self._bar.set_postfix_str(f"certified gap {certificate.gap:.1e}")
        elif self.progress:
            LOG.info("iteration %d: certified gap %.1e", self.iterations, certificate.gap)

    def check(self) -> None:
        """Raise `AccuracyError` when a limit of the caller is reached."""
        if self.max_iter is not None and self.iterations >= self.max_iter:
            raise AccuracyError(failure("max_iter was reached"))
        self.check_time()

    def check_time(self) -> None:
        """Raise `AccuracyError` when the time is over."""
        if self.time_limit is not None and time.monotonic() - self._start > self.time_limit:
            raise AccuracyError(failure("time_limit was reached"))

    def close(self) -> None:
        """Remove the bar."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None


class PrecisionError(AccuracyError):
    """Not a limit of the caller but the rounding of the gradient stands before the goal."""


def with_less_rounding(solve: Callable[[Any], T], smooth: Any) -> T:
    """What ``solve`` makes of a function; of the same sum, added up finely, where rounding is met.

    Raises
    ------
    AccuracyError
        As ``solve`` does.
    """
    try:
        return solve(smooth)
    except PrecisionError:
        if not isinstance(smooth, FiniteSum) or smooth.fine:
            raise
        return solve(replace(smooth, fine=True, _sizes=[]))


def failure(reason: str) -> str:
    """Message of an `AccuracyError`: no number, and what it means for the budget."""
    return (
        f"{reason} before the accuracy was certified; nothing was released and the privacy charge "
        "stands. This failure depends on the data: it is for the holder of the data only"
    )
