"""Releases of small problems, drawn again and again from the public law of their noise."""

from dataclasses import replace

import cvxpy as cp
import numpy as np

import cvxqop

BOUNDS = cvxqop.Bounds(row_norm=1.0, offset=1.0)
PAY = {"epsilon": 1.0, "delta": 1e-6, "bounds": BOUNDS}


def records(n=3000, d=5, seed=1, noise=0.2):
    rng = np.random.default_rng(seed)
    C = 0.6 ** np.abs(np.subtract.outer(range(d), range(d)))
    X = rng.multivariate_normal(np.zeros(d), C, n)
    X /= np.maximum(2.5, np.linalg.norm(X, axis=1))[:, None]
    truth = np.resize([0.8, 0.0, -0.5, 0.0, 0.3], d)
    return X, np.clip(X @ truth + noise * rng.standard_normal(n), -1, 1)


class Case:
    """One half of a sum of squares, its exact form, and as many releases as are asked for."""

    def __init__(self, d=5, n=3000, seed=1, **options):
        self.X, self.y = records(n, d, seed)
        self.theta = cp.Variable(d, name="theta")
        self.f = 0.5 * cp.sum_squares(self.X @ self.theta - self.y)
        self.H, self.g = self.X.T @ self.X, -self.X.T @ self.y
        pay = {**PAY, "perturbation": cvxqop.Gaussian(), "seed": 0, **options}
        self.loss = cvxqop.private_loss(self.f, private=[self.X, self.y], **pay)

    def releases(self, count, seed=0):
        rng, law, d = np.random.default_rng(seed), self.loss.noise, len(self.g)
        mean = law.mean * np.eye(d)
        S, a = law.curvatures(rng, count, d) + mean, law.gradients(rng, count, d)
        for k in range(count):
            raw, gradient = self.H + S[k], self.g + a[k]
            hessian = self.loss.guarantee.mechanism.repair(raw, [gradient])
            yield replace(
                self.loss,
                hessian=hessian,
                gradient=gradient,
                raw_hessian=raw,
                first_gradient=gradient,
            )

    def exact(self, regularizer=None, constraints=()):
        """The minimiser without noise."""
        objective = self.f if regularizer is None else self.f + regularizer
        tight = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), 1e-11)
        cp.Problem(cp.Minimize(objective), list(constraints)).solve("CLARABEL", **tight)
        value, self.theta.value = self.theta.value.copy(), None
        return value
