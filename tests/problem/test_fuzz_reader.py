"""Random objectives are read correctly or refused: never misread, never another error.

A reading is compared with the values and finite differences of the objective that CVXPY computes,
and with the readings of neighbouring data sets. The usual size is 400 + 250 objectives, the full
one (``CVXQOP_FULL=1``) ten times that.
"""

from __future__ import annotations

import os
import re
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, note, settings
from hypothesis import strategies as st

from cvxqop.errors import OptionError, ProblemError
from cvxqop.problem.describe import describe
from cvxqop.problem.reading.analysis import read

from .listed import public_of
from .objectives import FORMS, World
from .readings import difference, numbers, reading
from .recipes import MIXING, NOT_A_LOSS, PRIVATE_PUBLIC, SPELLINGS, arguments, objectives, sets

pytestmark = pytest.mark.blas

TIMES = 10 if "CVXQOP_FULL" in os.environ else 1

worlds = st.builds(
    World.of,
    n=st.sampled_from((1, 2, 3, 97)),
    d=st.sampled_from((1, 2, 3)),
    k=st.sampled_from((2, 3)),
    seed=st.integers(0, 10**6),
    form=st.sampled_from(sorted(FORMS)),
)
adjacencies = st.sampled_from(("replace_one", "add_remove"))


def fuzz(size: int) -> Any:
    """Settings for ``size`` examples."""
    slow = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
    phases = [Phase.generate, Phase.shrink]
    return settings(max_examples=size * TIMES, suppress_health_check=slow, phases=phases)


def check_message(message: str, adjacency: str) -> None:
    """No message holds a long number, and none the number of records where it is private."""
    assert not re.search(r"\d\.\d{4}|\d{5}", message), message
    if adjacency == "add_remove":
        assert not re.search(r"\b97\b", message), message


def attempt(recipe: Any, constraints: Any, world: World, adjacency: str) -> tuple[Any, Any]:
    """The objective and its reading, None where it was refused."""
    objective, public = recipe(world), constraints(world)
    assert objective.size == 1
    problem = cp.Problem(cp.Minimize(objective), public)
    try:
        listed = public_of(problem, world.private)
        return objective, read(problem, world.private, public=listed, adjacency=adjacency)
    except (ProblemError, OptionError) as error:
        note(str(error))
        check_message(str(error), adjacency)
        return objective, None


def shared(erm: Any) -> Any:
    """What must not depend on the data."""
    losses = [
        (loss.name, loss.curvature, loss.slope_bound(1.5)) for loss, _ in erm.loss.terms[0].losses
    ]
    weights = [weight for _, weight in erm.loss.terms[0].losses if not np.ndim(weight)]
    texts = (erm.texts, erm.private_names, erm.public_data, erm.mean)
    return losses, weights, erm.loss.terms[0].row_parts, erm.loss.has_offset, erm.quadratic, texts


def check_values(objective: Any, erm: Any, seed: int) -> None:
    """CVXPY's value and finite differences are those of the reading."""
    rng = np.random.default_rng(seed)
    variables = {v.id: v for node in (objective, *erm.variables) for v in node.variables()}
    points = [{v: rng.uniform(0.1, 1.5, v.shape) for v in variables.values()} for _ in range(3)]
    points.append({v: -rng.uniform(0.1, 1.5, v.shape) for v in variables.values()})
    gaps = difference(erm, objective, points)
    known = [gap for gap in gaps if np.isfinite(gap)]  # entr is −∞ beyond its domain
    stacked = [erm.stack({v: point[v] for v in erm.variables}) for point in points]
    size = 1.0 + max(abs(reading(erm, theta)[0]) for theta in stacked)
    assert len(known) >= 3
    np.testing.assert_allclose(known, known[0], rtol=1e-8, atol=1e-9 * size)
    here, step = points[0], 1e-6
    direction = {v: rng.standard_normal(v.shape) for v in erm.variables}
    theta, along = stacked[0], erm.stack(direction)
    slopes = []
    for sign in (1.0, -1.0):
        for v, value in here.items():
            v.save_value(value + sign * step * direction.get(v, np.zeros(v.shape)))
        rest = 0.0 if erm.regulariser is None else float(erm.regulariser.value)
        slopes.append(float(objective.value) - rest)
    for v in here:
        v.save_value(None)
    found = (slopes[0] - slopes[1]) / (2 * step)
    np.testing.assert_allclose(reading(erm, theta)[1] @ along, found, rtol=1e-4, atol=1e-5 * size)


