"""Regularisers and constraints that have no proximal operator here, or cones of every kind."""

import cvxpy as cp
import numpy as np


def rests(D):
    """Name ↦ (variables, r, C); D is a square number."""
    w, t, u = cp.Variable(D), cp.Variable(D), cp.Variable()
    groups = [list(range(i, min(i + 3, D))) for i in range(0, D - 1, 2)]
    R = np.random.default_rng(5).standard_normal((D, D)) / np.sqrt(D)
    side = round(D**0.5)
    P = cp.Variable((side, side), PSD=True)
    W = cp.Variable((side, side), symmetric=True)
    V = cp.Variable((side, side))
    kinked = cp.maximum(w[0], w[1]) + cp.abs(w[2])
    return {
        "pnorm 1.5": ([w], 30 * cp.pnorm(w, 1.5), []),
        "pnorm 3": ([w], 30 * cp.pnorm(w, 3), []),
        "sum_largest": ([w], 30 * cp.sum_largest(cp.abs(w), 2), []),
        "dotsort": ([w], 3 * cp.dotsort(cp.abs(w), np.arange(D)), []),
        "overlapping groups": ([w], 20 * sum(cp.norm(w[g]) for g in groups), []),
        "tv": ([w], 40 * cp.tv(w), []),
        "log_sum_exp": ([w], 30 * cp.log_sum_exp(w), []),
        "cones of a map": (
            [w],
            5 * cp.quad_form(w, R @ R.T),
            [cp.norm(R @ w) <= 1.0, cp.norm(w - 0.1) <= 1.2],
        ),
        "geo_mean": ([w], 10 * cp.norm1(w), [cp.geo_mean(w[:3]) >= 0.3]),
        "entropy": ([w], -20 * cp.sum(cp.entr(w)), [cp.sum(w) == 1]),
        "monotone": ([w], None, [cp.diff(w) >= 0]),
        "min and max": ([w], None, [cp.min(w) >= -0.3, cp.max(w[:2]) <= 0.4, kinked <= 0.5]),
        "epigraph": ([w], 30 * cp.sum(t), [t >= w, t >= -w]),
        "bound by another variable": (
            [w],
            10 * u,
            [cp.norm_inf(w) <= u, cp.sum(w) <= 0.5],
        ),
        "exponentials": (
            [w],
            10 * cp.norm1(w),
            [cp.log_sum_exp(w) <= np.log(D) + 0.1, cp.exp(w[0]) <= 1.5],
        ),
        "kl_div": ([w], 20 * cp.sum(cp.kl_div(w, np.full(D, 0.5))), []),
        "huber": ([w], 10 * cp.sum(cp.huber(w, 0.2)), [cp.norm(w, 1) <= 2]),
        "squared pos": ([w], 50 * cp.sum(cp.square(cp.pos(-w))) + cp.sum_squares(w), []),
        "semidefinite variable": ([P], 10 * cp.trace(P), []),
        "symmetric": ([W], 5 * cp.lambda_max(W), [W >> 0, cp.trace(W) <= 2]),
        "sigma_max": ([V], 20 * cp.sigma_max(V), [cp.normNuc(V) <= 1.5]),
        "equation": ([w], 30 * cp.norm(w), [cp.sum(w) == 0.3]),
        "two-sided": ([w], None, [cp.sum(w) <= 0.3, cp.sum(w) >= 0.3]),
        "free bound": ([w], None, [cp.max(w) <= cp.Variable()]),
    }
