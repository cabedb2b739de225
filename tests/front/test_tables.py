"""From a table to rows: the same from every source, record by record, within the public bound."""

import csv
import datetime
import sys
import warnings
from fractions import Fraction

import cvxpy as cp
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cvxqop
from cvxqop.errors import OptionError, PrivacyWarning, ProblemError
from cvxqop.tables import Category, Date, Number

PAY = {"epsilon": 1.0, "delta": 1e-6}
TABLE = {
    "age": ["30", " 53 ", "NA", "120"],
    "sex": ["F", "female", "M", "M"],
    "region": ["N", "E", "Mars", ""],
    "income": ["$45,000", "", "100000", "-$5"],
    "joined": ["2020-01-01", "2020-01-06", "2020-01-11", "soon"],
    "member": ["yes", "FALSE", "0", "True"],
    "spend": ["1,250", "0", "2500", "9999"],
}
SCHEMA = cvxqop.Schema(
    {
        "age": Number(16, 90, missing=53),
        "sex": Category({"F": ["female"], "M": []}),
        "region": Category(["N", "E", "S"], missing="own", unknown="own"),
        "income": Number(0, 100_000, missing="own"),
        "joined": Date("2020-01-01", "2020-01-11", missing="2020-01-11"),
        "member": bool,
    },
    target={"spend": (0, 2_500)},
)
X = np.array([
    [(2 * 30 - 106) / 74, 1, 0, 1, 0, 0, 0, 0, -0.1, 0, -1, 0, 1],
    [0, 1, 0, 0, 1, 0, 0, 0, 0, 1, 0, 1, 0],
    [0, 0, 1, 0, 0, 0, 0, 1, 1, 0, 1, 1, 0],
    [1, 0, 1, 0, 0, 0, 1, 0, -1, 0, 1, 0, 1],
])  # fmt: skip
Y = np.array([0.0, -1, 1, 1])
NAMES = (
    "age", "sex = F", "sex = M", "region = N", "region = E", "region = S", "region missing",
    "region other",
    "income", "income missing", "joined", "member = False", "member = True",
)  # fmt: skip


def written(folder, table=TABLE, name="table.csv", **options):
    path = folder / name
    pd.DataFrame(table).to_csv(path, index=False, **options)
    return path


def test_rows_known_by_hand(tmp_path):
    rows = SCHEMA.read(written(tmp_path))
    assert rows.names == SCHEMA.names == NAMES
    assert np.allclose(rows.X, X, atol=1e-15)
    assert np.array_equal(rows.y, Y)
    assert rows.bounds == cvxqop.Bounds(row_norm=rows.bounds.row_norm, offset=1.0)
    assert rows.X.flags.c_contiguous
    assert repr(rows) == "Records(X, y)"


def test_every_source_gives_the_same(tmp_path):
    frame = pd.DataFrame(TABLE)
    frame.to_parquet(tmp_path / "table.parquet")
    sources = [
        TABLE, frame, frame.astype("category"), frame.astype(object), pl.DataFrame(TABLE),
        pa.table(TABLE), tmp_path / "table.parquet", str(written(tmp_path)),
        frame.assign(comment="x", other=1.5), frame[list(TABLE)[::-1]],
        {name: np.array(cells) for name, cells in TABLE.items()},
    ]  # fmt: skip
    for source in sources:
        rows = SCHEMA.read(source)
        assert np.allclose(rows.X, X, atol=1e-15)
        assert np.array_equal(rows.y, Y)


