"""Private weights and weights of classes: the rows of the suite hold, and what is forgotten or not
cut is caught."""

from dataclasses import replace

import numpy as np
import pytest

from cvxqop.audit.public_data import CLASSES, weight_rows
from cvxqop.audit.public_data import PRIVATELY_WEIGHTED as WEIGHTED
from cvxqop.audit.suite import audit
from cvxqop.problem.records.beside import Beside, ClassWeights, Weights

ROWS = [row for adjacency in ("replace_one", "add_remove") for row in weight_rows(adjacency)]
FAR = "far beyond the bounds"


def name(row):
    return f"{row.mechanism}-{row.adjacency}-{row.loss.name}-{row.pair.name}"


def exactly(row):
    return audit(replace(row, sampled=None, law=False), draws=0, risk=1e-8, seed=1)


@pytest.mark.parametrize("row", ROWS, ids=name)
def test_the_rows_of_the_suite_hold(row):
    found = exactly(row)
    assert not found.error
    assert found.exact.holds
    tight = row.mechanism == "gaussian" and row.exact == "loss" and row.adjacency == "add_remove"
    if tight and row.pair.name in ("opposite", "n = 1"):
        assert found.exact.attained == pytest.approx(1.0, abs=1e-3)


QUICK = [row for row in ROWS if row.mechanism != "wishart"]


def caught(rows):
    for row in rows:
        found = exactly(row)
        assert not found.error, name(row)
        assert not found.exact.holds, name(row)


def test_the_weight_forgotten_in_the_constants(monkeypatch):
    monkeypatch.setattr(Beside, "largest", lambda self, count: [1.0] * count)
    caught(row for row in QUICK if row.loss in WEIGHTED and row.adjacency == "add_remove")


def test_the_weights_of_classes_forgotten_in_the_constants(monkeypatch):
    monkeypatch.setattr(ClassWeights, "high", 1.0)
    monkeypatch.setattr(Beside, "slope", 0.0)
    caught(row for row in QUICK if row.loss is CLASSES and row.adjacency == "add_remove")


def test_a_weight_that_is_not_cut(monkeypatch):
    monkeypatch.setattr(Weights, "cut", lambda self, start, stop: self.take(start, stop))
    caught(
        row
        for row in QUICK
        if row.loss is WEIGHTED[0] and row.pair.name == FAR and row.adjacency == "add_remove"
    )


def test_the_weight_of_the_class_times_a_label_that_is_not_cut(monkeypatch):
    monkeypatch.setattr(ClassWeights, "of", lambda self, labels: np.abs(labels) * self.high)
    caught(
        row
        for row in QUICK
        if row.loss is CLASSES and row.pair.name == FAR and row.adjacency == "add_remove"
    )
