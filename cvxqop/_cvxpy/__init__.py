"""Every touch of CVXPY's internals: nodes, their text, their derivatives, the release written back.

Nothing here prints the entries of an array.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import cvxpy as cp
import numpy as np

from cvxqop._cvxpy.holdings import aside, holdings
from cvxqop._cvxpy.nodes import (
    attributes,
    evaluate,
    exponent,
    given_name,
    has_variables,
    holds_records,
    index_key,
    is_affine_kind,
    is_elementwise,
    is_euclidean,
    is_leaf,
    is_linear,
    is_norm_of_one,
    is_sparse,
    keeps_rows,
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
from cvxqop._cvxpy.normal import is_of_log_normcdf
from cvxqop._cvxpy.rebuild import (
    is_relation,
    plain_data,
    rebuilt,
    related,
    selected_entries,
    substituted,
    unsigned,
)
from cvxqop._cvxpy.reverse import Tape
from cvxqop._cvxpy.sharing import SHARED, claim_ids, forget_forms, reading
from cvxqop._cvxpy.text import Shapes, format_constraint, format_expression, format_shape

__all__ = [
    "SHARED",
    "Shapes",
    "Tape",
    "aside",
    "attributes",
    "claim_ids",
    "clear_outcome",
    "evaluate",
    "exponent",
    "forget_forms",
    "format_constraint",
    "format_expression",
    "format_shape",
    "given_name",
    "has_variables",
    "holdings",
    "holds_records",
    "index_key",
    "is_affine_kind",
    "is_elementwise",
    "is_euclidean",
    "is_leaf",
    "is_linear",
    "is_norm_of_one",
    "is_of_log_normcdf",
    "is_relation",
    "is_sparse",
    "keeps_rows",
    "kept_aside",
    "kind",
    "leaf_value",
    "leaves",
    "nodes",
    "plain_data",
    "reading",
    "rebuilt",
    "reduced_axes",
    "related",
    "released",
    "selected_entries",
    "source",
    "stretched",
    "substituted",
    "unsigned",
    "variables",
    "write_release",
]


def clear_outcome(problem: cp.Problem) -> None:
    """Status, value, duals and statistics of an earlier solve become None; the variables stay."""
    with SHARED:
        for constraint in problem.constraints:
            for dual in constraint.dual_variables:
                dual.save_value(None)
        problem._value = problem._status = problem._solution = problem._solver_stats = None
        problem._solver_cache = {}


def released(values: Mapping[cp.Variable, Any]) -> dict[cp.Variable, Any]:
    """A release, each value projected onto the attributes of its variable, as read-only arrays."""
    projected = {}
    for variable, value in values.items():
        found = variable.project(np.asarray(value, dtype=np.float64))
        array = found.toarray() if is_sparse(found) else np.array(found, dtype=np.float64)
        array.setflags(write=False)
        projected[variable] = array
    return projected


def write_release(problem: cp.Problem, values: Mapping[cp.Variable, Any]) -> None:
    """Write one whole release into the variables. The status is "optimal"; the objective's value,
    the duals and variables that are not released, which are not private, are None."""
    with SHARED:
        clear_outcome(problem)
        for variable in problem.variables():
            if variable not in values:
                variable.save_value(None)  # one that the problem was read without
        for variable, value in values.items():
            own = value.copy()
            structured = variable.attributes["diag"] or variable.attributes["sparsity"]
            variable.save_value(variable.project(own) if structured else own)
        problem._status = cp.OPTIMAL
