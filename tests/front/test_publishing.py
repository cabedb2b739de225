"""A release as JSON and back: every digit, matched variables, clear refusals."""

import json
import math

import cvxpy as cp
import numpy as np
import pytest

import cvxqop

PAY = {"epsilon": 1.0, "delta": 1e-6, "bounds": cvxqop.Bounds(row_norm=1.0, offset=1.0)}
ARRAYS = ("hessian", "gradient", "anchor", "raw_hessian", "first_gradient", "first_anchor")


def records(n=60):
    rng = np.random.default_rng(5)
    X = rng.uniform(-0.5, 0.5, (n, 2))
    return X, np.clip(X @ [0.5, -0.5] + rng.normal(0, 0.1, n), -1, 1)


def lasso(X, y, **attributes):
    w = cp.Variable(2, name="w", **attributes)
    return cp.Problem(cp.Minimize(cp.sum_squares(X @ w - y) + cp.norm1(w))), w


MECHANISMS = [
    cvxqop.Gaussian(),
    cvxqop.Gaussian(stages=3),
    cvxqop.Gaussian(stages="adaptive"),
    cvxqop.Wishart(),
    cvxqop.Wishart(curvature="floor"),
    cvxqop.Linear(),
]


@pytest.mark.parametrize("perturbation", MECHANISMS, ids=str)
def test_round_trip(perturbation):
    X, y = records()
    problem, w = lasso(X, y)
    if isinstance(perturbation, cvxqop.Linear):
        problem = cp.Problem(problem.objective, [cp.abs(w) <= 2])
    solution = cvxqop.privatize(problem, private=[X, y], perturbation=perturbation, **PAY)
    text = solution.to_json()
    again = cvxqop.PrivateSolution.from_json(text)
    (own,) = again.values
    assert (own.name(), own.shape, own.value) == ("w", (2,), None)
    assert np.array_equal(again[own], solution[w])
    assert str(again) == str(solution)
    assert again.to_dict() == solution.to_dict()
    assert again.to_json() == text
    assert again.mechanism == solution.mechanism
    assert float(again.profile(0.7)) == float(solution.profile(0.7))
    loss = solution.private_loss
    assert (loss is None) == isinstance(perturbation, cvxqop.Linear)
    if loss is not None:
        twin = cvxqop.PrivateLoss.from_json(loss.to_json(), [w])
        assert twin.variables == (w,)
        for found in (twin, again.private_loss):
            assert all(np.array_equal(getattr(found, n), getattr(loss, n)) for n in ARRAYS)
            assert found.noise == loss.noise


def test_what_was_released_first_is_kept():
    X, y = records(4000)
    problem, _ = lasso(X, y)
    plan = cvxqop.plan(
        problem, private=[X, y], perturbation=cvxqop.Gaussian(stages=3), seed=3, **PAY
    )
    loss = plan.run().private_loss
    assert not np.any(loss.first_anchor)
    assert np.any(loss.anchor)
    assert loss.noise == plan.mechanism.law
    # 2 X'X and −2 X'y, up to ten standard deviations of the noise
    assert np.abs(loss.raw_hessian - 2 * X.T @ X).max() < 10 * loss.noise.curvature_scale
    assert np.abs(loss.first_gradient + 2 * X.T @ y).max() < 10 * loss.noise.gradient_scale
    assert np.any(loss.first_gradient != loss.gradient)
    # the repair raises eigenvalues, and only those below its level
    raised = np.linalg.eigvalsh(loss.hessian - loss.raw_hessian)
    assert raised.min() > -1e-9 * np.abs(loss.hessian).max()


def test_attributes_and_several_outputs_travel():
    rng = np.random.default_rng(0)
    X, Y = rng.uniform(-0.5, 0.5, (50, 2)), rng.uniform(-0.5, 0.5, (50, 3))
    theta = cp.Variable((2, 3), name="theta", bounds=[-1.5, np.full((2, 3), 2.0)])
    other = cp.Variable(2, name="u", nonneg=True)
    rest = cp.sum_squares(other - 1.0) + cp.norm1(theta)
    solution = cvxqop.privatize(
        cp.Problem(cp.Minimize(cp.sum_squares(X @ theta - Y) + rest)), private=[X, Y], **PAY
    )
    again = cvxqop.PrivateSolution.from_json(solution.to_json())
    own, u = again.values
    assert u.is_nonneg()
    cp.Problem(cp.Minimize(cp.sum(own))).solve()
    np.testing.assert_allclose(own.value, -1.5, atol=1e-6)
    loss = again.private_loss
    assert loss.raw_hessian.shape == (2, 2)
    assert loss.layout.tolist() == [[0, 2, 4], [1, 3, 5]]
    with pytest.raises(cvxqop.ProblemError, match=r"cp.Variable\(\(2, 3\), name='theta'\)"):
        cvxqop.PrivateSolution.from_json(solution.to_json(), [other, theta])


def test_other_variables_are_refused():
    X, y = records()
    problem, w = lasso(X, y)
    text = cvxqop.privatize(problem, private=[X, y], **PAY).private_loss.to_json()
    for wrong in (cp.Variable(2, name="v"), cp.Variable((2, 1), name="w"), "w"):
        with pytest.raises(cvxqop.ProblemError, match=r"\[cp.Variable\(\(2,\), name='w'\)\]"):
            cvxqop.PrivateLoss.from_json(text, [wrong])
    with pytest.raises(cvxqop.ProblemError):
        cvxqop.PrivateLoss.from_json(text, [w, w])


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "3", '{"format": "other"}', b"\xff", None])
def test_foreign_text_is_refused(text):
    with pytest.raises(cvxqop.ProblemError, match="from_json: this is"):
        cvxqop.PrivateLoss.from_json(text)


def test_damaged_text_is_refused():
    X, y = records()
    problem, _ = lasso(X, y)
    solution = cvxqop.privatize(problem, private=[X, y], **PAY)
    whole = json.loads(solution.private_loss.to_json())

    def refuses(change, words="from_json"):
        twin = json.loads(json.dumps(whole))
        change(twin)
        with pytest.raises(cvxqop.ProblemError, match=words):
            cvxqop.PrivateLoss.from_json(json.dumps(twin))

    for name in whole["release"]:
        refuses(lambda twin, name=name: twin["release"].update({name: {"kind": "object"}}))
        if name != "records":
            refuses(lambda twin, name=name: twin["release"].update({name: 7}))
    refuses(lambda twin: twin["release"].update(hessian={"array": [[1.0]]}), "shape")
    refuses(lambda twin: twin["release"].update(layout={"array": [[0.0], [0.0]]}), "shape")
    refuses(lambda twin: twin["release"].pop("gradient"))
    refuses(lambda twin: twin["release"].update(surplus=1))
    refuses(lambda twin: twin.update(format_version=99), "another version")
    with pytest.raises(cvxqop.ProblemError, match="PrivateSolution"):
        cvxqop.PrivateSolution.from_json(json.dumps(whole))


def test_json_is_standard_and_names_the_library():
    X, y = records()
    problem, _ = lasso(X, y)
    text = cvxqop.privatize(problem, private=[X, y], **PAY).to_json()

    def never(name):
        raise AssertionError(name)

    whole = json.loads(text, parse_constant=never)
    assert whole["cvxqop"] == cvxqop.__version__
    assert whole["release"]["loss"]["mapping"]["noise"]["class"] == "NoiseLaw"
    bounds = whole["release"]["guarantee"]["mechanism"]["sensitivity"]
    assert bounds["offset"] == 1.0
    assert math.isclose(bounds["smoothness"], 2.0)
