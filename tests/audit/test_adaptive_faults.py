"""Adaptive stages: replayed extreme records attain the claim, and planted faults exceed it."""

from dataclasses import replace

import cvxpy as cp
import numpy as np
import pytest

import cvxqop
from cvxqop.audit import Call, draws_follow_law
from cvxqop.audit.loss_divergence import path_shift
from cvxqop.audit.row import ADAPTIVE
from cvxqop.audit.suite import audit, rows
from cvxqop.privacy.gaussian.adaptive import CalibratedAdaptive
from cvxqop.problem.losses import part
from cvxqop.spending.spend import release_quadratic

RNG = np.random.default_rng(6)
ALONG = np.array([0.6, -0.8])


def extreme(adjacency):
    """Records on a plane of slope 0.3 along a row of norm 1, and two that lie far off it."""
    X = RNG.uniform(-0.6, 0.6, (3000, 2))
    y = 0.3 * X @ ALONG
    one = np.vstack([X, ALONG]), np.append(y, -1.0)
    other = (X, y) if adjacency == "add_remove" else (one[0], np.append(y, 1.0))
    return one, other


def call(adjacency, factor=0.5, ids=None, **options):
    def state(data):
        theta = cp.Variable(2)
        problem = cp.Problem(cp.Minimize(factor * cp.sum_squares(data[0] @ theta - data[1])))
        people = np.arange(len(data[1])) // 2 if ids is None else ids[: len(data[1])]
        return (problem, list(data), [], people)[: 4 if options else 2]

    return Call(
        state, output="loss", bounds=cvxqop.Bounds(row_norm=1.0, offset=1.0), epsilon=200.0,
        delta=1e-6, adjacency=adjacency, perturbation=ADAPTIVE, seed=2, **options,
    )  # fmt: skip


def share(adjacency, pair=None, **options):
    """Σ (shift/noise)² of a path over μ² as claimed, the larger of the two directions."""
    one, other = pair or extreme(adjacency)
    made = call(adjacency, **options)
    prepared = [made.prepare(data) for data in (one, other)]
    claimed = prepared[0][0].mechanism.gdp_mu ** 2
    (first, backend), (second, _) = prepared
    return (
        max(
            path_shift(release_quadratic, *path)
            for path in ((first, backend, second), (second, backend, first))
        )
        / claimed
    )


@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
def test_an_extreme_record_attains_the_claim(adjacency):
    """Added: F, G0, every cut, one in every histogram. Exchanged: 2 G0, twice every cut, √2 in
    every histogram, and no curvature, which the joint accounting leaves free."""
    assert share(adjacency) == pytest.approx(1.0, abs=1e-5)
    assert share(adjacency) <= 1.0


@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
def test_two_rows_of_a_person_attain_it(adjacency):
    """Both rows of the last person change; under replace_one √2 F is too much for parallel rows."""
    (X, y), _ = extreme("add_remove")
    X, y = X[:-1], y[:-1]
    twice = np.vstack([X, ALONG, ALONG])
    one = twice, np.append(y, [-1.0, -1.0])
    other = (X, y) if adjacency == "add_remove" else (twice, np.append(y, [1.0, 1.0]))
    found = share(adjacency, (one, other), rows_per_person=2)
    assert found <= 1.0
    assert found == pytest.approx(1.0, abs=1e-5 if adjacency == "add_remove" else 0.15)


@pytest.mark.parametrize("factor", [0.5, 0.1, 1e-6])
def test_rows_of_a_person_that_are_left_out_count_nowhere(factor):
    """A thousand rows of one person, of which two are used: whatever the unit of the gradient."""
    (X, y), _ = extreme("add_remove")
    X, y = X[:-1], y[:-1]
    one = np.vstack([X, np.tile(ALONG, (1001, 1))]), np.append(y, -np.ones(1001))
    ids = np.append(np.arange(len(y)), np.full(1001, len(y)))
    found = share("add_remove", (one, (X, y)), ids=ids, factor=factor, rows_per_person=2)
    assert found == pytest.approx(1.0, abs=1e-5)
    assert found <= 1.0


