"""Running a plan: spend, and write the release into the problem."""

from __future__ import annotations

from functools import partial

import cvxpy as cp

from cvxqop import _cvxpy
from cvxqop.backend import Backend
from cvxqop.case import Case
from cvxqop.errors import (
    PlanError,
    PrivateSolverError,
    Resumable,
    sealed,
)
from cvxqop.problem.private.snapshot import Snapshot
from cvxqop.solution import PrivateSolution
from cvxqop.spending.paid import afterwards
from cvxqop.spending.spend import spend

__all__ = ["run"]


@sealed
def run(problem: cp.Problem, case: Case, backend: Backend, snapshot: Snapshot) -> PrivateSolution:
    """Spend, and write the release into the problem; what an earlier solve left there is gone
    before anything is charged.

    A solver reads parameters and bounds while it runs, and another thread may change them: what
    was solved is known to be what the noise is for only if it is found unchanged afterwards.
    """
    with _cvxpy.SHARED:
        snapshot.check()
    _cvxpy.clear_outcome(problem)
    try:
        solution = spend(case, backend)
    except Resumable as error:
        afterwards(error, partial(_written, problem, snapshot), partial(_unchanged, snapshot))
        raise
    return _written(problem, snapshot, solution)


def _unchanged(snapshot: Snapshot) -> None:
    """Refuse to go on with a draw for a problem that has changed; the draw is kept."""
    with _cvxpy.SHARED:
        what = snapshot.changed()
    if what:
        raise PlanError(
            f"{what} has changed since the plan was made, and the noise was calibrated for what it "
            "was. Nothing more was charged. Set it back, and resume."
        )


@sealed
def _written(problem: cp.Problem, snapshot: Snapshot, solution: PrivateSolution) -> PrivateSolution:
    """The release, in the variables of the problem if that is still the one that was solved."""
    with _cvxpy.SHARED:
        what = snapshot.changed()
    if what:
        raise PrivateSolverError(
            f"{what} has changed while the plan was run, and the noise was calibrated for what it "
            "was. Nothing was released, and the charge stands; of a squared loss, "
            "error.private_loss.expression can be solved at no further cost.",
            solution.private_loss,
        )
    _cvxpy.write_release(problem, solution.values)
    return solution
