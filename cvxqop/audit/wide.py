"""Rows of the suite for records of several rows, and for losses known by declared constants.

With a small radius the guard has most of ε, and neighbours come close to what it allows; with few
degrees of freedom and no guard they come close to what the smallest eigenvalue allows. The linear
mechanism is attacked where a public term has moved θ to the largest gradients.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from cvxqop.audit.declared_losses import (
    DECLARED_LINE,
    DECLARED_PLANE,
    DECLARED_QUADRATIC,
    NO_GUARD,
    TWO_ROWS,
)
from cvxqop.audit.neighbours import MULTINOMIAL, Loss
from cvxqop.audit.row import ALONE, FAR, OPPOSITE, PAIR, Row, group
from cvxqop.privacy.wishart.options import Wishart

__all__ = ["pushed", "wide_rows"]

FEW = Wishart(degrees_of_freedom=3.5)


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
    rows = partial(group, adjacency=adjacency)
    yield from rows("wishart", two, clipped, radius=0.1)
    yield from rows("gaussian", two, (OPPOSITE, FAR), None, (OPPOSITE, FAR), radius=0.1)
    yield from rows("wishart", three, clipped, sampled=(FAR,), radius=0.01)
    for loss in MULTINOMIAL:
        yield from rows("linear", loss, (*added, ALONE), radius=1.0)
        yield from rows("linear", pushed(loss), (OPPOSITE, FAR), radius=1.0)
    yield from rows("wishart", line, kept, radius=0.01)
    yield from rows("wishart", plane, kept, sampled=(OPPOSITE,), radius=0.01)
    for loss in (line, plane):
        yield from rows("linear", loss, (*added, ALONE), radius=1.0)
        yield from rows("linear", pushed(loss), (OPPOSITE,), radius=1.0)
    yield from rows("wishart", DECLARED_QUADRATIC, (OPPOSITE,), "loss", radius=0.01)
    yield from rows("gaussian", DECLARED_QUADRATIC, kept, "loss", (OPPOSITE,), radius=0.01)
    yield from rows("gaussian", TWO_ROWS, kept, "loss", (OPPOSITE,), radius=0.01)
    yield from rows("wishart", TWO_ROWS, (FAR,), "loss", radius=0.01)
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
