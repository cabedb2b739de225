"""How a problem was read, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import cvxpy as cp

from cvxqop import _cvxpy
from cvxqop.errors import (
    sealed,
)
from cvxqop.preparing import persons_of, read_problem
from cvxqop.problem.describe import describe
from cvxqop.problem.losses.class_weights import weighed
from cvxqop.problem.losses.declared import Declared
from cvxqop.records import Records
from cvxqop.settings import check_class_weight, check_persons

__all__ = ["explain"]


class Reading(str):
    """Text that an interactive session shows as it is."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


@sealed
def explain(
    problem: cp.Problem,
    private: Sequence[Any] | Records,
    *,
    public: Sequence[Any] | None = None,
    adjacency: str = "replace_one",
    declared: Declared | None = None,
    persons: Any = None,
    rows_per_person: int | str | None = None,
    class_weight: Mapping[float, float] | None = None,
) -> Reading:
    """How the problem was read: loss terms, φ, rows, variables, public rest; or why it cannot be.

    The text is for the holder of the data: it states the number of records.

    Examples
    --------
    >>> import cvxpy as cp, cvxqop, numpy as np
    >>> X, y, theta = np.ones((50, 2)), np.ones(50), cp.Variable(2, name="theta")
    >>> problem = cp.Problem(cp.Minimize(cp.sum_squares(X @ theta - y) + cp.norm1(theta)))
    >>> print(cvxqop.explain(problem, private=[X, y]).splitlines()[0])
    Private loss, a sum over records of φ(a'θ + c):
    """
    stated: dict[str, Any] = {
        "private": private,
        "public": public,
        "persons": persons,
        "rows_per_person": rows_per_person,
        "class_weight": class_weight,
    }
    if isinstance(private, Records):
        stated = private.merged(stated)
    check_persons(stated["persons"], stated["rows_per_person"], declared)
    check_class_weight(stated["class_weight"], declared)
    people = persons_of(stated["persons"], stated["rows_per_person"])
    with _cvxpy.reading():
        held, known = stated["private"], stated["public"] or ()
        erm = read_problem(problem, held, known, adjacency, declared, people)
        return Reading(describe(weighed(erm, stated["class_weight"])))
