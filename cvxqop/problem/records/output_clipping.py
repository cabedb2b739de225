"""Clipping of records with several outputs: per record, always on, silent.

The row a is clipped as for one output. Offsets: Θ0'a + c, the vector of arguments at the anchor, is
scaled by B/‖Θ0'a + c‖ where it is longer than B, by changing c. Labels: y becomes the nearest
probability vector, which y itself is when it is one-hot.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from cvxqop.problem.records.clipping import ClippedRows

__all__ = ["ClippedLabels", "ClippedOutputs", "nearest_probabilities"]

Array = npt.NDArray[np.float64]
_EPS = float(np.finfo(np.float64).eps)
_ROUNDING = 8.0 * _EPS


class ClippedOutputs(ClippedRows):
    """`ClippedRows` with the anchor Θ0 (p, k) and a bound B on the norm of Θ0'a + c."""

    def _cut(self, A: Any, C: Array) -> Array:
        B = self._offset
        if B is None or not C.size:
            return C
        # Squares of what is cut here do not overflow; such a record is far beyond B anyway.
        argument = C if self._anchor is None else np.asarray(A @ self._anchor) + C
        tame = np.clip(argument, -1e150, 1e150)
        squares = np.einsum("ij,ij->i", tame, tame)
        slack = (self.terms + 8) * _EPS
        over = squares > (B * (1.0 - slack)) ** 2
        if not over.any():
            return C
        factor = B * (1.0 - 2.0 * slack) / np.sqrt(np.where(over, squares, 1.0))
        scaled = tame * factor[:, None]
        if self._anchor is not None:
            scaled -= np.asarray(A @ self._anchor)
        return np.where(over[:, None], scaled, C)


class ClippedLabels(ClippedRows):
    """`ClippedRows` with labels, which become probability vectors, in the place of offsets."""

    def _scaled(self, C: Array, factor: Array) -> Array:
        """Labels do not change with the length of the row."""
        return C

    def _cut(self, A: Any, C: Array) -> Array:
        return nearest_probabilities(C)


def nearest_probabilities(labels: Array) -> Array:
    """The probability vector nearest to each row of finite numbers, shape (n, k).

    Examples
    --------
    >>> nearest_probabilities(np.array([[0.0, 1.0], [2.0, 0.0], [0.0, 0.0]])).tolist()
    [[0.0, 1.0], [1.0, 0.0], [0.5, 0.5]]
    """
    inside = (labels >= 0.0).all(axis=1)
    with np.errstate(over="ignore"):
        inside &= np.abs(labels.sum(axis=1) - 1.0) <= _ROUNDING
    if inside.all():
        return labels
    # Beyond ±10⁶ only the order counts, up to rounding.
    y = np.clip(labels[~inside], -1e6, 1e6)
    ordered = -np.sort(-y, axis=1)
    excess = np.cumsum(ordered, axis=1) - 1.0
    positive = (ordered * np.arange(1, y.shape[1] + 1) > excess).sum(axis=1)
    level = np.take_along_axis(excess, positive[:, None] - 1, axis=1) / positive[:, None]
    nearest = np.maximum(y - level, 0.0)
    result = labels.copy()
    result[~inside] = nearest / nearest.sum(axis=1, keepdims=True)
    return result