def test_typed_columns_give_what_their_texts_give(tmp_path):
    schema = cvxqop.Schema(
        {"n": Number(0, 4), "when": Date("2020-01-01", "2020-01-05"), "flag": bool, "k": [1, 2, 3]},
        missing="own",
    )
    days = [datetime.date(2020, 1, 2), None, datetime.date(2020, 1, 4)]
    typed = {"n": [1, None, 3], "when": days, "flag": [True, None, False], "k": [1, None, 3]}
    texts = {name: ["" if c is None else str(c) for c in cells] for name, cells in typed.items()}
    expected = schema.read(texts).X
    assert np.isfinite(expected).all()
    frame, nullable = pd.DataFrame(typed), pd.DataFrame(typed).convert_dtypes()
    moments = frame.assign(when=pd.to_datetime(frame["when"]))
    zoned = moments.assign(when=moments["when"].dt.tz_localize("UTC"))
    arrow = pa.table(typed)
    nano = arrow.set_column(1, "when", arrow["when"].cast(pa.timestamp("ns", tz="UTC")))
    pyarrow.parquet.write_table(nano, tmp_path / "nano.parquet")
    backed = nano.to_pandas(types_mapper=pd.ArrowDtype)
    for source in (typed, frame, nullable, moments, zoned, backed, arrow, nano, arrow.to_pandas(),
                   pl.DataFrame(typed), pl.DataFrame(moments), pl.DataFrame(zoned),
                   tmp_path / "nano.parquet"):  # fmt: skip
        assert np.allclose(schema.read(source).X, expected, atol=1e-12)


CELLS = st.sampled_from([
    "", "NA", "5", "-1e308", "1e400", "inf", "x", "N", "$7", "٣", "2020-01-02", "yes", "\x00", '"',
]) | st.floats() | st.integers() | st.none() | st.text(max_size=3)  # fmt: skip
RECORDS = st.lists(st.lists(CELLS, min_size=7, max_size=7), max_size=6)


CROSSED = cvxqop.Schema(
    {"age": (16, 90), "sex": ["F", "M"], "region": ["N", "E", "S"], "income": (0, 1)},
    target={"spend": (0, 2_500)}, missing="own", unknown="own",
    interactions=[("age", "region"), ("income", "sex")],
)  # fmt: skip


@given(RECORDS, st.sampled_from([(SCHEMA, 6), (CROSSED, 6)]))
def test_each_row_depends_on_its_record_alone_and_keeps_to_the_bound(records, read_by):
    schema, squared = read_by

    def read(some):
        return schema.read({name: [r[i] for r in some] for i, name in enumerate(TABLE)})

    rows = read(records)
    assert rows.X.shape == (len(records), len(schema.names))
    for i, record in enumerate(records):
        alone = read([record])
        assert np.array_equal(alone.X[0], rows.X[i], equal_nan=True)
        assert np.array_equal(alone.y[0], rows.y[i], equal_nan=True)
        entries = [*rows.X[i], rows.y[i]]
        assert np.isnan(entries).all() or not np.isnan(entries).any()
        if not np.isnan(entries).any():
            assert sum(Fraction(entry) ** 2 for entry in rows.X[i]) <= squared
            assert abs(rows.y[i]) <= rows.bounds.offset


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 7, 9, 10, 1000])
def test_the_row_norm_is_an_upper_bound_in_floating_point(count):
    schema = cvxqop.Schema({str(i): (0, 1) if i % 2 else ["a", "b", "c"] for i in range(count)})
    norm = schema.bounds.row_norm
    assert Fraction(norm) ** 2 >= count
    assert norm <= np.nextafter(np.sqrt(count), np.inf)
    assert schema.bounds.offset is None


def test_the_noise_is_that_of_four_columns_and_not_of_eight_entries():
    """R² is 4 + ½² against 8 + 1² of a table that was coded to ±1 by hand: 4.25/9 of the noise."""
    schema = cvxqop.Schema(
        {"age": (16, 90), "sex": ["F", "M"], "region": ["N", "E", "S", "W"], "income": (0, 2e5)},
        target={"spend": (0, 5_000)},
    )
    cells = {"age": ["20"], "sex": ["F"], "region": ["W"], "income": ["5"], "spend": ["7"]}
    rows = schema.read({name: own * 8000 for name, own in cells.items()})

    def noise(A, **private):
        w, b = cp.Variable(A.shape[1]), cp.Variable()
        loss = 0.5 * cp.sum_squares(A @ w + b - rows.y)
        return cvxqop.plan(cp.Problem(cp.Minimize(loss)), **private, **PAY).guarantee.mechanism

    signs = np.ones((8000, 8))
    bounds = cvxqop.Bounds(row_norm=8**0.5, offset=1.0)
    by_hand = noise(signs, private=[signs, rows.y], bounds=bounds).scale
    ratio = noise(rows.X, private=rows).scale / by_hand
    assert ratio <= 0.56
    assert ratio == pytest.approx(4.25 / 9, rel=1e-3)


