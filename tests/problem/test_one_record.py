"""One record is read as any number of records is: same outcome, same constants, same words.

CVXPY builds norms, products and broadcasts of one entry otherwise than of several, and under
add_remove the number of records is private. Programs that CVXPY makes the same expression of when
there is one record, and that differ for more, are left out: norm(e, 3) and norm(e, 2), v * e and
v @ e, an (n, k) matrix's norm and its "fro" norm, (n, 1) and (1, n).
"""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp

import cvxqop
from cvxqop.errors import ProblemError
from cvxqop.problem.losses.declared import Declared
from cvxqop.problem.reading.analysis import read
from cvxqop.problem.reading.declared_reading import read_declared

from .listed import public_of
from .objectives import World
from .recipes import MIXING, column, flat

COUNTS = (1, 2, 3, 50)

ARGUMENTS = {
    "plain": lambda o: o.X @ o.w - o.y,
    "target first": lambda o: o.y - o.X @ o.w,
    "transposed": lambda o: o.w @ o.X.T - o.y,
    "intercept": lambda o: o.X @ o.w + o.b - o.y,
    "intercept (1,)": lambda o: o.X @ o.w + o.c[:1] - o.y,
    "column of ones": lambda o: o.X @ o.w + np.ones((o.n, 1)) @ o.c[:1] - o.y,
    "promoted": lambda o: o.X @ o.w + cp.promote(o.b, (o.n,)) - o.y,
    "ones times intercept": lambda o: o.X @ o.w + np.ones(o.n) * o.b - o.y,
    "broadcast": lambda o: o.X @ o.w + cp.broadcast_to(o.b, (o.n,)),
    "column": lambda o: o.X @ o.W - column(o.y),
    "column, intercept (1, 1)": lambda o: o.X @ o.W - column(o.y) + o.row[:, :1],
    "row, intercept (1, 1)": lambda o: o.W.T @ o.X.T - column(o.y).T + o.row[:, :1],
    "label times variable": lambda o: o.X @ o.w - cp.multiply(o.c[:1], o.y),
    "margins": lambda o: 1 - cp.multiply(o.y, o.X @ o.w + o.b),
    "margins in a column": lambda o: 1 - cp.multiply(column(o.y), o.X @ o.W),
    "diagonal of labels": lambda o: cp.diag(o.y) @ (o.X @ o.w + o.b),
    "half": lambda o: (o.X @ o.w - o.y) / 2,
    "number of one entry": lambda o: (o.X @ o.w - o.y) / np.array([2.0]),
    "one number a record": lambda o: cp.multiply(np.full(o.n, 2.0), o.X @ o.w - o.y),
    "identity": lambda o: np.eye(o.n) @ (o.X @ o.w) - o.y,
    "sparse identity": lambda o: sp.eye_array(o.n) @ (o.X @ o.w) - o.y,
    "two arrays": lambda o: o.X @ o.w + o.Z @ o.v - o.y,
    "a column": lambda o: cp.multiply(o.Z[:, 0], o.X @ o.w) - o.y,
    "a map": lambda o: (o.Z @ cp.diag(o.v)) @ np.ones(2) - o.y,
    "outer": lambda o: cp.outer(o.y, o.w) @ np.ones(o.d),
    "public rows": lambda o: o.X @ o.w - (1.3 * o.P) @ o.w,
    "public weights": lambda o: sp.diags_array(o.q) @ (o.X @ o.w),
    "product of sums": lambda o: cp.sum(cp.multiply(o.X, flat(o.W)), axis=1),
}
LOSSES = {
    "sum_squares": lambda o, e: cp.sum_squares(e),
    "square": lambda o, e: 3 * cp.sum(2 * cp.square(e)) + 1,
    "norm": lambda o, e: cp.norm(e, 2) ** 2,
    "fro": lambda o, e: cp.norm(e, "fro") ** 2,
    "norm of vec": lambda o, e: cp.square(cp.norm(cp.vec(e, order="F"))),
    "over two": lambda o, e: cp.quad_over_lin(e, 2.0),
    "keepdims": lambda o, e: cp.sum(cp.square(e), keepdims=True),
    "one number": lambda o, e: cp.sum(cp.multiply(np.array([2.0]), cp.square(e))),
    "weights": lambda o, e: np.ones(o.n) @ cp.square(flat(e)),
    "weights (1, n)": lambda o, e: np.ones((1, o.n)) @ cp.square(flat(e)),
    "full weights": lambda o, e: cp.sum(cp.multiply(np.full(o.n, 2.0), cp.square(flat(e)))),
    "huber": lambda o, e: cp.sum(cp.huber(e / 2, 0.5)) * 4,
    "logistic": lambda o, e: cp.sum(cp.logistic(-e)),
    "labels": lambda o, e: cp.sum(cp.logistic(flat(e))) - o.y @ flat(e),
    "labels inside": lambda o, e: -cp.sum(cp.multiply(o.y, flat(e)) - cp.logistic(flat(e))),
    "hinge": lambda o, e: cp.sum(cp.square(cp.maximum(0, e))),
    "private weights": lambda o, e: cp.sum_squares(cp.multiply(o.Z[:, 0], flat(e))),
    "mean": lambda o, e: cp.mean(cp.square(e)),
    "several": lambda o, e: cp.sum_squares(e) + cp.sum(cp.huber(e)) + cp.norm1(o.w),
    "norm alone": lambda o, e: cp.norm(e),
    "absolute": lambda o, e: cp.sum(cp.abs(e)),
    "not a sum": lambda o, e: cp.log_sum_exp(e),
    "array": lambda o, e: cp.square(e),
}
OUTPUTS = {
    "squares": lambda o: cp.sum_squares(o.X @ o.V - o.Y),
    "row": lambda o: cp.norm(3 * (o.X @ o.V) + o.row - o.Y, "fro") ** 2,
    "column of ones": lambda o: cp.sum_squares(o.X @ o.V + np.ones((o.n, 1)) @ o.row - o.Y),
    "vector": lambda o: cp.sum(cp.square(o.X @ o.V + o.c - o.Y)),
    "reshaped": lambda o: cp.sum_squares(cp.vec(o.X @ o.V - o.Y, order="F")),
    "broadcast": lambda o: cp.sum_squares(cp.broadcast_to(o.row, (o.n, o.k)) + o.X @ o.V),
    "one target": lambda o: cp.sum_squares(o.X @ o.V - column(o.y)),
    "scaled records": lambda o: cp.sum_squares(cp.multiply(column(o.y), o.X @ o.V - o.Y)),
    "multinomial": lambda o: (
        cp.sum(cp.log_sum_exp(o.X @ o.V + o.row, axis=1))
        - cp.sum(cp.multiply(o.T, o.X @ o.V + o.row))
    ),
    "trace": lambda o: cp.sum(cp.log_sum_exp(o.X @ o.V, axis=1)) - cp.trace(o.T.T @ (o.X @ o.V)),
    "transposed": lambda o: cp.sum_squares(o.V.T @ o.X.T - o.Y.T),
    "means": lambda o: cp.sum_squares(o.X - cp.outer(np.ones(o.n), o.w)),
    "means of a row": lambda o: cp.sum_squares(o.X - cp.reshape(o.w, (1, o.d), order="C")),
    "stacked": lambda o: cp.sum_squares(cp.vstack([o.X @ o.w, o.X @ o.w])),
    "side by side": lambda o: cp.sum_squares(cp.hstack([column(o.X @ o.w), column(o.y)])),
}
FORMS = {
    **{("sum_squares", name): lambda o, e=e: cp.sum_squares(e(o)) for name, e in ARGUMENTS.items()},
    **{("labels", name): lambda o, e=e: LOSSES["labels"](o, e(o)) for name, e in ARGUMENTS.items()},
    ("sum_squares", "(n, 1) − (n,)"): lambda o: cp.sum_squares(o.X @ o.W - o.y),
    **{
        (loss, name): lambda o, f=f, name=name: f(o, ARGUMENTS[name](o))
        for loss, f in LOSSES.items()
        for name in ("plain", "column, intercept (1, 1)")
    },
    **{("outputs", name): form for name, form in OUTPUTS.items()},
    **{
        ("glm_loss", loss): lambda o, loss=loss: cvxqop.glm_loss(
            loss, o.records["X"], o.records["y"], o.w, intercept=o.b
        )
        for loss in ("squared", "logistic", "huber", "squared_hinge")
    },
    **{
        ("mixing", i): lambda o, part=part: cp.sum_squares(part(o, o.X @ o.w))
        for i, part in enumerate(MIXING)
        if i not in (13, 15)  # (n, 1) − (1, n), and v @ e
    },
}


