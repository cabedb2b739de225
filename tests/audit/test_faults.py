"""Faults planted in the library are caught by the audits of the suite; so is each by its own part.

Every test is paired with the sound library by ``test_the_same_audits_pass``.
"""

import warnings
from dataclasses import replace

import numpy as np
import pytest

import cvxqop
from cvxqop import case
from cvxqop.audit import Call, draws_follow_law, lower_bound
from cvxqop.audit.declared_losses import DECLARED_LINE, DECLARED_QUADRATIC, NO_GUARD
from cvxqop.audit.loss_divergence import loss_divergence
from cvxqop.audit.neighbours import LOSSES, MULTINOMIAL, PAIRS
from cvxqop.audit.suite import Row, audit
from cvxqop.audit.wide import pushed, wide_rows
from cvxqop.privacy.noise import Randomness, SeededNoise
from cvxqop.privacy.release import GaussianRelease
from cvxqop.privacy.wishart import ensemble as wishart
from cvxqop.privacy.wishart.calibrated import CalibratedWishart
from cvxqop.problem.losses.margin_term import MarginTerm
from cvxqop.problem.losses.multinomial import Multinomial
from cvxqop.spending import certified

PAIR = {pair.name: pair for pair in PAIRS}
SQUARED, LOGISTIC, HUBER = LOSSES
RISK = 1e-8
ADDED = Row("wishart", "wishart", "add_remove", SQUARED, PAIR["opposite"], "loss", "loss")
INTERCEPT = replace(ADDED, pair=PAIR["intercept"])


def findings(row, draws=2000):
    return audit(row, draws=draws, risk=RISK, seed=11)


@pytest.mark.parametrize("row", [ADDED, INTERCEPT], ids=["opposite", "intercept"])
def test_the_same_audits_pass(row):
    found = findings(row)
    assert not found.error
    assert found.holds
    assert found.exact.attained == pytest.approx(1.0, abs=1e-3)
    assert 0.1 < found.sampled.attained < 1.0


def patch_draw(monkeypatch, change):
    sound = CalibratedWishart.draw
    monkeypatch.setattr(CalibratedWishart, "draw", lambda self, noise: change(sound(self, noise)))


def test_half_the_noise(monkeypatch):
    def half(draw):
        return replace(draw, factor=np.sqrt(0.5) * draw.factor, guard=0.5 * draw.guard)

    patch_draw(monkeypatch, half)
    found = findings(ADDED)
    assert not found.law.holds
    assert not found.sampled.holds


def test_R_instead_of_its_square(monkeypatch):
    sound = MarginTerm.constants

    def constants(self, *args):
        c = sound(self, *args)
        return replace(c, smoothness=c.smoothness / c.row_norm)

    monkeypatch.setattr(MarginTerm, "constants", constants)
    found = findings(replace(ADDED, sampled=None))
    assert found.exact.attained > 1.5
    assert not found.exact.holds
    wide = replace(SQUARED, bounds=cvxqop.Bounds(row_norm=8.0, offset=1.0))
    row = replace(ADDED, loss=wide, pair=PAIR["far beyond the bounds"])
    assert not findings(row, 1000).sampled.holds


@pytest.mark.parametrize("constant", ["anchor_gradient", "smoothness"])
def test_a_noise_that_forgets_the_size_of_the_intercept(monkeypatch, constant):
    """G0 and L from R_x in the place of R, R² = R_x² + τ²."""
    sound = MarginTerm.constants

    def constants(self, bounds, *args):
        c = sound(self, bounds, *args)
        part = (bounds.row_norm / c.row_norm) ** (2 if constant == "smoothness" else 1)
        return replace(c, **{constant: getattr(c, constant) * part})

    monkeypatch.setattr(MarginTerm, "constants", constants)
    found = findings(replace(INTERCEPT, sampled=None))
    assert found.exact.attained > 1.1
    assert not found.exact.holds


