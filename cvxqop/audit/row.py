"""One line of the suite: a call, a pair of neighbours, and how they are audited."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from cvxqop.audit.call import Call
from cvxqop.audit.neighbours import PAIRS, Loss, Pair
from cvxqop.privacy.gaussian.options import Gaussian

__all__ = [
    "ADAPTIVE",
    "ALONE",
    "DELTA",
    "EPSILON",
    "FAR",
    "OPPOSITE",
    "PAIR",
    "PLANE",
    "Row",
    "group",
]

EPSILON, DELTA = 2.0, 0.01
"""What every row claims."""
PAIR = {pair.name: pair for pair in PAIRS}
ADAPTIVE = Gaussian(stages="adaptive")
OPPOSITE, FAR, ALONE, PLANE = "opposite", "far beyond the bounds", "n = 1", "orthogonal"


@dataclass(frozen=True)
class Row:
    """One line of the table: a call and a pair of neighbours, and how they are audited.

    Attributes
    ----------
    mechanism : str
        Its name in the table.
    perturbation : str or mechanism
        As in :func:`cvxqop.privatize`.
    adjacency : {"replace_one", "add_remove"}
    loss : Loss
    pair : Pair
    exact : {"loss", "solution"} or None
        The output whose divergence is integrated.
    sampled : {"loss", "solution"} or None
        The output that is released many times.
    options : dict
        Further options of the call.
    law : bool
        Whether the law of the draws is looked at: once is enough for rows of one mechanism.
    thinning : int
        Releases are fewer by this factor, where each is a solve on the records.
    """

    mechanism: str
    perturbation: Any
    adjacency: str
    loss: Loss
    pair: Pair
    exact: str | None
    sampled: str | None
    options: dict[str, Any] = field(default_factory=dict)
    law: bool = True
    thinning: int = 1

    @property
    def tests(self) -> int:
        """Tests of this row that can fail by chance."""
        return self.law + (self.sampled is not None)

    def call(self, output: str, seed: int | None = None) -> Call:
        """The call that is audited."""
        return Call(
            partial(self.loss.state, intercept=self.pair.intercept),
            output=output,
            **{
                **self.loss.public,
                "epsilon": EPSILON,
                "delta": DELTA,
                "adjacency": self.adjacency,
                "perturbation": self.perturbation,
                "seed": seed,
                **self.options,
            },
        )


def group(
    mechanism: str,
    loss: Loss,
    names: Sequence[str],
    exact: str | None = "solution",
    sampled: Sequence[str] = (),
    *,
    adjacency: str,
    perturbation: Any = None,
    thinning: int = 20,
    **options: Any,
) -> Iterator[Row]:
    """The rows of one mechanism for pairs of these names; the law is looked at in the first.

    Parameters
    ----------
    mechanism, loss, adjacency, thinning, options
        As in `Row`; ``perturbation`` is the mechanism of that name unless it is given.
    names, sampled : sequence of str
        Names of the pairs, and of those that are sampled.
    exact : {"loss", "solution"} or None
        The output whose divergence is integrated; without it solutions are sampled.
    """
    for place, name in enumerate(names):
        output = (exact or "solution") if name in sampled else None
        yield Row(
            mechanism, perturbation or mechanism, adjacency, loss, PAIR[name], exact, output,
            options, law=place == 0, thinning=thinning,
        )  # fmt: skip
