"""Adaptive stages (theory §6): cut gradients released again and again, then one quadratic.

Records are read in one pass a stage. What a stage releases is on a grid; all else is made of what
has been released.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from cvxqop.backend import Backend
from cvxqop.case import Case
from cvxqop.privacy.gaussian.adaptive import AdaptiveDraw, CalibratedAdaptive
from cvxqop.privacy.gaussian.cut_rules import CUTS, EDGES, chosen_cut, shrunk
from cvxqop.privacy.gaussian.symmetric import Spectrum
from cvxqop.solution import PrivateLoss
from cvxqop.spending.quadratic import Steps

__all__ = ["adaptive_loss"]

Array = npt.NDArray[np.float64]


def adaptive_loss(
    case: Case,
    mechanism: CalibratedAdaptive,
    hessian: Array,
    gradient: Array,
    draw: AdaptiveDraw,
    backend: Backend,
) -> PrivateLoss:
    """The quadratic that all stages lead to.

    Parameters
    ----------
    case : Case
        The problem with its records.
    mechanism : CalibratedAdaptive
        Its mechanism.
    hessian, gradient : ndarray
        H̃ and g̃ at the anchor, as released.
    draw : AdaptiveDraw
        All noise: a second attempt on the same draw releases the same.
    backend : Backend
        Solves stages where the built-in engine cannot.
    """
    steps = Steps(case, backend, Spectrum.of(hessian))
    theta, slope = steps(case.anchor, gradient, mechanism.level(0))
    path = _path(case, mechanism, draw, steps, theta, slope)
    last = path[-mechanism.averaged :]
    end = np.mean([theta for theta, _ in last], axis=0)
    slope = np.mean([slope for _, slope in last], axis=0)
    return PrivateLoss(
        steps.raised(mechanism.last_level),
        _checked(case, mechanism, steps.spectrum, gradient + slope, end) - slope,
        end,
        case.erm.variables,
        case.guarantee,
    )


def _path(
    case: Case,
    mechanism: CalibratedAdaptive,
    draw: AdaptiveDraw,
    steps: Steps,
    theta: Array,
    slope: Array,
) -> list[tuple[Array, Array]]:
    """The solution of every stage, with the slope of r + ι_C there."""
    sums, unit = case.sums, mechanism.unit
    parameters = math.sqrt(mechanism.sensitivity.parameters)
    *_, counting = mechanism.grids
    histogram, chosen = np.zeros(len(EDGES) - 1), 0
    path = [(theta, slope)]
    for stage in range(1, mechanism.stages):
        if stage in mechanism.looks:
            number = mechanism.looks.index(stage)
            sums_of_cuts, counts = sums.cut_gradients(theta, unit * CUTS, unit * EDGES)
            histogram += counting.add(counts, draw.counts[number])
            chosen = chosen_cut(
                histogram / (number + 1),
                mechanism.count_scale / math.sqrt(number + 1),
                mechanism.guard_scales[stage] * parameters,
                rest=not steps.free,
            )
            total = sums_of_cuts[chosen]
        else:
            (total,), _ = sums.cut_gradients(theta, unit * CUTS[chosen : chosen + 1], EDGES[:0])
        cut = float(unit * CUTS[chosen])
        gradient = mechanism.cut_grid(stage, cut).add(total, cut * draw.guards[stage])
        theta, slope = steps(theta, gradient, mechanism.level(stage))
        path.append((theta, slope))
    return path


def _checked(
    case: Case, mechanism: CalibratedAdaptive, spectrum: Spectrum, gradient: Array, theta: Array
) -> Array:
    """g̃ + H̃u at θ, u = θ − θ0, the gradient that no cut has touched: each entry in the eigenbasis
    of H̃ without what its own noise explains."""
    sums, V = case.sums, spectrum.vectors
    shape = sums.columns(theta).shape
    u, g = (sums.columns(x).reshape(len(V), -1) for x in (theta - case.anchor, gradient))
    turned = V.T @ u
    variance = mechanism.guard_scale**2 + 0.5 * mechanism.scale**2 * (
        np.sum(u**2, axis=0) + turned**2
    )
    kept = V @ shrunk(V.T @ (g + spectrum.matrix @ u), variance)
    return sums.stacked(kept.reshape(shape))
