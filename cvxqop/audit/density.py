"""Output densities of the perturbed problem in one and two dimensions.

The output θ0 + u solves ∇J(u) + S u + a = 0. With w = −(∇J(u) + a), a ~ N(0, s_a² I):

    d = 1    p(u) = ∫ p_S(s) p_a(−J'(u) − s u) (J''(u) + s) ds
    d = 2    p(u) = |u|⁻² E_a ∫ p_S(ww'/(u'w) + t vv') det(∇²J(u) + S) dt,   v ⊥ u, |v| = 1

Theory §2; without guard s = −J'(u)/u in one dimension, and w = −∇J(u) in two.

**Hidden directions.** Where J is constant along q of the D directions, the others, d = D − q of
them, minimise J + ½ u'S_r u + a_r'u with the Schur complement S_r = S_uu − S_uh S_hh⁻¹ S_hu and
a_r = a_u − S_uh S_hh⁻¹ a_h. By Bartlett, S_r is σ² Wishart_d(m − q) and independent of the rest;
for q = 1, a_r given z ~ Beta on (−1, 1), density ∝ (1 − z²)^{m/2 − 1}, is N(0, s_a²/(1 − z²) I).
What they release is part of the output, so that its divergence is a lower bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from scipy.special import (
    gammainccinv,
    gammaincinv,
    gammaln,
    log_ndtr,
    multigammaln,
    roots_gegenbauer,
)

from cvxqop.audit.objective import Smooth
from cvxqop.errors import OptionError
from cvxqop.privacy.gaussian.truncated import CalibratedTruncatedGaussian
from cvxqop.privacy.linear.options import CalibratedLinear
from cvxqop.privacy.mechanism import Mechanism
from cvxqop.privacy.wishart.calibrated import CalibratedWishart

__all__ = ["density", "wishart_density"]

Array = npt.NDArray[np.float64]
LogDensity = Callable[[Array], Array]

ALONG = np.polynomial.legendre.leggauss(100)
"""Nodes and weights for the curvature s in one dimension."""

ACROSS = np.polynomial.legendre.leggauss(48)
"""Nodes and weights for the guard along u in two dimensions."""

HIDDEN = 5
"""Nodes over z of the hidden direction; they are symmetric about 0."""

REACH = 9.0
"""Standard deviations of the guard that are integrated over: 2e-19 is left out."""


def density(mechanism: Mechanism, objective: Smooth, u: Array) -> Array:
    """p(u) of the exact perturbed minimiser θ0 + u at points u (N, d), d ≤ 2.

    Where the objective has a dimension less than the mechanism, of the part of the minimiser that
    the objective depends on.

    Raises
    ------
    OptionError
        If there is no formula: d > 2, two hidden directions, or the ensemble is Gaussian and d = 2.
    """
    gradient, hessian = objective.at(u)
    d, guard = objective.dimension, mechanism.guard_scale
    hidden = mechanism.sensitivity.parameters - d
    if isinstance(mechanism, CalibratedWishart) and d <= 2 and hidden <= 1:
        m = mechanism.degrees_of_freedom
        spread = _hidden(m) if hidden == 1 and guard > 0.0 else [(1.0, 1.0)]
        return np.asarray(
            sum(
                weight
                * wishart_density(
                    u,
                    gradient,
                    hessian,
                    sigma2=mechanism.sigma2,
                    m=m - hidden,
                    guard=guard * factor,
                )
                for factor, weight in spread
            )
        )
    if isinstance(mechanism, CalibratedLinear) and d <= 2:
        return _linear(u, gradient, hessian, mechanism.ridge, guard)
    if isinstance(mechanism, CalibratedTruncatedGaussian) and d == 1 and hidden == 0:
        ridge, scale, floor = mechanism.ridge, mechanism.scale, mechanism.floor
        kept = float(log_ndtr((ridge - floor) / scale))

        def log_p(s: Array) -> Array:
            return _log_normal((s - ridge) / scale) - math.log(scale) - kept

        ends = max(floor, ridge - 12.0 * scale), ridge + 12.0 * scale
        return _one_dimension(u[:, 0], gradient[:, 0], hessian[:, 0, 0], log_p, ends, guard)
    raise OptionError(
        f"divergence: no density of the output is known for {mechanism.title} in dimension {d}."
    )


def wishart_density(
    u: Array, gradient: Array, hessian: Array, *, sigma2: float, m: float, guard: float
) -> Array:
    """p(u) for S = σ² W, W ~ Wishart_d(m, I), from ∇J (N, d) and ∇²J (N, d, d) at u (N, d)."""
    if u.shape[1] == 2:
        return _two_dimensions(u, gradient, hessian, sigma2, m, guard)

    def log_p(s: Array) -> Array:
        return _log_wishart(1, m, sigma2) + (0.5 * m - 1.0) * np.log(s) - 0.5 * s / sigma2

    ends = 0.0, sigma2 * _range(m)[1]
    return _one_dimension(u[:, 0], gradient[:, 0], hessian[:, 0, 0], log_p, ends, guard)


def _hidden(m: float) -> list[tuple[float, float]]:
    """1/√(1 − z²) and weights at Gauss nodes z of the density ∝ (1 − z²)^{m/2 − 1}."""
    z, weight, total = roots_gegenbauer(HIDDEN, 0.5 * (m - 1.0), mu=True)
    half = z > -1e-9
    weight = np.where(z > 1e-9, 2.0, 1.0) * weight / total
    return [
        (1.0 / math.sqrt(1.0 - x * x), float(w)) for x, w in zip(z[half], weight[half], strict=True)
    ]


def _range(m: float) -> tuple[float, float]:
    """Beyond it is 1e-30 of χ²_{m−1} and of χ²_{m+5}: the law of S11/σ² with what multiplies it."""
    low, high = gammaincinv(0.5 * (m - 1.0), 1e-30), gammainccinv(0.5 * (m + 5.0), 1e-30)
    return 2.0 * float(low), 2.0 * float(high)


def _log_normal(x: Array) -> Array:
    return np.asarray(-0.5 * x * x - 0.5 * math.log(2.0 * math.pi))


def _log_wishart(d: int, m: float, sigma2: float) -> float:
    return -0.5 * m * d * math.log(2.0 * sigma2) - float(multigammaln(0.5 * m, d))


def _one_dimension(
    u: Array,
    gradient: Array,
    hessian: Array,
    log_p: LogDensity,
    ends: tuple[float, float],
    guard: float,
) -> Array:
    """The integral over s, on the part of its range where a = −J' − s u is within reach."""
    if guard == 0.0:
        s = -gradient / u
        inside = (s > ends[0]) & (s < ends[1])
        safe = np.where(inside, s, 0.5 * (ends[0] + ends[1]))
        return np.where(inside, np.exp(log_p(safe)) * (hessian + safe) / np.abs(u), 0.0)
    one, other = (-gradient - REACH * guard) / u, (-gradient + REACH * guard) / u
    low = np.clip(np.minimum(one, other), *ends)
    high = np.clip(np.maximum(one, other), *ends)
    total = np.zeros_like(u)
    for point, weight in zip(*ALONG, strict=True):
        s = np.maximum(low + 0.5 * (high - low) * (point + 1.0), 1e-300)
        a = (-gradient - s * u) / guard
        p = np.exp(log_p(s) + _log_normal(a)) / guard
        total += 0.5 * (high - low) * weight * p * (hessian + s)
    return np.asarray(total)


