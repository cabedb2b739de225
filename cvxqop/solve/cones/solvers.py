"""min ½x'Px + q'x subject to b − Ax ∈ K by the solvers that CVXPY knows, Clarabel directly."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import clarabel
import cvxpy as cp
import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from cvxqop._cvxpy import SHARED
from cvxqop.solve.cones.cones import Cones
from cvxqop.solve.cones.projections import vector

__all__ = ["ConeSolution", "cone_constraints", "run_clarabel", "run_cvxpy"]

Array = npt.NDArray[np.float64]

TOLERANCE = 1e-10


@dataclass(frozen=True, eq=False)
class ConeSolution:
    """x, s = b − Ax in K and y in K*, up to the solver's tolerance; entries may not be finite."""

    x: Array
    s: Array
    y: Array


def run_clarabel(
    P: Any,
    q: Array,
    A: Any,
    b: Array,
    cones: Cones,
    options: Mapping[str, Any] | None = None,
    *,
    equation: bool = False,
    extra: int = 0,
) -> ConeSolution:
    """By Clarabel, which reads this form as it is.

    Parameters
    ----------
    P, A : sparse arrays
    q, b : arrays
    cones : Cones
        K.
    options : mapping or None
        Attributes of Clarabel's settings.
    equation : bool
        Whether one equation follows the rows of K.
    extra : int
        How many nonnegative rows follow after that.

    Raises
    ------
    AttributeError, TypeError
        An option that Clarabel does not have, or of a wrong type.
    """
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = 1
    # Clarabel's presolve would drop rows, and their duals with them.
    settings.presolve_enable = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = TOLERANCE
    for name, value in (options or {}).items():
        getattr(settings, name)
        setattr(settings, name, value)
    kinds = [_clarabel_cone(cone) for cone in cones.parts]
    if equation:
        kinds.append(clarabel.ZeroConeT(1))
    if extra:
        kinds.append(clarabel.NonnegativeConeT(extra))
    upper = sp.csc_matrix(sp.triu(P))
    found = clarabel.DefaultSolver(upper, q, sp.csc_matrix(A), b, kinds, settings).solve()
    return ConeSolution(*(np.array(part, dtype=np.float64) for part in (found.x, found.s, found.z)))


def _clarabel_cone(cone: Any) -> Any:
    size = cone.rows.stop - cone.rows.start
    if cone.kind == "zero":
        return clarabel.ZeroConeT(size)
    if cone.kind == "nonneg":
        return clarabel.NonnegativeConeT(size)
    if cone.kind == "soc":
        return clarabel.SecondOrderConeT(size)
    if cone.kind == "psd":
        return clarabel.PSDTriangleConeT(cone.side)
    if cone.kind == "exp":
        return clarabel.ExponentialConeT()
    return clarabel.PowerConeT(cone.parameter)


def cone_problem(
    H: Array, q: Array, A: Any, b: Array, cones: Cones
) -> tuple[cp.Problem, cp.Variable, list[cp.Constraint]]:
    """The same as a CVXPY problem, with one constraint a cone; ½x'Px is ½d'Hd of the first x."""
    x = cp.Variable(len(q))
    constraints = cone_constraints(cones, b - A @ x)
    bend = cp.quad_form(x[: len(H)], cp.psd_wrap(H))
    return cp.Problem(cp.Minimize(0.5 * bend + q @ x), constraints), x, constraints


def cone_constraints(cones: Cones, slack: Any) -> list[cp.Constraint]:
    """slack ∈ K, one constraint a cone."""
    return [_cvxpy_cone(cone, slack[cone.rows]) for cone in cones.parts]


def _cvxpy_cone(cone: Any, s: Any) -> cp.Constraint:
    if cone.kind == "zero":
        return s == 0
    if cone.kind == "nonneg":
        return s >= 0
    if cone.kind == "soc":
        return cp.SOC(s[0], s[1:])
    if cone.kind == "exp":
        return cp.ExpCone(s[0], s[1], s[2])
    if cone.kind == "pow":
        return cp.PowCone3D(s[0], s[1], s[2], cone.parameter)
    side = cone.side
    columns, rows = np.tril_indices(side)
    E = np.zeros((side, side, len(rows)))
    scale = np.where(rows == columns, 1.0, np.sqrt(0.5))
    E[rows, columns, np.arange(len(rows))] = E[columns, rows, np.arange(len(rows))] = scale
    return cp.reshape(E.reshape(side * side, -1) @ s, (side, side), order="C") >> 0


def run_cvxpy(
    solve: Any, H: Array, q: Array, A: Any, b: Array, cones: Cones
) -> ConeSolution | None:
    """By a solver of CVXPY: ``solve`` takes a problem and returns its solution, or raises."""
    with SHARED:
        problem, x, constraints = cone_problem(H, q, A, b, cones)
    solution = solve(problem)
    if not solution.primal_vars:
        return None
    value = np.asarray(solution.primal_vars[x.id], dtype=np.float64)
    y = np.zeros(len(b))
    for cone, constraint in zip(cones.parts, constraints, strict=True):
        if constraint.id not in solution.dual_vars:
            return None
        constraint.save_dual_value(solution.dual_vars[constraint.id])
        y[cone.rows] = _stacked(cone, constraint.dual_value)
    return ConeSolution(value, np.asarray(b - A @ value), y)


def _stacked(cone: Any, dual: Any) -> Array:
    """The dual of one constraint in the order of the cone; of equations, with Clarabel's sign."""
    if cone.kind == "psd":
        matrix = np.asarray(dual, dtype=np.float64).reshape(cone.side, cone.side)
        return vector(0.5 * (matrix + matrix.T))
    parts = dual if isinstance(dual, list | tuple) else [dual]
    flat = np.concatenate([np.ravel(np.asarray(part, dtype=np.float64)) for part in parts])
    return -flat if cone.kind == "zero" else flat
