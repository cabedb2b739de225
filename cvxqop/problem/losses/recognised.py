"""A private loss of recognised terms, each with rows of its own: constants and sums add up."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from cvxqop.problem.bounds import Bounds
from cvxqop.problem.losses.gradient_term import GradientTerm
from cvxqop.problem.losses.part import Part
from cvxqop.problem.losses.terms import Term
from cvxqop.problem.parts import Constants
from cvxqop.problem.private.persons import Persons
from cvxqop.problem.records.clipping import ClippedRows

__all__ = ["RecognisedLoss", "RecognisedSums"]

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class RecognisedLoss:
    """Σ_terms Σ_i ψ(Θ'a_i + c_i); see `cvxqop.problem.losses.contract.PrivateTerms`."""

    terms: tuple[Term, ...]
    persons: Persons | None = None

    clipped = True
    records_are_drawn = True
    expression = None

    @property
    def n(self) -> int:
        """Number of records."""
        return self.terms[0].rows.n

    @property
    def dimension(self) -> int:
        """D."""
        return self.terms[0].dimension

    @property
    def has_offset(self) -> bool:
        """Whether some term has."""
        return any(term.has_offset for term in self.terms)

    @property
    def quadratic(self) -> bool:
        """Whether every term is."""
        return all(term.quadratic for term in self.terms)

    @property
    def linear(self) -> bool:
        """Whether every term is."""
        return all(isinstance(term, GradientTerm) for term in self.terms)

    @property
    def vanishing(self) -> bool:
        """Whether that of every term can."""
        return all(term.vanishing for term in self.terms)

    @property
    def cuts_arguments(self) -> bool:
        """Whether those of every term are."""
        return all(term.cuts_arguments for term in self.terms)

    @property
    def one_residual(self) -> bool:
        """Whether there is one row; residuals of several have bounds of their own. The gradient of
        a square with a public linear term beside it does not shrink with its residual."""
        return len(self.terms) == 1 and (self.vanishing or not self.quadratic)

    @property
    def squares(self) -> float | None:
        """That of a single term."""
        return self.terms[0].squares if len(self.terms) == 1 else None

    @property
    def cuts_slopes(self) -> bool:
        """Only a single row with one number: the gradients of several rows have no common cut."""
        return len(self.terms) == 1 and self.terms[0].cuts_slopes

    @property
    def flat(self) -> Array | None:
        """That of a single term."""
        return self.terms[0].flat if len(self.terms) == 1 else None

    @cached_property
    def _apart(self) -> list[list[Term]]:
        """The terms, those together that share entries of θ."""
        clusters: list[tuple[set[int], list[Term]]] = []
        for term in self.terms:
            touched, own = term.support, [term]
            met = [cluster for cluster in clusters if cluster[0] & touched]
            for other, terms in met:
                touched, own = touched | other, terms + own
            clusters = [one for one in clusters if one not in met] + [(touched, own)]
        return [own for _, own in clusters]

    @property
    def prediction_curvature(self) -> float | None:
        """That of a single term."""
        alone = len(self.terms) == 1 and not self.linear
        return self.terms[0].prediction_curvature if alone else None

    @property
    def _most(self) -> int:
        """What the bounds of one row count for a person: k, and 1 for a mean."""
        return 1 if self.persons is None else self.persons.rows or 1

    def row_norm(self, bounds: Bounds) -> float:
        """The largest R of the terms."""
        return max(term.row_norm(bounds) for term in self.terms)

    def features_alone(self, bounds: Bounds) -> float | None:
        """r where row_norm is √(r² + ‖public part‖²) of a term, r a short number and it is none."""
        known = [term.row_parts for term in self.terms if not term.row_parts.overlap]
        for parts in known:
            public = parts.written_norm or parts.public_norm
            rest = bounds.row_norm**2 - public**2
            if parts.private and public > 0.0 and rest > 0.0:
                r = math.sqrt(rest)
                if _is_short(r) and not _is_short(bounds.row_norm):
                    return float(f"{r:.4g}")
        return None

    def offset(self, bounds: Bounds) -> float | None:
        """The largest B of the terms."""
        found = [B for B in (term.offset(bounds) for term in self.terms) if B is not None]
        return max(found, default=None)

    def smoothness(self, bounds: Bounds) -> float:
        """Σ L of the terms that share variables, the largest of these; of all rows of a person."""
        found = (sum(term.smoothness(bounds) for term in own) for own in self._apart)
        return self._most * max(found)

    def constants(
        self, bounds: Bounds, anchor: Array | None = None, offset: float | None = None
    ) -> Constants:
        """Sums of those of the terms, of all rows of a person."""
        one = Constants.apart(
            Constants.total(
                term.constants(bounds, anchor, self._cut(term, bounds, offset)) for term in own
            )
            for own in self._apart
        )
        if self.persons is None:
            return one
        return one.of_person(self.persons.rows, self.dimension)

    def gradient_bound(
        self,
        bounds: Bounds,
        anchor: Array,
        offset: float | None,
        distance: float,
        *,
        as_written: bool = False,
    ) -> float:
        """Σ G of the terms that share variables, and the length of these; of all rows of a
        person."""

        def bound(term: Term) -> float:
            cut = self._cut(term, bounds, offset)
            return term.gradient_bound(bounds, anchor, cut, distance, as_written=as_written)

        return self._most * math.hypot(*(sum(map(bound, own)) for own in self._apart))

    def _cut(self, term: Term, bounds: Bounds, offset: float | None) -> float | None:
        """The part of a cut Rη at a common minimiser that belongs to the row of a term, R_j η."""
        if offset is None or len(self.terms) == 1:
            return offset
        R = self.row_norm(bounds)
        return offset * (term.row_norm(bounds) / R) if R > 0.0 else offset

    def natural_radius(self, bounds: Bounds, anchor: Array, offset: float | None) -> float:
        """With an offset (a target of size B) B/R: one row of the largest norm explains the largest
        target. Without (classification) 2√D/R: the root mean square of a'θ over rows of norm R in
        every direction is then 2, odds of 7 to 1."""
        B = self.offset(bounds) if offset is None else offset
        moved = self.has_offset or bool(np.any(anchor))
        R = self.row_norm(bounds)
        return B / R if moved and B else 2.0 * math.sqrt(self.dimension) / R

    def sums(
        self,
        bounds: Bounds,
        anchor: Array,
        offset: float | None,
        nonfinite: str,
        clip: float | None,
        shared: bool,
    ) -> RecognisedSums:
        """Clipped rows of every term."""
        rows = tuple(
            term.clipped(bounds, anchor, nonfinite, self._cut(term, bounds, offset))
            for term in self.terms
        )
        return RecognisedSums(self.terms, rows, anchor, clip, shared)

    def promise(self, constants: Constants, bounds: Bounds, anchored: bool, cut: str | None) -> str:
        """What clipping enforces."""
        B = self.offset(bounds)
        said = [cut] if cut else dict.fromkeys(term.promise(B, anchored) for term in self.terms)
        said = [*said, *dict.fromkeys(text for term in self.terms for text in term.enforced)]
        return f"Every record is clipped to ‖a‖ ≤ {constants.row_norm:g}{''.join(said)}."


@dataclass(frozen=True, eq=False)
class RecognisedSums:
    """Sums over the clipped records of a `RecognisedLoss` at an anchor."""

    terms: tuple[Term, ...]
    rows: tuple[ClippedRows, ...]
    anchor: Array
    clip: float | None
    shared: bool

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """Clipped records with their losses; no record is read here."""
        pairs = zip(self.terms, self.rows, strict=True)
        return tuple(term.part(rows, self.clip) for term, rows in pairs)

    @property
    def linear(self) -> Array:
        """Gradient of what is linear in θ beside them, labels of logistic losses: read anew each
        time, because records may be changed in place between two runs."""
        pairs = zip(self.terms, self.rows, strict=True)
        return np.asarray(sum(term.linear(rows, self.clip) for term, rows in pairs))

    def check(self) -> None:
        """Every record is finite, or made so."""
        for rows in self.rows:
            rows.check_finite()

    def quadratic_form(self) -> tuple[Array, Array]:
        """Hessian and gradient at the anchor."""
        found = [part.quadratic_form(self.anchor) for part in self.parts]
        gradient = np.asarray(sum(g for _, g in found))
        if self.shared:
            return found[0][0], gradient
        blocks = [part.embedded(H) for part, (H, _) in zip(self.parts, found, strict=True)]
        return np.asarray(sum(blocks)) if len(blocks) > 1 else blocks[0], gradient

    def gradient(self) -> Array:
        """That gradient alone."""
        return np.asarray(sum(part.gradient(self.anchor) for part in self.parts))

    def value(self) -> float:
        """Σ ½κt² at the anchor."""
        return sum(part.value(self.anchor) for part in self.parts)

    def cut_gradients(self, theta: Array, cuts: Array, edges: Array) -> tuple[Array, Array]:
        """Those of a single term."""
        (part,) = self.parts
        return part.cut_gradients(theta, cuts, edges)

    def whole(self, S: Array) -> Array:
        """S in every output, where they share it."""
        return self.parts[0].embedded(S) if self.shared else S

    def columns(self, gradient: Array) -> Array:
        """(p, k) where outputs share S."""
        return gradient[self.parts[0].layout] if self.shared else gradient

    def stacked(self, columns: Array) -> Array:
        """(D,) from what `columns` makes."""
        return self.parts[0].spread(columns) if self.shared else columns

    def smooth(self, finite_sum: Any, function: Any) -> Callable[[Array, Array], Any]:
        """A sum over records."""
        parts, linear = self.parts, self.linear
        return lambda S, a: finite_sum(parts, S, a + linear, self.anchor)


def _is_short(number: float) -> bool:
    """Whether a number is one of four digits but for rounding."""
    return abs(number - float(f"{number:.4g}")) <= 1e-12 * number
