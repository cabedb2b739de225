"""Where rounding stands in the way, the same problem is summed more finely."""

from dataclasses import replace

import cvxpy as cp
import numpy as np
import pytest
from instances import LOGISTIC, SQUARED, finite_sum, wishart

from cvxqop.errors import AccuracyError
from cvxqop.problem.records.rows import ArrayRows
from cvxqop.solve.engines.monitor import PrecisionError
from cvxqop.solve.engines.stotos import solve_stotos

pytestmark = pytest.mark.blas


def problem(n=60_000, d=5):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((n, d))
    C = rng.standard_normal((n, 1))
    return finite_sum(ArrayRows(A, C), (LOGISTIC,), wishart(rng, d, 1e-3), np.zeros(d), np.zeros(d))


def test_fine_sums_agree_and_claim_less_error():
    coarse = problem()
    fine = replace(coarse, fine=True, _sizes=[])
    theta = np.full(5, 0.3)
    one, two = coarse.evaluate(theta), fine.evaluate(theta)
    assert two.error < one.error / 5.0
    assert np.linalg.norm(one.gradient - two.gradient) <= one.error
    exact = np.zeros(5, dtype=np.longdouble)
    for A, C in coarse.parts[0].records.blocks(1000):
        slope = LOGISTIC.derivative(A @ theta + C[:, 0])
        exact += (A.astype(np.longdouble) * slope[:, None].astype(np.longdouble)).sum(axis=0)
    exact += fine.S @ theta
    assert float(np.linalg.norm(two.gradient - exact)) <= two.error


def test_an_accuracy_that_needs_the_fine_sum_is_certified():
    f, v = problem(), cp.Variable(5)
    floor = f.evaluate(np.zeros(5)).error / float(np.linalg.eigvalsh(f.S)[0])
    accuracy = floor / 3.0
    answer = solve_stotos(f, [v], None, [cp.norm(v) <= 10], accuracy=accuracy)
    assert answer.distance <= accuracy


def test_no_precision_is_enough_for_everything():
    f, v = problem(n=2000), cp.Variable(5)
    with pytest.raises(PrecisionError) as caught:
        solve_stotos(f, [v], None, [], accuracy=1e-18)
    assert isinstance(caught.value, AccuracyError)
    assert not any(character.isdigit() for character in str(caught.value))


@pytest.mark.parametrize("size", [1e-9, 1.0, 1e9])
def test_the_bound_on_rounding_holds_in_any_units_of_the_offsets(size):
    """Squares of a'θ + c with an offset of any size: against extended precision, and never lax."""
    rng = np.random.default_rng(1)
    A, C = rng.standard_normal((5000, 3)), size * rng.standard_normal((5000, 1))
    f = finite_sum(ArrayRows(A, C), (SQUARED,), np.eye(3), np.zeros(3), np.zeros(3))
    theta = size * np.array([0.3, -1.0, 0.2])
    found = f.evaluate(theta)
    wide = A.astype(np.longdouble)
    slope = 2 * (wide @ theta.astype(np.longdouble) + C[:, 0])
    exact = wide.T @ slope + theta
    assert float(np.linalg.norm(found.gradient - exact)) <= found.error
    assert found.error <= 1e-9 * float(np.linalg.norm(exact))
