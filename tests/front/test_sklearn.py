"""scikit-learn's interface: its own checks, its own answers at large ε, and what must not leak."""

import pickle
import subprocess
import sys
import traceback

import cvxpy as cp
import numpy as np
import pytest
from scipy.special import expit
from sklearn import linear_model, svm
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import parametrize_with_checks

import cvxqop
from cvxqop.sklearn import (
    ElasticNet,
    HuberRegressor,
    Lasso,
    LinearRegression,
    LinearSVC,
    LinearSVR,
    LogisticRegression,
    QuantileRegressor,
    Ridge,
)

EXACT = {"epsilon": 1e6, "delta": 1e-6, "random_state": 0}
CHECKED = [
    *(
        regressor(**EXACT, **more, bounds_X=20.0, bounds_y=(-200.0, 200.0))
        for regressor, more in [
            (LinearRegression, {}),
            (Ridge, {}),
            (Lasso, {}),
            (ElasticNet, {}),
            (HuberRegressor, {"threshold": 1.0}),
            (QuantileRegressor, {}),
            (LinearSVR, {}),
        ]
    ),
    *(one(**EXACT, bounds_X=20.0, classes=[0, 1]) for one in (LogisticRegression, LinearSVC)),
]
RECORD = "labels are read record by record: an error would tell that somebody has another label"


def waived(estimator):
    """What of scikit-learn's checks would be no privacy."""
    if not hasattr(estimator, "classes"):
        return {}
    return {
        "check_classifiers_classes": "classes are stated, and those of its data are others",
        "check_classifiers_regression_target": RECORD,
        "check_supervised_y_no_nan": RECORD,
        "check_classifier_not_supporting_multiclass": RECORD,
    }


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(CHECKED, expected_failed_checks=waived)
def test_checks_of_scikit_learn(estimator, check):
    check(estimator)


RNG = np.random.default_rng(0)
N = 400
X = RNG.uniform(0, 10, (N, 3))
Y = 20 + X @ [3.0, -2.0, 1.0] + RNG.normal(0, 2, N)
LABELS = np.where(X @ [1.0, -1.0, 0.5] - 2 + RNG.logistic(size=N) > 0, "b", "a")
REGRESSION = {**EXACT, "bounds_X": (0, 10), "bounds_y": (-20, 80)}
CLASSES = {**EXACT, "bounds_X": (0, 10), "classes": ["a", "b"]}


@pytest.mark.parametrize("bounds_X", [(0, 10), 17.5, cvxqop.Bounds.from_box([0] * 3, [10] * 3)])
@pytest.mark.parametrize(
    ("own", "reference"),
    [
        (LinearRegression(), linear_model.LinearRegression()),
        (LinearRegression(fit_intercept=False), linear_model.LinearRegression(fit_intercept=False)),
        (Ridge(alpha=300.0), linear_model.Ridge(300.0)),
        (Lasso(alpha=900.0), linear_model.Lasso(900.0 / N)),
        (ElasticNet(alpha=400.0), linear_model.ElasticNet(400.0 / N)),
    ],
    ids=lambda one: type(one).__name__,
)
def test_regression_is_that_of_scikit_learn(own, reference, bounds_X):
    own.set_params(**{**REGRESSION, "bounds_X": bounds_X}).fit(X, Y)
    reference.fit(X, Y)
    assert np.allclose(own.coef_, np.ravel(reference.coef_), atol=0.01)
    assert abs(own.intercept_ - np.ravel(reference.intercept_)[0]) < 0.1
    assert np.abs(own.predict(X) - reference.predict(X)).max() < 0.1


@pytest.mark.parametrize(
    ("own", "reference"),
    [
        (
            QuantileRegressor(quantile=0.8, alpha=100.0, smoothing=0.02),
            linear_model.QuantileRegressor(quantile=0.8, alpha=100.0 / N),
        ),
        (
            LinearSVR(C=0.1, tube=1.0, smoothing=0.02),
            svm.SVR(kernel="linear", C=0.1, epsilon=1.0, tol=1e-6),
        ),
    ],
    ids=lambda one: type(one).__name__,
)
def test_smoothed_regression_is_close_to_that_of_scikit_learn(own, reference):
    own.set_params(**REGRESSION).fit(X, Y)
    reference.fit(X, Y)
    assert np.allclose(own.coef_, np.ravel(reference.coef_), atol=0.01)
    assert np.abs(own.predict(X) - reference.predict(X)).max() < 0.1


