"""The fuzz of the reader sees faults that are planted in the reader.

Each fault is found by `test_fuzz_reader.examine` within the usual number of examples. Where that
takes long, only those recipes of the fuzz are drawn that hold the part of the reader in question,
and all of them at full size (``CVXQOP_FULL=1``).
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from cvxqop.problem.losses.scalar import huber, squared
from cvxqop.problem.reading import affine, analysis, factors, matrix, sharing, terms
from cvxqop.problem.reading.affine import AffineReader
from cvxqop.problem.reading.matrix import MatrixReader
from cvxqop.problem.reading.weights import Weight
from cvxqop.problem.records.rows import AffineRows

from .recipes import LINEAR, LOSSES, SPELLINGS, TERMS, arguments
from .test_fuzz_reader import examine, problems

EXAMPLES = 400  # as many as the fuzz has


def _absolute(original: Any) -> Any:
    return lambda pieces, factor: original(pieces, abs(factor))


def _reversed(original: Any) -> Any:
    def indexed(self: Any, node: Any, axis: int) -> Any:
        found = original(self, node, axis)
        return [replace(factor, right=sp.csr_array(factor.right[::-1])) for factor in found]

    return indexed


def _negated(original: Any) -> Any:
    def read_labels(*arguments: Any) -> Any:
        labels = original(*arguments)
        pieces = tuple(replace(piece, g=-piece.g) for piece in labels.pieces)
        return replace(labels, pieces=pieces, low=-labels.high, high=-labels.low)

    return read_labels


def _rolled(original: Any) -> Any:
    return lambda array, axis: np.roll(original(array, axis), 1, axis=0)


FAULTS: dict[str, tuple[Any, str, Any]] = {
    "a minus is lost": (affine, "times", _absolute),
    "the target is dropped": (sharing, "is_offset", lambda _: lambda piece: False),
    "the intercept is dropped": (AffineReader, "_for_all", lambda _: lambda self, node: [{}]),
    "a factor is lost": (Weight, "times", lambda _: lambda self, scalar: self),
    "a divisor is lost": (Weight, "over", lambda _: lambda self, scalar: self),
    "weights are ignored": (Weight, "weighted", lambda _: lambda self, weights: self),
    "the threshold of huber is half": (terms, "huber", lambda _: lambda M: huber(M / 2)),
    "a squared hinge is a square": (terms, "squared_hinge", lambda _: squared),
    "columns are chosen in reverse": (MatrixReader, "_index", _reversed),
    "labels have the other sign": (sharing, "read_labels", _negated),
    "records change places": (matrix, "_oriented", _rolled),
    "a public term is lost": (analysis, "total", lambda f: lambda parts: f(parts[:-1])),
    "outputs change places": (
        sharing, "Outputs", lambda f: lambda layout, labelled: f(layout[:, ::-1], labelled)
    ),
    "the public part has no norm": (factors, "_largest_norm", lambda _: lambda *arguments: 0.0),
    "an offset is not seen": (AffineRows, "has_offset", lambda _: False),
}  # fmt: skip


@st.composite
def one_term(draw: Any, loss: Any, base: Any = None) -> Any:
    """One of the fuzz's losses on an argument, with the row ``base`` where it is given."""
    argument, spelling = draw(arguments(base)), draw(st.sampled_from(SPELLINGS))
    return lambda o: loss(o, spelling(argument(o)))


PARTS = {
    "weights are ignored": one_term(LOSSES[17]),
    "the threshold of huber is half": one_term(LOSSES[8]),
    "a squared hinge is a square": one_term(LOSSES[13]),
    "columns are chosen in reverse": one_term(LOSSES[0], LINEAR[15]),
    "labels have the other sign": one_term(LOSSES[20]),
    "outputs change places": st.just(TERMS[3]),
    "the public part has no norm": one_term(LOSSES[0], LINEAR[4]),
    "the intercept is dropped": one_term(LOSSES[0], LINEAR[4]),
}


def search(given_problems: Any, examples: int = EXAMPLES) -> None:
    """The fuzz, to the first failure."""

    @seed(0)
    @settings(
        max_examples=examples,
        phases=[Phase.generate],
        database=None,
        deadline=None,
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )
    @given(**given_problems)
    def run(recipe: Any, constraints: Any, world: Any, adjacency: str) -> None:
        examine(recipe, constraints, world, adjacency)

    run()


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_found(fault, monkeypatch):
    room, name, plant = FAULTS[fault]
    monkeypatch.setattr(room, name, plant(getattr(room, name)))
    part = {} if "CVXQOP_FULL" in os.environ else PARTS
    with pytest.raises(AssertionError):
        search(problems | {"recipe": part.get(fault, problems["recipe"])})


@pytest.mark.parametrize("part", PARTS)
def test_nothing_is_found_without_a_fault(part):
    search(problems | {"recipe": PARTS[part]}, examples=8)
