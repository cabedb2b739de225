"""Every form that people have data in works as the float64 array of its numbers, or is refused by
column with a cure that runs; what is decided is decided by types, and no cell is in a message."""

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import cvxqop
from cvxqop.errors import ProblemError

MATRICES = pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
PAY = {"bounds": cvxqop.Bounds(row_norm=2.0, offset=1.0), "epsilon": 5.0, "delta": 1e-6}
N = 300


def table():
    """Columns of every dtype that holds numbers, and the same numbers as float64."""
    rng = np.random.default_rng(0)
    age, job = rng.integers(0, 9, N) / 8.0, rng.integers(0, 2, N)
    X = np.column_stack([age, job, 1 - job, 2 * job])
    y = np.round(0.5 * age - 0.25 * job, 2)
    return X, y


def frames():
    X, _ = table()
    plain = pd.DataFrame(X, columns=list("abcd"))
    mixed = plain.astype({"b": bool, "c": "int8"})
    nullable = plain.astype({"a": "Float64", "b": "boolean", "c": "Int64", "d": "UInt8"})
    sparse = plain.astype({"b": pd.SparseDtype("float64", 0.0)})
    return {"plain": plain, "mixed": mixed, "nullable": nullable, "sparse": sparse}


def released(loss, theta, private, **options):
    cvxqop.privatize(cp.Problem(cp.Minimize(loss)), private=private, seed=1, **{**PAY, **options})
    return theta.value


def by_atom(X, y, loss="squared", **options):
    theta = cp.Variable(4)
    return released(cvxqop.glm_loss(loss, X, y, theta), theta, [], **options)


def by_cvxpy(X, y, written=lambda X: X, **options):
    theta = cp.Variable(4)
    return released(cp.sum_squares(cp.Constant(X) @ theta - written(y)), theta, [X, y], **options)


@pytest.mark.parametrize("form", ["plain", "mixed", "nullable", "sparse"])
def test_frames_are_the_array_of_their_numbers(form):
    X, y = table()
    frame, series = frames()[form], pd.Series(y, name="pay")
    assert np.array_equal(by_atom(frame, series), by_atom(X, y))
    assert np.array_equal(by_cvxpy(frame, series, np.asarray), by_cvxpy(X, y))


