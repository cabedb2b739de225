"""perturbation="auto", the candidates of a plan, its plot, and stages that know the public rest."""

import cvxpy as cp
import numpy as np
import pytest

import cvxqop
from cvxqop.privacy.gaussian.adaptive import CalibratedAdaptive
from cvxqop.privacy.gaussian.calibrated import CalibratedGaussian
from cvxqop.privacy.linear.options import CalibratedLinear

RNG = np.random.default_rng(3)
X = RNG.uniform(-0.4, 0.4, (3000, 4))
Y = np.clip(X @ [1.0, -0.5, 0.2, 0.0] + 0.05 * RNG.standard_normal(3000), -1, 1)
PAY = {"bounds": cvxqop.Bounds(row_norm=1.0, offset=1.0), "epsilon": 1.0, "delta": 1e-6}


def squares(constraints=()):
    theta = cp.Variable(4, name="theta")
    return cp.Problem(cp.Minimize(cp.sum_squares(X @ theta - Y)), [c(theta) for c in constraints])


def plan(problem, **options):
    return cvxqop.plan(problem, private=[X, Y], **{**PAY, "perturbation": "auto", **options})


@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
def test_auto_takes_adaptive_stages_of_a_squared_loss_and_shows_all(adjacency):
    chosen = plan(squares(), adjacency=adjacency)
    risks = {c.name: c.predicted_risk for c in chosen.candidates}
    assert isinstance(chosen.mechanism, CalibratedAdaptive)
    assert chosen.mechanism is chosen.candidates[0].mechanism
    assert chosen.candidates[0].name == "Gaussian(stages='adaptive')"
    assert all(risk > 0.0 for name, risk in risks.items() if name != "Linear()")
    assert risks["Linear()"] is None
    text = str(chosen)
    assert all(name in text for name in risks)
    assert "no bound over the constraint set" in " ".join(text.split())
    assert max(map(len, text.splitlines())) <= 88
    assert chosen.profile(1.0) <= 1e-6
    again = squares()
    again.solve(method="QOP", private=[X, Y], perturbation="auto", adjacency=adjacency, **PAY)
    assert again.variables()[0].value is not None


@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
def test_auto_takes_the_smallest_prediction_where_there_are_no_adaptive_stages(adjacency):
    """Two rows a record: their residuals have no common cut."""
    theta = cp.Variable(4)
    both = cp.sum_squares(X @ theta - Y) + cp.sum_squares(X[:, ::-1] @ theta - Y)
    chosen = cvxqop.plan(
        cp.Problem(cp.Minimize(both)), private=[X, X[:, ::-1], Y], adjacency=adjacency, **PAY
    )
    first, *others = chosen.candidates
    assert first.mechanism is None
    assert "not possible" in first.text
    risks = {c.name: c.predicted_risk for c in others}
    best = min(risks, key=lambda name: risks[name] or np.inf)
    winner = next(c for c in others if c.name == best)
    assert isinstance(chosen.mechanism, CalibratedGaussian)
    assert winner.mechanism.describe() == chosen.mechanism.describe()


def test_auto_takes_one_stage_where_no_record_has_a_gradient():
    exact = X @ [1.0, -0.5, 0.2, 0.0]
    theta = cp.Variable(4)
    common = cvxqop.CommonMinimizer(np.array([1.0, -0.5, 0.2, 0.0]))
    chosen = cvxqop.plan(
        cp.Problem(cp.Minimize(cp.sum_squares(X @ theta - exact))),
        private=[X, exact],
        anchor=common,
        **PAY,
    )
    assert chosen.candidates[0].name == "Gaussian()"
    assert not isinstance(chosen.mechanism, CalibratedAdaptive)


def test_auto_counts_the_linear_mechanism_where_gradients_are_bounded():
    chosen = plan(squares([lambda theta: cp.norm_inf(theta) <= 0.5]))
    assert all(c.mechanism is not None for c in chosen.candidates)


def test_auto_can_choose_the_linear_mechanism():
    """Labels in ±1, d = 1 and no curvature to hide but a quarter: the linear noise is cheapest."""
    x, labels = X[:, :1], np.sign(Y)
    theta = cp.Variable(1)
    problem = cp.Problem(cp.Minimize(cp.sum(cp.logistic(cp.multiply(-labels, x @ theta)))))
    chosen = cvxqop.plan(
        problem, private=[x, -labels], perturbation="auto", adjacency="add_remove", **PAY
    )
    assert isinstance(chosen.mechanism, CalibratedLinear)
    assert chosen.run().adjacency == "add_remove"


