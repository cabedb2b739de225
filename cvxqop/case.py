"""A problem that was read, with its anchor, its calibrated mechanism and what that promises."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from cvxqop.errors import OptionError
from cvxqop.guarantee import Guarantee
from cvxqop.privacy.budget import Budget
from cvxqop.privacy.gaussian.options import Gaussian
from cvxqop.privacy.linear.options import CalibratedLinear, Linear
from cvxqop.privacy.mechanism import Draw, Mechanism, Sensitivity
from cvxqop.privacy.noise import Noise, Randomness
from cvxqop.problem.anchor import CommonMinimizer, resolve_anchor
from cvxqop.problem.erm import ERM
from cvxqop.problem.losses.contract import Sums
from cvxqop.problem.parts import Constants
from cvxqop.settings import Settings
from cvxqop.solve.rest.reach import farthest
from cvxqop.statements import assumptions_of, caveats_of

__all__ = ["Case"]

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Case:
    """What a plan holds on to. The records are behind ``sums`` and are read when it runs.

    Attributes
    ----------
    erm : ERM
        The problem.
    settings : Settings
        The options.
    anchor : ndarray, shape (D,)
        θ0.
    sums : Sums
        Sums over the clipped records, at the anchor.
    guarantee : Guarantee
        The mechanism and its promise.
    randomness : Randomness
        Where the noise of each run comes from.
    """

    erm: ERM
    settings: Settings
    anchor: Array
    sums: Sums = field(repr=False)
    guarantee: Guarantee
    randomness: Randomness = field(repr=False)

    @classmethod
    def of(cls, erm: ERM, settings: Settings, *, touches_records: bool = False) -> Case:
        """Constants of the loss, then the smallest noise for them.

        ``touches_records`` says that the solver will see records, and not only a perturbed
        quadratic: then its accuracy is part of the mechanism, through a Gaussian release.
        """
        _check_support(erm, settings, touches_records)
        anchor, offset = resolve_anchor(erm, settings.anchor, settings.bounds)
        constants = erm.loss.constants(settings.bounds, anchor, offset)
        settings = _with_threshold(settings, constants)
        mechanism = settings.mechanism.calibrate(
            settings.epsilon,
            settings.delta,
            _sensitivity(erm, settings, constants, anchor, offset),
            radius=settings.distance,
            accuracy=settings.tolerance if touches_records else None,
        )
        randomness = Randomness(settings.seed)
        guarantee = Guarantee(
            epsilon=float(settings.epsilon),
            delta=float(settings.delta),
            adjacency=settings.adjacency,
            mechanism=mechanism,
            assumptions=assumptions_of(erm, settings, constants, offset, touches_records),
            caveats=caveats_of(settings, randomness.reproducible),
            certified=not settings.accept_solver_accuracy,
        )
        sums = erm.loss.sums(
            settings.bounds,
            anchor,
            offset,
            settings.nonfinite,
            mechanism.clip if isinstance(mechanism, CalibratedLinear) else None,
            mechanism.sensitivity.outputs > 1,
        )
        return cls(erm, settings, anchor, sums, guarantee, randomness)

    @property
    def mechanism(self) -> Mechanism:
        """The calibrated mechanism."""
        return self.guarantee.mechanism

    def draw(self) -> tuple[Draw, Noise, np.random.Generator]:
        """Charge the budget, then draw from a fresh stream: S and a, the rest of the noise, and a
        separate generator for the solver.

        Whatever may be refused must have been refused before.

        Raises
        ------
        BudgetError
            If the budget does not cover the release; nothing is drawn then.
        """
        settings, mechanism = self.settings, self.mechanism
        budget = Budget.current() if settings.budget is None else settings.budget
        if budget is not None:
            names = ", ".join(variable.name() for variable in self.erm.variables)
            budget.spend(
                epsilon=float(settings.epsilon),
                delta=float(settings.delta),
                label=f"{mechanism.title} of {names}",
                mechanism=mechanism,
            )
        noise, sampling = self.randomness.fresh()
        return mechanism.draw(noise), noise, sampling

    def repaired(self, released: Array, gradients: Sequence[Array]) -> Array:
        """The (D, D) curvature that the solver sees, from all that has been released."""
        columns = [self.sums.columns(gradient) for gradient in gradients]
        return self.sums.whole(self.mechanism.repair(released, columns))

    @property
    def layout(self) -> npt.NDArray[np.intp]:
        """(d, k): which entries of θ are the columns of Θ that share one curvature."""
        D = self.erm.dimension
        columns = self.sums.columns(np.arange(D, dtype=np.float64))
        return np.asarray(columns, dtype=np.intp).reshape(-1, self.mechanism.sensitivity.outputs)

    def reanchored(self, anchor: Array, offset: float) -> Case:
        """The same records, cut to |a'θ + c| ≤ offset at another public anchor."""
        settings = self.settings
        shared = self.mechanism.sensitivity.outputs > 1
        sums = self.erm.loss.sums(settings.bounds, anchor, offset, settings.nonfinite, None, shared)
        return replace(self, sums=sums, anchor=anchor)


def _with_threshold(settings: Settings, constants: Constants) -> Settings:
    """The settings with ``Linear(clip="anchor")`` or "auto" written as a number."""
    mechanism = settings.mechanism
    if not isinstance(mechanism, Linear) or not isinstance(mechanism.clip, str):
        return settings
    clip = mechanism.threshold(constants.anchor_gradient / (constants.cuts or 1))
    return replace(settings, perturbation=replace(mechanism, clip=clip))