DTYPES = [np.float16, np.float32, np.int8, np.int64, np.uint8, np.uint64, bool, ">f8", ">i4"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes_of_up_to_eight_bytes(dtype):
    y = table()[0][:, 1]
    X = np.ascontiguousarray(table()[0][:, [0, 3, 1, 2]])
    assert np.array_equal(by_atom(X, y.astype(dtype)), by_atom(X, y))
    assert np.array_equal(by_cvxpy(X, y.astype(dtype)), by_cvxpy(X, y))


FORMS = {
    "list": lambda y: y.tolist(),
    "tuple": lambda y: tuple(y.tolist()),
    "series": lambda y: pd.Series(y),
    "series with an index": lambda y: pd.Series(y, index=np.arange(N)[::-1], name="pay"),
    "nullable series": lambda y: pd.Series(y, dtype="Float64"),
    "index": lambda y: pd.Index(y),
    "extension array": lambda y: pd.array(y, dtype="Float64"),
    "column": lambda y: y[:, None],
    "matrix": lambda y: np.matrix(y).T,
    "frame": lambda y: pd.DataFrame({"pay": y}),
}


@MATRICES
@pytest.mark.parametrize("form", FORMS)
def test_targets(form):
    X, y = table()
    given = FORMS[form](y)
    assert np.array_equal(by_atom(X, given), by_atom(X, y))
    if form in ("extension array", "tuple"):
        return  # CVXPY does not take them
    theta = cp.Variable(4)
    written = cp.Constant(given)
    column = cp.reshape(X @ theta, written.shape, order="C")
    theta_of_given = released(cp.sum_squares(column - written), theta, [X, given])
    assert np.array_equal(theta_of_given, by_cvxpy(X, y))


@MATRICES
@pytest.mark.parametrize("length", [1, 2, N])
def test_a_matrix_of_numpy_is_the_array(length):
    X, y = (part[:length] for part in table())
    assert np.array_equal(by_atom(np.matrix(X), np.matrix(y).T), by_atom(X, y))
    theta = cp.Variable(4)
    loss = cp.sum_squares(np.matrix(X) @ theta - y)
    assert np.array_equal(released(loss, theta, [np.matrix(X), y]), by_cvxpy(X, y))


def test_nested_lists_are_rows():
    X, y = table()
    assert np.array_equal(by_atom(X.tolist(), y.tolist()), by_atom(X, y))
    with pytest.raises(ProblemError, match=r"private\[0\] is a nested list.*np.array"):
        cvxqop.plan(
            cp.Problem(cp.Minimize(cp.sum_squares(X @ cp.Variable(4) - y))),
            private=[X.tolist(), y], **PAY,
        )  # fmt: skip


@pytest.mark.parametrize("huge", [2**70, -(2**70), 10**400, -(10**400)])
def test_integers_of_a_list_may_have_any_size(huge):
    """They are cut like other numbers: neither a dtype nor an overflow decides."""
    X, _ = table()
    numbers = [int(number) for number in X[:, 1]]
    expected = by_atom(X, [np.sign(huge), *numbers[1:]])
    assert np.array_equal(by_atom(X, [huge, *numbers[1:]]), expected)


@pytest.mark.parametrize("kind", ["masked", "Float64", "list"])
def test_missing_is_not_finite(kind):
    """As NaN in the array: refused in the first pass, or a zero row; never the number beneath."""
    X, y = table()
    lost = np.arange(N) % 3 == 0
    hidden = np.where(lost, -999.0, y)
    given = {
        "masked": np.ma.masked_array(hidden, lost),
        "Float64": pd.Series(hidden, dtype="Float64").mask(lost),
        "list": [None if gone else entry for gone, entry in zip(lost, hidden, strict=True)],
    }[kind]
    with pytest.raises(ProblemError, match="nonfinite"):
        by_atom(X, given)
    zeroed = by_atom(X, given, nonfinite="zero")
    assert np.array_equal(zeroed, by_atom(X, np.where(lost, np.nan, y), nonfinite="zero"))


def test_masked_rows_are_missing_in_blocks_too():
    X, y = table()
    lost = np.zeros(X.shape, bool)
    lost[5, 2] = lost[200, 0] = True
    masked = np.ma.masked_array(np.where(lost, 1e6, X), lost)
    expected = by_atom(np.where(lost, np.nan, X), y, nonfinite="zero")
    assert np.array_equal(by_atom(masked, y, nonfinite="zero"), expected)
    blocks = [masked[:100], masked[100:]]
    assert np.array_equal(by_atom(blocks, y, nonfinite="zero"), expected)


@pytest.mark.parametrize("mask", [False, True])
def test_masked_arrays_in_expressions_are_refused_with_a_cure_that_runs(mask):
    """Whatever is masked: CVXPY would compute with what is under the mask."""
    X, y = table()
    masked = np.ma.masked_array(y, mask & (np.arange(N) == 7))
    theta = cp.Variable(4)
    problem = cp.Problem(cp.Minimize(cp.sum_squares(X @ theta - masked)))
    with pytest.raises(ProblemError, match=r"private\[1\] is a masked array.*filled\(np.nan\)"):
        cvxqop.plan(problem, private=[X, masked], **PAY)
    filled = masked.astype(float).filled(np.nan)
    assert np.all(np.isfinite(by_cvxpy(X, filled, nonfinite="zero")))


SECRET = "s3cr3t"
REFUSED = {
    "category": (pd.Series(["s3cr3t", "b"] * 150, dtype="category"), "get_dummies"),
    "strings": (pd.Series(["s3cr3t", "b"] * 150), "get_dummies"),
    "objects": (pd.Series([1.5, "s3cr3t"] * 150, dtype=object), "astype"),
    "dates": (pd.Series(pd.date_range("2031-01-01", periods=N)), "subtract a public date"),
    "spans": (pd.Series(pd.to_timedelta(np.arange(N), "D")), "Timedelta"),
    "complex": (pd.Series(np.full(N, 1j)), "real"),
    "longdouble": (pd.Series(np.full(N, 0.25, np.longdouble)), "astype"),
}


@pytest.mark.parametrize("form", REFUSED)
def test_a_column_without_numbers_is_named_with_its_cure(form):
    X, y = table()
    series, cure = REFUSED[form]
    frame = pd.DataFrame(X, columns=list("abcd")).assign(what=series)
    theta = cp.Variable(5)
    problem = cp.Problem(cp.Minimize(cp.sum_squares(np.ones((N, 5)) @ theta - y)))
    for call in (
        lambda: cvxqop.glm_loss("squared", frame, y, theta),
        lambda: cvxqop.plan(problem, private=[frame, y], **PAY),
        lambda: cvxqop.plan(problem, private=[series.rename("what"), y], **PAY),
    ):
        with pytest.raises(ProblemError, match=r"column 'what'.*real numbers") as caught:
            call()
        assert cure in str(caught.value)
        assert SECRET not in str(caught.value)
        assert "2031" not in str(caught.value)
        assert caught.value.__cause__ is None
        assert caught.value.__context__ is None


def test_the_cures_run():
    X, y = table()
    frame = pd.DataFrame(X[:, :2], columns=["a", "b"])
    frame["job"] = pd.Categorical(np.where(X[:, 1] > 0, "x", "y"))
    dummies = pd.get_dummies(frame, columns=["job"], dtype=float)
    assert by_atom(dummies, y).shape == (4,)
    days = pd.Series(pd.date_range("2031-01-01", periods=N)) - pd.Timestamp("2031-01-01")
    assert by_atom(X, days / pd.Timedelta(days=1)).shape == (4,)
    assert by_atom(X.astype(object).astype(float), y.astype(np.longdouble).astype(float)).shape


@pytest.mark.parametrize("value", [0.25, 1 / 3])
@pytest.mark.parametrize("dtype", [np.longdouble, np.complex128, object, "U4", "M8[D]"])
def test_dtypes_are_refused_whatever_they_hold(dtype, value):
    """A longdouble that fits in float64 is refused like one that does not."""
    if np.dtype(dtype).itemsize == 8 and np.dtype(dtype).kind == "f":
        pytest.skip("longdouble is double on this platform")
    X, y = table()
    given = np.full(N, value).astype(np.int64 if dtype == "M8[D]" else float).astype(dtype)
    theta = cp.Variable(4)
    problem = cp.Problem(cp.Minimize(cp.sum_squares(X @ theta - y)))
    texts = set()
    for call in (
        lambda: cvxqop.glm_loss("squared", X, given, theta),
        lambda: cvxqop.plan(problem, private=[X, given], **PAY),
    ):
        with pytest.raises(ProblemError, match=r"must hold real numbers, not dtype .*: ") as caught:
            call()
        texts.add(str(caught.value))
    assert not any(str(value)[:4] in text for text in texts)


def test_sparse_matrices_of_other_dtypes():
    X, y = table()
    theta = cp.Variable(4)
    assert np.array_equal(
        by_atom(sp.csr_array(X.astype(np.float32)), y), by_atom(sp.csr_array(X), y)
    )
    with pytest.raises(ProblemError, match="real numbers, not dtype complex128"):
        cvxqop.glm_loss("squared", sp.csr_array(X * 1j), y, theta)


def test_bounds_from_data_take_the_same_forms():
    X, y = table()
    hidden = np.ma.masked_array(np.where(y == y.max(), 1e9, y), y == y.max())
    with pytest.warns(cvxqop.PrivacyWarning):
        whole = cvxqop.Bounds.unsafe_from_data(X, y)
    for form, frame in frames().items():
        with pytest.warns(cvxqop.PrivacyWarning):
            found = cvxqop.Bounds.unsafe_from_data(frame, y.tolist())
        assert found == whole, form
    with pytest.warns(cvxqop.PrivacyWarning):
        assert cvxqop.Bounds.unsafe_from_data(X, hidden).offset == np.abs(y[y != y.max()]).max()


def test_objects_of_another_library_are_refused_in_words():
    class Tensor:
        shape, dtype = (N, 4), "tensor.float32"

        def __getitem__(self, key):
            raise AssertionError

    with pytest.raises(ProblemError, match=r"np.asarray"):
        cvxqop.glm_loss("squared", Tensor(), np.zeros(N), cp.Variable(4))
    problem = cp.Problem(cp.Minimize(cp.sum_squares(table()[0] @ cp.Variable(4))))
    with pytest.raises(ProblemError, match=r"private\[0\].*np.asarray"):
        cvxqop.plan(problem, private=[Tensor()], **PAY)
    with pytest.raises(ProblemError, match=r"not float"):
        cvxqop.plan(problem, private=[1.0, 2.0], **PAY)


class TestPolars:
    def test_frames_and_series(self):
        pl = pytest.importorskip("polars")
        X, y = table()
        frame = pl.DataFrame(X, schema=list("abcd"), orient="row").with_columns(
            pl.col("b").cast(pl.Boolean), pl.col("c").cast(pl.Int8), pl.col("d").cast(pl.UInt64)
        )
        assert np.array_equal(by_atom(frame, pl.Series("pay", y)), by_atom(X, y))
        given = pl.Series("pay", y)
        assert np.array_equal(by_cvxpy(frame, given, cp.Constant), by_cvxpy(X, y))

    def test_null_is_missing(self):
        pl = pytest.importorskip("polars")
        X, _ = table()
        lost = np.arange(N) % 4 == 0
        for dtype in (pl.Float64, pl.Int64, pl.Boolean):
            whole = table()[0][:, 1]
            entries = [None if gone else entry for gone, entry in zip(lost, whole, strict=True)]
            given = pl.Series("pay", entries).cast(dtype)
            with pytest.raises(ProblemError, match="nonfinite"):
                by_atom(X, given)
            expected = by_atom(X, np.where(lost, np.nan, whole), nonfinite="zero")
            assert np.array_equal(by_atom(X, given, nonfinite="zero"), expected)

    def test_columns_without_numbers(self):
        pl = pytest.importorskip("polars")
        y = table()[1]
        theta = cp.Variable(1)
        columns = {
            "String": (pl.Series("what", ["s3cr3t"] * N), "to_dummies"),
            "Categorical": (pl.Series("what", ["s3cr3t"] * N, dtype=pl.Categorical), "to_dummies"),
            "Date": (pl.Series("what", [0] * N).cast(pl.Date), "total_days"),
            "Decimal": (pl.Series("what", [1] * N).cast(pl.Decimal(10, 2)), "cast"),
        }
        for kind, (series, cure) in columns.items():
            for given in (series, series.to_frame()):
                with pytest.raises(ProblemError, match=rf"column 'what'.*{kind}") as caught:
                    cvxqop.glm_loss("squared", given, y, theta)
                assert cure in str(caught.value)
                assert SECRET not in str(caught.value)
        with pytest.raises(ProblemError, match=r"\.collect\(\)"):
            cvxqop.glm_loss("squared", pl.LazyFrame({"a": y}), y, theta)
