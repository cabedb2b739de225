"""The only judge of accuracy: rigorous bounds on the gap and the distance to the minimiser.

Let Φ = f + G, G = g + ι_C, with ∇²f ⪰ M ⪰ m I, and let u be a slack-subgradient of G at a point z
of C. For the minimiser p, strong convexity of f and the definition of u give

    Φ(p) ≥ Φ(z) − slack + r'(p − z) + ½ ‖p − z‖²_M,      r = ∇f(z) + u,

and Φ(z) − Φ(p) ≥ ½ ‖z − p‖²_M because p is the minimiser. Hence, with ρ = ‖r‖_{M⁻¹},

    gap ≤ slack + ½ ρ²,      ‖z − p‖_M ≤ ½ (ρ + sqrt(ρ² + 4 slack)),      ‖z − p‖ ≤ ‖z − p‖_M / √m.

Where u is an ε-subgradient at a point z⁺ of C near z, δ = ‖z⁺ − z‖, and ∇²f ⪯ L there, the same
holds for z⁺ with ρ + √L δ for ρ and slack + ½ L δ², because
Φ(z⁺) ≤ f(z) + ∇f(z)'(z⁺ − z) + ½ L δ² + G(z⁺), and z is at most δ farther from p.

That is Theorem 11. u from one splitting step is its Fenchel-Young form, u from a step of length 1/m
with M = m I is its fused form. The theta form bounds Φ(p) from below at θ = prox_{ωg}(x) in place
of z: with r = ∇f(θ) + u_g + u_C, u_g ∈ ∂g(θ) and u_C normal to C at z,

    gap ≤ f(z) + g(z) − [ f(θ) + g(θ) + u_C'(θ − z) − ½ ‖r‖²_{M⁻¹} ],    ‖z − p‖ ≤ sqrt(2 gap / m).

Every bound includes the rounding of the gradient and of u.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.linalg import LinAlgError, cholesky
from scipy.linalg.lapack import dtrtrs

from cvxqop.solve.rest.rest import Candidate
from cvxqop.solve.smooth.quadratic import EPS, Evaluation, Smooth

__all__ = ["Certificate", "Curvature", "certify", "localised", "smallest", "theta_form"]

Array = npt.NDArray[np.float64]

VALUE_ROUNDING = 1e-12
"""Relative rounding of a sum of losses, blocked: a hundred times what was measured."""


@dataclass(frozen=True)
class Certificate:
    """Upper bounds on Φ(z) − min Φ and on the distance ‖z − argmin Φ‖₂."""

    gap: float
    distance: float


@dataclass(frozen=True, eq=False)
class Curvature:
    """A positive definite M below the Hessian of f, with what the bounds need of it.

    Parameters
    ----------
    M : (D, D) array
        Symmetric positive definite; a sparse array is diagonal.
    factor : (D, D) array or None
        Its lower Cholesky factor, where the caller has it.
    """

    M: Any
    factor: Array | None = None

    @cached_property
    def _diagonal(self) -> Array | None:
        """The diagonal of M where that is all there is."""
        return np.asarray(self.M.diagonal()) if sp.issparse(self.M) else None

    @cached_property
    def _factor(self) -> Array:
        if self.factor is not None:
            return np.asfortranarray(self.factor)
        return np.asfortranarray(cholesky(self.M.T, lower=True, check_finite=False))

    @cached_property
    def _rounding(self) -> float:
        """Bounds ‖LL' − M‖₂ for a computed Cholesky factor."""
        return 2.0 * EPS * (len(self.M) + 2) * float(np.trace(self.M))

    @cached_property
    def least(self) -> float:
        """m ≤ λ_min(M), rounded down; 0 if M is singular to working precision."""
        if self._diagonal is not None:
            return max(0.0, float(np.min(self._diagonal)))
        d = len(self.M)
        if not np.all(np.isfinite(self.M)):
            return 0.0
        if d <= 200:
            least = float(np.linalg.eigvalsh(self.M)[0])
            return max(0.0, least - self._rounding)
        # Inverse iteration guesses λ_min; a Cholesky factor of M − 0.8 λ I proves it.
        try:
            _ = self._factor
        except LinAlgError:
            return 0.0
        v = np.ones(d) / np.sqrt(d)
        guess = np.inf
        for _ in range(30):
            half = dtrtrs(self._factor, v, lower=1)[0]
            w = dtrtrs(self._factor, half, lower=1, trans=1)[0]
            size = float(np.linalg.norm(w))
            v = w / size
            if abs(1.0 / size - guess) <= 0.03 / size:
                guess = 1.0 / size
                break
            guess = 1.0 / size
        for share in (0.8, 0.5, 0.2):
            # Symmetric, so the transposed copy is the matrix in LAPACK's own order.
            shifted = self.M.copy(order="C").T
            shifted[np.diag_indices(d)] -= share * guess
            try:
                cholesky(shifted, lower=True, overwrite_a=True, check_finite=False)
            except LinAlgError:
                continue
            return max(0.0, share * guess - self._rounding)
        return max(0.0, float(np.linalg.eigvalsh(self.M)[0]) - self._rounding)

    def dual_norm(self, r: Array) -> float:
        """Upper bound on ‖r‖_{M⁻¹}."""
        if self._diagonal is not None:
            size = float(np.linalg.norm(r / np.sqrt(self._diagonal)))
            return size * (1.0 + (len(r) + 4) * EPS)
        half = dtrtrs(self._factor, r, lower=1)[0]
        size = float(np.sqrt(half @ half))
        # M ⪰ LL' − rounding I, and the triangular solve has an error of the same kind.
        share = 2.0 * self._rounding / self.least if self.least > 0.0 else np.inf
        return size / np.sqrt(1.0 - share) if share < 1.0 else np.inf