def test_an_unperturbed_intercept(monkeypatch):
    def bare(draw):
        factor, guard = draw.factor.copy(), draw.guard.copy()
        factor[-1] = 0.0
        guard[-1] = 0.0
        return replace(draw, factor=factor, guard=guard)

    patch_draw(monkeypatch, bare)
    D = PAIR["intercept"].data("replace_one")
    row = replace(INTERCEPT, adjacency="replace_one", options={"solver": "STOTOS"})
    for output in ("loss", "solution"):
        found = lower_bound(row.call(output, 3), *D, trials=250, confidence=1 - RISK)
        assert not found.holds


class FromData:
    """A library that reads its bounds from the data set."""

    epsilon, delta = 2.0, 0.01

    def sampler(self, data):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", cvxqop.PrivacyWarning)
            bounds = cvxqop.Bounds.unsafe_from_data(*data)
        return Call(
            SQUARED.state, output="loss", bounds=bounds, epsilon=2.0, delta=0.01, seed=2
        ).sampler(data)


def test_bounds_read_from_the_data():
    pair = PAIRS[0]
    D, D2 = replace(pair, before=((100.0,), 100.0)).data("replace_one")
    assert not lower_bound(FromData(), D, D2, trials=420, confidence=1 - RISK).holds
    sound = replace(ADDED, adjacency="replace_one").call("loss", 2)
    assert lower_bound(sound, D, D2, trials=420, confidence=1 - RISK).holds


@pytest.mark.parametrize("noise", [True, False])
def test_an_inexact_solve_needs_the_release_noise(monkeypatch, noise):
    """A solver may use its Δ against us: it rounds to an even or an odd lattice, by n."""
    accuracy = 1e-3
    sound = certified.stotos.solve_stotos

    def rounded(smooth, *args, **options):
        answer = sound(smooth, *args, **{**options, "accuracy": 0.4 * accuracy})
        parity = smooth.n % 2
        theta = (2 * np.round((answer.theta / (accuracy / 2) - parity) / 2) + parity) * accuracy / 2
        assert np.max(np.abs(theta - answer.theta)) <= accuracy / 2 + 1e-12
        return replace(answer, theta=theta, distance=accuracy)

    def odd(z):
        return np.round(z[:, 0] / (accuracy / 2)) % 2 == 1

    monkeypatch.setattr(certified.stotos, "solve_stotos", rounded)
    if not noise:
        monkeypatch.setattr(GaussianRelease, "apply", lambda self, theta, noise: theta)
    row = replace(ADDED, loss=LOGISTIC, exact=None, options={"accuracy": accuracy, "radius": 1.0})
    found = lower_bound(
        row.call("solution", 4), *row.pair.data("add_remove"), trials=250, event=odd
    )
    assert found.holds is noise
    if not noise:
        assert sorted(found.counts) == [0, 250]
        mechanism = row.call("solution").prepare(row.pair.data("add_remove")[0])[0].mechanism
        law = draws_follow_law(mechanism, draws=1000, confidence=1 - RISK, seed=1)
        assert law.distances["release"] > law.limit


def test_the_guard_left_out_on_data_that_do_not_interpolate(monkeypatch):
    patch_draw(monkeypatch, lambda draw: replace(draw, guard=np.zeros_like(draw.guard)))
    row = replace(ADDED, pair=PAIR["n = 1"], options={"solver": "STOTOS"})
    found = findings(row, 500)
    assert not found.law.holds
    assert not found.sampled.holds
    # The solution says so too: without a record it is exactly 0.
    D = row.pair.data("add_remove")
    assert not lower_bound(row.call("solution", 3), *D, trials=300, confidence=1 - RISK).holds
    # And the integral: the gradients differ, and nothing hides it.
    cases = [row.call("loss").prepare(data)[0] for data in D]
    bare = [replace(case.mechanism, guard_scale=0.0) for case in cases]
    assert loss_divergence(bare, [case.sums.quadratic_form() for case in cases], [2.0]) == [
        (1.0, 0.0)
    ]


