"""A problem that was read, with its anchor, its calibrated mechanism and what that promises."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from cvxqop.declaring import check_declared, declared_sensitivity
from cvxqop.errors import OptionError
from cvxqop.guarantee import Guarantee
from cvxqop.privacy.gaussian.options import Gaussian
from cvxqop.privacy.linear.options import CalibratedLinear, Linear
from cvxqop.privacy.mechanism import Draw, Mechanism, Sensitivity
from cvxqop.privacy.noise import Noise, Randomness
from cvxqop.privacy.wishart.options import Wishart
from cvxqop.problem.anchor import CommonMinimizer, resolve_anchor
from cvxqop.problem.declared_erm import DeclaredERM
from cvxqop.problem.erm import ERM, Constants
from cvxqop.problem.losses.cut_loss import CutLoss, CutRows
from cvxqop.problem.losses.scalar import ScalarLoss
from cvxqop.problem.records.clipping import ClippedRows
from cvxqop.problem.records.outputs import Outputs
from cvxqop.settings import Settings
from cvxqop.solve.rest.reach import farthest
from cvxqop.solve.smooth.gram import gram, slope
from cvxqop.statements import assumptions_of, caveats_of, declared_assumptions_of

__all__ = ["Case"]

Array = npt.NDArray[np.float64]

BLOCK_ENTRIES = 2**18
"""Entries of a row block (2 MiB): it stays in cache from the norm to the Gram product."""


@dataclass(frozen=True, eq=False)
class Case:
    """What a plan holds on to. The records are behind ``rows`` and are read when it runs.

    Attributes
    ----------
    erm : ERM
        The problem.
    settings : Settings
        The options.
    rows : ClippedRows
        The records, clipped.
    anchor : ndarray, shape (D,)
        θ0.
    guarantee : Guarantee
        The mechanism and its promise.
    randomness : Randomness
        Where the noise of each run comes from.
    """

    erm: ERM
    settings: Settings
    rows: ClippedRows = field(repr=False)
    anchor: Array
    guarantee: Guarantee
    randomness: Randomness = field(repr=False)

    @classmethod
    def of(cls, erm: ERM, settings: Settings, *, touches_records: bool = False) -> Case:
        """Constants from the bounds, then the smallest noise for them.

        ``touches_records`` says that the solver will see records, and not only a perturbed
        quadratic: then its accuracy is part of the mechanism, through a Gaussian release.
        """
        if isinstance(erm, DeclaredERM):
            return cls._declared(erm, settings, touches_records)
        _check_support(erm, settings, touches_records)
        anchor, offset = resolve_anchor(erm, settings.anchor, settings.bounds)
        constants = erm.constants(settings.bounds, anchor, offset)
        settings = _with_threshold(settings, constants)
        randomness = Randomness(settings.seed)
        mechanism = settings.mechanism.calibrate(
            settings.epsilon,
            settings.delta,
            Sensitivity(
                smoothness=constants.smoothness,
                anchor_gradient=constants.anchor_gradient,
                quadratic=constants.quadratic,
                adjacency=settings.adjacency,
                offset=erm.offset(settings.bounds) if offset is None else offset,
                gradient=_gradient_bound(erm, settings, constants, anchor, offset),
                anchor_error=_anchor_error(erm, settings),
                **_shape(erm, settings, constants),
            ),
            radius=settings.distance,
            accuracy=settings.tolerance if touches_records else None,
        )
        guarantee = Guarantee(
            epsilon=float(settings.epsilon),
            delta=float(settings.delta),
            adjacency=settings.adjacency,
            mechanism=mechanism,
            assumptions=assumptions_of(erm, settings, constants, offset, touches_records),
            caveats=caveats_of(settings, randomness.reproducible),
        )
        rows = erm.clipped(settings.bounds, anchor, settings.nonfinite, offset)
        return cls(erm, settings, rows, anchor, guarantee, randomness)

    @classmethod
    def _declared(cls, erm: DeclaredERM, settings: Settings, touches_records: bool) -> Case:
        """The same with declared constants in the place of those that bounds imply."""
        check_declared(erm, settings)
        anchor, _ = resolve_anchor(erm, settings.anchor, settings.bounds)
        randomness = Randomness(settings.seed)
        guarantee = Guarantee(
            epsilon=float(settings.epsilon),
            delta=float(settings.delta),
            adjacency=settings.adjacency,
            mechanism=settings.mechanism.calibrate(
                settings.epsilon,
                settings.delta,
                declared_sensitivity(erm, settings),
                radius=settings.distance,
                accuracy=settings.tolerance if touches_records else None,
            ),
            assumptions=declared_assumptions_of(erm, settings, touches_records),
            caveats=caveats_of(settings, randomness.reproducible),
            certified=not settings.accept_solver_accuracy,
        )
        nothing = ClippedRows(erm.rows, 1.0, anchor, None, "raise")
        return cls(erm, settings, nothing, anchor, guarantee, randomness)

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
        if settings.budget is not None:
            names = ", ".join(variable.name() for variable in self.erm.variables)
            settings.budget.spend(
                epsilon=float(settings.epsilon),
                delta=float(settings.delta),
                label=f"{mechanism.title} of {names}",
                mechanism=mechanism,
            )
        noise, sampling = self.randomness.fresh()
        return mechanism.draw(noise), noise, sampling

    @property
    def weighted(self) -> bool:
        """Whether some loss has one public weight a record."""
        return any(np.ndim(weight) for _, weight in self.erm.losses)

    @property
    def curvatures(self) -> Array:
        """κ_j of each loss, times its weight where no loss has one weight a record."""
        return np.array(
            [
                loss.curvature * (1.0 if self.weighted else float(weight))
                for loss, weight in self.erm.losses
            ]
        )

    @property
    def losses(self) -> list[Any]:
        """The losses times their weights, each one number: not where ``weighted``."""
        return [
            loss.times(float(weight))
            for loss, weight in self.erm.losses
            if isinstance(loss, ScalarLoss)
        ]

    def gram(self) -> tuple[Array, Array]:
        """Hessian and gradient at the anchor of a quadratic loss, in one pass over the records.

        The Hessian has the side of S: it is that of one output where outputs share their noise. The
        gradient has length D.
        """
        if isinstance(self.erm, DeclaredERM):
            self.erm.check_finite()
            return self.erm.quadratic_form(self.anchor)
        outputs = self.erm.outputs
        if outputs is None:
            return gram(self.blocks(), self.curvatures, self.anchor)
        H, g = gram(self.blocks(), self.curvatures, outputs.matrix(self.anchor))
        return H if self.shared else outputs.whole(H), outputs.stacked(g)

    def slope(self) -> Array:
        """The gradient of `gram` alone."""
        outputs = self.erm.outputs
        if outputs is None:
            return slope(self.blocks(), self.curvatures, self.anchor)
        g = slope(self.blocks(), self.curvatures, outputs.matrix(self.anchor))
        return outputs.stacked(g)

    @property
    def shared(self) -> Outputs | None:
        """The outputs that share one S, if any."""
        return self.erm.outputs if self.mechanism.sensitivity.outputs > 1 else None

    def repaired(self, released: Array, gradients: Sequence[Array]) -> Array:
        """The (D, D) curvature that the solver sees, from all that has been released."""
        shared = self.shared
        if shared is None:
            return self.mechanism.repair(released, gradients)
        columns = [shared.matrix(gradient) for gradient in gradients]
        return shared.whole(self.mechanism.repair(released, columns))

    def finite_sum(self) -> tuple[Any, Any, Array]:
        """Rows and losses of Σ_i ℓ(θ; z_i) with its linear part; every record is read and checked.

        The loss is the one whose gradient is clipped where the mechanism says so.
        """
        erm, mechanism = self.erm, self.mechanism
        clip = mechanism.clip if isinstance(mechanism, CalibratedLinear) else None
        if clip is None and not self.weighted:
            if not erm.labelled:
                self.rows.check_finite()
            # Reads every record where labels stand beside the loss.
            return self.rows, self.losses, self.rows.linear_term()
        self.rows.check_finite()
        rows = CutRows(self.rows, [weight for _, weight in erm.losses], clip)
        curvature = sum(loss.curvature * float(np.max(w, initial=0.0)) for loss, w in erm.losses)
        loss = CutLoss(
            tuple(loss for loss, _ in erm.losses if isinstance(loss, ScalarLoss)), curvature
        )
        return rows, loss, np.zeros(erm.dimension)

    def _block_rows(self) -> int:
        """Records in a block: by D where rows are dense, by their fill where they are sparse.

        Products of sparse blocks fill up as they are added, so that few and large blocks are best.
        """
        D = max(1, self.rows.dimension + (self.rows.terms if self.erm.outputs else 0))
        first, _ = self.rows.take(0, min(self.rows.n, 256))
        if not sp.issparse(first) or not first.shape[0]:
            return max(64, BLOCK_ENTRIES // D)
        fill = max(first.nnz / first.shape[0], D / 64)
        return max(64, int(4 * BLOCK_ENTRIES / fill))

    def reanchored(self, anchor: Array, offset: float) -> Case:
        """The same records, cut to |a'θ + c| ≤ offset at another public anchor."""
        settings = self.settings
        rows = self.erm.clipped(settings.bounds, anchor, settings.nonfinite, offset)
        return replace(self, rows=rows, anchor=anchor)

    def blocks(self) -> Iterator[tuple[Any, ...]]:
        """Clipped row blocks, with the public weights of their records where there are any."""
        weights = [weight for _, weight in self.erm.losses]
        n, size = self.rows.n, self._block_rows()
        for start in range(0, n, size):
            stop = min(start + size, n)
            A, C = self.rows.take(start, stop)
            if self.weighted:
                columns = [np.broadcast_to(weight, (n,))[start:stop] for weight in weights]
                yield A, C, np.stack(columns, axis=1)
            else:
                yield A, C


