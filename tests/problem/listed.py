"""Everything in a problem that is not private, as the list ``public``."""

from __future__ import annotations

from typing import Any

import cvxpy as cp

from cvxqop._cvxpy import holdings
from cvxqop.errors import ProblemError
from cvxqop.problem.private.data import match
from cvxqop.problem.reading.public import is_plain, is_plain_identity

__all__ = ["public_of"]


def public_of(problem: Any, private: Any) -> list[Any]:
    """What a user who stated all that everyone may know would list."""
    roots = (
        [problem.objective, *problem.constraints] if isinstance(problem, cp.Problem) else [problem]
    )
    try:
        found = match(private, roots).unlisted
    except ProblemError:
        return []  # whatever it is, the test is about it
    unlisted = [u for u in found if not (is_plain(u.array) or is_plain_identity(u.array))]
    variables = [node for node in holdings(roots).nodes if isinstance(node, cp.Variable)]
    return [item.array if item.where else item.owner for item in unlisted] + variables