def outcome(form, n, dimension, *, variables=True):
    """All that a reading of n records says to anybody but the holder of the data; whether the
    shapes of ``variables`` are listed is the user's choice."""
    world = World.of(n, dimension, 2, 3, "array")
    objective = form(world)
    try:
        if objective.size != 1:
            raise ProblemError("The objective is an array; it must be a number.")
        problem = cp.Problem(cp.Minimize(objective))
        listed = public_of(problem, world.private)
        if not variables:
            listed = [item for item in listed if not isinstance(item, cp.Variable)]
        erm = read(problem, world.private, public=listed, adjacency="add_remove")
    except ProblemError as error:
        return str(error)
    losses = [
        (loss.name, loss.curvature, loss.slope_bound(1.5)) for loss, _ in erm.loss.terms[0].losses
    ]
    return (
        losses,
        erm.loss.terms[0].row_parts,
        erm.loss.has_offset,
        erm.texts,
        erm.private_names,
        erm.public_data,
    )


@pytest.mark.filterwarnings("ignore:This use of:UserWarning")
@pytest.mark.parametrize("form", FORMS, ids=str)
@pytest.mark.parametrize("variables", [True, False])
def test_any_number_of_records_is_read_alike(form, variables):
    for dimension in (1, 3):
        first, *rest = (outcome(FORMS[form], n, dimension, variables=variables) for n in COUNTS)
        assert all(other == first for other in rest), (first, *rest)


