"""Linear losses, completed squares and several outputs: the claims hold, and faults are caught."""

from dataclasses import replace

import pytest

from cvxqop import case
from cvxqop.audit.linear.rows import COMPLETED, HUBER_OUTPUTS, LINEAR, TILTED, linear_rows
from cvxqop.audit.suite import audit
from cvxqop.privacy.gaussian.gradient import CalibratedGradient
from cvxqop.problem.losses.gradient_term import GradientTerm

RISK = 1e-8


def row(mechanism, loss, pair, adjacency="add_remove"):
    """A row of the suite itself, the integral alone."""
    (found,) = [
        one
        for one in linear_rows(adjacency)
        if (one.mechanism, one.loss, one.pair.name) == (mechanism, loss, pair)
    ]
    return replace(found, law=False, sampled=None)


def findings(own, draws=500):
    return audit(own, draws=draws, risk=RISK, seed=11)


ROWS = {
    "linear": (row("gaussian", LINEAR, "opposite"), 1.0),
    "linear, exchanged": (row("gaussian", LINEAR, "opposite", "replace_one"), 1.0),
    "completed": (row("gaussian", COMPLETED, "far beyond the bounds"), 1.0),
    "completed, wishart": (row("wishart", COMPLETED, "opposite"), 1.0),
    "tilted": (row("gaussian", TILTED, "n = 1"), 1.0),
    "outputs": (row("wishart", HUBER_OUTPUTS, "opposite"), 0.4),
    "outputs, linear": (row("linear", HUBER_OUTPUTS, "far beyond the bounds"), 0.09),
}


@pytest.mark.parametrize("name", ROWS)
def test_sound(name):
    own, share = ROWS[name]
    found = findings(own)
    assert found.holds
    assert found.exact.attained == pytest.approx(share, abs=0.02)


@pytest.mark.parametrize(
    ("name", "constant", "part"),
    [
        ("linear", "anchor_gradient", 0.5),
        ("completed", "anchor_gradient", 0.5),
        ("completed", "smoothness", 0.5),
        ("tilted", "anchor_gradient", 0.75),
        ("outputs", "anchor_gradient", 0.5),
        ("outputs, linear", "gradient", 0.25),
    ],
)
def test_a_part_of_a_constant(monkeypatch, name, constant, part):
    sound = case._sensitivity

    def less(*args):
        found = sound(*args)
        changed = replace(found, **{constant: part * getattr(found, constant)})
        return replace(changed, frobenius=None) if constant == "smoothness" else changed

    monkeypatch.setattr(case, "_sensitivity", less)
    found = findings(ROWS[name][0])
    assert not found.holds
    assert found.exact.attained > 1.2


def test_a_bound_on_the_features_alone(monkeypatch):
    """Of y x, y forgotten: B = 1 here, so that y is made larger."""
    wide = replace(LINEAR, bounds=replace(LINEAR.bounds, offset=4.0))
    own = replace(ROWS["linear"][0], loss=wide)
    own = replace(own, pair=replace(own.pair, after=((1.0,), -4.0)))
    assert findings(own).holds
    sound = GradientTerm.constants

    def constants(self, *args):
        found = sound(self, *args)
        return replace(found, anchor_gradient=found.anchor_gradient / 4.0)

    monkeypatch.setattr(GradientTerm, "constants", constants)
    assert not findings(own).holds


def test_noise_that_is_halved(monkeypatch):
    sound = CalibratedGradient.draw

    def half(self, noise):
        drawn = sound(self, noise)
        return replace(drawn, guards=tuple(0.5 * guard for guard in drawn.guards))

    (own,) = [
        one
        for one in linear_rows("add_remove")
        if one.loss is LINEAR and one.pair.name == "opposite"
    ]
    assert findings(own, 4000).holds
    monkeypatch.setattr(CalibratedGradient, "draw", half)
    found = findings(own, 4000)
    assert not found.law.holds
