"""r over C as a cone program: G(θ) = min {c'x + c0 : x = (θ, v), b − Ax ∈ K}, built once, public.

What is assumed of CVXPY's graph forms: every feasible x has G(θ) ≤ c'x + c0, and for every θ the
infimum over v of c'x + c0 is no larger than G(θ).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import cvxpy as cp
import numpy as np
import numpy.typing as npt
import scipy.linalg as sla
import scipy.sparse as sp

from cvxqop import _cvxpy
from cvxqop.errors import OptionError
from cvxqop.solve.cones.cones import Cones
from cvxqop.solve.rest.terms import NotSplittable
from cvxqop.solve.solvers import compiled
from cvxqop.solve.units import ORDER, power_of_two, rescaled

__all__ = ["StandardForm", "standard_form"]

Array = npt.NDArray[np.float64]
Index = npt.NDArray[np.intp]

INEXACT = frozenset({"quantumrelentr", "quantumcondentr", "quantum_rel_entr", "quantum_cond_entr"})
"""Atoms that CVXPY replaces by approximations."""

RANK = 1e-13
"""Share of the largest singular value below which columns or rows count as dependent."""


@dataclass(frozen=True, eq=False)
class StandardForm:
    """min c'x subject to b − Ax ∈ K, x = (θ, v).

    The equations among the rows are independent, and so are the columns of v. A constant of the
    objective is left out: only differences of G are ever used.

    Attributes
    ----------
    A : (m, N) sparse array
    b, c : (m,) and (N,) arrays
    cones : Cones
        K.
    dimension : int
        D, the length of θ.
    unit, weight : float
        x and b are of the order of the unit, c and y of the order of the weight.
    """

    A: Any
    b: Array
    c: Array
    cones: Cones
    dimension: int
    unit: float = 1.0
    weight: float = 1.0

    def without(self, rows: npt.NDArray[np.bool_]) -> StandardForm:
        """The same less some of its nonnegative rows."""
        kept = np.flatnonzero(~rows)
        counts: dict[str, list[Any]] = {kind: [] for kind in ("soc", "psd", "exp", "pow")}
        zero = nonneg = 0
        for cone in self.cones.parts:
            size = cone.rows.stop - cone.rows.start
            if cone.kind == "zero":
                zero = size
            elif cone.kind == "nonneg":
                nonneg = size - int(np.sum(rows))
            else:
                counts[cone.kind].append(size if cone.kind == "soc" else cone.parameter)
        cones = Cones.of(
            zero,
            nonneg,
            counts["soc"],
            [int(side) for side in counts["psd"]],
            len(counts["exp"]),
            counts["pow"],
        )
        A, D = self.A[kept], self.dimension
        columns = np.concatenate([np.arange(D), D + _independent(A[:, D:].toarray())])
        return replace(self, A=A[:, columns], b=self.b[kept], c=self.c[columns], cones=cones)


def standard_form(
    variables: Sequence[cp.Variable],
    regulariser: cp.Expression | None,
    constraints: Sequence[cp.Constraint],
    size: float = ORDER,
) -> StandardForm:
    """CVXPY's cone program of r over C, reduced to one that has interior points where it can.

    It is written for θ of order ``size`` and brought back: K is a cone, so that b − Ax ∈ K is the
    same as τb − A(τx) ∈ K.

    Raises
    ------
    NotSplittable
        A term that CVXPY only approximates by cones.
    OptionError
        Cones without distances here.
    """
    for expression in (
        () if regulariser is None else (regulariser,),
        *(c.args for c in constraints),
    ):
        for part in expression:
            _check_exact(part)
    rest = rescaled(size, variables, regulariser, constraints)
    D = sum(v.size for v in variables)
    first = rest.variables[0]
    theta, tied = first, list(rest.constraints)
    if len(variables) > 1 or first.ndim != 1 or any(first.attributes.values()):
        # Several variables, and those with attributes, are tied to one vector by equations.
        theta = cp.Variable(D)
        tied.append(theta == cp.hstack([cp.vec(v, order="F") for v in rest.variables]))
    objective = cp.sum(theta) + (0 if rest.regulariser is None else rest.regulariser)
    problem = cp.Problem(cp.Minimize(objective), tied)
    data, _, _ = compiled(problem, "CLARABEL", {"use_quad_obj": False})
    dims = data["dims"]
    if len(getattr(dims, "pnd", ())):
        raise OptionError("constraints: power cones of more than three entries are not supported")
    start = int(data["param_prob"].var_id_to_col[theta.id])
    c = np.array(data["c"], dtype=np.float64)
    c[start : start + D] -= 1.0
    form = _Rows(
        sp.csr_array(data["A"]),
        np.asarray(data["b"], dtype=np.float64),
        c,
        np.arange(start, start + D),
        dims.zero,
        dims.nonneg,
    )
    form.join_opposites()
    form.drop_relaxing_columns()
    form.drop_dependent_rows()
    form.drop_dependent_columns()
    if not len(form.b):
        form.add_void_row()
    cones = Cones.of(form.zero, form.nonneg, dims.soc, dims.psd, dims.exp, dims.p3d)
    A, b, c = sp.csc_array(form.A), rest.unit * form.b, (rest.factor / rest.unit) * form.c
    unit = power_of_two(size / ORDER)
    # Without r there is no c, and forces are those of a curvature of one.
    weight = power_of_two(float(np.abs(c).max())) if np.any(c) else unit
    return StandardForm(A, b, c, cones, D, unit, weight)


def _check_exact(expression: Any) -> None:
    for node in _cvxpy.nodes(expression):
        error = getattr(node, "approx_error", 0.0)
        if _cvxpy.kind(node) in INEXACT or not (error is None or error == 0.0):
            raise NotSplittable(node, "is only approximated by the cones that CVXPY writes it with")


class _Rows:
    """Rows and columns on their way to a reduced form; ``zero`` rows first, then ``nonneg``."""

    def __init__(self, A: Any, b: Array, c: Array, theta: Index, zero: int, nonneg: int) -> None:
        self.A, self.b, self.c, self.theta = A, b, c, theta
        self.zero, self.nonneg = zero, nonneg

    def _keep_rows(self, order: Sequence[int]) -> None:
        self.A, self.b = self.A[order], self.b[order]

    def join_opposites(self) -> None:
        """a'x ≤ b and −a'x ≤ −b are one equation: no point is strictly inside of them."""
        first, last = self.zero, self.zero + self.nonneg
        seen: dict[tuple[bytes, bytes, float], int] = {}
        equal: list[int] = []
        gone: set[int] = set()
        self.A.sort_indices()
        for i in range(first, last):
            at = slice(self.A.indptr[i], self.A.indptr[i + 1])
            index, row, b = self.A.indices[at].tobytes(), self.A.data[at] + 0.0, float(self.b[i])
            opposite = (index, (-row + 0.0).tobytes(), -b + 0.0)
            if opposite in seen:
                equal.append(seen.pop(opposite))
                gone |= {equal[-1], i}
            else:
                seen[index, row.tobytes(), b + 0.0] = i
        rest = [i for i in range(first, last) if i not in gone]
        self._keep_rows([*range(first), *equal, *rest, *range(last, len(self.b))])
        self.zero, self.nonneg = first + len(equal), len(rest)

    def drop_relaxing_columns(self) -> None:
        """A free column without cost that only relaxes inequalities makes them void."""
        while True:
            A = sp.csc_array(self.A)
            rows: npt.NDArray[Any] = np.zeros(0, dtype=int)
            for j in np.setdiff1d(np.flatnonzero(self.c == 0.0), self.theta):
                at = slice(A.indptr[j], A.indptr[j + 1])
                own, values = A.indices[at][A.data[at] != 0], A.data[at][A.data[at] != 0]
                void = len(own) and own.min() >= self.zero
                void = void and own.max() < self.zero + self.nonneg
                if void and (np.all(values < 0.0) or np.all(values > 0.0)):
                    rows = own
                    break
            if not len(rows):
                return
            self._keep_rows(np.setdiff1d(np.arange(len(self.b)), rows).tolist())
            self.nonneg -= len(rows)

    def drop_dependent_rows(self) -> None:
        """Equations that follow from the others."""
        if not self.zero:
            return
        kept = _independent(self.A[: self.zero].toarray().T)
        self._keep_rows([*kept, *range(self.zero, len(self.b))])
        self.zero = len(kept)

    def drop_dependent_columns(self) -> None:
        """Auxiliary columns that follow from others: their variables may be 0. θ comes first."""
        auxiliary = np.setdiff1d(np.arange(len(self.c)), self.theta)
        kept = auxiliary[_independent(self.A[:, auxiliary].toarray())]
        columns = np.concatenate([self.theta, kept])
        self.A, self.c = sp.csr_array(self.A[:, columns]), self.c[columns]

    def add_void_row(self) -> None:
        """0'x ≤ 1, for solvers that want a row."""
        self.A, self.b = sp.csr_array((1, len(self.c))), np.ones(1)
        self.nonneg = 1


def _independent(M: Array) -> Index:
    """Columns of M that span all of them, in their order."""
    if 0 in M.shape:
        return np.zeros(0, dtype=np.intp)
    R, order = sla.qr(M, mode="r", pivoting=True)
    size = np.abs(np.diagonal(R))
    return np.sort(order[: len(size)][size > RANK * max(float(size.max(initial=0.0)), 1e-300)])
