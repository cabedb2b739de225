"""The divergence of adaptive stages along a path: every release, at the points where it was made.

A path is what a run on one data set releases, stage by stage. Given the past, each release is a
Gaussian whose centre the other data set would have moved by a vector v_j; the composition of theory
§6 asks that Σ ‖v_j‖²/σ_j² be at most μ² on every path. Here paths are run and the sum is taken: the
law of all releases given a path has the profile δ_G(ε; √Σ).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from cvxqop.backend import Backend
from cvxqop.case import Case
from cvxqop.privacy.accounting.profile import gaussian_profile
from cvxqop.privacy.gaussian.adaptive import CalibratedAdaptive
from cvxqop.problem.losses.contract import Sums

__all__ = ["path_divergence", "path_shift"]

Array = npt.NDArray[np.float64]
Release = Callable[[Case, Backend], Any]

PATHS = 3
"""Paths that are run on either data set."""


@dataclass(frozen=True, eq=False)
class _Recorded:
    """Sums that note what they are asked for, and what they answer."""

    sums: Sums
    asked: list[tuple[tuple[Any, ...], Any]] = field(default_factory=list)

    def quadratic_form(self) -> tuple[Array, Array]:
        answer = self.sums.quadratic_form()
        self.asked.append(((), answer))
        return answer

    def cut_gradients(self, *asked: Array) -> tuple[Array, Array]:
        answer = self.sums.cut_gradients(*asked)
        self.asked.append((asked, answer))
        return answer

    def __getattr__(self, name: str) -> Any:
        return getattr(self.sums, name)


def path_shift(release: Release, case: Case, backend: Backend, other: Case) -> float:
    """Σ ‖v_j‖²/σ_j² along one path of the first case, by what the other data set would have added
    up.

    Of a stage that looks at gradients for many cuts the one that is released counts, which the
    next stage uses again. σ_j are those of the mechanism of the first case.
    """
    recorded = _Recorded(case.sums)
    release(replace(case, sums=recorded), backend)
    mechanism = case.mechanism
    assert isinstance(mechanism, CalibratedAdaptive)
    total, stage = 0.0, 0
    for number, (asked, found) in enumerate(recorded.asked):
        if not asked:
            (H, g), (H2, g2) = found, other.sums.quadratic_form()
            total += float(np.sum((H - H2) ** 2)) / mechanism.scale**2
            total += float(np.sum((g - g2) ** 2)) / mechanism.guard_scale**2
            continue
        stage += 1
        _, cuts, edges = asked
        gradients, counts = found
        gradients2, counts2 = other.sums.cut_gradients(*asked)
        chosen = 0
        if len(edges):
            total += float(np.sum((counts - counts2) ** 2)) / mechanism.count_scale**2
            following = recorded.asked[number + 1][0][1]
            chosen = int(np.flatnonzero(cuts == following[0])[0])
        noise = cuts[chosen] * mechanism.guard_scales[stage]
        total += float(np.sum((gradients[chosen] - gradients2[chosen]) ** 2)) / noise**2
    return total


def path_divergence(
    release: Release, prepared: list[tuple[Case, Backend]], epsilons: tuple[float, ...]
) -> list[tuple[float, float]]:
    """(δ, 0) at each ε: the largest of some paths on each of two data sets."""
    (one, first), (two, second) = prepared
    sums = [
        path_shift(release, *path)
        for path in ((one, first, two), (two, second, one))
        for _ in range(PATHS)
    ]
    return [(float(gaussian_profile(e, max(sums) ** 0.5)), 0.0) for e in epsilons]
