"""Sources of randomness: the operating system's cryptographic generator, and seeded streams.

Every release draws from one fresh stream. The noise of a mechanism and the sampling of a
stochastic solver come from separate streams, so that neither can be inferred from the other.
"""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt
from scipy.special import gammainccinv, gammaincinv, ndtri

from cvxqop.errors import OptionError

__all__ = ["Noise", "Randomness", "SecureNoise", "SeededNoise", "strictly_lower"]

Array = npt.NDArray[np.float64]

_SPAWNING = threading.Lock()
"""Two threads that spawn at once would get one stream, and two releases the same noise."""


class Noise(Protocol):
    """What a mechanism needs: independent standard normal and chi-square variates."""

    def standard_normal(self, size: int | tuple[int, ...]) -> Array:
        """Independent N(0, 1) variates of the given shape."""

    def chisquare(self, df: npt.ArrayLike) -> Array:
        """One χ² variate for each (real, positive) number of degrees of freedom."""


class SecureNoise:
    """Variates by inversion of uniforms from the operating system's cryptographic generator.

    A uniform is u = 2⁻¹ (w₁ + (w₂ + ½) 2⁻⁶⁴) 2⁻⁶⁴ in (0, ½], from two 64-bit words, and a third
    word says from which tail u is counted. Both tails are therefore resolved to 2⁻¹²⁹, and the
    quantile functions are evaluated at the full relative precision of a double there.

    Examples
    --------
    >>> SecureNoise().standard_normal((2, 3)).shape
    (2, 3)
    """

    @staticmethod
    def _half_uniforms(size: int) -> tuple[Array, npt.NDArray[np.bool_]]:
        words = np.frombuffer(os.urandom(16 * size), dtype=np.uint64).reshape(2, size)
        fine = (words[1].astype(np.float64) + 0.5) * 2.0**-64
        tail = (words[0].astype(np.float64) + fine) * 2.0**-65
        upper = np.unpackbits(np.frombuffer(os.urandom((size + 7) // 8), dtype=np.uint8))
        return tail, upper[:size].astype(np.bool_)

    def standard_normal(self, size: int | tuple[int, ...]) -> Array:
        shape = (size,) if isinstance(size, int) else size
        tail, upper = self._half_uniforms(int(np.prod(shape)))
        left = np.asarray(ndtri(tail))
        return np.where(upper, -left, left).reshape(shape)

    def chisquare(self, df: npt.ArrayLike) -> Array:
        shape_parameter = 0.5 * np.asarray(df, dtype=np.float64)
        tail, upper = self._half_uniforms(shape_parameter.size)
        tail, upper = tail.reshape(shape_parameter.shape), upper.reshape(shape_parameter.shape)
        below = gammaincinv(shape_parameter, tail)
        above = gammainccinv(shape_parameter, tail)
        return np.asarray(2.0 * np.where(upper, above, below))


class SeededNoise:
    """The same variates from a numpy generator: repeatable, for research, and not private.

    Examples
    --------
    >>> one, two = (SeededNoise(np.random.default_rng(7)) for _ in range(2))
    >>> bool(one.standard_normal(3)[0] == two.standard_normal(3)[0])
    True
    """

    def __init__(self, generator: np.random.Generator) -> None:
        self._generator = generator

    def standard_normal(self, size: int | tuple[int, ...]) -> Array:
        return self._generator.standard_normal(size)

    def chisquare(self, df: npt.ArrayLike) -> Array:
        return np.asarray(self._generator.chisquare(np.asarray(df, dtype=np.float64)))


BLOCK = 2**20
"""Variates that are drawn at once."""


def strictly_lower(noise: Noise, dimension: int) -> Array:
    """A matrix of independent N(0, 1) variates below the diagonal, row by row, and of zeros.

    Examples
    --------
    >>> T = strictly_lower(SecureNoise(), 3)
    >>> T.shape, bool(np.all(np.triu(T) == 0.0))
    ((3, 3), True)
    """
    T = np.zeros((dimension, dimension))
    rows = max(1, BLOCK // dimension)
    for first in range(0, dimension, rows):
        below = np.tri(min(rows, dimension - first), dimension, first - 1, dtype=np.bool_)
        T[first : first + rows][below] = noise.standard_normal(int(np.count_nonzero(below)))
    return T


@dataclass
class Randomness:
    """Fresh streams, one pair for each release.

    Parameters
    ----------
    seed : None, int or numpy.random.Generator
        None takes every number from the operating system's cryptographic generator. Anything else
        makes the releases reproducible, which means that they are not private: whoever knows the
        seed can remove the noise.

    Raises
    ------
    OptionError
        If ``seed`` is of another type, or negative.

    Examples
    --------
    >>> one, two = Randomness(3), Randomness(3)
    >>> (a, _), (b, _) = one.fresh(), two.fresh()
    >>> float(a.standard_normal(1)[0]) == float(b.standard_normal(1)[0])
    True
    >>> (c, _) = one.fresh()    # a second release draws a new stream
    >>> float(c.standard_normal(1)[0]) == float(b.standard_normal(1)[0])
    False
    """

    seed: int | np.random.Generator | None = None
    _parent: np.random.Generator | None = field(init=False, repr=False, default=None)

    def __post_init__(self) -> None:
        if self.seed is None:
            return
        if isinstance(self.seed, np.random.Generator):
            self._parent = self.seed
        elif isinstance(self.seed, int | np.integer) and not isinstance(self.seed, bool):
            if self.seed < 0:
                raise OptionError("seed must be None, an int ≥ 0 or a numpy Generator.")
            self._parent = np.random.default_rng(int(self.seed))
        else:
            raise OptionError(
                "seed must be None, an int ≥ 0 or a numpy Generator, not "
                f"{type(self.seed).__name__}."
            )

    @property
    def reproducible(self) -> bool:
        """True when a seed was given: the releases can be repeated, and are not private."""
        return self._parent is not None

    @property
    def parent(self) -> np.random.Generator | None:
        """What the streams are spawned from; None for the operating system's generator."""
        return self._parent

    def fresh(self) -> tuple[Noise, np.random.Generator]:
        """The noise of the next release, and a separate generator for its solver's sampling."""
        if self._parent is None:
            return SecureNoise(), np.random.default_rng()
        with _SPAWNING:
            mechanism, sampling = self._parent.spawn(2)
        return SeededNoise(mechanism), sampling