def check_records(recipe: Any, constraints: Any, world: World, erm: Any, adjacency: str) -> None:
    """Another record i changes row i and nothing else; a record less is a row less."""
    mine, i = numbers(erm), world.seed % world.n
    _, other = attempt(recipe, constraints, world.changed(i), adjacency)
    assert other is not None
    assert shared(other) == shared(erm)
    theirs = numbers(other)
    for name, values in mine.items():
        if values is not None:
            kept = np.delete(values, i, axis=0)
            others = np.delete(theirs[name], i, axis=0)
            np.testing.assert_allclose(others, kept, rtol=1e-12, err_msg=name)
    if adjacency == "add_remove" and world.n > 1:
        _, less = attempt(recipe, constraints, world.without(i), adjacency)
        assert less is not None
        assert shared(less) == shared(erm)
        for name, values in numbers(less).items():
            if values is not None:
                np.testing.assert_allclose(values, np.delete(mine[name], i, axis=0), rtol=1e-12)


def check_public_part(
    recipe: Any, constraints: Any, world: World, erm: Any, adjacency: str
) -> None:
    """What is left of the rows where the records are zero is within its stated norm."""
    _, empty = attempt(recipe, constraints, world.zeros(), adjacency)
    if empty is None or erm.loss.terms[0].row_parts.overlap:
        return
    own = numbers(empty)
    assert np.all(
        np.linalg.norm(own["A"], axis=1) <= erm.loss.terms[0].row_parts.public_norm * (1 + 1e-12)
    )
    if not erm.loss.has_offset:
        assert not np.any(numbers(erm)["C"])


def examine(recipe: Any, constraints: Any, world: World, adjacency: str) -> None:
    """Read the objective; where it is not refused, compare the reading with it in every way."""
    objective, erm = attempt(recipe, constraints, world, adjacency)
    if erm is None:
        return
    note(str(describe(erm)))
    assert all(v.value is None for v in objective.variables())
    check_values(objective, erm, world.seed)
    check_records(recipe, constraints, world, erm, adjacency)
    check_public_part(recipe, constraints, world, erm, adjacency)


problems = {
    "recipe": objectives(),
    "constraints": sets(),
    "world": worlds,
    "adjacency": adjacencies,
}


@fuzz(400)
@given(**problems)
def test_read_correctly_or_refused(recipe, constraints, world, adjacency):
    examine(recipe, constraints, world, adjacency)


@st.composite
def unreadable(draw: Any) -> Any:
    """An objective that combines records, has a term that is no loss, or a private public part."""
    argument, spelling = draw(arguments()), draw(st.sampled_from(SPELLINGS))
    kind = draw(st.sampled_from(("mixing", "not a loss", "private public")))
    part = draw(
        st.sampled_from({"mixing": MIXING, "not a loss": NOT_A_LOSS}.get(kind, PRIVATE_PUBLIC))
    )
    loss = draw(st.sampled_from((cp.sum_squares, lambda e: cp.sum(cp.logistic(e)))))
    if kind == "mixing":
        return kind, lambda o: loss(spelling(part(o, argument(o)))), lambda o: []
    if kind == "not a loss":
        return kind, lambda o: part(o, argument(o)) + cp.norm1(o.w), lambda o: []
    return kind, lambda o: loss(argument(o)) + part(o)[0], lambda o: part(o)[1]


@fuzz(250)
@given(case=unreadable(), world=worlds, adjacency=adjacencies)
def test_what_is_no_sum_of_losses_is_refused(case, world, adjacency):
    kind, recipe, constraints = case
    objective, erm = attempt(recipe, constraints, world, adjacency)
    if erm is None:
        return
    note(str(describe(erm)))
    # One record is combined with no other, and some of its spellings are what they seem.
    assert world.n == 1
    assert kind != "private public" or adjacency == "replace_one"
    check_values(objective, erm, world.seed)
