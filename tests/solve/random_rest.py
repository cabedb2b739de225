"""Random public terms and sets from the convex atoms of CVXPY, concave ones negated."""

import cvxpy as cp
import numpy as np

D = 4
SIDE = np.eye(2)


def _matrix(v):
    """A symmetric 2 × 2 matrix that is linear in v."""
    return cp.bmat([[v[0], v[1]], [v[1], v[2]]])


def _safe(v):
    """Entries that are positive near the origin."""
    return v + 3.0


def _posdef(v):
    return _matrix(v) + 4.0 * SIDE


# Vector to number, each convex in v.
NUMBERS = {
    "norm1": lambda v: cp.norm1(v),
    "norm2": lambda v: cp.norm2(v),
    "norm_inf": lambda v: cp.norm_inf(v),
    "pnorm 1.5": lambda v: cp.pnorm(v, 1.5),
    "pnorm 3": lambda v: cp.pnorm(v, 3),
    "squared norm": lambda v: cp.norm(v, 2) ** 2,
    "square of norm1": lambda v: cp.square(cp.norm1(v)),
    "sum_squares": lambda v: cp.sum_squares(v),
    "quad_over_lin": lambda v: cp.quad_over_lin(v[:2], _safe(v[2])),
    "quad_form": lambda v: cp.quad_form(v, np.eye(v.size) + 0.3),
    "matrix_frac": lambda v: cp.matrix_frac(v[:2], _posdef(v)),
    "tr_inv": lambda v: cp.tr_inv(_posdef(v)),
    "sum_largest": lambda v: cp.sum_largest(v, 2),
    "sum_smallest": lambda v: -cp.sum_smallest(v, 2),
    "dotsort": lambda v: cp.dotsort(v, np.arange(v.size)),
    "max": lambda v: cp.max(v),
    "min": lambda v: -cp.min(v),
    "ptp": lambda v: cp.ptp(v),
    "var": lambda v: cp.var(v),
    "std": lambda v: cp.std(v),
    "cummax": lambda v: cp.sum(cp.cummax(v)),
    "tv": lambda v: cp.tv(v),
    "log_sum_exp": lambda v: cp.log_sum_exp(v),
    "geo_mean": lambda v: -cp.geo_mean(_safe(v)),
    "harmonic_mean": lambda v: -cp.harmonic_mean(_safe(v)),
    "inv_prod": lambda v: cp.inv_prod(_safe(v)),
    "log_det": lambda v: -cp.log_det(_posdef(v)),
    "lambda_max": lambda v: cp.lambda_max(_matrix(v)),
    "lambda_min": lambda v: -cp.lambda_min(_matrix(v)),
    "lambda_sum_largest": lambda v: cp.lambda_sum_largest(_matrix(v), 1),
    "lambda_sum_smallest": lambda v: -cp.lambda_sum_smallest(_matrix(v), 1),
    "sigma_max": lambda v: cp.sigma_max(cp.reshape(v[:4], (2, 2), order="F")),
    "normNuc": lambda v: cp.normNuc(cp.reshape(v[:4], (2, 2), order="F")),
    "mixed_norm": lambda v: cp.mixed_norm(cp.reshape(v[:4], (2, 2), order="C"), 2, 1),
    "norm by rows": lambda v: cp.sum(cp.norm(cp.reshape(v[:4], (2, 2), order="C"), 2, axis=1)),
    "von_neumann_entr": lambda v: -cp.von_neumann_entr(cp.symmetric_wrap(_posdef(v))),
    "suppfunc": lambda v: _support(v),
    "groups": lambda v: cp.norm(v[:2]) + cp.norm(v[2:]),
    "overlapping groups": lambda v: cp.norm(v[:3]) + cp.norm(v[1:]),
    "largest group": lambda v: cp.maximum(cp.norm(v[:2]), cp.norm(v[2:])),
    "norm of norms": lambda v: cp.norm(cp.hstack([cp.norm1(v[:2]), cp.norm1(v[2:])])),
    "square": lambda v: cp.square(v[1]),
}

