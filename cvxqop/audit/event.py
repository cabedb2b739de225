"""Events that tell two data sets apart, learnt from one half of the releases."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import betainccinv, betaincinv

__all__ = ["Event", "clopper_pearson", "learn"]

Array = npt.NDArray[np.float64]
Score = Callable[[Array], Array]
Gain = Callable[[Array, Array], Array]

THRESHOLDS = 200
"""Most thresholds that are tried for one score: quantiles of the releases learnt from."""

LARGEST = 1e150
"""Numbers beyond it, and what is not finite, are cut to it: their squares stay finite."""


def clopper_pearson(count: npt.ArrayLike, draws: int, risk: float) -> tuple[Array, Array]:
    """One-sided bounds on a probability from ``count`` hits in ``draws``, each wrong with
    probability at most ``risk``, for every number of draws.

    Examples
    --------
    >>> low, high = clopper_pearson(0, 1000, 1e-6)
    >>> float(low), round(float(high), 4)    # 1 − (1e-6)^(1/1000)
    (0.0, 0.0137)
    """
    k = np.asarray(count, dtype=np.float64)
    low = np.where(k > 0, betaincinv(np.maximum(k, 1.0), draws - k + 1.0, risk), 0.0)
    high = np.where(k < draws, betainccinv(k + 1.0, np.maximum(draws - k, 1.0), risk), 1.0)
    return np.asarray(low), np.asarray(high)


@dataclass(frozen=True, eq=False)
class Event:
    """{score > threshold}, a set of releases.

    Attributes
    ----------
    name : str
        The score in words.
    score : callable
        Maps releases (N, k) to numbers (N,).
    threshold : float
    """

    name: str
    score: Score
    threshold: float

    def __call__(self, releases: Array) -> npt.NDArray[np.bool_]:
        """Which of the releases (N, k) are in the event."""
        return np.asarray(self.score(_tame(releases)) > self.threshold)


def learn(first: Array, second: Array, gain: Gain) -> Event:
    """The event of the largest gain on the releases themselves.

    Scores are the entries, their norm, how many are not finite, and two quadratic discriminants
    (log ratio of normal densities); for each score every quantile is a threshold.

    Parameters
    ----------
    first, second : ndarray, shape (N, k)
        Releases on the two data sets. They must not be used for the bound itself.
    gain : callable
        From the numbers of releases in the event, for either data set, what they would prove.
    """
    x, y = _tame(first), _tame(second)
    best: tuple[float, Event] | None = None
    for name, score in _scores(x, y):
        a, b = np.sort(score(x)), np.sort(score(y))
        pooled = np.sort(np.concatenate([a, b]))
        steps = np.linspace(0, len(pooled) - 1, THRESHOLDS).astype(int)
        thresholds = np.unique(pooled[steps])
        inside = [_above(sample, thresholds) for sample in (a, b)]
        promised = gain(*inside)
        at = int(np.argmax(promised))
        if best is None or promised[at] > best[0]:
            best = (float(promised[at]), Event(name, score, float(thresholds[at])))
    assert best is not None
    return best[1]


def _above(ordered: Array, thresholds: Array) -> Array:
    """How many numbers exceed each threshold."""
    below = np.searchsorted(ordered, thresholds, side="right")
    return np.asarray(len(ordered) - below, dtype=np.float64)


def _tame(releases: Array) -> Array:
    """Finite numbers, and in a last column how many entries were not."""
    lost = np.sum(~np.isfinite(releases), axis=1, keepdims=True)
    tame = np.nan_to_num(releases, nan=LARGEST, posinf=LARGEST, neginf=-LARGEST)
    return np.hstack([np.clip(tame, -LARGEST, LARGEST), lost])


def _scores(first: Array, second: Array) -> Iterator[tuple[str, Score]]:
    size = first.shape[1] - 1
    for j in range(size):
        yield f"entry {j}", _column(j)
    yield "entries that are not finite", _column(size)
    yield "norm", lambda z: np.asarray(np.linalg.norm(z[:, :size], axis=1))
    pooled = np.vstack([first, second])[:, :size]
    middle = np.median(pooled, axis=0)
    spread = np.subtract(*np.quantile(pooled, [0.75, 0.25], axis=0))
    spread = np.where(spread > 0.0, spread, np.maximum(np.std(pooled, axis=0), 1e-300))

    def scaled(z: Array) -> Array:
        return np.asarray(np.clip((z[:, :size] - middle) / spread, -LARGEST, LARGEST))

    def bent(z: Array) -> Array:
        return np.asarray(np.arcsinh(scaled(z)))

    for name, features in (("discriminant", scaled), ("discriminant of arcsinh", bent)):
        yield name, _discriminant(features, features(first), features(second))


def _column(j: int) -> Score:
    return lambda z: np.asarray(z[:, j])


def _discriminant(features: Score, first: Array, second: Array) -> Score:
    """Log ratio of two normal densities; the ridge lets it see exact linear relations."""
    fits = []
    for sample in (first, second):
        covariance = np.atleast_2d(np.cov(sample, rowvar=False))
        ridge = 1e-12 * max(float(np.trace(covariance)), 1.0) * np.eye(len(covariance))
        factor = np.linalg.cholesky(covariance + ridge)
        fits.append((sample.mean(axis=0), np.linalg.inv(factor)))

    def score(z: Array) -> Array:
        x = features(z)
        one, two = (np.sum(((x - mean) @ inverse.T) ** 2, axis=1) for mean, inverse in fits)
        return np.asarray(0.5 * (two - one))

    return score