def test_random_pairs_never_exceed_it():
    rng = np.random.default_rng(1)
    for adjacency in ("add_remove", "replace_one"):
        for _ in range(6):
            X, y = rng.uniform(-1, 1, (40, 2)), rng.uniform(-2, 2, 40)
            one = (X, y)
            other = (X[:-1], y[:-1])
            if adjacency == "replace_one":
                other = (X.copy(), y.copy())
                other[0][-1], other[1][-1] = rng.uniform(-1, 1, 2), rng.uniform(-2, 2)
            assert share(adjacency, (one, other)) <= 1.0


def test_a_cut_that_is_not_applied(monkeypatch):
    sound = part._cut_gradients

    def uncut(A, C, loss, anchor, cuts, edges):
        return sound(A, C, loss, anchor, np.full_like(cuts, 1e9), edges)

    monkeypatch.setattr(part, "_cut_gradients", uncut)
    assert share("add_remove") > 10.0


def test_half_the_sensitivity_of_histograms(monkeypatch):
    sound = CalibratedAdaptive.draw

    def draw(self, noise):
        drawn = sound(self, noise)
        return replace(drawn, counts=0.5 * drawn.counts)

    mechanism = call("add_remove").prepare(extreme("add_remove")[0])[0].mechanism
    assert draws_follow_law(mechanism, draws=300, seed=1).holds
    monkeypatch.setattr(CalibratedAdaptive, "draw", draw)
    found = draws_follow_law(mechanism, draws=300, seed=1)
    assert not found.holds
    assert found.worst[0] == "counts"
    monkeypatch.undo()
    # The same in the accounting: what is calibrated is less than what is drawn for.
    claimed = CalibratedAdaptive.gdp_mu.fget
    monkeypatch.setattr(
        CalibratedAdaptive,
        "gdp_mu",
        property(lambda self: claimed(replace(self, count_scale=2.0 * self.count_scale))),
    )
    assert share("add_remove") > 1.01


def test_a_share_that_is_spent_twice(monkeypatch):
    """Histograms in every second stage, with the noise of those in every fourth."""
    made, pair = call("add_remove"), extreme("add_remove")
    claimed = made.prepare(pair[0])[0].mechanism.gdp_mu ** 2
    monkeypatch.setattr(CalibratedAdaptive, "looks", property(lambda self: tuple(range(1, 23, 2))))
    sound = CalibratedAdaptive.draw

    def draw(self, noise):
        drawn = sound(self, noise)
        return replace(drawn, counts=np.vstack([drawn.counts, drawn.counts]))

    monkeypatch.setattr(CalibratedAdaptive, "draw", draw)
    (first, backend), (second, _) = (made.prepare(data) for data in pair)
    assert path_shift(release_quadratic, first, backend, second) > 1.01 * claimed


def test_a_first_gradient_with_the_noise_of_a_cut_one(monkeypatch):
    sound = CalibratedAdaptive.draw

    def draw(self, noise):
        drawn = sound(self, noise)
        return replace(drawn, guards=(0.3 * drawn.guards[0], *drawn.guards[1:]))

    monkeypatch.setattr(CalibratedAdaptive, "draw", draw)
    mechanism = call("add_remove").prepare(extreme("add_remove")[0])[0].mechanism
    assert not draws_follow_law(mechanism, draws=500, seed=1).holds


@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
def test_rows_of_the_suite(adjacency):
    table = [r for r in rows() if r.mechanism == "gaussian, adaptive" and r.adjacency == adjacency]
    assert len(table) > 10
    for row in table[::4]:
        found = audit(replace(row, sampled=None), draws=300, risk=1e-8, seed=5)
        assert not found.error
        assert found.holds
        assert found.exact.attained > 1e-6