def test_the_choice_depends_on_no_record():
    first = plan(squares(), adjacency="add_remove")
    theta = cp.Variable(4, name="theta")
    x, y = 0.1 * X[:50], -Y[:50]
    second = cvxqop.plan(
        cp.Problem(cp.Minimize(cp.sum_squares(x @ theta - y))),
        private=[x, y],
        **PAY,
        perturbation="auto",
        adjacency="add_remove",
    )
    assert str(first) == str(second)


def test_what_no_candidate_can_do_is_said_once():
    with pytest.raises(cvxqop.OptionError, match="no option"):
        plan(squares(), solver="STOTOS", solver_options={"tolerance": 1.0})


def test_plot_has_the_profile_and_every_candidate():
    chosen = plan(squares())
    figure = chosen.plot()
    profile, risk = figure.axes
    usable = [c for c in chosen.candidates if c.mechanism is not None]
    assert len(risk.lines) == len(usable) + 1  # nL/D
    curve = profile.lines[0]
    assert np.interp(1.0, curve.get_xdata(), np.log(curve.get_ydata())) == pytest.approx(
        np.log(chosen.profile(1.0)), abs=0.2
    )
    one = plan(squares(), perturbation="wishart", adjacency="add_remove").plot()
    assert len(one.axes[1].lines) == 1


def test_private_loss_takes_auto_and_never_the_linear_mechanism():
    theta = cp.Variable(4)
    loss = cvxqop.private_loss(
        cp.sum_squares(X @ theta - Y), private=[X, Y], perturbation="auto", **PAY
    )
    assert isinstance(loss.guarantee.mechanism, CalibratedGaussian)


def test_stages_know_the_public_rest_where_it_is_given():
    """The second stage is released at the solution of the first, under the same constraints."""
    theta = cp.Variable(4, name="theta")
    expression = cp.sum_squares(X @ theta - Y)
    options = {**PAY, "private": [X, Y], "perturbation": cvxqop.Gaussian(stages=2), "seed": 1}
    free = cvxqop.private_loss(expression, **options)
    held = cvxqop.private_loss(
        expression, regularizer=cp.norm1(theta), constraints=[theta >= 0.3], **options
    )
    assert np.all(held.anchor >= 0.3 - 1e-8)
    assert np.any(free.anchor < 0.3)
    problem = cp.Problem(cp.Minimize(expression + cp.norm1(theta)), [theta >= 0.3])
    whole = cvxqop.privatize(problem, **options)
    np.testing.assert_allclose(held.anchor, whole.private_loss.anchor, atol=1e-7)
    np.testing.assert_allclose(held.gradient, whole.private_loss.gradient, atol=1e-5)


def test_private_data_in_the_rest_of_a_private_loss_is_refused():
    theta = cp.Variable(4)
    with pytest.raises(cvxqop.ProblemError):
        cvxqop.private_loss(
            cp.sum_squares(X @ theta - Y),
            private=[X, Y],
            constraints=[X @ theta <= 1],
            perturbation=cvxqop.Gaussian(stages=2),
            **PAY,
        )


@pytest.mark.parametrize(
    ("bounds", "radius"), [((2.0, 6.0), 3.0), ((0.5, 0.25), 0.5), ((1.0, 1000.0), 0.8)]
)
def test_default_radius_has_the_units_of_theta(bounds, radius):
    """B/R, or √(Σ 0.4²) = 0.8 where the box reaches no farther."""
    box = [lambda theta: cp.norm_inf(theta) <= 0.4] if radius == 0.8 else []
    row_norm, offset = bounds
    stated = cvxqop.Bounds(row_norm=row_norm, offset=offset)
    chosen = cvxqop.plan(squares(box), private=[X, Y], bounds=stated, epsilon=1.0, delta=1e-6)
    assert chosen.radius == pytest.approx(radius)


