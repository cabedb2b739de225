"""The front: the only place that knows all three wings.

CVXPY problem → ERM → constants → Plan → one draw → perturbed quadratic → solver → release.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import cvxpy as cp
import numpy as np
import numpy.typing as npt
from cvxpy.error import SolverError

from cvxqop import _cvxpy
from cvxqop.errors import PrivateSolverError, ProblemError, sealed
from cvxqop.privacy.mechanism import CalibratedWishart, Sensitivity, Wishart
from cvxqop.privacy.noise import Randomness
from cvxqop.privacy.wishart import Adjacency
from cvxqop.problem import analysis
from cvxqop.problem.anchor import resolve_anchor
from cvxqop.problem.bounds import Bounds
from cvxqop.problem.describe import describe
from cvxqop.problem.erm import ERM
from cvxqop.settings import Settings
from cvxqop.solution import Guarantee, Plan, PrivateLoss, PrivateSolution
from cvxqop.solve import conic, oracle
from cvxqop.statements import assumptions_of, caveats_of, warnings_of

__all__ = ["explain", "plan", "private_loss", "privatize"]

Array = npt.NDArray[np.float64]

BLOCK_ENTRIES = 2**18
"""Entries of a row block (2 MiB): it stays in cache from the norm to the Gram product."""


@sealed
def privatize(
    problem: cp.Problem,
    *,
    private: Sequence[Any],
    bounds: Bounds,
    epsilon: float,
    delta: float,
    adjacency: Adjacency = "replace_one",
    perturbation: str | Wishart = "wishart",
    anchor: Any = None,
    radius: float = 1.0,
    nonfinite: str = "raise",
    solver: str | None = None,
    solver_options: Mapping[str, Any] | None = None,
    seed: Any = None,
    verbose: bool = False,
) -> PrivateSolution:
    """Solve a convex empirical-risk problem with (ε, δ)-differential privacy.

    The problem is  minimise Σ_i φ(a_i'θ + c_i) + r(θ) over θ in C,  with private records
    (a_i, c_i). It is solved with ½(θ−θ0)'S(θ−θ0) + a'(θ−θ0) added to the objective, S a random
    Wishart matrix and a a Gaussian vector, both scaled by the exact privacy accountant. The
    release is written into the variables; nothing else of the problem is touched.

    Parameters
    ----------
    problem : cvxpy.Problem
        Minimise a squared loss of affine expressions in private data plus any convex public
        regulariser, subject to any convex public constraints.
    private : list
        The private arrays (matched by value), constants or parameters (by identity). Row i of each
        belongs to record i.
    bounds : Bounds
        Public bounds on a record, in the units of the data; records beyond them are clipped.
    epsilon, delta : float
        0 < ε ≤ 10⁶ and 10⁻³⁰⁰ ≤ δ < ½.
    adjacency : {"replace_one", "add_remove"}
        Neighbouring data sets differ in the values of one record (n is public), or in its presence.
    perturbation : "wishart" or Wishart
        The mechanism.
    anchor : array, dict {variable: array}, CommonMinimizer or None
        θ0, public, towards which the perturbation pulls; None is the origin.
    radius : float
        Hint for ‖θ̂ − θ0‖ in units of θ; used to choose free parameters only.
    nonfinite : {"raise", "zero"}
        A record with NaN or infinity is refused, or becomes a zero row.
    solver : str, optional
        Any installed CVXPY solver; None chooses.
    solver_options : dict, optional
        Passed to the solver.
    seed : None, int or numpy.random.Generator
        None draws from the operating system's cryptographic generator. Anything else is for
        research: the result is reproducible and not private.
    verbose : bool
        Progress for the holder of the data; not private.

    Returns
    -------
    PrivateSolution

    Raises
    ------
    ProblemError
        The problem, its private data or its bounds cannot be used; nothing was spent.
    OptionError
        An option is wrong; nothing was spent.
    CalibrationError
        (ε, δ) cannot be met by the mechanism; nothing was spent.
    PrivateSolverError
        The solver failed after the noise was drawn; ``error.private_loss`` can be solved again.

    Notes
    -----
    For squared losses the perturbed objective is itself private (theory §6): solver, accuracy,
    regulariser and constraints are post-processing. Cortild and Cartis 2026, Quadratic Objective
    Perturbation.

    Examples
    --------
    >>> import cvxpy as cp, cvxqop, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-0.5, 0.5, (2000, 3))
    >>> y = X @ [1.0, 0.0, -1.0]
    >>> theta = cp.Variable(3)
    >>> problem = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(X @ theta - y)), [cp.abs(theta) <= 2])
    >>> solution = cvxqop.privatize(
    ...     problem, private=[X, y], bounds=cvxqop.Bounds(row_norm=1.0, offset=1.0),
    ...     epsilon=1.0, delta=1e-6,
    ... )
    >>> bool(np.all(solution[theta] == theta.value))
    True
    """
    options = {
        "private": private, "bounds": bounds, "epsilon": epsilon, "delta": delta,
        "adjacency": adjacency, "perturbation": perturbation, "anchor": anchor, "radius": radius,
        "nonfinite": nonfinite, "solver": solver, "solver_options": solver_options or {},
        "seed": seed, "verbose": verbose,
    }  # fmt: skip
    return plan(problem, **options).run()


@sealed
def plan(problem: cp.Problem, **options: Any) -> Plan:
    """All that can be known before spending: mechanism, noise, profile, risk bound, warnings.

    Takes the options of :func:`privatize`. No record is read, except to find the private arrays
    among the constants of the problem.

    Examples
    --------
    >>> import cvxpy as cp, cvxqop, numpy as np
    >>> X, y, theta = np.ones((50, 2)), np.ones(50), cp.Variable(2)
    >>> problem = cp.Problem(cp.Minimize(cp.sum_squares(X @ theta - y)))
    >>> p = cvxqop.plan(
    ...     problem, private=[X, y], bounds=cvxqop.Bounds(row_norm=2.0, offset=1.0),
    ...     epsilon=1.0, delta=1e-6,
    ... )
    >>> bool(p.profile(1.0) <= 1e-6)
    True
    """
    settings = Settings.of(options)
    case = _Case.of(
        analysis.read(problem, settings.private, adjacency=settings.adjacency), settings
    )
    erm = case.erm
    solver = settings.solver or conic.default_solver(
        erm.variables, erm.regulariser, erm.constraints
    )
    conic.check_solver(
        solver, settings.solver_options, erm.variables, erm.regulariser, erm.constraints
    )
    return Plan(
        guarantee=case.guarantee,
        dimension=erm.dimension,
        records=erm.rows.n if settings.adjacency == "replace_one" else None,
        radius=settings.radius,
        solver=solver,
        warnings=warnings_of(erm, settings, case.mechanism),
        _execute=lambda: _run(case, solver),
    )


@sealed
def private_loss(expression: cp.Expression, **options: Any) -> PrivateLoss:
    """Release a squared loss once; use it in any number of problems at no further privacy cost.

    Parameters
    ----------
    expression : cvxpy.Expression
        The private loss alone, such as ``cp.sum_squares(X @ theta - y)``.
    **options
        As in :func:`privatize`, without ``solver`` and ``solver_options``.

    Returns
    -------
    PrivateLoss
        Its ``expression`` is an ordinary convex CVXPY expression.

    Raises
    ------
    ProblemError
        The expression has public terms or is not a squared loss; nothing was spent.

    Examples
    --------
    >>> import cvxpy as cp, cvxqop, numpy as np
    >>> X, y, theta = np.ones((50, 2)), np.ones(50), cp.Variable(2)
    >>> loss = cvxqop.private_loss(
    ...     cp.sum_squares(X @ theta - y), private=[X, y], epsilon=1.0, delta=1e-6,
    ...     bounds=cvxqop.Bounds(row_norm=2.0, offset=1.0),
    ... )
    >>> for lam in (0.1, 1.0, 10.0):    # a path of regularisers, paid for once
    ...     value = cp.Problem(cp.Minimize(loss.expression + lam * cp.norm1(theta))).solve()
    """
    settings = Settings.of(options)
    erm = analysis.read_expression(expression, settings.private, adjacency=settings.adjacency)
    return _release_quadratic(_Case.of(erm, settings))


@sealed
def explain(problem: cp.Problem, private: Sequence[Any], *, adjacency: str = "replace_one") -> str:
    """How the problem was read: loss terms, φ, rows, variables, public rest; or why it cannot be.

    Examples
    --------
    >>> import cvxpy as cp, cvxqop, numpy as np
    >>> X, y, theta = np.ones((50, 2)), np.ones(50), cp.Variable(2, name="theta")
    >>> problem = cp.Problem(cp.Minimize(cp.sum_squares(X @ theta - y) + cp.norm1(theta)))
    >>> print(cvxqop.explain(problem, private=[X, y]).splitlines()[0])
    Private loss, a sum over records of φ(a'θ + c):
    """
    return describe(analysis.read(problem, private, adjacency=adjacency))


@dataclass(frozen=True, eq=False)
class _Case:
    """A problem that was read, with its anchor, its mechanism and what it promises."""

    erm: ERM
    settings: Settings
    anchor: Array
    offset: float | None
    guarantee: Guarantee
    randomness: Randomness = field(repr=False)

    @property
    def mechanism(self) -> CalibratedWishart:
        return self.guarantee.mechanism

    @classmethod
    def of(cls, erm: ERM, settings: Settings) -> _Case:
        anchor, offset = resolve_anchor(erm, settings.anchor, settings.bounds)
        constants = erm.constants(settings.bounds, anchor, offset)
        if not constants.quadratic:
            raise ProblemError(
                f"The private loss {' + '.join(erm.terms)} is not quadratic. Squared losses are "
                "what this version makes private."
            )
        randomness = Randomness(settings.seed)
        sensitivity = Sensitivity(
            dimension=erm.dimension,
            smoothness=constants.smoothness,
            anchor_gradient=constants.anchor_gradient,
            quadratic=constants.quadratic,
            adjacency=settings.adjacency,
        )
        mechanism = settings.mechanism.calibrate(
            settings.epsilon, settings.delta, sensitivity, radius=settings.radius
        )
        guarantee = Guarantee(
            epsilon=float(settings.epsilon),
            delta=float(settings.delta),
            adjacency=settings.adjacency,
            mechanism=mechanism,
            assumptions=assumptions_of(erm, settings, constants, offset),
            caveats=caveats_of(settings, randomness.reproducible),
        )
        return cls(erm, settings, anchor, offset, guarantee, randomness)

    def blocks(self) -> Iterator[tuple[Any, ...]]:
        """Clipped row blocks, with the public weights of their records where there are any."""
        erm, settings = self.erm, self.settings
        rows = erm.clipped(settings.bounds, self.anchor, settings.nonfinite, self.offset)
        weights = [weight for _, weight in erm.losses]
        size = max(64, BLOCK_ENTRIES // max(1, erm.dimension))
        weighted = any(np.ndim(weight) for weight in weights)
        for start in range(0, rows.n, size):
            stop = min(start + size, rows.n)
            A, C = rows.take(start, stop)
            if weighted:
                columns = [np.broadcast_to(w, (rows.n,))[start:stop] for w in weights]
                yield A, C, np.stack(columns, axis=1)
            else:
                yield A, C

    @property
    def curvatures(self) -> Array:
        """κ_j of each loss, times its weight where no loss has one weight a record."""
        weighted = any(np.ndim(weight) for _, weight in self.erm.losses)
        return np.array(
            [
                loss.curvature * (1.0 if weighted else float(weight))
                for loss, weight in self.erm.losses
            ]
        )


def _release_quadratic(case: _Case) -> PrivateLoss:
    """(H̃, g̃) = (H + S, g + a): the records are read before the noise is drawn, and never after."""
    H, g = oracle.gram(case.blocks(), case.curvatures, case.anchor)
    noise, _ = case.randomness.fresh()
    draw = case.mechanism.draw(noise)
    return PrivateLoss(
        hessian=H + draw.curvature,
        gradient=g + draw.guard,
        anchor=case.anchor,
        variables=case.erm.variables,
        guarantee=case.guarantee,
    )


@sealed
def _run(case: _Case, solver: str) -> PrivateSolution:
    erm = case.erm
    loss = _release_quadratic(case)
    quadratic = oracle.Quadratic(loss.hessian, loss.gradient, loss.anchor)
    try:
        answer = conic.solve_conic(
            quadratic,
            erm.variables,
            erm.regulariser,
            erm.constraints,
            solver=solver,
            solver_options=case.settings.solver_options,
        )
    except SolverError as error:
        raise PrivateSolverError(
            f"{error}. The perturbed loss is private and paid for: error.private_loss.expression "
            "can be solved again, with any solver, at no further cost.",
            loss,
        ) from None
    values = {**erm.unstack(answer.theta), **answer.auxiliary}
    _cvxpy.write_values(values)
    return PrivateSolution(
        values=values, guarantee=case.guarantee, solver=solver, private_loss=loss
    )


def _solve_method(problem: cp.Problem, **options: Any) -> PrivateSolution:
    """``problem.solve(method="QOP", …)``: as :func:`privatize`; value and duals stay None."""
    solution = plan(problem, **options).run()
    _cvxpy.mark_optimal(problem)
    return solution
