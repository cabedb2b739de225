"""Losses of one affine argument a record, in the spellings that people use, against CVXPY."""

import warnings

import cvxpy as cp
import numpy as np
import pytest

import cvxqop
from cvxqop.problem.losses.phi.recognise import recognise

RNG = np.random.default_rng(3)
N, D = 1000, 3
X = RNG.uniform(-0.5, 0.5, (N, D))
Y = X @ [1.0, -1.0, 0.5] + 0.1 * RNG.uniform(-1, 1, N)
S = np.where(RNG.uniform(size=N) < 1 / (1 + np.exp(-6 * Y)), 1.0, -1.0)
COUNTS = np.minimum(RNG.poisson(np.exp(Y)), 6).astype(float)
W, B = cp.Variable(D, name="w"), cp.Variable(name="b")
BALL = [cp.norm(W, 2) <= 2, cp.abs(B) <= 1]
T, U, M = X @ W - Y, Y - X @ W - B, cp.multiply(S, X @ W + B)
TAU, H = 0.75, 0.05
PAY = {"delta": 1e-6, "bounds": cvxqop.Bounds(row_norm=1.0, offset=1.5)}
PINBALL = {
    "maximum": cp.sum(cp.maximum(TAU * U, (TAU - 1) * U)),
    "abs": cp.sum(0.5 * cp.abs(U) + (TAU - 0.5) * U),
    "pos and neg": cp.sum(TAU * cp.pos(U) + (1 - TAU) * cp.neg(U)),
}

# What is released as it stands: the term, and what it is beside the bounds.
SMOOTH = {
    "pseudo-Huber": (cp.sum(cp.norm(cp.vstack([10 * T, np.ones(N)]), 2, axis=0)), {}),
    "log-cosh": (cp.sum(cp.logistic(2 * T) - T), {}),
    "log-cosh of two": (cp.sum(cp.log_sum_exp(cp.vstack([T, -T]), axis=0)), {}),
    "Huberised hinge": (cp.sum(cp.huber(cp.pos(1 - M), 0.5)), {}),
    "squared hinge": (cp.sum_squares(cp.pos(1 - M)), {}),
    "squared ε-insensitive": (cp.sum(cp.square(cp.pos(cp.abs(T) - 0.05))), {}),
    "expectile": (cp.sum(TAU * cp.square(cp.pos(U)) + (1 - TAU) * cp.square(cp.neg(U))), {}),
    "fourth power": (cp.sum(cp.power(T, 4)), {"argument": 0.5}),
    "probit": (-cp.sum(cp.log_normcdf(M)), {}),
    "Poisson": (cp.sum(cp.exp(X @ W) - cp.multiply(COUNTS, X @ W)), {"offset": 6.0}),
    "exponential": (cp.sum(cp.exp(-(X @ W))), {}),
    "on a range": (
        cp.sum(cp.inv_pos(X @ W + 3)),
        {"argument": (0.5, 6.0)},
    ),
}
# The term, its argument and sign, and φ of one number.
ROUGH = {
    "hinge": (cp.sum(cp.pos(1 - M)), M, lambda t: cp.pos(1 - t)),
    "pos": (cp.sum(cp.pos(T)), T, cp.pos),
    "LAD": (cp.sum(cp.abs(T)), T, cp.abs),
    "norm1": (0.5 * cp.norm1(T), T, lambda t: 0.5 * cp.abs(t)),
    "ε-insensitive": (cp.sum(cp.pos(cp.abs(T) - 0.05)), T, lambda t: cp.pos(cp.abs(t) - 0.05)),
    "power 1.5": (cp.sum(cp.power(cp.abs(T), 1.5)), T, lambda t: cp.power(cp.abs(t), 1.5)),
} | {
    f"pinball, {name}": (term, U, lambda t: cp.maximum(TAU * t, (TAU - 1) * t))
    for name, term in PINBALL.items()
}


def released(term, rest=(0.0, BALL), **options):
    bounds = {"row_norm": 1.0, "offset": 1.5, **options.pop("bounded", {})}
    problem = cp.Problem(cp.Minimize(term + rest[0]), rest[1])
    return cvxqop.privatize(
        problem,
        private=[X, Y, S, COUNTS],
        delta=1e-6,
        bounds=cvxqop.Bounds(**bounds),
        seed=1,
        **{"epsilon": 1e6, **options},
    )