def test_the_forms_are_not_all_refused():
    assert sum(not isinstance(outcome(form, 50, 3), str) for form in FORMS.values()) > 80


DECLARED = {
    "classes": lambda o: cp.sum(cp.log_sum_exp(o.X @ o.V + o.row, axis=1)),
    "stack": lambda o: cp.sum(cp.log_sum_exp(cp.hstack([column(o.X @ o.w), column(o.y)]), axis=1)),
    "two rows": lambda o: cp.sum_squares(o.X @ o.w - o.y) + cp.sum(cp.exp(o.Z @ o.v)),
    "norm": lambda o: cp.norm(o.X @ o.w - o.y, 2) ** 2 + cp.sum(cp.exp(o.Z @ o.v)),
    "norm of a column": lambda o: cp.norm(o.X @ o.W, 2) ** 2 + cp.sum(cp.exp(o.Z @ o.v)),
    "outputs": lambda o: cp.sum(cp.huber(o.X @ o.V - o.Y)) / 2,
    "a public row": lambda o: cp.sum(cp.log_sum_exp(o.X @ o.V + np.full((1, o.k), 1.3), axis=1)),
    "norm alone": lambda o: cp.norm(o.X @ o.w - o.y),
    "broadcast": lambda o: cp.sum_squares(o.X @ o.W - o.y),
    "public rows": lambda o: cp.sum(cp.log_sum_exp(o.X @ o.V + np.full((o.n, o.k), 1.3), axis=1)),
}


@pytest.mark.parametrize("form", DECLARED)
def test_declared_losses_are_read_alike(form):
    outcomes = []
    for n in COUNTS:
        world = World.of(n, 3, 2, 3, "array")
        problem, declared = cp.Problem(cp.Minimize(DECLARED[form](world))), Declared(1, gradient=1)
        try:
            listed = public_of(problem, world.private)
            erm = read_declared(
                problem, world.private, declared, public=listed, adjacency="add_remove"
            )
        except ProblemError as error:
            outcomes.append(str(error))
        else:
            outcomes.append((erm.texts, erm.private_names, erm.public_data, erm.scale_statement))
    assert all(other == outcomes[0] for other in outcomes)


OPENED = {
    "sum of outputs": lambda o: cp.sum(cp.sum(cp.huber(o.X @ o.V - o.Y), axis=1)),
    "square of a sum": lambda o: cp.sum(cp.square(cp.sum(cp.huber(o.X @ o.V - o.Y), axis=1))),
    "weights of a sum": lambda o: o.y @ cp.sum(cp.square(o.X @ o.V - o.Y), axis=1),
    "largest output": lambda o: cp.sum(cp.max(cp.square(o.X @ o.V - o.Y), axis=1)),
    "first records": lambda o: cp.sum_squares(o.X[:2] @ o.w),
    "one output": lambda o: cp.sum(cp.logistic(o.X @ o.V)[:, 0]),
    "length": lambda o: cp.sum(cp.huber(cp.norm(o.X @ o.V - o.Y, 2, axis=1))),
    "two numbers": lambda o: cp.sum(
        cp.log_sum_exp(cp.vstack([0 * (o.X @ o.w), o.X @ o.w]), axis=0)
    ),
    "two lengths": lambda o: cp.sum(cp.norm(cp.vstack([o.X @ o.w, 2 * (o.X @ o.w)]), 2, axis=0)),
}


@pytest.mark.parametrize("form", OPENED)
def test_outputs_and_stacks_of_two_are_told_apart_whatever_their_number(form):
    """(1, k) has k outputs and not k records, and two rows of records are no two records."""
    first, *rest = (outcome(OPENED[form], n, 3) for n in COUNTS)
    assert all(other == first for other in rest), (first, *rest)


@pytest.mark.parametrize("loss", [cp.sum_squares, lambda e: cp.norm(e, "fro") ** 2])
def test_a_norm_and_a_square_of_one_record_have_the_values_of_cvxpy(loss, agrees):
    world = World.of(1, 3, 2, 5, "array")
    expression = loss(world.X @ world.W - column(world.y) + world.row[:, :1] @ np.ones((1, 1)))
    agrees(read(cp.Problem(cp.Minimize(expression)), world.private), expression)
