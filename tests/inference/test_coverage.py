"""Coverage in short: redraws around the raw release cover, those of the repaired one do not.

The full measurement is benchmarks/coverage.py.
"""

import cvxpy as cp
import numpy as np
import pytest
from releases import PAY, Case

import cvxqop
from cvxqop.inference.released import raised_to
from cvxqop.inference.solving import PublicRest

RELEASES, DRAWS = 60, 200
PROBLEMS = {
    "least squares": lambda v: (None, []),
    "ridge": lambda v: (5 * cp.sum_squares(v), []),
    "lasso": lambda v: (10 * cp.norm1(v), []),
    "box": lambda v: (None, [cp.abs(v) <= 0.4]),
}


def covers(draws, truth):
    lower, upper = np.quantile(draws, [0.025, 0.975], axis=0, method="weibull")
    return (lower <= truth + 1e-7) & (truth <= upper + 1e-7)


def bootstrapped(loss, rest, generator):
    """The release as if it were the truth, with the noise and the repair of the mechanism again."""
    law, d = loss.noise, len(loss.gradient)
    H, least = raised_to(loss.hessian + law.curvatures(generator, DRAWS, d), law.edge)
    g = loss.gradient + law.gradients(generator, DRAWS, d)
    return rest.solve(H, g, loss, least, loss.anchor)


@pytest.mark.parametrize(("d", "n", "epsilon"), [(6, 1500, 0.1), (20, 3000, 0.3)])
def test_least_squares_where_the_floor_acts(d, n, epsilon):
    """.88 of d × 60 intervals of 95% is what a parametric bootstrap does not reach."""
    case = Case(d=d, n=n, epsilon=epsilon, adjacency="add_remove")
    exact, rng = case.exact(), np.random.default_rng(0)
    rest = PublicRest.of(case.loss, None, [])
    own, other = [], []
    for k, loss in enumerate(case.releases(RELEASES)):
        own.append(covers(loss.error_bars(draws=DRAWS, seed=k).draws, exact))
        other.append(covers(bootstrapped(loss, rest, rng), exact))
    assert np.mean(own) >= 0.88
    assert np.mean(other) < 0.88


@pytest.mark.parametrize("perturbation", ["gaussian", "wishart"])
def test_every_problem_is_covered(perturbation):
    case = Case(epsilon=0.5, perturbation=perturbation)
    v = case.theta
    for problem in PROBLEMS.values():
        exact = case.exact(*problem(v))
        found = [
            covers(loss.error_bars(*problem(v), draws=DRAWS, seed=k).draws, exact)
            for k, loss in enumerate(case.releases(RELEASES, seed=2))
        ]
        assert np.mean(found) >= 0.88


def test_stages_are_covered_from_the_first():
    """The last gradient has cut residuals and an anchor that depends on the noise: not used."""
    case = Case(epsilon=1.0)
    exact, found = case.exact(), []
    for seed in range(40):
        loss = cvxqop.private_loss(
            case.f,
            private=[case.X, case.y],
            perturbation=cvxqop.Gaussian(stages="adaptive"),
            seed=seed,
            **PAY,
        )
        assert np.any(loss.anchor)
        assert not np.any(loss.first_anchor)
        found.append(covers(loss.error_bars(draws=DRAWS, seed=seed).draws, exact))
    assert np.mean(found) >= 0.88
