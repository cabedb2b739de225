"""S as a sparse diagonal array: the same bounds and products as with S written out."""

import numpy as np
import pytest
import scipy.sparse as sp

from cvxqop.solve.certificate import Curvature, certify
from cvxqop.solve.engines.splitting import DenseForm, LowRankForm
from cvxqop.solve.rest.rest import Candidate
from cvxqop.solve.smooth.quadratic import Evaluation

RNG = np.random.default_rng(8)
D = 30


def test_bounds_of_a_multiple_of_the_identity():
    """m = c, ‖r‖_{M⁻¹} = ‖r‖/√c, and the certificate of the dense matrix, which rounds more."""
    r = RNG.standard_normal(D)
    M = Curvature(2.5 * sp.eye_array(D, format="csr"))
    assert M.least == 2.5
    exact = np.linalg.norm(r) / np.sqrt(2.5)
    assert exact <= M.dual_norm(r) <= exact * (1.0 + 1e-13)
    at = Evaluation(0.0, r, 1e-12), Candidate(np.zeros(D), np.zeros(D))
    own, dense = certify(*at, M), certify(*at, Curvature(2.5 * np.eye(D)))
    assert own.distance == pytest.approx(np.linalg.norm(r) / 2.5, rel=1e-9)
    assert own.distance <= dense.distance * (1.0 + 1e-15)
    assert own.gap == pytest.approx(dense.gap, rel=1e-9)


def test_a_singular_one_certifies_nothing():
    M = Curvature(sp.csr_array((D, D)))
    assert M.least == 0.0
    at = Evaluation(0.0, np.ones(D), 0.0), Candidate(np.zeros(D), np.zeros(D))
    assert certify(*at, M).distance == np.inf


def test_products_with_sparse_rows():
    B = sp.random_array((50, D), density=0.1, rng=RNG, format="csr")
    S = 0.5 * sp.eye_array(D, format="csr")
    form, dense = LowRankForm(S, B), DenseForm(0.5 * np.eye(D) + (B.T @ B).toarray())
    v, index = RNG.standard_normal(D), np.array([1, 4, 20])
    np.testing.assert_allclose(form.apply(v), dense.apply(v), atol=1e-13)
    np.testing.assert_allclose(form.diagonal(), dense.diagonal(), atol=1e-14)
    np.testing.assert_allclose(form.block(index), dense.block(index), atol=1e-14)
