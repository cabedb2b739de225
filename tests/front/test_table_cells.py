"""What one cell of a table says: values known by hand, and nothing that raises."""

import datetime
import decimal
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cvxqop.errors import OptionError
from cvxqop.tables import Category, Date, Number
from cvxqop.tables.cells import number_in, word_in

ODD = [
    None, "", " ", "NA", "n/a", "null", "inf", "-inf", "nan", "1e400", "1_000", "0x10", "٣", "１２",
    "½", "12abc", "45,5", "1,2,3", "1,23", "12,3456", "--5", "-$-5", "+-5", "$$5", "(5)", "5%",
    "e5", ".", "5 kg", "1 234,567", "True", float("inf"), float("nan"), np.float64("-inf"), 10**400,
    10**5000, decimal.Decimal("sNaN"), decimal.Decimal("1e999"), complex(1, 0), b"5", [5],
    {"a": 5}, object(), pd.NA, pd.NaT, datetime.date(2020, 1, 1), np.datetime64("NaT"),
    np.datetime64(3, "ns"), np.timedelta64(3, "D"), pd.Timedelta(days=3),
]  # fmt: skip


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        ("45000", 45000), ("$45,000", 45000), ("-$45,000.50", -45000.5), ("$-45,000", -45000),
        ("−3", -3), (" + 7 ", 7), ("1e3", 1000), ("1.5E-2", 0.015), (".5", 0.5), ("5.", 5),
        ("1 234 567", 1234567), ("1'234'567.5", 1234567.5), ("12 345", 12345),
        ("12\u202f345", 12345),
        ("12 €", 12), ("£12", 12), (3, 3), (2.5, 2.5), (True, 1), (np.False_, 0), (np.int8(-3), -3),
        (np.float32(0.5), 0.5), (decimal.Decimal("1.25"), 1.25), ("1e308", 1e308),
    ],
)  # fmt: skip
def test_numbers(cell, value):
    assert number_in(cell) == value


def test_what_is_no_finite_number_is_missing():
    assert not [i for i, cell in enumerate(ODD) if not math.isnan(number_in(cell))]


def test_units_and_decimal_marks_are_declared_and_not_guessed():
    weight = Number(0, 100, unit="kg")
    assert weight.read(["5 kg", "kg5", "5", "5 g", "$5"])[:3].tolist() == [5, 5, 5]
    assert np.isnan(weight.read(["5 g", "$5", "5 kg kg"])).all()
    european = Number(0, 1e6, decimal=",")
    assert european.read(["1.234,5", "12,5 €", "1.234"]).tolist() == [1234.5, 12.5, 1234.0]
    assert np.isnan(european.read(["1,234.5"])).all()


@pytest.mark.parametrize(
    ("cell", "word"),
    [
        (" N ", "N"), ("n", "n"), ("01", "01"), (1, "1"), (1.0, "1"), ("1.0", "1"), ("-2.00", "-2"),
        (np.int64(1), "1"), (np.float32(1), "1"), (0.5, "0.5"), (True, "True"), (np.True_, "True"),
        (decimal.Decimal("2"), "2"), ("", ""), (None, None), (float("nan"), None), (pd.NA, None),
        (pd.NaT, None), ([1], None), (b"N", None),
    ],
)  # fmt: skip
def test_words(cell, word):
    assert word_in(cell) == word


def test_a_number_that_Python_does_not_print_is_no_word():
    assert word_in(10**5000) is None


def test_a_cell_reads_alike_whatever_type_its_column_got_from_the_others():
    """pandas makes 1 to 1.0 where another cell is empty, and to "1" where another is a word."""
    answers = Category([1, 2, 3])
    count = Number(0, 9)
    columns = ([1, 2], [1, None], [1, "x"], ["1", "x"], ["1.0", ""])
    for column in (*map(pd.Series, columns), pd.Series([1, None], dtype="Int64")):
        assert answers.read(column.tolist())[0] == 0
        assert count.read(column.tolist())[0] == 1


def test_categories():
    region = Category(["N", "E", "S"], missing="own", unknown="own")
    cells = ["E", " N ", "n", "Mars", "", None, "NA", pd.NA]
    assert region.code(region.read(cells)).argmax(axis=1).tolist() == [1, 0, 4, 4, 3, 3, 3, 3]
    public = Category(["N", "E", "S"], missing="S", unknown="N")
    assert public.code(public.read(["x", ""])).argmax(axis=1).tolist() == [0, 2]
    dropped = Category(["N", "E", "S"])
    assert np.isnan(dropped.code(dropped.read(["x", ""]))).all()
    namibia = Category(["NA", "ZA"])  # a declared level is no missing one
    assert namibia.code(namibia.read(["NA", "ZA", "null"]))[:2].tolist() == [[1, 0], [0, 1]]
    one_own = Category(["a", "b"], unknown="own")
    assert one_own.code(one_own.read(["a", "b", "c"])).tolist() == np.eye(3).tolist()


