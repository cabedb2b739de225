"""Every touch of CVXPY's internals: nodes, their text, their derivatives, the release written back.

Nothing here prints the entries of an array.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import cvxpy as cp
import numpy as np

from cvxqop._holdings import aside, holdings
from cvxqop._nodes import (
    attributes,
    evaluate,
    exponent,
    given_name,
    has_variables,
    holds_records,
    index_key,
    is_elementwise,
    is_euclidean,
    is_leaf,
    is_linear,
    is_norm_of_one,
    is_sparse,
    kept_aside,
    kind,
    leaf_value,
    leaves,
    nodes,
    reduced_axes,
    source,
    stretched,
    variables,
)
from cvxqop._reverse import Tape
from cvxqop._text import Shapes, format_constraint, format_expression, format_shape

__all__ = [
    "Shapes",
    "Tape",
    "aside",
    "attributes",
    "evaluate",
    "exponent",
    "format_constraint",
    "format_expression",
    "format_shape",
    "given_name",
    "has_variables",
    "holdings",
    "holds_records",
    "index_key",
    "is_elementwise",
    "is_euclidean",
    "is_leaf",
    "is_linear",
    "is_norm_of_one",
    "is_sparse",
    "kept_aside",
    "kind",
    "leaf_value",
    "leaves",
    "mark_optimal",
    "nodes",
    "reduced_axes",
    "source",
    "stretched",
    "variables",
    "write_values",
]


def write_values(values: Mapping[cp.Variable, Any]) -> None:
    """Write a release into the variables, each projected onto its own attributes first."""
    for variable, value in values.items():
        variable.save_value(variable.project(np.asarray(value, dtype=np.float64)))


def mark_optimal(problem: cp.Problem) -> None:
    """Status "optimal"; the objective's value and the duals, which are not private, stay None."""
    released = {variable: variable.value for variable in problem.variables()}
    problem._clear_solution()
    for variable, value in released.items():
        variable.save_value(value)
    problem._status = cp.OPTIMAL