def _with_threshold(settings: Settings, constants: Constants) -> Settings:
    """The settings with ``Linear(clip="anchor")`` written as a number."""
    mechanism = settings.mechanism
    if not isinstance(mechanism, Linear) or mechanism.clip != "anchor":
        return settings
    clip = mechanism.threshold(constants.anchor_gradient)
    return replace(settings, perturbation=replace(mechanism, clip=clip))


def _shape(erm: ERM, settings: Settings, constants: Constants) -> dict[str, Any]:
    """What a Sensitivity says of dimension and rank: S is one block of several outputs, but for the
    accounting of the linear mechanism and of CC26, which is that of the whole Hessian."""
    mechanism = settings.mechanism
    whole = isinstance(mechanism, Linear)
    whole |= isinstance(mechanism, Wishart) and mechanism.calibration == "paper"
    if constants.outputs == 1 or whole:
        rank = constants.hessian_rank * constants.outputs
        return {
            "dimension": erm.dimension,
            "hessian_rank": rank,
            "hessian_range": constants.hessian_range,
            "gradient_range": constants.hessian_range or rank,
            "trace": constants.trace,
            "frobenius": constants.frobenius,
        }
    return {"dimension": erm.dimension // constants.outputs, "outputs": constants.outputs}


def _gradient_bound(
    erm: ERM, settings: Settings, constants: Constants, anchor: Array, offset: float | None
) -> float | None:
    """G ≥ ‖∇ℓ(θ; z)‖ over C, which Theorem 9 needs and no other: from φ, B, R and C."""
    if not isinstance(settings.mechanism, Linear):
        return None
    B = erm.offset(settings.bounds) if offset is None else offset
    if not erm.has_offset and not np.any(anchor):
        B = 0.0
    distance = farthest(erm.variables, erm.constraints, anchor)
    argument = (B or 0.0) + constants.row_norm * distance
    slopes = (loss.slope_bound(argument) * float(np.max(w)) for loss, w in erm.losses)
    return constants.row_norm * sum(slopes)


def _anchor_error(erm: ERM, settings: Settings) -> float | None:
    """η of a CommonMinimizer, for losses that have a minimiser where a'θ + c = 0."""
    anchor = settings.anchor
    if not isinstance(anchor, CommonMinimizer) or erm.labelled:
        return None
    minimised = all(loss.slope_bound(0.0) == 0.0 for loss, _ in erm.losses)
    return float(anchor.error) if minimised else None


def _check_support(erm: ERM, settings: Settings, touches_records: bool) -> None:
    """Refuse what the mechanism or the route to the solver does not support yet."""
    mechanism = settings.mechanism
    if erm.outputs is not None:
        _check_outputs(erm, settings)
    if isinstance(mechanism, Gaussian) and touches_records:
        if erm.quadratic:
            raise OptionError(
                "Gaussian: the ensemble releases the quadratic form of a squared loss and repairs "
                "its curvature, and this variant of STOTOS works on the records. Leave the variant "
                "out."
            )
        if mechanism.stages > 1:
            raise OptionError(
                "Gaussian: stages > 1 release the gradient of a squared loss again, and the "
                f"private loss {' + '.join(erm.terms)} is not quadratic: use stages=1."
            )


def _check_outputs(erm: ERM, settings: Settings) -> None:
    """Refuse what losses with several outputs a record do not have."""
    assert erm.outputs is not None
    terms = " + ".join(erm.terms)
    if erm.outputs.labelled and isinstance(settings.anchor, CommonMinimizer):
        raise OptionError(
            f"anchor: the private loss {terms} has no minimiser that all records share, because "
            "its gradient vanishes nowhere. Pass the array itself as the anchor."
        )
    if isinstance(settings.mechanism, Linear) and settings.mechanism.clip is not None:
        raise OptionError(
            f"Linear: clip cuts the slope of a loss of one number a record, and {terms} has "
            "several. Bound the variable by a constraint, or use perturbation='wishart'."
        )
