"""Losses without a bound on their curvature, settled by public numbers: a range, or a width.

``smoothing="auto"`` chooses the width h of Moreau's envelope e_h φ, whose curvature is 1/h: a large
h changes the loss, a small one makes the noise large. With J the problem as written and J_h the
smoothed one,

    E J(θ_h) − J(θ̂) ≤ [E J_h(θ_h) − min J_h] + Σ_i [gap(t_i(θ_h)) − gap(t_i(θ̂))],

gap = φ − e_h φ of each record at its argument. The first part is predicted as for the choice of a
mechanism, without the factor that lets a risk saturate near the anchor. The second is at most nγ,
γ = sup gap − inf gap, but far less is expected: with arguments spread evenly over the range that is
expected of them, a part p of the curvature κ = 1/h is met on average, and pγ/3 is what the gap
lacks of γ (exact for one kink, too much for several). Of h = A/(4^k g), k = 0, 1, …, and two
between the best and its neighbours, A the range of arguments and g the largest slope there, the
smallest sum is taken among those whose second part is below the first. Both are of the linear
mechanism where it can be used, which is nearly always the best for a small h, and quick.

Where n is private, it is the number of records at which the ridge of the first candidate has a
tenth of their curvature: a public number, below which no mechanism returns much but the anchor.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NoReturn

import numpy as np
import numpy.typing as npt

from cvxqop.case import Case
from cvxqop.choice import CANDIDATES, default_radius, linear_of, sized
from cvxqop.errors import CvxqopError, OptionError
from cvxqop.privacy.mechanism import reference_curvature
from cvxqop.problem.anchor import resolve_anchor
from cvxqop.problem.erm import ERM
from cvxqop.problem.losses.open_loss import Settled, open_parts, settle
from cvxqop.problem.reading import refusals
from cvxqop.settings import Settings
from cvxqop.solve.rest.reach import farthest

__all__ = ["settled"]

Array = npt.NDArray[np.float64]

_FINEST = 14
"""4^−14 of the range of arguments is the smallest width that is tried."""


def settled(erm: ERM, settings: Settings) -> ERM:
    """The problem with a proven curvature of every loss; the problem itself where there is one.

    Raises
    ------
    ProblemError
        A loss lacks a range, a width or a bound on its labels; the remedy is named.
    """
    if not any(True for _ in open_parts(erm.loss)):
        return erm
    if settings.radius is None:
        settings = replace(settings, radius=default_radius(erm, settings))
    width = settings.smoothing
    if width == "auto":
        _, found = _with_width(erm, settings, 1.0)
        width = _chosen(erm, settings) if any(one.gap > 0.0 for one in found) else 1.0
    return _with_width(erm, settings, None if width is None else float(width))[0]


def _with_width(
    erm: ERM, settings: Settings, width: float | None
) -> tuple[ERM, tuple[Settled, ...]]:
    anchor, offset = resolve_anchor(erm, settings.anchor, settings.bounds)
    distance = farthest(erm.variables, erm.constraints, anchor)

    def refuse(lacks: str, number: int) -> NoReturn:
        refusals.refuse_open(erm.texts.terms[number], lacks)

    loss, found, replaced = settle(
        erm.loss, settings.bounds, anchor, offset, distance, settings.distance, width, refuse
    )
    texts = [f"The loss in {erm.texts.terms[number]} is {text}." for number, text in replaced]
    return replace(erm, loss=loss, replaced=tuple(dict.fromkeys(texts))), found


@dataclass(frozen=True)
class _Trial:
    """A width, the predicted risk, and what smoothing is expected to add."""

    width: float
    risk: float
    bias: float

    @property
    def total(self) -> float:
        return self.risk + self.bias


def _chosen(erm: ERM, settings: Settings) -> float:
    """The width of the smallest predicted risk and bias."""
    start = _scale(erm, settings)
    records = float(erm.public_count) if erm.public_count else None
    trials: list[_Trial] = []
    failure: CvxqopError | None = None
    for k in range(_FINEST + 1):
        try:
            trial, records = _tried(erm, settings, start * 4.0**-k, records)
        except CvxqopError as error:
            failure = failure or error
            continue
        trials.append(trial)
        if len(trials) > 2 and trial.bias <= trial.risk and _rising([t.total for t in trials]):
            break
    if not trials:
        raise failure or OptionError("smoothing: no width can be used; state one, smoothing=0.1.")
    best = _best(trials)
    for factor in (2.0, 0.5):
        try:
            trials.append(_tried(erm, settings, best.width * factor, records)[0])
        except CvxqopError:
            continue
    return _best(trials).width


def _rising(totals: list[float]) -> bool:
    return totals[-1] > totals[-2] > totals[-3]


def _best(trials: list[_Trial]) -> _Trial:
    below = [one for one in trials if one.bias <= one.risk]
    return min(below or trials, key=lambda one: one.total)


def _scale(erm: ERM, settings: Settings) -> float:
    """A/g: how wide an envelope is that covers all arguments that are expected."""
    loss, found = _with_width(erm, settings, 1.0)
    A = _range(loss, settings)
    return A / max(one.loss.slope_bound(A) for one in found) if A > 0.0 else 1.0


def _range(erm: ERM, settings: Settings) -> float:
    """A: the largest argument of a record that is expected."""
    _, offset = resolve_anchor(erm, settings.anchor, settings.bounds)
    B = erm.loss.offset(settings.bounds) if offset is None else offset
    return (B or 0.0) + erm.loss.row_norm(settings.bounds) * settings.distance


def _tried(
    erm: ERM, settings: Settings, width: float, records: float | None
) -> tuple[_Trial, float]:
    smooth, found = _with_width(erm, settings, width)
    case = _sketched(smooth, settings)
    mechanism = case.mechanism
    if records is None:
        ample = reference_curvature([mechanism], None)
        records = ample / mechanism.sensitivity.average_curvature
    share = _share(case, found)
    curvature = records * mechanism.sensitivity.average_curvature * share
    risk = mechanism.predicted_risk(settings.distance, curvature)
    risk *= (1.0 + mechanism.ridge / curvature) ** 2
    bias = records * share / 3.0 * sum(one.weight * one.gap for one in found)
    return _Trial(width, risk, bias), records


def _sketched(erm: ERM, settings: Settings) -> Case:
    """The case of the linear mechanism without release, or of the first that can be used."""
    erm, failures = sized(erm, settings), []
    stated = settings.perturbation
    for one in (linear_of(erm, settings), *CANDIDATES) if stated == "auto" else (stated,):
        try:
            return Case.of(erm, replace(settings, perturbation=one))
        except CvxqopError as error:
            failures.append(error)
    raise failures[-1]


def _share(case: Case, found: tuple[Settled, ...]) -> float:
    """Mean curvature over the range of arguments, as a part of κ: that of the losses that were
    settled, each for what it adds."""
    A = _range(case.erm, case.settings)
    ends = np.array([-A, A])
    mean = total = 0.0
    for one in found:
        low, high = one.loss.derivative(ends)
        total += one.weight * one.loss.curvature
        mean += one.weight * min(one.loss.curvature, float(high - low) / (2.0 * A))
    share = mean / total if total > 0.0 else 1.0
    return share if math.isfinite(share) and share > 0.0 else 1.0
