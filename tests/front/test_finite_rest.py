"""Public numbers that are not finite are refused before the charge, whatever the route; infinite
bounds that bound nothing are as good as none."""

import cvxpy as cp
import numpy as np
import pytest

import cvxqop
from cvxqop.solve.rest.finite import bounded

RNG = np.random.default_rng(0)
X = RNG.uniform(-0.5, 0.5, (400, 3))
Y = np.clip(X @ [1.0, -0.5, 0.2], -1, 1)
NAN, INF = np.nan, np.inf
ROUTES = [
    ("squared", None), ("squared", "SCS"), ("squared", "OSQP"), ("squared", "STOTOS"),
    ("logistic", None),
]  # fmt: skip


def call(loss, solver, build):
    w = cp.Variable(3, name="w")
    regulariser, constraints = build(w)
    target = Y if loss == "squared" else np.sign(Y)
    term = cvxqop.glm_loss(loss, X, target, w)
    budget = cvxqop.Budget(epsilon=2.0, delta=1e-5)
    try:
        cvxqop.privatize(
            cp.Problem(cp.Minimize(term + regulariser), constraints), private=[], epsilon=1.0,
            delta=1e-6, bounds=cvxqop.Bounds(row_norm=1.0, offset=1.0), solver=solver, seed=1,
            budget=budget,
        )  # fmt: skip
    except cvxqop.ProblemError:
        assert "0 release(s)" in repr(budget)
        raise
    return w.value


REFUSED = {
    "w <= nan": lambda w: (0, [w <= NAN]),
    "w <= [1, nan, 1]": lambda w: (0, [w <= np.array([1, NAN, 1])]),
    "w >= nan": lambda w: (0, [w >= NAN]),
    "w <= -inf": lambda w: (0, [w <= -INF]),
    "w >= inf": lambda w: (0, [w >= INF]),
    "w == inf": lambda w: (0, [w == INF]),
    "w == nan": lambda w: (0, [w == NAN]),
    "w - inf <= 0": lambda w: (0, [w - INF <= 0]),
    "norm(w) <= nan": lambda w: (0, [cp.norm(w, 2) <= NAN]),
    "norm(w - nan) <= 1": lambda w: (0, [cp.norm(w - NAN, 2) <= 1]),
    "sum(w) <= nan": lambda w: (0, [cp.sum(w) <= NAN]),
    "w <= 1/0": lambda w: (0, [w <= cp.inv_pos(cp.Constant(0.0))]),
    "inf * norm1": lambda w: (INF * cp.norm1(w), []),
    "nan @ w": lambda w: (np.array([NAN, 0, 0]) @ w, []),
    "inf @ w": lambda w: (np.array([INF, 0, 0]) @ w, []),
    "norm1(w - nan)": lambda w: (cp.norm1(w - np.array([NAN, 0, 0])), []),
    "sum_squares(w - inf)": lambda w: (cp.sum_squares(w - INF), []),
    "1e308 * 10 * norm1": lambda w: (cp.Constant(1e308) * 10 * cp.norm1(w), []),
    "nan": lambda w: (cp.norm1(w) + NAN, []),
}


@pytest.mark.parametrize(("loss", "solver"), ROUTES)
@pytest.mark.parametrize("name", REFUSED)
def test_not_finite_is_refused_before_the_charge(name, loss, solver):
    with pytest.raises(cvxqop.ProblemError, match="NaN or infinite"):
        call(loss, solver, REFUSED[name])


ABSENT = {
    "w <= inf": lambda w: (0, [w <= INF]),
    "w >= -inf": lambda w: (0, [w >= -INF]),
    "norm(w) <= inf": lambda w: (0, [cp.norm(w, 2) <= INF]),
    "sum(w) <= inf": lambda w: (0, [cp.sum(w) <= INF]),
}


@pytest.mark.parametrize(("loss", "solver"), ROUTES)
def test_an_infinite_bound_is_none(loss, solver):
    free = call(loss, solver, lambda w: (0, []))
    for build in ABSENT.values():
        np.testing.assert_allclose(call(loss, solver, build), free, atol=1e-6)
    some = call(loss, solver, lambda w: (0, [w <= np.array([INF, -0.7, INF])]))
    one = call(loss, solver, lambda w: (0, [w[1] <= -0.7]))
    assert some[1] <= -0.7 + 1e-9
    np.testing.assert_allclose(some, one, atol=1e-5)


def test_bounds_of_a_variable():
    w = cp.Variable(3, bounds=[np.array([-INF, 0, 0]), np.array([INF, 1, 1])])
    problem = cp.Problem(cp.Minimize(cp.sum_squares(X @ w - Y)))
    bounds = cvxqop.Bounds(row_norm=1.0, offset=1.0)
    options = {"private": [X, Y], "bounds": bounds, "epsilon": 1.0, "delta": 1e-6}
    assert np.all(cvxqop.privatize(problem, **options)[w][1:] >= 0)
    w.attributes["bounds"] = [np.array([NAN, 0, 0]), np.ones(3)]
    with pytest.raises(cvxqop.ProblemError, match="bounds of the variable"):
        cvxqop.plan(problem, **options)


@pytest.mark.parametrize("anchor", [NAN, INF])
def test_anchors(anchor):
    w = cp.Variable(3)
    problem = cp.Problem(cp.Minimize(cp.sum_squares(X @ w - Y)))
    with pytest.raises(cvxqop.OptionError, match="anchor: every entry must be finite"):
        cvxqop.plan(
            problem, private=[X, Y], epsilon=1.0, delta=1e-6, anchor=np.array([0, anchor, 0]),
            bounds=cvxqop.Bounds(row_norm=1.0, offset=1.0),
        )  # fmt: skip


def test_entries_that_are_kept():
    w = cp.Variable((2, 2))
    limit = np.array([[1.0, INF], [INF, 4.0]])
    (left,) = bounded([w <= limit])
    w.value = np.array([[1.0, 99.0], [99.0, 4.0]])
    assert left.value()
    w.value = np.array([[0.0, 0.0], [0.0, 5.0]])
    assert not left.value()
    whole = [w <= 1, cp.norm(w, "fro") <= 2]
    assert bounded(whole) == whole
    assert bounded([w <= INF]) == []


@pytest.mark.parametrize("perturbation", ["wishart", "linear"])
def test_a_number_and_an_array_bound_one_variable(perturbation):
    """As the same box in constraints."""
    rng = np.random.default_rng(0)
    A, t = rng.uniform(-0.5, 0.5, (60, 2)), rng.uniform(-1.0, 1.0, 60)
    found = []
    for bounds in (
        None,
        [-1, np.array([0.2, 0.5])],
        [cp.Parameter(value=-1.0), np.array([0.2, 0.5])],
    ):
        x = cp.Variable(2, bounds=bounds)
        box = [] if bounds else [x >= -1, x <= np.array([0.2, 0.5])]
        problem = cp.Problem(cp.Minimize(cp.sum_squares(A @ x - t)), box)
        released = cvxqop.privatize(
            problem, private=[A, t], bounds=cvxqop.Bounds(row_norm=1.0, offset=1.0),
            epsilon=1.0, delta=1e-6, perturbation=perturbation, seed=0,
        )  # fmt: skip
        found.append(released[x])
    np.testing.assert_allclose(found[1:], [found[0]] * 2, atol=1e-6)
