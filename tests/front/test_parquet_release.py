"""A release from Parquet files is that from the same numbers in memory."""

import cvxpy as cp
import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import cvxqop

pytestmark = pytest.mark.blas

N = 6000
PAY = {"bounds": cvxqop.Bounds(row_norm=1.0, offset=1.0), "epsilon": 1.0, "delta": 1e-6}


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Two files, numbers in single precision, and the same in memory; some records are clipped."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (N, 3)).astype("f4")
    y = (X @ [0.5, 0.0, -0.25] + 0.1 * rng.standard_normal(N)).astype("f4")
    folder = tmp_path_factory.mktemp("people")
    for name, rows in (("1.parquet", slice(0, 2500)), ("2.parquet", slice(2500, N))):
        columns = {f"x{j}": X[rows, j] for j in range(3)}
        columns |= {"pay": y[rows], "rich": y[rows] > 0}
        parquet.write_table(pa.table(columns), folder / name, row_group_size=700)
    return folder, X.astype(float), y.astype(float)


def released(loss, X, y, **options):
    theta = cp.Variable(3)
    term = cvxqop.glm_loss(loss, X, y, theta)
    pay = {**PAY, **options}
    if loss == "logistic":
        pay["bounds"] = cvxqop.Bounds(row_norm=1.0)
    problem = cp.Problem(cp.Minimize(0.5 * term + cp.norm1(theta)))
    cvxqop.privatize(problem, private=[], seed=1, **pay)
    return theta.value


@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
def test_a_squared_loss_is_that_of_the_numbers_to_the_bit(table, adjacency):
    folder, X, y = table
    columns = cvxqop.parquet_columns(folder, ["x0", "x1", "x2"], "pay")
    assert np.array_equal(
        released("squared", *columns, adjacency=adjacency),
        released("squared", X, y, adjacency=adjacency),
    )


def test_labels_are_booleans(table):
    folder, X, y = table
    columns = cvxqop.parquet_columns(folder, ["x0", "x1", "x2"], "rich")
    np.testing.assert_allclose(
        released("logistic", *columns),
        released("logistic", X, np.where(y > 0, 1.0, -1.0)),
        rtol=1e-12,
    )


def test_missing_entries_are_refused_before_the_charge_or_make_a_record_of_zeros(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.uniform(-0.5, 0.5, (N, 3))
    columns = {f"x{j}": pa.array(X[:, j], mask=X[:, j] > 0.49) for j in range(3)}
    parquet.write_table(pa.table({**columns, "y": X[:, 0]}), tmp_path / "people")
    read = cvxqop.parquet_columns(tmp_path / "people", ["x0", "x1", "x2"], "y")
    with pytest.raises(cvxqop.ProblemError, match="NaN"):
        released("squared", *read)
    missing = np.where(X > 0.49, np.nan, X)
    assert np.array_equal(
        released("squared", *read, nonfinite="zero"),
        released("squared", missing, X[:, 0], nonfinite="zero"),
    )


def test_a_file_that_changes_after_the_plan_costs_nothing(tmp_path):
    values = np.linspace(-0.5, 0.5, N)
    parquet.write_table(pa.table({"x": values, "y": values}), tmp_path / "people")
    X, y = cvxqop.parquet_columns(tmp_path / "people", ["x"], "y")
    theta = cp.Variable(1)
    problem = cp.Problem(cp.Minimize(cvxqop.glm_loss("squared", X, y, theta)))
    budget = cvxqop.Budget(epsilon=1.0, delta=1e-6)
    plan = cvxqop.plan(problem, private=[], budget=budget, **PAY)
    parquet.write_table(pa.table({"x": values[:50], "y": values[:50]}), tmp_path / "people")
    with pytest.raises(cvxqop.ProblemError, match="has changed") as caught:
        plan.run()
    assert caught.value.__context__ is None
    assert theta.value is None
    assert not budget.history
