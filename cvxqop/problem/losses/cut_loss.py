"""The loss of records with weights, labels and a clipped gradient.

The gradient of ℓ(θ; z) = h(a'θ), h(t) = Σ_j w_j φ_j(t + c_j) + q t, is h'(a'θ) a. Clipping it to
norm ζ gives the gradient of the loss whose slope is h' cut to ±s, s = ζ/‖a‖ (theory §5):

    ℓ_s(t) = min_τ h(τ) + s |t − τ|,    ℓ_s' = cut(h', s),    ℓ_s'' = h'' where |h'| < s, else 0.

It is convex, and ℓ_s'' ≤ h''. For a squared loss it is Huber's, with a threshold a record.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from cvxqop._blocks import back, outputs, weighted_gram
from cvxqop.problem.losses.margins import Margin
from cvxqop.problem.losses.scalar import ScalarLoss
from cvxqop.problem.records.clipping import ClippedRows
from cvxqop.problem.records.cut_rows import CutRows

__all__ = ["CutLoss", "linear_term"]

Array = npt.NDArray[np.float64]

_EPS = float(np.finfo(np.float64).eps)
_ROUNDS = 160


def linear_term(rows: ClippedRows) -> Array:
    """Σ_i q_i a_i (D,), the gradient of the linear part of the loss, q cut to its interval.

    The labels of a logistic loss, log(1 + exp t) − y t, enter here: everything else of the loss is
    Σ_j φ_j. Zeros where the loss has no linear part.
    """
    if rows.labels is None:
        return np.zeros(rows.dimension)
    (gradient,) = CutRows(rows, [1.0] * rows.terms).sum(_labels)
    return np.asarray(gradient[:, 0])


def _labels(A: Any, C: Array) -> tuple[Array]:
    return (back(A, C[:, [-2]]),)


class _Numbers(NamedTuple):
    """The columns of `CutRows` for some records."""

    c: Array
    w: Array
    q: Array
    s: Array

    def at(self, chosen: Any) -> _Numbers:
        return _Numbers(*(part[chosen] for part in self))


@dataclass(frozen=True, eq=False)
class CutLoss(Margin):
    """ℓ_s for the numbers c, w, q, s of each record.

    Parameters
    ----------
    losses : sequence of ScalarLoss
        φ_j.
    curvature : float
        Σ_j κ_j max_i w_ij ≥ ℓ_s''.

    Examples
    --------
    t² of a row of norm 1, its gradient clipped to ζ = 3:

    >>> import numpy as np
    >>> from cvxqop.problem.losses.scalar import squared
    >>> loss, numbers = CutLoss((squared,), 2.0), np.array([[0.0, 1.0, 0.0, 3.0]])
    >>> [part.tolist() for part in loss.values(np.array([2.0]), numbers)]    # 3·2 − 1.5²
    [[3.75], [3.0]]
    """

    losses: tuple[ScalarLoss, ...]
    curvature: float
    quadratic: bool = False

    @property
    def shifts(self) -> int:
        """J: the columns c come first."""
        return len(self.losses)

    def values(self, margin: Array, C: Array) -> tuple[Array, Array]:
        """ℓ_s, up to a constant of the record, and ℓ_s'; one number a record each."""
        numbers = self._numbers(C)
        value, slope = self._value(margin, numbers), self._slope(margin, numbers)
        cut = np.clip(slope, -numbers.s, numbers.s)
        over = slope != cut
        if over.any():
            value[over] = self._beyond(margin[over], cut[over], numbers.at(over))
        return value, cut

    def second_derivative(self, margin: Array, C: Array, reach: Array | None = None) -> Array:
        """ℓ_s''; with ``reach``, a lower bound on it while each margin moves by at most that."""
        numbers = self._numbers(C)
        ends = (margin,) if reach is None else (margin - reach, margin + reach)
        total = np.zeros(len(margin))
        for j, loss in enumerate(self.losses):
            moved = [end + numbers.c[:, j] for end in ends]
            known = loss.second_derivative if reach is None else loss.least_curvature
            bend = known(*moved)
            total += numbers.w[:, j] * bend
        # h' never decreases: within ±s at both ends, it is so between them.
        for t in ends:
            total[~(np.abs(self._slope(t, numbers)) < numbers.s)] = 0.0
        return total

    def quadratic_form(self, A: Any, C: Array, anchor: Array) -> tuple[Any, Array]:
        """Σ_i (Σ_j κ_j w_ij) a_i a_i', and Σ_i a_i h_i'(a_i'θ0): squares, slopes not cut."""
        numbers = self._numbers(C)
        kappa = np.array([loss.curvature for loss in self.losses])
        slopes = self._slope(outputs(A, anchor)[:, 0], numbers)
        return weighted_gram(A, numbers.w @ kappa), back(A, slopes[:, None])

    def _numbers(self, C: Array) -> _Numbers:
        J = len(self.losses)
        return _Numbers(C[:, :J], C[:, J : 2 * J], C[:, 2 * J], C[:, 2 * J + 1])

    def _value(self, t: Array, numbers: _Numbers) -> Array:
        """h."""
        value = numbers.q * t
        for j, loss in enumerate(self.losses):
            value += numbers.w[:, j] * loss.value(t + numbers.c[:, j])
        return value

    def _slope(self, t: Array, numbers: _Numbers) -> Array:
        """h'."""
        slope = numbers.q.copy()
        for j, loss in enumerate(self.losses):
            slope += numbers.w[:, j] * loss.derivative(t + numbers.c[:, j])
        return slope

    def _bend(self, t: Array, numbers: _Numbers) -> Array:
        """h''."""
        bend = np.zeros(len(t))
        for j, loss in enumerate(self.losses):
            bend += numbers.w[:, j] * loss.second_derivative(t + numbers.c[:, j])
        return bend

    def _beyond(self, margin: Array, cut: Array, numbers: _Numbers) -> Array:
        """h(τ) + cut · (t − τ) with h'(τ) = cut, where h'(t) lies beyond the cut.

        An error of τ counts by its square only, since τ minimises h(τ) + s|t − τ|. Where h' does
        not come down to the cut at all, cut · t is the same up to a constant of the record.
        """
        sign = np.sign(cut)
        r = self._distance(margin, sign, numbers)
        tau = margin - sign * np.where(np.isfinite(r), r, 0.0)
        found = self._value(tau, numbers) + cut * (margin - tau)
        return np.where(np.isfinite(r), found, cut * margin)

    def _distance(self, margin: Array, sign: Array, every: _Numbers) -> Array:
        """Distances r back from t to τ by Newton's steps and halving; ∞ where there is no τ."""
        kappa = every.w @ np.array([loss.curvature for loss in self.losses])
        low, high = np.zeros_like(margin), np.full_like(margin, np.inf)
        found, best, smallest = high.copy(), low.copy(), high.copy()
        # A quadratic h is there after one step; no other comes down faster. One of weight 0 is
        # linear, and does not come down at all.
        bent = kappa > 0.0
        least = (sign * self._slope(margin, every) - every.s) / np.where(bent, kappa, 1.0)
        trial = self._guess(margin, sign, every, least)
        active = np.flatnonzero(bent)
        for number in range(_ROUNDS):
            numbers, r, side = every.at(active), trial[active], sign[active]
            excess = side * self._slope(margin[active] - side * r, numbers) - numbers.s
            above = excess > 0.0
            low[active] = np.where(above, r, low[active])
            high[active] = np.where(above, high[active], r)
            closer = np.abs(excess) < smallest[active]
            best[active[closer]], smallest[active[closer]] = r[closer], np.abs(excess[closer])
            # Of the slope no more is known than the rounding of τ leaves.
            size = numbers.s + kappa[active] * (np.abs(margin[active]) + low[active])
            near = smallest[active] <= np.minimum(4.0 * _EPS * size, 1e-6 * numbers.s)
            # The value is off by no more than the integral of the excess from the best r to τ.
            width = high[active] - low[active]
            error = np.minimum(kappa[active] * width, smallest[active]) * width
            done = near | (error <= _EPS * numbers.s * low[active])
            found[active[done]] = best[active[done]]
            active = active[~done]
            if not active.size:
                break
            left, right, r = low[active], high[active], best[active]
            farthest = np.minimum(right, 8.0 * left + least[active])
            trial[active] = np.where(np.isfinite(right), 0.5 * (left + right), farthest)
            if number % 3 < 2:
                bend = self._bend(margin[active] - sign[active] * r, every.at(active))
                move = np.where(r == left, 1.0, -1.0) * smallest[active]
                step = r + move / np.where(bend > 0.0, bend, np.inf)
                inside = (step > left) & (step < farthest)
                trial[active[inside]] = step[inside]
        return found

    def _guess(self, margin: Array, sign: Array, numbers: _Numbers, least: Array) -> Array:
        """The distance to τ where φ' has an inverse, and no less than the least there is."""
        inverse = self.losses[0].inverse
        if inverse is None or len(self.losses) > 1:
            return least
        with np.errstate(all="ignore"):
            tau = inverse((sign * numbers.s - numbers.q) / numbers.w[:, 0]) - numbers.c[:, 0]
        r = sign * (margin - tau)
        return np.where(np.isfinite(r), np.maximum(r, least), least)
