"""Persons with several rows: the rows of the suite hold, and a bound of one row is caught."""

import pytest

from cvxqop.audit.persons import person_rows
from cvxqop.audit.suite import Row, audit
from cvxqop.problem.losses.recognised import RecognisedLoss
from cvxqop.problem.parts import Constants
from cvxqop.problem.private.persons import Persons

ADJACENCIES = ("replace_one", "add_remove")
ROWS = [row for adjacency in ADJACENCIES for row in person_rows(adjacency)]


def name(row):
    return f"{row.mechanism}-{row.adjacency}-{row.loss.name}-{row.pair.name}"


def exactly(row):
    stated = Row(row.mechanism, row.perturbation, row.adjacency, row.loss, row.pair, row.exact,
                 None, law=False)  # fmt: skip
    return audit(stated, draws=0, risk=1e-8, seed=1)


@pytest.mark.parametrize("row", ROWS, ids=name)
def test_the_rows_of_the_suite_hold(row):
    found = exactly(row)
    assert not found.error
    assert found.exact.holds
    tight = row.mechanism == "gaussian" and row.exact == "loss" and row.adjacency == "add_remove"
    if tight and row.pair.name in ("opposite", "n = 1"):
        assert found.exact.attained == pytest.approx(1.0, abs=1e-3)


FAULTY = [
    row
    for row in ROWS
    if row.loss.rows == 2
    and row.pair.name == "opposite"
    and (row.exact == "loss" or row.adjacency == "add_remove")
]


@pytest.mark.parametrize("row", FAULTY, ids=name)
def test_k_forgotten_in_the_constants(monkeypatch, row):
    monkeypatch.setattr(Constants, "of_person", lambda self, rows, dimension: self)
    monkeypatch.setattr(RecognisedLoss, "_most", 1)
    found = exactly(row)
    assert not found.error
    assert not found.exact.holds
    assert found.exact.attained > 1.2


@pytest.mark.parametrize("row", [row for row in FAULTY if row.exact == "loss"], ids=name)
def test_a_row_too_many_is_used(monkeypatch, row):
    sound = Persons.of.__func__

    def one_more(cls, ids, rows):
        found = sound(cls, ids, rows)
        found.shares.array[:] = 1.0
        return found

    monkeypatch.setattr(Persons, "of", classmethod(one_more))
    assert not exactly(row).exact.holds
