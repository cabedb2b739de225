"""Symmetric Gaussian matrices: sampling, one draw of the ensemble, repair of a curvature."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy.linalg import eigh

from cvxqop.privacy.noise import Noise, strictly_lower

__all__ = ["Spectrum", "SymmetricDraw", "repaired", "symmetric_noise"]

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class SymmetricDraw:
    """One draw of the Gaussian ensemble.

    Attributes
    ----------
    curvature : ndarray, shape (D, D)
        S, exactly symmetric; it may be indefinite where the loss is quadratic.
    guards : tuple of ndarray, shape (D,)
        The linear guard of each stage.
    value : float
        The noise of the sum of squares, where it is released.
    """

    curvature: Array
    guards: tuple[Array, ...]
    value: float = field(default=0.0, kw_only=True)

    @property
    def guard(self) -> Array:
        """a, the guard of the first stage."""
        return self.guards[0]

    @property
    def operator(self) -> Array:
        """S."""
        return self.curvature

    @cached_property
    def factor(self) -> Array:
        """Lower triangular T with TT' = S.

        Raises
        ------
        numpy.linalg.LinAlgError
            If S is not positive definite: quadratic losses only.
        """
        return np.asarray(np.linalg.cholesky(self.curvature))


def symmetric_noise(noise: Noise, dimension: int) -> Array:
    """N with density proportional to exp(−‖N‖_F²/2): N_ii ~ N(0, 1), N_ij = N_ji ~ N(0, ½).

    Examples
    --------
    >>> from cvxqop.privacy.noise import SecureNoise
    >>> N = symmetric_noise(SecureNoise(), 3)
    >>> N.shape, bool(np.array_equal(N, N.T))
    ((3, 3), True)
    """
    N = strictly_lower(noise, dimension)
    N *= np.sqrt(0.5)
    N += N.T
    np.fill_diagonal(N, noise.standard_normal(dimension))
    return N


@dataclass(frozen=True)
class Spectrum:
    """A symmetric matrix with its eigenvalues, ascending, and eigenvectors.

    Examples
    --------
    >>> spectrum = Spectrum.of(np.diag([-1.0, 5.0]))
    >>> spectrum.raised(2.0).round(12).tolist()
    [[2.0, 0.0], [0.0, 5.0]]
    >>> spectrum.solved(2.0, np.ones((2, 1)))[:, 0].tolist()
    [0.5, 0.2]
    """

    matrix: Array
    values: Array
    vectors: Array

    @classmethod
    def of(cls, matrix: Array) -> Spectrum:
        """The decomposition of a matrix (D, D)."""
        return cls(matrix, *eigh(matrix.T, driver="evd", check_finite=False))

    def raised(self, level: float) -> Array:
        """The matrix with the eigenvalues below a level raised to it."""
        below = int(np.searchsorted(self.values, level))
        low = self.vectors[:, :below] * np.sqrt(level - self.values[:below])
        result = low @ low.T
        result += self.matrix
        return np.asarray(0.5 * (result + result.T))

    def solved(self, level: float, right: Array) -> Array:
        """The inverse of that matrix times ``right`` (D, k)."""
        turned = (self.vectors.T @ right) / np.maximum(self.values, level)[:, None]
        return np.asarray(self.vectors @ turned)


def repaired(hessian: Array, level: float, curvature: str) -> Array:
    """A symmetric matrix with its eigenvalues raised to a level: each ("floor") or all ("ridge").

    Parameters
    ----------
    hessian : ndarray, shape (D, D)
        Symmetric and already private.
    level : float
        The smallest eigenvalue of the result.
    curvature : {"floor", "ridge"}
        "floor" raises the eigenvalues below the level to it; "ridge" adds
        max(0, level − λ_min) I.

    Examples
    --------
    >>> repaired(np.diag([-1.0, 5.0]), 2.0, "floor").round(12).tolist()
    [[2.0, 0.0], [0.0, 5.0]]
    >>> repaired(np.diag([-1.0, 5.0]), 2.0, "ridge").tolist()
    [[2.0, 0.0], [0.0, 8.0]]
    """
    if curvature == "ridge":
        least = float(np.linalg.eigvalsh(hessian)[0])
        result = hessian.copy()
        result[np.diag_indices(len(result))] += max(0.0, level - least)
        return result
    return Spectrum.of(hessian).raised(level)
