"""Projections onto the orthant, the second-order cone and the semidefinite cone, with derivatives.

Symmetric matrices are stacked by columns of their upper triangle, entries off the diagonal
times √2.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from cvxqop.solve.cones.exponential_cone import LONG_EPS

__all__ = ["PROJECTIONS", "matrix", "negative_part", "vector"]

Array = npt.NDArray[np.float64]
Vector = npt.NDArray[Any]


def matrix(v: Vector, side: int) -> Vector:
    """The symmetric matrix that is stacked in v."""
    M = np.zeros((side, side), dtype=v.dtype)
    columns, rows = np.tril_indices(side)
    scale = np.where(rows == columns, v.dtype.type(1), 1 / np.sqrt(v.dtype.type(2)))
    M[rows, columns] = M[columns, rows] = v * scale
    return M


def vector(M: Vector) -> Vector:
    """A symmetric matrix, stacked."""
    columns, rows = np.tril_indices(len(M))
    return np.asarray(
        M[rows, columns] * np.where(rows == columns, M.dtype.type(1), np.sqrt(M.dtype.type(2)))
    )


def _nonnegative(v: Vector) -> tuple[Vector, Array]:
    return np.maximum(v, 0.0), np.diag((v > 0.0).astype(np.float64))


def _second_order(v: Vector) -> tuple[Vector, Array]:
    t, x = v[0], v[1:]
    length = np.sqrt((x * x).sum())
    n = len(v)
    if length <= t:
        return v.copy(), np.eye(n)
    if length <= -t:
        return np.zeros_like(v), np.zeros((n, n))
    u = x / length
    level = 0.5 * (t + length)
    J = np.empty((n, n))
    J[0, 0] = 0.5
    J[0, 1:] = J[1:, 0] = 0.5 * u
    share = float(t / length)
    J[1:, 1:] = 0.5 * ((1.0 + share) * np.eye(n - 1) - share * np.outer(u, u).astype(np.float64))
    return np.concatenate([[level], level * u]), J


def _semidefinite(v: Vector) -> tuple[Vector, Array]:
    """Eigenvalues cut at 0; in extended precision by one correction of the double ones."""
    n = len(v)
    side = round((np.sqrt(8 * n + 1) - 1) / 2)
    T, V = _rotated(v, side)
    values = np.diag(T)
    low = values.astype(np.float64)
    kept = np.maximum(low, 0.0)
    gaps = low[:, None] - low[None, :]
    same = np.abs(gaps) < 1e-14 * max(1.0, float(np.abs(low).max()))
    positive = (low > 0.0).astype(np.float64)
    W = np.where(
        same,
        np.outer(positive, positive),
        (kept[:, None] - kept[None, :]) / np.where(same, 1.0, gaps),
    )
    core = np.diag(np.maximum(values, 0.0)) + W * (T - np.diag(values))
    U = V.astype(np.float64)
    J = np.empty((n, n))
    for k, unit in enumerate(np.eye(n)):
        J[:, k] = vector(U @ (W * (U.T @ matrix(unit, side) @ U)) @ U.T)
    return vector(V @ core @ V.T), J


PROJECTIONS: dict[str, Callable[[Vector], tuple[Vector, Array]]] = {
    "nonneg": _nonnegative,
    "soc": _second_order,
    "psd": _semidefinite,
}


def _rotated(v: Vector, side: int) -> tuple[Vector, Vector]:
    """V'MV, nearly diagonal, and V, orthogonal to the precision of v."""
    M = matrix(v, side)
    V = np.linalg.eigh(M.astype(np.float64))[1].astype(v.dtype)
    for _ in range(2):
        V = V @ (1.5 * np.eye(side) - 0.5 * (V.T @ V))
    return V.T @ M @ V, V


def negative_part(v: Vector, side: int) -> float:
    """Bound on the distance to the semidefinite matrices, by Gershgorin's discs of V'MV."""
    if not np.all(np.isfinite(v.astype(np.float64))):
        return np.inf
    T, _ = _rotated(v.astype(np.longdouble), side)
    values = np.diag(T)
    low = values - np.abs(T - np.diag(values)).sum(axis=1)
    rounding = 16.0 * LONG_EPS * side * side * float(np.sqrt((v * v).sum()))
    return float(np.sqrt((np.minimum(low, 0.0) ** 2).sum())) * (1.0 + 1e-12) + rounding
