"""Private weights and weights of classes through the verbs: answers, refusals, plans, routes."""

import cvxpy as cp
import numpy as np
import pytest

import cvxqop

RNG = np.random.default_rng(5)
N, D = 3000, 3
X = RNG.uniform(-0.5, 0.5, (N, D))
Y = X @ [1.0, -1.0, 0.5] + 0.1 * RNG.uniform(-1, 1, N)
SIGNS = np.where(RNG.random(N) < 1 / (1 + np.exp(-4 * X @ [1.0, -1.0, 0.5])), 1.0, -1.0)
W = RNG.uniform(0.0, 2.0, N)
CLASSES = {-1: 1.0, 1: 2.0}
w, b = cp.Variable(D, name="w"), cp.Variable(name="b")
CX, CS = cp.Constant(X), cp.Constant(SIGNS)
BOUNDS = {"bounds": cvxqop.Bounds(row_norm=1.0, offset=1.5, weight=2.0)}
FINE = {**BOUNDS, "epsilon": 1e6, "delta": 1e-6, "seed": 1}
PAY = {"epsilon": 1.0, "delta": 1e-6}
RIDGE = cp.sum_squares(w)

LOSSES = {
    "squared": (cp.sum(cp.multiply(W, cp.square(CX @ w - Y))), [CX, Y, W]),
    "huber": (W @ cp.huber(CX @ w - Y, 0.2), [CX, Y, W]),
    "logistic": (cp.sum(cp.multiply(W, cp.logistic(-cp.multiply(CS, CX @ w)))), [CX, CS, W]),
}


@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
@pytest.mark.parametrize("name", LOSSES)
def test_the_answer_without_noise(name, adjacency):
    loss, private = LOSSES[name]
    problem = cp.Problem(cp.Minimize(loss + RIDGE), [cp.norm(w, 2) <= 4])
    problem.solve(solver="CLARABEL")
    expected = w.value
    solution = cvxqop.privatize(problem, private=private, adjacency=adjacency, **FINE)
    np.testing.assert_allclose(w.value, expected, atol=1e-3)
    assert "its private weight to [0, 2]" in " ".join(str(solution).split())


@pytest.mark.parametrize("variant", ["svrg", "plain"])
def test_stochastic_solvers_see_the_same_weights(variant):
    """Weights beyond the bound are those at it: the same noise, the same answer."""
    found = []
    for weights in (np.where(W > 1.0, 1e6, W), np.minimum(np.where(W > 1.0, 2.0, W), 2.0)):
        loss = cp.sum(cp.multiply(weights, cp.logistic(-cp.multiply(CS, CX @ w))))
        cvxqop.privatize(
            cp.Problem(cp.Minimize(loss + RIDGE)), private=[CX, CS, weights], epsilon=5.0,
            delta=1e-6, seed=1, solver="STOTOS", solver_options={"variant": variant},
            accuracy=1e-2 if variant == "svrg" else 0.2, **BOUNDS,
        )  # fmt: skip
        found.append(w.value)
    np.testing.assert_allclose(found[0], found[1], atol=1e-9)


def test_clipped_gradients():
    loss, private = LOSSES["squared"]
    cvxqop.privatize(
        cp.Problem(cp.Minimize(loss + RIDGE)), private=private,
        perturbation=cvxqop.Linear(clip=1.0), **{**BOUNDS, **PAY},
    )  # fmt: skip


def test_a_private_loss_is_released_once():
    loss, private = LOSSES["squared"]
    options = {"private": private, "epsilon": 1e6, "delta": 1e-6, "seed": 1}
    with pytest.raises(cvxqop.ProblemError, match="weight=2"):
        cvxqop.private_loss(loss, bounds=cvxqop.Bounds(row_norm=1.0, offset=1.5), **options)
    released = cvxqop.private_loss(loss, **BOUNDS, **options)
    cp.Problem(cp.Minimize(released.expression + RIDGE)).solve(solver="CLARABEL")
    found = w.value
    cp.Problem(cp.Minimize(loss + RIDGE)).solve(solver="CLARABEL")
    np.testing.assert_allclose(found, w.value, atol=1e-3)


def test_the_remedies_of_a_refusal_run():
    """A bound on the weights, or public weights of classes in their place."""
    loss, private = LOSSES["logistic"]
    problem = cp.Problem(cp.Minimize(loss + RIDGE))
    with pytest.raises(cvxqop.ProblemError) as caught:
        cvxqop.plan(problem, private=private, bounds=cvxqop.Bounds(row_norm=1.0), **PAY)
    said = str(caught.value)
    assert "Bounds(row_norm=…, weight=2)" in said
    assert "class_weight={-1: 1, 1: 2}" in said
    bounds = eval("cvxqop.Bounds(row_norm=1.0, weight=2)")
    cvxqop.privatize(problem, private=private, bounds=bounds, **PAY)
    plain = cp.sum(cp.logistic(-cp.multiply(CS, CX @ w)))
    cvxqop.privatize(
        cp.Problem(cp.Minimize(plain + RIDGE)), private=[CX, CS], class_weight={-1: 1, 1: 2},
        bounds=cvxqop.Bounds(row_norm=1.0), **PAY,
    )  # fmt: skip


