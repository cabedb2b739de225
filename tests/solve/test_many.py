"""Many quadratics at once: minimisers known from another solver, certificates that hold."""

import cvxpy as cp
import numpy as np
import pytest

from cvxqop.solve.engines.many import minimise_many
from cvxqop.solve.rest.prox import split

D, B = 6, 12
SHIFT = np.linspace(-0.4, 0.5, D)

RESTS = {
    "nothing": lambda v: (None, []),
    "ridge": lambda v: (3 * cp.sum_squares(v - 0.2) + v[0], []),
    "lasso": lambda v: (8 * cp.norm1(v), []),
    "shifted lasso": lambda v: (8 * cp.norm1(v - SHIFT), [v <= 0.3]),
    "box": lambda v: (None, [cp.abs(v) <= 0.1]),
    "elastic net above zero": lambda v: (cp.norm1(v) + cp.sum_squares(v), [v >= 0]),
    "weighted": lambda v: (cp.sum(cp.multiply([0.0, 1.0, 5.0, 50.0, 0.5, 2.0], cp.abs(v))), []),
}


def forms(seed=0, spread=3.0):
    rng = np.random.default_rng(seed)
    Q = np.linalg.qr(rng.standard_normal((B, D, D)))[0]
    values = 10.0 ** rng.uniform(-1.0, spread, (B, D))
    H = (Q * values[:, None, :]) @ Q.swapaxes(1, 2)
    return 0.5 * (H + H.swapaxes(1, 2)), 30.0 * rng.standard_normal((B, D)), values.min(axis=1)


@pytest.mark.parametrize("name", RESTS)
def test_minimisers_are_those_of_another_solver(name):
    H, linear, least = forms()
    v = cp.Variable(D)
    r, C = RESTS[name](v)
    found = minimise_many(H, linear, least * (1 - 1e-9), split([v], r, C), np.full(D, 5.0))
    assert np.all(found.distance < 1e-8 * (1.0 + np.abs(found.theta).max()))
    for b in range(4):
        objective = 0.5 * cp.quad_form(v, cp.psd_wrap(H[b])) + linear[b] @ v
        tight = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), 1e-12)
        cp.Problem(cp.Minimize(objective + (0 if r is None else r)), C).solve("CLARABEL", **tight)
        np.testing.assert_allclose(found.theta[b], v.value, atol=2e-5 * (1 + np.abs(v.value).max()))


def test_kinks_and_bounds_are_exact():
    H, linear, least = forms(seed=1)
    v = cp.Variable(D)
    rest = split([v], 40 * cp.norm1(v), [v <= 0.05])
    theta = minimise_many(H, linear, least, rest, np.zeros(D)).theta
    assert np.any(theta == 0.0)
    assert np.any(theta == 0.05)
    assert theta.max() <= 0.05


def test_a_certificate_bounds_the_distance(monkeypatch):
    """Stopped early, each point is no farther from the minimiser than it says."""
    H, linear, least = forms(seed=2)
    v = cp.Variable(D)
    rest = split([v], 8 * cp.norm1(v), [])
    exact = minimise_many(H, linear, least, rest, np.zeros(D)).theta
    for rounds in (1, 2, 3):
        monkeypatch.setattr("cvxqop.solve.engines.many.ROUNDS", rounds)
        early = minimise_many(H, linear, least, rest, np.full(D, 2.0))
        true = np.linalg.norm(early.theta - exact, axis=1)
        assert np.all(true <= early.distance * (1 + 1e-9) + 1e-9)
    assert np.any(true > 1e-6)
