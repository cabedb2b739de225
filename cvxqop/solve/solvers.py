"""CVXPY's solvers, run by hand: at tight tolerances, without a word, in any thread.

No value is written into a variable, a parameter, a constraint or a problem. File descriptors and
``sys.stdout`` belong to the process and are left alone: solvers are silenced by their own options.
"""

from __future__ import annotations

import contextlib
import functools
import warnings
from collections.abc import Mapping
from typing import Any, NamedTuple

import cvxpy as cp
from cvxpy import settings

from cvxqop import _cvxpy
from cvxqop.errors import OptionError

__all__ = [
    "TIGHT",
    "Compiled",
    "attempt",
    "check_silent",
    "compiled",
    "compiles",
    "installed",
    "run",
]

TIGHT: Mapping[str, Mapping[str, Any]] = {
    "CLARABEL": {"tol_gap_abs": 1e-10, "tol_gap_rel": 1e-10, "tol_feas": 1e-10},
    "OSQP": {"eps_abs": 1e-10, "eps_rel": 1e-10, "max_iter": 200_000},
    "SCS": {"eps_abs": 1e-10, "eps_rel": 1e-10, "max_iters": 200_000},
    "HIGHS": {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    "ECOS": {"abstol": 1e-10, "reltol": 1e-10, "feastol": 1e-10},
    "PIQP": {"eps_abs": 1e-10, "eps_rel": 1e-10},
    "PROXQP": {"eps_abs": 1e-10, "eps_rel": 1e-10},
    "DAQP": {"eps_prim": 1e-10, "eps_dual": 1e-10},
    "QOCO": {"abstol": 1e-10, "reltol": 1e-10},
    "CVXOPT": {"abstol": 1e-10, "reltol": 1e-10, "feastol": 1e-10},
    "GUROBI": {"BarConvTol": 1e-10, "FeasibilityTol": 1e-9, "OptimalityTol": 1e-9},
}

# OSQP says whether there was anything to polish, whatever its verbosity.
QUIET: Mapping[str, Mapping[str, Any]] = {
    "OSQP": {"polishing": False},
    "HIGHS": {"output_flag": False},
}

# Options that make a solver print what comes from records.
PRINTING = frozenset(
    {"verbose", "output_flag", "log_to_console", "OutputFlag", "polish", "polishing"}
)


def check_silent(options: Mapping[str, Any]) -> None:
    """Refuse options that make a solver print.

    Raises
    ------
    OptionError
        Names the option.
    """
    for option in sorted(PRINTING & options.keys()):
        if options[option] or option not in ("polish", "polishing"):
            raise OptionError(
                f"solver_options: {option!r} would print what was computed from records. "
                "Leave it out."
            )


def attempt(problem: cp.Problem, solver: str, options: Mapping[str, Any]) -> tuple[str, Any]:
    """Status and solution; whatever a solver raises is a status too."""
    try:
        solution = run(problem, solver, options)
    except Exception:
        return settings.SOLVER_ERROR, None
    return str(solution.status), solution


@functools.cache
def installed() -> tuple[str, ...]:
    """Names of CVXPY's installed solvers: looked for once, since the search imports them."""
    return tuple(cp.installed_solvers())


def run(problem: cp.Problem, solver: str, options: Mapping[str, Any]) -> Any:
    """CVXPY's chain by hand: compile, solve, translate the solution back.

    Only the solver itself runs beside other threads; CVXPY's trees and filters of warnings are
    shared.
    """
    return Compiled.of(problem, solver).solve(options)


class Compiled(NamedTuple):
    """A problem as a solver reads it, to be solved once."""

    problem: cp.Problem
    solver: str
    data: Any
    chain: Any
    inverse_data: Any

    @classmethod
    def of(cls, problem: cp.Problem, solver: str) -> Compiled:
        """Raises whatever CVXPY does where the solver cannot take the problem."""
        if solver == "SCS" and not problem.constraints:
            theta = problem.variables()[0]
            problem = cp.Problem(problem.objective, [cp.sum(theta) * 0 <= 1])
        with _cvxpy.SHARED:
            if solver == "HIGHS":
                _introduce_highs()
            return cls(problem, solver, *compiled(problem, solver))

    def solve(self, options: Mapping[str, Any]) -> Any:
        """The solution; raises whatever the solver does."""
        raw = self.chain.solve_via_data(
            self.problem,
            self.data,
            warm_start=False,
            verbose=False,
            solver_opts={**QUIET.get(self.solver, {}), **options},
        )
        with _cvxpy.SHARED:
            return self.chain.invert(raw, self.inverse_data)


def compiles(problem: cp.Problem, solver: str) -> bool:
    """Whether a solver can take a problem."""
    try:
        with _cvxpy.SHARED:
            compiled(problem, solver)
    except Exception:  # the words of CVXPY may hold rows
        return False
    return True


def compiled(
    problem: cp.Problem, solver: str, options: Mapping[str, Any] | None = None
) -> tuple[Any, Any, Any]:
    """A problem as a solver of CVXPY reads it, with the chain that led there and the way back."""
    roots = [problem.objective, *problem.constraints]
    _cvxpy.claim_ids(roots)
    _cvxpy.forget_forms(roots)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return problem.get_problem_data(  # type: ignore[no-any-return]
                solver, ignore_dpp=True, solver_opts=dict(options or {})
            )
    finally:
        _cvxpy.forget_forms(roots)


@functools.cache
def _introduce_highs() -> None:
    """HiGHS prints its name once a process, from a constructor that knows no options yet: let it
    do so where nothing is written to. A version that is built otherwise prints it, and no more."""
    with contextlib.suppress(Exception):
        from highspy import Highs  # optional

        (base,) = Highs.__bases__
        silent = base()
        silent.setOptionValue("log_to_console", False)
        silent.run()
