"""Every place of CVXPY where an array can stand: one table, by the names of CVXPY.

A builder is a function of a `Room`, whose p, P and k are private, in one of several forms.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import cvxpy as cp
import numpy as np
import scipy.sparse as sp
from cvxpy.atoms.affine.wraps import nonneg_wrap, nonpos_wrap, nsd_wrap
from cvxpy.atoms.elementwise.hyperbolic import asinh, atanh, sinh, tanh
from cvxpy.atoms.elementwise.normcdf import normcdf
from cvxpy.atoms.elementwise.trig import cos, sin, tan
from cvxpy.atoms.quad_form import SymbolicQuadForm
from cvxpy.constraints.psd import SvecPSD
from cvxpy.transforms import scalarize
from cvxpy.transforms.indicator import indicator
from cvxpy.transforms.partial_optimize import partial_optimize

__all__ = ["ATOMS", "CONSTRAINTS", "FORMS", "LEAVES", "OTHER", "Room"]

N = 4
FORMS: dict[str, Callable[[Any], Any]] = {
    "array": lambda array: array,
    "constant": cp.Constant,
    "parameter": lambda array: cp.Parameter(array.shape, value=array),
}


class Room:
    """Private p (n,), P (n, n) and indices k (n,) beside X (n, 3) and y (n,), and variables.

    ``record`` is a change of the first record.
    """

    def __init__(self, form: str, record: float = 0.0) -> None:
        rng = np.random.default_rng(5)
        factor = rng.uniform(0.5, 1.5, (N, N))
        weights = rng.uniform(0.1, 0.4, N)
        self.data = {
            "p": weights / weights.sum(),
            "P": factor @ factor.T + np.eye(N),
            "k": np.array([2, 0, 3, 1]),
        }
        self.X, self.y = rng.uniform(-1, 1, (N, 3)), rng.uniform(-1, 1, N)
        self.used = [self.X, self.y]
        self._form, self._made = form, {}
        self.w, self.x = cp.Variable(3, name="w"), cp.Variable(N, name="x")
        self.z, self.s = cp.Variable(N, nonneg=True, name="z"), cp.Variable(nonneg=True, name="s")
        self.M, self.S = (
            cp.Variable((N, N), name="M"),
            cp.Variable((N, N), name="S", symmetric=True),
        )
        self.b = cp.Variable(N, boolean=True, name="b")
        for array in (*self.data.values(), *self.used):
            array.flat[0] += np.asarray(0.125 * record if array.dtype.kind == "f" else -record)

    def __getattr__(self, name: str) -> Any:
        if name not in self.data:
            raise AttributeError(name)
        if name not in self._made:
            self._made[name] = FORMS[self._form](self.data[name])
        return self._made[name]

    @property
    def private(self) -> list[Any]:
        """What was used, as it is listed."""
        return list(self._made.values())

    @cached_property
    def v(self) -> Any:
        """A private vector."""
        return cp.multiply(self.p, self.x)

    @cached_property
    def m(self) -> Any:
        """A private matrix."""
        return cp.multiply(self.P, self.M)


Builder = Callable[[Room], Any]


def _on(argument: str, *names: str) -> dict[str, list[Builder]]:
    """Atoms of one argument, by the name of what stands in it."""
    return {name: [lambda o, name=name: getattr(cp, name)(getattr(o, argument))] for name in names}


def _set(o: Room, *constraints: Any) -> Any:
    """A support function with constraints of its own."""
    u = cp.Variable(N)
    return cp.suppfunc(u, [cp.norm(u) <= 1, *(make(u) for make in constraints)])(o.x)


ATOMS: dict[str, list[Builder]] = {
    **_on("v", "abs", "ceil", "conj", "cummax", "cumprod", "cumsum", "deep_flatten", "diff"),
    **_on("v", "entr", "exp", "floor", "harmonic_mean", "huber", "imag", "inv_pos", "inv_prod"),
    **_on("v", "length", "log", "log1p", "log_normcdf", "log_sum_exp", "loggamma", "logistic"),
    **_on("v", "max", "mean", "min", "neg", "norm", "norm1", "norm2", "norm_inf", "one_minus_pos"),
    **_on("v", "pnorm", "pos", "prod", "ptp", "real", "sign", "sqrt", "square", "squeeze", "std"),
    **_on("v", "sum", "sum_squares", "tv", "var", "xexp"),
    **_on("m", "condition_number", "eye_minus_inv", "hermitian_wrap", "lambda_max", "lambda_min"),
    **_on("m", "log_det", "mixed_norm", "normNuc", "pf_eigenvalue", "psd_wrap", "sigma_max"),
    **_on("m", "skew_symmetric_wrap", "symmetric_wrap", "tr_inv", "trace", "transpose"),
    **_on("m", "upper_tri"),
    "AddExpression": [lambda o: cp.AddExpression([o.x, cp.Constant.cast_to_const(o.p)])],
    "MulExpression": [lambda o: cp.MulExpression(o.P, o.x), lambda o: cp.MulExpression(o.x, o.P)],
    "GeoMean": [
        lambda o: cp.GeoMean(o.v),
        lambda o: cp.GeoMean(o.x, o.data["p"]) if o.p is o.data["p"] else cp.GeoMean(o.v),
    ],
    "GeoMeanApprox": [
        lambda o: cp.GeoMeanApprox(o.v),
        lambda o: cp.GeoMeanApprox(o.x, o.data["p"]) if o.p is o.data["p"] else cp.GeoMean(o.v),
    ],
    "geo_mean": [
        lambda o: cp.geo_mean(o.v),
        lambda o: cp.geo_mean(o.x, o.p),
        lambda o: cp.geo_mean(o.x, list(o.p)),
        lambda o: cp.geo_mean(o.x, o.p, approx=False),
        lambda o: cp.geo_mean(o.x, o.k),
    ],
    "MatrixFrac": [lambda o: cp.MatrixFrac(o.v, o.S), lambda o: cp.MatrixFrac(o.x, o.P)],
    "matrix_frac": [lambda o: cp.matrix_frac(o.v, o.S), lambda o: cp.matrix_frac(o.x, o.P)],
    "Pnorm": [lambda o: cp.Pnorm(o.v, 3.0)],
    "PnormApprox": [lambda o: cp.PnormApprox(o.v, 3)],
    "Power": [lambda o: cp.Power(o.v, 2), lambda o: cp.Power(o.x, o.p)],
    "PowerApprox": [lambda o: cp.PowerApprox(o.v, 2)],
    "power": [lambda o: cp.power(o.v, 3), lambda o: cp.power(o.z, o.p)],
    "Prod": [lambda o: cp.Prod(o.v)],
    "QuadForm": [lambda o: cp.QuadForm(o.x, cp.Constant.cast_to_const(o.P))],
    "quad_form": [lambda o: cp.quad_form(o.x, o.P), lambda o: cp.quad_form(o.p, o.S)],
    "Sum": [lambda o: cp.Sum(o.v)],
    "Trace": [lambda o: cp.Trace(o.m)],
    "bmat": [lambda o: cp.bmat([[o.P, o.M], [o.S, o.M]])],
    "broadcast_to": [lambda o: cp.broadcast_to(o.v, (2, N))],
    "concatenate": [lambda o: cp.concatenate([o.x, o.p], axis=0)],
    "conv": [lambda o: cp.conv(o.p, o.x)],
    "convolve": [lambda o: cp.convolve(o.p, o.x)],
    "cvar": [lambda o: cp.cvar(o.v, 0.5), lambda o: cp.cvar(o.x - o.p, 0.25)],
    "diag": [lambda o: cp.diag(o.v), lambda o: cp.diag(o.m)],
    "diff_pos": [lambda o: cp.diff_pos(o.x, o.p)],
    "dist_ratio": [
        lambda o: cp.dist_ratio(o.x, o.p, np.zeros(N)),
        lambda o: cp.dist_ratio(o.x, np.zeros(N), o.p),
    ],
    "dotsort": [lambda o: cp.dotsort(o.x, o.p)],
    "einsum": [lambda o: cp.einsum("ij,j->i", o.P, o.x), lambda o: cp.einsum("i,i", o.p, o.x)],
    "gen_lambda_max": [
        lambda o: cp.gen_lambda_max(o.P, o.S),
        lambda o: cp.gen_lambda_max(o.S, o.P),
    ],
    "gmatmul": [lambda o: cp.gmatmul(o.P, cp.Variable(N, pos=True))],
    "hstack": [lambda o: cp.hstack([o.x, o.p])],
    "kl_div": [lambda o: cp.kl_div(o.x, o.p), lambda o: cp.kl_div(o.p, o.x)],
    "kron": [lambda o: cp.kron(o.P, o.M), lambda o: cp.kron(o.M, o.P)],
    "lambda_sum_largest": [lambda o: cp.lambda_sum_largest(o.S + o.P, 2)],
    "lambda_sum_smallest": [lambda o: cp.lambda_sum_smallest(o.S + o.P, 2)],
    "matmul": [lambda o: cp.matmul(o.P, o.x), lambda o: o.P @ o.x],
    "maximum": [lambda o: cp.maximum(o.x, o.p)],
    "minimum": [lambda o: cp.minimum(o.x, o.p)],
    "moveaxis": [lambda o: cp.moveaxis(o.m, 0, 1)],
    "multiply": [lambda o: cp.multiply(o.p, o.x), lambda o: cp.multiply(o.x, o.p)],
    "outer": [lambda o: cp.outer(o.p, o.x), lambda o: cp.outer(o.x, o.p)],
    "partial_trace": [lambda o: cp.partial_trace(o.m, [2, 2], axis=0)],
    "permute_dims": [lambda o: cp.permute_dims(o.m, (1, 0))],
    "partial_transpose": [lambda o: cp.partial_transpose(o.m, [2, 2], axis=0)],
    "perspective": [
        lambda o: cp.perspective(cp.sum_squares(o.x - o.p), o.s),
        lambda o: cp.perspective(cp.sum_squares(o.x), o.s, f_recession=o.p @ o.x),
    ],
    "promote": [lambda o: cp.promote(cp.sum(o.v), (N,))],
    "quad_over_lin": [
        lambda o: cp.quad_over_lin(o.v, o.s),
        lambda o: cp.quad_over_lin(o.x, o.p @ o.z),
    ],
    "quantum_cond_entr": [lambda o: cp.quantum_cond_entr(o.S + o.P, [2, 2])],
    "quantum_rel_entr": [
        lambda o: cp.quantum_rel_entr(o.S, o.P),
        lambda o: cp.quantum_rel_entr(o.P, o.S),
    ],
    "rel_entr": [lambda o: cp.rel_entr(o.x, o.p), lambda o: cp.rel_entr(o.p, o.x)],
    "reshape": [lambda o: cp.reshape(o.v, (2, 2), order="F")],
    "resolvent": [lambda o: cp.resolvent(o.m, 2.0)],
    "scalar_product": [
        lambda o: cp.scalar_product(o.p, o.x),
        lambda o: cp.scalar_product(o.x, o.p),
    ],
    "scalene": [lambda o: cp.scalene(o.v, 0.5, 2.0)],
    "stack": [lambda o: cp.stack([o.x, o.p])],
    "sum_largest": [lambda o: cp.sum_largest(o.v, 2)],
    "sum_smallest": [lambda o: cp.sum_smallest(o.v, 2)],
    "suppfunc": [
        lambda o: _set(o, lambda u: u <= o.p),
        lambda o: _set(o, lambda u: o.P @ u <= 1),
        lambda o: cp.suppfunc(o.x, [cp.norm(o.x) <= 1])(o.v),
    ],
    "swapaxes": [lambda o: cp.swapaxes(o.m, 0, 1)],
    "vdot": [lambda o: cp.vdot(o.p, o.x), lambda o: cp.vdot(o.x, o.p)],
    "vec": [lambda o: cp.vec(o.m, order="F")],
    "vec_to_upper_tri": [lambda o: cp.vec_to_upper_tri(cp.hstack([o.v, o.x[:2]]))],
    "von_neumann_entr": [lambda o: cp.von_neumann_entr(cp.symmetric_wrap(o.m))],
    "vstack": [lambda o: cp.vstack([o.x, o.p])],
}
"""Functions and classes of the namespace of CVXPY that build expressions."""

OTHER: dict[str, list[Builder]] = {
    "operators": [
        lambda o: o.x - o.p,
        lambda o: o.p - o.x,
        lambda o: -cp.Constant.cast_to_const(o.p) * o.s,
        lambda o: o.x / o.p,
        lambda o: o.p / o.s,
        lambda o: o.p * o.s,
        lambda o: o.x**o.s.size - o.p,
        lambda o: cp.Constant.cast_to_const(o.P).T @ o.x,
        lambda o: cp.Constant.cast_to_const(o.P)[:, 1] - o.x,
        lambda o: sp.csr_array(o.P) @ o.x,
    ],
    "indices": [
        lambda o: o.x[o.k],
        lambda o: o.M[o.k, 0],
        lambda o: o.M[:, o.k],
        lambda o: o.M[o.k][:, o.k],
        lambda o: o.x[list(o.k)],
        lambda o: o.M[list(o.k), list(o.k)],
        lambda o: cp.Constant(np.arange(4.0))[o.k] + o.x,
        lambda o: o.x[o.k > 1],
        lambda o: o.x[np.flatnonzero(o.k >= 0)[o.k]],
    ],
    "logic": [
        lambda o: cp.logic.And(o.b, cp.Variable(N, boolean=True, bounds=[o.p, None])),
        lambda o: cp.logic.Or(o.b, cp.Variable(N, boolean=True, bounds=[o.p, None])),
        lambda o: cp.logic.Xor(o.b, cp.Variable(N, boolean=True, bounds=[o.p, None])),
        lambda o: cp.logic.Not(cp.Variable(N, boolean=True, bounds=[o.p, None])),
        lambda o: cp.logic.implies(o.b, cp.Variable(N, boolean=True, bounds=[o.p, None])),
        lambda o: cp.logic.iff(o.b, cp.Variable(N, boolean=True, bounds=[o.p, None])),
    ],
    "smooth functions": [
        lambda o, f=f: f(o.v) for f in (sin, cos, tan, sinh, tanh, asinh, atanh, normcdf)
    ],
    "wraps": [lambda o, f=f: f(o.v) for f in (nonneg_wrap, nonpos_wrap)]
    + [lambda o: nsd_wrap(o.m)],
    "symbolic quadratic form": [
        lambda o: SymbolicQuadForm(o.x, cp.Constant.cast_to_const(o.P), cp.sum_squares(o.x))
    ],
    "a problem that is minimised over": [
        lambda o: partial_optimize(cp.Problem(cp.Minimize(cp.sum(o.z)), [o.z >= o.p]), [o.z]),
        lambda o: partial_optimize(cp.Problem(cp.Minimize(o.p @ o.z + o.s), [o.z <= 1]), [o.z]),
        lambda o: partial_optimize(cp.Problem(cp.Maximize(o.p @ o.z - o.s), [o.z <= 1]), [o.z]),
    ],
    "indicator": [
        lambda o: indicator([o.x <= o.p]),
        lambda o: indicator([o.P @ o.x == 1, o.x >= 0]),
    ],
    "scalarised objectives": [
        lambda o: scalarize.weighted_sum([cp.Minimize(cp.sum(o.v)), cp.Minimize(o.s)], [1, 2]).args[
            0
        ],
        lambda o: scalarize.max([cp.Minimize(cp.sum(o.v)), cp.Minimize(o.s)], [1, 2]).args[0],
        lambda o: scalarize.log_sum_exp([cp.Minimize(cp.sum(o.v)), cp.Minimize(o.s)], [1, 2]).args[
            0
        ],
        lambda o: scalarize.targets_and_priorities(
            [cp.Minimize(cp.sum(o.v)), cp.Minimize(o.s)], [1, 2], [0.5, 0.5]
        ).args[0],
    ],
}
"""What builds expressions and is no name of the namespace."""

CONSTRAINTS: dict[str, list[Builder]] = {
    "Equality": [lambda o: o.x == o.p],
    "Inequality": [lambda o: o.x <= o.p, lambda o: o.p <= o.x, lambda o: o.P @ o.x <= 1],
    "Zero": [lambda o: cp.Zero(o.x - o.p)],
    "NonNeg": [lambda o: cp.NonNeg(o.x - o.p)],
    "NonPos": [lambda o: cp.NonPos(o.x - o.p)],
    "PSD": [lambda o: cp.PSD(o.S - o.P), lambda o: o.S >> o.P, lambda o: o.S << o.P],
    "SvecPSD": [lambda o: SvecPSD(cp.hstack([o.v, o.x, o.x[:2]]), N)],
    "SOC": [lambda o: cp.SOC(o.s, o.v), lambda o: cp.SOC(o.p, o.M)],
    "ExpCone": [
        lambda o: cp.ExpCone(o.x, o.z, cp.Constant.cast_to_const(o.p)),
        lambda o: cp.ExpCone(cp.Constant.cast_to_const(o.p), o.z, o.x),
    ],
    "RelEntrConeQuad": [
        lambda o: cp.RelEntrConeQuad(o.x, o.z, cp.Constant.cast_to_const(o.p), 2, 2)
    ],
    "OpRelEntrConeQuad": [
        lambda o: cp.OpRelEntrConeQuad(
            o.S, o.S, cp.symmetric_wrap(cp.Constant.cast_to_const(o.P)), 2, 2
        )
    ],
    "PowCone3D": [
        lambda o: cp.PowCone3D(o.x, o.z, o.x, o.p),
        lambda o: cp.PowCone3D(o.v, o.z, o.x, 0.5),
    ],
    "PowCone3DApprox": [lambda o: cp.PowCone3DApprox(o.x, o.z, o.x, o.p)],
    "PowConeND": [
        lambda o: cp.PowConeND(o.z, o.s, o.p),
        lambda o: cp.PowConeND(o.v, o.s, np.full(N, 0.25)),
    ],
    "FiniteSet": [lambda o: cp.FiniteSet(o.s, o.p), lambda o: cp.FiniteSet(o.p @ o.x, [1.0, 2.0])],
}
"""Classes of constraints."""

WHERE = (np.arange(N), np.arange(N))
LEAVES: dict[str, list[Builder]] = {
    "value": [lambda o: cp.Constant.cast_to_const(o.p) + o.x],
    "boolean": [
        lambda o: cp.Variable(N, boolean=[(i,) for i in o.k]),
        lambda o: cp.Variable(N, boolean=[o.k]),
        lambda o: cp.Variable((N, N), boolean=(o.k, o.k)),
    ],
    "integer": [
        lambda o: cp.Variable(N, integer=[(i,) for i in o.k]),
        lambda o: cp.Variable(N, integer=[o.k]),
    ],
    "sparsity": [
        lambda o: cp.Variable((N, N), sparsity=(o.k, o.k)),
        lambda o: cp.Variable((N, N), sparsity=(list(o.k), list(range(N)))),
        lambda o: cp.Parameter((N, N), sparsity=(o.k, o.k), value=np.eye(N)) @ o.x,
    ],
    "bounds": [
        lambda o: cp.Variable(N, bounds=[o.p, None]),
        lambda o: cp.Variable(N, bounds=[None, o.p]),
        lambda o: cp.Variable(N, bounds=[o.p, o.p]),
        lambda o: cp.Variable(N, bounds=[0, list(o.p)]),
        lambda o: cp.Variable(N, bounds=[-2 * cp.Constant.cast_to_const(o.p), 5]),
        lambda o: cp.Variable(bounds=[cp.sum(cp.Constant.cast_to_const(o.p)), None]),
        lambda o: cp.Variable((N, N), bounds=[o.P, None]),
        lambda o: (
            cp.Variable((2, 2), bounds=[np.reshape(o.data["p"], (2, 2)), None])
            if o.p is o.data["p"]
            else cp.Variable(N, bounds=[o.p, None])
        ),
        lambda o: cp.Variable((3, N), bounds=[np.broadcast_to(o.p, (3, N)), None]),
        lambda o: cp.Variable((N, N), sparsity=WHERE, bounds=[sp.coo_array(np.diag(o.p)), None]),
        lambda o: cp.Parameter(N, bounds=[o.p - 1, o.p + 1], value=o.data["p"]) @ o.x,
        lambda o: cp.Parameter(N, bounds=[0, o.p], value=np.zeros(N)) @ o.x,
    ],
    **{
        name: [
            lambda o, name=name: (
                cp.Parameter((N, N), value=o.data["P"], **{name: True}) @ o.x + o.P @ o.x
            )
        ]
        for name in ("nonneg", "pos", "symmetric", "PSD")
    },
    **{
        name: [
            lambda o, name=name: (
                cp.Parameter((N, N), value=-o.data["P"], **{name: True}) @ o.x + o.P @ o.x
            )
        ]
        for name in ("nonpos", "neg", "NSD")
    },
    "diag": [lambda o: cp.Parameter((N, N), diag=True, value=np.diag(o.data["p"])) @ o.x + o.v],
    **{
        name: [lambda o, name=name: cp.real(cp.Variable((N, N), **{name: True}) @ o.p)]
        for name in ("complex", "imag", "hermitian")
    },
}
"""Arguments of leaves; those that take no array are there with the array beside them."""
