"""Whether the draws of a mechanism follow the law that its accounting supposes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import chdtr, ndtr

from cvxqop.errors import OptionError
from cvxqop.privacy.gaussian.adaptive import CalibratedAdaptive
from cvxqop.privacy.gaussian.calibrated import CalibratedGaussian
from cvxqop.privacy.gaussian.gradient import CalibratedGradient
from cvxqop.privacy.gaussian.truncated import CalibratedTruncatedGaussian
from cvxqop.privacy.linear.calibrated import CalibratedLinear
from cvxqop.privacy.mechanism import Mechanism
from cvxqop.privacy.noise import Randomness
from cvxqop.privacy.wishart.calibrated import CalibratedWishart

__all__ = ["Law", "draws_follow_law"]

Array = npt.NDArray[np.float64]
Distribution = Callable[[Array], Array]


class Statistic(NamedTuple):
    """Independent values, ``size`` of them a draw, and their distribution function, which may be
    off by ``slack``."""

    name: str
    values: Array
    distribution: Distribution
    slack: float = 0.0
    size: int = 1


@dataclass(frozen=True)
class Law:
    """Distances between empirical and stated distribution functions.

    Attributes
    ----------
    draws : int
    confidence : float
        Probability, at least, that every distance is within the limit for a sound mechanism.
    limit : float
        Largest distance allowed, by the inequality of Dvoretzky, Kiefer, Wolfowitz and Massart.
    distances : dict {statistic: float}
        sup |F_n − F| of each.
    """

    draws: int
    confidence: float
    limit: float
    distances: dict[str, float]

    @property
    def holds(self) -> bool:
        """Whether every distance is within the limit."""
        return all(distance <= self.limit for distance in self.distances.values())

    @property
    def worst(self) -> tuple[str, float]:
        """The statistic that is furthest off."""
        return max(self.distances.items(), key=lambda item: item[1])


def draws_follow_law(
    mechanism: Mechanism, *, draws: int = 5000, confidence: float = 1.0 - 1e-6, seed: Any = None
) -> Law:
    """Compare draws of (S, a) with the law that the profile of a mechanism is computed for.

    P(sup |F_n − F| > t) ≤ 2 exp(−2nt²) for every n, so that the limit
    t = √(log(2k/risk)/(2n)) for k statistics has the stated confidence. The statistics: x'Sx and
    1/(x'S⁻¹x) along a direction x that is independent of S (the guard, once it is drawn), each
    entry of the guard, off-diagonal entries of a Gaussian S, the noise of all counts together.

    Parameters
    ----------
    mechanism : Mechanism
        As on ``plan.mechanism``.
    draws : int
        Number of draws.
    confidence : float
        One minus the false-alarm rate of all statistics together.
    seed : None, int or Generator
        As in :func:`cvxqop.privatize`; None audits the cryptographic generator.

    Returns
    -------
    Law

    Raises
    ------
    OptionError
        For a mechanism that is not known here.

    Examples
    --------
    >>> from cvxqop import Wishart
    >>> from cvxqop.privacy.mechanism import Sensitivity
    >>> bounds = Sensitivity(2, 1.0, 1.0, True, "add_remove")
    >>> draws_follow_law(Wishart().calibrate(1.0, 1e-6, bounds), draws=1000).holds
    True
    """
    randomness = Randomness(seed)
    noise, _ = randomness.fresh()
    drawn = [mechanism.draw(noise) for _ in range(draws)]
    S = np.stack([draw.curvature for draw in drawn])
    guards = [np.stack([draw.guard for draw in drawn])]
    if isinstance(mechanism, CalibratedGaussian):
        guards = [np.stack([draw.guards[j] for draw in drawn]) for j in range(mechanism.stages)]  # type: ignore[attr-defined]
    statistics = list(_statistics(mechanism, S, guards))
    if isinstance(mechanism, CalibratedAdaptive):
        counts = np.stack([draw.counts for draw in drawn]) / mechanism.count_scale  # type: ignore[attr-defined]
        size = counts[0].size
        statistics.append(Statistic("counts", counts.ravel(), ndtr, size=size))
    if mechanism.release is not None:
        zero = np.zeros(draws)
        values = mechanism.release.apply(zero, noise) / mechanism.release.scale
        statistics.append(Statistic("release", values, ndtr))
    limit = math.sqrt(math.log(2.0 * len(statistics) / (1.0 - confidence)) / (2.0 * draws))
    distances = {statistic.name: _distance(statistic) for statistic in statistics}
    return Law(draws, confidence, limit, distances)


def _distance(statistic: Statistic) -> float:
    """sup |F_n − F| for a continuous F, less the slack; of m values a draw √m times that, which the
    limit for one is right for."""
    F = statistic.distribution(np.sort(statistic.values))
    steps = np.arange(len(F) + 1) / len(F)
    distance = max(float(np.max(steps[1:] - F)), float(np.max(F - steps[:-1])))
    return distance * math.sqrt(statistic.size) - statistic.slack


def _statistics(mechanism: Mechanism, S: Array, guards: list[Array]) -> Iterator[Statistic]:
    d = S.shape[1]
    scales = getattr(mechanism, "guard_scales", (mechanism.guard_scale,))
    for stage, (scale, guard) in enumerate(zip(scales, guards, strict=True)):
        if scale > 0.0:
            for i in range(guard.shape[1]):
                yield Statistic(f"guard {stage}, entry {i}", guard[:, i] / scale, ndtr)
    first = guards[0][:, :d]  # with several outputs S is of one, and the guard of all
    lengths = np.linalg.norm(first, axis=1)[:, None]
    x = np.where(lengths > 0.0, first / np.where(lengths > 0.0, lengths, 1.0), 1 / math.sqrt(d))
    along = np.einsum("ni,nij,nj->n", x, S, x)
    if isinstance(mechanism, CalibratedWishart):
        m, sigma2 = mechanism.degrees_of_freedom, mechanism.sigma2
        inverse = np.einsum("ni,nij,nj->n", x, np.linalg.inv(S), x)
        yield Statistic("x'Sx", along / sigma2, lambda h: np.asarray(chdtr(m, h)))
        yield Statistic(
            "1/(x'S⁻¹x)", 1.0 / (sigma2 * inverse), lambda h: np.asarray(chdtr(m - d + 1.0, h))
        )
    elif isinstance(mechanism, CalibratedGradient):
        # Not random: zero in every draw, or off as a whole.
        off = bool(np.any(S))
        yield Statistic("S", np.arange(1, len(S) + 1) / len(S), lambda h: np.where(off, 0.0, h))
    elif isinstance(mechanism, CalibratedGaussian):
        yield Statistic("x'Sx", along / mechanism.scale, ndtr)
        for i in range(d):
            for j in range(i):
                yield Statistic(f"S{i}{j}", math.sqrt(2.0) * S[:, i, j] / mechanism.scale, ndtr)
    elif isinstance(mechanism, CalibratedLinear):
        # Not random: at the ridge to rounding, or off by one as a whole.
        off = np.max(np.abs(S - mechanism.ridge * np.eye(d))) > 1e-12 * mechanism.ridge
        yield Statistic("ridge", np.arange(1, len(S) + 1) / len(S), lambda h: np.where(off, 0.0, h))
    elif isinstance(mechanism, CalibratedTruncatedGaussian):
        yield from _truncated(mechanism, S, along)
    else:
        raise OptionError(f"law: the draws of {mechanism.title} have no law that is known here.")


def _truncated(
    mechanism: CalibratedTruncatedGaussian, S: Array, along: Array
) -> Iterator[Statistic]:
    """In one dimension a truncated normal; in more x'Sx is normal up to the rejected share p0."""
    ridge, scale, floor = mechanism.ridge, mechanism.scale, mechanism.floor
    below = float(ndtr((floor - ridge) / scale)) if S.shape[1] == 1 else 0.0

    def distribution(s: Array) -> Array:
        return np.asarray((ndtr((s - ridge) / scale) - below) / (1.0 - below))

    if S.shape[1] == 1 or mechanism.rejection < 1e-4:
        slack = 0.0 if S.shape[1] == 1 else 2.0 * mechanism.rejection
        yield Statistic("x'Sx", along, distribution, slack)
    low = bool(np.min(np.linalg.eigvalsh(S)) < floor)
    yield Statistic("floor", np.arange(1, len(S) + 1) / len(S), lambda h: np.where(low, 0.0, h))
