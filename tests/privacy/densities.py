"""Output densities of the perturbed problem, for the tests: those that the audit integrates.

A data set is known by the gradient and the Hessian of its objective J at the points u (anchor 0).
"""

import numpy as np

from cvxqop.audit.density import wishart_density
from cvxqop.audit.exact import grid, hockey_stick

__all__ = ["density_1d", "density_2d", "grid_1d", "grid_2d", "hockey_stick"]


def density_1d(u, gradient, H, **noise):
    """p(u) for points u, gradients and curvatures of shape (N,)."""
    return wishart_density(u[:, None], gradient[:, None], np.reshape(H, (-1, 1, 1)), **noise)


def density_2d(u, gradient, H, **noise):
    """p(u) for points and gradients (N, 2), Hessians (N, 2, 2)."""
    return wishart_density(u, gradient, H, **noise)


def grid_1d():
    """Points u (N,) of both signs, logarithmically spaced, and quadrature weights."""
    u, weight, _ = grid(1)
    return u[:, 0], weight


def grid_2d(low=-8.0, high=8.0):
    """Polar points and weights, log-spaced in radius."""
    return grid(2, (low, high))[:2]
