"""What a guarantee rests on, in sentences, and what a plan warns of. Public numbers only."""

from __future__ import annotations

import math
from collections.abc import Callable

from cvxqop.prediction import Prediction
from cvxqop.privacy.gaussian.options import Gaussian
from cvxqop.privacy.linear.options import Linear
from cvxqop.privacy.mechanism import Mechanism
from cvxqop.privacy.wishart.calibrated import CalibratedWishart
from cvxqop.privacy.wishart.options import Wishart
from cvxqop.problem.anchor import CommonMinimizer, resolve_anchor
from cvxqop.problem.erm import ERM
from cvxqop.problem.parts import Constants
from cvxqop.settings import Settings

__all__ = ["assumptions_of", "caveats_of", "warnings_of"]

PRECISION = 3e-8
"""Part of a displacement that double precision can tell apart: about 2√(machine epsilon)."""

NOTICED = 0.1
"""Noise of the release over that of the perturbation that an advised accuracy leaves at most."""

NEIGHBOURS = {
    "replace_one": "Neighbouring data sets differ in the values of one record; n is public.",
    "add_remove": "Neighbouring data sets differ in the presence of one record.",
}
PERSONS = {
    "replace_one": (
        "Neighbouring data sets differ in all rows of one person, and in their number; the number "
        "of persons is public."
    ),
    "add_remove": "Neighbouring data sets differ in the presence of one person with all rows.",
}
ROUNDING = (
    "Real arithmetic: the low-order bits of floating-point numbers, and the rounding of sums over "
    "records, are outside the guarantee."
)
ON_GRID = (
    "Real arithmetic: the released quadratic form lies on a public grid and has no bits below it; "
    "the rounding of sums over records, and of the noise before, is outside the guarantee."
)


def assumptions_of(
    erm: ERM,
    settings: Settings,
    constants: Constants,
    offset: float | None,
    touches_records: bool,
) -> tuple[str, ...]:
    """The sentences that a reader must believe for the promise to hold."""
    sentences = [
        f"Row i of every private array belongs to record i: {'; '.join(erm.private_names)}."
        if erm.private_names
        else "Row i of X, and entry i of y, in glm_loss belong to record i.",
        _neighbours(erm),
    ]
    cut = None
    if settings.corrects_anchor and constants.anchor_gradient > 0.0:
        cut = f", and its residual at the anchor to ±{offset:g}"
    elif isinstance(settings.anchor, CommonMinimizer):
        cut = (
            f", and its residual at the anchor to ±{offset:g}: that the anchor is within "
            f"{settings.anchor.error:g} of a common minimiser is enforced, not assumed"
        )
    anchored = settings.anchor is not None
    sentences.append(erm.loss.promise(constants, settings.bounds, anchored, cut))
    sentences += erm.replaced
    if isinstance(settings.mechanism, Linear) and settings.mechanism.clip is not None:
        sentences.append(_clipped(erm, settings, constants, offset, settings.mechanism.clip))
    still = constants.anchor_gradient == 0.0  # no record has a gradient, and there are no stages
    if isinstance(settings.mechanism, Gaussian) and settings.mechanism.adaptive and not still:
        sentences.append(
            "The answer minimises the loss as written plus a linear term of the size of the noise "
            "of the first gradient and of the curvature: gradients that were cut leave a bias of "
            "that size where records are few, which vanishes as records are added."
        )
    elif isinstance(settings.mechanism, Gaussian) and settings.mechanism.repeats and not still:
        sentences.append(
            "From the second stage on residuals are cut to a part of their bound: where many are "
            "larger, what is minimised is not the squared loss as written, a bias that neither "
            "more records nor a larger epsilon removes."
        )
    sentences += _paper_assumption(settings, constants)
    sentences.append(
        f"The {'bounds' if erm.loss.clipped else 'declared bounds'}, "
        f"{'' if settings.class_weight is None else 'the weights of the classes, '}"
        "the anchor, the radius, the "
        "regulariser, the constraints and the choice of mechanism were fixed without looking at "
        "the private data."
    )
    if settings.accept_solver_accuracy:
        sentences.append(
            "The solver's accuracy was trusted, not certified: its answer is within "
            f"{settings.tolerance:g} of the exact solution of the perturbed problem."
        )
    if erm.scale_statement is not None:
        sentences.append(erm.scale_statement)
    if not erm.loss.clipped and settings.adjacency == "add_remove":
        sentences.append("No number in the loss was computed from the number of records.")
    if erm.public_data:
        sentences.append("Known to everyone: " + "; ".join(erm.public_data) + ".")
    sentences.append(ROUNDING if touches_records else ON_GRID)
    return tuple(sentences)


def _clipped(
    erm: ERM, settings: Settings, constants: Constants, offset: float | None, clip: float | str
) -> str:
    """What a clip of the gradients changes: nothing within a radius that bounds them by it."""
    whose = "record" if erm.persons is None else "row"
    said = f"The gradient of every {whose} is clipped to norm ζ = {clip:g}"
    anchor, _ = resolve_anchor(erm, settings.anchor, settings.bounds)
    for as_written in (False, True):
        near = erm.loss.gradient_bound(
            settings.bounds, anchor, offset, settings.distance, as_written=as_written
        )
        if near is not None and near <= (constants.cuts or 1) * float(clip) * (1.0 + 1e-12):
            where = " where its argument is in the range above" if as_written else ""
            return (
                f"{said}, which none exceeds within {settings.distance:g} of the anchor{where}: "
                "beyond, the slope of the loss stays at ±ζ/‖a‖ where it would grow."
            )
    return (
        f"{said}: what is minimised is not the loss as written but the one whose slope is cut to "
        "±ζ/‖a‖ (for a squared loss Huber's), a bias that neither more records nor a larger "
        "epsilon removes."
    )