def line(n=400):
    rng = np.random.default_rng(5)
    age, group = rng.uniform(20, 80, n), rng.integers(3, size=n)
    pay = 1000 + 20 * age + np.array([0, 300, -300])[group] + rng.normal(0, 50, n)
    return {"age": age, "group": [f"g{k}" for k in group], "pay": pay}


LINE = cvxqop.Schema({"age": (20, 80), "group": ["g0", "g1", "g2"]}, target={"pay": (0, 4_000)})


def fitted(rows, **options):
    w, b = cp.Variable(len(rows.names)), cp.Variable()
    loss = cp.sum_squares(rows.X @ w + b - rows.y) + 1e-3 * cp.sum_squares(w)
    cvxqop.privatize(cp.Problem(cp.Minimize(loss)), private=rows, **{**PAY, "seed": 1, **options})
    return w.value, b.value


def test_coefficients_and_predictions_are_in_the_units_of_the_table():
    table = line()
    w, b = fitted(LINE.read(table), epsilon=1e6)
    found = LINE.coefficients(w, b)
    assert found["age"] == pytest.approx(20, rel=0.03)
    assert found["group = g1"] - found["group = g2"] == pytest.approx(600, rel=0.03)
    assert found["group = g0"] == 0
    assert found.intercept + found["group = g0"] == pytest.approx(1000, rel=0.05)
    new = {"age": [30, 55.5, "?"], "group": ["g1", "g2", "g0"]}
    predicted = LINE.predict(new, w, b)
    by_hand = found.intercept + 30 * found["age"] + found["group = g1"]
    assert predicted[0] == pytest.approx(by_hand, rel=1e-12)
    assert predicted[1] == pytest.approx(1000 + 20 * 55.5 - 300, rel=0.05)
    assert np.isnan(predicted[2])
    assert list(found.to_dict()) == ["intercept", *LINE.names]
    assert "age, per unit" in str(found)
    with pytest.raises(KeyError):
        _ = found["group"]


def test_the_map_to_units_is_the_prediction_in_words():
    """Whatever the coding: intercept + Σ slope · value + Σ effects is the prediction."""
    rng = np.random.default_rng(2)
    theta, b = rng.standard_normal(len(NAMES)), 0.3
    c = SCHEMA.coefficients(theta, b)
    raw = [
        30 * c["age"]
        + c["region = N"]
        + 45_000 * c["income"]
        + 0 * c["joined"]
        + c["member = True"],
        53 * c["age"] + c["region = E"] + c["income missing"] + 5 * c["joined"],
        53 * c["age"] + c["sex = M"] + c["region other"] + 100_000 * c["income"] + 10 * c["joined"],
    ]
    record = {name: cells[:3] for name, cells in TABLE.items() if name != "spend"}
    expected = 1250 + 1250 * (X[:3] @ theta + b)
    assert np.allclose(SCHEMA.predict(record, theta, b), expected, rtol=1e-12)
    assert np.allclose(c.intercept + np.array(raw), expected, rtol=1e-12)
    T, t = SCHEMA.unit_map()
    assert np.allclose(T @ [*theta, b] + t, [*c.values, c.intercept], rtol=1e-12)


