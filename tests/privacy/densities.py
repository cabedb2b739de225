"""Output densities of the perturbed problem in one and two dimensions, for the tests.

A data set is known by the gradient and the Hessian of its objective J at the points u (anchor 0).
The output u solves ∇J(u) + S u + a = 0, S = σ² W, W ~ Wishart_d(m, I), a ~ N(0, s_a² I). With
w = −(∇J(u) + a) the matrices with S u = w are, for u'w > 0, S = ww'/(u'w) + t vv', t > 0, v a unit
vector orthogonal to u, and

    p(u) = |u|^(−d) E_a ∫ p_S(S) det(∇²J(u) + S) dt        (no t in one dimension).
"""

import numpy as np
from scipy.special import gammaln, multigammaln

GAUSS_POINTS, GAUSS_WEIGHTS = np.polynomial.legendre.leggauss(200)
ACROSS_POINTS, ACROSS_WEIGHTS = np.polynomial.legendre.leggauss(48)


def log_wishart_constant(d, m, sigma2):
    return -0.5 * m * d * np.log(2.0 * sigma2) - multigammaln(0.5 * m, d)


def density_1d(u, gradient, H, *, sigma2, m, guard):
    """p(u) in one dimension; the guard's integral runs over s = S > 0."""
    if guard == 0.0:
        s = -gradient / u
        safe = np.where(s > 0.0, s, 1.0)
        log_p = log_wishart_constant(1, m, sigma2) + (0.5 * m - 1.0) * np.log(safe)
        return np.where(s > 0.0, np.exp(log_p - 0.5 * safe / sigma2) * (H + safe) / abs(u), 0.0)
    top = sigma2 * (m + 12.0 * np.sqrt(2.0 * m) + 40.0)
    s = 0.5 * top * (GAUSS_POINTS + 1.0)
    weight = 0.5 * top * GAUSS_WEIGHTS
    log_p = log_wishart_constant(1, m, sigma2) + (0.5 * m - 1.0) * np.log(s) - 0.5 * s / sigma2
    a = -gradient[:, None] - s * u[:, None]
    p_a = np.exp(-0.5 * (a / guard) ** 2) / (guard * np.sqrt(2.0 * np.pi))
    return (p_a * np.exp(log_p) * (H[:, None] + s)) @ weight


def density_2d(u, gradient, H, *, sigma2, m, guard):
    """p(u) in two dimensions for points u (N, 2): closed in t, and in the guard across u."""
    r = np.linalg.norm(u, axis=1)
    e, v = u / r[:, None], np.stack([-u[:, 1], u[:, 0]], axis=1) / r[:, None]
    H11, H12, H22 = (np.einsum("ni,nij,nj->n", p, H, q) for p, q in ((e, e), (e, v), (v, v)))
    w = -gradient
    w1, w2 = np.einsum("ni,ni->n", w, e), np.einsum("ni,ni->n", w, v)
    args = (r, (H11, H12, H22), sigma2, m)
    if guard == 0.0:
        return np.where(w1 > 0.0, _fibre(np.where(w1 > 0.0, w1, 1.0), w2, w2**2, 1.0, *args), 0.0)
    # W = w − a has W1 > 0 left to integrate; W2 ~ N(w2, s_a²) meets exp(−W2²/(2σ² r W1)).
    low, high = np.maximum(w1 - 9.0 * guard, 0.0), np.maximum(w1 + 9.0 * guard, 1e-12)
    total = np.zeros_like(r)
    for point, weight in zip(ACROSS_POINTS, ACROSS_WEIGHTS, strict=True):
        W1 = low + 0.5 * (high - low) * (point + 1.0)
        p1 = np.exp(-0.5 * ((W1 - w1) / guard) ** 2) / (guard * np.sqrt(2.0 * np.pi))
        V = sigma2 * r * W1
        variance = 1.0 / (1.0 / V + 1.0 / guard**2)
        mean = variance * w2 / guard**2
        norm = np.sqrt(variance / guard**2) * np.exp(-0.5 * w2**2 / (V + guard**2))
        total += (
            0.5 * (high - low) * weight * p1 * _fibre(W1, mean, mean**2 + variance, norm, *args)
        )
    return total


def _fibre(W1, W2, W2_squared, across, r, H, sigma2, m):
    """|u|^−2 ∫ p_S det(H + S) dt given W1 and the first two moments of W2."""
    H11, H12, H22 = H
    k = 0.5 * (m - 3.0)
    S11, S12 = W1 / r, W2 / r
    # S22 = W2²/(r W1) + t; det(H + S) = (H11+S11)(H22+S22) − (H12+S12)².
    constant = (
        (H11 + S11) * (H22 + W2_squared / (r * W1)) - H12**2 - 2.0 * H12 * S12 - W2_squared / r**2
    )
    slope = H11 + S11
    b = 2.0 * sigma2
    exponent = -S11 / b + k * np.log(S11) + log_wishart_constant(2, m, sigma2)
    if np.ndim(across) == 0:
        exponent = exponent - W2_squared / (r * W1) / b
    moments = constant * np.exp(gammaln(k + 1) + (k + 1) * np.log(b))
    moments = moments + slope * np.exp(gammaln(k + 2) + (k + 2) * np.log(b))
    return across * np.exp(exponent) * moments / r**2


def grid_1d(size=40001, reach=30.0):
    """Points u of both signs, logarithmically spaced, and quadrature weights."""
    t = np.linspace(-reach, reach, size)
    weight = np.exp(t) * (t[1] - t[0])
    return np.concatenate([-np.exp(t[::-1]), np.exp(t)]), np.concatenate([weight[::-1], weight])


def grid_2d(radii=300, angles=240, low=-8.0, high=8.0):
    """Polar points and weights, log-spaced in radius."""
    t = np.linspace(low, high, radii)
    phi = (np.arange(angles) + 0.5) * 2.0 * np.pi / angles
    r, angle = np.exp(t)[:, None], phi[None, :]
    u = np.stack([r * np.cos(angle), r * np.sin(angle)], axis=-1).reshape(-1, 2)
    weight = np.broadcast_to(r**2 * (t[1] - t[0]) * (2.0 * np.pi / angles), (radii, angles))
    return u, weight.ravel()


def hockey_stick(p, q, weight, epsilon):
    """∫ (p − e^ε q)₊."""
    return float(weight @ np.maximum(p - np.exp(epsilon) * q, 0.0))
