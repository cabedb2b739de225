"""Error bars from the release alone."""

import copy
import os
import subprocess
import sys
from dataclasses import replace

import cvxpy as cp
import numpy as np
import pytest
from releases import PAY, Case, records
from scipy.stats import norm

import cvxqop
from cvxqop.inference.released import generator_of, redraws
from cvxqop.inference.solving import PublicRest
from cvxqop.privacy.gaussian.symmetric import repaired
from cvxqop.privacy.law import NoiseLaw


@pytest.fixture(scope="module")
def case():
    return Case()


def by_hand(loss, law, H, g):
    hessian = repaired(H, law.edge, "floor")
    return replace(loss, hessian=hessian, raw_hessian=H, gradient=g, first_gradient=g, noise=law)


def test_without_noise_on_the_curvature_the_ends_are_normal_quantiles(case):
    """θ_b = −H⁻¹(g − a): N(−H⁻¹g, σ²H⁻²), and the quantiles of 20,000 draws are within 5 s.e."""
    H = np.diag([10.0, 20.0, 40.0, 80.0, 160.0])
    law = NoiseLaw("gaussian", 1e-9, 3.0, edge=1e-8)
    loss = by_hand(case.loss, law, H, np.arange(5.0))
    for level in (0.9, 0.95):
        bars = loss.error_bars(level=level, draws=20_000, seed=4)
        size = norm.ppf(0.5 + 0.5 * level) * 3.0 / np.diag(H)
        centre = -np.arange(5.0) / np.diag(H)
        np.testing.assert_allclose(bars.lower[case.theta], centre - size, atol=0.05 * size.max())
        np.testing.assert_allclose((bars.upper[case.theta] - centre) / size, 1.0, atol=0.08)
        assert not np.any(bars.undetermined[case.theta])
    assert np.array_equal(bars.released[case.theta], centre)


@pytest.mark.parametrize("perturbation", [cvxqop.Gaussian(), cvxqop.Wishart()])
def test_redraws_are_centred_at_the_release_and_have_its_law(perturbation):
    """At large curvature nothing is raised: H_b − H̃ + E S has the variance of the noise."""
    loss = Case(d=3, perturbation=perturbation).loss
    law = loss.noise
    loss = replace(loss, raw_hessian=loss.raw_hessian + 1e6 * np.eye(3))
    (forms,) = redraws(loss, 20_000, np.random.default_rng(3))
    S = loss.raw_hessian - law.mean * np.eye(3) - forms.H
    m = law.degrees_of_freedom
    diagonal = law.curvature_scale * (1.0 if m is None else np.sqrt(2.0 * m))
    assert np.abs(S.mean(axis=0)).max() < 0.04 * diagonal
    np.testing.assert_allclose(np.diag(S.std(axis=0)), diagonal, rtol=0.05)
    np.testing.assert_allclose(S[:, 0, 1].std(), diagonal / np.sqrt(2.0), rtol=0.05)
    a = loss.first_gradient - forms.g
    np.testing.assert_allclose(a.std(axis=0), law.gradient_scale, rtol=0.05)
    assert not np.any(forms.raised)


def test_where_noise_exceeds_the_data_a_coefficient_is_not_determined(case):
    law = NoiseLaw("gaussian", 10.0, 1.0, edge=10.0 * np.sqrt(10.0))
    H = np.diag([1e4, 1e4, 1e4, 1e4, 0.0])
    bars = by_hand(case.loss, law, H, np.ones(5)).error_bars(draws=200, seed=0)
    assert bars.undetermined[case.theta].tolist() == [False] * 4 + [True]
    assert bars.share[case.theta][4] > 0.3
    text = str(bars)
    assert text.count("not determined") == 1
    assert "Read its interval as unbounded" in text
    assert "misses come together" in text
    assert "clipping" in text


