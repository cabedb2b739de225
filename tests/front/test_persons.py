"""Persons with several rows: the options, what a plan says of them, and what is released."""

import re
from dataclasses import replace

import cvxpy as cp
import numpy as np
import pytest

import cvxqop
from cvxqop import Bounds, Declared, Gaussian, Linear, Wishart

RNG = np.random.default_rng(8)
COUNT, N = 137, 421
NAMES = np.array([f"person-{i:x}" for i in RNG.permutation(100_000)[:COUNT]])
IDS = NAMES[np.append(np.arange(COUNT), RNG.integers(0, COUNT, N - COUNT))]
X = RNG.uniform(-0.5, 0.5, (N, 3))
Y = X @ [1.0, 0.0, -1.0]
TARGETS = {"squared": Y, "logistic": np.sign(Y)}
BOUNDS = Bounds(row_norm=1.0, offset=1.0)


def rank(ids):
    """How many rows of the same person stand before each, counted by hand."""
    seen = {}
    ranks = []
    for one in ids:
        ranks.append(seen.get(one, 0))
        seen[one] = ranks[-1] + 1
    return np.array(ranks), np.array([seen[one] for one in ids])


RANKS, SIZES = rank(IDS)


def stated(loss="squared", A=X, y=None, factor=1.0):
    theta = cp.Variable(3, name="theta")
    y = TARGETS[loss] if y is None else y
    if loss == "squared":
        return cp.Problem(cp.Minimize(0.5 * factor * cp.sum_squares(A @ theta - y))), [A, y]
    return cp.Problem(cp.Minimize(cp.sum(cp.logistic(-cp.multiply(y, A @ theta))))), [A, y]


def planned(loss="squared", rows=3, ids=IDS, data=None, **options):
    problem, private = stated(loss, **(data or {}))
    if rows is not None:
        options |= {"persons": ids, "rows_per_person": rows}
    options = {"bounds": BOUNDS, "epsilon": 2.0, "delta": 1e-5} | options
    return cvxqop.plan(problem, private=private, **options)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
@pytest.mark.parametrize("rows", [1, 3, "mean"])
def test_a_plan_speaks_of_persons_and_never_of_rows_or_ids(loss, adjacency, rows):
    plan = planned(loss, rows, adjacency=adjacency, seed=1)
    assert plan.records == (COUNT if adjacency == "replace_one" else None)
    solution = plan.run()
    problem, private = stated(loss)
    told = cvxqop.explain(problem, private, persons=IDS, rows_per_person=rows)
    words = [str(plan), repr(plan.candidates), str(solution), repr(solution), *plan.warnings]
    for text in words:
        assert not re.search(rf"(?<![\d.]){N}(?![\d.])", text)
        assert "person-" not in text
    assert "person-" not in told
    said = {
        1: "The first row of a person is used",
        3: "At most 3 rows of a person are used",
        "mean": "The rows of a person weigh 1/m each",
    }[rows]
    (assumption,) = [a for a in plan.guarantee.assumptions if a.startswith("Neighbouring")]
    assert said in assumption
    assert "one person" in assumption
    assert f"Persons: {COUNT}; {said[0].lower()}{said[1:]}" in told
    assert "of all rows of a person" in told


def test_warnings_and_shrinkage_count_persons():
    plan = planned(rows=1, delta=0.7 / COUNT)
    assert not any("1/n" in text for text in plan.warnings)
    plan = planned(rows=1, delta=1.2 / COUNT)
    assert any("1/n" in text for text in plan.warnings)
    wishart = planned(rows=2, perturbation="wishart")
    ridge = wishart.mechanism.mean_curvature
    assert wishart.shrinkage == pytest.approx(ridge / (ridge + COUNT * 2.0 / 3.0))
    small = planned(rows=2, perturbation="wishart", epsilon=0.01)
    assert any("persons can have" in text for text in small.warnings)


