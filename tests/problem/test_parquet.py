"""Columns of Parquet files are the float64 arrays of their numbers, read once a pass, or refused by
name; whatever happens to a file, no message holds a number of its rows."""

import copy
import dataclasses
import datetime
import decimal
import os
import pickle
import re
import traceback
from concurrent.futures import ThreadPoolExecutor

import cvxpy as cp
import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import cvxqop
from cvxqop.errors import OptionError, ProblemError
from cvxqop.problem.records import parquet_reader
from cvxqop.problem.records.blocks import as_records

N, GROUP = 1000, 170


def numbers():
    """Known numbers (n, 3) and targets, exact in single precision."""
    rng = np.random.default_rng(0)
    return rng.integers(-99, 99, (N, 3)) / 8.0, rng.integers(-99, 99, N) / 4.0


def write(path, columns, group=GROUP, **options):
    parquet.write_table(pa.table(columns), path, row_group_size=group, **options)
    return path


@pytest.fixture
def small_batches(monkeypatch):
    """A row group is several batches of 42 rows; the last 85 rows and a batch are kept."""
    monkeypatch.setattr(parquet_reader, "BATCH_ENTRIES", 128)
    monkeypatch.setattr(parquet_reader, "KEPT_ENTRIES", 256)
    monkeypatch.setattr(parquet_reader, "BLOCK_ROWS", 1)


@pytest.fixture
def file(tmp_path):
    X, y = numbers()
    columns = {f"x{j}": X[:, j].astype("f4") for j in range(3)}
    return write(tmp_path / "people.parquet", {**columns, "y": y, "town": ["A"] * N})


@pytest.fixture
def folder(tmp_path):
    """Three files in the order of their names, one without a row, beside what is skipped."""
    X, y = numbers()
    place = tmp_path / "folder"
    place.mkdir()
    for name, rows in {"b": slice(400, N), "a": slice(0, 400), "ab": slice(0, 0)}.items():
        write(place / name, {"x1": X[rows, 1], "y": y[rows], "x0": X[rows, 0]})
    (place / "_SUCCESS").write_text("")
    (place / ".crc").write_text("")
    return place


def counted(monkeypatch):
    """The row groups that are begun, in order."""
    begun, begin = [], parquet_reader.Reader._begin
    monkeypatch.setattr(
        parquet_reader.Reader,
        "_begin",
        lambda self, group: begun.append(group) or begin(self, group),
    )
    return begun


def test_columns_are_arrays_of_numbers(file):
    X, y = cvxqop.parquet_columns(file, ["x2", "x0"], "y")
    known, target = numbers()
    assert (X.shape, X.ndim, len(X), X.dtype) == ((N, 2), 2, N, np.float64)
    assert (y.shape, y.ndim, len(y), y.dtype) == ((N,), 1, N, np.float64)
    for array, expected in ((X, known[:, [2, 0]]), (y, target)):
        rows = array[:]
        assert rows.dtype == np.float64
        assert rows.flags.c_contiguous
        np.testing.assert_array_equal(rows, expected)
        np.testing.assert_array_equal(array[-10:], expected[-10:])
        assert array[7:7].shape == expected[7:7].shape
    assert as_records(y, "y", (1, 2)).shape == (N, 1)


def test_all_columns_of_numbers_but_the_target(file):
    known, target = numbers()
    X, y = cvxqop.parquet_columns(str(file), target="x1")
    np.testing.assert_array_equal(X[:], np.column_stack([known[:, [0, 2]], target]))
    np.testing.assert_array_equal(y[:], known[:, 1])
    X, y = cvxqop.parquet_columns(file)
    assert X.shape == (N, 4)
    assert y is None


def test_the_index_of_pandas_is_no_feature(tmp_path):
    import pandas as pd

    frame = pd.DataFrame({"x": [1.0, 2.0]}, index=[7, 9])
    frame.to_parquet(tmp_path / "people")
    X, _ = cvxqop.parquet_columns(tmp_path / "people")
    np.testing.assert_array_equal(X[:], [[1.0], [2.0]])


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("seed", range(3))
def test_any_slice_of_a_folder_in_any_order(folder, seed):
    known, target = numbers()
    X, y = cvxqop.parquet_columns(folder, ["x0", "x1"], "y")
    assert X.shape == (N, 2)
    rng = np.random.default_rng(seed)
    for _ in range(60):
        start, stop = np.sort(rng.integers(0, N + 1, 2))
        np.testing.assert_array_equal(X[start:stop], known[start:stop, :2])
        np.testing.assert_array_equal(y[start:stop], target[start:stop])


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("size", [1, 13, 41, 42, 50, 85])
def test_a_pass_over_rows_and_targets_decodes_each_row_group_once(folder, size, monkeypatch):
    X, y = cvxqop.parquet_columns(folder, ["x0", "x1"], "y")
    begun = counted(monkeypatch)
    for start in range(0, N, size):
        assert len(X[start : start + size]) == len(y[start : start + size])
    assert begun == list(range(len(X.edges) - 1))


