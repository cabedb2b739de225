"""The ledger: exact for Gaussians, numerical composition from above, refusals, files, threads."""

import json
import math
import os
import threading
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from cvxqop.errors import BudgetError, CalibrationError, OptionError
from cvxqop.privacy import ledger
from cvxqop.privacy.accounting.composition import Curve, compose
from cvxqop.privacy.accounting.profile import gaussian_mu, gaussian_profile
from cvxqop.privacy.budget import Budget
from cvxqop.privacy.curves import curves_of
from cvxqop.privacy.gaussian.options import Gaussian
from cvxqop.privacy.linear.options import Linear
from cvxqop.privacy.mechanism import Sensitivity
from cvxqop.privacy.wishart import ensemble as wishart
from cvxqop.privacy.wishart.options import Wishart


def sensitivity(**changes):
    base = {
        "dimension": 5,
        "smoothness": 1.0,
        "anchor_gradient": 1.0,
        "quadratic": True,
        "adjacency": "add_remove",
        "gradient": 1.0,
    }
    return Sensitivity(**{**base, **changes})


def test_gaussian_releases_compose_exactly():
    """Four releases with μ/2 each fill the budget of μ; a fifth is refused, and left is nothing."""
    budget = Budget(epsilon=1.0, delta=1e-6)
    mu = gaussian_mu(1.0, 1e-6)
    # ε of one release with μ/2 at δ = 10⁻⁶
    low, high = 0.1, 1.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if gaussian_profile(middle, mu / 2) > 1e-6 else (low, middle)
    each = Gaussian().calibrate(high, 1e-6, sensitivity())
    assert each.gdp_mu == pytest.approx(mu / 2, rel=1e-9)
    for count in range(1, 4):
        budget.spend(epsilon=high, delta=1e-6, mechanism=each)
        exact = float(gaussian_profile(1.0, each.gdp_mu * math.sqrt(count)))
        assert exact <= budget.profile(1.0) <= exact * (1.0 + 1e-9)
    assert budget.remaining().mu == pytest.approx(mu / 2, rel=1e-6)
    assert high * 4 > 1.5  # adding up ε would have refused long before
    with pytest.raises(BudgetError, match="mu = 0"):
        budget.spend(
            epsilon=1.0, delta=1e-6, mechanism=Gaussian().calibrate(1.0, 1e-6, sensitivity())
        )
    assert len(budget.history) == 3


def test_one_release_may_take_the_whole_budget():
    for adjacency in ("add_remove", "replace_one"):
        for quadratic in (True, False):
            s = sensitivity(adjacency=adjacency, quadratic=quadratic)
            for kind in (Wishart(), Gaussian(), Linear()):
                budget = Budget(epsilon=0.7, delta=1e-5)
                budget.spend(
                    epsilon=0.7, delta=1e-5, mechanism=kind.calibrate(0.7, 1e-5, s, accuracy=1e-6)
                )
                assert budget.profile(0.7) <= 1e-5
                with pytest.raises(BudgetError):
                    budget.spend(epsilon=0.1, delta=1e-7)


@pytest.mark.parametrize("count", [2, 7])
@pytest.mark.parametrize("mu", [0.05, 0.4, 2.0])
def test_numerical_composition_of_gaussians(count, mu):
    """Against δ_G(ε; √k μ): from above, within 8% (stored points are sparse far out)."""
    width = max(mu**2, 5.0 * mu)
    curve = Curve.of(lambda e: gaussian_profile(e, mu), width)
    composed = compose([curve] * count, 4.0 * width)
    for epsilon in (0.0, 0.5 * width, width, 2.0 * width):
        exact = float(gaussian_profile(epsilon, mu * math.sqrt(count)))
        assert exact <= composed(epsilon) <= 1.08 * exact + 1e-15