@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
@pytest.mark.parametrize("rows", [2, 3])
def test_gaussian_noise_of_a_squared_loss_is_k_times_that_of_a_row(adjacency, rows):
    """Of a row by itself: what joint accounting saves for exchanged rows, persons do not get."""
    for mechanism in (Gaussian(), Gaussian(stages=3)):
        options = {"perturbation": mechanism, "adjacency": adjacency, "radius": 1.0}
        single, person = planned(rows=None, **options), planned(rows=rows, **options)
        alone = replace(single.mechanism.sensitivity, one_row=False)
        one = mechanism.calibrate(
            single.guarantee.epsilon, single.guarantee.delta, alone, radius=1.0
        )
        assert (one.scale > single.mechanism.scale) == (adjacency == "replace_one")
        assert person.mechanism.scale == pytest.approx(rows * one.scale)
        assert person.mechanism.guard_scales == pytest.approx([rows * s for s in one.guard_scales])
        mean = planned(rows="mean", **options)
        assert mean.mechanism.scale == pytest.approx(one.scale)
        assert mean.mechanism.guard_scales == pytest.approx(one.guard_scales)


@pytest.mark.parametrize("perturbation", ["wishart", "gaussian", Linear(clip=0.5)])
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_one_row_a_person_is_todays_noise(loss, perturbation):
    if loss == "logistic" and perturbation == "gaussian":
        return
    for adjacency in ("replace_one", "add_remove"):
        options = {"perturbation": perturbation, "adjacency": adjacency, "radius": 1.0}
        one, plain = planned(loss, 1, **options), planned(loss, None, **options)
        assert one.mechanism == plain.mechanism


@pytest.mark.parametrize("perturbation", ["wishart", "gaussian", Linear(clip=0.5)])
@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
def test_a_release_is_that_of_the_rows_that_one_would_keep_by_hand(perturbation, adjacency):
    kept = RANKS < 2
    options = {"perturbation": perturbation, "adjacency": adjacency, "seed": 4, "radius": 1.0}
    by_hand = {"A": X[kept], "y": Y[kept]}
    one = planned(rows=2, **options).run()
    other = planned(rows=2, ids=IDS[kept], data=by_hand, **options).run()
    for a, b in zip(one.values.values(), other.values.values(), strict=True):
        np.testing.assert_allclose(a, b, atol=2e-6)
    A, y = X.copy(), Y.copy()
    A[~kept], y[~kept] = np.nan, np.inf
    dirty = planned(rows=2, data={"A": A, "y": y}, **options).run()
    for a, b in zip(one.values.values(), dirty.values.values(), strict=True):
        np.testing.assert_array_equal(a, b)


def test_with_little_noise_the_mean_is_least_squares_with_weights():
    solution = planned(rows="mean", epsilon=1e6, seed=0, perturbation="gaussian").run()
    shift = RNG.standard_normal(N)
    w = 1.0 / SIZES
    exact = np.linalg.solve(X.T @ (w[:, None] * X), X.T @ (w * Y))
    (found,) = solution.values.values()
    np.testing.assert_allclose(found, exact, atol=2e-2)
    assert w.sum() == pytest.approx(COUNT)
    assert np.linalg.norm(shift) > 0


def test_ids_are_read_once():
    ids = IDS.copy()
    plan = planned(rows=2, ids=ids, seed=4, perturbation="gaussian")
    ids[:] = "one and the same"
    (found,), (expected,) = (
        one.run().values.values()
        for one in (plan, planned(rows=2, seed=4, perturbation="gaussian"))
    )
    np.testing.assert_array_equal(found, expected)


def test_a_private_loss_of_persons():
    theta = cp.Variable(3)
    loss = cvxqop.private_loss(
        cp.sum_squares(X @ theta - Y), private=[X, Y], bounds=BOUNDS, epsilon=2.0, delta=1e-5,
        persons=IDS, rows_per_person=2,
    )  # fmt: skip
    assert loss.guarantee.mechanism.sensitivity.smoothness == 4.0
    assert any("one person" in text for text in loss.guarantee.assumptions)