@pytest.mark.parametrize("C", [0.1, 1e6, np.inf])
def test_logistic_regression_is_that_of_scikit_learn(C):
    own = LogisticRegression(C=C, **CLASSES).fit(X, LABELS)
    reference = linear_model.LogisticRegression(C=min(C, 1e9), tol=1e-8, max_iter=1000)
    reference.fit(X, LABELS)
    assert np.abs(own.predict_proba(X) - reference.predict_proba(X)).max() < 0.02
    assert np.array_equal(own.classes_, reference.classes_)


def test_support_vectors_are_those_of_scikit_learn():
    own = LinearSVC(C=0.1, smoothing=0.01, **CLASSES).fit(X, LABELS)
    reference = svm.SVC(kernel="linear", C=0.1, tol=1e-6).fit(X, LABELS)
    assert np.abs(own.decision_function(X) - reference.decision_function(X)).max() < 0.1


def test_huber_is_that_of_cvxpy():
    own = HuberRegressor(threshold=1.0, alpha=2.0, **REGRESSION).fit(X, Y)
    w, b = cp.Variable(3), cp.Variable()
    loss = 0.5 * cp.sum(cp.huber(X @ w + b - Y, 1.0)) + cp.sum_squares(w)
    cp.Problem(cp.Minimize(loss)).solve()
    assert np.allclose(own.coef_, w.value, atol=0.01)
    assert abs(own.intercept_ - b.value) < 0.1


def test_the_release_is_that_of_privatize():
    """Ranges [0, 10] to [−1, 1], targets [−20, 80] likewise: the same draw, in other units."""
    own = Lasso(epsilon=1.0, delta=1e-6, bounds_X=(0, 10), bounds_y=(-20, 80), alpha=50.0,
                random_state=3).fit(X, Y)  # fmt: skip
    w, b, Z, y = cp.Variable(3), cp.Variable(), (X - 5) / 5, (Y - 30) / 50
    problem = cp.Problem(
        cp.Minimize(0.5 * cp.sum_squares(Z @ w + b - y) + 50.0 * 10.0 / 2500.0 * cp.norm1(w))
    )
    bounds = cvxqop.Bounds(row_norm=3**0.5, offset=1.0)
    cvxqop.privatize(problem, private=[Z, y], bounds=bounds, epsilon=1.0, delta=1e-6, seed=3)
    assert np.allclose(own.coef_, 10 * w.value, atol=1e-5)
    assert own.intercept_ == pytest.approx(30 + 50 * b.value - 50 * w.value.sum(), abs=1e-4)
    assert own.release_.epsilon == 1.0


@pytest.mark.parametrize(
    ("estimator", "options"),
    [
        (Ridge, {"alpha": -1.0}),
        (Ridge, {"alpha": "strong"}),
        (LinearSVR, {"C": 0.0}),
        (LinearSVR, {"tube": -1.0}),
        (ElasticNet, {"l1_ratio": 1.5}),
        (QuantileRegressor, {"quantile": 1.0}),
        (HuberRegressor, {"threshold": 0.0}),
        (Ridge, {"bounds_y": "wide"}),
        (Ridge, {"bounds_y": (1.0, 0.0)}),
        (Ridge, {"bounds_X": ([0.0, 0.0], [1.0, 1.0])}),
        (Ridge, {"bounds_X": -1.0}),
    ],
)
def test_a_wrong_option_is_named_and_nothing_is_charged(estimator, options):
    budget = cvxqop.Budget(epsilon=1.0, delta=1e-6)
    stated = {"threshold": 1.0} if estimator is HuberRegressor else {}
    (name,) = options
    with pytest.raises(
        cvxqop.OptionError, match="row_norm" if options == {"bounds_X": -1.0} else name
    ):
        estimator(**{**REGRESSION, **stated, **options}, budget=budget).fit(X, Y)
    assert not budget.history