@pytest.mark.parametrize("persons", [{}, {"persons": np.arange(N) // 2, "rows_per_person": 2}])
def test_class_weights_are_weights(persons):
    """As private weights that follow from the labels alone, written out."""
    own = np.where(SIGNS > 0, 2.0, 1.0)
    answers = []
    for loss, private, more in (
        (cp.sum(cp.logistic(-cp.multiply(CS, CX @ w + b))), [CX, CS], {"class_weight": CLASSES}),
        (cp.sum(cp.multiply(own, cp.logistic(-cp.multiply(CS, CX @ w + b)))), [CX, CS, own], {}),
        (cvxqop.glm_loss("logistic", X, SIGNS, w, intercept=b), [], {"class_weight": CLASSES}),
    ):
        problem = cp.Problem(cp.Minimize(loss + RIDGE))
        solution = cvxqop.privatize(problem, private=private, **{**FINE, **more, **persons})
        answers.append((w.value, solution.mechanism.sensitivity.smoothness))
    for value, smoothness in answers[1:]:
        np.testing.assert_allclose(value, answers[0][0], atol=1e-6)
        assert smoothness == pytest.approx(answers[0][1])


def test_class_weights_are_stated_once_and_shown():
    people = cvxqop.Records(X=CX, y=CS, class_weight=CLASSES, bounds=cvxqop.Bounds(row_norm=1.0))
    problem = cp.Problem(cp.Minimize(cp.sum(cp.logistic(-cp.multiply(CS, CX @ w)))))
    plan = cvxqop.plan(problem, private=people, **PAY)
    assert "public weight of its class (-1: 1, 1: 2, by private[1])" in " ".join(str(plan).split())
    assert "the weights of the classes, the anchor" in " ".join(str(plan).split())
    assert "public weight of its class" in cvxqop.explain(problem, people)
    with pytest.raises(cvxqop.OptionError, match="stated in the Records and in the call"):
        cvxqop.plan(problem, private=people, class_weight=CLASSES, **PAY)


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        ([1.0, 2.0], "must be a dict"),
        ({1: 2.0}, "must be a dict"),
        ({-1: 1.0, 1: 0.0}, "positive"),
        ({-1: 1.0, 1: np.inf}, "positive and finite"),
        ({-1: 1.0, "1": 2.0}, "a class is a finite number"),
        ({-1: 1.0, 1: "2"}, "a weight must be a number"),
    ],
)
def test_class_weights_that_are_none(weights, words):
    problem = cp.Problem(cp.Minimize(cp.sum(cp.logistic(-cp.multiply(CS, CX @ w)))))
    for verb in (cvxqop.plan, cvxqop.explain):
        more = {} if verb is cvxqop.explain else {**BOUNDS, **PAY}
        with pytest.raises(cvxqop.OptionError, match=words):
            verb(problem, private=[CX, CS], class_weight=weights, **more)
    with pytest.raises(cvxqop.OptionError, match="declared loss"):
        cvxqop.plan(
            problem, private=[CX, CS], class_weight=CLASSES, **PAY,
            declared=cvxqop.Declared(smoothness=1.0, anchor_gradient=1.0),
        )  # fmt: skip


def test_a_row_norm_that_took_the_intercept_in_is_warned_of():
    loss = cp.sum(cp.logistic(-cp.multiply(CS, CX @ w + b)))
    problem = cp.Problem(cp.Minimize(loss + RIDGE))
    plans = {
        norm: cvxqop.plan(problem, private=[CX, CS], bounds=cvxqop.Bounds(row_norm=norm), **PAY)
        for norm in (1.0, np.sqrt(2), np.hypot(0.5, 1.0), 1.4, 2.0, np.sqrt(3.0))
    }
    told = {norm for norm, plan in plans.items() if any("row_norm=" in t for t in plan.warnings)}
    assert told == {np.sqrt(2), np.hypot(0.5, 1.0)}
    assert "row_norm=1 bounds the features alone" in str(plans[np.sqrt(2)].warnings)
    size = np.hypot(1.0, 0.5)  # the intercept at half its size
    assert f"‖a‖ ≤ {size:g}, and its label to [−1, 1]" in " ".join(str(plans[1.0]).split())
    plans[np.sqrt(2)].run()


def test_no_weight_of_a_record_is_said():
    """Neither the refusal of a weight that is not a number nor a plan tells one."""
    weights = W.copy()
    weights[7] = np.nan
    loss = cp.sum(cp.multiply(weights, cp.square(CX @ w - Y)))
    problem = cp.Problem(cp.Minimize(loss))
    with pytest.raises(cvxqop.ProblemError, match="nonfinite") as caught:
        cvxqop.privatize(problem, private=[CX, Y, weights], **{**FINE, "seed": None})
    assert "7" not in str(caught.value)
    cvxqop.privatize(problem, private=[CX, Y, weights], nonfinite="zero", **FINE)
