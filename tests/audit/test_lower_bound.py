"""Lower bounds on ε for mechanisms whose privacy is known in closed form."""

import numpy as np
import pytest
from scipy.stats import binom, norm

import cvxqop
from cvxqop.audit import lower_bound
from cvxqop.audit.event import clopper_pearson


def gaussian(scale, seed=0):
    rng = np.random.default_rng(seed)
    return lambda data: np.array([0.0, data]) + scale * rng.standard_normal(2)


def gaussian_delta(epsilon, mu):
    return norm.cdf(mu / 2 - epsilon / mu) - np.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)


@pytest.mark.parametrize("count", [0, 1, 17, 99, 100])
def test_clopper_pearson_inverts_the_binomial(count):
    low, high = clopper_pearson(count, 100, 1e-6)
    if count > 0:
        assert binom.sf(count - 1, 100, low) == pytest.approx(1e-6, rel=1e-6)
    if count < 100:
        assert binom.cdf(count, 100, high) == pytest.approx(1e-6, rel=1e-6)


def test_a_sound_mechanism_passes_and_a_noisy_claim_is_refuted():
    """μ = 1: δ(ε) is known; the claim of a mechanism with twice the noise is not met."""
    common = {"trials": 4000, "confidence": 1 - 1e-7, "claim": 2.0}
    delta = gaussian_delta(2.0, 1.0)
    sound = lower_bound(
        gaussian(1.0), 0.0, 1.0, delta=delta, profile=lambda e: gaussian_delta(e, 1.0), **common
    )
    assert sound.holds
    assert 0.6 < sound.attained <= 1.0  # it is not vacuous
    broken = lower_bound(
        gaussian(1.0), 0.0, 1.0, delta=delta, profile=lambda e: gaussian_delta(e, 0.5), **common
    )
    assert not broken.holds
    assert "proven" in str(broken)


def test_a_fixed_event_and_its_count():
    found = lower_bound(
        gaussian(0.25), 0.0, 1.0, event=lambda z: z[:, 1] > 0.5, trials=1000, delta=0.01, claim=1.0
    )
    assert found.trials == 1000
    # P = Φ(−2) and Φ(2): log((0.977 − δ)/0.0228) = 3.75 with infinitely many releases.
    assert 2.0 < found.epsilon < 3.75
    assert not found.holds


def test_the_bound_is_below_the_truth_for_any_event():
    """200 audits at confidence 0.9 of an exactly (ε, 0) mechanism: few may exceed ε."""
    rng = np.random.default_rng(3)

    def response(bit):
        return bit if rng.random() < 0.75 else 1 - bit

    over = sum(
        lower_bound(response, 0, 1, trials=100, confidence=0.9).epsilon > np.log(3.0)
        for _ in range(200)
    )
    assert binom.sf(over - 1, 200, 0.1) > 1e-7


@pytest.mark.parametrize(
    "release",
    [
        lambda data: data,  # no noise at all
        lambda data: np.nan if data else 0.0,  # a failure that depends on the data
        lambda data: [np.inf, data],
        lambda data: {"a": 0.0, "b": np.full(2, data)},
    ],
)
def test_outputs_without_noise_are_caught(release):
    found = lower_bound(release, 0.0, 1.0, trials=300, claim=2.0)
    assert found.epsilon > 2.0
    assert not found.holds


def test_equal_outputs_prove_nothing():
    found = lower_bound(lambda data: 0.0, 0, 1, trials=100, claim=0.1)
    assert found.epsilon == 0.0
    assert found.holds


def test_an_exact_relation_between_the_entries_is_seen():
    """Noise that cancels in a sum of two entries."""
    rng = np.random.default_rng(1)

    def release(data):
        noise = rng.standard_normal()
        return [noise, data - noise]

    assert lower_bound(release, 0.0, 0.01, trials=400).epsilon > 2.0


@pytest.mark.parametrize(
    "wrong",
    [{"trials": 3}, {"delta": 1.0}, {"confidence": 1.0}, {"learning": 0.0}, {"trials": True}],
)
def test_refusals(wrong):
    with pytest.raises(cvxqop.OptionError, match=next(iter(wrong))):
        lower_bound(gaussian(1.0), 0.0, 1.0, **wrong)
    with pytest.raises(cvxqop.OptionError, match="sizes"):
        lower_bound(lambda n: np.zeros(n), 1, 2, trials=20)
