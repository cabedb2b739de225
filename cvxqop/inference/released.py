"""What inference asks of a private loss, and redraws of the form that it was released for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol, Self

import cvxpy as cp
import numpy as np
import numpy.typing as npt

from cvxqop.errors import OptionError
from cvxqop.privacy.law import NoiseLaw
from cvxqop.privacy.noise import Randomness

__all__ = [
    "LIGHT",
    "Forms",
    "Released",
    "generator_of",
    "law_of",
    "raised_to",
    "raw_of",
    "redraws",
    "whole",
]

Array = npt.NDArray[np.float64]

LIGHT = 0.05
"""Eigenvalues of a redrawn curvature are raised to this part of the noise edge. The level of the
repair would hide how little is known where the noise exceeds the data: intervals then miss."""

BLOCK = 2**21
"""Numbers of the curvatures that are solved at once."""


class Released(Protocol):
    """A private loss, as far as inference goes: all of it is public."""

    @property
    def hessian(self) -> Array:
        """H̃ (D, D), repaired."""

    @property
    def gradient(self) -> Array:
        """g̃ (D,) of the last stage."""

    @property
    def anchor(self) -> Array:
        """θ0 of the last stage."""

    @property
    def variables(self) -> tuple[cp.Variable, ...]:
        """θ, stacked in this order."""

    @property
    def raw_hessian(self) -> Array | None:
        """H̃ (d, d) as released, of one output."""

    @property
    def first_gradient(self) -> Array:
        """g̃ (D,) as released first."""

    @property
    def first_anchor(self) -> Array:
        """Where."""

    @property
    def noise(self) -> NoiseLaw | None:
        """The law of the noise on these two."""

    @property
    def first_value(self) -> float | None:
        """The sum of squares at the first anchor, where it was released."""

    @property
    def records(self) -> int | None:
        """n, where it is public."""

    @property
    def squares(self) -> float | None:
        """κ of one sum of squares."""

    @property
    def layout(self) -> npt.NDArray[np.intp]:
        """(d, k): the entries of θ that are the columns of Θ."""

    @property
    def scale(self) -> Array:
        """T (D,): the noise is that of the loss as a function of T⁻¹θ."""

    def of_scaled(self, T: Array) -> Self:
        """The loss as a function of T⁻¹θ."""


class Forms(NamedTuple):
    """Quadratics that may have been the one without noise.

    Attributes
    ----------
    H : (B, d, d) array
        Curvatures, raised to the light floor.
    least : (B,) array
        The smallest eigenvalue of each.
    g : (B, D) array
        Gradients at the first anchor.
    raised : (d,) array
        Σ over the B of the part of each coordinate in directions that were raised.
    """

    H: Array
    least: Array
    g: Array
    raised: Array


def law_of(loss: Released) -> NoiseLaw:
    """The law of the noise.

    Raises
    ------
    OptionError
        The loss does not know it.
    """
    if loss.noise is None or loss.raw_hessian is None:
        raise OptionError(
            "This private loss does not hold its curvature as it was released (raw_hessian) and "
            "the law of its noise. Release it again with cvxqop.private_loss or cvxqop.privatize."
        )
    return loss.noise


def raw_of(loss: Released) -> Array:
    """H̃ − E S, (d, d): the released curvature without the mean of its noise."""
    law = law_of(loss)
    raw = np.array(loss.raw_hessian, dtype=np.float64)
    raw[np.diag_indices(len(raw))] -= law.mean
    return raw


def generator_of(seed: int | np.random.Generator | None) -> np.random.Generator:
    """A stream for redraws: never that of a mechanism, whatever the seed."""
    return Randomness(seed).fresh()[1]


def redraws(
    loss: Released, draws: int, generator: np.random.Generator, variance: float = 0.0
) -> Iterator[Forms]:
    """(H̃ − S', g̃ − a') for fresh S' and a' of the law of the noise, in blocks; with a ``variance``,
    one output, gradients move by √variance H^½ z as well."""
    law, raw, (d, k) = law_of(loss), raw_of(loss), loss.layout.shape
    floor = LIGHT * law.edge
    size = max(1, BLOCK // (d * k) ** 2)
    for first in range(0, draws, size):
        count = min(size, draws - first)
        H = raw - law.curvatures(generator, count, d)
        g = loss.first_gradient - law.gradients(generator, count, d * k)
        values, vectors = np.linalg.eigh(H)
        low = (values < floor).astype(np.float64)
        raised = np.einsum("bij,bj->i", vectors**2, low)
        values = np.maximum(values, floor)
        if variance > 0.0:
            z = np.sqrt(variance * values) * generator.standard_normal((count, d))
            g[:, loss.layout[:, 0]] += np.matmul(vectors, z[:, :, None])[:, :, 0]
        yield Forms(*_assembled(values, vectors), g, raised)


def raised_to(H: Array, level: float) -> tuple[Array, Array]:
    """Matrices (B, d, d) with eigenvalues raised to a level, and the smallest of each (B,)."""
    values, vectors = np.linalg.eigh(H)
    return _assembled(np.maximum(values, level), vectors)


def _assembled(values: Array, vectors: Array) -> tuple[Array, Array]:
    H = np.matmul(vectors * values[:, None, :], vectors.swapaxes(1, 2))
    return 0.5 * (H + H.swapaxes(1, 2)), values[:, 0]


def whole(H: Array, layout: Sequence[Sequence[int]] | npt.NDArray[np.intp]) -> Array:
    """(B, D, D) from the (B, d, d) curvatures of one output."""
    places = np.asarray(layout)
    if places.shape[1] == 1 and np.array_equal(places[:, 0], np.arange(len(places))):
        return H
    D = places.size
    result = np.zeros((len(H), D, D))
    for place in places.T:
        result[:, place[:, None], place] = H
    return result