def exact_pair(c, nu, epsilon, mu):
    """Two Wishart releases, add: E over (h, h') of δ_G(ε − Z − Z'; √2 μ), by a product rule."""
    k = nu / 2 - 1
    u, w = np.polynomial.legendre.leggauss(400)
    top = nu + 14 * np.sqrt(2 * nu) + 40
    h = 0.5 * top * (u + 1)
    p = chi2.pdf(h, nu) * 0.5 * top * w
    with np.errstate(invalid="ignore", divide="ignore"):
        Z = np.where(h > c, -k * np.log1p(-np.minimum(c / h, 1)) - c / 2, np.inf)
    both = Z[:, None] + Z[None, :]
    return float(p @ gaussian_profile(epsilon - both, math.sqrt(2.0) * mu) @ p)


def test_numerical_composition_of_wishart_releases():
    """Add side alone: above the exact composition, within 3%; far below adding up ε and δ."""
    s = sensitivity()
    mechanism = Wishart().calibrate(0.5, 1e-6, s)
    c, nu = 1.0 / mechanism.sigma2, mechanism.degrees_of_freedom - 4
    budget = Budget(epsilon=1.0, delta=2e-6)
    for _ in range(2):
        budget.spend(epsilon=0.5, delta=1e-6, mechanism=mechanism)
    exact = exact_pair(c, nu, 1.0, mechanism.mu)
    assert exact <= budget.profile(1.0) <= 1.03 * exact
    assert budget.profile(1.0) < 1e-8
    while True:
        try:
            budget.spend(epsilon=0.5, delta=1e-6, mechanism=mechanism)
        except BudgetError:
            break
    assert len(budget.history) >= 3


def test_factors_of_a_replacement_bound_its_profile():
    """Three factors of one replacement, composed, against the two-dimensional quadrature."""
    for gradient in (1.0, 0.0):
        s = sensitivity(adjacency="replace_one", anchor_gradient=gradient)
        mechanism = Wishart().calibrate(0.8, 1e-5, s)
        composed = compose(curves_of(mechanism, 0.8), 1.6)
        for epsilon in (0.0, 0.4, 0.8, 1.6):
            exact = float(mechanism.profile(epsilon))
            assert exact * (1 - 1e-9) <= composed(epsilon) <= 1.02 * exact + 1e-15


@given(
    st.lists(st.tuples(st.floats(0.05, 1.0), st.floats(0.01, 2.0)), min_size=2, max_size=4),
    st.integers(0, 10**6),
)
@settings(max_examples=10, deadline=None)
def test_the_ledger_closes(pairs, seed):
    """Discrete mechanisms whose composition is a finite sum: the ledger is never below it."""
    rng = np.random.default_rng(seed)
    curves, losses = [], []
    for spread, scale in pairs:
        loss = np.sort(rng.uniform(-spread, spread, 5)) * scale
        q = rng.dirichlet(np.ones(5))
        p = q * np.exp(loss)
        loss, p, q = loss - np.log(p.sum()), p / p.sum(), q

        def own(e, loss=loss, p=p, q=q):
            e = np.asarray(e, dtype=float)[..., None]
            there = np.maximum(0, p * -np.expm1(np.minimum(e - loss, 0))).sum(axis=-1)
            back = np.maximum(0, q * -np.expm1(np.minimum(e + loss, 0))).sum(axis=-1)
            return np.maximum(there, back)

        curves.append(Curve.of(own, float(np.abs(loss).max()) + 1e-3))
        losses.append((loss, p))
    total, mass = np.zeros(1), np.ones(1)
    for loss, p in losses:
        total = (total[:, None] + loss).ravel()
        mass = (mass[:, None] * p).ravel()
    composed = compose(curves, 3.0)
    for epsilon in (0.0, 0.1, 0.5, 1.5):
        exact = float(mass @ np.maximum(0.0, -np.expm1(np.minimum(epsilon - total, 0.0))))
        assert composed(epsilon) >= exact * (1.0 - 1e-12)


def test_against_dp_accounting():
    """Two Gaussian mechanisms of noise multiplier 4 and a Laplace mechanism of ε = 0.2.

    dp_accounting 0.6.0: PLDAccountant(value_discretization_interval=1e-4), GaussianDpEvent(4.0)
    twice and LaplaceDpEvent(5.0), get_delta(1.0); it errs upwards, by about 1e-4 relative.
    """
    theirs = 0.0011444435066343735
    gaussian = Curve.of(lambda e: gaussian_profile(e, math.sqrt(2.0) / 4.0), 1.0)
    laplace = Curve.of(lambda e: np.maximum(0.0, -np.expm1(0.5 * (np.asarray(e) - 0.2))), 0.2)
    ours = compose([gaussian, laplace], 1.0)(1.0)
    assert theirs * (1.0 - 1e-3) <= ours <= theirs * 1.01