def _linear(u: Array, gradient: Array, hessian: Array, ridge: float, guard: float) -> Array:
    """S = μI: a is known from u."""
    d = u.shape[1]
    a = -(gradient + ridge * u) / guard
    log_p = np.sum(_log_normal(a), axis=1) - d * math.log(guard)
    return np.asarray(np.exp(log_p) * np.linalg.det(hessian + ridge * np.eye(d)))


def _two_dimensions(
    u: Array, gradient: Array, hessian: Array, sigma2: float, m: float, guard: float
) -> Array:
    """Closed in t, and in the part of the guard across u."""
    r = np.linalg.norm(u, axis=1)
    e, v = u / r[:, None], np.stack([-u[:, 1], u[:, 0]], axis=1) / r[:, None]
    H = tuple(np.einsum("ni,nij,nj->n", p, hessian, q) for p, q in ((e, e), (e, v), (v, v)))
    w1, w2 = -np.einsum("ni,ni->n", gradient, e), -np.einsum("ni,ni->n", gradient, v)
    if guard == 0.0:
        safe = np.where(w1 > 0.0, w1, 1.0)
        p = _fibre(safe, w2, w2**2, r, H, sigma2, m)
        left = np.exp(-(w2**2) / (2.0 * sigma2 * r * safe))
        return np.where(w1 > 0.0, left * p, 0.0)
    # W = w − a has W1 > 0 left to integrate; W2 ~ N(w2, s_a²) meets exp(−W2²/(2σ² r W1)).
    ends = [sigma2 * r * end for end in _range(m)]
    low, high = (np.clip(w1 + side * REACH * guard, *ends) for side in (-1.0, 1.0))
    total, live = np.zeros(len(r)), high > low
    if live.any():
        H = tuple(part[live] for part in H)
        low, high, w1, w2, r = (part[live] for part in (low, high, w1, w2, r))
        total[live] = _across(low, high, w1, w2, r, H, sigma2, m, guard)
    return total


def _across(
    low: Array,
    high: Array,
    w1: Array,
    w2: Array,
    r: Array,
    H: tuple[Array, ...],
    sigma2: float,
    m: float,
    guard: float,
) -> Array:
    """The integral over W1 from low to high, closed in W2."""
    total = np.zeros_like(r)
    for point, weight in zip(*ACROSS, strict=True):
        W1 = low + 0.5 * (high - low) * (point + 1.0)
        p1 = np.exp(_log_normal((W1 - w1) / guard)) / guard
        V = sigma2 * r * W1
        variance = 1.0 / (1.0 / V + 1.0 / guard**2)
        mean = variance * w2 / guard**2
        norm = np.sqrt(variance / guard**2) * np.exp(-0.5 * w2**2 / (V + guard**2))
        across = norm * _fibre(W1, mean, mean**2 + variance, r, H, sigma2, m)
        total += 0.5 * (high - low) * weight * p1 * across
    return np.asarray(total)


def _fibre(
    W1: Array, W2: Array, W2_squared: Array, r: Array, H: tuple[Array, ...], sigma2: float, m: float
) -> Array:
    """|u|⁻² ∫ p_S det(∇²J + S) dt given W1 and two moments of W2, without exp(−W2²/(2σ² r W1))."""
    H11, H12, H22 = H
    k = 0.5 * (m - 3.0)
    S11, S12 = W1 / r, W2 / r
    # S22 = W2²/(r W1) + t; det(H + S) = (H11+S11)(H22+S22) − (H12+S12)².
    constant = (
        (H11 + S11) * (H22 + W2_squared / (r * W1)) - H12**2 - 2.0 * H12 * S12 - W2_squared / r**2
    )
    b = 2.0 * sigma2
    exponent = -S11 / b + k * np.log(S11) + _log_wishart(2, m, sigma2)
    moments = constant * np.exp(gammaln(k + 1) + (k + 1) * np.log(b))
    moments = moments + (H11 + S11) * np.exp(gammaln(k + 2) + (k + 2) * np.log(b))
    return np.asarray(np.exp(exponent) * moments / r**2)
