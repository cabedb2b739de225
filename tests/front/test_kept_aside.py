"""Atoms with variables of their own: support functions, perspectives, indicators and the like."""

import cvxpy as cp
import numpy as np
import pytest
from cvxpy.transforms.indicator import indicator
from cvxpy.transforms.partial_optimize import partial_optimize

import cvxqop

RNG = np.random.default_rng(5)
X = RNG.uniform(-0.5, 0.5, (20_000, 3))
Y = np.clip(X @ [0.6, -0.3, 0.2] + 0.05 * RNG.standard_normal(len(X)), -1, 1)


def rests(k):
    """r and C for θ in units of 1/k, beside Σ φ(x'θ − ky)."""
    w, z = cp.Variable(3, name="w"), cp.Variable(3)
    s = cp.Variable(nonneg=True, name="s")
    return {
        "support": (w, 20 * k * cp.suppfunc(z, [cp.norm(z) <= 1, z <= 0.7])(w), []),
        "perspective": (w, 20 * k * (cp.perspective(cp.square(w[0]), s) + s), [s >= 1e-3 * k]),
        "indicator": (w, indicator([w >= 0.25 * k]) + 20 * k * cp.norm1(w), []),
        "square of pos": (w, 3000 * cp.sum_squares(cp.pos(w - 0.5 * k)), []),
    }


LOSSES = {
    "squared": lambda w, k: cp.sum_squares(X @ w - k * Y),
    "huber": lambda w, k: cp.sum(cp.huber(X @ w - k * Y, k)),
}


@pytest.mark.parametrize("k", [1.0, 1e6])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("name", rests(1.0))
def test_they_are_released_in_any_units(name, loss, k):
    """At ε = 10⁶ the answer is CVXPY's own on the data; other variables have their values too."""
    w, r, C = rests(1.0)[name]
    cp.Problem(cp.Minimize(LOSSES[loss](w, 1.0) + r), C).solve(solver="CLARABEL")
    expected = w.value
    w, r, C = rests(k)[name]
    problem = cp.Problem(cp.Minimize(LOSSES[loss](w, k) + r), C)
    budget = cvxqop.Budget(epsilon=1e6, delta=1e-3)
    solution = cvxqop.privatize(
        problem,
        private=[X, k * Y],
        bounds=cvxqop.Bounds(row_norm=1.0, offset=k),
        epsilon=1e6,
        delta=1e-6,
        radius=k,
        seed=1,
        budget=budget,
    )
    np.testing.assert_allclose(solution[w] / k, expected, atol=1e-4)
    assert len(budget.history) == 1
    assert all(v.value is not None for v in problem.variables())
    if name == "indicator":
        assert np.all(solution[w] >= 0.25 * k * (1 - 1e-6))
    if name == "perspective":
        assert float(solution[C[0].args[1]]) == pytest.approx(abs(solution[w][0]), rel=1e-3)


def refused(r, C, **options):
    w = cp.Variable(3, name="w")
    y = np.where(Y > 0, 1.0, -1.0)
    loss = cp.sum(cp.logistic(-cp.multiply(y, X @ w)))
    problem = cp.Problem(cp.Minimize(loss + r(w)), C(w))
    budget = cvxqop.Budget(epsilon=9.0, delta=1e-3)
    with pytest.raises(cvxqop.ProblemError) as caught:
        cvxqop.privatize(
            problem,
            private=[X, y],
            bounds=cvxqop.Bounds(row_norm=1.0),
            epsilon=1.0,
            delta=1e-6,
            budget=budget,
            **options,
        )
    assert not budget.history
    assert w.value is None
    return str(caught.value)


def partial(w):
    u = cp.Variable(3)
    return partial_optimize(cp.Problem(cp.Minimize(cp.sum(u)), [u >= w, u >= -w]), [u], [w])


@pytest.mark.parametrize("solver", [None, "CLARABEL", "SCS"])
def test_what_cannot_be_evaluated_at_a_point_is_refused_before_the_charge(solver):
    nothing = {"r": lambda w: 0, "C": lambda w: []}
    z = cp.Variable(3)
    support = cp.suppfunc(z, [cp.norm(z) <= 1])
    for rest in (
        {"r": partial},
        {"C": lambda w: [partial(w) <= 1]},
        {"C": lambda w: [support(w) <= 1]},
    ):
        text = refused(**{**nothing, **rest}, solver=solver)
        assert "no answer could be checked" in text or "holds a problem inside" in text
