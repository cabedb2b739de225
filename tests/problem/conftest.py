"""Shared helpers: the value of a reading, to be compared with CVXPY's own value."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from cvxqop.problem.erm import ERM


def value_of(erm: ERM, theta: np.ndarray, size: int = 3) -> float:
    """Σ_j Σ_i w_ij φ_j(a_i'θ + c_ij), from the blocks of the rows."""
    total = 0.0
    for term in erm.loss.terms:
        start = 0
        for A, C in term.rows.blocks(size):
            margins = A @ term.outputs.matrix(theta)
            for j, (loss, weight) in enumerate(term.losses):
                w = weight[start : start + len(C)] if np.ndim(weight) else weight
                t = margins + C if term.outputs.count > 1 else margins[:, 0] + C[:, j]
                total += float(np.sum(w * loss.value(t).T))
            start += len(C)
        assert start == erm.n
    return total


@pytest.fixture
def agrees() -> Callable[..., None]:
    """Assert that a reading and a CVXPY expression have the same values at random points."""

    def check(erm: ERM, expression: object, constant: float = 0.0) -> None:
        rng = np.random.default_rng(5)
        for _ in range(3):
            values = {v: rng.standard_normal(v.shape) for v in erm.variables}
            for variable, value in values.items():
                variable.value = value
            expected = float(np.asarray(expression.value).item())  # type: ignore[attr-defined]
            rest = 0.0 if erm.regulariser is None else float(erm.regulariser.value)
            found = value_of(erm, erm.stack(values)) + rest + constant
            np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)

    return check