def certify(evaluation: Evaluation, candidate: Candidate, curvature: Curvature) -> Certificate:
    """Bounds for ``candidate.point``, at which f was evaluated.

    Parameters
    ----------
    evaluation : Evaluation
        f at ``candidate.point``.
    candidate : Candidate
        A point of C with an ε-subgradient of G.
    curvature : Curvature
        M below ∇²f on the segment to the minimiser.

    Returns
    -------
    Certificate
        Infinite where M is singular to working precision.
    """
    m = curvature.least
    if not (m > 0.0 and np.all(np.isfinite(evaluation.gradient))):
        return Certificate(np.inf, np.inf)
    residual = evaluation.gradient + candidate.subgradient
    rho = curvature.dual_norm(residual) + (evaluation.error + candidate.error) / np.sqrt(m)
    # A point outside C by v gains at most v times the size of the multipliers there.
    pull = float(np.linalg.norm(evaluation.gradient) + np.linalg.norm(candidate.subgradient))
    slack = candidate.slack + 2.0 * candidate.violation * pull
    distance = 0.5 * (rho + np.sqrt(rho * rho + 4.0 * slack)) / np.sqrt(m)
    distance = float(distance) + candidate.violation + candidate.offset
    return Certificate(float(slack + 0.5 * rho * rho), distance)


def theta_form(
    at_z: tuple[Evaluation, float],
    at_theta: tuple[Evaluation, float],
    foot: Array,
    theta: Array,
    u_g: Array,
    normal: Array,
    curvature: Curvature,
) -> Certificate:
    """The theta form for a point z of C: needs f and g at θ as well as at z.

    Parameters
    ----------
    at_z, at_theta : (Evaluation, float)
        f and g at each of the two points.
    foot, theta : (D,) arrays
        A point of C at which ``normal`` is normal to C (it takes the place of z in the product
        with u_C), and prox_{ωg}(x).
    u_g, normal : (D,) arrays
        A subgradient of g at θ, and u_C.
    curvature : Curvature
        M below ∇²f everywhere.
    """
    m = curvature.least
    (f_z, g_z), (f_theta, g_theta) = at_z, at_theta
    if not (m > 0.0 and np.all(np.isfinite(f_theta.gradient))):
        return Certificate(np.inf, np.inf)
    rho = curvature.dual_norm(f_theta.gradient + u_g + normal) + f_theta.error / np.sqrt(m)
    pull = float(normal @ (theta - foot))
    sizes = abs(f_z.value) + abs(f_theta.value) + abs(g_z) + abs(g_theta) + abs(pull)
    gap = f_z.value + g_z - f_theta.value - g_theta - pull + 0.5 * rho * rho
    # Parts of f may cancel in its value; the error of its gradient knows their size.
    parts = (f_z.error + f_theta.error) * float(np.linalg.norm(foot) + np.linalg.norm(theta))
    gap = max(gap, 0.0) + VALUE_ROUNDING * sizes + 4.0 * parts
    return Certificate(float(gap), float(np.sqrt(2.0 * gap / m)))


def smallest(*certificates: Certificate) -> Certificate:
    """The smallest of several bounds on the same point, gap and distance apart."""
    return Certificate(
        min(certificate.gap for certificate in certificates),
        min(certificate.distance for certificate in certificates),
    )


def localised(
    smooth: Smooth, candidate: Candidate, evaluation: Evaluation, first: Certificate
) -> Certificate:
    """A tighter certificate from one that is finite, at the price of two Hessians.

    The first bound confines the minimiser to a ball around the point; the least Hessian of f over
    that ball takes the place of M.
    """
    best = first
    for _ in range(2):
        if not np.isfinite(best.distance):
            break
        local = Curvature(smooth.hessian(candidate.point, best.distance))
        found = certify(evaluation, candidate, local)
        best = smallest(best, found)
    return best