def test_edges_are_known_before_anything_is_read(folder, monkeypatch):
    begun = counted(monkeypatch)
    X, y = cvxqop.parquet_columns(folder, ["x0"], "y")
    expected = [0, 170, 340, 400, 570, 740, 910, 1000]
    assert X.edges.tolist() == y.edges.tolist() == expected
    assert X.edges.dtype == np.int64
    with pytest.raises(ValueError):
        X.edges[0] = 1
    assert begun == []


@pytest.mark.usefixtures("small_batches")
def test_threads_read_row_groups_side_by_side(folder):
    known, target = numbers()
    X, y = cvxqop.parquet_columns(folder, ["x0", "x1"], "y")

    def read(group):
        start, stop = X.edges[group : group + 2]
        blocks = [slice(a, min(a + 20, stop)) for a in range(start, stop, 20)]
        return [(X[block], y[block]) for block in blocks]

    with ThreadPoolExecutor(4) as pool:
        parts = [part for group in pool.map(read, range(len(X.edges) - 1)) for part in group]
    np.testing.assert_array_equal(np.concatenate([x for x, _ in parts]), known[:, :2])
    np.testing.assert_array_equal(np.concatenate([t for _, t in parts]), target)


def test_a_thread_does_not_disturb_what_another_reads(folder, monkeypatch):
    monkeypatch.setattr(parquet_reader, "BATCH_ENTRIES", 128)
    monkeypatch.setattr(parquet_reader, "KEPT_ENTRIES", 1)
    monkeypatch.setattr(parquet_reader, "BLOCK_ROWS", 1)
    known, _ = numbers()
    X, _ = cvxqop.parquet_columns(folder, ["x0", "x1"])
    begun = counted(monkeypatch)
    with ThreadPoolExecutor(1) as other:
        for start in range(0, 170, 10):
            here, there = slice(start, start + 10), slice(400 + start, 410 + start)
            np.testing.assert_array_equal(X[here], known[here, :2])
            np.testing.assert_array_equal(
                other.submit(X.__getitem__, there).result(), known[there, :2]
            )
    assert begun == [0, 3]


def test_what_travels_is_names(file):
    known, target = numbers()
    X, y = cvxqop.parquet_columns(file, ["x0", "x1"], "y")
    X[:500]
    pickled = pickle.dumps((X, y))
    assert len(pickled) < 2000
    other_X, other_y = pickle.loads(pickled)
    assert other_X._reader is other_y._reader
    np.testing.assert_array_equal(other_X[100:300], known[100:300, :2])
    np.testing.assert_array_equal(copy.deepcopy(y)[100:300], target[100:300])


TYPES = {
    "int8": pa.array([1, -2, 3], pa.int8()),
    "uint64": pa.array([1, 2**63, 3], pa.uint64()),
    "int64, missing": pa.array([2**60, None, 3], pa.int64()),
    "float16": pa.array(np.array([1.5, -2, 3], np.float16)),
    "float32, missing": pa.array([1.5, None, 3.0], pa.float32()),
    "float64": pa.array([1e300, -0.0, float("inf")]),
    "boolean": pa.array([True, False, True]),
    "boolean, missing": pa.array([True, None, False]),
    "decimal": pa.array([decimal.Decimal("1.25"), None, decimal.Decimal("-3.5")]),
    "all missing": pa.array([None, None, None], pa.float64()),
}


@pytest.mark.parametrize("name", TYPES)
def test_types_of_numbers(tmp_path, name):
    path = write(tmp_path / "file", {"x": TYPES[name]})
    X, _ = cvxqop.parquet_columns(path, ["x"])
    expected = [np.nan if v is None else float(v) for v in TYPES[name].to_pylist()]
    np.testing.assert_array_equal(X[:][:, 0], expected)


def test_a_target_of_booleans_is_one_of_labels(tmp_path):
    path = write(tmp_path / "file", {"x": [1.0, 2.0], "y": [True, False]})
    X, y = cvxqop.parquet_columns(path, ["x"], "y")
    assert y.dtype == bool
    theta = cp.Variable(1, value=[1.0])
    term = cvxqop.glm_loss("logistic", X, y, theta)
    assert float(term.value) == pytest.approx(np.log1p(np.exp(-1)) + np.log1p(np.exp(2)), rel=1e-14)


def test_names_with_dots_are_names(tmp_path):
    path = write(tmp_path / "file", {"a": [1.0], "a.b": [2.0], "a.b.c": [3.0]})
    X, y = cvxqop.parquet_columns(path, ["a.b", "a"], "a.b.c")
    np.testing.assert_array_equal(np.append(X[:], y[:]), [2.0, 1.0, 3.0])


