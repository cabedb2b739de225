"""`python -m cvxqop`: versions, and a self-check of what noise rests on. Reads no data."""

from __future__ import annotations

import importlib.metadata
import platform
import sys

import cvxpy as cp
import numpy as np

import cvxqop

PACKAGES = ("cvxpy", "numpy", "scipy", "osqp", "clarabel", "scs", "dask", "pyarrow", "pandas")
KNOWN_MU = 0.236704
"""μ of the Gaussian mechanism with δ(1) = 1e-6: Φ(μ/2 − 1/μ) − e Φ(−μ/2 − 1/μ) = 1e-6."""


def versions() -> list[str]:
    """One line a package that is installed."""
    lines = [f"cvxqop {cvxqop.__version__}", f"Python {platform.python_version()}"]
    for name in PACKAGES:
        try:
            lines.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            continue
    lines.append("solvers " + ", ".join(["STOTOS", *cp.installed_solvers()]))
    return lines


def checks() -> dict[str, bool]:
    """What is checked, in words, and whether it holds; the records are three rows, 40 times."""
    X, theta = np.vstack([np.eye(3)] * 40), cp.Variable(3)
    problem = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(X @ theta - 1.0) + cp.norm1(theta)))
    bounds = cvxqop.Bounds(row_norm=1.0, offset=1.0)
    plans = [
        cvxqop.plan(
            problem, private=[X], bounds=bounds, epsilon=1.0, delta=1e-6, solver=solver, seed=0,
            perturbation=cvxqop.Gaussian(),
        )
        for solver in ("STOTOS", "CLARABEL")
    ]  # fmt: skip
    mu = plans[0].mechanism.gdp_mu
    one, other = (np.asarray(plan.run()[theta]) for plan in plans)
    return {
        "the noise has the μ of the closed form": mu is not None and abs(mu - KNOWN_MU) < 1e-6,
        "the profile of the mechanism keeps δ(ε) ≤ δ": bool(plans[0].profile(1.0) <= 1e-6),
        "two solvers agree on one draw": bool(np.allclose(one, other, atol=1e-6)),
    }


def main() -> int:
    """Print both; 1 if a check fails."""
    print("\n".join(versions()))
    found = checks()
    for words, holds in found.items():
        print(f"{'ok    ' if holds else 'FAILED'} {words}")
    return 0 if all(found.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