def test_gaussian_releases_and_one_of_which_only_epsilon_is_known():
    """δ_G(ε − ε', μ) for the pair of them."""
    budget = Budget(epsilon=1.0, delta=0.01)
    gaussian = Gaussian().calibrate(1.0, 1e-3, sensitivity())
    budget.spend(epsilon=1.0, delta=1e-3, mechanism=gaussian)
    budget.spend(epsilon=0.2, delta=0.0, label="count")
    claim = float(gaussian_profile(0.8, gaussian.gdp_mu))
    assert budget.profile(1.0) == pytest.approx(claim, rel=1e-9)


def test_adding_up():
    """0.1 + 0.2 is 0.3 here, and 10 times a tenth is the whole."""
    budget = Budget(epsilon=0.3, delta=3e-7)
    budget.spend(epsilon=0.1, delta=1e-7)
    budget.spend(epsilon=0.2, delta=2e-7)
    left = budget.remaining()
    assert (left.epsilon, left.delta) == (0.0, 0.0)
    with pytest.raises(BudgetError, match=r"left are \(0, 0\)"):
        budget.spend(epsilon=1e-9, delta=0.0)
    tenth = Budget(epsilon=1.0, delta=1e-6)
    for _ in range(10):
        tenth.spend(epsilon=0.1, delta=1e-7)
    with pytest.raises(BudgetError):
        tenth.spend(epsilon=1e-6, delta=0.0)


def test_what_remains_can_be_spent():
    for kind in (Wishart(), Gaussian(), Linear()):
        budget = Budget(epsilon=1.0, delta=1e-6)
        budget.spend(epsilon=0.5, delta=1e-6, mechanism=kind.calibrate(0.5, 1e-6, sensitivity()))
        left = budget.remaining()
        assert 0.0 < left.epsilon < 1.0
        budget.spend(epsilon=left.epsilon, delta=left.delta)
        assert budget.profile(1.0) <= 1e-6


