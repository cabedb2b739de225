"""Bounds: what is accepted, and what is said otherwise."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from cvxqop.errors import OptionError, PrivacyWarning
from cvxqop.problem.bounds import Bounds


def test_numbers_become_floats():
    bounds = Bounds(row_norm=np.float32(2), offset=3)
    assert (bounds.row_norm, bounds.offset, bounds.from_data) == (2.0, 3.0, False)
    assert isinstance(bounds.row_norm, float)
    assert Bounds(row_norm=1).offset is None
    assert Bounds(row_norm=1, offset=0).offset == 0.0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"row_norm": 0}, "row_norm must be positive"),
        ({"row_norm": -1}, "row_norm must be positive"),
        ({"row_norm": np.inf}, "row_norm must be finite"),
        ({"row_norm": np.nan}, "row_norm must be finite"),
        ({"row_norm": 1e-200}, "row_norm must lie between"),
        ({"row_norm": 1e200}, "row_norm must lie between"),
        ({"row_norm": "1"}, "row_norm must be a number, not str"),
        ({"row_norm": True}, "row_norm must be a number, not bool"),
        ({"row_norm": None}, "row_norm must be a number, not NoneType"),
        ({"row_norm": np.ones(2)}, "row_norm must be a number, not ndarray"),
        ({"row_norm": 1, "offset": -1e-9}, "offset must not be negative"),
        ({"row_norm": 1, "offset": np.inf}, "offset must be finite"),
        ({"row_norm": 1, "offset": 1j}, "offset must be a number, not complex"),
    ],
)
def test_refused(options, words):
    with pytest.raises(OptionError, match=words):
        Bounds(**options)


def test_from_box():
    bounds = Bounds.from_box([-1, 0, 2], [2, 2, 1e1], offset=4)
    assert bounds.row_norm == pytest.approx(np.sqrt(4 + 4 + 100))
    assert bounds.offset == 4.0
    assert not bounds.from_data


@pytest.mark.parametrize(
    ("lower", "upper", "words"),
    [
        ([0, 0], [1], "one number a column in both"),
        ([2], [1], "lower must not exceed upper"),
        ([-np.inf], [1], "lower must be finite"),
        (["a"], [1], "lower must be an array of numbers"),
        ([0, 0], [0, 0], "row_norm must be positive"),
    ],
)
def test_box_refused(lower, upper, words):
    with pytest.raises(OptionError, match=words):
        Bounds.from_box(lower, upper)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array, sp.csc_matrix, pd.DataFrame])
def test_from_data_warns_and_says_so(kind):
    X = np.array([[3.0, 4.0], [1.0, 0.0]])
    with pytest.warns(PrivacyWarning, match="not private"):
        bounds = Bounds.unsafe_from_data(kind(X), [1, -7])
    assert (bounds.row_norm, bounds.offset, bounds.from_data) == (5.0, 7.0, True)


def test_from_data_without_records():
    with pytest.warns(PrivacyWarning):
        assert Bounds.unsafe_from_data(np.zeros((0, 3)), np.zeros(0)).row_norm == 1.0
