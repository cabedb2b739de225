"""Records whose Hessians stay in one subspace: the spectral bound sees only that part of W."""

import numpy as np
import pytest
from scipy.stats import binom, wishart

from cvxqop.privacy.accounting.smallest_eigenvalue import smallest_eigenvalue_quantile
from cvxqop.privacy.mechanism import Sensitivity
from cvxqop.privacy.wishart.options import Wishart
from cvxqop.privacy.wishart.spectral import spectral_epsilon

D, M, K = 6, 9.5, 3
SIGMA2 = 3.0


def softmax_hessian(generator, a):
    """(diag p − pp') ⊗ aa' for a random p."""
    p = generator.dirichlet(np.full(K, 0.5))
    return np.kron(np.diag(p) - np.outer(p, p), np.outer(a, a))


def basis(*rows):
    """Orthonormal basis of the vectors u ⊗ a with Σ u = 0."""
    contrasts = np.array([[1.0, -1.0, 0.0], [1.0, 1.0, -2.0]]).T
    return np.linalg.qr(np.hstack([np.kron(contrasts, a[:, None]) for a in rows]))[0]


@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
def test_the_privacy_loss_is_bounded_by_the_part_that_is_seen(adjacency):
    """−log of densities and determinants, in full, against the formula at λ_min of the part."""
    generator = np.random.default_rng(0)
    law = wishart(df=M, scale=np.eye(D))
    k = 0.5 * (M - D - 1)
    tight, compared = 0.0, 0
    for W in law.rvs(400, random_state=1):
        one, other = generator.standard_normal((2, 2))
        one, other = one / np.linalg.norm(one), other / np.linalg.norm(other)
        S = SIGMA2 * W
        H0 = generator.uniform(0, 3) * softmax_hessian(generator, generator.standard_normal(2))
        added = adjacency == "add_remove"
        rows = (one,) if added else (one, other)
        U = basis(*rows)
        part = np.linalg.inv(U.T @ np.linalg.inv(W) @ U)
        alpha = np.linalg.eigvalsh(part)[0] - 0.5 / SIGMA2
        if alpha <= 0.0:
            continue
        bound = spectral_epsilon(
            alpha, k, (1 - 1 / K) / SIGMA2, adjacency=adjacency, quadratic=False
        )
        # A mean of Hessians, and one at the output; a record that comes and one that goes.
        gone, gone_there = softmax_hessian(generator, one), softmax_hessian(generator, one)
        come, come_there = softmax_hessian(generator, other), softmax_hessian(generator, other)
        if added:
            sign = 1.0 if generator.random() < 0.5 else -1.0
            E = sign * gone
            before, after = (gone_there, 0 * S) if sign > 0 else (0 * S, gone_there)
        else:
            E, before, after = gone - come, gone_there, come_there
        moved = S + E
        assert np.linalg.eigvalsh(moved)[0] > 0
        loss = k * (np.linalg.slogdet(S)[1] - np.linalg.slogdet(moved)[1])
        loss += 0.5 * np.trace(E) / SIGMA2
        loss += np.linalg.slogdet(H0 + before + S)[1] - np.linalg.slogdet(H0 + after + moved)[1]
        assert loss <= bound + 1e-12
        tight, compared = max(tight, loss / bound), compared + 1
    assert compared > 100
    assert tight > 0.2


@pytest.mark.parametrize("q", [1, 2, 4])
def test_law_of_the_part(q):
    """λ_min of (U'W⁻¹U)⁻¹ is that of Wishart_q(m − d + q): binomial test, false alarm 10⁻⁷."""
    level, n = 0.1, 20000
    generator = np.random.default_rng(2)
    U = np.linalg.qr(generator.standard_normal((D, q)))[0]
    W = wishart(df=M, scale=np.eye(D)).rvs(n, random_state=3)
    parts = np.linalg.inv(U.T @ np.linalg.solve(W, np.broadcast_to(U, (n, D, q))))
    below = np.sum(
        np.linalg.eigvalsh(parts)[:, 0] < smallest_eigenvalue_quantile(level, q, M - D + q)
    )
    # The quantile is a lower bound, exact for q = 1.
    assert below <= binom.isf(1e-7, n, level)
    if q == 1:
        assert below >= binom.ppf(1e-7, n, level)


def bounds(adjacency, held):
    return Sensitivity(
        dimension=50,
        smoothness=0.5,
        anchor_gradient=0.9,
        quadratic=False,
        adjacency=adjacency,
        hessian_rank=9,
        trace=0.9,
        hessian_range=held,
    )


@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
def test_calibration(adjacency):
    wide = Wishart().calibrate(1.0, 1e-6, bounds(adjacency, None), accuracy=1e-6)
    held = Wishart().calibrate(1.0, 1e-6, bounds(adjacency, 9), accuracy=1e-6)
    assert float(held.profile(1.0)) <= 1e-6
    assert np.all(held.profile([1.0, 2.0]) <= wide.profile([0.0, 0.0]))
    assert held.mean_curvature < 0.75 * wide.mean_curvature
