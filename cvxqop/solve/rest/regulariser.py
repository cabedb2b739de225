"""The regulariser of a CVXPY problem as penalties with a proximal operator."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from cvxqop._cvxpy import exponent, kind
from cvxqop.solve.rest.penalties import (
    GroupNorm,
    MaxNorm,
    Norm,
    NuclearNorm,
    Placed,
    TotalVariation,
)
from cvxqop.solve.rest.terms import (
    Affine,
    NotSplittable,
    Stack,
    constant,
    quadratic_form,
    squared_norm,
    weighted_absolute,
)

__all__ = ["PenaltyReader"]

Array = npt.NDArray[np.float64]


class PenaltyReader:
    """Collects the summands of r."""

    def __init__(self, stack: Stack) -> None:
        self.stack = stack
        D = stack.dimension
        self.Q: Array | None = None
        self.q = np.zeros(D)
        self.weights = np.zeros(D)
        self.kinks = np.zeros(D)
        self.norms: list[Placed] = []
        self._terms: list[Any] = []

    def add(self, factor: float, term: Any) -> None:
        if term.is_affine():
            affine = self.stack.affine(term)
            self.q += factor * np.asarray(affine.A.sum(axis=0)).reshape(-1)
            return
        if factor == 0.0:
            return
        if factor < 0.0:
            raise NotSplittable(term, "enters with a negative factor")
        if (found := weighted_absolute(term)) is not None:
            self._absolute(factor, found[0], found[1], term)
        elif (square := squared_norm(term)) is not None:
            self._square(factor * square[0], square[1], None, term)
        elif kind(term) == "quad_form":
            P = constant(term.args[1])
            if P is None:
                raise NotSplittable(term)
            self._square(factor, term.args[0], P, term)
        else:
            self._norm(factor, term)

    def _square(self, factor: float, argument: Any, P: Array | None, term: Any) -> None:
        form = quadratic_form(self.stack, factor, argument, P)
        if form is None:
            raise NotSplittable(term, "is not convex")
        self.Q = form[0] if self.Q is None else self.Q + form[0]
        self.q += form[1]

    def _absolute(self, factor: float, weights: Array | None, argument: Any, term: Any) -> None:
        if not argument.is_affine():
            if kind(argument) == "pnorm" and weights is None:
                self._norm(factor, argument)
                return
            raise NotSplittable(term)
        affine = self.stack.affine(argument)
        w = factor * (np.ones(len(affine.b)) if weights is None else weights)
        if np.any(w < 0.0):
            raise NotSplittable(term, "has negative weights")
        counts = np.diff(affine.A.indptr)
        if np.all(counts <= 1):
            rows = np.flatnonzero((counts == 1) & (w > 0.0))
            at = affine.A.indptr[rows]
            j, slopes = affine.A.indices[at], affine.A.data[at]
            kinks = -affine.b[rows] / slopes + 0.0
            if len(np.unique(j)) < len(j):
                for k in range(len(j)):
                    self._kinks(j[k : k + 1], (w[rows] * np.abs(slopes))[k], kinks[k], term)
            else:
                self._kinks(j, w[rows] * np.abs(slopes), kinks, term)
            return
        chain = _chain(affine)
        if chain is None or len(np.unique(w)) > 1:
            raise NotSplittable(term)
        self._place(TotalVariation(float(w[0] * chain[1])), chain[0], 1.0, None, term)

    def _kinks(self, j: Any, weights: Any, kinks: Any, term: Any) -> None:
        """Absolute values on distinct coordinates j."""
        if np.any((self.weights[j] > 0.0) & (self.kinks[j] != kinks)):
            raise NotSplittable(term, "has a second kink on a coordinate that has one")
        self.weights[j] += weights
        self.kinks[j] = kinks

    def _norm(self, factor: float, term: Any) -> None:
        name = kind(term)
        if name == "sum" and kind(term.args[0]) == "pnorm" and term.axis is None:
            term_norm = term.args[0]
        else:
            term_norm = term
        if kind(term_norm) == "pnorm" and exponent(term_norm) == 2:
            self._group(factor, term_norm, term)
            return
        affine, index, scale = self._uniform(term)
        if name in ("norm_inf", "max") and term.axis is None:
            self._place(MaxNorm(factor), index, scale, affine.b, term)
        elif name == "normnuc":
            shape = term.args[0].shape
            self._place(NuclearNorm(factor, (shape[0], shape[1])), index, scale, affine.b, term)
        else:
            raise NotSplittable(term)

    def _group(self, factor: float, norm: Any, term: Any) -> None:
        argument = norm.args[0]
        affine, index, scale = self._uniform(norm)
        labels = np.arange(argument.size).reshape(argument.shape, order="F")
        if norm.axis is None:
            groups = [labels.reshape(-1)]
        else:
            groups = list(np.moveaxis(labels, norm.axis, -1).reshape(-1, argument.shape[norm.axis]))
        order = np.concatenate(groups)
        lengths = np.array([len(g) for g in groups], dtype=np.intp)
        starts = np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(np.intp)
        weights = np.full(len(groups), factor)
        group = GroupNorm(weights, starts, lengths)
        self._place(group, index[order], scale, affine.b[order], term)

    def _uniform(self, term: Any) -> tuple[Affine, npt.NDArray[np.intp], float]:
        """Coordinates and common factor of a norm's argument."""
        name, argument = kind(term), term.args[0]
        if name not in ("pnorm", "norm_inf", "normnuc", "max"):
            raise NotSplittable(term)
        if name == "max":
            if kind(argument) != "abs":
                raise NotSplittable(term)
            argument = argument.args[0]
        if not argument.is_affine():
            raise NotSplittable(term)
        affine = self.stack.affine(argument)
        diagonal = affine.diagonal()
        if diagonal is None or len(np.unique(diagonal[1])) != 1:
            raise NotSplittable(term, "is a norm of a linear map that is not a multiple of θ")
        return affine, diagonal[0], float(diagonal[1][0])

    def _place(
        self, norm: Norm, index: npt.NDArray[np.intp], scale: float, shift: Any, term: Any
    ) -> None:
        shift = np.zeros(len(index)) if shift is None else shift
        self.norms.append(Placed(norm, index, scale, shift))
        self._terms.append(term)

    def check_overlaps(self) -> None:
        """Norms on disjoint coordinates; on top of absolute values only group norms."""
        seen = np.zeros(self.stack.dimension, dtype=bool)
        for norm, term in zip(self.norms, self._terms, strict=True):
            if np.any(seen[norm.index]):
                raise NotSplittable(term, "overlaps another norm")
            seen[norm.index] = True
            weighted = self.weights[norm.index] > 0.0
            if not np.any(weighted):
                continue
            same = self.kinks[norm.index] == -norm.shift / norm.scale
            if not (isinstance(norm.norm, GroupNorm) and np.all(same[weighted])):
                raise NotSplittable(term, "overlaps an absolute value")
        self.norms = _merged(self.norms)


