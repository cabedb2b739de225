"""Labels False/True and 0/1 of margin losses: mapped where the type or the caller says so, and
never because of what they are."""

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest

import cvxqop

PAY = {"bounds": cvxqop.Bounds(row_norm=1.0, offset=1.0), "epsilon": 5.0, "delta": 1e-6}
RNG = np.random.default_rng(2)
X = RNG.uniform(-0.7, 0.7, (400, 2))
HIT = RNG.random(400) < 0.4
SIGNS = np.where(HIT, 1.0, -1.0)


def released(y, loss="logistic", **options):
    theta, b = cp.Variable(2), cp.Variable()
    term = cvxqop.glm_loss(loss, X, y, theta, intercept=b, **options)
    problem = cp.Problem(cp.Minimize(term + 1e-2 * cp.sum_squares(theta)))
    cvxqop.privatize(problem, private=[], seed=1, **PAY)
    return np.append(theta.value, b.value)


BOOLEANS = {
    "array": HIT,
    "column": HIT[:, None],
    "list": HIT.tolist(),
    "series": pd.Series(HIT),
    "nullable": pd.Series(HIT, dtype="boolean"),
    "frame": pd.DataFrame({"hit": HIT}),
    "blocks": [HIT[:150], HIT[150:]],
}


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])
@pytest.mark.parametrize("form", BOOLEANS)
def test_booleans_are_mapped_to_signs(form, loss):
    assert np.array_equal(released(BOOLEANS[form], loss), released(SIGNS, loss))


@pytest.mark.parametrize("dtype", [int, np.uint8, float, bool])
def test_zeros_and_ones_are_mapped_where_it_is_said(dtype):
    y = HIT.astype(dtype)
    assert np.array_equal(released(y, labels="01"), released(SIGNS))
    if dtype is not bool:
        assert not np.array_equal(released(y), released(SIGNS))


def test_stated_labels_are_cut_to_the_unit_interval():
    """2y − 1 of the cut: 7 is a 1, −3 a 0, and a quarter half a vote against."""
    wild, tame = SIGNS.copy(), SIGNS.copy()
    wild[:3], tame[:3] = [7.0, -3.0, 0.25], [1.0, -1.0, -0.5]
    wild[3:] = HIT[3:]
    assert np.array_equal(released(wild, labels="01"), released(tame))


def test_polars_booleans_are_mapped():
    pl = pytest.importorskip("polars")
    assert np.array_equal(released(pl.Series(HIT)), released(SIGNS))
    assert np.array_equal(released(pl.DataFrame({"hit": HIT})), released(SIGNS))


def test_missing_labels_are_missing():
    lost = np.arange(400) == 3
    given = pd.Series(HIT, dtype="boolean").mask(lost)
    with pytest.raises(cvxqop.ProblemError, match="nonfinite"):
        released(given)


def test_values_of_booleans_decide_nothing():
    """All of one class is mapped like any other."""
    for constant in (True, False):
        y = np.full(400, constant)
        assert np.array_equal(released(y), released(np.full(400, 1.0 if constant else -1.0)))


def test_the_value_and_the_text_of_the_term():
    theta = cp.Variable(2, name="theta")
    theta.value = np.array([1.0, -0.5])
    term = cvxqop.glm_loss("logistic", X, HIT, theta)
    assert float(term.value) == pytest.approx(np.sum(np.log1p(np.exp(-SIGNS * (X @ theta.value)))))
    assert 'labels="01"' in str(term)
    assert "labels" not in str(cvxqop.glm_loss("logistic", X, SIGNS, theta))
    assert "labels" not in str(cvxqop.glm_loss("squared", X, HIT, theta))
    rebuilt = term.copy()
    assert float(rebuilt.value) == float(term.value)


def test_targets_of_residual_losses_are_numbers():
    theta = cp.Variable(2)
    theta.value = np.zeros(2)
    assert float(cvxqop.glm_loss("squared", X, HIT, theta).value) == HIT.sum()


@pytest.mark.parametrize(
    ("loss", "labels", "match"),
    [
        ("logistic", "0/1", "labels must be"),
        ("squared", "01", "logistic"),
        ("huber", "01", "belongs"),
    ],
)
def test_refusals(loss, labels, match):
    with pytest.raises(cvxqop.OptionError, match=match):
        cvxqop.glm_loss(loss, X, HIT, cp.Variable(2), labels=labels)


def planned(loss, private, **options):
    problem = cp.Problem(cp.Minimize(loss))
    return cvxqop.plan(problem, private=private, **{**PAY, **options})


W, SHIFT = cp.Variable(2), cp.Variable()
SIGNED = {
    "logistic": lambda x, y: cp.sum(cp.logistic(-cp.multiply(y, x @ W + SHIFT))),
    "turned": lambda x, y: cp.sum(cp.logistic(cp.multiply(x @ W, -cp.Constant(y)))),
    "column": lambda x, y: cp.sum(
        cp.logistic(-cp.multiply(cp.reshape(cp.Constant(y), (len(y),), order="F"), x @ W))
    ),
    "hinge": lambda x, y: cp.sum(cp.square(cp.pos(1 - cp.multiply(y, x @ W)))),
}


@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
@pytest.mark.parametrize("n", [1, 2, 400])
@pytest.mark.parametrize("loss", SIGNED)
def test_booleans_in_the_place_of_signs_are_refused_with_cures_that_run(loss, n, adjacency):
    x, y = X[:n], HIT[:n]
    with pytest.raises(cvxqop.ProblemError, match=r"array of booleans.*np.where"):
        planned(SIGNED[loss](x, y), [x, y], adjacency=adjacency)
    for cured in (np.where(y, 1.0, -1.0), y.astype(float)):
        planned(SIGNED[loss](x, cured), [x, cured], adjacency=adjacency)


def test_booleans_that_are_no_signs_stay_numbers():
    constant = cp.Constant(HIT)
    for loss, private in (
        (cp.sum(cp.logistic(X @ W)) - HIT @ (X @ W), [X, HIT]),
        (cp.sum(cp.logistic(X @ W) - cp.multiply(HIT, X @ W)), [X, HIT]),
        (cp.sum(cp.logistic(-cp.multiply(2 * constant - 1, X @ W))), [X, constant]),
        (cp.sum(cp.logistic(X @ W + cp.multiply(HIT, SHIFT))), [X, HIT]),
        (cp.sum_squares(X @ W - HIT), [X, HIT]),
    ):
        planned(loss, private)
    theta = cp.Variable(2)
    numbers = HIT.astype(float)
    both = []
    for y in (HIT, numbers):
        problem = cp.Problem(cp.Minimize(cp.sum(cp.logistic(X @ theta)) - y @ (X @ theta)))
        cvxqop.privatize(problem, private=[X, y], seed=1, **PAY)
        both.append(theta.value)
    assert np.array_equal(*both)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_nullable_booleans_in_the_place_of_signs_are_refused(library):
    """CVXPY sees floats; the list says that they were booleans."""
    module = pytest.importorskip(library)
    series = module.Series([True, False, None, True])
    series = series.astype("boolean") if library == "pandas" else series
    numbers = np.array([1.0, 0.0, np.nan, 1.0])
    X, w = np.eye(4)[:, :2], cp.Variable(2)
    problem = cp.Problem(cp.Minimize(cp.sum(cp.logistic(-cp.multiply(numbers, X @ w)))))
    with pytest.raises(cvxqop.ProblemError, match="array of booleans"):
        cvxqop.explain(problem, private=[X, series])
