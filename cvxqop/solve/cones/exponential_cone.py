"""The exponential cone K = cl {(x, y, z) : y > 0, y exp(x/y) ≤ z} and its dual.

K* = cl {(u, v, w) : u < 0, −u exp(v/u − 1) ≤ w}.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["CENTRE", "LONG_EPS", "outside", "project", "radius"]

Array = npt.NDArray[np.float64]
Vector = npt.NDArray[Any]

LONG_EPS = float(np.finfo(np.longdouble).eps)

CENTRE = np.array([-1.051383945322714, 0.556409619469370, 1.258967884768947])
CENTRE_RADIUS = 0.55
"""A ball of this radius around ``CENTRE`` lies in K and in K*: a number below the least product of
``CENTRE`` with a unit vector of either, which the tests compute."""

EDGE = 400.0


def outside(v: Vector, dual: bool) -> float:
    """Upper bound on the distance to K (to K*): the least move of one entry, or to the face.

    The entry under the exponential is moved where that is steep, the bound above it where it is
    flat; each bound includes its rounding.
    """
    x, y, z = v.astype(np.longdouble)
    with np.errstate(all="ignore"):
        if dual:
            size, argument, top = -x, y / x - 1.0, -y
            most = size * (1.0 + np.log(z / size))
            face = np.sqrt(x * x + np.minimum(y, 0.0) ** 2 + np.minimum(z, 0.0) ** 2)
        else:
            size, argument, top = y, x / y, x
            most = size * np.log(z / size)
            face = np.sqrt(y * y + np.maximum(x, 0.0) ** 2 + np.minimum(z, 0.0) ** 2)
        level = size * np.exp(argument) if size > 0.0 else np.inf
        above = _excess(level, z, (1.0 + np.abs(argument)) * level)
        under = np.inf
        if size > 0.0 and z > 0.0:
            under = _excess(top, most, np.abs(top) + np.abs(most) + 2.0 * size)
    return float(np.fmin(np.fmin(above, under), face))


def _excess(value: Any, bound: Any, size: Any) -> Any:
    """How far a number is above a bound; 0 only where rounding of that size leaves no doubt."""
    rounding = 8.0 * LONG_EPS * size
    return np.maximum(value - bound, 0.0) + rounding if value + rounding > bound else 0.0


def radius(v: Array, dual: bool) -> float:
    """Lower bound on the radius of a ball around v in K (in K*), by bisection along ``CENTRE``."""
    low, high = 0.0, float(np.linalg.norm(v)) / float(np.linalg.norm(CENTRE))
    for _ in range(60):
        middle = 0.5 * (low + high)
        inside = _strictly_inside(v - middle * CENTRE, dual)
        low, high = (middle, high) if inside else (low, middle)
    return low * CENTRE_RADIUS * (1.0 - 1e-9)


def _strictly_inside(v: Array, dual: bool) -> bool:
    x, y, z = v
    with np.errstate(over="ignore"):
        if dual:
            return bool(x < 0.0 and -x * np.exp(y / x - 1.0) * (1.0 + 1e-12) < z)
        return bool(y > 0.0 and y * np.exp(x / y) * (1.0 + 1e-12) < z)


def project(V: Vector, near: tuple[Vector, Vector] | None) -> tuple[Vector, Array]:
    """Projections of k points at once and their derivatives, (k, 3) and (k, 3, 3).

    Between the cones w = r (t, 1, eᵗ) − d (−eᵗ, eᵗ(t − 1), 1) with r, d > 0: Newton's method in
    (r, t, d), and where that fails Friberg's bisection in t.
    """
    k = len(V)
    x, y, z = V.T
    with np.errstate(all="ignore"):
        inside = (y > 0) & (y * np.exp(np.minimum(x / y, EDGE)) <= z)
        polar = (x > 0) & (x * np.exp(np.minimum(y / x, EDGE)) <= -np.e * z)
    flat = (x <= 0) & (y <= 0) & ~inside & ~polar
    curved = ~(inside | polar | flat)
    out, J = np.zeros_like(V), np.zeros((k, 3, 3))
    out[inside], J[inside] = V[inside], np.eye(3)
    out[flat] = np.stack([x, 0 * x, np.maximum(z, 0)], axis=1)[flat]
    J[flat, 0, 0] = 1.0
    J[flat, 2, 2] = (z[flat] > 0).astype(np.float64)
    if np.any(curved):
        start = None if near is None else (near[0][curved], near[1][curved])
        out[curved], J[curved] = _curved(V[curved], start)
    return out, J


def _curved(V: Vector, near: tuple[Vector, Vector] | None) -> tuple[Vector, Array]:
    k, unit = len(V), np.finfo(V.dtype).eps
    s, y = near if near is not None else (np.maximum(V, [-1e9, 0.1, 0.1]), np.full((k, 3), 0.1))
    r, d = np.maximum(s[:, 1], 1e-12), np.maximum(y[:, 2], 1e-14)
    sizes = 1.0 + np.sqrt((V**2).sum(axis=1))
    with np.errstate(all="ignore"):
        t = np.clip(s[:, 0] / r, -40.0, 40.0)
        for _ in range(60):
            F = _equations(r, t, d, V)
            length = np.sqrt((F**2).sum(axis=1))
            if np.all(length <= 4.0 * unit * sizes):
                break
            step = _step(r, t, d, F, length)
            r, t, d = _damped(r, t, d, step)
        length = np.sqrt((_equations(r, t, d, V) ** 2).sum(axis=1))
        failed = ~(length <= 1e-13 * sizes)
        if np.any(failed):
            r[failed], t[failed], d[failed] = _bisected(V[failed])
        J, Js = _derivatives(r, t, d)
        bad = ~(np.isfinite(J).all(axis=(1, 2)) & np.isfinite(Js).all(axis=(1, 2)))
        J[bad], Js[bad] = np.eye(3), 0.0
        out = np.stack([r * t, r, r * np.exp(t)], axis=1)
        missed = ~(np.sqrt((_equations(r, t, d, V) ** 2).sum(axis=1)) <= 1e-9 * sizes)
    # Beyond that the cone is as flat as its face y = 0.
    x, _, z = V.T
    out[missed] = np.stack([np.minimum(x, 0), 0 * x, np.maximum(z, 0)], axis=1)[missed]
    Js[missed] = 0.0
    return out, Js @ np.linalg.pinv(J)


def _equations(r: Vector, t: Vector, d: Vector, V: Vector) -> Vector:
    E = np.exp(t)
    return np.stack([r * t + d * E, r - d * E * (t - 1), r * E - d], axis=1) - V


def _derivatives(r: Vector, t: Vector, d: Vector) -> tuple[Array, Array]:
    """Of w and of the projection by (r, t, d), columns scaled alike."""
    E, one, zero = np.exp(t), np.ones_like(t), np.zeros_like(t)
    J = np.stack([t, r + d * E, E, one, -d * E * t, -E * (t - 1), E, r * E, -one], axis=1)
    Js = np.stack([t, r, zero, one, zero, zero, E, r * E, zero], axis=1)
    J, Js = (M.reshape(-1, 3, 3).astype(np.float64) for M in (J, Js))
    scale = np.linalg.norm(np.nan_to_num(J, posinf=1.0, neginf=1.0), axis=1)
    scale = np.where(scale > 0.0, scale, 1.0)[:, None, :]
    return J / scale, Js / scale


def _step(r: Vector, t: Vector, d: Vector, F: Vector, length: Vector) -> Vector:
    E, one = np.exp(t), np.ones_like(t)
    J = np.stack([t, r + d * E, E, one, -d * E * t, -E * (t - 1), E, r * E, -one], axis=1)
    J = J.reshape(-1, 3, 3).astype(np.float64)
    scale = np.linalg.norm(np.nan_to_num(J), axis=1)[:, None, :]
    scale[~(scale > 0.0)] = 1.0
    J = J / scale
    J[~np.isfinite(J).all(axis=(1, 2))] = np.eye(3)
    J[np.abs(np.linalg.det(J)) < 1e-200] = np.eye(3)
    size = np.where(length > 0.0, length, 1.0)
    direction = -np.nan_to_num((F / size[:, None]).astype(np.float64))
    solved = np.linalg.solve(J, direction[:, :, None])[:, :, 0] / scale[:, 0, :]
    return np.asarray(solved * size[:, None])


def _damped(r: Vector, t: Vector, d: Vector, step: Vector) -> tuple[Vector, Vector, Vector]:
    """The step, shortened so that r and d stay positive and t moves by 2 at most."""
    a = np.ones_like(r)
    for _ in range(20):
        bad = (r + a * step[:, 0] <= 0) | (d + a * step[:, 2] <= 0) | (np.abs(a * step[:, 1]) > 2)
        if not np.any(bad):
            break
        a[bad] *= 0.5
    return r + a * step[:, 0], t + a * step[:, 1], d + a * step[:, 2]


def _bisected(V: Vector) -> tuple[Vector, Vector, Vector]:
    """The root of a(t) eᵗ − b(t) e⁻ᵗ = z, increasing where a, b ≥ 0 (Friberg 2021)."""
    x, y, z = V.T
    low, high = np.full_like(x, -EDGE), np.full_like(x, EDGE)
    low = np.where(x > 0, np.maximum(low, 1 - y / x), low)
    low = np.where(y < 0, np.maximum(low, x / y), low)
    high = np.where(y > 0, np.minimum(high, x / y), high)
    high = np.where(x < 0, np.minimum(high, 1 - y / x), high)

    def parts(t: Vector) -> tuple[Vector, Vector]:
        size = t * t - t + 1
        return ((t - 1) * x + y) / size, (x - t * y) / size

    for _ in range(130):
        middle = 0.5 * (low + high)
        a, b = parts(middle)
        above = a * np.exp(middle) - b * np.exp(-middle) - z > 0
        high, low = np.where(above, middle, high), np.where(above, low, middle)
    t = 0.5 * (low + high)
    a, b = parts(t)
    return np.maximum(a, 0), t, np.maximum(b, 0) * np.exp(-t)