def _merged(norms: list[Placed]) -> list[Placed]:
    """Group norms of one scale become one object, so that a hundred groups cost one call."""
    groups = [n for n in norms if isinstance(n.norm, GroupNorm)]
    others = [n for n in norms if not isinstance(n.norm, GroupNorm)]
    if len(groups) < 2:
        return norms
    # |s| moves into the weight: w ‖s θ + b‖ = w|s| ‖θ + b/s‖.
    weights = np.concatenate([np.asarray(g.norm.weights) * abs(g.scale) for g in groups])  # type: ignore[attr-defined]
    lengths = np.concatenate([g.norm.lengths for g in groups])  # type: ignore[attr-defined]
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(np.intp)
    index = np.concatenate([g.index for g in groups])
    shift = np.concatenate([g.shift / g.scale for g in groups])
    return [*others, Placed(GroupNorm(weights, starts, lengths), index, 1.0, shift)]


def _chain(affine: Affine) -> tuple[npt.NDArray[np.intp], float] | None:
    """Coordinates p_0, p_1, … and factor s when entry k is ±s (θ[p_{k+1}] − θ[p_k])."""
    A = affine.A
    if np.any(affine.b != 0.0) or np.any(np.diff(A.indptr) != 2):
        return None
    columns, values = A.indices.reshape(-1, 2), A.data.reshape(-1, 2)
    if np.any(values.sum(axis=1) != 0.0) or len(np.unique(np.abs(values))) != 1:
        return None
    pairs = [set(pair) for pair in columns.tolist()]
    if len(pairs) == 1:
        return columns[0].astype(np.intp), float(abs(values[0, 0]))
    first = pairs[0] - pairs[1]
    path = list(first)
    for pair in pairs:
        step = pair - {path[-1]}
        if len(step) != 1 or path[-1] not in pair:
            return None
        path.append(step.pop())
    if len(set(path)) != len(path):
        return None
    return np.array(path, dtype=np.intp), float(abs(values[0, 0]))
