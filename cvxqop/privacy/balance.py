"""What a budget has spent and what is left, in the ways that people ask. All of it is public."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal

from cvxqop.privacy.accounting.profile import epsilon_at, gaussian_mu, gaussian_profile
from cvxqop.privacy.charges import Charge, exact_sum

__all__ = ["Remaining", "Spent", "ledger_text", "left_of", "together"]


@dataclass(frozen=True)
class Remaining:
    """What is left: so many more releases, of any mechanism, at (epsilon, delta) each are sure to
    fit.

    Attributes
    ----------
    epsilon, delta : float
        If (ε, δ) of every release simply add up, what is missing from the budget; else the largest
        (fE, fD), 0 ≤ f ≤ 1, of the budget (E, D). Of several releases, each has its part.
    mu : float or None
        Where every release so far is Gaussian: μ that each of the others may have if they are
        Gaussian, too.
    """

    epsilon: float
    delta: float
    mu: float | None = None

    def each(self, releases: int) -> Remaining:
        """The same for k equal releases: ε/k, δ/k, μ/√k, rounded down."""
        parts = (_part(self.epsilon, releases), _part(self.delta, releases))
        mu = None if self.mu is None or releases == 1 else self.mu / math.sqrt(releases)
        return Remaining(*parts, self.mu if mu is None else mu * (1.0 - 1e-15))

    def epsilon_at(self, delta: float) -> float | None:
        """ε to ask for with this δ so that a Gaussian release has the μ that is left, rounded down;
        None where some release was not Gaussian, or nothing is left.

        Examples
        --------
        >>> from cvxqop import Budget
        >>> round(Budget(epsilon=1.0, delta=1e-5).remaining(releases=4).epsilon_at(1e-6), 3)
        0.543
        """
        mu = self.mu
        if not mu:
            return None
        return epsilon_at(lambda epsilon: float(gaussian_profile(epsilon, mu)), delta) * (
            1.0 - 1e-8
        )


@dataclass(frozen=True)
class Spent:
    """What the releases of a budget cost together.

    Attributes
    ----------
    epsilon, delta : float
        They are (ε, δ)-differentially private together; δ is that of the budget.
    mu : float or None
        μ of all of them, where all are Gaussian.
    """

    epsilon: float
    delta: float
    mu: float | None = None

    @property
    def rho(self) -> float | None:
        """ρ of zero-concentrated differential privacy, μ²/2 of Gaussian releases."""
        return None if self.mu is None else 0.5 * self.mu**2 * (1.0 + 1e-15)


def together(history: tuple[Charge, ...]) -> float | None:
    """μ of all releases, None where some is not Gaussian."""
    found = [charge.mu for charge in history if charge.mu is not None]
    return math.hypot(*found) if len(found) == len(history) else None


def left_of(
    budget: tuple[float, float],
    history: tuple[Charge, ...],
    total: Callable[[tuple[Charge, ...], float], float],
) -> Remaining:
    """What is left for one release.

    Parameters
    ----------
    budget : (float, float)
        (E, D).
    history : tuple of Charge
        What was charged.
    total : callable
        Bound on δ(ε) of a history.
    """
    (whole, allowed), spent, mu = budget, together(history), None
    if spent is not None:
        mu = math.sqrt(max(gaussian_mu(whole, allowed) ** 2 - spent**2, 0.0)) * (1.0 - 1e-12)
    if not any(charge.curves or charge.mu is not None for charge in history):
        epsilon = Decimal(repr(whole)) - exact_sum(charge.epsilon for charge in history)
        delta = Decimal(repr(allowed)) - exact_sum(charge.delta for charge in history)
        return Remaining(max(float(epsilon), 0.0), max(float(delta), 0.0), mu)
    low, high = 0.0, 1.0  # δ(E − fE) + fD ≤ D
    for _ in range(50):
        part = 0.5 * (low + high)
        there = total(history, whole * (1.0 - part) * (1.0 - 1e-15))
        fits = there + part * allowed <= allowed * (1.0 - 1e-12)
        low, high = (part, high) if fits else (low, part)
    return Remaining(low * whole, low * allowed, mu)


def ledger_text(
    budget: tuple[float, float], history: tuple[Charge, ...], spent: Spent, left: Remaining
) -> str:
    """A ledger as text: every charge, what they cost together and why, what is left."""
    lines = [f"Budget ({budget[0]:g}, {budget[1]:g}), {len(history)} release(s)"]
    for charge in history:
        mu = "" if charge.mu is None else f", μ = {charge.mu:.6g}"
        lines.append(f"  ({charge.epsilon:g}, {charge.delta:g}){mu}  {charge.label}".rstrip())
    if history:
        sums = (exact_sum(getattr(c, name) for c in history) for name in ("epsilon", "delta"))
        alone = tuple(map(float, sums))
        rule = "" if spent.mu is None else f", μ = {spent.mu:.6g}, ρ = {spent.rho:.6g}"
        lines.append(f"  spent  ({spent.epsilon:.6g}, {spent.delta:g}){rule}")
        if len(history) > 1 and spent.epsilon < alone[0]:
            how = "the laws of their losses" if spent.mu is None else "their μ²"
            lines.append(
                f"         as {how} add up; ε and δ alone would make ({alone[0]:g}, {alone[1]:g})"
            )
    mu = "" if left.mu is None else f", or Gaussian with μ = {left.mu:.6g}"
    return "\n".join([*lines, f"  left   ({left.epsilon:.6g}, {left.delta:.6g}){mu}"])


def _part(value: float, count: int) -> float:
    """value/count, so that count of them, as they are written, add up to no more."""
    part = value / count
    while part > 0.0 and count * Decimal(repr(part)) > Decimal(repr(value)):
        part = math.nextafter(part, 0.0)
    return part