def test_numbers_with_an_entry_for_missing_ones():
    income = Number(0, 200, missing="own")
    assert income.code(income.read([200, "", 50])).tolist() == [[1, 0], [0, 1], [-0.5, 0]]
    assert Number(0, 200, missing=300).code(np.array([np.nan])).tolist() == [[1.0]]


def test_dates():
    joined = Date("2020-01-01", datetime.date(2020, 1, 11))
    day = datetime.datetime(2020, 1, 6)
    cells = ["2020-01-06", " 20200106 ", "2020-01-06T00:00", "2020-01-06T02:00+02:00", day,
             day.date(), pd.Timestamp(day), pd.Timestamp(day, tz="UTC"),
             np.datetime64("2020-01-06"), np.datetime64("2020-01-06", "ns")]  # fmt: skip
    assert joined.read(cells).tolist() == [5.0] * len(cells)
    ends = joined.read(["2020-01-06", "1066-01-01", "9999-12-31"])
    assert joined.code(ends).ravel().tolist() == [0, -1, 1]
    assert np.isnan(joined.read(["06/01/2020", "2020-02-30", "", 5, None, pd.NaT, "2020"])).all()
    british = Date("2020-01-01", "2020-12-31", format="%d/%m/%Y", missing="2020-01-03")
    assert british.read(["05/01/2020", "5/1/2020", "2020-01-05"])[:2].tolist() == [4.0, 4.0]
    assert british.code(np.array([np.nan])) == british.code(np.array([2.0]))
    # Moments of NumPy beyond the dates of Python, and units of every kind.
    for unit in ("Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns"):
        moments = np.array(["1973-01-04", "NaT"], dtype=f"datetime64[{unit}]")
        expected = (moments[0].astype("datetime64[D]") - np.datetime64("2020-01-01")).astype(int)
        found = joined.read(moments)
        assert found[0] == pytest.approx(expected, abs=1e-6)
        assert np.isnan(found[1])
    far = np.array([2**62], dtype="datetime64[D]")
    assert joined.code(joined.read(far)).tolist() == [[1.0]]


@given(st.lists(st.text() | st.floats() | st.integers() | st.none() | st.booleans() | st.binary(),
                max_size=5))  # fmt: skip
def test_no_cell_raises_and_every_row_is_within_the_bound(cells):
    columns = [
        Number(-3, 1e6), Number(0.1, 0.3, missing="own"), Number(1, 2, missing=1.7),
        Date("1900-01-01", "2100-01-01", missing="own"),
        Date("2000-01-01", "2000-01-02", "%d.%m.%y"),
        Category(["a", "b", "c"], missing="own", unknown="own"), Category([0, 1], unknown=0),
    ]  # fmt: skip
    for column in [*columns, *(column.ruled("own", "own") for column in columns)]:
        for given_as in (cells, [*cells, *ODD]):
            entries = column.code(column.read(given_as))
            assert entries.shape == (len(given_as), len(column.features("x")))
            assert (np.isnan(entries).all(axis=1) | (np.square(entries).sum(axis=1) <= 1)).all()


@given(st.floats(-1e70, 1e70), st.floats(-1e70, 1e70), st.floats())
def test_numbers_of_any_range_are_within_one(a, b, value):
    try:
        number = Number(min(a, b), max(a, b))
    except OptionError:
        assert max(a, b) - min(a, b) < 1e-70
        return
    entry = number.code(number.read([value]))[0, 0]
    assert abs(entry) <= 1 or not math.isfinite(value)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: Number(1, 1), "low must be below high"),
        (lambda: Number("1", 2), "low must be a number, not str"),
        (lambda: Number(0, float("inf")), "high must lie between"),
        (lambda: Number(0, 1, missing="mean"), '"drop", "own" or a public value'),
        (lambda: Number(0, 1, missing=True), "missing must be a number"),
        (lambda: Number(0, 1, decimal=";"), "decimal"),
        (lambda: Number(0, 1, unit="10kg"), "unit"),
        (lambda: Date("2020", "2021-01-01"), "low must be a date"),
        (lambda: Date("2021-01-01", "2020-01-01"), "low must be before high"),
        (lambda: Date("2020-01-01", "2021-01-01", missing="never"), "missing must be a date"),
        (lambda: Date("2020-01-01", "2021-01-01", format=3), "format"),
        (lambda: Category("FM"), "must be a list"),
        (lambda: Category(pd.Series(["F", "M"]).unique()), "never read from the data"),
        (lambda: Category(["F"]), "two levels or more"),
        (lambda: Category(["1", 1.0]), "each given once"),
        (lambda: Category(["F", None]), "each given once"),
        (lambda: Category({"F": ["x"], "M": ["x"]}), "share a spelling"),
        (lambda: Category({"F": "f", "M": "m"}), "spellings of 'F'"),
        (lambda: Category(["F", "M"], unknown="X"), "public value"),
    ],
)  # fmt: skip
def test_declarations_that_are_none(make, text):
    with pytest.raises(OptionError, match=text):
        make()
