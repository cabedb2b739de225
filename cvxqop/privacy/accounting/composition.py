"""Composition of privacy profiles, numerically, with every rounding upwards.

A mechanism enters by bounds on its profile at a few points. As a function of e^ε a profile is
convex, so that the chords between the points lie above it; their slopes define a pair of discrete
measures (P, Q) whose hockey-stick divergences are the chords (Doroshenko, Ghazi, Kamath, Kumar and
Manurangsi 2022, "connect the dots"). Products of such pairs bound compositions (Zhu, Dong and Wang
2022), and their privacy losses add: a convolution.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["Composed", "Curve", "compose"]

Array = npt.NDArray[np.float64]

POINTS = 192
"""Points of a stored curve up to its ε; a third as many above."""
CELLS = 512
"""Cells of the grid up to the ε of the smallest mechanism, where the total size allows."""
LARGEST_GRID = 2**14


@dataclass(frozen=True)
class Curve:
    """Upper bounds on a profile: δ(ε_i) ≤ δ_i at ascending ε_i ≥ 0, and what follows below 0.

    Attributes
    ----------
    epsilon, delta : tuple of float
        ε_i, from 0, and δ_i.
    symmetric : bool
        True for mechanisms: neighbourhood is symmetric (replace_one, or add and remove together),
        so that δ(−ε) = 1 − e^{−ε}(1 − δ(ε)). False for a factor whose privacy loss is never
        negative: δ(−ε) = 1 − e^{−ε}(1 − δ(0)).

    Examples
    --------
    >>> curve = Curve.of(lambda e: np.exp(-np.asarray(e)), 1.0)
    >>> bool(curve(0.5) >= np.exp(-0.5)) and bool(curve(0.5) < 1.01 * np.exp(-0.5))
    True
    """

    epsilon: tuple[float, ...]
    delta: tuple[float, ...]
    symmetric: bool = True

    @classmethod
    def of(
        cls, profile: Callable[[npt.ArrayLike], Array], epsilon: float, points: int = POINTS
    ) -> Curve:
        """Sample a profile densely up to ε and more coarsely up to 8ε; it is constant beyond."""
        grid = epsilon * np.concatenate(
            [np.linspace(0.0, 1.0, points + 1), np.geomspace(1.0, 8.0, points // 3 + 1)[1:]]
        )
        delta = np.minimum.accumulate(np.asarray(profile(grid), dtype=np.float64))
        return cls(tuple(map(float, grid)), tuple(map(float, delta)))

    @classmethod
    def basic(cls, epsilon: float, delta: float) -> Curve:
        """What (ε, δ) alone says: loss ±ε but for δ."""
        at_zero = delta + (1.0 - delta) * math.tanh(0.5 * epsilon)
        return cls((0.0, float(epsilon)), (min(1.0, at_zero * (1.0 + 1e-15)), float(delta)))

    def __call__(self, epsilon: npt.ArrayLike) -> Array:
        """The chord bound at any real ε."""
        eps = np.asarray(epsilon, dtype=np.float64)
        positive = self._chord(np.abs(eps) if self.symmetric else np.maximum(eps, 0.0))
        with np.errstate(over="ignore"):
            mirrored = 1.0 - np.exp(np.minimum(eps, 0.0)) * (1.0 - positive)
        return np.asarray(np.where(eps >= 0.0, positive, np.minimum(1.0, mirrored)))

    def _chord(self, epsilon: Array) -> Array:
        grid, delta = np.asarray(self.epsilon), np.asarray(self.delta)
        right = np.clip(np.searchsorted(grid, epsilon, side="left"), 1, len(grid) - 1)
        left = right - 1
        e = np.clip(epsilon, grid[left], grid[right])
        # Weight of the left end in e^ε: (e^r − e^e)/(e^r − e^l).
        weight = np.expm1(e - grid[right]) / np.expm1(grid[left] - grid[right])
        chord = delta[right] + weight * (delta[left] - delta[right])
        return np.asarray(np.minimum(1.0, chord * (1.0 + 1e-14)))


@dataclass(frozen=True)
class _Losses:
    """P's masses at the privacy losses step·(first, first + 1, …), and at ∞."""

    first: int
    mass: Array
    infinite: float

    def __matmul__(self, other: _Losses) -> _Losses:
        """Losses of two mechanisms together; masses are non-negative, so nothing cancels."""
        total, others = float(self.mass.sum()), float(other.mass.sum())
        infinite = self.infinite * (others + other.infinite) + total * other.infinite
        mass = np.convolve(self.mass, other.mass) * (1.0 + 1e-12)
        return _Losses(self.first + other.first, mass, infinite * (1.0 + 1e-12))

    def clipped(self, low: int, high: int) -> _Losses:
        """Losses below ``low`` raised to it, those above ``high`` to ∞."""
        index = self.first + np.arange(len(self.mass))
        inside = (index >= low) & (index <= high)
        mass = self.mass[inside].copy()
        if not mass.size:
            mass = np.zeros(1)
        infinite = self.infinite + float(self.mass[index > high].sum())
        first = int(max(low, self.first)) if inside.any() else low
        mass[0] += float(self.mass[index < low].sum())
        return _Losses(first, mass, infinite * (1.0 + 1e-14))

    def delta(self, epsilon: float, step: float) -> float:
        losses = step * (self.first + np.arange(len(self.mass)))
        part = np.where(losses > epsilon, -np.expm1(np.minimum(epsilon - losses, 0.0)), 0.0)
        return float(self.mass @ part) * (1.0 + 1e-12) + self.infinite


