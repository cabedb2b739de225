"""The Wishart ensemble: exact privacy profiles (Theorems 3 to 5), calibration, draws.

S = σ² W with W ~ Wishart_d(m, I). A record with a rank-one Hessian of size at most L meets W only
through h = 1/(x'W⁻¹x) ~ χ²_ν, ν = m − d + 1 (Lemma 1), so that with c = L/σ² and k = ν/2 − 1 the
privacy loss of one record is

    ADD     Z(h) = −(k + j) log(1 − c/h) − c/2  for h > c, and ∞ otherwise
    REMOVE  Z(h) = c/2 − k log(1 + c/h)                                       (j = 0)
            Z(h) = max{ log(1 + c/h), c/2 − k log(1 + c/h) }                  (j = 1)

with j = 0 for quadratic losses (Theorem 3; Theorem 4 for replace_one) and j = 1 for others
(Theorem 5). The profile is E[δ_G(ε − Z(h); μ)], μ the
Gaussian mechanisms composed with it (linear guard, release).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy.special import gammaincinv

from cvxqop.errors import CalibrationError
from cvxqop.privacy.accounting.profile import check_privacy, gaussian_mu
from cvxqop.privacy.accounting.quadrature import converged
from cvxqop.privacy.accounting.root import increasing_root
from cvxqop.privacy.noise import Noise, strictly_lower
from cvxqop.privacy.wishart.loss import Direction, Loss, one_sided, replace_quadratic

__all__ = ["Adjacency", "calibrate", "profile", "sample_factor"]

Array = npt.NDArray[np.float64]
Adjacency = Literal["replace_one", "add_remove"]

REPLACE_TOLERANCE = 1e-9
"""Relative error that the double integrals of replace_one aim at; it is added to them."""


def _evaluate(
    epsilon: Array,
    c: float,
    nu: float,
    mu: float,
    kind: Literal["add", "remove", "replace"],
    quadratic: bool,
    nodes: int,
) -> Array:
    """The profile at an array of ε by a rule with a given number of nodes; not rounded."""
    full = np.full_like(epsilon, 1.0)
    if kind == "replace":
        return replace_quadratic(epsilon, c * full, nu * full, mu * full, nodes)
    loss = Loss(kind, quadratic, c * full, nu * full, positive=not quadratic)
    return one_sided(loss, epsilon, mu * full, nodes)


def profile(
    epsilon: npt.ArrayLike,
    c: float,
    nu: float,
    *,
    adjacency: Adjacency = "replace_one",
    quadratic: bool = True,
    direction: Direction | None = None,
    mu: float = 0.0,
) -> Array:
    """Privacy profile δ(ε) of quadratic objective perturbation with a Wishart matrix.

    ``add_remove``: δ(ε) = max over the two directions of E[δ_G(ε − Z(h); μ)], h ~ χ²_ν, with Z as
    at the head of this module. ``replace_one``: for quadratic losses
    E[δ_G(ε − max(0, Z_rem(B)) − max(0, Z_add(h)); μ)] with independent B ~ χ²_{ν+1}, h ~ χ²_ν; for
    others the smallest δ_rem(ε₁) + e^{ε₁} δ_add(ε − ε₁) found over 0 ≤ ε₁ ≤ ε (any ε₁ is valid).

    Parameters
    ----------
    epsilon : array_like of float
        Privacy parameters ε ≥ 0 (any real for one direction of a quadratic loss).
    c : float
        L/σ² > 0: smoothness of one record over the scale of the Wishart matrix.
    nu : float
        ν = m − d + 1 > 2, real.
    adjacency : {"replace_one", "add_remove"}
        What neighbouring data sets are.
    quadratic : bool
        True for quadratic losses (j = 0), False for other GLM losses (j = 1).
    direction : {"add", "remove"}, optional
        One side of ``add_remove`` alone.
    mu : float
        Guard and release together: (μ_a² + μ_rel²)^½; for ``replace_one`` with a loss that is not
        quadratic, that of one hop.

    Returns
    -------
    ndarray
        δ, shaped as ``epsilon``, rounded up by its quadrature error (about 1e-11 relative).

    Raises
    ------
    ValueError
        If c, ν or μ is out of range, or ``direction`` is given with ``replace_one``.

    Notes
    -----
    Theory §3. The smoothness, the bound on the gradient at the anchor and the choice of σ² enter
    through c and μ only, none of which may depend on records.

    Examples
    --------
    >>> float(profile(1.0, 1.0, 8, adjacency="add_remove")).__round__(9)
    0.018478047
    """
    if not (c > 0.0 and nu > 2.0 and mu >= 0.0):
        raise ValueError(f"profile needs c > 0, nu > 2 and mu >= 0, got {c!r}, {nu!r}, {mu!r}.")
    eps = np.atleast_1d(np.asarray(epsilon, dtype=np.float64))
    flat = eps.ravel()
    if adjacency == "replace_one":
        if direction is not None:
            raise ValueError("direction belongs to adjacency='add_remove'.")
        if quadratic:
            delta = converged(
                lambda n: _evaluate(flat, c, nu, mu, "replace", True, n), 10, REPLACE_TOLERANCE
            )
        else:
            delta = np.array(
                [_two_hops(e, lambda x, to: _side(x, c, nu, mu, to, False)) for e in flat]
            )
    else:
        sides: tuple[Direction, ...] = (direction,) if direction else ("add", "remove")
        delta = np.max([_side(flat, c, nu, mu, side, quadratic) for side in sides], axis=0)
    return np.asarray(delta.reshape(np.shape(epsilon)))


def _side(eps: Array, c: float, nu: float, mu: float, side: Direction, quadratic: bool) -> Array:
    return converged(lambda n: _evaluate(eps, c, nu, mu, side, quadratic, n))


def _two_hops(epsilon: float, side: Callable[[Array, Direction], Array]) -> float:
    """min over ε₁ of δ_rem(ε₁) + e^{ε₁} δ_add(ε − ε₁), by rounds of a shrinking grid."""
    grid = epsilon * np.linspace(0.0, 1.0, 13)
    if epsilon > 20.0:  # the best ε₁ stays bounded as ε grows
        grid = np.sort(np.concatenate([grid, np.linspace(0.0, 20.0, 13)]))
    best = 1.0
    for _ in range(4):
        removed, added = side(grid, "remove"), side(epsilon - grid, "add")
        with np.errstate(over="ignore"):
            total = removed + np.exp(grid) * np.maximum(added, 1e-320)
        at = int(total.argmin())
        best = min(best, float(total[at]))
        grid = np.linspace(grid[max(at - 1, 0)], grid[min(at + 1, len(grid) - 1)], 7)
    return best


def calibrate(
    epsilon: float,
    delta: float,
    nu: float,
    *,
    adjacency: Adjacency = "replace_one",
    quadratic: bool = True,
    mu: float = 0.0,
    guess: float | None = None,
) -> float:
    """Smallest σ²/L for which the Wishart mechanism is (ε, δ)-differentially private.

    Solves δ(ε; c) = δ for c = L/σ², in which the profile increases, and returns 1/c rounded up.

    Parameters
    ----------
    epsilon, delta : float
        0 < ε ≤ 10⁶ and 10⁻³⁰⁰ ≤ δ < ½.
    nu : float
        ν = m − d + 1, in (2, 10⁶].
    adjacency, quadratic, mu
        As in :func:`profile`; μ is the share of guard and release.
    guess : float, optional
        An approximation to L/σ², which saves time where it is good.

    Returns
    -------
    float
        σ²/L.

    Raises
    ------
    CalibrationError
        If (ε, δ) or ν is out of range, or the guard and release alone spend δ at ε.

    Notes
    -----
    Theory §3. The result is verified: :func:`profile` at 1/σ² is at most δ.

    Examples
    --------
    >>> round(calibrate(0.5, 0.01, 101, adjacency="add_remove"), 6)
    0.260935
    """
    check_privacy(epsilon, delta)
    if not 2.0 < nu <= 1e6:
        raise CalibrationError(f"nu = m − d + 1 must lie in (2, 1e6], got {nu!r}.")

    def log_excess(log_c: float) -> float:
        """log δ(ε)/δ by a fast rule, to find c; the verified profile has the last word."""
        value = _fast(epsilon, float(np.exp(log_c)), nu, adjacency, quadratic, mu)
        return float(np.log(max(value, 1e-320) / delta))

    high = _largest(delta, nu)
    found, slope = increasing_root(log_excess, *_start(epsilon, delta, nu, guess), high=high)
    if found is None:
        raise CalibrationError(
            f"The guard and the release alone spend delta = {delta!r} at epsilon = {epsilon!r}: "
            f"lower their share mu = {mu!r}."
        )
    rounded = REPLACE_TOLERANCE if adjacency == "replace_one" and quadratic else 0.0
    slope = max(slope, 1.0)
    root = min(found - (rounded + 5e-10) / slope, high)
    before = root, 0.0
    for attempt in range(31):
        c = float(np.exp(root))
        delta_c = profile(epsilon, c, nu, adjacency=adjacency, quadratic=quadratic, mu=mu)
        gap = float(np.log(max(float(delta_c), 1e-320) / delta))
        if gap <= -1e-10 and (gap > -1.5e-9 or root >= high or attempt > 7):
            return float(np.exp(-root)) * (1.0 + 1e-15)
        if 0 < attempt <= 7 and abs(gap - before[1]) > 1e-12:
            slope = max(1.0, (gap - before[1]) / (root - before[0]))
        before = root, gap
        step = (gap + 5e-10) / slope
        if attempt > 7:  # the profile is too rough for the secant: retreat faster and faster
            step = max(step, 1e-10 * 4.0 ** (attempt - 7))
        root = min(root - step, high)
    raise CalibrationError("The calibration did not settle. Please report this as a bug.")


def _largest(delta: float, nu: float) -> float:
    """log of the c with P(h ≤ c) = δ, which the root never passes and comes to as ε grows."""
    quantile = 2.0 * float(gammaincinv(0.5 * nu, delta))
    if quantile < 1e-6:
        raise CalibrationError(
            f"nu = {nu!r} is too small for delta = {delta!r}: the smallest eigenvalue would need a "
            "scale above 1e6 times the smoothness. Take more degrees of freedom."
        )
    return float(np.log(quantile))


def _start(epsilon: float, delta: float, nu: float, guess: float | None) -> tuple[float, float]:
    """log c to start from, and a first step: from the guess, or from somewhat below the Gaussian
    limit c = μ_S sqrt(2ν)."""
    if guess is not None and guess > 0.0:
        return float(np.log(guess)), 0.03
    return float(np.log(gaussian_mu(epsilon, delta) * np.sqrt(2.0 * nu))) - 0.3, 0.4


def _fast(
    epsilon: float, c: float, nu: float, adjacency: Adjacency, quadratic: bool, mu: float
) -> float:
    """The profile by one rule of moderate order, not rounded."""

    def side(eps: Array, to: Direction, nodes: int = 10) -> Array:
        return _evaluate(eps, c, nu, mu, to, quadratic, nodes)

    eps = np.array([epsilon])
    if adjacency == "add_remove":
        return float(max(side(eps, "add", 16)[0], side(eps, "remove", 16)[0]))
    if quadratic:
        return float(_evaluate(eps, c, nu, mu, "replace", True, 10)[0])
    return _two_hops(epsilon, side)


def sample_factor(noise: Noise, dimension: int, degrees_of_freedom: float) -> Array:
    """Lower triangular T with TT' ~ Wishart_d(m, I), by Bartlett's decomposition.

    T_ii² ~ χ²_{m−i+1} (i = 1…d) and T_ij ~ N(0, 1) for i > j, all independent; m may be real.

    Parameters
    ----------
    noise : Noise
        The source of randomness of this release.
    dimension : int
        d ≥ 1.
    degrees_of_freedom : float
        m > d − 1.

    Returns
    -------
    ndarray, shape (d, d)

    Examples
    --------
    >>> from cvxqop.privacy.noise import SecureNoise
    >>> factor = sample_factor(SecureNoise(), 3, 7.5)
    >>> bool(np.all(np.linalg.eigvalsh(factor @ factor.T) > 0))
    True
    """
    factor = strictly_lower(noise, dimension)
    np.fill_diagonal(factor, np.sqrt(noise.chisquare(degrees_of_freedom - np.arange(dimension))))
    return factor
