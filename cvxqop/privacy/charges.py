"""One release in the ledger of a budget, and what several cost together."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal

from cvxqop.privacy.accounting.composition import Curve
from cvxqop.privacy.accounting.profile import gaussian_profile
from cvxqop.privacy.wishart.ensemble import Adjacency

__all__ = ["Charge", "curves_together", "exact_sum", "simple_delta"]


@dataclass(frozen=True)
class Charge:
    """One release in the ledger. All of its numbers are public.

    Attributes
    ----------
    label : str
        What the caller called it.
    epsilon, delta : float
        What it was charged for.
    adjacency : {"replace_one", "add_remove"} or None
        What neighbouring data sets were; None where the caller did not say.
    mu : float or None
        μ of a release that is exactly μ-GDP.
    curves : tuple of Curve
        Its profile, for numerical composition; empty where only (ε, δ) is known, or μ.
    """

    label: str
    epsilon: float
    delta: float
    adjacency: Adjacency | None = None
    mu: float | None = None
    curves: tuple[Curve, ...] = field(default=(), repr=False)


def exact_sum(values: Iterable[float]) -> Decimal:
    """The sum of numbers as they were written: 0.1 + 0.2 is 0.3."""
    return sum((Decimal(repr(value)) for value in values), Decimal(0))


def simple_delta(history: tuple[Charge, ...], epsilon: float) -> float:
    """δ_G(ε − Σ ε_i; μ) + Σ δ_i, μ² the sum over the Gaussian releases, i over the others."""
    others = [charge for charge in history if charge.mu is None]
    left = Decimal(repr(epsilon)) - exact_sum(charge.epsilon for charge in others)
    mu = math.hypot(*(charge.mu for charge in history if charge.mu is not None))
    gaussian = float(gaussian_profile(float(left), mu * (1.0 + 1e-15)))
    total = exact_sum(charge.delta for charge in others)
    return min(1.0, float(total) if gaussian == 0.0 else (float(total) + gaussian) * (1.0 + 1e-15))


def curves_together(history: tuple[Charge, ...]) -> list[Curve]:
    """One curve for all Gaussian releases, those of the others, (ε, δ) where no more is known."""
    mu = math.hypot(*(charge.mu for charge in history if charge.mu is not None))
    curves: list[Curve] = []
    for charge in history:
        if charge.mu is None:
            curves += charge.curves or (Curve.basic(charge.epsilon, charge.delta),)
    if mu > 0.0:
        width = max(mu * mu, 6.0 * mu)
        curves.append(Curve.of(lambda e: gaussian_profile(e, mu * (1.0 + 1e-15)), width))
    return curves