@pytest.mark.parametrize("rows", [2, "mean"])
def test_clipped_gradients_of_a_person_add_up(rows):
    k = 1 if rows == "mean" else rows
    options = {"perturbation": Linear(clip=0.25), "adjacency": "add_remove"}
    mechanism = planned(rows=rows, **options).mechanism
    assert mechanism.clip == 0.25
    assert mechanism.shift == 0.25 * k
    anchor = {"perturbation": Linear(clip="anchor"), "adjacency": "add_remove"}
    row, person = planned(rows=None, **anchor).mechanism, planned(rows=rows, **anchor).mechanism
    assert person.clip == row.clip
    assert person.shift == k * row.shift
    one = {"A": X[:, :1], "y": Y}
    theta = cp.Variable(1)
    problem = cp.Problem(cp.Minimize(cp.sum_squares(one["A"] @ theta - Y)))
    plan = cvxqop.plan(
        problem, private=[one["A"], Y], bounds=BOUNDS, epsilon=2.0, delta=1e-5, persons=IDS,
        rows_per_person=rows, **options,
    )  # fmt: skip
    assert plan.mechanism.sensitivity.hessian_rank == 1
    assert plan.mechanism.shift == 0.25 * k


@pytest.mark.parametrize(
    ("loss", "mechanism", "reason"),
    [
        ("logistic", "gaussian", "use the Wishart ensemble"),
        ("squared", Wishart(curvature="floor"), "use perturbation='gaussian'"),
        ("logistic", Linear(calibration="classic"), "GLM form only"),
    ],
    ids=["gaussian", "floor", "classic"],
)
@pytest.mark.parametrize("rows", [2, "mean"])
def test_what_needs_one_row_is_refused_with_what_does_not(loss, mechanism, reason, rows):
    with pytest.raises(cvxqop.CalibrationError, match=reason):
        planned(loss, rows, perturbation=mechanism)
    assert planned(loss, 1, perturbation=mechanism).mechanism is not None


WRONG = {
    "persons alone": ({"persons": IDS}, "rows_per_person is missing"),
    "rows alone": ({"rows_per_person": 2}, "persons is missing"),
    "zero": ({"persons": IDS, "rows_per_person": 0}, "must be a positive int or 'mean'"),
    "negative": ({"persons": IDS, "rows_per_person": -1}, "must be a positive int"),
    "half": ({"persons": IDS, "rows_per_person": 2.0}, "must be a positive int"),
    "a flag": ({"persons": IDS, "rows_per_person": True}, "must be a positive int"),
    "another word": ({"persons": IDS, "rows_per_person": "sum"}, "must be a positive int"),
    "another length": ({"persons": IDS[1:], "rows_per_person": 2}, "not one id a row"),
    "missing": ({"persons": [None] * N, "rows_per_person": 2}, "some ids are missing"),
}


@pytest.mark.parametrize(("options", "reason"), WRONG.values(), ids=WRONG)
def test_refused_before_anything_is_charged(options, reason):
    budget = cvxqop.Budget(epsilon=2.0, delta=1e-4)
    problem, private = stated()
    told = []
    for verb in (cvxqop.plan, cvxqop.privatize):
        with pytest.raises(cvxqop.CvxqopError, match=reason) as caught:
            verb(
                problem, private=private, bounds=BOUNDS, epsilon=1.0, delta=1e-5, budget=budget,
                **options,
            )  # fmt: skip
        told.append(str(caught.value))
    with pytest.raises(cvxqop.CvxqopError, match=reason):
        cvxqop.explain(problem, private, **options)
    assert not any("person-" in text or str(N) in text for text in told)
    assert budget.history == ()