def refused(term, constraints=(), **options):
    bounds = {"row_norm": 1.0, "offset": 1.5, **options.pop("bounded", {})}
    problem = cp.Problem(cp.Minimize(term), list(constraints))
    with pytest.raises(cvxqop.CvxqopError) as caught:
        cvxqop.plan(
            problem,
            private=[X, Y, S, COUNTS],
            epsilon=1.0,
            delta=1e-6,
            bounds=cvxqop.Bounds(**bounds),
            **options,
        )
    return str(caught.value)


def optimum(objective, constraints=BALL):
    problem = cp.Problem(cp.Minimize(objective), constraints)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        problem.solve(solver="CLARABEL")
    return problem.value


@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
@pytest.mark.parametrize("name", SMOOTH)
def test_smooth_losses_are_released_as_they_stand(name, adjacency):
    """At ε = 10⁶ the objective of CVXPY's solution is within 1e-3 of it."""
    term, bounded = SMOOTH[name]
    sets = BALL if B in set(term.variables()) else BALL[:1]
    solution = released(term, (0.0, sets), bounded=bounded, adjacency=adjacency)
    value = term.value
    best = optimum(term, sets)
    assert value - best <= 1e-3 * abs(best) + 2e-6 * N
    assert solution.guarantee.adjacency == adjacency


@pytest.mark.parametrize("name", ROUGH)
def test_losses_with_kinks_are_smoothed(name):
    """The release minimises the envelope: minimised by CVXPY over t and what is beside it."""
    term, argument, phi = ROUGH[name]
    solution = released(term, smoothing=H)
    weight = 0.5 if name == "norm1" else 1.0
    s = cp.Variable(N)
    split = cp.sum(phi(s)) + weight * cp.sum_squares(s - argument) / (2 * H)
    theta = {v: v.value for v in term.variables()}
    if not name.startswith(("pinball", "hinge", "pos")):  # centred: see the theory, §1
        sets = BALL if B in set(term.variables()) else BALL[:1]
        best = optimum(split, sets)
        for v, value in theta.items():
            v.value = value
        fixed = float(np.sum(_envelope(phi, argument.value, H / weight)))
        assert fixed - best <= 1e-3 * abs(best) + 2e-6 * N
    else:
        found = term.value
        jump = 1.0
        assert found - optimum(term) <= N * H * jump**2 / 8
    (text,) = [one for one in solution.guarantee.assumptions if "Moreau" in one]
    assert f"width h = {H:g}" in text
    assert "lower by at most" in text


def _envelope(phi, t, h):
    """min_s φ(s) + (s − t)²/(2h), on a grid that holds the kinks."""
    grid = np.concatenate([np.linspace(-3, 3, 6001), [0.0, 1.0, 0.05, -0.05]])
    values = phi(cp.Constant(grid)).value
    return [np.min(values + (grid - one) ** 2 / (2 * h)) for one in t]


def test_spellings_of_the_pinball_are_one_loss():
    releases = [released(term, smoothing=0.1)[W] for term in PINBALL.values()]
    for other in releases[1:]:
        np.testing.assert_allclose(other, releases[0], atol=1e-9)


def test_cvar_of_a_portfolio():
    """Rockafellar and Uryasev's form: the level is a public term beside the hinge."""
    R = 0.05 + RNG.uniform(-0.5, 0.5, (N, D)) * [0.3, 0.6, 0.9]
    v, a = cp.Variable(D), cp.Variable()
    term = a + cp.sum(cp.pos(-(R @ v) - a)) / (0.1 * N)
    problem = cp.Problem(cp.Minimize(term), [cp.sum(v) == 1, v >= 0, cp.abs(a) <= 2])
    cvxqop.privatize(
        problem,
        private=[R],
        bounds=cvxqop.Bounds(row_norm=1.2),
        epsilon=1e6,
        delta=1e-6,
        smoothing=0.01,
        seed=0,
    )
    found = problem.objective.value
    problem.solve(solver="CLARABEL")
    assert found - problem.value <= 0.01 * 10 / 8 + 1e-3  # h jump² / 8 over 1 − β


@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
def test_auto_chooses_a_width_from_public_numbers(adjacency):
    """More epsilon, less smoothing; other records, the same width."""
    term = cp.sum(cp.pos(1 - M))

    def width(y, epsilon):
        own = cp.sum(cp.pos(1 - cp.multiply(y, X @ W + B)))
        plan = cvxqop.plan(
            cp.Problem(cp.Minimize(own)),
            private=[X, y],
            epsilon=epsilon,
            smoothing="auto",
            adjacency=adjacency,
            **PAY,
        )
        (text,) = [one for one in plan.guarantee.assumptions if "Moreau" in one]
        return float(text.split("h = ")[1].split(",")[0])

    assert term.is_convex()
    assert width(S, 1.0) > width(S, 10.0) > 0.0
    assert width(S, 1.0) == width(-S, 1.0)


