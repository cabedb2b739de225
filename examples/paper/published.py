"""What the authors' published code computes, restated: double precision, its formulas, its steps.

Source: github.com/DanielCortild/QOP-Mechanism (commit 485c710), the code beside Cortild and Cartis
2026, arXiv:2605.05905. It is repeated here with its errors, to be drawn beside what they should
be; nothing here is private. The page `docs/paper.md` lists the errors.
"""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, gamma, gammainc, gammaincinv, softmax

# Figure 1: L, number of records, dimension, D², rank of a record, slope of the regulariser.
L, N, D, SQUARED_DISTANCE, RANK, SLOPE = 1.0, 10, 12, 1.0, 1, 1.0
INEXACT = 1e-3  # τ and η of the right panel

# Figure 2.
RECORDS, DIMENSION, ROW_NORM, STEPS, RUNS, LAMBDA = 300, 100, 5.0, 1000, 10, 1.0
EPSILON, DELTA, ANCHOR_NOISE, THRESHOLD = 0.5, 0.01, 0.1, 10_000.0
KAPPAS = np.logspace(-2, 3, 100)


def alpha_sigma2(smoothness, epsilon1, delta1, delta3, d, m, rank=1):
    """α and σ² in double precision: Γ overflows, and the equation of α1 lacks its two halves."""
    with np.errstate(all="ignore"):
        q = (m - d + 1) / 2
        constant = d * gamma(1.5) * np.float64(gamma((m + 1) / 2))
        constant /= gamma(d / 2 + 1) * gamma(q) * gamma(q + 0.5)
        alpha = 2 * gammaincinv(q, delta3 / constant / gamma(q))
        mass = delta1 * (1 - delta3) / constant + gamma(q) * gammainc(q, alpha)
        alpha1 = gammaincinv(q, mass / gamma(q)) - alpha
        f2 = (m - d + 1) / alpha + 1
        first = 2 * smoothness / epsilon1 * (f2 + 4 * (rank + 1) / alpha)
        return alpha, max(first, 2 * smoothness / alpha1)


def release_noise(alpha, sigma2, epsilon2, delta2, delta3, delta4, d, m, error):
    """σ̃ of the paper for τ = η = error."""
    with np.errstate(all="ignore"):
        beta = (np.sqrt(2 * np.log(2 / (delta4 * (1 - delta3)))) + np.sqrt(m) + np.sqrt(d)) ** 2
        distance = np.sqrt(2 * error / (alpha * sigma2)) + beta * error / alpha
        return 2 / epsilon2 * np.sqrt(2 * np.log(1.25 / delta2)) * distance


def inexact_bound(sigma2, m, noise, error=INEXACT):
    """The paper's bound on the excess risk of an inexact solve, τ = η = error."""
    spread = N * D * L * noise**2 / 2 + SLOPE * np.sqrt(D) * noise
    return spread + error + sigma2 * m * (SQUARED_DISTANCE + error**2)


def optimised_bound(epsilon, delta, exact):
    """One point of figure 1: Nelder and Mead over the shares and m, from the published start."""

    def finite(value):
        return value if np.isfinite(value) else 1e100

    def exact_bound(z):
        delta1, delta3 = delta * softmax(z[:2])
        m = z[2] ** 2 + D + 1
        _, sigma2 = alpha_sigma2(L, epsilon, delta1, delta3, D, m)
        return finite(sigma2 / 2 * m * SQUARED_DISTANCE)

    def bound(z):
        epsilon1 = epsilon * expit(z[0])
        delta1, delta2, delta3, delta4 = delta * softmax(z[1:5])
        m = max(z[5], D)
        alpha, sigma2 = alpha_sigma2(L, epsilon1, delta1, delta3, D, m)
        noise = release_noise(
            alpha, sigma2, epsilon - epsilon1, delta2, delta3, delta4, D, m, INEXACT
        )
        return finite(inexact_bound(sigma2, m, noise))

    start = np.zeros(3 if exact else 6)
    start[-1] = 0.5
    options = {"maxiter": 2000 if exact else 20_000}
    objective = exact_bound if exact else bound
    with np.errstate(all="ignore"):
        return minimize(objective, start, method="Nelder-Mead", options=options).fun