def test_a_mask_is_not_left_out_in_silence():
    with pytest.raises(cvxqop.ProblemError, match="filled"):
        Ridge(**REGRESSION).fit(np.ma.masked_greater(X, 9), Y)


class Untouched:
    """Data that nobody may look at."""

    def __getattribute__(self, name):
        raise AssertionError("read")


@pytest.mark.parametrize("estimator", [Ridge, HuberRegressor, LogisticRegression])
def test_what_is_not_stated_is_asked_for_before_anything_is_read(estimator):
    with pytest.raises(cvxqop.OptionError, match="must be stated") as caught:
        estimator().fit(Untouched(), Untouched())
    line = str(caught.value).split("Write ")[1].split(", with")[0]
    data = (X, LABELS == "b") if estimator is LogisticRegression else (X, Y)
    eval(line).fit(*data)


def test_a_schema_states_the_bounds():
    schema = cvxqop.Schema({"u": (0, 10)}, target={"y": (0, 1)})
    with pytest.raises(cvxqop.OptionError, match="bounds_y is stated in the schema"):
        Ridge(epsilon=1.0, delta=1e-6, schema=schema, bounds_y=(0, 1)).fit({"u": [], "y": []})
    with pytest.raises(cvxqop.OptionError, match="two classes"):
        LogisticRegression(epsilon=1.0, delta=1e-6, schema=schema).fit({"u": [], "y": []})


@pytest.mark.parametrize("label", ["c", "", None, float("nan"), 7, 0.5, float("inf"), [1]])
def test_a_label_of_no_class_is_a_record_that_says_nothing(label):
    cells = [*LABELS[:-1], label]
    own = LogisticRegression(**CLASSES).fit(X, cells)
    labels = np.append(np.where(LABELS[:-1] == "b", 1.0, -1.0), 0.0)
    w, b, Z = cp.Variable(3), cp.Variable(), (X - 5) / 5
    loss = cp.sum(cp.logistic(-cp.multiply(labels, Z @ w + b))) + cp.sum_squares(w / 5) / 2
    bounds = cvxqop.Bounds(row_norm=3**0.5)
    cvxqop.privatize(
        cp.Problem(cp.Minimize(loss)), private=[Z, labels], bounds=bounds, epsilon=1e6, delta=1e-6,
        seed=0,
    )  # fmt: skip
    assert np.allclose(own.coef_, w.value / 5, atol=1e-4)
    assert own.classes_.tolist() == ["a", "b"]


def test_equal_labels_are_the_same_class():
    truth = LABELS == "b"
    forms = (truth, truth.astype(int), truth.astype(float), truth.tolist())
    found = [LogisticRegression(**{**CLASSES, "classes": [0, 1]}).fit(X, y).coef_ for y in forms]
    assert all(np.array_equal(one, found[0]) for one in found)


CELL = "S3CRET"


@pytest.mark.parametrize(
    "data",
    [
        ([[1.0, CELL]] * 977, [1.0] * 977),
        (np.ones((977, 2)), [CELL] * 977),
        (np.ones((977, 2)) + 1j * 12345, np.ones(977)),
        (np.full(977, 12345.0), np.ones(977)),
        (np.ones((977, 2)), np.full(976, 12345.0)),
        (np.ones((977, 2)), np.full((977, 2), 12345.0)),
        (np.ones((977, 0)), np.ones(977)),
        (np.full((977, 2), np.nan), np.ones(977)),
        ([[1.0, {CELL: 977}]] * 977, np.ones(977)),
    ],
)
def test_no_error_tells_a_cell_or_a_number_of_records(data):
    with pytest.raises((ValueError, TypeError)) as caught:
        Ridge(**REGRESSION).fit(*data)
    told = "".join(traceback.format_exception(caught.value, chain=True))
    message = str(caught.value)
    assert not any(one in message for one in (CELL, "976", "977", "12345"))
    assert caught.value.__context__ is None
    assert CELL not in told.split("Error")[-1]


def test_neighbours_with_one_record_less_are_told_alike():
    """add_remove: no text, and no constant of the noise, depends on n."""
    found = []
    for n in (0, 1, 3, 4):
        model = Ridge(**{**REGRESSION, "epsilon": 1.0}, adjacency="add_remove")
        model.set_params(bounds_X=([0, 0, 0], [10, 11, 12])).fit(X[:n], Y[:n])
        found.append(str(model.release_.guarantee))
    assert len(set(found)) == 1