def test_a_column_can_stand_twice(file):
    X, _ = cvxqop.parquet_columns(file, ["x1", "x1"])
    np.testing.assert_array_equal(X[:], numbers()[0][:, [1, 1]])


def test_a_table_without_rows(tmp_path):
    path = write(tmp_path / "file", {"x": pa.array([], pa.float32()), "y": pa.array([], pa.int8())})
    X, y = cvxqop.parquet_columns(path, ["x"], "y")
    assert X.edges.tolist() == [0]
    assert X[:].shape == (0, 1)
    theta = cp.Variable(1, value=[1.0])
    assert float(cvxqop.glm_loss("squared", X, y, theta).value) == 0.0


NOT_NUMBERS = {
    "string": (pa.array(["secret"]), "to_dummies('town')"),
    "dictionary": (pa.array(["secret"]).dictionary_encode(), "to_dummies('town')"),
    "timestamp[us]": (pa.array([datetime.datetime(1970, 1, 1)]), "total_days()"),
    "duration[us]": (pa.array([datetime.timedelta(1)]), "total_days()"),
    "list": (pa.array([[1.5]]), "columns of their own"),
    "struct": (pa.array([{"secret": 1.5}]), "columns of their own"),
    "null": (pa.array([None]), "cast(polars.Float64)"),
}


@pytest.mark.parametrize("kind", NOT_NUMBERS)
@pytest.mark.parametrize("as_target", [False, True])
def test_other_columns_are_refused_by_name(tmp_path, kind, as_target):
    column, cure = NOT_NUMBERS[kind]
    path = write(tmp_path / "file", {"x": [1.0], "town": column})
    stated = (["x"], "town") if as_target else (["x", "town"], None)
    with pytest.raises(ProblemError) as caught:
        cvxqop.parquet_columns(path, *stated)
    assert f"column 'town' must hold real numbers, not type {kind}:" in str(caught.value)
    assert cure in str(caught.value)
    assert "secret" not in str(caught.value)
    assert cvxqop.parquet_columns(path)[0].shape == (1, 1)


def test_the_cure_for_categories_runs(tmp_path):
    import polars

    path, other = write(tmp_path / "file", {"x": [1.0, 2.0], "town": ["A", "B"]}), tmp_path / "new"
    polars.read_parquet(path).to_dummies("town").write_parquet(other)
    X, _ = cvxqop.parquet_columns(other)
    np.testing.assert_array_equal(X[:], [[1, 1, 0], [2, 0, 1]])


@pytest.mark.parametrize(
    ("stated", "error", "words"),
    [
        ((["x0", "towm"], "y"), ProblemError, "no column 'towm'. Is it 'town'?"),
        ((["x0"], "zzz"), ProblemError, "no column 'zzz'."),
        (("x0", "y"), OptionError, "such as ['x0']"),
        (([], "y"), OptionError, "list of names"),
        ((3, "y"), OptionError, "list of names"),
        ((["x0", 1], "y"), OptionError, "list of names"),
        ((["x0", "y"], "y"), OptionError, "among the features"),
        ((["x0"], ["y"]), OptionError, "target must be"),
    ],
)
def test_names_that_are_not_there(file, stated, error, words):
    with pytest.raises(error, match=re.escape(words)):
        cvxqop.parquet_columns(file, *stated)


def test_paths_that_are_no_table(tmp_path, folder):
    def refused(path, words, error=ProblemError):
        with pytest.raises(error, match=words) as caught:
            cvxqop.parquet_columns(path)
        assert caught.value.__cause__ is caught.value.__context__ is None

    refused(3, "must be a str or a path", OptionError)
    refused(tmp_path / "nothing", "no file or folder")
    (tmp_path / "empty").mkdir()
    refused(tmp_path / "empty", "holds no file")
    (tmp_path / "text").write_text("12345,67890")
    refused(tmp_path / "text", "cannot be opened as a Parquet file")
    (tmp_path / "zero").write_text("")
    refused(tmp_path / "zero", "cannot be opened as a Parquet file")
    refused(write(tmp_path / "words", {"town": ["A"]}), "no column of numbers")
    twice = pa.Table.from_arrays([pa.array([1.0])] * 2, names=["x", "x"])
    parquet.write_table(twice, tmp_path / "twice")
    refused(tmp_path / "twice", "have the same name")
    (folder / "year=2020").mkdir()
    refused(folder, "'year=2020', whose names hold a column. That is not supported")
    (folder / "year=2020").rename(folder / "more")
    refused(folder, "holds the folder 'more'")


