"""Random convex functions of one number: the CVXPY expression, and the same written by hand.

The second is a function of (t, m), m a namespace of exp, log, maximum, … for NumPy's extended
precision or for mpmath. It shares nothing with the library.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import mpmath
import numpy as np


class Extended:
    """NumPy's long doubles."""

    exp, log, sqrt, abs = np.exp, np.log, np.sqrt, np.abs
    maximum, minimum = np.maximum, np.minimum

    @staticmethod
    def softplus(x: Any) -> Any:
        return np.logaddexp(np.zeros_like(x), x)


class Exact:
    """mpmath, one number at a time."""

    exp, log, sqrt, abs = mpmath.exp, mpmath.log, mpmath.sqrt, abs
    maximum, minimum = max, min

    @staticmethod
    def softplus(x: Any) -> Any:
        return mpmath.log1p(mpmath.exp(x))


PROBIT = (
    (0.02301291, 3.0),
    (0.08070214, 2.0),
    (0.16411522, 1.0),
    (0.09003495, 0.0),
    (0.08200854, -1.0),
    (0.01371543, -2.5),
    (0.04641081, -3.5),
)
"""Weights and knots of CVXPY's log_normcdf."""


@dataclass(frozen=True)
class Form:
    """A convex function in both spellings."""

    text: str
    of: Any
    """From a CVXPY expression to one."""
    value: Any
    """(t, m) ↦ φ(t)."""
    low: float = -np.inf
    high: float = np.inf

    def plus(self, other: Form) -> Form:
        return Form(
            f"{self.text} + {other.text}",
            lambda t: self.of(t) + other.of(t),
            lambda t, m: self.value(t, m) + other.value(t, m),
            max(self.low, other.low),
            min(self.high, other.high),
        )

    def times(self, w: float) -> Form:
        return Form(
            f"{w}·({self.text})",
            lambda t: w * self.of(t),
            lambda t, m: w * self.value(t, m),
            self.low,
            self.high,
        )


def affine(rng: Any, steep: float = 3.0) -> Form:
    """a t + b in several spellings."""
    a, b = float(rng.uniform(0.2, steep) * rng.choice([-1, 1])), float(rng.normal())
    a, b = (round(a, 1), round(b, 1)) if rng.uniform() < 0.5 else (a, b)
    kind = rng.integers(4)
    if kind == 0:
        return Form(f"({a} t + {b})", lambda t: a * t + b, lambda t, m: a * t + b)
    if kind == 1:
        return Form(f"({b} − {a} t)", lambda t: b - cp.multiply(a, t), lambda t, m: b - a * t)
    if kind == 2:
        return Form(f"(t − {b})/{a}", lambda t: (t - b) / a, lambda t, m: (t - b) / a)
    return Form("t", lambda t: t, lambda t, m: t)


def kinked(rng: Any) -> Form:
    """Piecewise linear, convex."""
    f, kind = affine(rng), rng.integers(6)
    if kind == 0:
        return Form(f"|{f.text}|", lambda t: cp.abs(f.of(t)), lambda t, m: m.abs(f.value(t, m)))
    if kind == 1:
        return Form(
            f"{f.text}₊", lambda t: cp.pos(f.of(t)), lambda t, m: m.maximum(f.value(t, m), 0)
        )
    if kind == 2:
        return Form(
            f"{f.text}₋", lambda t: cp.neg(f.of(t)), lambda t, m: m.maximum(-f.value(t, m), 0)
        )
    if kind == 3:
        g = affine(rng)
        return Form(
            f"max({f.text}, {g.text})",
            lambda t: cp.maximum(f.of(t), g.of(t)),
            lambda t, m: m.maximum(f.value(t, m), g.value(t, m)),
        )
    c = float(rng.uniform(0, 1))
    if kind == 4:
        return Form(
            f"(|{f.text}| − {c})₊",
            lambda t: cp.pos(cp.abs(f.of(t)) - c),
            lambda t, m: m.maximum(m.abs(f.value(t, m)) - c, 0),
        )
    return Form(
        f"max({f.text}, {c}) + |t|/2",
        lambda t: cp.maximum(f.of(t), c) + 0.5 * cp.abs(t),
        lambda t, m: m.maximum(f.value(t, m), c) + m.abs(t) / 2,
    )


def nonnegative(rng: Any) -> Form:
    """Convex and at least 0."""
    kind, f = rng.integers(4), affine(rng)
    if kind == 0:
        return Form(f"|{f.text}|", lambda t: cp.abs(f.of(t)), lambda t, m: m.abs(f.value(t, m)))
    if kind == 1:
        return Form(
            f"{f.text}₊", lambda t: cp.pos(f.of(t)), lambda t, m: m.maximum(f.value(t, m), 0)
        )
    c = float(rng.uniform(0, 1))
    if kind == 2:
        return Form(
            f"(|{f.text}| − {c})₊",
            lambda t: cp.pos(cp.abs(f.of(t)) - c),
            lambda t, m: m.maximum(m.abs(f.value(t, m)) - c, 0),
        )
    return Form(
        f"log(1 + exp {f.text})",
        lambda t: cp.logistic(f.of(t)),
        lambda t, m: m.softplus(f.value(t, m)),
    )


def _huber(u: Any, M: float, m: Any) -> Any:
    size = m.minimum(m.abs(u), M)
    return size * size + 2 * M * (m.abs(u) - size)


