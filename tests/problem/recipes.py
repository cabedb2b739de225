"""Strategies for recipes: arguments, losses, public terms, and what has to be refused."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np
import scipy.sparse as sp
from hypothesis import strategies as st

import cvxqop

from .objectives import Recipe

__all__ = ["MIXING", "NOT_A_LOSS", "PRIVATE_PUBLIC", "objectives", "public_terms", "sets"]

NUMBERS = st.sampled_from((0.5, 2.0, 3.0, 0.1, 0.25))


def column(node: Any) -> Any:
    return cp.reshape(node, (node.size, 1), order="C")


def flat(node: Any) -> Any:
    return cp.reshape(node, (node.size,), order="F")


# Expressions (n,) that are linear in the variables, record by record.
LINEAR: tuple[Recipe, ...] = (
    lambda o: o.X @ o.w,
    lambda o: o.w @ o.X.T,
    lambda o: o.X @ (o.M @ o.w),
    lambda o: (o.X @ o.M) @ o.w,
    lambda o: o.X @ o.w + o.b,
    lambda o: o.X @ o.w + np.ones((o.n, 1)) @ cp.reshape(o.b, (1,), order="C"),
    lambda o: o.X @ o.w + o.Z @ o.v,
    lambda o: o.X @ o.w - cp.sum(o.w) + 2 * o.b,
    lambda o: o.X @ o.w + o.P @ o.w,
    lambda o: o.P @ o.w - cp.multiply(o.y, o.P @ o.w),
    lambda o: cp.multiply(o.y, o.X @ o.w + o.b),
    lambda o: cp.multiply(o.X @ o.w, o.q),
    lambda o: (o.X @ o.w) / o.q,
    lambda o: cp.diag(o.y) @ (o.X @ o.w),
    lambda o: sp.diags_array(o.q) @ (o.X @ o.w),
    lambda o: o.X[:, :1] @ o.w[:1],
    lambda o: o.X[:, 0] * o.b,
    lambda o: cp.multiply(o.X[:, 0], o.y) * o.b + o.Z @ o.v,
    lambda o: (2 * o.X - o.X @ o.M) @ o.w,
    lambda o: flat(o.X @ o.W),
    lambda o: flat(o.W.T @ o.X.T),
    lambda o: o.X @ cp.hstack([o.w[:1], 2 * o.w[1:]]),
    lambda o: cp.hstack([o.X, o.Z]) @ cp.hstack([o.w, o.v]),
    lambda o: o.X @ cp.vec(cp.vstack([cp.multiply(2, o.w)]), order="F"),
    lambda o: cp.sum(cp.multiply(o.X, o.P), axis=1) * o.b,
    lambda o: cp.sum(cp.multiply(o.X, cp.reshape(o.w, (1, o.d), order="C")), axis=1),
    lambda o: o.X @ cp.cumsum(o.w) + o.Z @ cp.diag(o.v) @ np.ones(2),
)

# Expressions (n,) without variables.
OFFSETS: tuple[Recipe, ...] = (
    lambda o: o.y,
    lambda o: o.q,
    lambda o: 2 * o.y - 1,
    lambda o: cp.multiply(o.y, o.q) + o.y,
    lambda o: o.X[:, 0],
    lambda o: cp.multiply(o.X[:, 0], o.y),
    lambda o: o.X @ np.ones(o.d),
    lambda o: o.y / 2 + np.ones(o.n),
    lambda o: cp.Constant(np.zeros(o.n)),
)

# Ways to write the same n entries.
SPELLINGS: tuple[Any, ...] = (
    lambda e: e,
    lambda e: e,
    column,
    lambda e: column(e).T,
    lambda e: flat(column(e).T),
    lambda e: cp.vec(e, order="F"),
    lambda e: -1 * (e * -1),
    lambda e: e[:] if e.ndim else e,
    lambda e: cp.conj(e),
)

# Losses of an argument e: they have to be read whenever e is.
LOSSES: tuple[Any, ...] = (
    lambda o, e: cp.sum_squares(e),
    lambda o, e: cp.sum(cp.square(e)),
    lambda o, e: cp.sum(e**2) / o.n,
    lambda o, e: cp.mean(cp.square(e)),
    lambda o, e: cp.norm(flat(e), 2) ** 2,
    lambda o, e: cp.square(cp.norm(flat(e), 2)),
    lambda o, e: cp.quad_over_lin(e, 4.0),
    lambda o, e: cp.sum(cp.square(cp.abs(e))),
    lambda o, e: cp.sum(cp.huber(e, 0.5)),
    lambda o, e: cp.sum(cp.huber(cp.abs(e), 2)),
    lambda o, e: cp.sum(2 * cp.huber(e) + cp.square(e) / 4),
    lambda o, e: cp.sum(cp.logistic(e)),
    lambda o, e: cp.mean(cp.logistic(-e)),
    lambda o, e: cp.sum(cp.square(cp.pos(e))),
    lambda o, e: cp.sum(cp.maximum(0, e) ** 2),
    lambda o, e: cp.sum(cp.square(cp.neg(e))),
    lambda o, e: cp.sum(cp.square(e) + cp.logistic(e)),
    lambda o, e: o.q @ cp.square(flat(e)),
    lambda o, e: cp.sum(cp.multiply(o.q, cp.huber(flat(e)))),
    lambda o, e: cp.sum(cp.logistic(flat(e)) / o.q),
    lambda o, e: cp.sum(cp.logistic(flat(e)) - cp.multiply(o.y, flat(e))),
    lambda o, e: cp.sum(cp.logistic(e)) - 0.5 * cp.sum(e),
    lambda o, e: cp.sum(cp.logistic(e)) - (o.y + 1) @ flat(e) / 2,
    lambda o, e: cp.sum(cp.square(e), axis=0) if e.ndim == 1 else cp.sum(cp.square(e)),
    lambda o, e: cp.sum(cp.square(cp.pos(cp.pos(e) - 1))),
)


def _glm(loss: str, labelled: bool, intercept: bool) -> Recipe:
    def write(o: Any) -> Any:
        X = o.records["X"]
        y = o.records["y"] if labelled else None
        return cvxqop.glm_loss(loss, X, y, o.w, intercept=o.b if intercept else None)

    return write


# Whole terms with records of their own, and terms with several outputs a record.
TERMS: tuple[Recipe, ...] = (
    _glm("squared", True, False),
    _glm("logistic", True, True),
    _glm("huber", True, True),
    lambda o: cp.sum_squares(o.X @ o.V - o.Y),
    lambda o: cp.norm(3 * (o.X @ o.V) + o.row - o.Y, "fro") ** 2 / 4,
    lambda o: cp.mean(cp.square(o.Y - o.X @ (2 * o.V) - np.ones((o.n, 1)) @ o.row)),
    lambda o: cp.sum(cp.square(o.X @ o.V + o.c)),
    lambda o: cp.sum(cp.log_sum_exp(o.X @ o.V, axis=1)) - cp.sum(cp.multiply(o.T, o.X @ o.V)),
    lambda o: (
        2 * cp.sum(cp.log_sum_exp(o.X @ o.V + o.c, axis=1))
        - cp.sum(cp.multiply(2 * o.T, o.X @ o.V + o.c))
    ),
    lambda o: cp.sum(cp.log_sum_exp(o.X @ o.V, axis=1)) - cp.trace(o.T.T @ (o.X @ o.V)),
    lambda o: cp.sum(
        cp.log_sum_exp(o.X @ o.V, axis=1) - cp.sum(cp.multiply(o.T, o.X @ o.V), axis=1)
    ),
    lambda o: o.q @ cp.log_sum_exp(o.X @ o.V, axis=1),
    lambda o: cp.sum(cp.logistic(o.X @ o.V)),
    lambda o: cp.sum(cp.huber(o.X @ o.V - o.Y)),
    lambda o: cp.sum_squares(o.X @ o.V @ np.ones((o.k, o.k)) - o.Y),
    lambda o: cp.sum_squares(cp.hstack([column(o.X @ o.w), column(o.Z @ o.v)])),
    lambda o: cp.sum_squares(cp.vstack([o.X @ o.w, o.X @ o.w])),
    lambda o: cp.sum_squares(cp.hstack([o.X @ o.w, o.Z @ o.v])),
    lambda o: 3 * cp.quad_form(o.w, cp.psd_wrap(o.X.T @ o.X)),
)

# Public terms and sets; v and c occur in them whether or not the loss holds them.
PUBLIC: tuple[Recipe, ...] = (
    lambda o: cp.norm1(o.w),
    lambda o: cp.sum_squares(o.w),
    lambda o: cp.norm(o.w, 2),
    lambda o: cp.norm_inf(o.w - 1) + cp.tv(o.free),
    lambda o: cp.sum(cp.huber(o.w)) + cp.exp(o.free[0]),
    lambda o: cp.sum_squares(o.M @ o.w) + cp.norm(cp.hstack([o.w, o.free])),
    lambda o: cp.quad_form(o.w, np.eye(o.d)) + cp.square(o.b),
    lambda o: cp.normNuc(o.V) - cp.sum(cp.entr(o.free)),
    lambda o: cp.max(cp.abs(o.w)) + 0.1 * cp.sum(o.w) - 3,
    lambda o: cp.Constant(2.0),
    lambda o: cp.pos(cp.sum(o.w) - 1) + cp.logistic(o.b),
)
SETS: tuple[Recipe, ...] = (
    lambda o: [],
    lambda o: [o.w >= 0],
    lambda o: [cp.norm(o.w, 2) <= 2, o.b == 0],
    lambda o: [cp.sum(o.w) == 1, o.w <= 3],
    lambda o: [cp.norm1(o.w) <= o.free[0], o.free[0] <= 2],
)

# Arguments that combine records: to be refused from two records on.
MIXING: tuple[Any, ...] = (
    lambda o, e: cp.cumsum(e),
    lambda o, e: e[::-1],
    lambda o, e: o.R @ e,
    lambda o, e: e - cp.sum(e),
    lambda o, e: e + cp.sum(o.y),
    lambda o, e: e - cp.mean(o.y),
    lambda o, e: e + cp.max(o.y),
    lambda o, e: e + o.y[0],
    lambda o, e: e + cp.hstack([o.y[1:], o.y[:1]]),
    lambda o, e: e[1:] - e[:-1],
    lambda o, e: cp.hstack([e, e[:1]]),
    lambda o, e: cp.sum(e),
    lambda o, e: cp.convolve(np.ones(2), e),
    lambda o, e: cp.reshape(e, (o.n, 1), order="C") - cp.reshape(o.y, (1, o.n), order="C"),
    lambda o, e: cp.multiply(e, cp.norm(o.y)),
    lambda o, e: e @ np.ones(o.n) * np.ones(o.n),
    lambda o, e: e + o.X @ (o.X.T @ o.y),
    lambda o, e: cp.outer(o.y, o.y) @ e,
)

# Terms that are not a smooth loss of bounded curvature, a record each: to be refused.
NOT_A_LOSS: tuple[Any, ...] = (
    lambda o, e: cp.sum(cp.abs(e)),
    lambda o, e: cp.norm1(e),
    lambda o, e: cp.norm(e, 2),
    lambda o, e: cp.norm_inf(e),
    lambda o, e: cp.max(cp.square(e)),
    lambda o, e: cp.sum(cp.pos(e)),
    lambda o, e: cp.sum(cp.maximum(e, 0.5 * e)),
    lambda o, e: cp.sum(cp.exp(e)),
    lambda o, e: cp.log_sum_exp(e),
    lambda o, e: cp.sum(cp.kl_div(cp.exp(0), 1 + o.y**2)) + cp.sum(cp.exp(e)),
    lambda o, e: cp.sum(cp.power(e, 4)),
    lambda o, e: cp.norm(e, 2) ** 4,
    lambda o, e: cp.sum(cp.power(cp.abs(e), 1.5)),
    lambda o, e: cp.norm(e, 3) ** 2,
    lambda o, e: cp.square(cp.norm1(e)),
    lambda o, e: cp.square(cp.sum_squares(e)),
    lambda o, e: cp.sum_largest(cp.square(e), 1),
    lambda o, e: cp.quad_over_lin(e, o.b),
    lambda o, e: cp.quad_over_lin(e, cp.sum(o.y**2) + 1),
    lambda o, e: cp.sum(cp.multiply(cp.square(o.y), cp.square(e))),
    lambda o, e: cp.sum_squares(e) / cp.sum(o.y**2),
    lambda o, e: -cp.sum_squares(e),
    lambda o, e: cp.sum_squares(e) - 2 * cp.sum(cp.huber(e)),
    lambda o, e: cp.sum_squares(e) * 0,
    lambda o, e: cp.sum(cp.logistic(cp.square(e))),
    lambda o, e: cp.sum(cp.huber(e, cp.max(cp.abs(o.y)))),
    lambda o, e: cp.sum(cp.square(e - cp.multiply(o.w[0], o.w[0]))),
    lambda o, e: cp.tv(e) + cp.sum_squares(e),
    lambda o, e: cp.sum_squares(e) + cp.dotsort(e, np.ones(1)),
    lambda o, e: cp.quad_form(e, np.eye(e.size) + np.ones((e.size, e.size))),
    lambda o, e: cp.sum(cp.inv_pos(e)),
    lambda o, e: cp.sum(-cp.log(e)),
    lambda o, e: cp.maximum(cp.sum_squares(e), 1),
    lambda o, e: cp.exp(cp.sum_squares(e)),
)

# Private data where only public data may be: a term or a constraint beside the loss.
PRIVATE_PUBLIC: tuple[Any, ...] = (
    lambda o: (cp.norm(o.y) * cp.norm1(o.w), []),
    lambda o: (cp.sum(cp.multiply(cp.norm(o.X, axis=0), cp.abs(o.w))), []),
    lambda o: (cp.norm1(o.X.T @ o.y - o.w), []),
    lambda o: (cp.sum_squares(o.w - o.X[0, :]), []),
    lambda o: (0, [o.X @ o.w <= 1]),
    lambda o: (0, [cp.sum(o.w) <= cp.sum(cp.abs(o.y))]),
    lambda o: (0, [o.b == o.y[0]]),
    lambda o: (0, [cp.norm(o.X @ o.w - o.y) <= 3]),
    lambda o: (0, [cp.SOC(cp.norm(o.y), o.w)]),
)


@st.composite
def arguments(draw: Any, base: Recipe | None = None) -> Recipe:
    """An affine argument (n,); with the row of ``base`` times a number where it is given."""
    row = base or draw(rows())
    factor = draw(st.sampled_from((1.0, 1.0, -1.0, 0.5, -3.0)))
    offset = draw(st.none() | st.sampled_from(OFFSETS))

    def write(o: Any) -> Any:
        scaled = row(o) if factor == 1.0 else factor * row(o)
        return scaled if offset is None else scaled - offset(o)

    return write


@st.composite
def rows(draw: Any) -> Recipe:
    """A linear expression (n,), at times a sum of two."""
    first, second = draw(st.sampled_from(LINEAR)), draw(st.none() | st.sampled_from(LINEAR))
    if second is None or draw(st.booleans()):
        return first
    return lambda o: first(o) - 2 * second(o)


@st.composite
def losses(draw: Any, base: Recipe) -> Recipe:
    """A loss term on ``base``, scaled."""
    argument = draw(arguments(base) | arguments(base) | arguments())
    spelling, loss = draw(st.sampled_from(SPELLINGS)), draw(st.sampled_from(LOSSES))
    number, side = draw(NUMBERS), draw(st.sampled_from("lrd1"))

    def write(o: Any) -> Any:
        term = loss(o, spelling(argument(o)))
        return {
            "l": lambda: number * term,
            "r": lambda: term * number,
            "d": lambda: term / number,
            "1": lambda: term,
        }[side]()

    return write


@st.composite
def public_terms(draw: Any) -> Recipe:
    """Zero to two public terms."""
    chosen = draw(st.lists(st.sampled_from(PUBLIC), max_size=2))
    number = draw(NUMBERS)
    return lambda o: sum((number * term(o) for term in chosen), 0)


def sets() -> Any:
    """Public constraints."""
    return st.sampled_from(SETS)


@st.composite
def objectives(draw: Any) -> Recipe:
    """One to three private terms and public ones, at times scaled together."""
    base = draw(rows())
    terms = draw(
        st.lists(losses(base), min_size=1, max_size=3)
        | st.lists(losses(base), min_size=1, max_size=1)
        | st.sampled_from(TERMS).map(lambda term: [term])
    )
    public, number = draw(public_terms()), draw(st.sampled_from((1.0, 1.0, 0.1, 3.0)))

    def write(o: Any) -> Any:
        whole = sum((term(o) for term in terms[1:]), terms[0](o)) + public(o)
        return whole if number == 1.0 else number * whole

    return write
