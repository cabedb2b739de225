"""Rows of the suite for records of several rows, and for losses known by declared constants.

With a small radius the guard has most of ε, and neighbours come close to what it allows; with few
degrees of freedom and no guard they come close to what the smallest eigenvalue allows. The linear
mechanism is attacked where a public term has moved θ to the largest gradients.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from cvxqop.audit.declared_losses import (
    DECLARED_LINE,
    DECLARED_PLANE,
    DECLARED_QUADRATIC,
    NO_GUARD,
    TWO_ROWS,
)
from cvxqop.audit.neighbours import MULTINOMIAL, PAIRS, Loss
from cvxqop.audit.row import Row
from cvxqop.privacy.wishart.options import Wishart

__all__ = ["pushed", "wide_rows"]

PAIR = {pair.name: pair for pair in PAIRS}
FEW = Wishart(degrees_of_freedom=3.5)
OPPOSITE, FAR, ALONE = "opposite", "far beyond the bounds", "n = 1"
THINNING = 20


def wide_rows(adjacency: str) -> Iterator[Row]:
    """The rows for an adjacency.

    Aligned records that are exchanged differ by little, and are left out. Records far beyond the
    bounds of a declared loss break its promise.
    """
    two, three = MULTINOMIAL
    line, plane = DECLARED_LINE, DECLARED_PLANE
    added = ("aligned",) if adjacency == "add_remove" else ()
    kept = OPPOSITE, *added, ALONE
    clipped = *kept, FAR

    def group(
        mechanism: str,
        loss: Loss,
        radius: float,
        names: Sequence[str],
        *,
        exact: str | None = "solution",
        sampled: Sequence[str] = (),
    ) -> Iterator[Row]:
        for place, name in enumerate(names):
            yield Row(
                mechanism,
                mechanism,
                adjacency,
                loss,
                PAIR[name],
                exact,
                (exact or "solution") if name in sampled else None,
                {"radius": radius},
                law=place == 0,
                thinning=THINNING,
            )

    yield from group("wishart", two, 0.1, clipped)
    yield from group("gaussian", two, 0.1, (OPPOSITE, FAR), exact=None, sampled=(OPPOSITE, FAR))
    yield from group("wishart", three, 0.01, clipped, sampled=(FAR,))
    for loss in MULTINOMIAL:
        yield from group("linear", loss, 1.0, (*added, ALONE))
        yield from group("linear", pushed(loss), 1.0, (OPPOSITE, FAR))
    yield from group("wishart", line, 0.01, kept)
    yield from group("wishart", plane, 0.01, kept, sampled=(OPPOSITE,))
    for loss in (line, plane):
        yield from group("linear", loss, 1.0, (*added, ALONE))
        yield from group("linear", pushed(loss), 1.0, (OPPOSITE,))
    yield from group("wishart", DECLARED_QUADRATIC, 0.01, (OPPOSITE,), exact="loss")
    yield from group("gaussian", DECLARED_QUADRATIC, 0.01, kept, exact="loss", sampled=(OPPOSITE,))
    yield from group("gaussian", TWO_ROWS, 0.01, kept, exact="loss", sampled=(OPPOSITE,))
    yield from group("wishart", TWO_ROWS, 0.01, (FAR,), exact="loss")
    pair = PAIR[ALONE if added else "zero record"]
    yield Row("wishart, m = 3.5", FEW, adjacency, NO_GUARD, pair, "loss", None)


def pushed(loss: Loss) -> Loss:
    """The loss with a public linear term that moves θ to where gradients are large.

    Examples
    --------
    >>> pushed(MULTINOMIAL[0]).name
    'multinomial, 2 classes, pushed'
    """
    return replace(loss, name=f"{loss.name}, pushed", push=20.0)