def _norm(t: Any, c: float) -> Any:
    if t.ndim:
        return cp.norm(cp.vstack([t, c * np.ones(t.shape)]), 2, axis=0)
    return cp.norm(cp.hstack([t, c]), 2)


def _log_sum_exp(parts: list[Any]) -> Any:
    if parts[0].ndim:
        return cp.log_sum_exp(cp.vstack(parts), axis=0)
    return cp.log_sum_exp(cp.hstack(parts))


def curved(rng: Any) -> Form:
    """One atom, on the whole line and C¹; its curvature may be unbounded far out."""
    f, g, kind = affine(rng), nonnegative(rng), rng.integers(13)
    c = float(rng.uniform(0.2, 2))
    if kind == 0:
        return Form(f"{g.text}²", lambda t: cp.square(g.of(t)), lambda t, m: g.value(t, m) ** 2)
    if kind == 1:
        return (
            Form(
                f"huber({g.text}, {c})",
                lambda t: cp.huber(g.of(t), c),
                lambda t, m: _huber(g.value(t, m), c, m),
            )
            if g.text[0] in "|(t"
            else curved(rng)
        )
    if kind == 2:
        return Form(
            f"huber({f.text}, {c})",
            lambda t: cp.huber(f.of(t), M=c),
            lambda t, m: _huber(f.value(t, m), c, m),
        )
    if kind == 3:
        return Form(
            f"‖({f.text}, {c})‖", lambda t: _norm(f.of(t), c),
            lambda t, m: m.sqrt(f.value(t, m) ** 2 + c * c),
        )  # fmt: skip
    if kind == 4:
        return Form(
            f"softplus {f.text}",
            lambda t: cp.logistic(f.of(t)),
            lambda t, m: m.softplus(f.value(t, m)),
        )
    if kind == 5:
        return Form(
            "log cosh",
            lambda t: cp.logistic(2 * f.of(t)) - f.of(t) - np.log(2),
            lambda t, m: m.softplus(2 * f.value(t, m)) - f.value(t, m) - float(np.log(2)),
        )
    if kind == 6:
        h = affine(rng)
        return Form(
            f"log(exp {f.text} + exp {h.text} + exp {c})",
            lambda t: _log_sum_exp([f.of(t), h.of(t), c * np.ones(t.shape) if t.ndim else c]),
            lambda t, m: (
                f.value(t, m)
                + m.log(1 + m.exp(h.value(t, m) - f.value(t, m)) + m.exp(c - f.value(t, m)))
            ),
        )
    if kind == 7:
        small = affine(rng, 1.0)
        return Form(
            f"exp {small.text}",
            lambda t: cp.exp(small.of(t)),
            lambda t, m: m.exp(small.value(t, m)),
        )
    if kind == 8:
        p = float(rng.choice([2.0, 2.5, 3.0, 4.0, 2.2, 6.0]))
        return Form(
            f"{g.text}^{p}", lambda t: cp.power(g.of(t), p), lambda t, m: g.value(t, m) ** p
        )
    if kind == 9:
        return Form(f"{f.text}^4", lambda t: f.of(t) ** 4, lambda t, m: f.value(t, m) ** 4)
    if kind == 10:
        return Form(
            f"softplus {f.text}²",
            lambda t: cp.logistic(cp.square(f.of(t))),
            lambda t, m: m.softplus(f.value(t, m) ** 2),
        )
    if kind == 11:
        return Form(
            f"−log Φ {f.text}",
            lambda t: -cp.log_normcdf(f.of(t)),
            lambda t, m: sum(w * m.maximum(b - f.value(t, m), 0) ** 2 for w, b in PROBIT),
        )
    return Form(f"{f.text}²", lambda t: cp.sum_squares(f.of(t)) if not t.ndim else f.of(t) ** 2,
                lambda t, m: f.value(t, m) ** 2)  # fmt: skip


def limited(rng: Any) -> Form:
    """With a domain (c, ∞), of the argument plus a shift."""
    c, w, kind = float(rng.uniform(-1, 1)), float(rng.uniform(0.2, 3)), rng.integers(5)
    if kind == 0:
        return Form(f"−log(t − {c})", lambda t: -cp.log(t - c), lambda t, m: -m.log(t - c), c)
    if kind == 1:
        return Form(f"1/(t − {c})", lambda t: cp.inv_pos(t - c), lambda t, m: 1 / (t - c), c)
    if kind == 2:
        return Form("−entr", lambda t: -cp.entr(t - c), lambda t, m: (t - c) * m.log(t - c), c)
    if kind == 3:
        return Form(
            f"kl({w}, t − {c})",
            lambda t: cp.kl_div(w, t - c),
            lambda t, m: w * m.log(w / (t - c)) - w + t - c,
            c,
        )
    return Form(
        f"kl(t − {c}, {w})",
        lambda t: cp.kl_div(t - c, w),
        lambda t, m: (t - c) * m.log((t - c) / w) - (t - c) + w,
        c,
    )


def random_form(rng: Any) -> Form:
    """One to three weighted terms and perhaps a line."""
    kinds = [curved, curved, curved, curved, kinked, limited]
    found = kinds[rng.integers(len(kinds))](rng)
    for _ in range(rng.integers(3)):
        w = float(rng.uniform(0.1, 2))
        found = found.plus(kinds[rng.integers(len(kinds))](rng).times(w))
    return found.plus(affine(rng)) if rng.uniform() < 0.5 else found
