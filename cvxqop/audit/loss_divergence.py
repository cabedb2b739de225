"""The divergence of what is released for a squared loss: the perturbed quadratic (H̃, g̃).

The output (H + S, g + a) on D is that of (S + E, a + b) on D', E = H − H', b = g − g'. With
Z(S) = log p_S(S) − log p_S(S + E), infinite where S + E leaves the support,

    δ(ε) = E_S δ_G(ε − Z(S); ‖b‖/s_a).

Of adaptive stages every release is looked at where it was made. A path is what a run on one data
set releases, stage by stage. Given the past, each release is a Gaussian whose centre the other data
set would have moved by a vector v_j; the composition of theory §6 asks that Σ ‖v_j‖²/σ_j² be at
most μ² on every path. Here paths are run and the sum is taken: the law of all releases given a path
has the profile δ_G(ε; √Σ).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from cvxqop.backend import Backend
from cvxqop.case import Case
from cvxqop.errors import OptionError
from cvxqop.privacy.accounting.profile import gaussian_profile
from cvxqop.privacy.accounting.quadrature import log_chi_density
from cvxqop.privacy.gaussian.adaptive import CalibratedAdaptive
from cvxqop.privacy.gaussian.calibrated import CalibratedGaussian
from cvxqop.privacy.mechanism import Mechanism
from cvxqop.privacy.wishart.calibrated import CalibratedWishart
from cvxqop.problem.losses.contract import Sums

__all__ = ["loss_divergence", "path_divergence", "path_shift"]

Array = npt.NDArray[np.float64]
Release = Callable[[Case, Backend], Any]

PATHS = 3
"""Paths that are run on either data set."""


def loss_divergence(
    mechanisms: Sequence[Mechanism], forms: Sequence[tuple[Array, Array]], epsilons: Sequence[float]
) -> list[tuple[float, float]]:
    """(δ, error of the quadrature) at each ε, the larger of the two directions.

    ``forms`` are (H, g) of the two data sets: Hessian and gradient at the anchor, unperturbed.

    Raises
    ------
    OptionError
        If the two mechanisms differ, or no formula is known.
    """
    (H, g), (H2, g2) = forms
    mechanism, d = mechanisms[0], len(H)
    if mechanisms[0] != mechanisms[1]:
        raise OptionError(
            "divergence: the noise differs between the two data sets, which tells them apart; "
            "audit the solution (output='solution') to see by how much."
        )
    E, b = H - H2, g - g2
    if not np.any(b):
        mu = 0.0
    else:
        mu = float(np.linalg.norm(b)) / mechanism.guard_scale if mechanism.guard_scale else math.inf
    if isinstance(mechanism, CalibratedGaussian) and mechanism.stages == 1:
        moved = float(np.linalg.norm(E))
        total = math.hypot(mu, moved / mechanism.scale if moved else 0.0)
        return [(_one(float(e), total), 0.0) for e in epsilons]
    if not isinstance(mechanism, CalibratedWishart) or d > 2:
        raise OptionError(
            f"divergence: the law of (H̃, g̃) is not integrated for {mechanism.title} in dimension "
            f"{d}, nor for several stages."
        )
    if math.isinf(mu):
        return [(1.0, 0.0) for _ in epsilons]
    m, sigma2 = mechanism.degrees_of_freedom, mechanism.sigma2
    found = []
    sides = [_losses(m, sign * E / sigma2) for sign in (1.0, -1.0)]
    for epsilon in epsilons:
        best = (0.0, 0.0)
        for Z, weight, coarse in sides:
            value = gaussian_profile(epsilon - Z, mu)
            fine = float(weight @ value)
            best = max(best, (fine, abs(fine - float(coarse @ value))))
        found.append(best)
    return found


def _one(epsilon: float, mu: float) -> float:
    return 1.0 if math.isinf(mu) else abs(float(gaussian_profile(epsilon, mu)))


def _losses(m: float, E: Array) -> tuple[Array, Array, Array]:
    """Z at nodes of W ~ Wishart_d(m, I) for a shift E, weights, and those of the coarser rule.

    In two dimensions W = TT' by Bartlett: T11² ~ χ²_m, T22² ~ χ²_{m−1}, T21 ~ N(0, 1). The
    trapezoidal rule is as exact as the integrand is smooth; Z has no jump but an infinite end.
    """
    d = len(E)
    if d == 1:
        y, w, coarse = _chi(m, 4001)
        return _loss(np.log(y * y), _log(y * y + E[0, 0]), 0.5 * (m - 2.0), E), w, coarse
    y, wy, cy = _chi(m, 121)
    z, wz, cz = _chi(m - 1.0, 121)
    x = np.linspace(-8.0, 8.0, 97)
    wx = np.exp(-0.5 * x * x) / math.sqrt(2.0 * math.pi) * (x[1] - x[0])
    cx = np.where(np.arange(len(x)) % 2 == 0, 2.0 * wx, 0.0)
    y, z, x = y[:, None, None], z[None, :, None], x[None, None, :]
    first, cross, second = y * y + E[0, 0], y * x + E[0, 1], x * x + z * z + E[1, 1]
    moved = np.where(first > 0.0, first * second - cross * cross, -1.0)
    Z = _loss(2.0 * np.log(y * z), _log(moved), 0.5 * (m - 3.0), E).ravel()
    weight, coarse = (
        np.einsum("i,j,k->ijk", *parts).ravel() for parts in ((wy, wz, wx), (cy, cz, cx))
    )
    live = weight > 1e-17 * weight.max()
    return Z[live], weight[live], coarse[live]


def _log(determinant: Array) -> Array:
    """log, −∞ where the shifted matrix has left the cone."""
    inside = determinant > 0.0
    return np.where(inside, np.log(np.where(inside, determinant, 1.0)), -np.inf)


def _loss(log_det: Array, moved: Array, k: float, E: Array) -> Array:
    return np.asarray(k * log_det - k * moved + 0.5 * float(np.trace(E)))


def _chi(nu: float, nodes: int) -> tuple[Array, Array, Array]:
    """Nodes y = √h, h ~ χ²_ν, weights, and those of every other node."""
    mode = math.sqrt(max(nu - 1.0, 0.0))
    y = np.linspace(max(mode - 9.0, 0.0), mode + 9.0, nodes)
    y[0] = max(y[0], 1e-12)
    weight = np.exp(log_chi_density(y[None, :], np.array([nu]))[0]) * (y[2] - y[1])
    coarse = np.where(np.arange(nodes) % 2 == 0, 2.0 * weight, 0.0)
    return y, weight, coarse


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
