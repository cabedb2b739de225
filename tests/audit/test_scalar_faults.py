"""Half of a constant of a smoothed loss, or of one on a bounded range, is caught by the audits."""

from dataclasses import replace

import pytest

from cvxqop.audit.scalar_losses import POISSON, POISSON_RANGE, SMOOTHED, scalar_rows
from cvxqop.audit.suite import audit
from cvxqop.problem.losses import open_loss
from cvxqop.problem.losses.margin_term import MarginTerm


def row(mechanism, loss, pair="opposite"):
    """A row of the suite itself, the integral alone."""
    (found,) = [
        one
        for one in scalar_rows("add_remove")
        if (one.mechanism, one.loss, one.pair.name) == (mechanism, loss, pair)
    ]
    return replace(found, law=False, sampled=None)


def exact(found):
    return audit(found, draws=100, risk=1e-8, seed=11).exact


ROWS = [
    row("wishart", SMOOTHED),
    row("wishart", POISSON_RANGE),
    row("linear", SMOOTHED, "n = 1"),
    row("linear", POISSON),
]


@pytest.mark.parametrize(("number", "least"), [(0, 0.7), (1, 0.75), (2, 0.1), (3, 0.05)])
def test_the_same_audits_pass(number, least):
    found = exact(ROWS[number])
    assert found.holds
    assert found.attained > least


@pytest.mark.parametrize("number", [0, 1])
def test_half_the_curvature(monkeypatch, number):
    sound = open_loss._settled

    def halved(*args):
        loss, gap, text = sound(*args)
        return replace(loss, curvature=0.5 * loss.curvature), gap, text

    monkeypatch.setattr(open_loss, "_settled", halved)
    found = exact(ROWS[number])
    assert found.attained > 1.2
    assert not found.holds


@pytest.mark.parametrize("number", [0, 1, 2, 3])
def test_half_the_slope(monkeypatch, number):
    sound = MarginTerm._slope
    monkeypatch.setattr(MarginTerm, "_slope", lambda *args: 0.5 * sound(*args))
    found = exact(ROWS[number])
    assert found.attained > 1.2
    assert not found.holds