def test_a_solution_has_the_bars_of_its_problem():
    X, y = records()
    theta = cp.Variable(5, name="theta")
    lam = cp.Parameter(nonneg=True, value=5.0)
    problem = cp.Problem(
        cp.Minimize(cp.sum_squares(X @ theta - y) + lam * cp.norm1(theta)), [theta <= 0.5]
    )
    solution = cvxqop.privatize(problem, private=[X, y], perturbation=cvxqop.Gaussian(), **PAY)
    bars = solution.error_bars(draws=100, seed=1)
    same = solution.private_loss.error_bars(
        5.0 * cp.norm1(theta), [theta <= 0.5], draws=100, seed=1
    )
    assert np.array_equal(bars.released[theta], solution[theta])
    np.testing.assert_allclose(bars.lower[theta], same.lower[theta], atol=1e-9)
    assert bars.upper[theta].max() <= 0.5
    lam.value = 50.0
    with pytest.raises(cvxqop.ProblemError, match="a parameter"):
        solution.error_bars(draws=100)
    for twin in (copy.deepcopy(solution), cvxqop.PrivateSolution.from_json(solution.to_json())):
        with pytest.raises(cvxqop.ProblemError, match=r"private_loss.error_bars\(regularizer"):
            twin.error_bars()


def test_other_losses_and_bad_arguments_are_refused(case):
    X, _ = records()
    theta = cp.Variable(5)
    logistic = cp.Problem(cp.Minimize(cp.sum(cp.logistic(X @ theta))), [cp.abs(theta) <= 1])
    solution = cvxqop.privatize(
        logistic, private=[X], **{**PAY, "bounds": cvxqop.Bounds(row_norm=1.0)}
    )
    with pytest.raises(cvxqop.OptionError, match="not squared"):
        solution.error_bars()
    loss, v = case.loss, case.theta
    with pytest.raises(cvxqop.OptionError, match="at least 39"):
        loss.error_bars(draws=38)
    for wrong in (0, 1, "0.9", None):
        with pytest.raises(cvxqop.OptionError, match="level"):
            loss.error_bars(level=wrong)
    with pytest.raises(cvxqop.OptionError, match="convex scalar"):
        loss.error_bars(-cp.norm1(v))
    with pytest.raises(cvxqop.OptionError, match="convex CVXPY constraints"):
        loss.error_bars(None, [cp.norm1(v) >= 1])
    bare = cvxqop.PrivateLoss(np.eye(5), np.zeros(5), np.zeros(5), (v,), loss.guarantee)
    with pytest.raises(cvxqop.OptionError, match="law of its noise"):
        bare.error_bars()


RESTS = {
    "lasso": lambda v: (10 * cp.norm1(v), []),
    "group": lambda v: (10 * (cp.norm(v[:2]) + cp.norm(v[2:])), []),
    "monotone": lambda v: (None, [cp.diff(v) >= 0]),
    "huber": lambda v: (cp.sum(cp.huber(v, 0.1)), []),
    "other variables": lambda v: (5 * cp.max(cp.abs(v)), [cp.norm1(v) <= 0.9]),
}


@pytest.mark.parametrize("name", RESTS)
def test_every_redraw_is_solved_as_another_solver_does(case, name):
    loss, v = case.loss, case.theta
    r, C = RESTS[name](v)
    rest = PublicRest.of(loss, r, C)
    forms = next(redraws(loss, 4, np.random.default_rng(2)))
    found = rest.solve(forms.H, forms.g, loss, forms.least, np.full(5, 0.1))
    for b in range(4):
        objective = 0.5 * cp.quad_form(v, cp.psd_wrap(forms.H[b])) + forms.g[b] @ v
        cp.Problem(cp.Minimize(objective + (0 if r is None else r)), C).solve("CLARABEL")
        np.testing.assert_allclose(found[b], v.value, atol=1e-4)
    v.value = None


def test_a_bound_is_covered_that_solvers_only_come_near(case):
    """All solutions lie on θ_0 = .1 up to a tolerance, whichever way they are solved."""
    loss, v = case.loss, case.theta
    for r in (None, 1e-9 * cp.max(cp.exp(v))):
        bars = loss.error_bars(r, [v[0] <= 0.1, v[0] >= 0.1 - 1e-12], draws=50, seed=0)
        assert bars.lower[v][0] <= 0.1 <= bars.upper[v][0] + 1e-12
        assert bars.upper[v][0] - bars.lower[v][0] < 1e-6


