"""The training objective at a solution that was computed from a noisy form, without its bias.

The coupled bootstrap: with fresh noise (N, z), a part α of more noise is added to the release for
the fit, and taken off for the score,

    fit on (H̃ + √α sN, g̃ + √α σz),      score on (H̃ − sN/√α, g̃ − σz/√α).

The two are independent, so that the score at the fit is f(θ) − f(θ0) in the mean, whatever r and C
are and without derivatives. Both are those of the first release: the solution must be a function
of it alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from cvxqop.errors import OptionError
from cvxqop.inference.released import Released, law_of, raised_to, raw_of

__all__ = ["Risk", "coupled_risk", "one_stage", "spread_of"]

Array = npt.NDArray[np.float64]
Solve = Callable[[Array, Array, Array], Array]
"""From curvatures (B, d, d), gradients (B, D) and least eigenvalues (B,) to solutions (B, L, D)."""

ALPHA = 0.25
BLOCK = 2**21


class Risk(NamedTuple):
    """Estimates of f(θ) − f(θ0) at L solutions (L,), and their covariance (L, L) between draws."""

    value: Array
    simulated: Array


def one_stage(loss: Released) -> tuple[Array, Array, Array]:
    """The first release with its curvature raised to the noise edge: (1, d, d), (1, D), (1,).

    Raises
    ------
    OptionError
        The noise is not Gaussian.
    """
    law = law_of(loss)
    if law.kind != "gaussian":
        raise OptionError(
            "The estimate of a fit rests on Gaussian noise: use perturbation=cvxqop.Gaussian()."
        )
    H, least = raised_to(raw_of(loss)[None], law.edge)
    return H, loss.first_gradient[None], least


def coupled_risk(loss: Released, solve: Solve, draws: int, generator: np.random.Generator) -> Risk:
    """The mean over ``draws`` of the score, for the L solutions that ``solve`` returns."""
    law, raw, (d, k) = law_of(loss), raw_of(loss), loss.layout.shape
    root, level = math.sqrt(ALPHA), law.edge * math.sqrt(1.0 + ALPHA)
    scores = []
    size = max(1, BLOCK // (d * k) ** 2)
    for first in range(0, draws, size):
        block = min(size, draws - first)
        N = law.curvatures(generator, block, d)
        z = law.gradients(generator, block, d * k)
        H, least = raised_to(raw + root * N, level)
        U = solve(H, loss.first_gradient + root * z, least) - loss.first_anchor
        scores.append(_values(raw - N / root, loss.first_gradient - z / root, U, loss.layout))
    values = np.concatenate(scores)
    simulated = np.cov(values, rowvar=False).reshape(values.shape[1], -1) / draws
    return Risk(values.mean(axis=0), simulated)


def _values(H: Array, g: Array, U: Array, layout: npt.NDArray[np.intp]) -> Array:
    """g'u + ½u'Hu for U (B, L, D)."""
    columns = U[:, :, layout]
    curved = np.einsum("bij,bljk->blik", H, columns)
    return np.asarray(
        np.einsum("bld,bd->bl", U, g) + 0.5 * np.einsum("blik,blik->bl", columns, curved)
    )


def spread_of(loss: Released, U: Array, reference: Array) -> Array:
    """Standard deviations (L,) of the noise in f̃(θ) − f̃(θ') at fixed displacements, U and u' = θ' −
    θ0: σ²‖u − u'‖² + ¼s²‖UU' − U'U''‖_F², with U and U' as (d, k) columns."""
    law, layout = law_of(loss), loss.layout
    A, B = U[:, layout], reference[layout]
    own = np.einsum("lik,lij->lkj", A, A)
    other = B.T @ B
    mixed = np.einsum("lik,ij->lkj", A, B)
    quartic = (own**2).sum((1, 2)) + (other**2).sum() - 2.0 * (mixed**2).sum((1, 2))
    linear = ((U - reference) ** 2).sum(axis=1)
    s, sigma = law.spread, law.gradient_scale
    variance = sigma**2 * linear + 0.25 * s**2 * np.maximum(quartic, 0.0)
    return np.asarray(np.sqrt(variance))