def test_declared_losses_take_no_persons():
    problem, private = stated()
    declared = Declared(smoothness=1.0, anchor_gradient=1.0)
    with pytest.raises(cvxqop.OptionError, match="Merge the rows of a person"):
        cvxqop.plan(
            problem, private=private, declared=declared, epsilon=1.0, delta=1e-5, persons=IDS,
            rows_per_person=2,
        )  # fmt: skip


def test_a_mean_is_refused_and_the_remedy_runs():
    theta = cp.Variable(3)
    options = {"private": [X, Y], "bounds": BOUNDS, "epsilon": 2.0, "delta": 1e-5,
               "persons": IDS, "rows_per_person": 2}  # fmt: skip
    mean = cp.sum_squares(X @ theta - Y) / N
    with pytest.raises(cvxqop.ProblemError, match="Write the sum") as caught:
        cvxqop.plan(cp.Problem(cp.Minimize(mean)), **options)
    assert str(N) not in str(caught.value)
    scaled = cp.sum_squares(X @ theta - Y) * (1.0 / COUNT)  # the number of persons is public
    plan = cvxqop.plan(cp.Problem(cp.Minimize(scaled)), **options)
    assert any("not the number of records" in text for text in plan.guarantee.assumptions)


@pytest.mark.parametrize("rows", [2, "mean"])
def test_memory_maps_and_parquet(tmp_path, rows):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    np.save(tmp_path / "X.npy", X)
    table = pyarrow.table({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "y": Y})
    parquet.write_table(table, tmp_path / "people.parquet", row_group_size=100)
    sources = {
        "array": (X, Y),
        "map": (np.load(tmp_path / "X.npy", mmap_mode="r"), Y),
        "parquet": cvxqop.parquet_columns(tmp_path / "people.parquet", ["a", "b", "c"], "y"),
    }
    found = []
    for A, y in sources.values():
        theta = cp.Variable(3)
        problem = cp.Problem(cp.Minimize(cvxqop.glm_loss("squared", A, y, theta)))
        solution = cvxqop.privatize(
            problem, private=[], bounds=BOUNDS, epsilon=2.0, delta=1e-5, persons=IDS,
            rows_per_person=rows, seed=3, perturbation="gaussian",
        )  # fmt: skip
        found.append(next(iter(solution.values.values())))
    for other in found[1:]:
        np.testing.assert_allclose(found[0], other, atol=1e-6)


@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
def test_a_smoothed_loss_counts_every_row_of_a_person(adjacency):
    """L = k R²/h and G0 = k R for the hinge; a width that is chosen uses no number of rows."""
    rng = np.random.default_rng(2)
    X, y = rng.uniform(-0.5, 0.5, (60, 3)), np.where(rng.random(60) < 0.5, 1.0, -1.0)
    ids, w = np.arange(60) // 3, cp.Variable(3)
    problem = cp.Problem(cp.Minimize(cp.sum(cp.pos(1 - cp.multiply(y, X @ w)))), [cp.norm(w) <= 2])
    stated = {
        "private": [X, y], "bounds": cvxqop.Bounds(row_norm=1.0), "epsilon": 1.0, "delta": 1e-6,
        "adjacency": adjacency, "persons": ids,
    }  # fmt: skip
    found = cvxqop.plan(problem, smoothing=0.1, rows_per_person=3, **stated)
    sensitivity = found.mechanism.sensitivity
    assert sensitivity.smoothness == pytest.approx(3 / 0.1, rel=1e-9)
    assert sensitivity.anchor_gradient == pytest.approx(3.0, rel=1e-9)
    auto = [
        cvxqop.plan(
            cp.Problem(
                cp.Minimize(cp.sum(cp.pos(1 - cp.multiply(y[:n], X[:n] @ w)))), [cp.norm(w) <= 2]
            ),
            smoothing="auto",
            rows_per_person=3,
            **{**stated, "private": [X[:n], y[:n]], "persons": np.minimum(ids[:n], 15)},
        )
        for n in (48, 60)
    ]
    assert str(auto[0]) == str(auto[1])
