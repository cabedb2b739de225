"""Budget: a ledger of releases on the same records, charged before any noise is drawn."""

from __future__ import annotations

import math
import numbers
import os
import threading
from pathlib import Path
from typing import Any, NoReturn, Self

from cvxqop.errors import BudgetError, OptionError
from cvxqop.privacy import ledger
from cvxqop.privacy.accounting.composition import Composed, Curve, compose
from cvxqop.privacy.accounting.profile import check_privacy, epsilon_at
from cvxqop.privacy.balance import Remaining, Spent, ledger_text, left_of, together
from cvxqop.privacy.charges import Charge, curves_together, simple_delta
from cvxqop.privacy.current import Enterable
from cvxqop.privacy.curves import curves_of
from cvxqop.privacy.mechanism import Mechanism
from cvxqop.privacy.wishart.ensemble import Adjacency

__all__ = ["Budget"]

LARGEST_NUMERIC = 100.0
"""ε up to which profiles are composed numerically."""


class Budget(Enterable):
    """A privacy budget (ε, δ) for several releases on the same records.

    Gaussian mechanisms compose exactly: their μ² add up and δ is taken at the ε of the whole.
    Others compose by their profiles, numerically, with every rounding upwards, or by adding ε and
    δ, whichever is smaller. Nothing in a budget ever depends on data.

    A release that follows from what was released before, in its parameters, is covered where the
    releases are all Gaussian or add up; the numerical composition supposes that the mechanisms
    were fixed beforehand.

    Parameters
    ----------
    epsilon, delta : float
        The budget: 0 < ε ≤ 10⁶, 10⁻³⁰⁰ ≤ δ < ½.

    Raises
    ------
    CalibrationError
        If they are out of range.

    Notes
    -----
    Safe for threads of one process. Of several processes each must hold its own part. A copy is
    the budget itself, and it does not pickle: a second ledger would spend the same privacy twice.

    Examples
    --------
    >>> budget = Budget(epsilon=1.0, delta=1e-6)
    >>> _ = budget.spend(epsilon=0.25, delta=2.5e-7, label="first look")
    >>> budget.remaining()
    Remaining(epsilon=0.75, delta=7.5e-07, mu=None)
    >>> with budget:  # the calls inside are charged to it
    ...     pass
    >>> budget.spend(epsilon=0.8, delta=1e-7)
    Traceback (most recent call last):
    ...
    cvxqop.errors.BudgetError: Spending (0.8, 1e-07) would exceed the budget (1, 1e-06): left are \
(0.75, 7.5e-07). Nothing was charged and no noise was drawn.
    """

    def __init__(self, *, epsilon: float, delta: float) -> None:
        check_privacy(epsilon, delta)
        self._epsilon, self._delta = float(epsilon), float(delta)
        self._history: tuple[Charge, ...] = ()
        self._composed: tuple[tuple[Charge, ...], Composed | None] = ((), None)
        self._lock, self._process = threading.RLock(), os.getpid()

    @property
    def epsilon(self) -> float:
        """ε of the whole."""
        return self._epsilon

    @property
    def delta(self) -> float:
        """δ of the whole."""
        return self._delta

    @property
    def history(self) -> tuple[Charge, ...]:
        """The releases that were charged, in order."""
        return self._history

    def spend(
        self,
        *,
        epsilon: float,
        delta: float,
        label: str = "",
        mechanism: Mechanism | None = None,
        adjacency: Adjacency | None = None,
    ) -> Charge:
        """Charge one release, before its noise is drawn.

        Parameters
        ----------
        epsilon, delta : float
            The privacy of the release; δ = 0 is allowed.
        label : str
            A name for the history.
        mechanism : Mechanism, optional
            The calibrated mechanism: its profile makes the composition tighter.
        adjacency : {"replace_one", "add_remove"}, optional
            Taken from the mechanism where there is one.

        Returns
        -------
        Charge

        Raises
        ------
        BudgetError
            If the whole would exceed the budget, neighbours are defined in another way than in the
            history, or this is another process, with a copy. Nothing is charged then.
        OptionError
            If a number is out of range, or the mechanism does not have the privacy it is charged
            for.
        """
        if os.getpid() != self._process:
            raise BudgetError(
                "This budget was made in another process, which would not see the charge: charge "
                "it there, or give each process a budget of its own whose parts add up to the "
                "whole. Nothing was charged and no noise was drawn."
            )
        charge = self._charge(epsilon, delta, label, mechanism, adjacency)
        with self._lock:
            for earlier in self._history:
                if None not in (earlier.adjacency, charge.adjacency) and (
                    earlier.adjacency != charge.adjacency
                ):
                    raise BudgetError(
                        f"This budget has releases for adjacency={earlier.adjacency!r}; one for "
                        f"{charge.adjacency!r} does not compose with them. Keep two budgets."
                    )
            after = (*self._history, charge)
            if simple_delta(after, self._epsilon) > self._delta and (
                self._total(after, self._epsilon) > self._delta
            ):
                raise BudgetError(self._refusal(charge))
            self._history = after
        return charge

    def _charge(
        self,
        epsilon: float,
        delta: float,
        label: str,
        mechanism: Mechanism | None,
        adjacency: Adjacency | None,
    ) -> Charge:
        if not 0.0 < epsilon < math.inf:
            raise OptionError(f"epsilon must be positive and finite, got {epsilon!r}.")
        if not 0.0 <= delta < 1.0:
            raise OptionError(f"delta must lie in [0, 1), got {delta!r}.")
        if not isinstance(label, str):
            raise OptionError("label must be a string.")
        mu: float | None = None
        curves: tuple[Curve, ...] = ()
        if mechanism is not None:
            adjacency, mu = mechanism.sensitivity.adjacency, mechanism.gdp_mu
            if float(mechanism.profile(epsilon)) > delta:
                raise OptionError(
                    f"The mechanism has a larger delta at epsilon = {epsilon:g} than the "
                    f"{delta:g} that it is charged for."
                )
            curves = curves_of(mechanism, float(epsilon)) if mu is None else ()
        return Charge(label, float(epsilon), float(delta), adjacency, mu, curves)

    def _refusal(self, charge: Charge) -> str:
        left = self.remaining()
        text = f"({left.epsilon:.6g}, {left.delta:.6g})"
        if left.mu is not None:
            text += f", or mu = {left.mu:.6g} of a Gaussian mechanism"
        return (
            f"Spending ({charge.epsilon:g}, {charge.delta:g}) would exceed the budget "
            f"({self._epsilon:g}, {self._delta:g}): left are {text}. Nothing was charged and no "
            "noise was drawn."
        )

    def profile(self, epsilon: float) -> float:
        """Bound on δ(ε) of all releases together, for ε up to that of the budget.

        Examples
        --------
        >>> budget = Budget(epsilon=2.0, delta=1e-5)
        >>> budget.profile(0.0)
        0.0
        """
        with self._lock:
            return self._total(self._history, min(float(epsilon), self._epsilon))

    def _total(self, history: tuple[Charge, ...], epsilon: float) -> float:
        """The smaller of the simple bound and the numerical composition."""
        simple = simple_delta(history, epsilon)
        if self._epsilon > LARGEST_NUMERIC or not any(charge.curves for charge in history):
            return simple
        if self._composed[0] != history:
            self._composed = history, compose(curves_together(history), self._epsilon)
        composed = self._composed[1]
        assert composed is not None
        return min(simple, composed(epsilon))

    def epsilon_at(self, delta: float) -> float:
        """ε of all releases together at a δ, rounded up; infinity where it is beyond the budget's.

        Examples
        --------
        >>> budget = Budget(epsilon=2.0, delta=1e-5)
        >>> _ = budget.spend(epsilon=0.5, delta=1e-6)
        >>> budget.epsilon_at(1e-6)
        0.5
        """
        with self._lock:
            history = self._history
            return epsilon_at(lambda epsilon: self._total(history, epsilon), delta, self._epsilon)

    @property
    def spent(self) -> Spent:
        """What all releases cost together: ε at the δ of the budget; μ where all are Gaussian."""
        with self._lock:
            return Spent(self.epsilon_at(self._delta), self._delta, together(self._history))

    def remaining(self, releases: int = 1) -> Remaining:
        """What is left for so many equal releases, whatever their mechanisms.

        Parameters
        ----------
        releases : int
            k: all of them, at the (ε, δ) that comes back each, are sure to fit.

        Examples
        --------
        >>> Budget(epsilon=1.0, delta=1e-6).remaining(releases=4)  # doctest: +ELLIPSIS
        Remaining(epsilon=0.25, delta=2.5e-07, mu=0.11835...)
        """
        if isinstance(releases, bool) or not isinstance(releases, numbers.Integral) or releases < 1:
            raise OptionError(f"releases must be a positive int, not {releases!r}.")
        with self._lock:
            return self._whole().each(int(releases))

    def _whole(self) -> Remaining:
        return left_of((self._epsilon, self._delta), self._history, self._total)

    def save(self, path: str | Path) -> None:
        """Write the ledger as JSON, replacing the file at once or not at all."""
        with self._lock:
            ledger.write(Path(path), self._epsilon, self._delta, self._history)

    @classmethod
    def load(cls, path: str | Path) -> Budget:
        """Read a ledger that :meth:`save` wrote.

        Raises
        ------
        BudgetError
            If the file is missing, damaged or of another version, or spends more than it has.
        """
        epsilon, delta, rows = ledger.read(Path(path))
        budget = cls(epsilon=epsilon, delta=delta)
        history = tuple(Charge(**row) for row in rows)
        if budget._total(history, epsilon) > delta * (1.0 + 1e-9):
            raise BudgetError("The budget file spends more than it has.")
        budget._history = history
        return budget

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: Any) -> Self:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "A budget does not pickle: two ledgers would spend the same privacy twice. Write it "
            "with budget.save(path) and go on from Budget.load(path) in one place only, or give "
            "each process a budget of its own whose parts add up to the whole."
        )

    def __str__(self) -> str:
        with self._lock:
            whole = (self._epsilon, self._delta)
            return ledger_text(whole, self._history, self.spent, self._whole())

    def __repr__(self) -> str:
        return f"Budget({self._epsilon:g}, {self._delta:g}), {len(self._history)} release(s)"