def test_several_outputs_share_their_curvature():
    """Outputs with the same target differ by the noise of their gradients alone."""
    X, y = records()
    theta = cp.Variable((5, 2), name="theta")
    loss = cvxqop.private_loss(
        cp.sum_squares(X @ theta - np.stack([y, y], axis=1)),
        private=[X, np.stack([y, y], axis=1)],
        perturbation=cvxqop.Gaussian(),
        **{**PAY, "bounds": cvxqop.Bounds(row_norm=1.0, offset=2.0**0.5)},
    )
    equal = np.tile(loss.first_gradient[:5], 2)
    loss = replace(loss, first_gradient=equal)
    bars = loss.error_bars(draws=4000, seed=0)
    width = bars.upper[theta] - bars.lower[theta]
    np.testing.assert_allclose(width[:, 0], width[:, 1], rtol=0.1)
    lasso = loss.error_bars(cp.sum(cp.abs(theta)) * 1e-9, draws=4000, seed=0)
    np.testing.assert_allclose(lasso.lower[theta], bars.lower[theta], rtol=1e-5)
    assert bars.names[:2] == ["theta[0, 0]", "theta[1, 0]"]


def test_predictions(case):
    loss, v = case.loss, case.theta
    bars = loss.error_bars(cp.norm1(v), draws=100, seed=0)
    found = bars.predict(np.eye(5))
    np.testing.assert_allclose(found.lower[None], bars.lower[v])
    np.testing.assert_allclose(found.released[None], bars.released[v])
    shifted = bars.predict(2.0 * v[1] - 1.0)
    np.testing.assert_allclose(shifted.upper[None], 2.0 * bars.upper[v][1] - 1.0)
    assert shifted.upper[None].shape == ()
    assert "prediction[4]" in str(found)
    for wrong in (np.ones((2, 4)), cp.square(v), cp.Variable(5)):
        with pytest.raises(cvxqop.OptionError, match="predict"):
            bars.predict(wrong)


def test_frame_table_and_picture(case):
    bars = case.loss.error_bars(draws=100, seed=0)
    frame = bars.to_pandas()
    assert list(frame.index) == [f"theta[{j}]" for j in range(5)]
    assert list(frame.columns) == ["released", "lower", "upper", "share", "undetermined"]
    assert frame["lower"].tolist() == bars.lower[case.theta].tolist()
    (axes,) = bars.plot().axes
    assert [label.get_text() for label in axes.get_yticklabels()] == bars.names
    assert "theta[4]" in str(bars)
    assert repr(bars) == str(bars)
    assert len(bars.predict(np.ones((50, 5))).names) == 50
    assert "and 10 more" in str(bars.predict(np.ones((50, 5))))


def test_no_noise_of_a_release_is_drawn_again():
    """A redraw with the seed of the release would otherwise take its noise off."""
    case = Case(seed=3, d=4)
    S = case.loss.raw_hessian - case.H
    drawn = case.loss.noise.curvatures(generator_of(0), 1000, 4)
    assert np.abs(drawn - S).max(axis=(1, 2)).min() > 1e-3 * np.abs(S).max()
    first, second = (case.loss.error_bars(draws=50, seed=9) for _ in range(2))
    assert np.array_equal(first.draws, second.draws)
    assert not np.array_equal(first.draws, case.loss.error_bars(draws=50).draws)


SCRIPT = """
import sys, cvxpy as cp, numpy as np, cvxqop
loss = cvxqop.PrivateLoss.from_json(open(sys.argv[1]).read())
(theta,) = loss.variables
bars = loss.error_bars(cp.norm1(theta), [theta <= 1], draws=100)
print(len(str(bars)) > 0, bars.predict(np.eye(5)).lower[None].shape)
print(0.0 <= loss.p_value(np.zeros(5), cp.norm1(theta)) <= 1.0)
lam = cp.Parameter(nonneg=True)
print(loss.path(lam * cp.norm1(theta), lam, [0, 1, 10]).chosen in (0, 1, 10))
print(loss.fit().r_squared < 1.0, loss.error_bars(population=True, draws=100).population)
print(bars.plot() is not None, bars.to_pandas().shape)
"""


def test_a_process_that_has_the_text_only(tmp_path):
    loss = Case(perturbation=cvxqop.Gaussian(sum_of_squares=True)).loss
    path = tmp_path / "release.json"
    path.write_text(loss.to_json())
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(path)],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
    )
    assert done.stdout.split() == ["True", "(5,)", *["True"] * 5, "(5,", "5)"]
