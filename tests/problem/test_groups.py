"""Several private terms: those that share a row make a group, the others groups of their own."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from scipy.special import logsumexp

from cvxqop.errors import ProblemError
from cvxqop.problem.glm import glm_loss
from cvxqop.problem.reading import checks
from cvxqop.problem.reading.analysis import private_data
from cvxqop.problem.reading.assemble import assemble
from cvxqop.problem.reading.public import Stacking
from cvxqop.problem.reading.terms import TermReader

from .listed import public_of

pytestmark = pytest.mark.blas

rng = np.random.default_rng(0)
N, P, Q, K = 12, 3, 2, 4


def records(n):
    """X, Z, y, u, Y, V, T and S, by name: features, targets, two matrices of labels, weights."""
    shapes = {"X": (n, P), "Z": (n, Q), "y": (n,), "u": (n,), "Y": (n, K), "S": (n, 1)}
    arrays = {name: rng.uniform(-1, 1, shape) for name, shape in shapes.items()}
    return arrays | {name: rng.dirichlet(np.ones(K), n) for name in ("V", "T")}


w, v, b, A, B, c = (
    cp.Variable(shape, name=name)
    for name, shape in zip("wvbABc", (P, Q, (), (P, K), (Q, K), K), strict=True)
)


def lse(t):
    return cp.sum(cp.log_sum_exp(t, axis=1))


def chosen(labels, t):
    return cp.sum(cp.multiply(labels, t))


# Objectives of the records o, with the terms and labels of each group as they are counted.
READ = {
    "two rows": (
        lambda o: cp.sum(cp.huber(o["X"] @ w - o["y"])) + 2 * cp.sum(cp.logistic(-(o["Z"] @ v))),
        [(1, 0), (1, 0)],
    ),
    "first and last share": (
        lambda o: (
            cp.sum_squares(o["X"] @ w - o["y"])
            + cp.sum(cp.huber(o["Z"] @ v + b))
            + cp.sum(cp.logistic(-2 * (o["X"] @ w)))
        ),
        [(2, 0), (1, 0)],
    ),
    "the same variable": (
        lambda o: cp.sum_squares(o["X"] @ w) + cp.sum_squares(o["X"] @ w + b - o["y"]),
        [(1, 0), (1, 0)],
    ),
    "labels of the second": (
        lambda o: (
            cp.sum_squares(o["X"] @ w - o["y"])
            + cp.sum(cp.logistic(o["Z"] @ v))
            - o["u"] @ (o["Z"] @ v)
        ),
        [(1, 0), (1, 1)],
    ),
    "labels of both": (
        lambda o: (
            cp.sum(cp.logistic(o["X"] @ w))
            - o["y"] @ (o["Z"] @ v)
            + cp.sum(cp.logistic(3 * (o["Z"] @ v)))
            - o["u"] @ (o["X"] @ w)
            - cp.sum(o["Z"] @ v)
        ),
        [(1, 1), (1, 2)],
    ),
    "squares with several outputs": (
        lambda o: cp.sum_squares(o["Y"] - o["X"] @ A) + 3 * cp.sum_squares(o["Z"] @ B + c - o["V"]),
        [(1, 0), (1, 0)],
    ),
    "the same row twice": (
        lambda o: cp.sum_squares(o["X"] @ A - o["Y"]) + cp.sum_squares(o["X"] @ A - o["V"]),
        [(1, 0), (1, 0)],
    ),
    "an output by itself": (
        lambda o: (
            cp.sum_squares(o["X"] @ A[:, :2] - cp.Constant(o["Y"])[:, :2])
            + cp.sum(cp.huber(o["X"] @ A[:, 2] - o["y"]))
            + cp.sum(cp.huber(o["X"] @ A[:, 3] - o["u"]))
        ),
        [(1, 0), (1, 0), (1, 0)],
    ),
    "two multinomial losses": (
        lambda o: (
            lse(o["X"] @ A)
            + 2 * lse(o["Z"] @ B + c)
            - chosen(o["T"], o["X"] @ A)
            - 2 * chosen(o["V"], o["Z"] @ B + c)
        ),
        [(1, 1), (1, 1)],
    ),
    "votes in halves": (
        lambda o: (
            lse(o["X"] @ A)
            - 0.5 * chosen(o["T"], o["X"] @ A)
            + cp.sum(cp.logistic(o["Z"] @ v))
            - 0.5 * cp.trace(o["V"].T @ (o["X"] @ A))
            - o["y"] @ (o["Z"] @ v)
        ),
        [(1, 2), (1, 1)],
    ),
    "records outside CVXPY": (
        lambda o: glm_loss("huber", o["X"], o["y"], w) + cp.sum_squares(o["X"] @ A - o["Y"]),
        [(1, 0), (1, 0)],
    ),
}


def groups(objective, private, adjacency="replace_one"):
    found = private_data(objective, [], private, public_of(objective, private), adjacency)
    data, text = found.data, found.text
    reader = TermReader(data, text)
    reader.split(objective)
    checks.check_arguments(reader.terms, reader.linear, data, text)
    stacking = Stacking(objective.variables())
    return assemble(reader, data, stacking, text), stacking


def value(group, theta):
    """The sum of a group at θ, from its rows."""
    rows = group.rows
    total = 0.0
    for start in range(0, rows.n, 5):
        stop = min(start + 5, rows.n)
        A_, C = rows.take(start, stop)
        if group.outputs is None:
            t = A_ @ theta
            total += sum(
                weight * np.sum(loss.value(t + C[:, j]))
                for j, (loss, weight) in enumerate(group.losses)
            )
            total += 0.0 if rows.labels is None else rows.labels.take(start, stop) @ t
            continue
        t = A_ @ group.outputs.matrix(theta)
        ((loss, weight),) = group.losses
        values = logsumexp(t, axis=1) - np.sum(C * t, axis=1) if group.outputs.labelled else None
        total += weight * np.sum(loss.value(t + C) if values is None else values)
    return total


@pytest.mark.parametrize("name", READ)
def test_groups_have_the_value_of_the_objective(name):
    write, counts = READ[name]
    own = records(N)
    objective = write(own)
    found, stacking = groups(objective, [*own.values()])
    assert [(len(group.terms), len(group.labels)) for group in found] == counts
    for _ in range(3):
        for variable in stacking.variables:
            variable.value = rng.standard_normal(variable.shape)
        theta = np.concatenate([x.value.reshape(-1, order="F") for x in stacking.variables])
        expected = float(objective.value)
        assert sum(value(g, theta) for g in found) == pytest.approx(expected, rel=1e-11)
    for group in found:
        if group.outputs is None:
            assert group.rows.dimension == stacking.dimension
        else:
            entries = group.outputs.layout.ravel().tolist()
            assert len(set(entries)) == len(entries)
            assert set(entries) <= set(range(stacking.dimension))


@pytest.mark.parametrize("name", [name for name in READ if "CVXPY" not in name])
@pytest.mark.parametrize("n", [0, 1, 2, K, N])
def test_the_number_of_records_changes_nothing(name, n):
    write, counts = READ[name]
    own = records(n)
    found, _ = groups(write(own), [*own.values()], "add_remove")
    assert [(len(group.terms), len(group.labels)) for group in found] == counts
    for group in found:
        assert group.rows.n == n


@pytest.mark.parametrize("n", [0, 1, 2, K, N])
@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
def test_a_factor_of_each_record_multiplies_all_outputs(n, adjacency):
    """Read, or refused in the same words, for any number of records."""
    own = records(n)
    objective = cp.sum_squares(cp.multiply(own["S"], own["X"] @ A + c - own["Y"]))
    private = [own["S"], own["X"], own["Y"]]
    if adjacency == "add_remove":
        with pytest.raises(ProblemError, match="broadcasts an array of records"):
            groups(objective, private, adjacency)
        return
    ((group,), _) = groups(objective, private, adjacency)
    rows, numbers = group.rows.take(0, n)
    np.testing.assert_allclose(rows, own["S"] * np.hstack([own["X"], np.ones((n, 1))]))
    np.testing.assert_allclose(numbers, -own["S"] * own["Y"])


@pytest.mark.parametrize("write", [lambda t: 3 * t, lambda t: t / 0.1], ids=["times", "over"])
def test_a_number_around_the_argument_is_seen_without_records(write):
    """The public factor of no records is that of any number of records."""
    factors = []
    for n in (0, 1, N):
        own = records(n)
        for t in (own["X"] @ w - own["y"], own["X"] @ A - own["Y"]):
            ((group,), _) = groups(cp.sum_squares(write(t)), [*own.values()], "add_remove")
            factors.append((group.parts.factor, group.parts.offset_factor))
    assert factors == [factors[0]] * 6
    assert factors[0][1] == pytest.approx(3.0 if write(1.0) == 3.0 else 10.0)


REFUSED = {
    "labels of none": (
        lambda o: (
            cp.sum(cp.logistic(o["X"] @ w))
            + cp.sum(cp.logistic(o["Z"] @ v))
            - o["y"] @ (o["X"] @ w + o["Z"] @ v)
        ),
        "could be labels of none",
    ),
    "labels of more than one": (
        lambda o: (
            cp.sum(cp.logistic(o["X"] @ w))
            + cp.sum(cp.logistic(cp.multiply(o["y"], o["X"] @ w)))
            - cp.sum(cp.multiply(cp.multiply(o["u"], o["y"]), o["X"] @ w))
        ),
        "could be labels of more than one",
    ),
    "labels in another shape": (
        lambda o: (
            lse(o["X"] @ A) - chosen(cp.vec(o["T"], order="F"), cp.vec(o["X"] @ A, order="F"))
        ),
        "not of the form multiply",
    ),
    "one of two without labels": (
        lambda o: lse(o["X"] @ A) + lse(o["Z"] @ B) - chosen(o["T"], o["X"] @ A),
        "has no labels",
    ),
    "half of the votes": (
        lambda o: (
            lse(o["X"] @ A)
            + cp.sum(cp.logistic(o["Z"] @ v))
            - chosen(o["T"], o["X"] @ A) / 2
            - o["y"] @ (o["Z"] @ v)
        ),
        "weight that its labels have",
    ),
    "an entry in no row": (
        lambda o: cp.sum_squares(o["X"] @ A[:, :2] - o["Y"][:, :2]) + cp.sum_squares(o["Z"] @ v),
        "variables of its own for each output",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    write, words = REFUSED[name]
    own = records(N)
    with pytest.raises(ProblemError, match=words) as caught:
        groups(write(own), [*own.values()])
    for array in own.values():
        assert f"{array.flat[0]:.4f}" not in str(caught.value)