@pytest.mark.parametrize("name", ["hinge", "LAD", "pinball, maximum", "power 1.5"])
def test_the_width_of_auto_is_near_the_best(name):
    """Mean over ten releases of the loss as written: at most three times that of a width 8 times as
    large, or as small."""
    term, _, _ = ROUGH[name]
    problem = cp.Problem(cp.Minimize(term + 0.01 * cp.sum_squares(W)))
    best = problem.solve(solver="CLARABEL")
    stated = {"private": [X, S if name == "hinge" else Y], "epsilon": 1.0, **PAY}
    stated["bounds"] = cvxqop.Bounds(row_norm=1.5 if name == "hinge" else 1.0, offset=1.5)
    plan = cvxqop.plan(problem, smoothing="auto", **stated)
    (text,) = [one for one in plan.guarantee.assumptions if "Moreau" in one]
    h = float(text.split("h = ")[1].split(",")[0])

    def excess(width):
        found = []
        for seed in range(10):
            cvxqop.privatize(problem, smoothing=width, seed=seed, **stated)
            found.append(float(problem.objective.value) - best)
        return np.mean(found)

    assert excess(h) <= 3.0 * min(excess(8 * h), excess(h / 8))


# Refusals, each with the options of its remedy.
REMEDIES = {
    "hinge": (cp.sum(cp.pos(1 - M)), {}, 'smoothing="auto"', {"smoothing": "auto"}),
    "LAD": (cp.norm1(T), {}, 'smoothing="auto"', {"smoothing": "auto"}),
    "width": (cp.norm1(T), {}, "smoothing=0.5", {"smoothing": 0.5}),
    "fourth power": (
        cp.sum(cp.power(T, 4)), {}, "argument=2)", {"bounded": {"argument": 2.0}},
    ),
    "Poisson": (
        cp.sum(cp.exp(X @ W) - cp.multiply(COUNTS, X @ W)),
        {},
        "argument=2)",
        {"bounded": {"argument": 2.0}},
    ),
    "logarithm": (
        -cp.sum(cp.log(X @ W + 2)),
        {},
        "argument=(0.5, 2))",
        {"bounded": {"argument": (0.5, 2.0)}},
    ),
    "labels": (
        cp.sum(cp.exp(X @ W) - cp.multiply(COUNTS, X @ W)),
        {"bounded": {"argument": 2.0, "offset": None}},
        "offset=…",
        {"bounded": {"argument": 2.0, "offset": 6.0}},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REMEDIES)
def test_the_remedy_of_a_refusal_runs(name):
    term, options, words, remedy = REMEDIES[name]
    assert words in refused(term, **options)
    solution = released(term, (0.0, []), epsilon=1.0, **remedy)
    assert np.all(np.isfinite(solution[W]))


def test_the_remedy_of_a_bounded_variable_runs():
    term = cp.sum(cp.power(T, 4))
    assert "norm(w, 2) <= 2" in refused(term)
    assert np.all(np.isfinite(released(term, (0.0, [cp.norm(W, 2) <= 2]))[W]))


def test_private_numbers_inside_the_loss_are_refused():
    for term in (
        cp.sum(cp.kl_div(COUNTS, X @ W)),
        cp.sum(cp.maximum(cp.abs(X @ W), Y)),
    ):
        assert "private numbers inside the loss beside its argument" in refused(term)
    weighted = cp.sum(cp.multiply(COUNTS, cp.abs(T)))
    assert "is weighted by private data" in refused(weighted, smoothing=0.1)


def test_what_is_no_sum_over_records_says_so():
    for term, instead in (
        (cp.norm(T, 2), cp.norm(T, 2) ** 2),
        (cp.norm_inf(T), cp.sum(cp.huber(T))),
        (cp.sum_largest(T, 5), cp.sum(cp.huber(T))),
        (cp.log_sum_exp(T), cp.sum(cp.huber(T))),
    ):
        text = refused(term, smoothing="auto")
        assert "no sum over records" in text
        assert np.all(np.isfinite(released(instead)[W]))


@pytest.mark.parametrize("form", [cp.sum(cp.abs(T)) / N, cp.sum(cp.abs(T) / N), cp.norm1(T / N)])
def test_a_mean_stays_refused_where_n_is_private(form):
    text = refused(form, adjacency="add_remove", smoothing=0.1)
    assert "add_remove" in text or "no sum over records" in text


def test_a_mean_inside_the_loss_is_refused_where_n_is_private():
    form = cp.sum(cp.square(cp.pos(cp.abs(T)) / np.sqrt(N)))
    assert "private under add_remove" in refused(form, adjacency="add_remove")
    stated = cvxqop.plan(
        cp.Problem(cp.Minimize(cp.sum(cp.pos(0.37 * cp.abs(T))))),
        private=[X, Y],
        epsilon=1.0,
        adjacency="add_remove",
        smoothing=0.1,
        **PAY,
    )
    assert any("0.37" in one for one in stated.guarantee.assumptions)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (0.0, "positive"),
        (-1.0, "positive"),
        (np.inf, "finite"),
        ("much", "'auto'"),
        (True, "number"),
    ],
)
def test_a_width_is_a_positive_number(value, words):
    text = refused(cp.norm1(T), smoothing=value)
    assert "smoothing" in text
    assert words in text


