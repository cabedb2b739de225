"""No engine goes on for ever: at the floor of rounding it certifies or says that it cannot."""

import cvxpy as cp
import numpy as np
import pytest
from instances import LOGISTIC, SQUARED_HINGE, finite_sum, wishart

from cvxqop.errors import AccuracyError
from cvxqop.problem.records.rows import ArrayRows
from cvxqop.solve.engines.monitor import PrecisionError
from cvxqop.solve.engines.stotos import solve_stotos
from cvxqop.solve.smooth.function import PerturbedFunction

STEPS = 300
DRAWS = 12
SETS = {
    "monotone": lambda w: [cp.diff(w) >= 0],
    "convex": lambda w: [cp.diff(w, 2) >= 0],
    "rows": lambda w: [np.array([[1, 1, 1, 1.0], [1, -1, 0, 0]]) @ w <= [0.5, 3]],
    "simplex": lambda w: [w >= 0, cp.sum(w) == 3],
    "box": lambda w: [cp.abs(w) <= 0.4],
}


def drawn(seed, losses):
    """A logistic sum whose perturbation is almost nothing, so that the certificate is hard."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-0.5, 0.5, (1000, 4))
    truth = np.array([1.0, -1.0, 0.0, 0.5])
    y = np.where(rng.uniform(size=1000) < 1 / (1 + np.exp(-4 * X @ truth)), 1.0, -1.0)
    S = wishart(rng, 4) * 10.0 ** rng.uniform(-6, -2)
    a = 1e-3 * rng.standard_normal(4)
    return finite_sum(ArrayRows(-y[:, None] * X, np.zeros((1000, 1))), losses, S, a, np.zeros(4))


@pytest.mark.parametrize("losses", [(LOGISTIC,), (SQUARED_HINGE,)], ids=["logistic", "hinge"])
@pytest.mark.parametrize("name", SETS)
def test_newton_ends_by_itself(name, losses):
    """With accuracies at, below and far below what double precision can certify."""
    for seed in range(DRAWS):
        f = drawn(seed, losses)
        w = cp.Variable(4)
        for accuracy in (1e-6, 1e-9, 1e-13):
            try:
                found = solve_stotos(f, [w], None, SETS[name](w), accuracy=accuracy, max_iter=STEPS)
            except PrecisionError:
                continue
            assert found.distance <= accuracy


@pytest.mark.parametrize("name", SETS)
def test_quasi_newton_ends_by_itself(name):
    for seed in range(DRAWS // 3):
        f = drawn(seed, (LOGISTIC,))
        bare = finite_sum(f.parts[0].records, f.parts[0].loss, 0 * f.S, 0 * f.a, f.anchor)

        def function(theta, bare=bare):
            found = bare.evaluate(theta)
            return found.value, found.gradient

        smooth = PerturbedFunction(function, f.S, f.a, f.anchor, 1000, 0.25, 0.5, 20.0)
        w = cp.Variable(4)
        for accuracy in (1e-4, 1e-13):
            try:
                found = solve_stotos(
                    smooth, [w], None, SETS[name](w), accuracy=accuracy, max_iter=STEPS
                )
            except PrecisionError:
                continue
            assert found.distance <= accuracy


@pytest.mark.parametrize("variant", ["svrg", "plain"])
def test_stochastic_variants_end(variant):
    f = drawn(0, (LOGISTIC,))
    w = cp.Variable(4)
    for accuracy in (1e-4, 1e-13):
        try:
            found = solve_stotos(
                f,
                [w],
                cp.norm1(w),
                SETS["monotone"](w),
                accuracy=accuracy,
                variant=variant,
                max_iter=50,
                seed=np.random.default_rng(0),
            )
        except AccuracyError:
            continue
        assert found.distance <= accuracy