@pytest.mark.parametrize("columns", [{"x0": [1.0]}, {"x0": [1.0], "x1": [1], "y": [2.0]}])
def test_files_of_a_folder_have_the_same_columns(folder, columns):
    write(folder / "c", columns)
    for features in (None, ["x0", "x1"]):
        with pytest.raises(ProblemError, match=r"column '\w+' is not in both .*c and .*a with one"):
            cvxqop.parquet_columns(folder, features, "y")
    assert cvxqop.parquet_columns(folder, ["x0"])[0].shape == (N + 1, 1)


def test_a_column_that_one_file_has_more_is_noticed_where_all_are_read(folder):
    write(folder / "c", {"x0": [1.0], "x1": [1.0], "y": [2.0], "z": [1.0]})
    assert cvxqop.parquet_columns(folder, ["x0", "x1"], "y")[0].shape == (N + 1, 2)
    with pytest.raises(ProblemError, match="column 'z' is not in both"):
        cvxqop.parquet_columns(folder, target="y")


def truncate(path):
    path.write_bytes(path.read_bytes()[:-100])


def overwrite(path):
    content = bytearray(path.read_bytes())
    content[8 : len(content) // 2] = b"\xff" * (len(content) // 2 - 8)
    path.write_bytes(content)


def rewrite(path):
    """Other row groups and, with luck, as many bytes: then only the layout tells."""
    X, y = numbers()
    write(path, {"x0": X[:, 0], "x1": X[:, 1], "y": y}, group=90)


def remove(path):
    path.unlink()


HARM = [truncate, overwrite, rewrite, remove]


@pytest.mark.parametrize("harm", HARM)
@pytest.mark.parametrize("begun", [False, True])
def test_a_file_that_is_gone_or_changed_is_an_error_without_numbers(tmp_path, harm, begun):
    known, y = numbers()
    path = write(tmp_path / "people", {"x0": known[:, 0], "x1": known[:, 1], "y": y})
    X, y = cvxqop.parquet_columns(path, ["x0", "x1"], "y")
    if begun:
        X[:10]
    harm(path)
    for array in (X, y):
        with pytest.raises(ProblemError) as caught:
            array[200:]
        frames = traceback.extract_tb(caught.value.__traceback__)
        assert not any("parquet_reader" in frame.filename for frame in frames)  # they hold rows
        message = str(caught.value)
        assert str(path) in message
        assert not re.search(r"\d", message.replace(str(path), ""))
        assert caught.value.__cause__ is caught.value.__context__ is None


def test_a_copy_elsewhere_sees_that_the_file_is_another(file):
    X, _ = cvxqop.parquet_columns(file, ["x0"])
    pickled = pickle.dumps(X)
    size = file.stat().st_size
    write(file, {"x0": np.zeros(10)})
    with open(file, "ab") as stream:
        assert stream.tell() < size
    with pytest.raises(ProblemError, match="has changed since"):
        pickle.loads(pickled)[:10]


def test_as_many_bytes_at_another_time_are_another_file(tmp_path):
    plain = {"compression": "none", "use_dictionary": False, "write_statistics": False}
    path = write(tmp_path / "people", {"x": np.zeros(N)}, **plain)
    X, _ = cvxqop.parquet_columns(path)
    X[:10]
    before = path.stat()
    write(path, {"x": np.ones(N)}, **plain)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns + 10**9))
    assert path.stat().st_size == before.st_size
    with pytest.raises(ProblemError, match="has changed since"):
        X[GROUP:]


def test_as_many_bytes_in_other_row_groups_are_another_file(file):
    X, _ = cvxqop.parquet_columns(file, ["x0"])
    (known,) = X._reader._files
    other = dataclasses.replace(known, rows=(known.rows[0] - 1, known.rows[1] + 1, *known.rows[2:]))
    with pytest.raises(ProblemError, match="has changed since"):
        list(parquet_reader.Reader((other,), ("x0",)).batches(0, 10))


def test_nothing_of_the_data_is_printed_or_pulled_into_memory(file):
    X, y = cvxqop.parquet_columns(file, ["x0", "x1"], "y")
    X[:], y[:]
    for array in (X, y):
        assert str(N) not in repr(array).replace(str(file), "")
    assert "columns" not in repr(parquet_reader.Batch(0, 1, (np.ones(1),)))
    theta = cp.Variable(2)
    with pytest.raises(ProblemError, match="glm_loss"):
        np.asarray(X)
    with pytest.raises(ProblemError, match="glm_loss"):
        X @ theta
    for key in (0, [0, 1], np.arange(3), slice(0, 9, 2), slice(None, None, -1)):
        with pytest.raises(TypeError, match="slices of rows"):
            X[key]
    with pytest.raises(TypeError):
        list(X)


def test_without_pyarrow_the_extra_is_named(file, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=re.escape("pip install cvxqop[parquet]")):
        cvxqop.parquet_columns(file)
