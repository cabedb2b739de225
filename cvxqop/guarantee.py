"""What a release promises, by which mechanism, and under which assumptions."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cvxqop.privacy.accounting.profile import epsilon_at
from cvxqop.privacy.mechanism import Mechanism

__all__ = ["Guarantee", "wrapped"]

Array = npt.NDArray[np.float64]


def wrapped(name: str, text: str) -> list[str]:
    """A named entry that fits a terminal of 88 columns."""
    return textwrap.wrap(text, 88, initial_indent=f"  {name:<12}", subsequent_indent=" " * 14)


@dataclass(frozen=True, eq=False)
class Guarantee:
    """What is promised, by which mechanism, and under which assumptions.

    Attributes
    ----------
    epsilon, delta : float
        The release is (ε, δ)-differentially private.
    adjacency : {"replace_one", "add_remove"}
        What neighbouring data sets are.
    mechanism : Mechanism
        The calibrated mechanism: all of its numbers are public.
    assumptions : tuple of str
        What the promise rests on, in sentences.
    caveats : tuple of str
        Reasons why this release is not private at all (a seed, bounds read from the data).
    certified : bool
        False where the accuracy of a solver that saw records is trusted and not certified.
    """

    epsilon: float
    delta: float
    adjacency: str
    mechanism: Mechanism
    assumptions: tuple[str, ...]
    caveats: tuple[str, ...] = ()
    certified: bool = True

    @property
    def private(self) -> bool:
        """False when a seed was given or the bounds were read from the data."""
        return not self.caveats

    def profile(self, epsilon: npt.ArrayLike) -> Array:
        """The privacy profile δ(ε) of the mechanism, rounded up."""
        return self.mechanism.profile(epsilon)

    def epsilon_at(self, delta: float) -> float:
        """The smallest ε at a δ, rounded up; infinity where it would be above 10⁶."""
        return epsilon_at(lambda epsilon: float(self.profile(epsilon)), delta)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and strings, for JSON."""
        return {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "adjacency": self.adjacency,
            "private": self.private,
            "mechanism": self.mechanism.describe(),
            "assumptions": list(self.assumptions),
            "caveats": list(self.caveats),
        }

    def lines(self) -> list[str]:
        """The guarantee as text."""
        m = self.mechanism
        promise = f"({self.epsilon:g}, {self.delta:g})-differential privacy, {self.adjacency}"
        rows = [("NOT PRIVATE", caveat) for caveat in self.caveats]
        rows += [("guarantee" if self.private else "would be", promise), *m.summary()]
        if m.release is not None:
            known = "certified" if self.certified else "trusted to be"
            text = f"{known} within {m.release.accuracy:g} of the exact solution, then N(0, σ_rel²)"
            rows.append(("release", f"{text}, σ_rel = {m.release.scale:.6g}"))
        rows += [("assumes" if i == 0 else "", text) for i, text in enumerate(self.assumptions)]
        return [line for name, text in rows for line in wrapped(name, text)]
