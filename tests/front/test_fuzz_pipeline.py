"""Random problems through the whole pipeline: refused before the draw, or released rightly.

The usual size is 25 problems, the full one 500 (``CVXQOP_FULL=1``, or `benchmarks/fuzz.py`, whose
last result is in ``benchmarks/results/fuzz.md``).
"""

import os

import pytest
from random_problems import trial

SIZE = 500 if "CVXQOP_FULL" in os.environ else 25


@pytest.mark.parametrize("seed", range(SIZE))
def test_refused_or_released(seed):
    trial(seed)


def test_a_tenth_at_least_is_released():
    """The trials are not all refusals."""
    assert sum(trial(seed).kind == "released" for seed in range(4)) >= 1