def test_interactions_are_products_within_the_bound_and_in_units():
    names = ["age", "sex", "region", "income", "joined"]
    columns = {
        "age": (16, 90),
        "sex": Category({"F": ["female"], "M": []}),
        "region": Category(["N", "E", "S"], unknown="own"),
        "income": Number(0, 100_000, missing="own"),
        "joined": ("2020-01-01", "2020-01-11"),
    }
    pairs = [("age", "age"), ("age", "sex"), ("region", "sex"), ("income", "region"),
             ("joined", "income"), ["income", "sex"]]  # fmt: skip
    schema = cvxqop.Schema(columns, interactions=pairs, target={"spend": (0, 2_500)})
    plain = cvxqop.Schema(columns, target={"spend": (0, 2_500)})
    assert Fraction(schema.bounds.row_norm) ** 2 >= 11
    assert schema.bounds.row_norm == pytest.approx(11**0.5)
    assert "5 columns, 35 entries, row norm at most √11" in str(schema)
    assert "income missing × region other" in schema.names
    X, Z = schema.read(TABLE).X, plain.read(TABLE).X
    assert np.allclose(X[:2, :10], Z[:2])
    assert np.allclose(X[:2, 10], Z[:2, 0] ** 2)
    assert np.allclose(X[:2, 13:21:2], Z[:2, 3:7] * Z[:2, 1:2])
    assert (np.square(X[:2]).sum(axis=1) <= 11).all()

    def raw(age, sex, region, income, days):  # what the coefficients are multiplied with
        parts = {
            "age": [age], "sex": [0, sex == "M"], "region": [0, *(region == w for w in "ESX")],
            "income": [0, 1] if income is None else [income, 0], "joined": [days],
        }  # fmt: skip
        products = (np.kron(parts[first], parts[second]) for first, second in pairs)
        return np.concatenate([*(np.array(parts[n], float) for n in names), *products])

    theta, b = np.random.default_rng(3).standard_normal(35), 0.2
    found = schema.coefficients(theta, b)
    for record in ((30, "F", "N", 45_000.0, 0), (20, "M", "X", None, 5), (80, "M", "S", 10.0, 10)):
        age, sex, region, income, days = record
        cells = {"age": [age], "sex": [sex], "region": [region], "income": [income],
                 "joined": [datetime.date(2020, 1, 1 + days)]}  # fmt: skip
        expected = schema.predict(cells, theta, b)[0]
        assert found.intercept + found.values @ raw(*record) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize(
    ("pairs", "text"),
    [
        ("age", "list of pairs"),
        (("age", "sex"), "list of pairs"),
        ([("age", "pay")], "list of pairs"),
        ([("age", "sex"), ("sex", "age")], "twice"),
        ([("sex", "sex")], "not multiplied with itself"),
    ],
)
def test_interactions_that_are_none(pairs, text):
    with pytest.raises(OptionError, match=text):
        cvxqop.Schema({"age": (0, 1), "sex": ["F", "M"]}, interactions=pairs)


def test_the_release_is_that_of_the_arrays_coded_by_hand():
    table = line()
    rows = LINE.read(table)
    Z = np.column_stack([
        (np.array(table["age"]) - 50) / 30,
        *(np.array(table["group"]) == g for g in ("g0", "g1", "g2")),
    ]).astype(float)  # fmt: skip
    y = (table["pay"] - 2000) / 2000
    by_hand = cvxqop.Records(X=Z, y=y, bounds=cvxqop.Bounds(row_norm=2**0.5, offset=1.0))
    by_hand.names = LINE.names
    assert np.allclose(fitted(rows)[0], fitted(by_hand)[0], rtol=1e-9)
    listed = {"private": [rows.X, rows.y], "bounds": rows.bounds, "nonfinite": "zero"}
    w, b = cp.Variable(4), cp.Variable()
    loss = cp.sum_squares(rows.X @ w + b - rows.y) + 1e-3 * cp.sum_squares(w)
    cvxqop.privatize(cp.Problem(cp.Minimize(loss)), **listed, seed=1, **PAY)
    assert np.array_equal(w.value, fitted(rows)[0])


