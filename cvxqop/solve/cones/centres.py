"""Public points as far inside of a program, and of its dual, as one unit: repairs move to them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from cvxqop.solve.cones.solvers import run_clarabel
from cvxqop.solve.cones.standard_form import StandardForm

__all__ = ["dual_centre", "primal_centre"]

Array = npt.NDArray[np.float64]

FAR = 100.0
FARTHEST = 1e-6
"""Weight of ½‖x‖² in the search for a centre, so that it exists in unbounded sets."""


def primal_centre(form: StandardForm) -> Array:
    """x̄ with b − Ax̄ farthest inside of K, up to one unit."""
    cones, N = form.cones, form.A.shape[1]
    e = sp.csc_array(cones.centre[:, None])
    last = sp.csc_array(([1.0], ([0], [N])), shape=(1, N + 1))
    A = sp.vstack([sp.hstack([form.A, e]), last], format="csc")
    P = sp.diags_array(np.append(np.full(N, FARTHEST), 0.0), format="csc")
    found = run_clarabel(
        P, np.append(np.zeros(N), -1.0), A, np.append(form.b / form.unit, 1.0), cones, extra=1
    )
    return np.asarray(form.unit * found.x[:N])


def dual_centre(form: StandardForm, nearest: Array) -> Array:
    """ȳ with A_v'ȳ = −c_v farthest inside of K*, up to one unit.

    max {d ≤ 1 : y − de ∈ K*, A_v'y = −c_v, |y − de| ≤ R} is dual to
    min {c_v'v + t + R Σ|p| : p − A_v v ∈ K, t + e'(p − A_v v) = 1, t ≥ 0}; without R, which
    follows from the ``nearest`` y on the equations, the centre may be so far away that its
    rounding counts.
    """
    cones, D, weight = form.cones, form.dimension, form.weight
    e = cones.centre
    m, n = form.A.shape[0], form.A.shape[1] - D
    R = FAR * (1.0 + float(np.abs(nearest).max()))
    one, Av = sp.eye_array(m, format="csc"), sp.csc_array(form.A[:, D:])
    moved = sp.hstack([Av, -one, one], format="csc")
    balance = sp.csc_array(-(moved.T @ e)[None, :])
    A = sp.block_array([[moved, None], [balance, sp.csc_array([[1.0]])]])
    A = sp.vstack([A, -sp.eye_array(2 * m + 1, n + 2 * m + 1, k=n)], format="csc")
    found = run_clarabel(
        sp.csc_array((n + 2 * m + 1, n + 2 * m + 1)),
        np.concatenate([form.c[D:] / weight, np.full(2 * m, R), [1.0]]),
        A,
        np.concatenate([np.zeros(m), [1.0], np.zeros(2 * m + 1)]),
        cones,
        equation=True,
        extra=2 * m + 1,
    )
    return np.asarray(weight * (found.y[:m] - found.y[m] * e))