def test_the_same_seed_on_both_data_sets(monkeypatch):
    def fresh(self):
        return SeededNoise(np.random.default_rng(7)), np.random.default_rng(8)

    monkeypatch.setattr(Randomness, "fresh", fresh)
    found = findings(ADDED, 400)
    assert not found.sampled.holds
    assert sorted(found.sampled.counts) == [0, found.sampled.trials]
    row = replace(ADDED, options={"solver": "STOTOS"})
    D = row.pair.data("add_remove")
    assert not lower_bound(row.call("solution"), *D, trials=300, confidence=1 - RISK).holds


def test_one_degree_of_freedom_less(monkeypatch):
    """1,000 releases cannot tell; the law of the draws and the exact divergence can."""
    sound = wishart.sample_factor
    monkeypatch.setattr(wishart, "sample_factor", lambda noise, d, m: sound(noise, d, m - 1))
    D = ADDED.pair.data("add_remove")
    call = ADDED.call("loss", 6)
    assert lower_bound(call, *D, trials=1000, confidence=1 - RISK).holds
    cases = [call.prepare(data)[0] for data in D]
    mechanism = cases[0].mechanism
    assert not draws_follow_law(mechanism, draws=10_000, confidence=1 - RISK, seed=1).holds
    fewer = replace(mechanism, degrees_of_freedom=mechanism.degrees_of_freedom - 1)
    forms = [case.sums.quadratic_form() for case in cases]
    ((value, error),) = loss_divergence([fewer, fewer], forms, [2.0])
    assert value - error > 1.02 * float(mechanism.profile(2.0))
    ((value, error),) = loss_divergence([mechanism, mechanism], forms, [2.0])
    assert value - error <= float(mechanism.profile(2.0))


def wide(mechanism, loss, pair="opposite"):
    """A row of the suite itself, the integral alone."""
    named = [row for row in wide_rows("add_remove") if row.loss == loss and row.pair.name == pair]
    (row,) = [row for row in named if row.mechanism == mechanism]
    return replace(row, law=False, sampled=None)


def multinomial_rows():
    two = MULTINOMIAL[0]
    return wide("wishart", two), wide("linear", pushed(two))


def test_the_same_audits_of_wide_records_pass():
    shares = [findings(row).exact for row in multinomial_rows()]
    assert all(share.holds for share in shares)
    assert shares[0].attained == pytest.approx(0.807, abs=0.01)
    for row, least in zip(declared_rows(), (0.99, 0.8, 0.85, 0.15), strict=True):
        found = findings(row)
        assert found.holds
        assert found.exact.attained > least


@pytest.mark.parametrize(
    ("constant", "row"), [("curvature", 0), ("slope_at_zero", 0), ("slope", 1)]
)
def test_half_a_constant_of_a_multinomial_loss(monkeypatch, constant, row):
    """κ; G0, which the guard is for; and G, which the linear mechanism rests on."""
    half = 0.5 * getattr(Multinomial(2), constant)
    monkeypatch.setattr(Multinomial, constant, half)
    found = findings(multinomial_rows()[row])
    assert found.exact.attained > 2.0
    assert not found.holds


def declared_rows():
    return (
        wide("gaussian", DECLARED_QUADRATIC),
        wide("wishart, m = 3.5", NO_GUARD, "n = 1"),
        wide("wishart", DECLARED_LINE),
        wide("linear", pushed(DECLARED_LINE)),
    )


@pytest.mark.parametrize(
    ("constant", "row"),
    [("smoothness", 0), ("smoothness", 1), ("anchor_gradient", 2), ("gradient", 3)],
)
def test_half_a_declared_constant(monkeypatch, constant, row):
    sound = case._sensitivity

    def halved(*args):
        found = sound(*args)
        return replace(found, **{constant: 0.5 * getattr(found, constant)})

    monkeypatch.setattr(case, "_sensitivity", halved)
    found = findings(declared_rows()[row])
    assert found.exact.attained > 1.2
    assert not found.holds