def _discretised(curve: Curve, step: float, reach: int) -> _Losses:
    """The pair of measures whose profile is the chord bound of a curve on the grid."""
    eps = step * np.arange(-reach, reach + 1)
    delta = curve(eps)
    # Slopes in e^ε, scaled by e^ε of the left end; made convex from the right, which only raises.
    slopes = (delta[:-1] - delta[1:]) / np.expm1(step)
    index = np.arange(len(slopes))
    with np.errstate(divide="ignore"):
        convex = np.maximum.accumulate((np.log(np.maximum(slopes, 0.0)) - index * step)[::-1])[::-1]
    slopes = np.exp(convex + index * step)
    # Mass of P at ε_i: e^{ε_i} times the jump of the slope there.
    mass = np.empty(len(eps))
    mass[1:-1] = slopes[:-1] * math.exp(step) - slopes[1:]
    mass[-1] = slopes[-1] * math.exp(step)
    finite = float(mass[1:].sum())
    mass[0] = max(0.0, 1.0 - finite - float(delta[-1]))
    mass = np.maximum(mass, 0.0) * (1.0 + 1e-10)  # rounding: relative to the slopes, not to mass
    return _Losses(-reach, mass, float(delta[-1]))


@dataclass(frozen=True)
class Composed:
    """Mechanisms run one after the other; ε up to the one that :func:`compose` was given."""

    losses: _Losses
    step: float

    def __call__(self, epsilon: float) -> float:
        """Upper bound on δ(ε)."""
        return min(1.0, self.losses.delta(epsilon, self.step))


def compose(curves: Sequence[Curve], epsilon: float) -> Composed:
    """Upper bound on the profile of mechanisms run one after the other on the same records.

    Parameters
    ----------
    curves : sequence of Curve
        One of each mechanism, at least one. Their parameters may not depend on the outputs of
        earlier ones.
    epsilon : float
        Largest ε at which the result will be asked for, at most 200.

    Returns
    -------
    Composed
        A function of ε.

    Examples
    --------
    >>> from cvxqop.privacy.accounting.profile import gaussian_profile
    >>> curve = Curve.of(lambda e: gaussian_profile(e, 0.3), 1.5)
    >>> bound, exact = compose([curve, curve], 1.0)(1.0), float(gaussian_profile(1.0, 0.3 * 2**0.5))
    >>> exact <= bound <= 1.05 * exact
    True
    """
    largest = min(max(curve.epsilon[-1] for curve in curves), 8.0 * epsilon)
    smallest = min(largest, *(curve.epsilon[-1] for curve in curves))
    step = max(smallest / (8 * CELLS), (epsilon + largest) / LARGEST_GRID)
    top = math.ceil((epsilon + largest) / step)
    total: _Losses | None = None
    for curve in curves:
        reach = max(1, min(math.ceil(curve.epsilon[-1] / step), top))
        losses = _discretised(curve, step, reach)
        total = losses if total is None else (total @ losses).clipped(-top, top)
    assert total is not None
    return Composed(total, step)
