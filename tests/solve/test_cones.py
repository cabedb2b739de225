"""Cones: projections by Moreau's decomposition, distances and radii against points, constants."""

import cvxpy as cp
import numpy as np
import pytest

from cvxqop.solve.cones import exponential_cone as exponential
from cvxqop.solve.cones.cones import Cones
from cvxqop.solve.cones.projections import matrix, vector
from cvxqop.solve.cones.standard_form import standard_form
from cvxqop.solve.rest.terms import NotSplittable

CONES = Cones.of(2, 3, [4, 3], [3], 2)
WITH_POWER = Cones.of(2, 3, [4, 3], [3], 2, [0.4])


@pytest.mark.parametrize("long", [False, True])
def test_moreau(long):
    """w = s − y with s ∈ K, y ∈ K* and s'y = 0 decides the projection."""
    rng = np.random.default_rng(0)
    plain = Cones.of(2, 3, [4, 3], [3])
    for _ in range(200):
        w = rng.standard_normal(plain.size) * 10.0 ** rng.uniform(-2, 2)
        w = w.astype(np.longdouble) if long else w
        s, J = plain.project(w)
        y = np.where(plain.zero, 0, s - w)
        limit = (1e-15 if long else 1e-12) * float(np.linalg.norm(w))
        assert np.all(plain.outside(s) <= limit)
        assert np.all(plain.outside(y, dual=True) <= limit)
        assert abs(float(s @ y)) <= limit * float(np.linalg.norm(w))
        np.testing.assert_allclose(J, J.T, atol=1e-12)


def test_exponential_projection_is_nearest():
    """To 1e-5 where the cone is flat, far below that elsewhere."""
    worst = []
    rng = np.random.default_rng(1)
    V = rng.standard_normal((500, 3))
    s, _ = exponential.project(V, None)
    for v, z in zip(V, s, strict=True):
        assert exponential.outside(z, False) <= 1e-8
        worst.append(abs(z @ (v - z)))
        # No point of the cone is nearer: along rays t ↦ (t, 1, eᵗ) and the face y = 0.
        t = np.linspace(-30, 5, 4001)
        rays = np.stack([t, np.ones_like(t), np.exp(t)])
        along = np.maximum((v @ rays) / (rays * rays).sum(axis=0), 0.0)
        nearest = np.sqrt(((along * rays - v[:, None]) ** 2).sum(axis=0)).min()
        assert np.linalg.norm(z - v) <= nearest + 1e-5
    assert max(worst) <= 1e-4
    assert np.median(worst) <= 1e-14


@pytest.mark.parametrize("dual", [False, True])
def test_balls_of_the_stated_radii_are_inside(dual):
    rng = np.random.default_rng(2)
    K = WITH_POWER
    for _ in range(300):
        s = K.centre * 10.0 ** rng.uniform(-3, 3)
        s = s * (1 + 0.2 * rng.standard_normal(K.size))
        radii = K.radii(s, dual=dual)
        move = rng.standard_normal(K.size)
        unit = move / K.norms(move)[K.block]
        room = np.where(np.isfinite(radii) & (radii > 0.0), radii, 0.0)
        inside = radii > 0.0
        out = K.outside(np.where(K.zero, 0.0, s + unit * room[K.block]), dual=dual)
        assert np.all(out[inside] <= 1e-15 * np.linalg.norm(s))


def test_the_radius_around_the_centre_of_the_exponential_cone():
    """The least product with unit vectors of K and K*, of rays (t, 1, eᵗ) and (−eᵗ, eᵗ(t−1), 1).

    On a grid of step h it is missed by less than h ‖e‖ max |unit'(t)|, which is below 0.01.
    """
    t = np.linspace(-60, 60, 200_001)
    E = np.exp(t)
    least = np.inf
    for rays in ([t, np.ones_like(t), E], [-E, E * (t - 1), np.ones_like(t)]):
        units = np.array(rays) / np.linalg.norm(rays, axis=0)
        least = min(least, float((exponential.CENTRE @ units).min()))
    assert least > 0.56
    assert least - 0.01 >= exponential.CENTRE_RADIUS


def test_symmetric_matrices_keep_their_products():
    rng = np.random.default_rng(3)
    A, B = (M + M.T for M in rng.standard_normal((2, 4, 4)))
    assert vector(A) @ vector(B) == pytest.approx(np.trace(A @ B), rel=1e-14)
    np.testing.assert_allclose(matrix(vector(A), 4), A, rtol=1e-15)
    # Clarabel's order: the upper triangle by columns.
    np.testing.assert_allclose(vector(A)[[0, 2, 5]], np.diag(A)[:3])


def test_reductions_of_the_standard_form():
    w, free = cp.Variable(3), cp.Variable()
    two = standard_form([w], None, [cp.sum(w) <= 0.3, cp.sum(w) >= 0.3])
    zero = sum(c.rows.stop - c.rows.start for c in two.cones.parts if c.kind == "zero")
    assert zero == np.linalg.matrix_rank(two.A.toarray()[:zero])
    assert [c.kind for c in two.cones.parts] == ["zero"]
    void = standard_form([w], None, [cp.max(w) <= free])
    assert np.all(void.A.toarray()[:, :3][~void.cones.zero] == 0.0)
    for form in (two, void):
        Av = form.A.toarray()[:, 3:]
        assert np.linalg.matrix_rank(Av) == Av.shape[1]


def test_what_cvxpy_approximates_is_refused():
    w = cp.Variable(3)
    for term in (cp.pnorm(w, np.pi), cp.sum(cp.power(cp.pos(w), np.pi))):
        with pytest.raises(NotSplittable, match="approximated"):
            standard_form([w], term, [])


@pytest.mark.parametrize("dual", [False, True])
def test_distances_to_a_steep_exponential_cone_are_not_far_above_the_truth(dual):
    """Points a step δ outside of the boundary, where z grows a million times as fast as x."""
    rng = np.random.default_rng(4)
    for _ in range(50):
        size, argument = 10.0 ** rng.uniform(-6, 0), rng.uniform(8.0, 14.0)
        delta = 10.0 ** rng.uniform(-14, -6) * size
        level = size * np.exp(argument)
        if dual:
            v = np.array([-size, -size * (argument + 1.0) - delta, level], dtype=np.longdouble)
        else:
            v = np.array([size * argument + delta, size, level], dtype=np.longdouble)
        found = exponential.outside(v, dual)
        # The boundary itself is rounded: that is a distance of an ulp of the two entries.
        assert found <= 1.01 * delta + 1e-15 * size * argument
        assert found >= 0.9 * delta / np.sqrt(2.0) - 1e-15 * size * argument
