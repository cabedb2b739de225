"""The constants of Cortild and Cartis 2026, Quadratic Objective Perturbation, as they state them.

Kept for comparison and for calibration "paper" (Theorem 12, the halves in place). With
q = (m − d + 1)/2 and D Γ(q) of Edelman's bound on the smallest eigenvalue,

    D Γ(q) P(q, α/2) = δ3,      D Γ(q) [P(q, (α + α1)/2) − P(q, α/2)] = δ1 (1 − δ3),
    σ² = max{ (2L/ε1) (f2 + 4(ρ + 1)/α), 2L/α1 },      f2 = (m − d + 1)/α + 1,
    β = ( √(2 log(2/(δ4 (1 − δ3)))) + √m + √d )²,
    σ̃ = (2/ε2) √(2 log(1.25/δ2)) ( √(2τ/(ασ²)) + βη/α ).

Everything is computed in logarithms, so that it holds at any d.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from scipy.special import gammaln

from cvxqop.errors import CalibrationError, OptionError
from cvxqop.privacy.accounting.quadrature import gauss_legendre
from cvxqop.privacy.accounting.smallest_eigenvalue import (
    edelman_log_constant,
    log_lower_gamma,
    lower_gamma_quantile,
)

__all__ = ["PaperConstants", "calibrate"]


@dataclass(frozen=True)
class PaperConstants:
    """What the paper's theorem asks for. All numbers are public.

    Attributes
    ----------
    alpha, alpha1 : float
        α, α1: λ_min(W) ≥ α but for δ3, and ≥ α + α1 but for δ1 more.
    beta : float
        β ≥ λ_max(W) but for δ4; ∞ if δ4 = 0.
    sigma2 : float
        σ² of S = σ² W.
    sigma_tilde : float
        σ̃, the standard deviation of the noise added to the answer; 0 if τ = η = 0.
    epsilon, delta : float
        ε1 + ε2 and δ1 + δ2 + δ3 + δ4.
    as_published : bool
        True for the numbers of the authors' published code, which leaves out the two halves in
        the equation of α1: for comparison only, no mechanism may use them.
    """

    alpha: float
    alpha1: float
    beta: float
    sigma2: float
    sigma_tilde: float
    epsilon: float
    delta: float
    as_published: bool

    def require_usable(self) -> None:
        """Refuse the numbers of the published code.

        Raises
        ------
        CalibrationError
            If ``as_published``.
        """
        if self.as_published:
            raise CalibrationError(
                "These constants repeat the published code, which omits the halves in the "
                "equation of alpha1; they are for comparison and carry no guarantee. Use "
                "as_published=False."
            )


def calibrate(
    *,
    smoothness: float,
    hessian_rank: int,
    d: int,
    m: float,
    epsilon1: float,
    epsilon2: float,
    delta1: float,
    delta2: float,
    delta3: float,
    delta4: float,
    tau: float,
    eta: float,
    as_published: bool = False,
) -> PaperConstants:
    """The paper's constants for one split of the budget.

    Parameters
    ----------
    smoothness : float
        L.
    hessian_rank : int
        ρ, from 1 to d.
    d : int
        Dimension of θ.
    m : float
        Degrees of freedom, above d + 1.
    epsilon1, epsilon2 : float
        ε1 > 0 for the perturbation, 0 ≤ ε2 ≤ 1 for the release (the classical Gaussian mechanism
        holds up to 1 only); ε2 > 0 where there is a release.
    delta1, delta2, delta3, delta4 : float
        δ1, δ3 > 0 for the perturbation; δ2, δ4 for the release, δ4 where η > 0.
    tau : float
        τ ≥ 0, gap of the objective that the solver is trusted to reach.
    eta : float
        η ≥ 0, distance of the anchor from a common minimiser of every record.
    as_published : bool
        Repeat the published code: α1 without the two halves.

    Returns
    -------
    PaperConstants

    Raises
    ------
    OptionError
        Naming the argument that is out of range.

    Notes
    -----
    Theory §7. Cortild and Cartis 2026, arXiv:2605.05905.

    Examples
    --------
    >>> constants = calibrate(
    ...     smoothness=1.0, hessian_rank=1, d=100, m=200, epsilon1=0.5, epsilon2=0.0, delta1=0.005,
    ...     delta2=0.0, delta3=0.005, delta4=0.0, tau=0.0, eta=0.0,
    ... )
    >>> round(constants.sigma2, 6)
    47.791582
    """
    _check(
        smoothness, hessian_rank, d, m, (epsilon1, epsilon2), (delta1, delta2, delta3, delta4),
        tau, eta,
    )  # fmt: skip
    q, constant = 0.5 * (m - d + 1.0), edelman_log_constant(d, m)
    alpha = 2.0 * lower_gamma_quantile(q, math.log(delta3) - constant)
    rest = math.log(delta1) + math.log1p(-delta3) - constant
    alpha1 = _increment(q, alpha, rest) if as_published else 2.0 * _increment(q, 0.5 * alpha, rest)
    f2 = (m - d + 1.0) / alpha + 1.0
    sigma2 = smoothness * max(
        2.0 / epsilon1 * (f2 + 4.0 * (hessian_rank + 1.0) / alpha), 2.0 / alpha1
    )
    beta = math.inf
    if delta4 > 0.0:
        tail = math.sqrt(2.0 * (math.log(2.0 / delta4) - math.log1p(-delta3)))
        beta = (tail + math.sqrt(m) + math.sqrt(d)) ** 2
    sigma_tilde = 0.0
    if tau > 0.0 or eta > 0.0:
        distance = math.sqrt(2.0 * tau / (alpha * sigma2)) + (beta * eta / alpha if eta else 0.0)
        sigma_tilde = 2.0 / epsilon2 * math.sqrt(2.0 * math.log(1.25 / delta2)) * distance
    return PaperConstants(
        alpha=alpha,
        alpha1=alpha1,
        beta=beta,
        sigma2=sigma2,
        sigma_tilde=sigma_tilde,
        epsilon=epsilon1 + epsilon2,
        delta=math.fsum((delta1, delta2, delta3, delta4)),
        as_published=as_published,
    )


def _check(
    smoothness: float,
    hessian_rank: int,
    d: int,
    m: float,
    epsilons: tuple[float, float],
    deltas: tuple[float, float, float, float],
    tau: float,
    eta: float,
) -> None:
    """Ranges of the arguments; NaN fails every one of them."""
    released = tau > 0.0 or eta > 0.0
    wrong = [
        (not 0.0 < smoothness < math.inf, "smoothness must be positive and finite"),
        (not (d >= 1 and d == int(d)), "d must be a positive integer"),
        (not (hessian_rank == int(hessian_rank) and 1 <= hessian_rank <= d),
         f"hessian_rank must be an integer from 1 to d = {d}"),
        (not d + 1 < m < math.inf, f"m must exceed d + 1 = {d + 1}"),
        (not 0.0 < epsilons[0] < math.inf, "epsilon1 must be positive"),
        (not 0.0 <= epsilons[1] <= 1.0,
         "epsilon2 must lie in [0, 1], where the classical Gaussian mechanism holds"),
        (not all(0.0 <= x < 1.0 for x in deltas), "delta1 to delta4 must lie in [0, 1)"),
        (not (deltas[0] > 0.0 and deltas[2] > 0.0), "delta1 and delta3 must be positive"),
        (not math.fsum(deltas) < 1.0, "delta1 + delta2 + delta3 + delta4 must be below 1"),
        (not (0.0 <= tau < math.inf and 0.0 <= eta < math.inf),
         "tau and eta must be at least 0 and finite"),
        (released and not (epsilons[1] > 0.0 and deltas[1] > 0.0),
         "tau or eta above 0 needs a release: epsilon2 and delta2 must be positive"),
        (eta > 0.0 and not deltas[3] > 0.0, "eta above 0 needs delta4 above 0"),
    ]  # fmt: skip
    for bad, message in wrong:
        if bad:
            raise OptionError(f"paper.calibrate: {message}.")


def _increment(q: float, x: float, log_target: float) -> float:
    """w with log[P(q, x + w) − P(q, x)] = log_target, to full relative precision for any w."""
    below = log_lower_gamma(q, x)
    total = float(np.logaddexp(below, log_target))
    if total >= 0.0:
        raise CalibrationError("paper.calibrate: delta1 exceeds what the bound can give.")
    if log_target > below:  # w is no small part of x: nothing cancels
        return lower_gamma_quantile(q, total) - x
    density = (q - 1.0) * math.log(x) - x - float(gammaln(q))
    points, weights = gauss_legendre(40)

    def log_difference(log_w: float) -> float:
        """By quadrature of the density, relative to its value at x."""
        t = math.exp(log_w) * points
        ratio = np.exp((q - 1.0) * np.log1p(t / x) - t)
        return density + log_w + math.log(float(weights @ ratio))

    low = high = log_target - density
    while log_difference(low) > log_target:
        low -= 0.5
    while log_difference(high) < log_target:
        high += 0.5
    root = brentq(lambda s: log_difference(s) - log_target, low, high, xtol=1e-15, rtol=1e-15)
    return math.exp(float(root))