# Entry by entry, each convex.
ENTRIES = {
    "abs": lambda v: cp.abs(v),
    "square": lambda v: cp.square(v),
    "power 3": lambda v: cp.power(cp.abs(v), 3),
    "power 4": lambda v: cp.power(v, 4),
    "power 1.5": lambda v: cp.power(cp.pos(v), 1.5),
    "pos": lambda v: cp.pos(v),
    "neg": lambda v: cp.neg(v),
    "square of pos": lambda v: cp.square(cp.pos(v)),
    "square of abs": lambda v: cp.square(cp.abs(v)),
    "maximum": lambda v: cp.maximum(v, 2 * v + 1, 0.3),
    "minimum": lambda v: -cp.minimum(v, 0.5),
    "scalene": lambda v: cp.scalene(v, 1.0, 3.0),
    "huber": lambda v: cp.huber(v, 0.5),
    "exp": lambda v: cp.exp(v),
    "xexp": lambda v: cp.xexp(cp.pos(v)),
    "logistic": lambda v: cp.logistic(v),
    "log": lambda v: -cp.log(_safe(v)),
    "log1p": lambda v: -cp.log1p(_safe(v)),
    "sqrt": lambda v: -cp.sqrt(_safe(v)),
    "entr": lambda v: -cp.entr(_safe(v)),
    "kl_div": lambda v: cp.kl_div(_safe(v), 3.0),
    "rel_entr": lambda v: cp.rel_entr(_safe(v), 3.0),
    "inv_pos": lambda v: cp.inv_pos(_safe(v)),
    "log_normcdf": lambda v: -cp.log_normcdf(v),
    "loggamma": lambda v: cp.loggamma(_safe(v)),
}

# Non-decreasing on non-negative entries: these may stand around any convex entries.
AROUND = {
    "sum": lambda e: cp.sum(e),
    "weighted sum": lambda e: np.arange(1.0, e.size + 1) @ e,
    "norm1": lambda e: cp.norm1(cp.pos(e)),
    "norm2": lambda e: cp.norm2(cp.pos(e)),
    "norm_inf": lambda e: cp.norm_inf(cp.pos(e)),
    "sum_squares": lambda e: cp.sum_squares(cp.pos(e)),
    "sum of squares": lambda e: cp.sum(cp.square(cp.pos(e))),
    "squared norm": lambda e: cp.norm(cp.pos(e), 2) ** 2,
    "max": lambda e: cp.max(e),
    "sum_largest": lambda e: cp.sum_largest(e, 2),
}

# Of entries that CVXPY knows to be non-negative: nothing but the reader's care stands between
# these and the same norm of the entries' own argument.
AROUND_NONNEGATIVE = {
    "norm1": cp.norm1,
    "norm2": cp.norm2,
    "norm_inf": cp.norm_inf,
    "sum_squares": cp.sum_squares,
    "sum of squares": lambda e: cp.sum(cp.square(e)),
    "squared norm": lambda e: cp.norm(e, 2) ** 2,
    "quad_over_lin": lambda e: cp.quad_over_lin(e, 2.0),
    "max of abs": lambda e: cp.max(cp.abs(e)),
    "sum of abs": lambda e: cp.sum(cp.abs(e)),
}


def _support(v):
    x = cp.Variable(v.size)
    return cp.suppfunc(x, [cp.norm(x, 2) <= 1, x <= 0.7])(v)


def argument(rng, w):
    """A random affine map of w with at least four entries."""
    d = w.size
    return [
        lambda: w,
        lambda: w[::-1],
        lambda: -w,
        lambda: 2.0 * w,
        lambda: w - 0.5 * rng.standard_normal(d),
        lambda: cp.multiply(rng.uniform(0.5, 2.0, d), w) + 0.2,
        lambda: (np.eye(d) + 0.3 * rng.standard_normal((d, d))) @ w,
        lambda: cp.hstack([w, cp.sum(w)]),
        lambda: cp.cumsum(w),
    ][int(rng.integers(9))]()


def _any(rng, table):
    name = sorted(table)[int(rng.integers(len(table)))]
    return name, table[name]


def convex(rng, w):
    """A name and a random convex expression of one number."""
    v = argument(rng, w)
    if rng.random() < 0.4:
        name, number = _any(rng, NUMBERS)
        return name, number(v)
    inner, entries = _any(rng, ENTRIES)
    e = entries(v)
    outer, around = _any(rng, AROUND_NONNEGATIVE if e.is_nonneg() else AROUND)
    return f"{outer} of {inner}", around(e)


def rest(rng, w):
    """Name, regulariser and constraints: one random expression or two, each as a term or a set.

    A set is the level set of its value at a random point near the origin, which it holds.
    """
    names, r, C = [], None, []
    for _ in range(1 + int(rng.random() < 0.3)):
        name, expression = convex(rng, w)
        if rng.random() < 0.6:
            term = float(10.0 ** rng.uniform(-1, 1)) * expression
            r = term if r is None else r + term
            names.append(name)
            continue
        w.value = 0.3 * rng.standard_normal(w.size)
        level = float(expression.value)
        w.value = None
        C.append(expression <= level + 0.01)
        names.append(f"{name} ≤ level")
    return ", ".join(names), r, C
