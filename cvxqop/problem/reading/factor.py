"""One summand of an array with one row a record: a leaf, with what it is multiplied with."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from cvxqop.problem.reading.public import AffineMap
from cvxqop.problem.records.pieces import Column, Leaf, Piece, Pieces

__all__ = ["Factor"]


@dataclass(frozen=True, eq=False)
class Factor:
    """coefficient · columns · leaf · right, an (n, width) array; no leaf: a column of ones."""

    leaf: Leaf | None
    coefficient: float = 1.0
    columns: tuple[Column, ...] = ()
    right: Any = None

    def times(self, right: Any) -> Factor:
        """The factor with a public array multiplied from the right."""
        right = sp.csr_array(right)
        return replace(self, right=right if self.right is None else self.right @ right)

    def apply(self, found: AffineMap) -> AffineMap:
        """right · (G θ + g)."""
        if self.right is None:
            return found
        return AffineMap(sp.csr_array(self.right @ found.G), np.asarray(self.right @ found.g))

    def pieces(self, factor: AffineMap) -> Pieces:
        """The product with (G θ + g) in normal form: one column is a `Column`."""
        found = self.apply(factor)
        G, g = found.G * self.coefficient, found.g * self.coefficient
        leaf = self.leaf
        if leaf is None:
            piece = Piece(self.columns, None, G, g)
        elif leaf.width == 1:
            piece = Piece((*self.columns, Column(leaf, np.ones(1))), None, G, g)
        else:
            piece = Piece(self.columns, leaf, G, g)
        return {piece.signature: piece}
