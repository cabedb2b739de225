"""Whether a form becomes what is hoped of it."""

from __future__ import annotations

import re
import warnings

import cvxpy as cp
import pytest
from forms import Built, Form, build, build_smoothed

import cvxqop

PAY = {"epsilon": 1e6, "delta": 1e-6}
CLOSE = 1e-3


def judge(form: Form, full: bool = False) -> float | None:
    """Read, release and compare; the relative distance of the objective from that without privacy.

    Raises
    ------
    AssertionError
        Something is not as hoped; or any other exception, where the form is not read.
    """
    if form.hope == "refused":
        text = refusal(build(form, full=full))
        assert re.search(form.says, text, re.S), text
        return judge(form.rewritten(), full)
    if form.hope in ("smoothed", "bounded"):
        says = 'smoothing="auto"' if form.hope == "smoothed" else form.says
        text = refusal(build(form.before(), full=full))
        assert re.search(says, text, re.S), text
    built = build(form, full=full)
    problem, options = built.problem, built.options
    stated = {name: options[name] for name in ("private", "public")}
    assert "Private loss" in cvxqop.explain(problem, **stated)
    plan = cvxqop.plan(problem, **options, **PAY)
    plan.run()
    distance = _distance(form, problem, str(plan), full)
    assert abs(distance) <= CLOSE, f"{form.id}: the objective is {distance:.1e} away"
    return distance


def refusal(built: Built) -> str:
    """The text by which a problem is refused, before anything is spent."""
    with pytest.raises(cvxqop.CvxqopError) as caught:
        cvxqop.plan(built.problem, **built.options, **PAY)
    return " ".join(str(caught.value).split())


def _distance(form: Form, problem: cp.Problem, plan: str, full: bool) -> float:
    """(J(released) − min J)/|min J|, J the problem without privacy, smoothed where it was."""
    found = {v.name(): v.value for v in problem.variables() if v.value is not None}
    width = re.search(r"width\s+h\s+=\s+([\d.e-]*\d)", plan)
    reference = problem
    if width is not None and form.argument:
        reference = build_smoothed(form, float(width[1]), full=full)
    best = _minimum(reference)
    fixed = [v == found[v.name()] for v in reference.variables() if v.name() in found]
    # Of auxiliary variables and slacks the best; constraints hold but for rounding.
    rest = [v for v in reference.variables() if v.name() not in found]
    if rest:
        return (
            _minimum(cp.Problem(reference.objective, [*reference.constraints, *fixed])) - best
        ) / abs(best)
    for v in reference.variables():
        v.save_value(found[v.name()])
    return (float(reference.objective.value) - best) / abs(best)


def _minimum(problem: cp.Problem) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        problem.solve(solver="CLARABEL")
    assert problem.status in ("optimal", "optimal_inaccurate")
    return float(problem.value)
