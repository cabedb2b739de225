"""The exact hockey-stick divergence between the outputs on two neighbouring data sets."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cvxqop.audit.call import Call
from cvxqop.audit.density import density
from cvxqop.audit.interval import Interval, interval, on_intervals
from cvxqop.audit.loss_divergence import loss_divergence, path_divergence
from cvxqop.audit.objective import Objective, Smooth, public_rest
from cvxqop.audit.softmax import SoftmaxObjective
from cvxqop.case import Case
from cvxqop.errors import OptionError
from cvxqop.privacy.gaussian.adaptive import CalibratedAdaptive
from cvxqop.privacy.mechanism import Mechanism
from cvxqop.problem.losses.declared_loss import DeclaredLoss
from cvxqop.spending.spend import release_quadratic

__all__ = ["Divergence", "divergence", "grid", "hockey_stick"]

Array = npt.NDArray[np.float64]

EPSILONS = (0.25, 0.5, 1.0, 1.5, 2.0, 3.0)
"""Multiples of the ε of the call at which the profile is compared."""

MASS = 2e-3
"""Largest error of the integral of a density that is taken for a success."""


@dataclass(frozen=True)
class Divergence:
    """δ(ε) between the outputs on two data sets, against the profile that is claimed.

    Attributes
    ----------
    epsilons : tuple of float
    measured : tuple of float
        δ(ε), the larger of the two directions.
    errors : tuple of float
        Of the quadrature: the change from half as many points a dimension, plus 1e-9.
    claimed : tuple of float
        The profile of the mechanism, the smaller of the two where they differ.
    """

    epsilons: tuple[float, ...]
    measured: tuple[float, ...]
    errors: tuple[float, ...]
    claimed: tuple[float, ...]

    @property
    def holds(self) -> bool:
        """Whether the claim is exceeded nowhere by more than the error of the quadrature."""
        rows = zip(self.measured, self.errors, self.claimed, strict=True)
        return all(value - error <= claim for value, error, claim in rows)

    @property
    def attained(self) -> float:
        """Largest measured δ, less its error, as a fraction of the claimed one; 1 is tight."""
        rows = zip(self.measured, self.errors, self.claimed, strict=True)
        parts = [max(value - error, 0.0) / claim for value, error, claim in rows if claim > 0.0]
        return max(parts, default=0.0)

    def __str__(self) -> str:
        lines = [f"{'ε':>8}{'δ measured':>14}{'± error':>12}{'δ claimed':>14}"]
        rows = zip(self.epsilons, self.measured, self.errors, self.claimed, strict=True)
        lines += [f"{e:8.3g}{value:14.4e}{error:12.1e}{top:14.4e}" for e, value, error, top in rows]
        return "\n".join([*lines, "the claim holds" if self.holds else "the claim IS VIOLATED"])


def divergence(
    call: Call,
    D: Any,
    D_prime: Any,
    *,
    epsilons: Sequence[float] | None = None,
    objective: Callable[[Any], Smooth | None] | None = None,
) -> Divergence:
    """Integrate δ(ε) = ∫ (p_D − e^ε p_D')₊ in at most two dimensions, and compare with the claim.

    The problem is read, clipped and calibrated as :func:`cvxqop.privatize` does it; the densities
    are those of the noise that the calibrated mechanism states, so that faults are seen which no
    number of releases would show. What it takes on trust is that the draws follow that law
    (:func:`cvxqop.audit.draws_follow_law`) and that solves are exact.

    Parameters
    ----------
    call : Call
        ``output="solution"``: the exact perturbed minimiser, public rest quadratic; Wishart and
        linear perturbation in d ≤ 2, Gaussian in d = 1, without constraints; linear perturbation
        also on a bounded interval, d = 1, with an atom at either end. Of a multinomial
        loss with three classes and one feature, the two directions that it depends on. A declared
        loss needs ``objective``. ``output="loss"``: the pair (H̃, g̃) of a squared or declared
        quadratic loss, Wishart (d ≤ 2) and Gaussian (any d); of adaptive stages the law of all
        releases given a path, the largest divergence of some paths.
    D, D_prime : object
        Neighbouring data sets, as the call takes them.
    epsilons : sequence of float, optional
        Where to compare; None is six multiples of the ε of the call.
    objective : callable, optional
        For a declared loss: maps a data set to an object with ``dimension`` and ``at``, gradients
        and Hessians of the objective at points θ0 + u, as :class:`cvxqop.audit.objective.Smooth`.
        Gradients are compared with those of the problem.

    Returns
    -------
    Divergence

    Raises
    ------
    OptionError
        If the output has no density that is known here, or ``objective`` is not that of the
        problem.
    RuntimeError
        If a density does not integrate to one: the grid does not fit the problem. Scale the data
        to rows and solutions of order one.

    Notes
    -----
    Theory §2. For the holder of the data, as every audit.

    Examples
    --------
    >>> import cvxpy as cp, cvxqop, numpy as np
    >>> from cvxqop.audit import Call, divergence
    >>> def state(data):
    ...     X, y = data
    ...     theta = cp.Variable(1)
    ...     return cp.Problem(cp.Minimize(0.5 * cp.sum_squares(X @ theta - y))), [X, y]
    >>> call = Call(
    ...     state, output="loss", bounds=cvxqop.Bounds(row_norm=1.0, offset=1.0),
    ...     epsilon=1.0, delta=1e-6,
    ...     adjacency="add_remove",
    ... )
    >>> none, one = (np.zeros((1, 1)), np.zeros(1)), (np.ones((1, 1)), np.ones(1))
    >>> found = divergence(call, none, one)
    >>> found.holds, round(found.attained, 2)
    (True, 1.0)
    """
    cases = [call.prepare(data)[0] for data in (D, D_prime)]
    at = tuple(float(e) for e in (epsilons or [f * call.epsilon for f in EPSILONS]))
    mechanisms = [case.mechanism for case in cases]
    if call.output == "loss":
        if not mechanisms[0].sensitivity.quadratic:
            raise OptionError("output='loss' is for squared losses; use 'solution'.")
        if isinstance(mechanisms[0], CalibratedAdaptive):
            prepared = [call.prepare(data) for data in (D, D_prime)]
            found = path_divergence(release_quadratic, prepared, at)
        else:
            forms = [case.sums.quadratic_form() for case in cases]
            found = loss_divergence(mechanisms, forms, at)
    else:
        intervals = [interval(case) for case in cases]
        datas = zip(cases, (D, D_prime), strict=True)
        objectives = [_objective(case, data, objective) for case, data in datas]
        found = _differences(_rules(mechanisms, objectives, intervals), at)
    claims = call.profile(D, D_prime)(np.array(at))
    return Divergence(
        at,
        tuple(value for value, _ in found),
        tuple(error + 1e-9 for _, error in found),
        tuple(float(claim) for claim in claims),
    )


def _rules(
    mechanisms: Sequence[Mechanism],
    objectives: Sequence[Smooth],
    intervals: Sequence[Interval | None],
) -> list[tuple[Array, Array, Array]]:
    """Densities p and q with the weights of a quadrature rule, and the same on half the points."""
    bounded = [one for one in intervals if one is not None]
    if len(bounded) == len(intervals):
        return on_intervals(mechanisms, objectives, bounded)
    if bounded:
        raise OptionError("divergence: one of the two problems has constraints, the other none.")
    u, weight, coarse = grid(objectives[0].dimension)
    p, q = (density(m, J, u) for m, J in zip(mechanisms, objectives, strict=True))
    return [(p, q, weight), (p, q, coarse)]


def _differences(
    rules: Sequence[tuple[Array, Array, Array]], at: Sequence[float]
) -> list[tuple[float, float]]:
    """(δ, error of the quadrature) at each ε, the larger of the two directions."""
    p, q, weight = rules[0]
    for values in (p, q):
        if not abs(float(weight @ values) - 1.0) <= MASS:
            raise RuntimeError(
                f"A density integrates to {float(weight @ values):.4g}: the grid does not "
                "resolve it. Scale the data to rows and solutions of order one."
            )
    found = []
    for e in at:
        ways = zip(*((hockey_stick(p, q, w, e), hockey_stick(q, p, w, e)) for p, q, w in rules),
                   strict=True)  # fmt: skip
        found.append(max((fine, abs(fine - rough)) for fine, rough in ways))
    return found


def _objective(case: Case, data: Any, stated: Callable[[Any], Smooth | None] | None) -> Smooth:
    if case.erm.loss.flat is not None:
        return SoftmaxObjective.of(case)
    J = None if stated is None else stated(data)
    if J is None or not isinstance(case.erm.loss, DeclaredLoss):
        return Objective.of(case)
    linear, curvature = public_rest(case)
    function, d = case.erm.loss.function(), len(case.anchor)
    points = np.vstack([size * (np.eye(d) + 0.3) for size in (-1.5, 0.7)])
    gradients = points @ curvature + linear
    for point, gradient in zip(points, gradients, strict=True):
        found = function(case.anchor + point)
        gradient += np.nan if found is None else found[1]
    if J.dimension != d or not np.allclose(J.at(points)[0], gradients, rtol=1e-6, atol=1e-9):
        raise OptionError("divergence: the gradients of objective are not those of the problem.")
    return J


def grid(dimension: int, ends: tuple[float, float] | None = None) -> tuple[Array, Array, Array]:
    """Points (N, d) with log |u| between the ends (±30, or ±8 for d = 2); weights of the
    trapezoidal rule in log |u|; those of half as many points a dimension, zero at the others."""
    low, high = ends or ((-30.0, 30.0) if dimension == 1 else (-8.0, 8.0))
    if dimension == 1:
        t, step = np.linspace(low, high, 8001, retstep=True)
        u = np.concatenate([-np.exp(t), np.exp(t)])
        weight = np.tile(np.exp(t) * step, 2)
        coarse = np.tile(np.where(np.arange(len(t)) % 2 == 0, 2.0, 0.0), 2)
        return u[:, None], weight, weight * coarse
    if dimension != 2:
        raise OptionError(f"divergence: densities are known for d ≤ 2, not for d = {dimension}.")
    t, step = np.linspace(low, high, 301, retstep=True)
    angles = 240
    phi = (np.arange(angles) + 0.5) * 2.0 * math.pi / angles
    r, phi = np.exp(t)[:, None], phi[None, :]
    u = np.stack([r * np.cos(phi), r * np.sin(phi)], axis=-1).reshape(-1, 2)
    weight = np.broadcast_to(r**2 * step * 2.0 * math.pi / angles, (len(t), angles)).ravel()
    even = (np.arange(len(t)) % 2 == 0)[:, None] & (np.arange(angles) % 2 == 0)[None, :]
    return u, weight, weight * np.where(even, 4.0, 0.0).ravel()


def hockey_stick(p: Array, q: Array, weight: Array, epsilon: float) -> float:
    """∫ (p − e^ε q)₊ by a quadrature rule."""
    return float(weight @ np.maximum(p - math.exp(epsilon) * q, 0.0))
