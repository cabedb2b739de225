"""A lower bound on ε from many releases on two neighbouring data sets."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from cvxqop.audit.call import Call
from cvxqop.audit.event import clopper_pearson, learn
from cvxqop.errors import OptionError
from cvxqop.solution import PrivateLoss, PrivateSolution

__all__ = ["LowerBound", "lower_bound"]

Array = npt.NDArray[np.float64]
Profile = Callable[[Array], Array]
Test = Callable[[Array], npt.NDArray[np.bool_]]


@dataclass(frozen=True)
class LowerBound:
    """What many releases say about ε. Computed from the data: for their holder only.

    Attributes
    ----------
    epsilon : float
        With the stated confidence no mechanism with a smaller ε, at this δ, made the releases.
    delta, confidence : float
        δ that was granted, and the confidence.
    trials : int
        Releases a data set that the bound is computed from; those that the event was learnt
        from are not among them.
    counts : tuple of int
        How many of them lie in the event, for each data set.
    event : str
        The event in words.
    claim : float or None
        ε that is claimed.
    attained : float or None
        Largest δ(ε) that is proven, over several ε from 0 on, as a fraction of the profile that is
        claimed there; above 1 the profile is wrong. None without a profile.
    """

    epsilon: float
    delta: float
    confidence: float
    trials: int
    counts: tuple[int, int]
    event: str
    claim: float | None = None
    attained: float | None = None

    @property
    def holds(self) -> bool:
        """Whether the claims survive; True where nothing is claimed."""
        small = self.claim is None or self.epsilon <= self.claim
        return small and (self.attained is None or self.attained <= 1.0)

    @property
    def verdict(self) -> str:
        """ "holds", "violated", or "no claim"."""
        if self.claim is None and self.attained is None:
            return "no claim"
        return "holds" if self.holds else "violated"

    def __str__(self) -> str:
        verdict = ""
        if self.claim is not None:
            verdict = f"; the claim ε = {self.claim:g} {'holds' if self.holds else 'IS VIOLATED'}"
        if self.attained is not None:
            verdict += f", {self.attained:.2f} of the profile is proven"
        return (
            f"ε ≥ {self.epsilon:.3g} at δ = {self.delta:g}, with confidence 1 − "
            f"{1.0 - self.confidence:.1g}: event {{{self.event}}} in {self.counts[0]} and "
            f"{self.counts[1]} of {self.trials} releases{verdict}"
        )


def lower_bound(
    release: Callable[[Any], Any],
    D: Any,
    D_prime: Any,
    *,
    trials: int = 1000,
    delta: float | None = None,
    claim: float | None = None,
    profile: Profile | None = None,
    confidence: float = 1.0 - 1e-6,
    event: Test | None = None,
    learning: float = 0.5,
) -> LowerBound:
    """Audit a mechanism: release many times on two neighbouring data sets, and compare.

    For an event E that does not depend on the releases it is tested on, P_D(E) ≤ e^ε P_D'(E) + δ
    gives ε ≥ log((P_D(E) − δ)/P_D'(E)), and the same with D and D' exchanged and with the
    complement of E. The probabilities are bounded by Clopper-Pearson, a quarter of the risk each,
    so that the largest of the four bounds holds with the stated confidence. It says nothing about
    pairs and events that were not tried: a small bound is no proof of privacy.

    Parameters
    ----------
    release : callable
        Maps a data set to one release: a number, an array, a PrivateSolution or a PrivateLoss.
        Every call must draw fresh noise. A :class:`cvxqop.audit.Call` plans once a data set.
    D, D_prime : object
        Neighbouring data sets, as ``release`` takes them.
    trials : int
        Releases a data set, those to learn from included.
    delta : float, optional
        δ of the claim; None is that of a Call, or 0.
    claim : float, optional
        ε of the claim; None is that of a Call.
    profile : callable, optional
        δ(ε) that is claimed, for arrays of ε; None is that of a Call. At small ε, where δ is large,
        it takes far fewer releases to refute.
    confidence : float
        One minus the probability that the bound exceeds the true ε, or a true profile is refuted.
    event : callable, optional
        Maps releases (N, k) to N booleans, fixed beforehand. None learns the event from a part
        of the releases, and tests it on the others.
    learning : float
        That part.

    Returns
    -------
    LowerBound

    Raises
    ------
    OptionError
        An argument is out of range, or releases differ in size.

    Notes
    -----
    For the holder of the data: counts are not private. Noise, and nothing else, is drawn anew for
    each release, so that an audit on real data spends nothing only because nothing of it leaves.

    Examples
    --------
    A counting query with Gaussian noise that is too small for ε = 1:

    >>> import numpy as np
    >>> from cvxqop.audit import lower_bound
    >>> rng = np.random.default_rng(0)
    >>> found = lower_bound(
    ...     lambda count: count + 0.4 * rng.standard_normal(), 10, 11,
    ...     trials=2000, delta=0.01, claim=1.0,
    ... )
    >>> found.holds
    False
    """
    if claim is None:
        claim = getattr(release, "epsilon", None)
    if delta is None:
        delta = float(getattr(release, "delta", 0.0))
    _check(trials, delta, confidence, learning)
    samples = [_sample(release, data, trials) for data in (D, D_prime)]
    if samples[0].shape != samples[1].shape:
        raise OptionError(
            "release gives outputs of different sizes on the two data sets, which tells them "
            "apart: release arrays of one shape."
        )
    if profile is None and isinstance(release, Call):
        profile = release.profile(D, D_prime)
    first, second = samples
    spent = int(learning * trials) if event is None else 0
    proof = _Proof(trials - spent, delta, (1.0 - confidence) / 4.0, *_claims(profile, claim))
    name = "as given"
    if event is None:
        # What the releases learnt from would prove themselves: no event is chosen for its luck.
        rehearsal = replace(proof, trials=spent)
        gain = rehearsal.epsilon if profile is None else rehearsal.attained
        learnt = learn(first[:spent], second[:spent], gain)
        event, name = learnt, f"{learnt.name} > {learnt.threshold:.4g}"
    counts = tuple(int(np.sum(event(sample[spent:]))) for sample in (first, second))
    a, b = np.array([counts[0]]), np.array([counts[1]])
    return LowerBound(
        max(0.0, float(proof.epsilon(a, b)[0])),
        delta,
        confidence,
        proof.trials,
        (counts[0], counts[1]),
        name,
        claim,
        None if profile is None else max(0.0, float(proof.attained(a, b)[0])),
    )


@dataclass(frozen=True, eq=False)
class _Proof:
    """What counts of an event prove; four one-sided bounds hold together, so that the best of the
    event, its complement, the two directions and every ε may be taken."""

    trials: int
    delta: float
    risk: float
    at: Array
    claimed: Array

    def epsilon(self, count: Array, other: Array) -> Array:
        """log((P − δ)/P'), P bounded from below and P' from above; −∞ where P ≤ δ."""
        low, high = self._bounds(count, other)
        with np.errstate(divide="ignore"):
            return np.asarray(
                np.max(np.log(np.maximum(low - self.delta, 0)) - np.log(high), axis=0)
            )

    def attained(self, count: Array, other: Array) -> Array:
        """(P − e^ε P')/δ(ε), the largest over ε."""
        low, high = self._bounds(count, other)
        proven = low[..., None] - np.exp(self.at) * high[..., None]
        return np.asarray(np.max(proven / self.claimed, axis=(0, -1)))

    def _bounds(self, count: Array, other: Array) -> tuple[Array, Array]:
        low, high = clopper_pearson(count, self.trials, self.risk)
        low2, high2 = clopper_pearson(other, self.trials, self.risk)
        return np.stack([low, low2, 1 - high, 1 - high2]), np.stack(
            [high2, high, 1 - low2, 1 - low]
        )


def _claims(profile: Profile | None, claim: float | None) -> tuple[Array, Array]:
    at = (claim or 1.0) * np.array([0.0, 0.05, 0.1, 0.25, 0.5, 0.75, 1.0])
    return at, np.ones(1) if profile is None else np.maximum(np.asarray(profile(at)), 1e-300)


def _sample(release: Callable[[Any], Any], data: Any, trials: int) -> Array:
    sampler: Callable[[Any], Callable[[], Any]] | None = getattr(release, "sampler", None)
    once = functools.partial(release, data) if sampler is None else sampler(data)
    rows = [_vector(once()) for _ in range(trials)]
    if len({len(row) for row in rows}) != 1:
        raise OptionError("release gives outputs of different sizes; release one shape.")
    return np.stack(rows)


def _vector(output: Any) -> Array:
    """A release as numbers: all that is released."""
    if isinstance(output, PrivateSolution):
        output = output.values
    if isinstance(output, PrivateLoss):
        upper = np.triu_indices(len(output.gradient))
        return np.concatenate([output.hessian[upper], output.gradient, output.anchor])
    if isinstance(output, Mapping):
        parts = [np.asarray(value, dtype=np.float64).ravel() for value in output.values()]
        return np.concatenate(parts)
    return np.asarray(output, dtype=np.float64).reshape(-1)


def _check(trials: int, delta: float, confidence: float, learning: float) -> None:
    if isinstance(trials, bool) or not isinstance(trials, int | np.integer) or trials < 10:
        raise OptionError(f"trials must be an int of at least 10, not {trials!r}.")
    if not 0.0 <= delta < 1.0:
        raise OptionError(f"delta must lie in [0, 1), got {delta!r}.")
    if not 0.0 < confidence < 1.0 or not math.isfinite(confidence):
        raise OptionError(f"confidence must lie strictly between 0 and 1, got {confidence!r}.")
    if not 0.1 <= learning <= 0.9:
        raise OptionError(f"learning must lie between 0.1 and 0.9, got {learning!r}.")
