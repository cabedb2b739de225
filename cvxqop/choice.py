"""Which mechanism: the candidates of ``perturbation="auto"`` and the risks predicted for them.

Everything that is compared is public: bounds, dimension, radius, (ε, δ), and n under replace_one.
"""

from __future__ import annotations

import math
from dataclasses import replace

from cvxqop.backend import Backend
from cvxqop.case import Case
from cvxqop.errors import CvxqopError, OptionError
from cvxqop.plan import Candidate
from cvxqop.privacy.gaussian.adaptive import CalibratedAdaptive
from cvxqop.privacy.gaussian.options import Gaussian
from cvxqop.privacy.linear.options import CalibratedLinear, Linear
from cvxqop.privacy.mechanism import Mechanism, reference_curvature
from cvxqop.privacy.wishart.options import Wishart
from cvxqop.problem.anchor import CommonMinimizer, resolve_anchor
from cvxqop.problem.constant_columns import scaled
from cvxqop.problem.erm import ERM
from cvxqop.settings import Perturbation, Settings
from cvxqop.solve.rest.finite import check_finite
from cvxqop.solve.rest.prox import split, splits
from cvxqop.solve.rest.reach import farthest, reach
from cvxqop.solve.rest.terms import NotSplittable

__all__ = ["CANDIDATES", "choose", "default_radius", "linear_of", "sized"]

ADAPTIVE = Gaussian(stages="adaptive")
"""What squared losses get wherever it can be used: the most accurate on data, and more records lead
to the minimiser of the user's loss."""
CUT = Linear(clip="auto")
"""What losses with bounded slopes get where the loss may change (``keep_loss=False``): the most
accurate predictions on data."""
LINEAR_LOSS: tuple[Perturbation, ...] = (Gaussian(),)
"""Of a linear loss, which has no curvature to hide."""
CANDIDATES: tuple[Perturbation, ...] = (Gaussian(), Wishart(), Linear())
"""The other mechanisms that keep the user's loss, the preferred one of equals first.

A number of stages is not among them: they cut residuals for good, which is another loss where most
residuals are large. Linear() of a loss that is not quadratic and whose gradients nothing bounds
clips them where no record comes within the radius (`linear_of`).
"""


def choose(
    erm: ERM, settings: Settings, *, releases_quadratic: bool = False
) -> tuple[Case, Backend, tuple[Candidate, ...]]:
    """The case and the solver of the candidate that is taken, and all candidates.

    What is preferred for the loss is taken where it can be: adaptive stages of squared losses whose
    records have one residual, cut slopes where the loss may change. Else what has the smallest
    predicted risk.

    Constant columns are taken at another size before (`cvxqop.problem.constant_columns`).

    Settings that name a mechanism keep it, and there are no candidates then. A radius that was not
    given is settled here, too.

    Parameters
    ----------
    erm, settings
        What a plan is made of.
    releases_quadratic : bool
        The released quadratic form is what is wanted: leave out the linear mechanism, which
        releases none, and solvers that see records.

    Raises
    ------
    ProblemError
        If a number of the public rest is not finite.
    CvxqopError
        If no candidate can be used: what stood in the way of the first.
    """
    check_finite(erm.variables, erm.regulariser, erm.constraints)
    erm = sized(erm, settings)
    if settings.radius is None:
        settings = replace(settings, radius=default_radius(erm, settings))
    if settings.perturbation != "auto":
        backend = Backend.of(erm, settings)
        return _case(erm, settings, backend, releases_quadratic), backend, ()
    failures: list[CvxqopError] = []
    candidates = []
    backends: dict[bool, Backend] = {}
    found: list[tuple[Case, Backend]] = []
    preferred = _preferred(erm, settings)
    tried = LINEAR_LOSS if erm.loss.linear else CANDIDATES
    for perturbation in tried if preferred is None else (preferred, *tried):
        if releases_quadratic and isinstance(perturbation, Linear):
            continue
        if perturbation == Linear():
            perturbation = linear_of(erm, settings)
        trial = replace(settings, perturbation=perturbation)
        # Of a squared loss only the linear mechanism lets a solver see the records.
        sees_records = erm.quadratic and isinstance(perturbation, Linear)
        try:
            if sees_records not in backends:
                backends[sees_records] = Backend.of(erm, trial)
            case = _case(erm, trial, backends[sees_records], releases_quadratic)
        except CvxqopError as error:
            failures += [error] if perturbation != preferred else []
            candidates.append(Candidate(perturbation, reason=str(error)))
        else:
            if perturbation == preferred and not _as_preferred(case.mechanism):
                continue
            found.append((case, backends[sees_records]))
            candidates.append(Candidate(perturbation, case.mechanism))
    if not found:
        raise failures[0]
    curvature = reference_curvature([case.mechanism for case, _ in found], erm.public_count)
    risks = [case.mechanism.predicted_risk(settings.distance, curvature) for case, _ in found]
    predicted = iter(risks)
    candidates = [
        one if one.mechanism is None else replace(one, predicted_risk=next(predicted))
        for one in candidates
    ]
    first = candidates[0]
    taken = first.perturbation == preferred and first.mechanism is not None
    case, backend = found[0 if taken else risks.index(min(risks))]
    return case, backend, tuple(candidates)