def test_a_dropped_record_counts_and_contributes_nothing():
    table = {name: list(cells) for name, cells in line(300).items()}
    whole = {name: cells[:299] for name, cells in table.items()}
    releases = []
    for name, cell in (("age", ""), ("group", "g9"), ("pay", "secret")):
        spoiled = {**table, name: [*table[name][:299], cell]}
        rows = LINE.read(spoiled)
        assert np.isnan(rows.X[299]).all()
        assert np.isnan(rows.y[299])
        releases.append(fitted(rows, adjacency="add_remove"))
    without = fitted(LINE.read(whole), adjacency="add_remove")
    for w, b in releases:
        assert np.allclose(w, without[0], rtol=1e-9)
        assert b == pytest.approx(without[1], rel=1e-9)
    for n in (0, 1):  # and where there is hardly anybody
        rows = LINE.read({name: cells[:n] for name, cells in spoiled.items()})
        assert np.isfinite(fitted(rows, adjacency="add_remove")[0]).all()


def test_two_classes_are_labels_and_more_are_columns():
    table = line()
    two = cvxqop.Schema({"age": (20, 80)}, target={"group": Category(["g0", "g1"], unknown="g1")})
    rows = two.read(table)
    assert set(rows.y) == {-1.0, 1.0}
    w, b = cp.Variable(1), cp.Variable()
    term = cvxqop.glm_loss("logistic", rows.X, rows.y, w, intercept=b)
    cvxqop.privatize(cp.Problem(cp.Minimize(term)), private=rows, **PAY)
    predicted = two.predict({"age": [30, None]}, [10.0], 20.0)
    assert predicted.tolist() == ["g1", None]
    assert two.margins({"age": [35]}, [10.0], 20.0)[0] == pytest.approx(15)
    assert "on the margin of g1" in str(two.coefficients(w.value, b.value))
    three = cvxqop.Schema({"age": (20, 80)}, target={"group": ["g0", "g1", "g2"]})
    rows = three.read({**table, "group": ["g7", *table["group"][1:]]})
    assert rows.y.shape == (400, 3)
    assert (rows.y[1:].sum(axis=1) == 1).all()
    T = rows.X @ (C := cp.Variable((1, 3))) + (c := cp.Variable(3))
    loss = cp.sum(cp.log_sum_exp(T, axis=1)) - cp.sum(cp.multiply(rows.y, T))
    cvxqop.privatize(cp.Problem(cp.Minimize(loss + cp.sum_squares(C))), private=rows, **PAY)
    assert three.coefficients(C.value, c.value).values.shape == (1, 3)
    one_hot = three.predict({"age": [80, 20, "x"]}, np.array([[1.0, 0, -1]]), [0, 0.5, 0])
    assert one_hot.tolist() == ["g0", "g2", None]


def test_persons_and_rows_without_an_id():
    schema = cvxqop.Schema({"age": (0, 10)}, target={"pay": (0, 4)}, person="id", rows_per_person=2)
    table = {"age": [1, 2, 3, 4], "pay": [1, 1, 1, 1], "id": ["a", 7, None, 7.0]}
    rows = schema.read(table)
    assert rows.persons == ["a", "7", "", "7"]
    assert np.isnan(rows.X).any(axis=1).tolist() == [False, False, True, False]
    w = cp.Variable(1)
    problem = cp.Problem(cp.Minimize(cp.sum_squares(rows.X @ w - rows.y)))
    assert cvxqop.plan(problem, private=rows, **PAY).records == 3
    assert "person" in str(cvxqop.explain(problem, rows))
    with pytest.raises(OptionError, match="rows_per_person is missing"):
        cvxqop.Schema({"age": (0, 10)}, person="id")
    with pytest.raises(OptionError, match="other columns"):
        cvxqop.Schema({"age": (0, 10)}, person="age", rows_per_person=1)


SECRET = "Ann-4711"