def test_clones_share_one_ledger_and_a_search_is_charged_for_every_fit():
    budget = cvxqop.Budget(epsilon=10.0, delta=1e-4)
    model = Ridge(epsilon=1.0, delta=1e-6, bounds_X=(0, 10), bounds_y=(-20, 80), budget=budget)
    assert clone(model).budget is budget
    search = GridSearchCV(model, {"alpha": [1.0, 10.0]}, cv=3, error_score="raise")
    with pytest.warns(cvxqop.PrivacyWarning, match="NOT private"):
        search.fit(X, Y)
    assert len(budget.history) == 2 * 3 + 1
    model.set_params(epsilon=100.0)
    with pytest.raises(cvxqop.BudgetError):
        model.fit(X, Y)
    with pytest.raises(TypeError, match="does not pickle"):
        pickle.dumps(model)


def test_a_block_is_charged_and_does_not_travel():
    budget = cvxqop.Budget(epsilon=2.0, delta=1e-5)
    model = Ridge(epsilon=1.0, delta=1e-6, bounds_X=(0, 10), bounds_y=(-20, 80))
    with budget:
        model.fit(X, Y)
        with pytest.raises(TypeError, match="charged to nobody"):
            pickle.dumps(model)
    assert len(budget.history) == 1
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict(X), model.predict(X))
    assert again.release_.epsilon == 1.0


def test_persons_are_protected_with_all_rows():
    model = Ridge(**{**REGRESSION, "epsilon": 1.0}, rows_per_person=2)
    model.fit(X, Y, persons=np.arange(N) // 2)
    alone = Ridge(**{**REGRESSION, "epsilon": 1.0}).fit(X, Y)
    assert model.release_.guarantee.lines() != alone.release_.guarantee.lines()
    with pytest.raises(cvxqop.OptionError, match="rows_per_person"):
        alone.fit(X, Y, persons=np.arange(N) // 2)


TABLE = {
    "u": X[:, 0],
    "v": np.where(X[:, 1] > 5, "high", "low"),
    "spend": [f"${y:,.2f}" for y in Y],
    "kind": LABELS,
}


def test_a_schema_reads_the_table():
    schema = cvxqop.Schema({"u": (0, 10), "v": ["low", "high"]}, target={"spend": (-20, 80)})
    model = Ridge(**EXACT, schema=schema, alpha=1e-3).fit(TABLE)
    design = np.column_stack([X[:, 0], X[:, 1] > 5, np.ones(N)])
    expected = np.linalg.lstsq(design, Y)[0]
    assert np.allclose(model.coef_[[0, 2]], expected[:2], atol=0.01)
    assert model.coef_[1] == 0.0
    assert model.intercept_ == pytest.approx(expected[2], abs=0.1)
    assert np.allclose(model.predict(TABLE), design @ expected, atol=0.1)
    assert model.feature_names_in_.tolist() == ["u", "v = low", "v = high"]
    apart = clone(model).fit({name: TABLE[name] for name in ("u", "v")}, Y)
    assert np.allclose(apart.coef_, model.coef_, atol=1e-3)
    with pytest.raises(cvxqop.OptionError, match="Schema"):
        model.fit(TABLE, persons=np.arange(N))


def test_a_schema_of_classes():
    schema = cvxqop.Schema({"u": (0, 10), "v": ["low", "high"]}, target={"kind": ["a", "b"]})
    model = LogisticRegression(**EXACT, schema=schema).fit(TABLE)
    assert np.allclose(model.predict_proba(TABLE)[:, 1], expit(model.decision_function(TABLE)))
    assert np.mean(model.predict(TABLE) == LABELS) > 0.8
    assert model.predict({"u": ["?", 10], "v": ["low", "low"]}).tolist() == [None, "b"]


def test_without_scikit_learn_the_extra_is_named():
    code = (
        "import sys; sys.modules['sklearn'] = None\n"
        "import cvxqop\n"
        "try:\n    import cvxqop.sklearn\n"
        "except ImportError as error:\n    print(error)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install cvxqop[sklearn]" in out.stdout
