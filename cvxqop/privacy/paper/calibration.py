"""From (ε, δ) to the paper's mechanism: shares of the budget, degrees of freedom, noise."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize

from cvxqop.errors import CalibrationError, OptionError
from cvxqop.privacy.accounting.profile import check_privacy
from cvxqop.privacy.mechanism import Sensitivity
from cvxqop.privacy.paper import profile as paper
from cvxqop.privacy.paper.calibrated import CalibratedPaper
from cvxqop.privacy.release import GaussianRelease

__all__ = ["calibrate_paper", "checked_split"]

Array = npt.NDArray[np.float64]

LEAST_SHARE = 0.01
"""No share that is needed is chosen smaller: what it would save is one percent."""
UP = 1.0 + 2.0**-40
"""Factor on σ̃, so that rounding never leaves it too small."""


def checked_split(name: str, shares: Sequence[float], parts: int) -> tuple[float, ...]:
    """Fractions of ε or δ as a caller gave them; those left out at the end are 0.

    Raises
    ------
    OptionError
        If they are no numbers between 0 and 1, or do not add up to 1.

    Examples
    --------
    >>> checked_split("epsilon_shares", [1.0], 2)
    (1.0, 0.0)
    """
    try:
        values = tuple(float(share) for share in shares)
    except (TypeError, ValueError):
        values = ()
    if not 1 <= len(values) <= parts or not all(0.0 <= share <= 1.0 for share in values):
        raise OptionError(f"Wishart: {name} must be up to {parts} numbers between 0 and 1.")
    if abs(math.fsum(values) - 1.0) > 1e-9:
        raise OptionError(f"Wishart: {name} must add up to 1, not to {math.fsum(values):g}.")
    return values + (0.0,) * (parts - len(values))


def calibrate_paper(
    epsilon: float,
    delta: float,
    sensitivity: Sensitivity,
    *,
    radius: float = 1.0,
    accuracy: float | None = None,
    degrees_of_freedom: float | None = None,
    epsilon_shares: tuple[float, ...] | None = None,
    delta_shares: tuple[float, ...] | None = None,
) -> CalibratedPaper:
    """The paper's constants within (ε, δ), at the best m and shares that a search finds.

    The search minimises ½σ²m (D0² + d σ̃²), the bound of Theorem 13 and what the release adds under
    the mean curvature of S, over whatever the caller leaves free. All of it is data-free.

    Parameters
    ----------
    epsilon, delta, sensitivity, radius, accuracy
        As in :meth:`cvxqop.privacy.wishart.options.Wishart.calibrate`.
    degrees_of_freedom : float, optional
        m.
    epsilon_shares, delta_shares : tuple of float, optional
        Fractions of ε for (ε1, ε2) and of δ for (δ1, …, δ4); what is not needed falls to the others
        in proportion.

    Raises
    ------
    CalibrationError
        If no common minimiser is known, a quadratic form would be seen that the theorem does not
        cover, ε2 > 1, a share that is needed is 0, or m or the rank is out of range.

    Examples
    --------
    >>> bounds = Sensitivity(
    ...     dimension=10, smoothness=1.0, anchor_gradient=0.0, quadratic=True,
    ...     adjacency="replace_one",
    ... )
    >>> mechanism = calibrate_paper(1.0, 1e-6, bounds)
    >>> mechanism.epsilons[1], mechanism.deltas[1], mechanism.deltas[3]
    (0.0, 0.0, 0.0)
    >>> mechanism.mean_curvature < 1000
    True
    """
    check_privacy(epsilon, delta)
    s = sensitivity
    eta = _anchor_error(s)
    _check_route(s, eta, accuracy)
    released = accuracy is not None
    needed_epsilons = (True, released)
    needed_deltas = (True, released, True, eta > 0.0)
    fixed = (
        _needed("epsilon_shares", epsilon_shares, needed_epsilons),
        _needed("delta_shares", delta_shares, needed_deltas),
    )

    def at(point: Array) -> CalibratedPaper:
        values = iter(point)
        m = degrees_of_freedom
        if m is None:
            m = s.dimension + 1.0 + math.ceil((s.dimension + 1.0) * math.exp(next(values)))
        chosen = [
            share or _softmax(needed, values)
            for share, needed in zip(fixed, (needed_epsilons, needed_deltas), strict=True)
        ]
        second = chosen[0][1] * epsilon
        if fixed[0] is None:
            second = min(second, 1.0)
        epsilons = (math.nextafter(epsilon - second, 0.0), second)
        return _assembled(s, m, epsilons, _parts(delta, chosen[1]), eta, accuracy)

    def log_risk(point: Array) -> float:
        try:
            found = at(point)
        except (CalibrationError, OverflowError, FloatingPointError):
            return 1e4
        noise = found.release.scale if found.release else 0.0
        spread = radius**2 + s.dimension * noise**2
        risk = found.mean_curvature * spread
        return math.log(risk) if 0.0 < risk < math.inf else 1e4

    free = degrees_of_freedom is None
    start = [0.5] if free else []
    start += [0.0] * sum(
        sum(needed) - 1
        for share, needed in zip(fixed, (needed_epsilons, needed_deltas), strict=True)
        if share is None
    )
    best = np.array(start)
    for size in (1.0, -0.5) if start else ():
        simplex = np.vstack([best, best + size * np.eye(len(best))])
        options = {"initial_simplex": simplex, "maxfev": 150, "xatol": 1e-2, "fatol": 1e-5}
        best = minimize(log_risk, best, method="Nelder-Mead", options=options).x
    return at(best)


def _anchor_error(s: Sensitivity) -> float:
    if s.anchor_gradient == 0.0:
        return 0.0
    if s.anchor_error is None:
        raise CalibrationError(
            "Wishart: calibration='paper' rests on a theorem that assumes a public point which "
            "minimises the loss of every record that could occur, and here a record may have a "
            "gradient at the anchor. State anchor=CommonMinimizer(theta, error=…) if there is "
            "such a point, or take calibration='exact', which needs none."
        )
    return s.anchor_error


def _check_route(s: Sensitivity, eta: float, accuracy: float | None) -> None:
    if not 1 <= s.hessian_rank <= s.dimension:
        raise CalibrationError(
            f"hessian_rank = {s.hessian_rank} must lie between 1 and the dimension {s.dimension}."
        )
    if accuracy is not None:
        return
    if eta > 0.0:
        raise CalibrationError(
            "Wishart: calibration='paper' with an anchor that may be off by eta > 0 makes the "
            "released solution private, not the perturbed quadratic form, whose gradient bears no "
            "noise. Use privatize on the whole problem, CommonMinimizer(error=0), or "
            "calibration='exact'."
        )
    if s.hessian_rank > 1:
        raise CalibrationError(
            "Wishart: calibration='paper' covers the quadratic form of a squared loss for records "
            "of one row only. Use calibration='exact' or perturbation='gaussian'."
        )


def _needed(
    name: str, shares: tuple[float, ...] | None, needed: tuple[bool, ...]
) -> tuple[float, ...] | None:
    """Shares as given, those that are not needed handed to the others."""
    if shares is None:
        return None
    kept = [share if use else 0.0 for share, use in zip(shares, needed, strict=True)]
    for number, (share, use) in enumerate(zip(kept, needed, strict=True), start=1):
        if use and not share > 0.0:
            raise CalibrationError(f"Wishart: {name}: part {number} is needed and must exceed 0.")
    total = math.fsum(kept)
    return tuple(share / total for share in kept)


def _softmax(needed: tuple[bool, ...], values: Iterator[float]) -> tuple[float, ...]:
    """Shares of the needed parts, none below LEAST_SHARE, from one number less than parts."""
    logits = [0.0, *(min(max(next(values), -30.0), 30.0) for _ in range(sum(needed) - 1))]
    weights = np.exp(np.array(logits))
    weights = LEAST_SHARE + (1.0 - LEAST_SHARE * len(logits)) * weights / weights.sum()
    spread = iter(weights)
    return tuple(float(next(spread)) if use else 0.0 for use in needed)


def _parts(total: float, shares: Sequence[float]) -> tuple[float, float, float, float]:
    """The parts of δ, rounded down so that their sum does not exceed it."""
    one, two, three, four = (share * total * (1.0 - 2.0**-49) for share in shares)
    return one, two, three, four


def _assembled(
    s: Sensitivity,
    m: float,
    epsilons: tuple[float, float],
    deltas: tuple[float, float, float, float],
    eta: float,
    accuracy: float | None,
) -> CalibratedPaper:
    """The mechanism at one m and one split: τ from Δ, σ̃ rounded up."""
    if not epsilons[1] <= 1.0:
        raise CalibrationError(
            f"Wishart: epsilon2 = {epsilons[1]:g} must not exceed 1, where the classical Gaussian "
            "mechanism holds: lower its part of epsilon_shares."
        )
    try:
        constants = paper.calibrate(
            smoothness=s.smoothness, hessian_rank=s.hessian_rank, d=s.dimension, m=m,
            epsilon1=epsilons[0], epsilon2=epsilons[1], delta1=deltas[0], delta2=deltas[1],
            delta3=deltas[2], delta4=deltas[3], tau=0.0, eta=eta,
        )  # fmt: skip
    except OptionError as error:
        raise CalibrationError(f"Wishart: {error}") from None
    sigma2 = math.nextafter(constants.sigma2, math.inf)
    tau, distance, release = 0.0, 0.0, None
    if accuracy is not None:
        tau = 0.5 * constants.alpha * sigma2 * accuracy**2
        beta = constants.beta
        if eta > 0.0:  # m real, and λ_max(W) ≤ β − c on one side: the paper's β is ample but for c
            least = math.sqrt(2.0 * math.log(1.0 / deltas[3])) + math.sqrt(math.ceil(m))
            least = (least + math.sqrt(s.dimension)) ** 2 + s.smoothness / sigma2
            beta = max(beta, least * (1.0 + 1e-12))
        distance = accuracy + (beta * eta / constants.alpha if eta > 0.0 else 0.0)
        factor = 2.0 / epsilons[1] * math.sqrt(2.0 * math.log(1.25 / deltas[1]))
        release = GaussianRelease(accuracy, factor * distance * UP)
        constants = replace(constants, beta=beta, sigma_tilde=release.scale)
    return CalibratedPaper(
        sensitivity=s,
        sigma2=sigma2,
        degrees_of_freedom=m,
        guard_scale=0.0,
        release=release,
        constants=constants,
        epsilons=epsilons,
        deltas=deltas,
        tau=tau,
        eta=eta,
        distance=distance,
    )
