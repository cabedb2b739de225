"""The suite: every mechanism, adjacency and loss on worst-case neighbours.

A row is audited in up to three ways. Law: the draws follow the law that the mechanism states.
Exact: the divergence of that law's outputs, by integration. Sampled: a lower bound on ε from
releases of the library itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from typing import Any

import numpy as np

from cvxqop.audit.exact import Divergence, divergence
from cvxqop.audit.law import Law, draws_follow_law
from cvxqop.audit.linear.rows import linear_rows
from cvxqop.audit.neighbours import INTERPOLATING, LOSSES, PAIRS, TWO_OUTPUTS
from cvxqop.audit.persons import person_rows
from cvxqop.audit.public_data import public_rows, weight_rows
from cvxqop.audit.row import ADAPTIVE, Row
from cvxqop.audit.sampling import LowerBound, lower_bound
from cvxqop.audit.scalar_losses import scalar_rows
from cvxqop.audit.wide import wide_rows
from cvxqop.privacy.gaussian.options import Gaussian
from cvxqop.privacy.linear.options import Linear
from cvxqop.privacy.wishart.options import Wishart

__all__ = ["FALSE_ALARM", "Finding", "Row", "audit", "rows", "run"]

FALSE_ALARM = 5e-7
"""Probability, at most, that a suite of sound mechanisms fails: the sum over all of its tests."""

SQUARED = {"wishart": "wishart", "gaussian": "gaussian", "gaussian, 2 stages": Gaussian(stages=2)}
FLOOR = Wishart(curvature="floor")
CLIPPED = Linear(clip=1.0)
PAPER = Wishart(calibration="paper")
OTHERS = {"wishart": "wishart", "gaussian": "gaussian", "linear": "linear"}
SAMPLED = ("opposite", "far beyond the bounds", "n < d", "intercept")
"""Pairs that are sampled; the law and the exact divergence are looked at for all."""


@dataclass(frozen=True)
class Finding:
    """What the audits of a row say; ``error`` is the type of an exception that ended them."""

    row: Row
    law: Law | None = None
    exact: Divergence | None = None
    sampled: LowerBound | None = None
    error: str = ""

    @property
    def holds(self) -> bool:
        """Whether nothing speaks against the claim."""
        parts = (self.law, self.exact, self.sampled)
        return not self.error and all(part is None or part.holds for part in parts)


def rows(*, quick: bool = False) -> list[Row]:
    """The rows of the suite; the quick suite has a pair of neighbours for each mechanism."""
    table = list(_table())
    if not quick:
        return table
    kept = {"wishart": "opposite", "gaussian": "intercept", "linear": "far beyond the bounds"}
    return [row for row in table if row.pair.name == kept.get(row.mechanism, "aligned")]


def _table() -> Iterator[Row]:
    squared, *others = LOSSES
    for adjacency in ("replace_one", "add_remove"):
        for pair in PAIRS:
            for name, mechanism in SQUARED.items():
                closed = name == "gaussian" or (name == "wishart" and pair.dimension <= 2)
                exact = "loss" if closed else None
                sampled = "loss" if pair.name in SAMPLED else None
                yield Row(name, mechanism, adjacency, squared, pair, exact, sampled)
            for loss in others:
                for name, mechanism in OTHERS.items():
                    most = 1 if name == "gaussian" else 2
                    exact = "solution" if pair.dimension <= most else None
                    sampled = "solution" if pair.name in SAMPLED else None
                    yield Row(name, mechanism, adjacency, loss, pair, exact, sampled, thinning=4)
            sampled = "loss" if pair.name in SAMPLED else None
            yield Row("gaussian, adaptive", ADAPTIVE, adjacency, squared, pair, "loss", sampled,
                      thinning=10)  # fmt: skip
            yield Row("wishart, floor", FLOOR, adjacency, squared, pair, None, sampled)
            if pair.dimension == 1:
                yield Row("wishart", "wishart", adjacency, TWO_OUTPUTS, pair, "loss", sampled)
                yield Row("gaussian", "gaussian", adjacency, TWO_OUTPUTS, pair, "loss", sampled)
                yield Row(
                    "gaussian, adaptive", ADAPTIVE, adjacency, TWO_OUTPUTS, pair, "loss", None
                )
            exact = "solution" if pair.dimension <= 2 else None
            yield Row("linear, clipped", CLIPPED, adjacency, squared, pair, exact, None)
        aligned, *_ = PAIRS
        yield Row("wishart", "wishart", adjacency, INTERPOLATING, aligned, "solution", "loss")
        yield Row("wishart, paper", PAPER, adjacency, INTERPOLATING, aligned, "solution", None)
        yield from wide_rows(adjacency)
        yield from linear_rows(adjacency)
        yield from public_rows(adjacency)
        yield from scalar_rows(adjacency)
        yield from person_rows(adjacency)
        yield from weight_rows(adjacency)


def audit(row: Row, *, draws: int, risk: float, seed: int | None = None) -> Finding:
    """Audit one row; ``risk`` is the false-alarm rate of each of its tests.

    A release on the records costs some milliseconds, one from the quadratic form less than one:
    the first are drawn less often, by the factor of the row.
    """
    found: dict[str, Any] = {}
    first, second = row.pair.data(row.adjacency)
    try:
        call = row.call(row.exact or row.sampled or "solution", seed)
        mechanism = call.prepare(first)[0].mechanism
        if row.law:
            confidence = 1.0 - risk
            found["law"] = draws_follow_law(
                mechanism, draws=draws, confidence=confidence, seed=seed
            )
        if row.exact is not None:
            found["exact"] = divergence(call, first, second, objective=row.loss.objective)
        if row.sampled is not None:
            found["sampled"] = lower_bound(
                call if row.sampled == call.output else row.call(row.sampled, seed),
                first,
                second,
                trials=max(draws // row.thinning, 10),
                confidence=1.0 - risk,
            )
    except Exception as error:
        return Finding(row, **found, error=type(error).__name__)
    return Finding(row, **found)


def run(
    table: Sequence[Row], *, draws: int = 4000, processes: int = 1, seed: int | None = None
) -> list[Finding]:
    """Audit the rows, with a false-alarm rate of at most `FALSE_ALARM` for all of them together.

    Parameters
    ----------
    table : sequence of Row
    draws : int
        Releases a data set for each row; a quarter of it or less where a release is a solve.
    processes : int
    seed : int, optional
        Makes the audit repeatable. None audits the cryptographic generator.
    """
    risk = FALSE_ALARM / sum(row.tests for row in table)
    seeds: list[int | None] = [None] * len(table)
    if seed is not None:
        seeds = [int(s) for s in np.random.SeedSequence(seed).generate_state(len(table))]
    one = partial(audit, draws=draws, risk=risk)
    if processes == 1:
        return [one(row, seed=s) for row, s in zip(table, seeds, strict=True)]
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        tasks = [pool.submit(one, row, seed=s) for row, s in zip(table, seeds, strict=True)]
        return [task.result() for task in tasks]
