"""Which mechanism: the candidates of ``perturbation="auto"`` and the risks predicted for them.

Everything that is compared is public: bounds, dimension, radius, (ε, δ), and n under replace_one.
"""

from __future__ import annotations

from dataclasses import replace

from cvxqop.backend import Backend
from cvxqop.case import Case
from cvxqop.errors import CvxqopError
from cvxqop.plan import Candidate
from cvxqop.privacy.gaussian.options import Gaussian
from cvxqop.privacy.linear.options import Linear
from cvxqop.privacy.mechanism import reference_curvature
from cvxqop.privacy.wishart.options import Wishart
from cvxqop.problem.anchor import resolve_anchor
from cvxqop.problem.erm import ERM
from cvxqop.settings import Perturbation, Settings
from cvxqop.solve.rest.finite import check_finite
from cvxqop.solve.rest.prox import split
from cvxqop.solve.rest.reach import reach
from cvxqop.solve.rest.terms import NotSplittable

__all__ = ["CANDIDATES", "choose", "default_radius"]

CANDIDATES: tuple[Perturbation, ...] = (Gaussian(), Wishart(), Linear())
"""The mechanisms that keep the user's loss, the preferred one of equals first.

Stages of the Gaussian ensemble are not among them: they cut residuals, which is another loss where
most residuals are large.
"""


def choose(
    erm: ERM, settings: Settings, *, releases_quadratic: bool = False
) -> tuple[Settings, tuple[Candidate, ...]]:
    """The settings with the candidate of the smallest predicted risk, and all candidates.

    Settings that name a mechanism keep it, and there are no candidates then. A radius that was not
    given is settled here, too.

    Parameters
    ----------
    erm, settings
        What a plan is made of.
    releases_quadratic : bool
        Leave out the linear mechanism, which releases no quadratic form.

    Raises
    ------
    ProblemError
        If a number of the public rest is not finite.
    CvxqopError
        If no candidate can be used: what stood in the way of the first.
    """
    check_finite(erm.variables, erm.regulariser, erm.constraints)
    if settings.radius is None:
        settings = replace(settings, radius=default_radius(erm, settings))
    if settings.perturbation != "auto":
        return settings, ()
    failures: list[CvxqopError] = []
    candidates = []
    for perturbation in CANDIDATES:
        if releases_quadratic and isinstance(perturbation, Linear):
            continue
        trial = replace(settings, perturbation=perturbation)
        try:
            backend = Backend.of(erm, trial)
            case = Case.of(erm, trial, touches_records=backend.touches_records)
        except CvxqopError as error:
            failures.append(error)
            candidates.append(Candidate(perturbation, reason=str(error)))
        else:
            candidates.append(Candidate(perturbation, case.mechanism))
    usable = [one.mechanism for one in candidates if one.mechanism is not None]
    if not usable:
        raise failures[0]
    curvature = reference_curvature(usable, erm.public_count)
    radius = settings.distance
    candidates = [
        replace(one, predicted_risk=one.mechanism.predicted_risk(radius, curvature))
        if one.mechanism is not None
        else one
        for one in candidates
    ]
    ranked = [one for one in candidates if one.predicted_risk is not None]
    best = min(ranked, key=lambda one: one.predicted_risk or 0.0)
    return replace(settings, perturbation=best.perturbation), tuple(candidates)


def default_radius(erm: ERM, settings: Settings) -> float:
    """D0 where the caller gives no hint: how far θ̂ is expected to lie from the anchor.

    What is natural for the loss, and never more than the constraints reach.
    """
    anchor, offset = resolve_anchor(erm, settings.anchor, settings.bounds)
    natural = erm.loss.natural_radius(settings.bounds, anchor, offset)
    try:
        farthest = reach(split(erm.variables, None, erm.constraints), anchor)
    except NotSplittable:  # sets that only a conic solver takes: their reach is not known
        return natural
    return min(natural, farthest) or natural