def _neighbours(erm: ERM) -> str:
    if erm.persons is None:
        return NEIGHBOURS[erm.adjacency]
    return f"{PERSONS[erm.adjacency]} {erm.persons.rule.capitalize()}."


def _paper_assumption(settings: Settings, constants: Constants) -> list[str]:
    """The common minimiser that calibration "paper" rests on, and whether anything enforces it."""
    mechanism = settings.mechanism
    if not (isinstance(mechanism, Wishart) and mechanism.calibration == "paper"):
        return []
    if constants.anchor_gradient == 0.0:
        return [
            "The anchor minimises the loss of every record that could occur, as calibration "
            "'paper' requires: the clipping enforces it."
        ]
    return [
        "One public point, within "
        f"{settings.anchor.error:g} of the anchor, minimises the loss of every record that could "
        "occur. Calibration 'paper' rests on this and it is assumed, not enforced: residuals that "
        "are cut need not vanish at one point. Records that break it are outside the guarantee; "
        "calibration 'exact' needs no such point."
    ]


def caveats_of(settings: Settings, reproducible: bool) -> tuple[str, ...]:
    """Why a release would not be private at all."""
    caveats = []
    if reproducible:
        caveats.append("a seed was given: whoever knows it can remove the noise")
    if settings.bounds is not None and settings.bounds.from_data:
        caveats.append("the bounds were read from the data")
    return tuple(caveats)


def warnings_of(
    erm: ERM, settings: Settings, mechanism: Mechanism, prediction: Prediction | None
) -> tuple[str, ...]:
    """What is likely to disappoint, or to be wrong, judged by public numbers alone."""
    warnings = []
    radius = settings.distance
    smoothness = mechanism.sensitivity.smoothness
    ridge = mechanism.ridge
    floor = isinstance(mechanism, CalibratedWishart) and mechanism.curvature == "floor"
    n, whose = erm.public_count, "records" if erm.persons is None else "persons"
    if n and settings.delta >= 1.0 / n and settings.delta <= 1e-2:
        warnings.append("delta is not below 1/n: publishing one record whole would satisfy it")
    if erm.loss.linear:
        size = mechanism.guard_scale * math.sqrt(mechanism.sensitivity.parameters)
        if n and size >= n * mechanism.sensitivity.anchor_gradient:
            warnings.append(
                f"the noise of {size:.3g} exceeds the largest gradient that {n} {whose} can have"
            )
    elif n is not None:
        available = n * mechanism.sensitivity.average_curvature
        if ridge >= available:
            warnings.append(
                f"the ridge {ridge:.3g} exceeds {available:.3g}, the average curvature that n "
                f"{whose} can have: expect an answer close to the anchor"
            )
        elif n > 0 and mechanism.predicted_risk(radius, available) >= 0.5 * available * radius**2:
            warnings.append(
                f"the noise is predicted to cost as much as returning the anchor would, with {n} "
                f"{whose} and a distance of {radius:.3g} to cover"
            )
        elif prediction is not None and prediction.drowned(n):
            warnings.append(
                "most of the answer is expected to be noise: predictions off by about "
                f"{prediction.error(n):.2g}, those of the anchor by {prediction.of_anchor(n):.2g}. "
                "More records, a larger epsilon, fewer features or tighter bounds help"
            )
    warnings += settings.bounds.remarks if settings.bounds is not None else ()
    alone = None if settings.bounds is None else erm.loss.features_alone(settings.bounds)
    if alone is not None:
        stated, R = settings.bounds.row_norm, erm.loss.row_norm(settings.bounds)
        warnings.append(
            f"row_norm={stated:g} looks like the norm of features and the 1 of an intercept, which "
            f"the library adds, to ‖a‖ ≤ {R:g}: row_norm={alone:g} bounds the features alone, and "
            "takes less noise"
        )
    if settings.epsilon >= 100.0 and isinstance(mechanism, CalibratedWishart) and not floor:
        warnings.append(
            f"the Wishart ridge never falls below the curvature L = {smoothness:.3g} of one record,"
            f" however large epsilon is: it is {ridge:.3g} here"
        )
    if mechanism.release is not None and ridge > 0.0:
        displacement = mechanism.guard_scale * math.sqrt(mechanism.sensitivity.parameters) / ridge
        finest = PRECISION * displacement / radius
        spread = mechanism.release.scale * math.sqrt(mechanism.sensitivity.parameters)
        if settings.accuracy < finest:
            warnings.append(
                f"the noise moves the answer by about {displacement:.2g}; double precision may not "
                f"be able to certify it to {settings.tolerance:.2g}, accuracy times the radius, "
                "and the run would end without a release. "
                f"accuracy={_power_of_ten(finest, math.ceil):g} costs next to nothing"
            )
        elif spread > displacement > 0.0 and settings.accuracy > 10.0 * finest:
            finer = max(settings.accuracy * NOTICED * displacement / spread, finest)
            warnings.append(
                f"the release adds noise of about {spread:.2g}, more than the {displacement:.2g} "
                "by which the perturbation moves the answer: a solve to "
                f"accuracy={_power_of_ten(finer, math.floor):g} needs less"
            )
    return tuple(warnings)


def _power_of_ten(number: float, rounding: Callable[[float], int]) -> float:
    return float(10.0 ** rounding(math.log10(number)))