@pytest.mark.parametrize("value", [0.0, -2.0, (1.0, 1.0), (1.0,), "x", (1.0, "y"), True])
def test_a_range_is_a_number_or_a_pair(value):
    with pytest.raises(cvxqop.OptionError, match="argument"):
        cvxqop.Bounds(row_norm=1.0, argument=value)


def test_known_losses_beside_a_new_one_are_one_function():
    """τ t₊² + (1 − τ) t₋² has κ = 2 max(τ, 1 − τ), not the sum."""
    t = cp.Variable()
    phi = TAU * cp.square(cp.pos(t)) + (1 - TAU) * cp.square(cp.neg(t))
    assert recognise(phi, t).loss.curvature == 2 * TAU
    text = cvxqop.explain(cp.Problem(cp.Minimize(SMOOTH["expectile"][0])), private=[X, Y])
    assert "curvature κ = 1.5" in text


def test_explain_reads_what_waits_for_a_number():
    text = cvxqop.explain(cp.Problem(cp.Minimize(cp.norm1(T))), private=[X, Y])
    assert 'smoothing="auto"' in text


RECORDS = np.random.default_rng(3).uniform(-0.5, 0.5, (40, 3))


@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
def test_an_entry_of_a_private_array_is_no_public_number(adjacency):
    """κ would tell y[0], of which CVXPY has a copy: an array of one number is listed or refused."""
    t, target = cp.Variable(3), RECORDS[:, 0].copy()
    for argument in (RECORDS @ t + target[:1], cp.multiply(np.abs(target[:1]), RECORDS @ t)):
        problem = cp.Problem(cp.Minimize(cp.sum(cp.exp(argument))), [cp.norm(t) <= 1])
        with pytest.raises(cvxqop.ProblemError):
            cvxqop.plan(
                problem, private=[RECORDS, target], bounds=cvxqop.Bounds(row_norm=1.0, offset=1.0),
                epsilon=1.0, delta=1e-6, adjacency=adjacency,
            )  # fmt: skip


def test_numbers_inside_a_loss_are_vouched_for():
    """Where n is private, 1/n may hide in any number of φ: the guarantee says what it rests on."""
    t = cp.Variable(3)
    threshold = cp.Parameter(nonneg=True, value=1 / len(RECORDS))
    for loss in (
        cp.quad_over_lin(cp.exp(RECORDS @ t), len(RECORDS)),
        cp.sum(cp.exp(RECORDS @ t - np.log(len(RECORDS)))),
        cp.sum(cp.pos(threshold * cp.exp(RECORDS @ t))),
    ):
        plan = cvxqop.plan(
            cp.Problem(cp.Minimize(loss), [cp.norm(t) <= 2]), private=[RECORDS],
            bounds=cvxqop.Bounds(row_norm=1.0, offset=1.0), epsilon=1.0, delta=1e-6,
            adjacency="add_remove", smoothing=0.1,
        )  # fmt: skip
        said = " ".join(plan.guarantee.assumptions)
        assert (
            "No number in the loss was computed from records, or from how many there are." in said
        )


def test_a_parameter_as_a_factor_where_n_is_private():
    t, factor = cp.Variable(3), cp.Parameter(nonneg=True, value=0.3)
    loss = cp.sum_squares(factor * (RECORDS @ t - RECORDS[:, 0]))
    plan = cvxqop.plan(
        cp.Problem(cp.Minimize(loss)), private=[RECORDS, RECORDS[:, 0]], epsilon=1.0, delta=1e-6,
        bounds=cvxqop.Bounds(row_norm=1.0, offset=1.0), adjacency="add_remove",
    )  # fmt: skip
    assert plan.mechanism.sensitivity.smoothness == pytest.approx(2 * 0.3**2)
