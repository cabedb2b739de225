"""Two facts about diffprivlib 0.6.6 that the tables rest on, measured by running it.

    python benchmarks/peers/audit_diffprivlib.py

1. `LogisticRegression` with its default intercept, which is neither regularised nor bounded, while
   the noise is that of a strongly convex problem. Two data sets that differ in one record of norm
   at most 1 are fitted 3,000 times each at ε = 1, δ = 0; the event, fixed beforehand, is that the
   coefficient falls below -5 while the intercept stays within ±2. Clopper-Pearson limits at 97.5%
   each give a lower bound on ε that holds with 95% confidence.
2. `LinearRegression` with bounds (0, 1): whether the second moments of the features that it
   releases carry noise.

Written to results/peers/audit_diffprivlib.md.
"""

from __future__ import annotations

import warnings
from importlib.metadata import version
from pathlib import Path

import numpy as np
from scipy.stats import beta

FITS = 3_000
FIRST_SEED = 10**6
RESULTS = Path(__file__).resolve().parents[1] / "results" / "peers" / "audit_diffprivlib.md"


def logistic_hits(rows: list[float]) -> int:
    """How often the event occurs for these two records with labels 1 and 0."""
    from diffprivlib import BudgetAccountant
    from diffprivlib.models import LogisticRegression

    X, hits = np.array(rows)[:, None], 0
    for seed in range(FIRST_SEED, FIRST_SEED + FITS):
        model = LogisticRegression(
            epsilon=1.0,
            data_norm=1.0,
            max_iter=300,
            tol=1e-8,
            random_state=seed,
            accountant=BudgetAccountant(),
        ).fit(X, np.array([1, 0]))
        hits += bool(model.coef_[0, 0] < -5.0 and abs(model.intercept_[0]) < 2.0)
    return hits


def epsilon_lower_bound(one: int, other: int) -> float:
    """log of the lower limit of P(one) over the upper limit of P(other), 97.5% each."""
    low = beta.ppf(0.025, one, FITS - one + 1) if one else 0.0
    return float(np.log(low / beta.ppf(0.975, other + 1, FITS - other)))


def exact_moments() -> bool:
    """Whether diag(X'X) is found unchanged in what `LinearRegression` keeps after a fit."""
    from diffprivlib import BudgetAccountant
    from diffprivlib.models import LinearRegression

    X = np.random.default_rng(0).random((50, 3))
    model = LinearRegression(
        epsilon=0.1,
        bounds_X=(0.0, 1.0),
        bounds_y=(0.0, 1.0),
        fit_intercept=False,
        accountant=BudgetAccountant(),
    ).fit(X, X[:, 0])
    return bool(np.allclose(np.diag(model._obj_coefs[2]), np.diag(X.T @ X), rtol=0, atol=1e-12))


def main() -> None:
    warnings.simplefilter("ignore")
    moments = exact_moments()
    one, other = logistic_hits([1.0, 0.0]), logistic_hits([1.0, 1.0])
    bound = epsilon_lower_bound(one, other)
    versions = ", ".join(
        f"{name} {version(name)}" for name in ("diffprivlib", "scikit-learn", "numpy")
    )
    lines = [
        "# diffprivlib, audited",
        "",
        f"{versions}. Made by `benchmarks/peers/audit_diffprivlib.py`, which says how.",
        "",
        "| check | found |",
        "| --- | ---: |",
        f"| `LogisticRegression` with intercept, ε = 1: fits of each data set | {FITS:,} |",
        f"| event on one data set | {one:,} |",
        f"| event on its neighbour | {other:,} |",
        f"| ε is at least, with 95% confidence | {bound:.3f} |",
        "| `LinearRegression`, ε = 0.1: second moments carry no noise |"
        f" {'yes' if moments else 'no'} |",
    ]
    text = "\n".join(lines) + "\n"
    RESULTS.write_text(text, encoding="utf-8")
    print(text, end="")


if __name__ == "__main__":
    main()
