"""Differentially private convex optimisation inside CVXPY.

State a convex empirical-risk problem in CVXPY, and get a differentially private solution with one
call: :func:`privatize`, or ``problem.solve(method="QOP", …)``.
"""

from cvxpy import Problem as _Problem

from cvxqop.errors import (
    AccuracyError,
    BudgetError,
    CalibrationError,
    CvxqopError,
    OptionError,
    PlanError,
    PrivacyWarning,
    PrivateSolverError,
    ProblemError,
)
from cvxqop.plan import Plan
from cvxqop.privacy.budget import Budget
from cvxqop.privacy.gaussian.options import Gaussian
from cvxqop.privacy.linear.options import Linear
from cvxqop.privacy.wishart.options import Wishart
from cvxqop.privatize import _solve_method, explain, plan, private_loss, privatize
from cvxqop.problem.anchor import CommonMinimizer
from cvxqop.problem.bounds import Bounds
from cvxqop.problem.glm import glm_loss
from cvxqop.problem.losses.declared import Declared
from cvxqop.problem.records.parquet import parquet_columns
from cvxqop.records import Records
from cvxqop.solution import PrivateLoss, PrivateSolution
from cvxqop.tables.schema import Schema

__version__ = "0.1.0"

__all__ = [
    "AccuracyError",
    "Bounds",
    "Budget",
    "BudgetError",
    "CalibrationError",
    "CommonMinimizer",
    "CvxqopError",
    "Declared",
    "Gaussian",
    "Linear",
    "OptionError",
    "Plan",
    "PlanError",
    "PrivacyWarning",
    "PrivateLoss",
    "PrivateSolution",
    "PrivateSolverError",
    "ProblemError",
    "Records",
    "Schema",
    "Wishart",
    "explain",
    "glm_loss",
    "parquet_columns",
    "plan",
    "private_loss",
    "privatize",
]

_Problem.register_solve("QOP", _solve_method)
