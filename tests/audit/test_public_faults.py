"""Faults in what counts as public, and in what may change after a plan, are caught by the audits.

Each is planted where the library was once wrong; beside it stands that the library refuses it.
"""

from dataclasses import replace

import cvxpy as cp
import numpy as np
import pytest

import cvxqop
from cvxqop import _cvxpy
from cvxqop.audit import Call, divergence, lower_bound
from cvxqop.audit.neighbours import PAIRS, R
from cvxqop.audit.public_data import BOUNDED, CONSTRAINED
from cvxqop.audit.row import Row
from cvxqop.problem.private.snapshot import Snapshot
from cvxqop.problem.reading import analysis

PAIR = {pair.name: pair for pair in PAIRS}
RISK = 1e-8
PUSH = 1000.0
"""It moves the output to the end of C, whatever the data; and far out where C has grown."""


def grow(call, data):
    """C a hundred times as large as when the noise was calibrated."""
    for one in data:
        erm = call.prepare(one)[0].erm
        held = _cvxpy.holdings([*erm.constraints, *erm.variables]).nodes
        found = [node for node in held if isinstance(node, cp.Parameter)]
        assert found
        for parameter in found:
            parameter.value = 100.0 * parameter.value


@pytest.mark.parametrize("loss", [CONSTRAINED, BOUNDED[1]], ids=["radius", "bounds"])
@pytest.mark.parametrize(
    ("adjacency", "pair"), [("add_remove", "n = 1"), ("replace_one", "zero record")]
)
def test_a_parameter_that_changes_after_the_noise_was_calibrated(
    monkeypatch, loss, adjacency, pair
):
    row = Row(
        "linear", "linear", adjacency, replace(loss, push=PUSH), PAIR[pair], "solution", "solution"
    )
    call, data = row.call("solution", 3), row.pair.data(adjacency)
    assert divergence(call, *data).holds
    release = call.sampler(data[0])
    release()
    with monkeypatch.context() as unchecked:
        grow(call, data[:1])
        for refused in (release, lambda: divergence(call, *data), lambda: call(data[0])):
            with pytest.raises(cvxqop.PlanError, match="Plan again"):
                refused()
        unchecked.setattr(Snapshot, "check", lambda self: None)
        grow(call, data[1:])
        exact = divergence(call, *data)
        assert exact.measured[2] > 0.5
        assert not exact.holds
        found = lower_bound(call, *data, trials=320, confidence=1 - RISK)
        assert found.attained > 1.0
        assert not found.holds


def second_array_is_public(problem, private, *, public=(), **options):
    """The reader that took the target for a number that everyone knows."""
    return READ(problem, private[:1], public=[*public, *private[1:]], **options)


READ = analysis.read


def weighted(data):
    X, y = data
    theta = cp.Variable(1)
    loss = cp.sum(cp.multiply(y, cp.square(X @ theta))) - cp.sum(theta)
    return cp.Problem(cp.Minimize(loss)), [X, y]


def crossed(data):
    """Every row holds the target of every record."""
    X, y = data
    V = cp.Variable((1, len(y)))
    return cp.Problem(cp.Minimize(0.5 * cp.sum_squares((X @ V) @ y))), [X, y]


WEIGHTS = [1.0, 1.0], [1.0, 100.0]
UNIT = np.full(8, 8**-0.5)
FACTORS = UNIT, np.concatenate([-UNIT[:1], UNIT[1:]])


@pytest.mark.parametrize(
    ("state", "targets", "options"),
    [
        (weighted, WEIGHTS, {"perturbation": "wishart", "solver": "STOTOS"}),
        (crossed, FACTORS, {"perturbation": "gaussian", "output": "loss"}),
    ],
    ids=["weight", "factor"],
)
def test_a_private_target_that_is_read_as_public(monkeypatch, state, targets, options):
    """As a weight it sets the noise; as a factor it stands in the rows of all records."""
    call = Call(state, bounds=cvxqop.Bounds(row_norm=R), epsilon=2.0, delta=0.01, seed=1, **options)
    data = [(np.full((len(y), 1), R), np.array(y)) for y in targets]
    for one in data:
        with pytest.raises(cvxqop.ProblemError):
            call.prepare(one)
    monkeypatch.setattr(analysis, "read", second_array_is_public)
    exact = divergence(call, *data)
    assert exact.measured[2] > 0.1
    assert not exact.holds
    found = lower_bound(call, *data, trials=250, confidence=1 - RISK)
    assert found.attained > 2.0
    assert not found.holds


@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
def test_bounds_made_of_records(monkeypatch, adjacency):
    """A walk that sees arguments only; a target of −½ or ½ is the lower bound of the variable, and
    the release never lies below."""

    def state(data):
        X, y = data
        end = np.array([3.0])
        theta = cp.Variable(1, bounds=[y, end])
        loss = 0.5 * cp.sum_squares(X @ theta - y)
        return cp.Problem(cp.Minimize(loss)), [X, y], [end]

    call = Call(
        state,
        bounds=cvxqop.Bounds(row_norm=R, offset=1.0),
        epsilon=2.0,
        delta=0.01,
        adjacency=adjacency,
        perturbation="linear",
        seed=1,
    )
    data = [(np.array([[R]]), np.array([y])) for y in (-0.5, 0.5)]
    for one in data:
        with pytest.raises(cvxqop.ProblemError, match="bounds or attributes"):
            call.prepare(one)
    walk = _cvxpy.holdings
    monkeypatch.setattr(_cvxpy, "holdings", lambda root: replace(walk(root), slots=[]))
    exact = divergence(call, *data)
    assert exact.measured[2] > 0.8
    assert not exact.holds
    found = lower_bound(
        call, *data, trials=200, confidence=1 - RISK, event=lambda z: z[:, 0] < 0.49
    )
    assert found.counts[0] > 150
    assert found.counts[1] == 0
    assert not found.holds
