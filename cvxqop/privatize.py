"""The verbs of the library.

CVXPY problem → ERM → constants → Plan → one draw → perturbed quadratic → solver → release.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import ParamSpec, TypeVar, Unpack

import cvxpy as cp

from cvxqop import _cvxpy
from cvxqop.errors import (
    PrivacyWarning,
    sealed,
)
from cvxqop.explaining import explain
from cvxqop.plan import Plan
from cvxqop.prediction import prediction_of
from cvxqop.preparing import prepare, prepare_loss
from cvxqop.problem.private.snapshot import Snapshot
from cvxqop.settings import Options, Settings
from cvxqop.solution import PrivateLoss, PrivateSolution
from cvxqop.spending.run import run
from cvxqop.spending.spend import release_quadratic
from cvxqop.statements import warnings_of

__all__ = ["explain", "plan", "private_loss", "privatize"]

P = ParamSpec("P")
T = TypeVar("T")


def _verb(function: Callable[P, T]) -> Callable[P, T]:
    """Sealed, and shown with its options where signatures are asked for at run time."""
    sealed_function = sealed(function)
    own = inspect.signature(function)
    kept = [one for one in own.parameters.values() if one.kind is not one.VAR_KEYWORD]
    options = inspect.signature(Settings).parameters.values()
    shown = [one if one.name != "solver_options" else one.replace(default=None) for one in options]
    sealed_function.__signature__ = own.replace(  # type: ignore[attr-defined]
        parameters=[*kept, *shown]
    )
    return sealed_function


@_verb
def privatize(problem: cp.Problem, **options: Unpack[Options]) -> PrivateSolution:
    """Solve a convex empirical-risk problem with (ε, δ)-differential privacy.

    The problem is  minimise Σ_i φ(a_i'θ + c_i) + r(θ) over θ in C,  with private records
    (a_i, c_i). It is solved with ½(θ−θ0)'S(θ−θ0) + a'(θ−θ0) added to the objective, S a random
    matrix and a a Gaussian vector, both scaled by the privacy accountant. The
    release is written into the variables; nothing else of the problem is touched.

    Parameters
    ----------
    problem : cvxpy.Problem
        Minimise a loss of affine expressions in private data (squared, multinomial logistic, any
        convex function of one affine argument a record, or ``declared``) plus any convex public
        regulariser, subject to any convex public constraints.
    private : list or Records
        The private arrays (matched by value), constants or parameters (by identity); also lists of
        numbers, pandas and polars objects. Row i of each belongs to record i.
    public : list
        Arrays, constants or parameters of the problem that everyone may know. An array that could
        hold records and is in neither list is refused: under replace_one one with an axis as long
        as there are records, under add_remove every one. Under add_remove also the variables that
        occur beside the loss only, whose shape is released with them.
    bounds : Bounds
        Public bounds on a record, in the units of the data; records beyond them are clipped. There
        is no default: bounds are never read from the data. Only ``declared`` takes their place.
    epsilon, delta : float
        0 < ε ≤ 10⁶ and 10⁻³⁰⁰ ≤ δ < ½.
    adjacency : {"replace_one", "add_remove"}
        Neighbouring data sets differ in the values of one record (n is public), or in its presence.
    perturbation : "auto", "wishart", "gaussian", "linear", or Wishart, Gaussian or Linear
        The mechanism, by name or with its own options. "auto" takes adaptive stages of the Gaussian
        ensemble for squared losses where it can, else the mechanism of the smallest predicted risk,
        judged by public numbers alone; the plan shows the candidates.
    anchor : array, dict {variable: array}, CommonMinimizer or None
        θ0, public, towards which the perturbation pulls; None is the origin.
    radius : float, optional
        Hint D0 for ‖θ̂ − θ0‖ in units of θ; used to choose free parameters, and where "auto" clips
        gradients of losses of growing slope: at none within D0 of the anchor. None is B/R where
        the loss has an offset (regression), else 2√D/R (classification); at most the reach of C.
    accuracy : float
        Certified distance Δ of the solve to the exact perturbed minimiser over the radius D0, for
        losses that are not quadratic: the release adds N(0, σ_rel² I), σ_rel about 14 to 30 times
        Δ/μ, μ that of a Gaussian mechanism with (ε, δ). At least 10⁻¹².
    nonfinite : {"raise", "zero"}
        A record with NaN or infinity is refused, or becomes a zero row. What is missing (pd.NA, a
        null, a masked entry of ``glm_loss``) counts as NaN.
    solver : str, optional
        Any installed CVXPY solver, capitals or not, or "STOTOS"; None chooses.
    solver_options : dict, optional
        Passed to the solver.
    seed : None, int or numpy.random.Generator
        None draws from the operating system's cryptographic generator. Anything else is for
        research: the result is reproducible and not private.
    budget : Budget, optional
        A ledger that is charged before the noise is drawn, and refuses what it does not cover. None
        is that of the innermost ``with budget:``, if there is one.
    declared : Declared, optional
        Constants of a convex, smooth private loss that is not recognised, in place of ``bounds``.
        The guarantee then rests on them, because nothing is clipped, and the solution says so.
    smoothing : float, "auto" or None
        Width h > 0, in units of the argument, of the Moreau envelope that takes the place of a loss
        that is not smooth, such as hinge, absolute value or pinball: φ's slopes, curvature 1/h.
        "auto" chooses h from public numbers, so that what it changes is expected to cost less than
        the noise; None refuses such losses. The plan and the solution state h.
    keep_loss : bool
        Whether "auto" has to minimise the loss as written, slopes uncut. False is for whoever wants
        predictions and not this minimiser: of losses with bounded slopes, such as logistic, it
        takes ``Linear(clip="auto")``, which is more accurate on most data.
    class_weight : dict, optional
        Public weights of the classes of private labels, such as {-1: 1.0, 1: 2.0}, or {0: …, 1: …}
        as the labels are; {0: …, …, k − 1: …} of one-hot labels. The loss of each record is
        multiplied by that of its class, and the noise is that for the largest. Weights that are
        computed from counts of labels are not public.
    accept_solver_accuracy : bool
        For declared losses: release an answer that could not be certified to be within Δ. The
        guarantee then rests on the solver, and the solution says so.
    persons : array, column or list, optional
        Where a person may have several rows: one id a row, integers or strings. Neighbouring data
        sets then differ in all rows of one person, and the number of rows is private under both
        adjacencies; that of persons is public under replace_one. Ids are as private as the rows.
    rows_per_person : int or "mean", optional
        Beside ``persons``. A number k, public: the first k rows of each person count, in storage
        order, and the noise is that for k rows. "mean": the rows of a person weigh 1/m, m their
        number, so that everybody counts as one row.
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
    BudgetError
        The budget does not cover the release; nothing was drawn or charged.
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
    return plan(problem, **options).run()


@_verb
def plan(problem: cp.Problem, **options: Unpack[Options]) -> Plan:
    """All that can be known before spending: mechanism, noise, profile, expected error, warnings.

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
    case, backend, candidates = prepare(problem, options)
    erm, settings = case.erm, case.settings
    _warn_of_a_large_delta(settings)
    prediction = prediction_of(erm, settings, case.mechanism)
    private = set(erm.private_leaves)
    with _cvxpy.SHARED:
        snapshot = Snapshot(problem, private.__contains__)
    return Plan(
        guarantee=case.guarantee,
        dimension=erm.dimension,
        records=erm.public_count,
        radius=settings.distance,
        solver=backend.name,
        warnings=(*warnings_of(erm, settings, case.mechanism, prediction), *backend.warnings),
        candidates=candidates,
        prediction=prediction,
        _execute=partial(run, problem, case, backend, snapshot),
    )


@_verb
def private_loss(
    expression: cp.Expression,
    *,
    regularizer: cp.Expression | None = None,
    constraints: Sequence[cp.Constraint] | None = None,
    **options: Unpack[Options],
) -> PrivateLoss:
    """Release a squared loss once; use it in any number of problems at no further privacy cost.

    Parameters
    ----------
    expression : cvxpy.Expression
        The private loss alone, such as ``cp.sum_squares(X @ theta - y)``.
    regularizer : cvxpy.Expression, optional
        Public r(θ), for the stages of ``Gaussian(stages=…)`` only: each gradient but the first is
        released at the solution of the stage before, which is closer to the final one if it knows
        r and C. It is not part of the loss that comes back.
    constraints : list of constraints, optional
        Public C, likewise.
    **options
        As in :func:`privatize`; ``solver`` and ``solver_options`` are for the stages.

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
    _warn_of_a_large_delta(settings)
    with _cvxpy.reading():
        case, backend = prepare_loss(expression, regularizer, constraints, settings)
    return release_quadratic(case, backend)


def _warn_of_a_large_delta(settings: Settings) -> None:
    if settings.delta > 1e-2:
        warnings.warn(
            f"delta = {settings.delta:g} lets one record in {1 / settings.delta:.0f} be published "
            "whole; it should be well below one over the number of people concerned.",
            PrivacyWarning,
            stacklevel=4,
        )


def _solve_method(problem: cp.Problem, **options: Unpack[Options]) -> PrivateSolution:
    """``problem.solve(method="QOP", …)``: as :func:`privatize`; value and duals stay None."""
    return plan(problem, **options).run()