def test_default_radius_of_a_classification():
    theta = cp.Variable(4)
    problem = cp.Problem(cp.Minimize(cp.sum(cp.logistic(X @ theta))))
    bounds = cvxqop.Bounds(row_norm=0.5)
    chosen = cvxqop.plan(problem, private=[X], bounds=bounds, epsilon=1.0, delta=1e-6)
    assert chosen.radius == pytest.approx(2.0 * 2.0 / 0.5)


def growing(loss, constraints=()):
    theta = cp.Variable(4, name="theta")
    return cp.Problem(cp.Minimize(loss(X @ theta - Y)), [c(theta) for c in constraints])


def expectile(t):
    return cp.sum(0.75 * cp.square(cp.pos(t)) + 0.25 * cp.square(cp.neg(t)))


@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
def test_slopes_that_grow_are_clipped_at_the_radius(adjacency):
    """R sup |φ'| over |t| ≤ B + R D0 = 2: 2 · 0.75 · 2. At ε = 10⁶ the answer is that without
    privacy; the other mechanisms keep a ridge of one record's curvature, 1.5 or more."""
    problem = growing(expectile)
    chosen = plan(problem, epsilon=1e6, adjacency=adjacency)
    assert isinstance(chosen.mechanism, CalibratedLinear)
    assert chosen.mechanism.clip == pytest.approx(3.0, rel=1e-12)
    assert chosen.mechanism.gradient == chosen.mechanism.clip
    assert chosen.mechanism.sensitivity.gradient == np.inf
    text = " ".join(str(chosen).split())
    assert "clipped to norm ζ = 3, which none exceeds within 1 of the anchor: beyond" in text
    others = [c.mechanism.ridge for c in chosen.candidates if not c.name.startswith("Linear")]
    assert min(others) >= 1.5
    chosen.run()
    found = float(problem.objective.value)
    assert found / problem.solve(solver="CLARABEL") - 1 <= 1e-5
    assert plan(problem, radius=2.0).mechanism.clip in (None, pytest.approx(4.5, rel=1e-12))


def test_a_clip_changes_nothing_that_a_record_may_meet_within_the_radius():
    """The same noise with and without it gives the same answer."""
    problem = growing(expectile, [lambda theta: cp.norm(theta, 2) <= 100])
    chosen = plan(problem, epsilon=1e6, seed=4)
    clip = chosen.mechanism.clip
    assert clip == pytest.approx(3.0, rel=1e-12)
    first = chosen.run()
    wide = plan(problem, epsilon=1e6, seed=4, perturbation=cvxqop.Linear(clip=clip)).run()
    (theta,) = problem.variables()
    np.testing.assert_array_equal(first[theta], wide[theta])
    text = str(plan(problem, perturbation=cvxqop.Linear(clip=0.9 * clip)))
    assert "not the loss as written" in " ".join(text.split())


def test_a_bound_over_the_constraints_that_is_near_is_kept():
    chosen = plan(growing(expectile, [lambda theta: cp.norm(theta, 2) <= 1.5]), epsilon=1e6)
    assert chosen.mechanism.clip is None
    assert chosen.mechanism.gradient == pytest.approx(1.5 * 2.5, rel=1e-12)


def test_a_continued_loss_is_clipped_at_the_slopes_of_the_loss_as_written():
    """−log t on (0.25, 4) has slopes up to 4, and the parabola beyond has larger ones."""
    rows = RNG.uniform(0.2, 0.5, (3000, 4))
    theta = cp.Variable(4, name="theta")
    times = 1.0 + RNG.uniform(size=3000)
    problem = cp.Problem(cp.Minimize(times @ (rows @ theta) - cp.sum(cp.log(rows @ theta))))
    chosen = cvxqop.plan(
        problem, private=[rows, times], epsilon=1e6, delta=1e-6,
        bounds=cvxqop.Bounds(row_norm=1.0, offset=2.0, argument=(0.25, 4.0)),
    )  # fmt: skip
    assert chosen.mechanism.clip == pytest.approx(4.0 + 2.0, rel=1e-9)
    assert "where its argument is in the range above" in " ".join(str(chosen).split())


def test_squared_losses_are_not_clipped_by_auto():
    for adjacency in ("replace_one", "add_remove"):
        names = {c.name for c in plan(squares(), adjacency=adjacency).candidates}
        assert "Linear()" in names