@dataclass(frozen=True)
class Data:
    """Records of figure 2: rows X of norm ξ, y = X θ_true, and the anchor θ_true + noise."""

    X: np.ndarray
    y: np.ndarray
    truth: np.ndarray
    anchor: np.ndarray

    def risk(self, theta):
        """½ mean (x'θ − y)², for each row of ``theta``."""
        return 0.5 * np.mean((theta @ self.X.T - self.y) ** 2, axis=-1)


def records(random, n=RECORDS):
    """Data as the published code draws them."""
    X = random.randn(n, DIMENSION)
    X = ROW_NORM * X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-8)
    truth = random.randn(DIMENSION)
    return Data(X, X @ truth, truth, truth + ANCHOR_NOISE * random.randn(DIMENSION))


@dataclass(frozen=True)
class Comparison:
    """Figure 2 as published: all draws, and where K steps end, (κ, run, coordinate) each."""

    data: Data
    kappas: np.ndarray
    ridge: float
    sigma2: float
    linear: dict
    wishart: np.ndarray
    ends: dict


def comparison(kappas=KAPPAS, runs=RUNS, steps=STEPS, seed=42):
    """LOP, LOP-Clip and QOP as published. With the defaults, draw for draw its random numbers.

    L = dξ², ζ of LOP with rows of norm ξ√d and with max(y), ζ of LOP-Clip at 10⁴ with gradients
    beyond it cut to norm 1, no 2 in front of G, an anchor that knows the truth.
    """
    random = np.random.RandomState(seed)
    data, d, size = records(random), DIMENSION, len(kappas) * runs
    smoothness = d * ROW_NORM**2
    half = DELTA / 2
    sigma2 = alpha_sigma2(smoothness, EPSILON, half, half, d, 2 * d)[1]
    ridge = 2 * smoothness / EPSILON
    noise = np.sqrt(8 * np.log(2 / DELTA) + 4 * EPSILON) / EPSILON
    radius = np.repeat(kappas, runs)[:, None]
    long = ROW_NORM * np.sqrt(d)
    gradient = (radius[:, 0] * np.sqrt(d) * long + data.y.max()) * long

    linear = {name: np.empty((size, d)) for name in ("LOP", "LOP-Clip")}
    wishart = np.empty((size, d, d))
    order = {name: np.empty((size, steps), int) for name in ("LOP", "LOP-Clip", "QOP")}
    for r in range(size):
        for name, bound in (("LOP", gradient[r]), ("LOP-Clip", THRESHOLD)):
            linear[name][r] = random.normal(0, bound * noise, size=d)
            order[name][r] = random.randint(RECORDS, size=steps)
        factor = random.randn(d, 2 * d)
        wishart[r] = factor @ factor.T
        order["QOP"][r] = random.randint(RECORDS, size=steps)
    top = np.linalg.eigvalsh(wishart)[:, -1:]

    def pull(name):
        if name == "QOP":
            return lambda t: sigma2 * np.matmul(wishart, (t - data.anchor)[:, :, None])[:, :, 0]
        return lambda t: ridge * t + linear[name]

    total = RECORDS * smoothness
    ends = {}
    for name in order:
        length = 1 / (total + (sigma2 * top if name == "QOP" else ridge))
        cut = name == "LOP-Clip"
        theta = _walk(data, order[name], pull(name), length, radius, cut)
        ends[name] = theta.reshape(len(kappas), runs, d)
    return Comparison(data, kappas, ridge, sigma2, linear, wishart, ends)


def _walk(data, order, pull, length, radius, cut):
    """The published splitting from 0, one record a step, every run at once."""
    x = np.zeros((len(order), DIMENSION))
    for k in range(order.shape[1]):
        rows, y = data.X[order[:, k]], data.y[order[:, k]]
        theta = np.sign(x) * np.maximum(np.abs(x) - length * LAMBDA, 0)
        gradient = (np.einsum("ij,ij->i", rows, theta) - y)[:, None] * rows
        if cut:
            norm = np.linalg.norm(gradient, axis=1, keepdims=True)
            gradient /= np.where(norm > THRESHOLD, norm, 1.0)
        z = 2 * theta - x - length * (RECORDS * gradient + pull(theta))
        x = x + (k + 1) ** -0.502 * (np.clip(z, -radius, radius) - theta)
    return theta