def _sensitivity(
    erm: ERM, settings: Settings, constants: Constants, anchor: Array, offset: float | None
) -> Sensitivity:
    """The constants as a mechanism takes them: S is one block of several outputs, but for the
    accounting of mechanisms that is one of the whole Hessian."""
    linear = isinstance(settings.mechanism, Linear)
    if getattr(settings.mechanism, "whole", False):
        constants = constants.whole
    rank = (constants.linear_rank if linear else None) or constants.hessian_rank
    D, shared = erm.dimension, constants.outputs > 1
    gradient = None
    if linear:  # Theorem 9 needs G over C, and no other does
        distance = farthest(erm.variables, erm.constraints, anchor)
        gradient = erm.loss.gradient_bound(settings.bounds, anchor, offset, distance)
        if gradient is None:
            raise OptionError(
                "perturbation: the linear mechanism needs a bound on the gradient of one record at "
                "every θ of the constraint set: state Declared(gradient=…)."
            )
    return Sensitivity(
        dimension=D // constants.outputs,
        outputs=constants.outputs,
        smoothness=constants.smoothness,
        anchor_gradient=constants.anchor_gradient,
        quadratic=constants.quadratic,
        adjacency=settings.adjacency,
        hessian_rank=min(rank, D // constants.outputs),
        hessian_range=_at_most(constants.hessian_range, D),
        gradient_range=None if shared else _at_most(constants.gradient_range, D),
        trace=constants.trace,
        frobenius=constants.frobenius,
        cuts=constants.cuts,
        one_row=constants.one_row,
        anchor_value=constants.anchor_value,
        gradient=gradient,
        offset=erm.loss.offset(settings.bounds) if offset is None else offset,
        anchor_error=_anchor_error(erm, settings),
    )


def _at_most(known: int | None, D: int) -> int | None:
    return None if known is None else min(known, D)


def _anchor_error(erm: ERM, settings: Settings) -> float | None:
    """η of a CommonMinimizer, for losses that have a minimiser where a'θ + c = 0."""
    anchor = settings.anchor
    if not isinstance(anchor, CommonMinimizer) or not erm.loss.vanishing:
        return None
    return float(anchor.error)


def _averages(erm: ERM) -> bool:
    return erm.persons is not None and erm.persons.weights is not None


def _check_support(erm: ERM, settings: Settings, touches_records: bool) -> None:
    """Refuse what the mechanism or the route to the solver does not support."""
    mechanism, loss, terms = settings.mechanism, erm.loss, " + ".join(erm.terms)
    if isinstance(settings.anchor, CommonMinimizer) and not loss.cuts_arguments:
        raise OptionError(
            f"anchor: the private loss {terms} has no minimiser that all records share, because "
            "its gradient vanishes nowhere. Pass the array itself as the anchor."
        )
    if loss.linear and not isinstance(mechanism, Gaussian):
        raise OptionError(
            f"perturbation: the private loss {terms} is linear, so that no record has curvature to "
            "hide and its gradient is all that is perturbed: use perturbation='gaussian'."
        )
    if isinstance(mechanism, Linear) and mechanism.clip is not None and not loss.cuts_slopes:
        raise OptionError(
            "Linear: clip cuts the slope of a recognised loss of one number a record, and "
            f"{terms} is of another kind. Bound the variable by a constraint, or use "
            "perturbation='wishart'."
        )
    if not loss.clipped:
        if isinstance(mechanism, Gaussian) and not erm.quadratic:
            raise OptionError(
                "perturbation: the Gaussian ensemble takes declared losses that are quadratic "
                "only. Use 'wishart'."
            )
        if getattr(mechanism, "calibration", "exact") == "paper":
            raise OptionError("Wishart: calibration='paper' does not take declared losses.")
    if settings.accept_solver_accuracy and erm.quadratic and not isinstance(mechanism, Linear):
        raise OptionError(
            "accept_solver_accuracy has no meaning for quadratic losses: the solver sees the "
            "released quadratic form only, so that its accuracy is no part of the guarantee."
        )
    if isinstance(mechanism, Gaussian) and mechanism.adaptive and _averages(erm):
        raise OptionError(
            "Gaussian: stages='adaptive' counts rows in histograms, and rows that weigh 1/m each "
            "cannot be counted as one person: state rows_per_person=k, or use stages=1."
        )
    if isinstance(mechanism, Gaussian) and mechanism.repeats and not loss.one_residual:
        raise OptionError(
            f"Gaussian: stages > 1 cut the residual of a record closer, and a record of {terms} "
            "has several rows, none that is known, or a gradient beside that of its residual: use "
            "stages=1."
        )
    if isinstance(mechanism, Gaussian) and touches_records:
        if erm.quadratic:
            raise OptionError(
                "Gaussian: the ensemble releases the quadratic form of a squared loss and repairs "
                "its curvature, and this variant of STOTOS works on the records. Leave the variant "
                "out."
            )
        if mechanism.repeats:
            raise OptionError(
                "Gaussian: stages > 1 release the gradient of a squared loss again, and the "
                f"private loss {terms} is not quadratic: use stages=1."
            )
