"""An exact test of whether θ is the solution without privacy, for any convex r and C.

At the minimiser θ of f + r over C there is a v ∈ ∂(r + ι_C)(θ) with ∇f(θ) + v = 0. The released
form has there, with u = θ − θ0 and H̃ centred by its mean,

    H̃u + g̃ + v = (S − E S)u + a,     covariance Σ(u) = (σ² + ½s²‖u‖²) I + ½s² uu',

which is Gaussian for the Gaussian ensemble. Hence T(θ) = min over v of ‖H̃u + g̃ + v‖² in the metric
Σ(u)⁻¹ is at most a χ²_D variate, whatever H is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import cvxpy as cp
import numpy as np
import numpy.typing as npt
from cvxpy import settings
from cvxpy.error import SolverError
from scipy.linalg import cholesky, solve_triangular
from scipy.stats import chi2

from cvxqop.errors import OptionError
from cvxqop.inference.released import Released, generator_of, law_of, raw_of
from cvxqop.inference.solving import PublicRest
from cvxqop.solve.cones.cones import Cones
from cvxqop.solve.cones.standard_form import standard_form
from cvxqop.solve.engines.many import minimise_many
from cvxqop.solve.rest.rest import Rest
from cvxqop.solve.solvers import attempt
from cvxqop.solve.units import power_of_two

__all__ = ["p_value"]

Array = npt.NDArray[np.float64]

SIMULATED = 9_999
"""Draws of T where its law has no table: the Wishart ensemble."""
BLOCK = 2**21
SNAP = 1e-8
"""Entries of θ this close to a kink or a bound, relative to its size, are put on it."""
TIGHT = (1e-7, 1e-6, 1e-5)
"""ε of the ε-subgradients over cones, in the units of the program: the first that a solver manages.
A larger one can only raise a p-value."""
NEAR = 1e-6
"""Inequalities and equations that θ misses by less than this, in the units of the program, are
taken to be tight: more multipliers are then allowed."""


def p_value(
    loss: Released,
    theta: Any,
    regularizer: cp.Expression | float | None = None,
    constraints: Sequence[cp.Constraint] | None = None,
    *,
    seed: int | np.random.Generator | None = None,
) -> float:
    """See `PrivateLoss.p_value`."""
    rest, T = PublicRest.of(loss, regularizer, constraints), loss.scale
    point = _snapped(_stacked(loss, theta), rest.rest)
    loss = loss.of_scaled(T)
    law, raw, layout = law_of(loss), raw_of(loss), loss.layout
    u = point / T - loss.first_anchor
    residual = loss.first_gradient.copy()
    residual[layout] += raw @ u[layout]
    covariance = _covariance(law.gradient_scale, law.spread, u, layout)
    if not np.any(covariance):  # at the anchor, without a guard: the gradient is known
        least = _statistic(residual / T, np.diag(1.0 / T), point, rest)
        size = 1.0 + float(np.linalg.norm(residual))
        return float(least is not None and least <= (NEAR * size) ** 2)
    root = cholesky(covariance, lower=True)
    least = _statistic(residual / T, root / T[:, None], point, rest)
    if law.kind == "gaussian" or least is None:
        return 0.0 if least is None else float(chi2.sf(least, len(u)))
    generator, (d, k) = generator_of(seed), layout.shape
    above = 0
    size = max(1, BLOCK // d**2)
    for first in range(0, SIMULATED, size):
        count = min(size, SIMULATED - first)
        S = law.curvatures(generator, count, d)
        drawn = law.gradients(generator, count, d * k)
        drawn[:, layout] += S @ u[layout]
        drawn = solve_triangular(root, drawn.T, lower=True)
        above += int(np.count_nonzero(np.einsum("ib,ib->b", drawn, drawn) >= least))
    return (1 + above) / (1 + SIMULATED)


def _stacked(loss: Released, theta: Any) -> Array:
    """θ (D,) from an array, or a mapping of variables."""
    variables = loss.variables
    if isinstance(theta, Mapping):
        missing = [v.name() for v in variables if v not in theta]
        if missing:
            raise OptionError(f"theta: values of {', '.join(missing)} are missing.")
        parts = [np.asarray(theta[v], dtype=np.float64) for v in variables]
    else:
        parts = [np.asarray(theta, dtype=np.float64)]
    if [p.shape for p in parts] != [v.shape for v in variables]:
        shapes = ", ".join(f"{v.name()} of shape {v.shape}" for v in variables)
        raise OptionError(f"theta: a value of {shapes} is needed (a mapping for several).")
    return np.concatenate([p.ravel(order="F") for p in parts])


def _snapped(theta: Array, rest: Rest | None) -> Array:
    """θ with entries next to their kink or bound on it."""
    if rest is None or not rest.separable:
        return theta
    near = SNAP * (1.0 + np.abs(theta))
    kinked = (rest.weights > 0.0) & (np.abs(theta - rest.kinks) <= near)
    theta = np.where(kinked, rest.kinks, theta)
    theta = np.where(np.abs(theta - rest.lower) <= near, rest.lower, theta)
    theta = np.where(np.abs(theta - rest.upper) <= near, rest.upper, theta)
    return np.asarray(theta, dtype=np.float64)


def _covariance(sigma: float, s: float, u: Array, layout: npt.NDArray[np.intp]) -> Array:
    """Of (S − E S)U + a, (D, D): cov of entries (i, a) and (j, b) is ½s²(δ_ij u_a'u_b + U_ib U_ja)
    + σ² δ_ij δ_ab."""
    U = u[layout]
    d, k = U.shape
    gram = np.einsum("ij,ab->iajb", np.eye(d), U.T @ U) + np.einsum("ib,ja->iajb", U, U)
    block = 0.5 * s * s * gram.reshape(d * k, d * k) + sigma * sigma * np.eye(d * k)
    result = np.empty_like(block)
    places = layout.ravel()
    result[np.ix_(places, places)] = block
    return np.asarray(result)


def _statistic(residual: Array, root: Array, theta: Array, rest: PublicRest) -> float | None:
    """T(θ), None where θ is not in C."""
    operators = rest.rest
    if operators is None or not operators.separable:
        return _over_cones(residual, root, theta, rest)
    if np.any(theta < operators.lower) or np.any(theta > operators.upper):
        return None
    slope = residual + operators.q
    if operators.Q is not None:
        slope = slope + operators.Q @ theta
    low = operators.nearest_subgradient(theta, np.full_like(theta, -np.inf))
    high = operators.nearest_subgradient(theta, np.full_like(theta, np.inf))
    inverse = solve_triangular(root, np.eye(len(theta)), lower=True)
    metric = inverse.T @ inverse
    zero = np.zeros_like(theta)
    box = Rest(len(theta), None, zero, zero, zero, lower=low, upper=high)
    least = 1.0 / float(np.linalg.norm(root @ root.T, 2))
    start = np.clip(-slope, low, high)
    v = minimise_many(metric[None], (metric @ slope)[None], np.array([least]), box, start).theta[0]
    white = inverse @ (slope + v)
    return float(white @ white)


def _over_cones(residual: Array, root: Array, theta: Array, rest: PublicRest) -> float | None:
    """The same where ∂G is that of a cone program: u = c_θ + A_θ'y for y ∈ K*, A_v'y = −c_v and
    y's = (b − A_θ θ)'y + c_v'v at most ε, for some feasible v."""
    size = float(np.abs(theta).max(initial=0.0)) or 1.0
    form = standard_form(rest.variables, rest.regulariser, rest.constraints, size)
    D, unit = form.dimension, form.unit
    # Multipliers are as large as the forces that they balance.
    weight = max(form.weight, power_of_two(float(np.abs(residual).max())))
    A, c = form.A.toarray(), form.c / weight
    right = _forgiven((form.b - A[:, :D] @ theta) / unit, A[:, D:], form.cones)
    y, v = cp.Variable(len(form.b)), cp.Variable(A.shape[1] - D)
    slack = right - A[:, D:] @ v if v.size else cp.Constant(right)
    conditions = [*_inside(form.cones, y, dual=True), *_inside(form.cones, slack, dual=False)]
    cost = right @ y
    if v.size:
        conditions.append(A[:, D:].T @ y == -c[D:])
        cost = cost + c[D:] @ v
    inverse = solve_triangular(root, np.eye(D), lower=True)
    white = inverse @ (residual + weight * c[:D]) + (weight * inverse @ A[:, :D].T) @ y
    for tight in TIGHT:
        problem = cp.Problem(cp.Minimize(cp.sum_squares(white)), [*conditions, cost <= tight])
        status, solution = attempt(problem, "CLARABEL", {})
        if status in settings.SOLUTION_PRESENT:
            return max(float(solution.opt_val), 0.0)
        if status in settings.INF_OR_UNB:
            return None
    raise SolverError(f"p_value: the solver ended with status {status!r}.")


def _forgiven(s: Array, A: Array, cones: Cones) -> Array:
    """s with 0 where θ alone decides and is next to it."""
    alone = ~np.any(A, axis=1)
    for cone in cones.parts:
        part = s[cone.rows]
        near = alone[cone.rows] & (np.abs(part) <= NEAR)
        if cone.kind in ("zero", "nonneg"):
            s[cone.rows] = np.where(near, 0.0, part)
    return s


def _inside(cones: Cones, x: Any, dual: bool) -> list[cp.Constraint]:
    """x ∈ K, or K*, for CVXPY."""
    found: list[cp.Constraint] = []
    for cone in cones.parts:
        part = x[cone.rows]
        if cone.kind == "zero":
            found += [] if dual else [part == 0]
        elif cone.kind == "nonneg":
            found.append(part >= 0)
        elif cone.kind == "soc":
            found.append(cp.SOC(part[0], part[1:]))
        elif cone.kind == "psd":
            X = cp.Variable((cone.side, cone.side), PSD=True)
            rows, columns = np.triu_indices(cone.side)
            order = np.lexsort((rows, columns))
            rows, columns = rows[order], columns[order]
            scale = np.where(rows == columns, 1.0, np.sqrt(2.0))
            found.append(part == cp.multiply(scale, X[rows, columns]))
        elif cone.kind == "exp":
            a, b, z = part[0], part[1], part[2]
            found.append(cp.ExpCone(a - b, -a, z) if dual else cp.ExpCone(a, b, z))
        else:
            a, b, z = part[0], part[1], part[2]
            alpha = cone.parameter
            first, second = (a / alpha, b / (1.0 - alpha)) if dual else (a, b)
            found.append(cp.PowCone3D(first, second, z, alpha))
    return found