def _preferred(erm: ERM, settings: Settings) -> Perturbation | None:
    """What is taken wherever it can be."""
    if erm.loss.linear or (settings.keep_loss and not erm.quadratic):
        return None
    return ADAPTIVE if erm.quadratic else CUT


def sized(erm: ERM, settings: Settings) -> ERM:
    """The problem with its constant columns at a size that suits the noise.

    As it was where r and C no longer split, and where a common minimiser is stated: its error is
    one of θ.
    """
    if isinstance(settings.anchor, CommonMinimizer):
        return erm
    found = scaled(erm, settings.bounds)
    same = found.regulariser is erm.regulariser and all(
        one is other for one, other in zip(found.constraints, erm.constraints, strict=True)
    )
    kept = same or splits(found.variables, found.regulariser, found.constraints)
    return found if kept else erm


def _as_preferred(mechanism: Mechanism) -> bool:
    """Whether it is what it is preferred for: several stages, which need a gradient at the anchor,
    or a cut below a slope that has a bound."""
    if isinstance(mechanism, CalibratedLinear):
        return math.isfinite(mechanism.sensitivity.gradient or math.inf)
    return isinstance(mechanism, CalibratedAdaptive)


def linear_of(erm: ERM, settings: Settings) -> Linear:
    """Linear perturbation that keeps the loss where ‖θ − θ0‖ ≤ D0.

    The quadratic ensembles need a ridge of at least L, of one record, however large ε is: S ∓ E
    must stay positive definite. Linear perturbation needs none of that size, but a bound on the
    gradient, which a slope that grows has on bounded sets only. Clipped at the largest gradient
    of a record within D0 of the anchor, the loss is as it was written there. It is left alone
    where the bound over C is less than twice that.
    """
    if erm.quadratic or not erm.loss.cuts_slopes:
        return Linear()
    anchor, offset = resolve_anchor(erm, settings.anchor, settings.bounds)
    over_C, near = (
        erm.loss.gradient_bound(settings.bounds, anchor, offset, distance, as_written=as_written)
        for distance, as_written in (
            (farthest(erm.variables, erm.constraints, anchor), False),
            (settings.distance, True),
        )
    )
    if not near or over_C is None or over_C <= 2.0 * near:
        return Linear()
    cuts = erm.loss.constants(settings.bounds, anchor, offset).cuts
    return Linear(clip=near / (cuts or 1))


def _case(erm: ERM, settings: Settings, backend: Backend, releases_quadratic: bool) -> Case:
    """The case that a solver goes with.

    Raises
    ------
    OptionError
        A quadratic form is to be released, and the solver works on records.
    """
    touches = backend.touches_records
    if releases_quadratic and touches:
        if not settings.corrects_anchor:
            raise OptionError(
                "solver_options: variant='plain' and 'svrg' work on the records; a private loss "
                "is made from their quadratic form. Leave the variant out."
            )
        touches = False
    return Case.of(erm, settings, touches_records=touches)


def default_radius(erm: ERM, settings: Settings) -> float:
    """D0 where the caller gives no hint: how far θ̂ is expected to lie from the anchor.

    What is natural for the loss, and never more than the constraints reach.
    """
    anchor, offset = resolve_anchor(erm, settings.anchor, settings.bounds)
    natural = erm.loss.natural_radius(settings.bounds, anchor, offset)
    try:
        most = reach(split(erm.variables, None, erm.constraints), anchor)
    except NotSplittable:  # sets that only a conic solver takes: their reach is not known
        return natural
    return min(natural, most) or natural
