"""Random public terms and constraints."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np

__all__ = ["public_set", "public_term"]


def public_term(rng: Any, v: Any, lam: float, simple: bool) -> Any:
    """A public term; a ``simple`` one has a known proximal operator."""
    t = cp.Variable(name="auxiliary")
    choices = [
        lambda: 0,
        lambda: lam * cp.norm1(v),
        lambda: lam * cp.sum_squares(v),
        lambda: lam * cp.norm(v, 2),
        lambda: lam * cp.norm1(v) + 0.1 * cp.sum_squares(v),
        lambda: lam * cp.norm_inf(v),
        lambda: lam * cp.tv(v) if v.size > 2 else 0,
        lambda: lam * cp.sum(cp.huber(v)),
        lambda: lam * cp.sum(cp.logistic(v)),
        lambda: lam * cp.quad_form(v, np.eye(v.size) + 1),
        lambda: lam * (cp.square(t - 1) + cp.norm(cp.hstack([v, t]), 2)),
        lambda: lam * cp.sum(v),
    ]
    return choices[int(rng.integers(7 if simple else len(choices)))]()


def public_set(rng: Any, v: Any, r: float, simple: bool) -> list[Any]:
    """Public constraints; ``simple`` ones have a known projection. The last set is empty."""
    choices = [
        list,
        lambda: [cp.norm_inf(v) <= r],
        lambda: [cp.norm(v, 2) <= r],
        lambda: [v >= 0],
        lambda: [cp.norm1(v) <= r],
        lambda: [cp.sum(v) == min(r, 0.5), v >= 0],
        lambda: [v <= r, v >= -r, cp.sum(v) <= r * v.size / 2],
        lambda: [cp.norm((np.eye(v.size) + 0.1) @ v - 0.1, 2) <= r + v.size],
        lambda: [cp.sum_squares(v) + cp.norm1(v) <= r],
        lambda: [cp.sum(cp.exp(v)) <= v.size + r],
        lambda: [v >= 1, v <= 0.5],
    ]
    weights = np.array([4.0] + [1.0] * (len(choices) - 2) + [0.3])
    weights[7:10] *= not simple
    return choices[int(rng.choice(len(choices), p=weights / weights.sum()))]()