def test_two_threads_and_the_last_budget():
    for _ in range(20):
        budget = Budget(epsilon=1.0, delta=1e-6)
        budget.spend(epsilon=0.5, delta=5e-7)
        results, start = [], threading.Barrier(8)

        def take(budget=budget, results=results, start=start):
            start.wait()
            try:
                budget.spend(epsilon=0.5, delta=5e-7)
                results.append("won")
            except BudgetError:
                results.append("refused")

        threads = [threading.Thread(target=take) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(results) == ["refused"] * 7 + ["won"]
        assert len(budget.history) == 2


def test_save_and_load(tmp_path):
    path = tmp_path / "budget.json"
    budget = Budget(epsilon=1.0, delta=1e-6)
    budget.spend(
        epsilon=0.3,
        delta=1e-7,
        label="erste Runde",
        mechanism=Wishart().calibrate(0.3, 1e-7, sensitivity()),
    )
    budget.spend(epsilon=0.3, delta=1e-7, mechanism=Gaussian().calibrate(0.3, 1e-7, sensitivity()))
    budget.spend(epsilon=0.1, delta=1e-8, label="count")
    budget.save(path)
    again = Budget.load(path)
    assert again.history == budget.history
    assert (again.epsilon, again.delta) == (1.0, 1e-6)
    assert again.profile(1.0) == budget.profile(1.0)
    assert again.remaining() == budget.remaining()
    assert [p.name for p in tmp_path.iterdir()] == ["budget.json"]


def rewrite(path, change):
    body = json.loads(path.read_text())
    change(body)
    path.write_text(json.dumps(body))


def test_damaged_files(tmp_path):
    path = tmp_path / "budget.json"
    budget = Budget(epsilon=1.0, delta=1e-6)
    budget.spend(epsilon=0.5, delta=1e-7)
    damages = [
        (lambda b: b.update(version=2), "version 2"),
        (lambda b: b.update(format="other"), "not a budget"),
        (lambda b: b["history"].clear(), "digest"),
        (lambda b: b.update(epsilon=3.0), "digest"),
        (lambda b: b.pop("digest"), "digest"),
    ]
    for change, words in damages:
        budget.save(path)
        rewrite(path, change)
        with pytest.raises(BudgetError, match=words):
            Budget.load(path)
    for text in ("", "[]", "{", '{"format": 1}'):
        path.write_text(text)
        with pytest.raises(BudgetError, match="budget file"):
            Budget.load(path)
    with pytest.raises(BudgetError, match="missing"):
        Budget.load(tmp_path / "none.json")


def test_fields_are_checked_even_with_a_right_digest(tmp_path):
    path = tmp_path / "budget.json"
    budget = Budget(epsilon=1.0, delta=1e-6)
    budget.spend(epsilon=0.5, delta=1e-7, mechanism=Linear().calibrate(0.5, 1e-7, sensitivity()))
    changes = [
        lambda b: b["history"][0].update(epsilon=-0.5),
        lambda b: b["history"][0].update(adjacency="both"),
        lambda b: b["history"][0].pop("mu"),
        lambda b: b["history"][0]["curves"][0]["delta"].reverse(),
        lambda b: b["history"][0]["curves"][0]["epsilon"].pop(),
        lambda b: b["history"][0].update(delta=float("nan")),
        lambda b: b.update(delta="small"),
    ]
    for change in changes:
        budget.save(path)
        body = json.loads(path.read_text())
        body.pop("digest")
        change(body)
        path.write_text(json.dumps({**body, "digest": ledger._digest(body)}))
        with pytest.raises(BudgetError, match="out of range"):
            Budget.load(path)


def test_refusals():
    with pytest.raises(CalibrationError):
        Budget(epsilon=0.0, delta=1e-6)
    budget = Budget(epsilon=1.0, delta=1e-6)
    for epsilon, delta in ((0.0, 0.0), (math.nan, 0.0), (0.1, -1e-9), (0.1, 1.0), (math.inf, 0.0)):
        with pytest.raises(OptionError):
            budget.spend(epsilon=epsilon, delta=delta)
    mechanism = Gaussian().calibrate(0.5, 1e-7, sensitivity())
    with pytest.raises(OptionError, match="larger delta"):
        budget.spend(epsilon=0.25, delta=1e-7, mechanism=mechanism)
    budget.spend(epsilon=0.5, delta=1e-7, mechanism=mechanism)
    with pytest.raises(BudgetError, match="does not compose"):
        budget.spend(epsilon=0.1, delta=1e-8, adjacency="replace_one")
    assert len(budget.history) == 1


def test_large_epsilon_falls_back_to_adding_up():
    budget = Budget(epsilon=1000.0, delta=1e-6)
    budget.spend(
        epsilon=400.0, delta=5e-7, mechanism=Wishart().calibrate(400.0, 5e-7, sensitivity())
    )
    budget.spend(epsilon=600.0, delta=5e-7)
    assert budget.profile(1000.0) == pytest.approx(1e-6, rel=1e-12)
    assert float(wishart.profile(1.0, 0.1, 10)) > 0.0


def test_a_release_that_no_small_budget_covers_is_refused():
    """The grid of the composition is that of the budget, however large the ε of the release."""
    mechanism = Linear().calibrate(1e6, 1e-6, sensitivity(gradient=1.0), radius=1.0, accuracy=1e-6)
    budget = Budget(epsilon=1e-3, delta=1e-12)
    with pytest.raises(BudgetError, match="would exceed"):
        budget.spend(epsilon=1e6, delta=1e-6, mechanism=mechanism)
    assert budget.history == ()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform has no fork")
def test_a_copy_in_another_process_is_not_charged():
    budget = Budget(epsilon=1.0, delta=1e-6)
    read, write = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of threads; the child has none
        child = os.fork()
    if not child:  # pragma: no cover
        try:
            budget.spend(epsilon=0.5, delta=1e-7)
            os.write(write, b"charged")
        except BudgetError:
            os.write(write, b"refused")
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(read, 20) == b"refused"
    budget.spend(epsilon=0.5, delta=1e-7)