def told(call):
    """What the error of a call says; nothing hangs on it, and no frame below the verb is kept."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(cvxqop.CvxqopError) as caught:
            call()
    assert caught.value.__context__ is None
    assert [frame.name for frame in caught.traceback[-2:]] == ["<lambda>", "wrapper"]
    return str(caught.value)


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (f"{SECRET},30,5\n", "no column 'age'"),  # no header: the first record takes its place
        (f"age,{SECRET}\n1,2\n", "no column 'pay'"),
        (f"age,pay,age\n1,2,{SECRET}\n", "Several columns of the table are called 'age'"),
        (f'age,pay\n1,"{SECRET}{"x" * 140_000}\n', "Is a quote not closed"),
        ("", "no column 'age'"),
    ],
)
def test_errors_name_declared_columns_and_no_cell(tmp_path, lines, words):
    path = tmp_path / "table.csv"
    path.write_text(lines)
    schema = cvxqop.Schema({"age": (0, 100)}, target={"pay": (0, 9)})
    text = told(lambda: schema.read(path))
    assert words in text
    assert SECRET not in text


def test_frames_are_refused_without_their_cells():
    schema = cvxqop.Schema({"age": (0, 100)})
    twice = pd.DataFrame([[1, SECRET]], columns=["age", "age"])
    odd = {"age": np.array([[SECRET]])}
    short = {"age": [1, 2], "pay": [SECRET]}
    both = cvxqop.Schema({"age": (0, 100)}, target={"pay": (0, 9)})
    lazy, other = pl.DataFrame({"age": [SECRET]}).lazy(), pd.DataFrame({SECRET: [1]})
    for read, table, words in (
        (schema, twice, "Several columns"), (schema, odd, "can be read"),
        (both, short, "lengths"), (schema, lazy, "collect"), (schema, [SECRET], "not list"),
        (schema, other, "no column 'age'"), (schema, "no.csv", "no file"),
        (schema, {"age": SECRET}, "can be read"), (schema, {"age": 3}, "can be read"),
    ):  # fmt: skip
        text = told(lambda read=read, table=table: read.read(table))
        assert words in text
        assert SECRET not in text


def test_cells_of_any_kind_are_read_in_silence(tmp_path):
    path = tmp_path / "odd.csv"
    path.write_bytes(
        b'age,pay\n\n"1\xff",3,5\n2\n"a\nb",1\n\x00,,\n' + SECRET.encode() + b",2\n5,5\n"
    )
    schema = cvxqop.Schema({"age": (0, 10)}, target={"pay": (0, 10)})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rows = schema.read(path)
    assert np.isnan(rows.y).tolist() == [True] * 5 + [False]


WRITTEN = st.text(st.characters(codec="utf-8"), max_size=4) | st.sampled_from(['"', "\n", "a,b"])


@given(st.lists(st.lists(WRITTEN, min_size=7, max_size=7), max_size=5))
def test_a_file_gives_what_its_cells_give(tmp_path_factory, records):
    path = tmp_path_factory.mktemp("written") / "table.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([list(TABLE), *records])
    rows = SCHEMA.read(path)
    cells = {name: [record[i] for record in records] for i, name in enumerate(TABLE)}
    assert np.array_equal(rows.X, SCHEMA.read(cells).X, equal_nan=True)


def test_without_pyarrow_the_extra_is_named(monkeypatch, tmp_path):
    pd.DataFrame(TABLE).to_parquet(tmp_path / "table.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(ImportError, match=r"cvxqop\[parquet\]"):
        SCHEMA.read(tmp_path / "table.parquet")
    (tmp_path / "damaged.parquet").write_bytes(b"PAR1" + SECRET.encode())
    monkeypatch.undo()
    assert SECRET not in told(lambda: SCHEMA.read(tmp_path / "damaged.parquet"))


def test_files_as_people_have_them(tmp_path):
    table = {" town": ["Zürich", "Genève"], "rent ": ["1.200,5", "900"]}
    schema = cvxqop.Schema(
        {"town": ["Zürich", "Genève"]}, target={"rent": Number(0, 2401, decimal=",")}
    )
    path = written(tmp_path, table, sep=";", encoding="cp1252")
    rows = schema.read(path, encoding="cp1252", delimiter=";")
    assert rows.X.tolist() == [[1, 0], [0, 1]]
    assert rows.y[0] == 0
    assert np.isnan(schema.read(path, delimiter=";").X).all()  # other bytes are other words
    bom = written(tmp_path, {"town": ["Genève"], "rent": ["0"]}, encoding="utf-8-sig")
    assert schema.read(bom).X.tolist() == [[0, 1]]
    for wrong in ({"encoding": "klingon"}, {"delimiter": "ab"}):
        with pytest.raises(OptionError, match="encoding must be"):
            schema.read(path, **wrong)


def test_counts_are_for_the_holder_of_the_data():
    with pytest.warns(PrivacyWarning, match="for your eyes only") as caught:
        counts = SCHEMA.unsafe_counts(TABLE)
    assert caught[0].filename == __file__
    assert counts["age"] == {"read": 2, "beyond the range": 1, "missing": 1}
    assert counts["region"] == {"read": 2, "unknown": 1, "missing": 1}
    assert counts["joined"] == {"read": 3, "beyond the range": 0, "missing": 1}
    assert list(counts) == list(TABLE)


def test_rules_of_the_schema_are_for_what_is_written_in_short():
    columns = {"age": (0, 10), "when": ("2020-01-01", "2020-01-02"), "who": ["a", "b"],
               "pay": Number(0, 1, missing="drop")}  # fmt: skip
    own = cvxqop.Schema(columns, missing="own", unknown="own", target={"cost": (0, 1)})
    assert own.names == (
        "age", "age missing", "when", "when missing", "who = a", "who = b", "who missing",
        "who other", "pay",
    )  # fmt: skip
    assert own.bounds.row_norm == 2.0
    text = str(own)
    assert "4 columns, 9 entries, row norm at most √4" in text
    assert text.count("missing: dropped") == 2  # pay, and the target
    assert str(cvxqop.Schema({"a": (0, 1)})).endswith("missing: dropped")


@pytest.mark.parametrize(
    ("columns", "target", "text"),
    [
        ({}, None, "must be a dict"),
        ([("age", (0, 1))], None, "must be a dict"),
        ({1: (0, 1)}, None, "must be a text"),
        ({"age": 5}, None, "column 'age' must be declared as"),
        ({"age": (0, 1, 2)}, None, "column 'age' must be declared as"),
        ({"age": (1, 0)}, None, "column 'age': Number: low must be below high"),
        ({"sex": ("F", "M")}, None, "levels of a category are a list"),
        ({"sex": float}, None, "must be declared as"),
        ({"a": (0, 1)}, {"a": (0, 1)}, "other columns"),
        ({"intercept": (0, 1)}, None, "would be called 'intercept'"),
        ({"a": ["x", "y"], "a = y": (0, 1)}, None, "would be called 'a = y'"),
        ({"a": (0, 1)}, {"b": (0, 1), "c": (0, 1)}, "one column"),
        ({"a": (0, 1)}, {"b": ("2020-01-01", "2021-01-01")}, "numbers or a category"),
        ({"a": (0, 1)}, {"b": Number(0, 1, missing="own")}, "numbers or a category"),
    ],
)
def test_schemas_that_are_none(columns, target, text):
    with pytest.raises(OptionError, match=text):
        cvxqop.Schema(columns, target=target)


def test_coefficients_of_another_shape_are_refused():
    for theta, b in (([1.0], 0), (np.ones(4), [1, 2]), (None, 0), (np.ones(4), None), ("x", 0)):
        with pytest.raises(OptionError, match="theta must have 4 coefficients"):
            LINE.coefficients(theta, b)
    with pytest.raises(OptionError, match="drop"):
        cvxqop.Schema({"a": (0, 1)}, missing="mean")
    with pytest.raises(ProblemError, match="no column 'group'"):
        LINE.predict({"age": [1]}, np.ones(4))
